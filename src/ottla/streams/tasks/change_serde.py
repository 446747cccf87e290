"""The old and the new value of a table's row in one value of a repartition topic, as Kafka Streams lays it out.

    old value, 0 · new value, 1 · length of the new value as zigzag varint, new value, old value, 2

Records written by some versions have one more byte before the last, whether the change is the latest, and the
marks 3, 4 and 5; they are read too.
"""

from typing import Any

from ottla.serdes.base import Serde, SerdeError
from ottla.streams.record import Change


class ChangeSerde(Serde[Change]):
    name = "change"

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        self.type = inner.type

    def encode(self, value: Change) -> bytes:
        new, old = self.inner.serialize(value.new), self.inner.serialize(value.old)
        if new is not None and old is not None:
            return _varint(len(new)) + new + old + b"\x02"
        if new is not None:
            return new + b"\x01"
        if old is not None:
            return old + b"\x00"
        raise SerdeError("a change has neither an old nor a new value")

    def decode(self, data: bytes) -> Change:
        if not data:
            raise SerdeError("a change has at least one byte")
        data = bytes(data)
        mark = data[-1]
        if mark > 5 or (mark > 2 and (len(data) < 2 or data[-2] > 1)):
            raise SerdeError(f"{mark} is no mark of a change")
        is_latest = mark < 3 or data[-2] == 1
        body = data[: -1 if mark < 3 else -2]
        new: bytes | None = None
        old: bytes | None = None
        if mark in (0, 3):
            old = body
        elif mark in (1, 4):
            new = body
        else:
            length, position = _read_varint(body)
            new, old = body[position : position + length], body[position + length :]
        return Change(self.inner.deserialize(new), self.inner.deserialize(old), is_latest)


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 31)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(data: bytes) -> tuple[int, int]:
    number = 0
    for position, byte in enumerate(data[:5]):
        number |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + 1
    raise SerdeError("the length in a change is not readable")
