"""Fetch on the controller listener: voters and observers read the metadata log."""

from asyncio import Future, get_running_loop

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices
from ottla.protocol.codec import Message
from ottla.protocol.messages import FetchRequest


def handle(
    services: ControllerServices, session: Session, request: FetchRequest, version: int
) -> "Message | Future[Message]":
    future: Future[Message] = get_running_loop().create_future()
    services.control_plane.raft.handle(
        request, version, lambda answer: None if future.done() else future.set_result(answer)
    )
    return future
