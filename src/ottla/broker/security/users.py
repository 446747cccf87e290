"""The users of a cluster as logins look for them: SCRAM credentials and delegation tokens of the metadata image."""

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Callable
from typing import Final

from ottla.metadata.image import MetadataImage
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
from ottla.security.sasl.scram import ScramCredential, TokenCredential

_MOST_KEPT: Final = 10_000


class Users:
    """`derive` takes milliseconds and is called off the loop; all else is a look into the image."""

    __slots__ = ("_derived", "_image", "_stranger_secret", "_token_secret")

    def __init__(self, image: Callable[[], MetadataImage], token_secret: str | None, stranger_secret: bytes) -> None:
        self._image = image
        self._token_secret = token_secret
        self._stranger_secret = stranger_secret
        self._derived: dict[tuple[str, str], ScramCredential] = {}

    def scram(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        record = self._image().scram.get((mechanism.type, name))
        if record is None:
            return None
        return ScramCredential(record.salt, record.iterations, ScramKeys(record.stored_key, record.server_key))

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        record = self._image().delegation_tokens.get(token_id)
        if record is None or self._token_secret is None:
            return None
        keys = self._derived.get((mechanism.name, token_id))
        return TokenCredential(record.owner.removeprefix("User:"), Millis(record.expiration_timestamp), keys)

    def stranger(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Looks like any other: a salt as Kafka's tools make them, the least iterations, keys that nobody has."""
        drawn = hmac.digest(self._stranger_secret, f"{mechanism.name} {name}".encode(), "sha512")
        key = drawn[: mechanism.digest_bytes]
        return ScramCredential(new_salt(drawn), MIN_ITERATIONS, ScramKeys(key, key))

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
