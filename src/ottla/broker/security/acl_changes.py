"""Large changes of the access control list, a slice at a time, so that nobody else waits while they are made.

What is denied is written first and taken away last: on the way nobody may do what neither the old entries nor the new
ones allow. A change of up to `SLICE` entries comes into force as a whole.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

from ottla.controller.acls import MAX_CHANGES, acl_of_creation, exact, filter_of, filter_refusal
from ottla.model.acls import Acl, AclFilter
from ottla.protocol.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.security.acls import AclIndex

SLICE: Final = 50
"""Entries of which one decision, its records and their way into the index take two or three milliseconds."""
_FEW: Final = 16
"""Filters that leave something open: each looks at every entry."""

Create = Callable[[CreateAclsRequest], Awaitable[CreateAclsResponse]]
Delete = Callable[[DeleteAclsRequest], Awaitable[DeleteAclsResponse]]
T = TypeVar("T")


async def create(request: CreateAclsRequest, decide: Create) -> CreateAclsResponse:
    creations = request.creations
    if not SLICE < len(creations) <= MAX_CHANGES:
        return await decide(request)
    results: list[CreateAclsResponse.AclCreationResult | None] = [None] * len(creations)
    throttle_ms = 0
    order = sorted(range(len(creations)), key=lambda at: creations[at].permission_type)  # DENY is 2, ALLOW is 3
    for places in _slices(order):
        answer = await decide(CreateAclsRequest([creations[at] for at in places]))
        throttle_ms = max(throttle_ms, answer.throttle_time_ms)
        for at, result in zip(places, answer.results, strict=True):
            results[at] = result
    return CreateAclsResponse(throttle_ms, [each for each in results if each is not None])


async def delete(request: DeleteAclsRequest, index: AclIndex, decide: Delete) -> DeleteAclsResponse:
    """What this node knows of goes slice by slice. Then the filters themselves find what it did not know of."""
    wanted = [filter_of(each) for each in request.filters]
    if sum(exact(each) is None for each in wanted) > _FEW:
        return await decide(request)  # each finds little, or it would be one
    known, doomed = await asyncio.to_thread(_found, list(index), wanted)
    if not SLICE < len(doomed) <= MAX_CHANGES:
        return await decide(request)
    gone: dict[Acl, DeleteAclsResponse.DeleteAclsMatchingAcl] = {}
    for acls in _slices(doomed):
        answer = await decide(DeleteAclsRequest([DeleteAclsRequest.DeleteAclsFilter(*acl) for acl in acls]))
        failed = next((each for each in answer.filter_results if each.error_code), None)
        if failed is not None:  # the controller cannot be reached: nobody knows what has become of it
            return DeleteAclsResponse(filter_results=[failed] * len(wanted))
        for acl, each in zip(acls, answer.filter_results, strict=True):
            gone.update((acl, told) for told in each.matching_acls)
    last = await decide(request)
    for found, result in zip(known, last.filter_results, strict=True):
        result.matching_acls = [*(gone[acl] for acl in found if acl in gone), *result.matching_acls]
    return last


def _found(acls: list[Acl], wanted: list[AclFilter]) -> tuple[list[list[Acl]], list[Acl]]:
    """By filter, and all together in the order in which they go. In a thread. Filters that are refused find nothing."""
    there = dict.fromkeys(acls)
    known = [_found_by(each, there) for each in wanted]
    return known, sorted(dict.fromkeys(acl for found in known for acl in found), key=lambda acl: -acl.permission)


def _found_by(wanted: AclFilter, there: dict[Acl, None]) -> list[Acl]:
    if filter_refusal(wanted) is not None:
        return []
    one = exact(wanted)
    return [acl for acl in there if wanted.matches(acl)] if one is None else [one] if one in there else []


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[at : at + SLICE] for at in range(0, len(items), SLICE))


def created(request: CreateAclsRequest, response: CreateAclsResponse) -> list[Acl]:
    """What is there, or was there before."""
    pairs = zip(request.creations, response.results, strict=True)
    return [acl_of_creation(asked) for asked, result in pairs if not result.error_code]
