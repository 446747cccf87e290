"""LeaveGroup: one member until v2, any number from v3 on.

Versions 0 to 5. 3 takes many at once, static members among them (KIP-345); 4 is flexible; 5 says why (KIP-800).
"""

from asyncio import Future
from typing import TypeAlias

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import READ_GROUP
from ottla.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

MemberIdentity: TypeAlias = LeaveGroupRequest.MemberIdentity

BATCHED = 3


def handle(
    services: Services, session: Session, request: LeaveGroupRequest, version: int
) -> "LeaveGroupResponse | Future[LeaveGroupResponse]":
    if not session.client.may(*READ_GROUP, request.group_id):
        return LeaveGroupResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    if version < BATCHED:
        request.members = [MemberIdentity(member_id=request.member_id)]
    outcome = ask(
        services.coordination.groups,
        request.group_id,
        lambda shard, now: shard.leave(request, now),
        lambda error: LeaveGroupResponse(error_code=error),
    )
    if isinstance(outcome, Future):
        outcome.add_done_callback(lambda done: None if done.cancelled() else _fit(done.result(), version))
        return outcome
    return _fit(outcome, version)


def _fit(response: LeaveGroupResponse, version: int) -> LeaveGroupResponse:
    if version < BATCHED and response.members:
        response.error_code = response.error_code or response.members[0].error_code
        response.members = []
    return response
