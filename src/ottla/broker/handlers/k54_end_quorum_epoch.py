"""EndQuorumEpoch: the leader of the metadata log resigns."""

from ottla.broker.front.session import Session
from ottla.broker.handlers import quorum
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.protocol.codec import Message
from ottla.protocol.messages import EndQuorumEpochRequest

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


async def handle(
    services: ControllerServices, session: Session, request: EndQuorumEpochRequest, version: int
) -> Message:
    return await quorum.answer(services, session, request, version, NEEDS)
