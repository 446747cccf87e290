"""Heartbeat of a classic group's member.

Versions 0 to 4. 3 knows static members (KIP-345); 4 is flexible.
"""

from asyncio import Future

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import READ_GROUP
from ottla.protocol.messages import HeartbeatRequest, HeartbeatResponse


def handle(
    services: Services, session: Session, request: HeartbeatRequest, version: int
) -> "HeartbeatResponse | Future[HeartbeatResponse]":
    if not session.client.may(*READ_GROUP, request.group_id):
        return HeartbeatResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    return ask(services.coordination.groups, request.group_id, lambda shard, now: shard.heartbeat(request, now), _error)


def _error(error: Errors) -> HeartbeatResponse:
    # A group that is being loaded has not lost this member: nothing for it to do.
    return HeartbeatResponse(error_code=Errors.NONE if error == Errors.COORDINATOR_LOAD_IN_PROGRESS else error)
