"""Fetch on the controller listener: voters and observers read the metadata log.

Versions 4 to 18. 12 is flexible and what KRaft began with (KIP-595); 17 tells the replica's directory (KIP-853); 18
tells the high watermark it knows, so that it is answered when there is a new one (KIP-1166). The rest as `k01_fetch`
says.
"""

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
