"""SCRAM credentials as the metadata log keeps them: the mechanisms, their numbers and the two keys of a password.

The keys let somebody in who knows the password, and tell it to nobody (RFC 5802). Only `salted_password` takes
milliseconds; whoever has a loop calls it elsewhere.
"""

import hashlib
import hmac
from typing import Final, NamedTuple


class ScramMechanism(NamedTuple):
    type: int
    """Its number in records and in the APIs 50 and 51 (KIP-554)."""
    name: str
    hash: str
    digest_bytes: int


SCRAM_SHA_256: Final = ScramMechanism(1, "SCRAM-SHA-256", "sha256", 32)
SCRAM_SHA_512: Final = ScramMechanism(2, "SCRAM-SHA-512", "sha512", 64)
SCRAM_BY_NAME: Final = {each.name: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}
SCRAM_BY_TYPE: Final = {each.type: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}
MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384
"""Above it a broker would be kept busy by whoever makes users."""


_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramKeys(NamedTuple):
    stored: bytes
    """Checks a client."""
    server: bytes
    """Shows the client that the server knows him."""

    def __repr__(self) -> str:
        return "ScramKeys()"  # secrets never reach logs


def new_salt(random: bytes) -> bytes:
    """As Kafka's tools make them: 130 of the given bits, written with 36 digits."""
    number, digits = int.from_bytes(random[:17], "big") >> 6, ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.encode() or b"0"


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """PBKDF2. Kafka takes the password's UTF-8 as it is, without SASLprep."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)


def keys_of(mechanism: ScramMechanism, salted: bytes) -> ScramKeys:
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash)
    return ScramKeys(
        hashlib.new(mechanism.hash, client_key).digest(), hmac.digest(salted, b"Server Key", mechanism.hash)
    )
