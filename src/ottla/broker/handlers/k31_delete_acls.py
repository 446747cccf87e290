"""DeleteAcls: takes away the entries of the access control list that filters find, and tells which they were.

Versions 1 to 3. 1 knows prefixes (KIP-290); 2 is flexible; 3 knows users as resources (KIP-373).
"""

from ottla.broker.front.session import Session
from ottla.broker.security import acl_changes
from ottla.broker.services import ControllerServices, Services
from ottla.model.acls import Acl
from ottla.model.errors import Errors
from ottla.protocol.messages import DeleteAclsRequest, DeleteAclsResponse
from ottla.protocol.refusals import refused

LARGE_REPLIES = True


async def handle(
    services: Services | ControllerServices, session: Session, request: DeleteAclsRequest, version: int
) -> DeleteAclsResponse:
    acls = services.authorizer.acls
    if acls is None:
        return refused(request, Errors.SECURITY_DISABLED)

    async def decide(some: DeleteAclsRequest) -> DeleteAclsResponse:
        response = await services.decide(some, session.client)
        gone = [_acl(found) for result in response.filter_results for found in result.matching_acls]
        await services.control_plane.seen_here(lambda _: not any(acl in acls for acl in gone))
        return response

    return await acl_changes.delete(request, acls, decide)


def _acl(found: DeleteAclsResponse.DeleteAclsMatchingAcl) -> Acl:
    return Acl(
        found.resource_type,
        found.resource_name,
        found.pattern_type,
        found.principal,
        found.host,
        found.operation,
        found.permission_type,
    )
