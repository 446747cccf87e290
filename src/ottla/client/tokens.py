"""Delegation tokens, as their owners and renewers see them (KIP-48)."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.errors import check
from ottla.client.routing import Routing, call
from ottla.client.steps import Steps, operation
from ottla.protocol import messages


class Token(NamedTuple):
    id: str
    hmac: bytes
    """The secret: whoever has it acts as the owner."""
    owner: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    """However often it is renewed."""


@operation
def create_token(
    routing: Routing, renewers: Sequence[str] = (), max_lifetime_ms: int = -1, owner: str | None = None
) -> Steps[Token]:
    kind = messages.CreateDelegationTokenRequest
    owner_type, _, owner_name = (owner or "").partition(":")
    request = kind(
        owner_principal_type=owner_type or None,
        owner_principal_name=owner_name or None,
        renewers=[kind.CreatableRenewers(*_split(each)) for each in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )
    made = yield from call(routing, request, messages.CreateDelegationTokenResponse)
    check(made.error_code, "a delegation token")
    return Token(
        made.token_id,
        bytes(made.hmac),
        f"{made.principal_type}:{made.principal_name}",
        tuple(renewers),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


@operation
def renew_token(routing: Routing, hmac: bytes, period_ms: int = -1) -> Steps[int]:
    """Until when it lives now."""
    request = messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    reply = yield from call(routing, request, messages.RenewDelegationTokenResponse)
    check(reply.error_code, "the delegation token")
    return reply.expiry_timestamp_ms


@operation
def expire_token(routing: Routing, hmac: bytes, period_ms: int = -1) -> Steps[int]:
    """A negative period: at once."""
    request = messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    reply = yield from call(routing, request, messages.ExpireDelegationTokenResponse)
    check(reply.error_code, "the delegation token")
    return reply.expiry_timestamp_ms


@operation
def describe_tokens(routing: Routing, owners: Sequence[str] | None = None) -> Steps[list[Token]]:
    """Those that one may see; of some owners, or of all."""
    kind = messages.DescribeDelegationTokenRequest
    request = kind(
        owners=None if owners is None else [kind.DescribeDelegationTokenOwner(*_split(each)) for each in owners]
    )
    reply = yield from call(routing, request, messages.DescribeDelegationTokenResponse)
    check(reply.error_code, "delegation tokens")
    return [
        Token(
            each.token_id,
            bytes(each.hmac),
            f"{each.principal_type}:{each.principal_name}",
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in reply.tokens
    ]


def _split(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
