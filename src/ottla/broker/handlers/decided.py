"""What the active controller decides as it was asked: by a client of any broker or controller, or by a node."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.protocol.codec import Request, ResponseT_co


def handle(
    services: Services | ControllerServices, session: Session, request: Request[ResponseT_co], version: int
) -> Coroutine[Any, Any, ResponseT_co]:
    return services.decide(request, session.client)
