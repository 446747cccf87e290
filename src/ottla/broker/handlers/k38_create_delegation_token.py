"""CreateDelegationToken: a token with which others may act as its owner for a while (KIP-48).

Versions 1 to 3. 2 is flexible; 3 may name another owner than who asks (KIP-373).
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.token_requests import may_ask
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.model.permissions import CREATE_TOKENS
from ottla.protocol.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse

NAMES_REQUESTER = 3


async def handle(
    services: Services | ControllerServices, session: Session, request: CreateDelegationTokenRequest, version: int
) -> CreateDelegationTokenResponse:
    response = await _created(services, session, request)
    if version < NAMES_REQUESTER:
        response.token_requester_principal_type = response.token_requester_principal_name = ""
    return response


async def _created(
    services: Services | ControllerServices, session: Session, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    client = session.client
    if not may_ask(client):
        return _refused(client.principal, client.principal, Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    owner = client.principal
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if owner != client.principal and not client.may(*CREATE_TOKENS, owner):
        return _refused(owner, client.principal, Errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    response = await services.decide(request, client)
    if not response.error_code:
        # Whoever is given it logs in next, and most likely here.
        await services.control_plane.seen_here(lambda image: response.token_id in image.delegation_tokens)
    return response


def _refused(owner: str, requester: str, error: Errors) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(
        error_code=error, issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1
    )
    response.principal_type, _, response.principal_name = owner.partition(":")
    whose = requester.partition(":")
    response.token_requester_principal_type, response.token_requester_principal_name = whose[0], whose[2]
    return response
