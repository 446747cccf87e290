"""Serdes of streams: those of `ottla.serdes`, and those of windowed keys.

Serdes.string, Serdes.bytes, Serdes.short, Serdes.int, Serdes.long, Serdes.float, Serdes.double, Serdes.boolean
Serdes.uuid, Serdes.list(Serdes.string)
Serdes.json                                         any JSON
Serdes.json("ticker STRING, price DOUBLE")          JSON objects with these fields
Serdes.avro(registry, subject="orders-value")       Avro by the schemas of a registry, see `serdes.avro.AvroSerde`
Serdes.json_schema(registry, subject="...")         JSON by them, see `serdes.json_schema.JsonSchemaSerde`
Serdes.protobuf(registry, subject="...")            Protobuf by them, see `serdes.protobuf.ProtobufSerde`
Serdes.time_windowed(Serdes.string, size_ms=5000)   keys of windowed aggregates
Serdes.session_windowed(Serdes.string)
"""

import struct
from typing import Any, Final

from ottla.serdes import by_name
from ottla.serdes.base import Serde, SerdeAround
from ottla.serdes.types import windowed
from ottla.streams.windows import LONGEST_MS, Window, Windowed


class TimeWindowedSerde(SerdeAround[Windowed]):
    """The key, then the window's start in 8 bytes. The end is not written: the size is known."""

    name = "time_windowed"

    def __init__(self, inner: Serde[Any], size_ms: int) -> None:
        self.inner = inner
        self.size_ms = size_ms
        self.type = windowed(inner.type)

    def around(self, inner: Serde[Any]) -> "TimeWindowedSerde":
        return TimeWindowedSerde(inner, self.size_ms)

    def __repr__(self) -> str:
        return f"Serdes.time_windowed({self.inner!r}, {self.size_ms})"

    def encode(self, value: Windowed) -> bytes:
        return _inner_bytes(self, value) + value.window.start.to_bytes(8, "big", signed=True)

    def decode(self, data: bytes) -> Windowed | None:
        if not data:
            return None
        if len(data) < 8:
            self.not_read("at least 8 bytes", data)
        start = int.from_bytes(data[-8:], "big", signed=True)
        end = min(start + self.size_ms, LONGEST_MS)
        return Windowed(self.inner.deserialize(bytes(data[:-8])), Window(start, end))


class SessionWindowedSerde(SerdeAround[Windowed]):
    """The key, then the session's end and start in 8 bytes each."""

    name = "session_windowed"

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        self.type = windowed(inner.type)

    def around(self, inner: Serde[Any]) -> "SessionWindowedSerde":
        return SessionWindowedSerde(inner)

    def __repr__(self) -> str:
        return f"Serdes.session_windowed({self.inner!r})"

    def encode(self, value: Windowed) -> bytes:
        return _inner_bytes(self, value) + struct.pack(">qq", value.window.end, value.window.start)

    def decode(self, data: bytes) -> Windowed | None:
        if not data:
            return None
        if len(data) < 16:
            self.not_read("at least 16 bytes", data)
        end, start = struct.unpack(">qq", data[-16:])
        return Windowed(self.inner.deserialize(bytes(data[:-16])), Window(start, end))


def _inner_bytes(serde: "TimeWindowedSerde | SessionWindowedSerde", value: Windowed) -> bytes:
    if not isinstance(value, Windowed):
        serde.not_written("a Windowed key", value)
    key = serde.inner.serialize(value.key)
    if key is None:
        serde.not_written("a key in the window", value)
    return key


class Serdes(by_name.Serdes):
    """All there are, by name."""

    time_windowed: Final = TimeWindowedSerde
    session_windowed: Final = SessionWindowedSerde
