"""BeginQuorumEpoch: the new leader of the metadata log says so."""

from ottla.broker.front.session import Session
from ottla.broker.handlers import quorum
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.protocol.codec import Message
from ottla.protocol.messages import BeginQuorumEpochRequest

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


async def handle(
    services: ControllerServices, session: Session, request: BeginQuorumEpochRequest, version: int
) -> Message:
    return await quorum.answer(services, session, request, version, NEEDS)
