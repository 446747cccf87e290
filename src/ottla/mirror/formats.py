"""The records that mirroring writes beside the copies, in MirrorMaker's bytes (STRING: an int16 length and UTF-8).

They are read by its own clients (`RemoteClusterUtils`, `MirrorClient`) and consumers, so no byte may differ.
"""

from dataclasses import dataclass
from struct import Struct, error
from typing import Final

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_TWO_INT64: Final = Struct(">qq")


class Unreadable(ValueError):
    """Bytes that are no such record."""


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """A record that lay at `upstream_offset` on the source lies at `downstream_offset` on the target."""

    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int

    def key(self) -> bytes:
        return _text(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        return _TWO_INT64.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def read(cls, key: bytes, value: bytes) -> "OffsetSync":
        reading = _Reading(key)
        topic, partition = reading.text(), reading.int32()
        offsets = _Reading(value)
        return cls(topic, partition, offsets.int64(), offsets.int64())


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group that had committed `upstream_offset` on the source may begin at `downstream_offset` on the target. The
    topic has its name on the target."""

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str

    def key(self) -> bytes:
        return _text(self.group) + _text(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        return _INT16.pack(0) + _TWO_INT64.pack(self.upstream_offset, self.downstream_offset) + _text(self.metadata)

    @classmethod
    def read(cls, key: bytes, value: bytes) -> "Checkpoint":
        reading = _Reading(key)
        group, topic, partition = reading.text(), reading.text(), reading.int32()
        rest = _Reading(value)
        rest.version()
        return cls(group, topic, partition, rest.int64(), rest.int64(), rest.text())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    source: str
    target: str
    timestamp_ms: int

    def key(self) -> bytes:
        return _text(self.source) + _text(self.target)

    def value(self) -> bytes:
        return _INT16.pack(0) + _INT64.pack(self.timestamp_ms)

    @classmethod
    def read(cls, key: bytes, value: bytes) -> "Heartbeat":
        reading = _Reading(key)
        source, target = reading.text(), reading.text()
        rest = _Reading(value)
        rest.version()
        return cls(source, target, rest.int64())


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


class _Reading:
    __slots__ = ("_at", "_bytes")

    def __init__(self, data: bytes) -> None:
        self._bytes = data
        self._at = 0

    def version(self) -> None:
        version = self._one(_INT16)
        if version != 0:
            raise Unreadable(f"version {version} of a record of mirroring is not known")

    def int32(self) -> int:
        return self._one(_INT32)

    def int64(self) -> int:
        return self._one(_INT64)

    def text(self) -> str:
        length = self._one(_INT16)
        if length < 0 or self._at + length > len(self._bytes):
            raise Unreadable(f"a text of {length} bytes where {len(self._bytes) - self._at} are left")
        begin, self._at = self._at, self._at + length
        try:
            return self._bytes[begin : self._at].decode()
        except UnicodeDecodeError as reason:
            raise Unreadable(f"a text that is no UTF-8: {reason}") from reason

    def _one(self, number: Struct) -> int:
        try:
            (found,) = number.unpack_from(self._bytes, self._at)
        except error as reason:
            raise Unreadable(f"{len(self._bytes)} bytes are too few") from reason
        self._at += number.size
        return int(found)
