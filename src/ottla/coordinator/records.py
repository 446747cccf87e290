"""Records of the coordinators' topics: a key of int16 type and struct, a value of int16 version and struct.

A null value is a tombstone. The classes come from Kafka's schemas; this module only frames them.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, Message
from ottla.protocol.records import NewRecord

_SHORT: Final = Struct(">h")
_NUMBERS: Final = [_SHORT.pack(number) for number in range(32)]
"""Types and versions, ready to be written."""
_KEY_VERSION: Final = 0

Table = Mapping[int, tuple[str, str]]


class CoordinatorRecord(NamedTuple):
    """What a shard decides and replays. `version` is that of the value's struct."""

    key: Message
    value: Message | None
    version: int = 0


class Packed(Protocol):
    """Many records of one kind that are decided, written and replayed together, without an object for each."""

    count: int
    timestamp: int

    def body(self) -> bytearray:
        """The records as they stand in a batch whose first timestamp is `timestamp`, offsets from 0 on."""

    def records(self) -> list[CoordinatorRecord]: ...


def tombstone(key: Message) -> CoordinatorRecord:
    return CoordinatorRecord(key, None)


def encode_key(key: Message) -> bytes:
    parts = [_NUMBERS[key.API_KEY]]
    key.ENCODERS[_KEY_VERSION](key, parts)
    return b"".join(parts)


def encode_value(value: Message, version: int) -> bytes:
    parts = [_NUMBERS[version]]
    value.ENCODERS[version](value, parts)
    return b"".join(parts)


def encode(record: CoordinatorRecord, timestamp: int) -> NewRecord:
    value = record.value
    return NewRecord(encode_key(record.key), None if value is None else encode_value(value, record.version), timestamp)


class Decoder:
    """Reads the records of one topic. `table` is messages.GROUP_RECORDS or one of its siblings."""

    __slots__ = ("_classes", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table
        self._classes: dict[int, tuple[Callable[..., Any], type[Message]]] = {}

    def decode(self, key: bytes | None, value: bytes | None) -> CoordinatorRecord | None:
        """None for a type that this version does not know: it is left in the log and skipped, as Kafka does.

        Raises DecodeError for a record of a known type that cannot be read.
        """
        if key is None or len(key) < 2:
            raise DecodeError("a coordinator's record has no key")
        kind = int.from_bytes(key[:2], "big", signed=True)
        found = self._classes.get(kind)
        if found is None:
            if kind not in self._table:
                return None
            key_name, value_name = self._table[kind]
            found = self._classes[kind] = (messages.named(key_name).DECODERS[_KEY_VERSION], messages.named(value_name))
        decode_key, value_class = found
        decoded_key = decode_key(key, 2)[0]
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        version = int.from_bytes(value[:2], "big", signed=True)
        return CoordinatorRecord(decoded_key, value_class.decode(value, version, 2), version)
