"""Delegation tokens: somebody's word that others may act as him for a while (KIP-48, KIP-373).

The record of a token holds whose it is and until when; its secret is made from its id and the nodes' common key.
"""

import hmac
from collections.abc import Mapping
from itertools import islice
from typing import Final

from ottla.controller.decision import Decision
from ottla.metadata.image import MetadataImage
from ottla.metadata.tokens import token_hmac
from ottla.model.errors import Errors
from ottla.model.ids import Millis, Uuid, uuid_text
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

_FIRST_METADATA_VERSION: Final = 14
"""3.6-IV2."""
MOST_AT_ONCE: Final = 1_000
_USER: Final = "User"


class Tokens:
    """The rules, and the secrets of tokens as far as somebody asked for them: they follow from ids and are no state."""

    __slots__ = ("_by_hmac", "_hmacs", "_max_lifetime", "_of", "_renew_lifetime", "_secret")

    def __init__(self, settings: Settings) -> None:
        self._secret = settings.find_str("delegation.token.secret.key") or ""
        self._max_lifetime = settings.get_int("delegation.token.max.lifetime.ms")
        self._renew_lifetime = settings.get_int("delegation.token.expiry.time.ms")
        self._hmacs: dict[str, bytes] = {}
        self._by_hmac: dict[bytes, str] = {}
        """Ids of tokens, for as many as there are."""
        self._of: Mapping[str, object] | None = None
        """The tokens of which that is."""

    def create(
        self,
        image: MetadataImage,
        request: "messages.CreateDelegationTokenRequest",
        requester: str,
        fresh_id: Uuid,
        now: Millis,
    ) -> "Decision[messages.CreateDelegationTokenResponse]":
        owner = requester
        if request.owner_principal_name:
            owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
        response = messages.CreateDelegationTokenResponse()
        response.principal_type, _, response.principal_name = owner.partition(":")
        requesting = requester.partition(":")
        response.token_requester_principal_type, response.token_requester_principal_name = requesting[0], requesting[2]
        response.error_code = self._refusal(image)
        if not response.error_code and any(each.principal_type != _USER for each in request.renewers):
            response.error_code = Errors.INVALID_PRINCIPAL_TYPE
        if response.error_code:
            return Decision(response)
        longest = (
            min(self._max_lifetime, request.max_lifetime_ms) if request.max_lifetime_ms > 0 else self._max_lifetime
        )
        record = messages.DelegationTokenRecord(
            owner=owner,
            requester=requester,
            renewers=[f"{each.principal_type}:{each.principal_name}" for each in request.renewers],
            issue_timestamp=now,
            max_timestamp=now + longest,
            expiration_timestamp=now + min(longest, self._renew_lifetime),
            token_id=uuid_text(fresh_id),
        )
        response.issue_timestamp_ms = record.issue_timestamp
        response.expiry_timestamp_ms = record.expiration_timestamp
        response.max_timestamp_ms = record.max_timestamp
        response.token_id = record.token_id
        response.hmac = token_hmac(self._secret, record.token_id)
        return Decision(response, (record,))

    def renew(
        self, image: MetadataImage, request: "messages.RenewDelegationTokenRequest", requester: str, now: Millis
    ) -> "Decision[messages.RenewDelegationTokenResponse]":
        kind = messages.RenewDelegationTokenResponse
        found = self._found(image, bytes(request.hmac), requester)
        if isinstance(found, Errors):
            return Decision(kind(error_code=found))
        if _is_over(found, now):
            return Decision(kind(error_code=Errors.DELEGATION_TOKEN_EXPIRED))
        asked = request.renew_period_ms
        lifetime = min(self._renew_lifetime, asked) if asked > 0 else self._renew_lifetime
        renewed = _ending(found, min(found.max_timestamp, now + lifetime))
        return Decision(kind(expiry_timestamp_ms=renewed.expiration_timestamp), (renewed,))

    def expire(
        self, image: MetadataImage, request: "messages.ExpireDelegationTokenRequest", requester: str, now: Millis
    ) -> "Decision[messages.ExpireDelegationTokenResponse]":
        """A negative period: at once."""
        kind = messages.ExpireDelegationTokenResponse
        found = self._found(image, bytes(request.hmac), requester)
        if isinstance(found, Errors):
            return Decision(kind(error_code=found))
        if request.expiry_time_period_ms < 0:
            gone = messages.RemoveDelegationTokenRecord(token_id=found.token_id)
            return Decision(kind(expiry_timestamp_ms=now), (gone,))
        if _is_over(found, now):
            return Decision(kind(error_code=Errors.DELEGATION_TOKEN_EXPIRED))
        ending = _ending(found, min(found.max_timestamp, now + request.expiry_time_period_ms))
        return Decision(kind(expiry_timestamp_ms=ending.expiration_timestamp), (ending,))

    def _found(self, image: MetadataImage, shown: bytes, requester: str) -> "messages.DelegationTokenRecord | Errors":
        """By its secret. Owner and renewers alone may do something with it, super users included (as in Kafka)."""
        refusal = self._refusal(image)
        if refusal:
            return refusal
        self._catch_up(image)
        token_id = self._by_hmac.get(shown)
        # What is found is compared as well, in a time that does not tell how much of it is right.
        if token_id is None or not hmac.compare_digest(self._hmacs[token_id], shown):
            return Errors.DELEGATION_TOKEN_NOT_FOUND
        token = image.delegation_tokens[token_id]
        allowed = requester == token.owner or requester in token.renewers
        return token if allowed else Errors.DELEGATION_TOKEN_OWNER_MISMATCH

    def _catch_up(self, image: MetadataImage) -> None:
        """Works out what is new, once for each token."""
        tokens = image.delegation_tokens
        if tokens is self._of:
            return
        self._of = tokens
        for token_id in [each for each in self._hmacs if each not in tokens]:
            self._by_hmac.pop(self._hmacs.pop(token_id), None)
        for token_id in tokens:
            if token_id not in self._hmacs:
                found = self._hmacs[token_id] = token_hmac(self._secret, token_id)
                self._by_hmac[found] = token_id

    def _refusal(self, image: MetadataImage) -> Errors:
        if not self._secret:
            return Errors.DELEGATION_TOKEN_AUTH_DISABLED
        return Errors.NONE if image.metadata_version >= _FIRST_METADATA_VERSION else Errors.UNSUPPORTED_VERSION


def expired(image: MetadataImage, now: Millis) -> list[MetadataRecord]:
    """What is past its time, so many at once."""
    over = (each.token_id for each in image.delegation_tokens.values() if _is_over(each, now))
    return [messages.RemoveDelegationTokenRecord(token_id=token_id) for token_id in islice(over, MOST_AT_ONCE)]


def _is_over(token: "messages.DelegationTokenRecord", now: Millis) -> bool:
    return token.max_timestamp < now or token.expiration_timestamp < now


def _ending(token: "messages.DelegationTokenRecord", expires: int) -> "messages.DelegationTokenRecord":
    return messages.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expires,
        token_id=token.token_id,
    )
