"""Fetch on the controller listener: voters and observers read the metadata log."""

from asyncio import Future, get_running_loop

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.protocol.messages import FetchRequest, FetchResponse

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


def handle(
    services: ControllerServices, session: Session, request: FetchRequest, version: int
) -> "Message | Future[Message]":
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return FetchResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    future: Future[Message] = get_running_loop().create_future()
    services.control_plane.raft.handle(
        request, version, lambda answer: None if future.done() else future.set_result(answer)
    )
    return future
