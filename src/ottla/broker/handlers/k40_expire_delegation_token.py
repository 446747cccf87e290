"""ExpireDelegationToken: its owner, or somebody he named, lets a token end earlier, or at once (KIP-48).

Versions 1 and 2. 2 is flexible.
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.token_requests import may_ask
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.protocol.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: ExpireDelegationTokenRequest, version: int
) -> ExpireDelegationTokenResponse:
    if not may_ask(session.client):
        error = Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    return await services.decide(request, session.client)
