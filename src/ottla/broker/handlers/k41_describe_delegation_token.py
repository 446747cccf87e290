"""DescribeDelegationToken: tokens that one owns, asked for or may renew, and those of others that one may see.

Versions 1 to 3. 2 is flexible; 3 tells who asked for it (KIP-373).
"""

from ottla.broker.front.client import Client
from ottla.broker.front.session import Session
from ottla.broker.handlers.token_requests import may_ask
from ottla.broker.services import Services
from ottla.metadata.tokens import token_hmac
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_TOKEN, DESCRIBE_TOKENS
from ottla.protocol.messages import (
    DelegationTokenRecord,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

NAMES_REQUESTER = 3


def handle(
    services: Services, session: Session, request: DescribeDelegationTokenRequest, version: int
) -> DescribeDelegationTokenResponse:
    secret = services.configs.settings.find_str("delegation.token.secret.key")
    if not may_ask(session.client):
        return DescribeDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if secret is None:
        return DescribeDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_AUTH_DISABLED)
    if request.owners is not None and not request.owners:
        return DescribeDelegationTokenResponse()
    owners = None if request.owners is None else frozenset(map(_principal, request.owners))
    tokens = services.control_plane.image.delegation_tokens.values()
    asked = [token for token in tokens if owners is None or token.owner in owners]
    shown = [token for token in asked if _is_shown(session.client, token)]
    described = [_described(token, secret) for token in shown]
    if version >= NAMES_REQUESTER:
        for token, told in zip(shown, described, strict=True):
            told.token_requester_principal_type, _, told.token_requester_principal_name = token.requester.partition(":")
    return DescribeDelegationTokenResponse(tokens=described)


def _principal(owner: DescribeDelegationTokenRequest.DescribeDelegationTokenOwner) -> str:
    return f"{owner.principal_type}:{owner.principal_name}"


def _is_shown(client: Client, token: DelegationTokenRecord) -> bool:
    if client.principal in (token.owner, token.requester, *token.renewers):
        return True
    return client.sees(*DESCRIBE_TOKEN, token.token_id) or client.sees(*DESCRIBE_TOKENS, token.owner)


def _described(token: DelegationTokenRecord, secret: str) -> DescribeDelegationTokenResponse.DescribedDelegationToken:
    kind = DescribeDelegationTokenResponse
    described = kind.DescribedDelegationToken(
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[
            kind.DescribedDelegationTokenRenewer(*renewer.split(":", 1)) for renewer in token.renewers if ":" in renewer
        ],
    )
    described.principal_type, _, described.principal_name = token.owner.partition(":")
    return described
