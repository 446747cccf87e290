"""The users of a cluster as logins look for them: SCRAM credentials and delegation tokens of the metadata image."""

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from ottla.metadata.image import MetadataImage, ScramKey
from ottla.metadata.scram import (
    MIN_ITERATIONS,
    SCRAM_BY_NAME,
    ScramKeys,
    ScramMechanism,
    keys_of,
    new_salt,
    salted_password,
)
from ottla.metadata.tokens import token_hmac
from ottla.model.ids import Millis
from ottla.protocol.messages import UserScramCredentialRecord
from ottla.security.sasl.scram import ScramCredential, TokenCredential

_MOST_KEPT: Final = 10_000
_MOST_COUNTED: Final = 1_000
_NOBODYS: Final = UserScramCredentialRecord()


class _Usual(NamedTuple):
    """What the credentials of most users have in common, and so everybody sees who tries to log in."""

    iterations: int
    salt_bytes: int


_AS_KAFKA: Final = (25, 26)
"""Bytes of a salt as Kafka's tools make them: 130 bits, written with 36 digits."""
_KAFKAS: Final = _Usual(MIN_ITERATIONS, _AS_KAFKA[-1])


class Users:
    """`derive` takes milliseconds and is called off the loop; all else is a look into the image."""

    __slots__ = ("_counted", "_derived", "_image", "_stranger_secret", "_token_secret", "_usual")

    def __init__(self, image: Callable[[], MetadataImage], token_secret: str | None, stranger_secret: bytes) -> None:
        self._image = image
        self._token_secret = token_secret
        self._stranger_secret = stranger_secret
        self._derived: dict[tuple[str, str], ScramCredential] = {}
        self._counted: Mapping[ScramKey, UserScramCredentialRecord] | None = None
        self._usual: dict[int, _Usual] = {}
        """By type of mechanism, of the users that were counted."""

    def scram(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        record = self._image().scram.get((mechanism.type, name))
        # Made for who does not exist as well: whoever asks could measure that it was not.
        shown = record or _NOBODYS
        found = ScramCredential(shown.salt, shown.iterations, ScramKeys(shown.stored_key, shown.server_key))
        return found if record is not None else None

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        record = self._image().delegation_tokens.get(token_id)
        if record is None or self._token_secret is None:
            return None
        keys = self._derived.get((mechanism.name, token_id))
        return TokenCredential(record.owner.removeprefix("User:"), Millis(record.expiration_timestamp), keys)

    def stranger(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Looks like most others: as many iterations, a salt of the same kind, keys that nobody has."""
        drawn = hmac.digest(self._stranger_secret, f"{mechanism.name} {name}".encode(), "sha512")
        key = drawn[: mechanism.digest_bytes]
        usual = self._usual_of(mechanism)
        salt = new_salt(drawn) if usual.salt_bytes in _AS_KAFKA else hashlib.shake_256(drawn).digest(usual.salt_bytes)
        return ScramCredential(salt, usual.iterations, ScramKeys(key, key))

    def _usual_of(self, mechanism: ScramMechanism) -> "_Usual":
        """Looked up anew when users have changed, among no more of them than can be looked at in passing."""
        kept = self._image().scram
        if kept is not self._counted:
            self._counted, self._usual = kept, {}
        found = self._usual.get(mechanism.type)
        if found is None:
            seen = Counter(
                _Usual(record.iterations, len(record.salt))
                for (kind, _), record in islice(kept.items(), _MOST_COUNTED)
                if kind == mechanism.type
            )
            found = self._usual[mechanism.type] = max(seen, key=lambda each: (seen[each], each), default=_KAFKAS)
        return found

    def derive(self, mechanism_name: str, token_id: str) -> None:
        """Kafka works out both mechanisms' keys of each token on every broker; here it is done for who logs in."""
        assert self._token_secret is not None
        mechanism = SCRAM_BY_NAME[mechanism_name]
        password = b64encode(token_hmac(self._token_secret, token_id)).decode()
        salt = new_salt(secrets.token_bytes(17))
        keys = keys_of(mechanism, salted_password(mechanism, password, salt, MIN_ITERATIONS))
        if len(self._derived) >= _MOST_KEPT:
            self._derived.clear()
        self._derived[mechanism_name, token_id] = ScramCredential(salt, MIN_ITERATIONS, keys)


def new_nonce() -> str:
    return new_salt(secrets.token_bytes(17)).decode()


def stranger_secret(node_secrets: str) -> bytes:
    """The same after a restart, if the node has secrets of its own; else a new one each time."""
    return hashlib.sha256(node_secrets.encode()).digest() if node_secrets else secrets.token_bytes(32)
