"""DescribeAcls: the entries of the access control list that a filter finds.

Versions 1 to 3. 1 knows prefixes (KIP-290); 2 is flexible; 3 knows users as resources (KIP-373).
"""

import asyncio

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.controller.acls import filter_of, filter_refusal
from ottla.model.acls import Acl, AclFilter
from ottla.model.errors import Errors
from ottla.protocol.messages import DescribeAclsRequest, DescribeAclsResponse

LARGE_REPLIES = True


async def handle(
    services: Services | ControllerServices, session: Session, request: DescribeAclsRequest, version: int
) -> DescribeAclsResponse:
    acls = services.authorizer.acls
    if acls is None:
        return DescribeAclsResponse(error_code=Errors.SECURITY_DISABLED, error_message=Errors.SECURITY_DISABLED.text)
    wanted = filter_of(request)
    refusal = filter_refusal(wanted)
    if refusal is not None:
        return DescribeAclsResponse(error_code=refusal.error, error_message=refusal.message)
    # They may be a hundred thousand: a thread goes through them as they are now.
    resources = await asyncio.to_thread(_by_resource, list(acls), wanted)
    return DescribeAclsResponse(error_message=None, resources=resources)


def _by_resource(acls: list[Acl], wanted: AclFilter) -> list[DescribeAclsResponse.DescribeAclsResource]:
    kind = DescribeAclsResponse.DescribeAclsResource
    resources: dict[tuple[int, str, int], DescribeAclsResponse.DescribeAclsResource] = {}
    for acl in filter(wanted.matches, acls):
        key = acl.resource, acl.name, acl.pattern
        if key not in resources:
            resources[key] = kind(*key, [])
        resources[key].acls.append(
            DescribeAclsResponse.AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        )
    return list(resources.values())
