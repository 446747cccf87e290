"""CreateAcls: new entries of the access control list. The answer comes when they are in force on this node.

Versions 1 to 3. 1 knows prefixes (KIP-290); 2 is flexible; 3 knows users as resources (KIP-373).
"""

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.controller.acls import acl_of_creation
from ottla.model.errors import Errors
from ottla.protocol.messages import CreateAclsRequest, CreateAclsResponse
from ottla.protocol.refusals import refused


async def handle(
    services: Services | ControllerServices, session: Session, request: CreateAclsRequest, version: int
) -> CreateAclsResponse:
    acls = services.authorizer.acls
    if acls is None:
        return refused(request, Errors.SECURITY_DISABLED)
    response = await services.decide(request, session.client)
    there = [
        acl_of_creation(asked)
        for asked, result in zip(request.creations, response.results, strict=True)
        if not result.error_code
    ]
    await services.control_plane.seen_here(lambda _: all(acl in acls for acl in there))
    return response
