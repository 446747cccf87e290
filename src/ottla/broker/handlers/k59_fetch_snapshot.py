"""FetchSnapshot: a replica that is too far behind the metadata log reads a snapshot of it."""

from ottla.broker.front.session import Session
from ottla.broker.handlers import quorum
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.protocol.codec import Message
from ottla.protocol.messages import FetchSnapshotRequest

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


async def handle(
    services: ControllerServices, session: Session, request: FetchSnapshotRequest, version: int
) -> Message:
    return await quorum.answer(services, session, request, version, NEEDS)
