"""SaslAuthenticate: a token of a login, with a header (KIP-152).

Versions 0 to 2. 1 tells how long the session lasts (KIP-368); 2 is flexible. Answered here is only the client that has
nothing to log in to, or is logged in already: the door before the session takes the others (`broker.front.login`).
"""

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(
    services: Services | ControllerServices, session: Session, request: SaslAuthenticateRequest, version: int
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=Errors.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
