"""RenewDelegationToken: its owner, or somebody he named, lets a token live longer (KIP-48).

Versions 1 and 2. 2 is flexible.
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.token_requests import may_ask
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: RenewDelegationTokenRequest, version: int
) -> RenewDelegationTokenResponse:
    if not may_ask(session.client):
        error = Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    return await services.decide(request, session.client)
