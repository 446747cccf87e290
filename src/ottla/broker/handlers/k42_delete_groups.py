"""DeleteGroups: empty groups, with their offsets.

Versions 0 to 2. All say the same; 2 is flexible.
"""

import asyncio
from asyncio import Future
from collections.abc import Coroutine
from typing import Any, TypeAlias

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import DELETE_GROUP
from ottla.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

Result: TypeAlias = DeleteGroupsResponse.DeletableGroupResult


def handle(
    services: Services, session: Session, request: DeleteGroupsRequest, version: int
) -> DeleteGroupsResponse | Coroutine[Any, Any, DeleteGroupsResponse]:
    outcomes = [_delete(services, session, group_id) for group_id in dict.fromkeys(request.groups_names)]
    if any(isinstance(outcome, Future) for outcome in outcomes):
        return _later(outcomes)
    return DeleteGroupsResponse(results=[result for outcome in outcomes for result in outcome])


def _delete(services: Services, session: Session, group_id: str) -> "list[Result] | Future[list[Result]]":
    if not session.client.may(*DELETE_GROUP, group_id):
        return [Result(group_id=group_id, error_code=Errors.GROUP_AUTHORIZATION_FAILED)]
    return ask(
        services.coordination.groups,
        group_id,
        lambda shard, _: shard.delete_groups([group_id]),
        lambda error: [Result(group_id=group_id, error_code=error)],
    )


async def _later(outcomes: list[Any]) -> DeleteGroupsResponse:
    await asyncio.gather(*(outcome for outcome in outcomes if isinstance(outcome, Future)))
    done = [outcome.result() if isinstance(outcome, Future) else outcome for outcome in outcomes]
    return DeleteGroupsResponse(results=[result for results in done for result in results])
