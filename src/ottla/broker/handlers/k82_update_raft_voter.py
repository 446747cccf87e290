"""UpdateRaftVoter: a voter has other listeners than the metadata log says."""

from ottla.broker.front.session import Session
from ottla.broker.handlers import quorum
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.protocol.codec import Message
from ottla.protocol.messages import UpdateRaftVoterRequest

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


async def handle(
    services: ControllerServices, session: Session, request: UpdateRaftVoterRequest, version: int
) -> Message:
    return await quorum.answer(services, session, request, version, NEEDS)
