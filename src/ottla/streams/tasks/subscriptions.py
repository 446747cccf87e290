"""What the two tables of a join by foreign key tell each other, byte for byte as Kafka Streams lays it out (KIP-213).

    subscription   version, high bit: no hash · instruction · hash 16 · key · partition 4 (from version 1 on, KIP-775)
    response       version, high bit: no hash · hash 16 · foreign value, nothing if there is none
    combined key   length of the foreign key 4 · foreign key · key

A subscription goes to the partition of the foreign key, and the answer back to the partition that asked. The hash is
that of the value which had the foreign key: an answer whose hash is not that of the present value is stale.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple

from ottla.serdes.base import Serde, SerdeError
from ottla.streams.tasks.stores.codec import INT

_NO_HASH: Final = 0x80
_HASH_BYTES: Final = 16
SUBSCRIPTION_VERSION: Final = 1
RESPONSE_VERSION: Final = 0


class Instruction(IntEnum):
    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    """Answer with nothing: the row is gone, and so is its result."""
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    """Answer in any case: there may be a result of the foreign key before."""
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


class Subscription(NamedTuple):
    hash: bytes | None
    """None: the row was deleted."""
    instruction: Instruction
    key: Any
    partition: int | None
    """None in subscriptions of version 0."""
    version: int = SUBSCRIPTION_VERSION


class Response(NamedTuple):
    hash: bytes | None
    value: Any
    partition: int | None = None
    """Where it has to go. Does not travel."""


class SubscriptionSerde(Serde[Subscription]):
    name = "subscription"

    def __init__(self, key_serde: Serde[Any]) -> None:
        self.type = key_serde.type
        self._key = key_serde.encode
        self._key_of = key_serde.decode

    def encode(self, value: Subscription) -> bytes:
        head = bytes((value.version | (_NO_HASH if value.hash is None else 0), value.instruction))
        tail = b"" if value.version == 0 else INT.pack(value.partition)
        return b"".join((head, value.hash or b"", self._key(value.key), tail))

    def decode(self, data: bytes) -> Subscription:
        data = bytes(data)
        version, given_hash, at = _head(data, 2, SUBSCRIPTION_VERSION, "subscription")
        end = len(data) - (INT.size if version else 0)
        if end < at or data[1] > max(Instruction):
            raise SerdeError(f"{data.hex()} is no subscription")
        partition = INT.unpack_from(data, end)[0] if version else None
        return Subscription(given_hash, Instruction(data[1]), self._key_of(data[at:end]), partition, version)


class ResponseSerde(Serde[Response]):
    name = "response"

    def __init__(self, value_serde: Serde[Any]) -> None:
        self.type = value_serde.type
        self._value = value_serde.encode
        self._value_of = value_serde.decode

    def encode(self, value: Response) -> bytes:
        head = bytes((RESPONSE_VERSION | (_NO_HASH if value.hash is None else 0),))
        return b"".join((head, value.hash or b"", b"" if value.value is None else self._value(value.value)))

    def decode(self, data: bytes) -> Response:
        data = bytes(data)
        _, given_hash, at = _head(data, 1, RESPONSE_VERSION, "response")
        return Response(given_hash, self._value_of(data[at:]) if at < len(data) else None)


def _head(data: bytes, size: int, newest: int, what: str) -> tuple[int, bytes | None, int]:
    """Version, hash, and where the rest begins."""
    at = size + (0 if data and data[0] & _NO_HASH else _HASH_BYTES)
    if len(data) < at:
        raise SerdeError(f"a {what} of {len(data)} bytes is too short")
    version = data[0] & ~_NO_HASH
    if version > newest:
        raise SerdeError(f"a {what} of version {version}, which a newer Kafka Streams wrote: at most {newest} is known")
    return version, data[size:at] if at > size else None, at


# ---- the store of subscriptions


def prefix_of(foreign_key: bytes) -> bytes:
    """All subscriptions to a foreign key begin so."""
    return INT.pack(len(foreign_key)) + foreign_key


def subscriber_of(combined_key: bytes) -> bytes:
    return combined_key[INT.size + INT.unpack_from(combined_key)[0] :]
