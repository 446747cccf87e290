"""The access control list, as an administrator sees and changes it."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client.errors import KafkaError, check, known
from ottla.client.routing import Routing, call
from ottla.client.steps import Steps, operation
from ottla.model.acls import Acl, AclFilter
from ottla.protocol import messages


@operation
def describe_acls(routing: Routing, wanted: AclFilter) -> Steps[list[Acl]]:
    request = messages.DescribeAclsRequest(*wanted)
    response = yield from call(routing, request, messages.DescribeAclsResponse)
    check(response.error_code, "ACLs", response.error_message)
    return [
        Acl(each.resource_type, each.resource_name, each.pattern_type, *_entry(entry))
        for each in response.resources
        for entry in each.acls
    ]


def _entry(entry: messages.DescribeAclsResponse.AclDescription) -> tuple[str, str, int, int]:
    return entry.principal, entry.host, entry.operation, entry.permission_type


@operation
def create_acls(routing: Routing, acls: Sequence[Acl]) -> Steps[list[KafkaError | None]]:
    """One outcome for each, in their order."""
    request = messages.CreateAclsRequest([messages.CreateAclsRequest.AclCreation(*acl) for acl in acls])
    response = yield from call(routing, request, messages.CreateAclsResponse)
    return [
        KafkaError(known(result.error_code), str(acl.name), result.error_message) if result.error_code else None
        for acl, result in zip(acls, response.results, strict=True)
    ]


@operation
def delete_acls(routing: Routing, filters: Sequence[AclFilter]) -> Steps[list[Acl]]:
    """Those that are gone now. A refused filter is raised."""
    request = messages.DeleteAclsRequest([messages.DeleteAclsRequest.DeleteAclsFilter(*each) for each in filters])
    response = yield from call(routing, request, messages.DeleteAclsResponse)
    gone: dict[Acl, None] = {}
    for result in response.filter_results:
        check(result.error_code, "ACLs", result.error_message)
        for found in result.matching_acls:
            acl = Acl(
                found.resource_type,
                found.resource_name,
                found.pattern_type,
                found.principal,
                found.host,
                found.operation,
                found.permission_type,
            )
            gone[acl] = None
    return list(gone)
