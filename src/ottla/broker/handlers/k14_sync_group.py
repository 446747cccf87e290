"""SyncGroup: the leader brings the assignments, everybody takes theirs away.

Versions 0 to 5. 3 knows static members (KIP-345); 4 is flexible; 5 says which protocol it believes in, and is refused
if that is wrong (KIP-559).
"""

from asyncio import Future

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import READ_GROUP
from ottla.protocol.messages import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_FROM = 5


def handle(
    services: Services, session: Session, request: SyncGroupRequest, version: int
) -> "SyncGroupResponse | Future[SyncGroupResponse]":
    if version >= PROTOCOL_REQUIRED_FROM and (request.protocol_type is None or request.protocol_name is None):
        # KIP-559: from here on a member has to say what it believes to be synced to.
        return _error(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if not session.client.may(*READ_GROUP, request.group_id):
        return _error(Errors.GROUP_AUTHORIZATION_FAILED)
    return ask(
        services.coordination.groups,
        request.group_id,
        lambda shard, now: shard.sync(request, now),
        _error,
    )


def _error(error: Errors) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)
