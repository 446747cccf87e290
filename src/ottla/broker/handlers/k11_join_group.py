"""JoinGroup: the answer waits in the group until its members have come together.

Versions 0 to 9. 1 has a rebalance timeout of its own (KIP-62); 4 is given a member id and asks again with it
(KIP-394); 5 knows static members (KIP-345); 6 is flexible; 7 is told the protocol's type (KIP-559); 8 says why it
joins (KIP-800); 9 tells a leader that it need not assign (KIP-814).
"""

from asyncio import Future

from ottla.broker.coordination.groups import ask, caller_of
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import READ_GROUP
from ottla.protocol.messages import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_FROM = 1
NULL_PROTOCOL_FROM = 7


def handle(
    services: Services, session: Session, request: JoinGroupRequest, version: int
) -> "JoinGroupResponse | Future[JoinGroupResponse]":
    if version < REBALANCE_TIMEOUT_FROM:
        request.rebalance_timeout_ms = request.session_timeout_ms

    def error(code: Errors) -> JoinGroupResponse:
        return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name=None)

    if not session.client.may(*READ_GROUP, request.group_id):
        refusal = JoinGroupResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED, member_id="", protocol_name=None)
        return _fit(refusal, version)
    caller = caller_of(services, session, version)
    outcome = ask(
        services.coordination.groups,
        request.group_id,
        lambda shard, now: shard.join(request, caller, now),
        error,
    )
    if isinstance(outcome, Future):
        outcome.add_done_callback(lambda done: None if done.cancelled() else _fit(done.result(), version))
        return outcome
    return _fit(outcome, version)


def _fit(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if version < NULL_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response
