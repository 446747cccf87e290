"""SaslHandshake: which mechanism a client will log in by.

Versions 0 and 1. After 0 the tokens come without headers, after 1 in SaslAuthenticate (KIP-152). Answered here is only
the client that has nothing to log in to, or is logged in for good: the door before the session takes the others
(`broker.front.login`).
"""

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


def handle(
    services: Services | ControllerServices, session: Session, request: SaslHandshakeRequest, version: int
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=Errors.ILLEGAL_SASL_STATE)
