"""AddRaftVoter: a controller joins the voters on the metadata log."""

from ottla.broker.front.session import Session
from ottla.broker.handlers import quorum
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import ControllerServices, Services
from ottla.protocol.codec import Message
from ottla.protocol.messages import AddRaftVoterRequest

NEEDS = (Operation.ALTER, Resource.CLUSTER)


async def handle(
    services: Services | ControllerServices, session: Session, request: AddRaftVoterRequest, version: int
) -> Message:
    return await quorum.answer(services, session, request, version, NEEDS)
