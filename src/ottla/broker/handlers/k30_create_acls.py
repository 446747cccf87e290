"""CreateAcls: new entries of the access control list. The answer comes when they are in force on this node.

Versions 1 to 3. 1 knows prefixes (KIP-290); 2 is flexible; 3 knows users as resources (KIP-373).
"""

from ottla.broker.front.session import Session
from ottla.broker.security import acl_changes
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.protocol.messages import CreateAclsRequest, CreateAclsResponse
from ottla.protocol.refusals import refused

LARGE_REPLIES = True


async def handle(
    services: Services | ControllerServices, session: Session, request: CreateAclsRequest, version: int
) -> CreateAclsResponse:
    acls = services.authorizer.acls
    if acls is None:
        return refused(request, Errors.SECURITY_DISABLED)

    async def decide(some: CreateAclsRequest) -> CreateAclsResponse:
        response = await services.decide(some, session.client)
        there = acl_changes.created(some, response)
        await services.control_plane.seen_here(lambda _: all(acl in acls for acl in there))
        return response

    return await acl_changes.create(request, decide)
