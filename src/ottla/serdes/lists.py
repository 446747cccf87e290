"""Lists, byte for byte as Java's ListSerde writes them.

A byte tells how entries lie. 0: all have the same size, and a list of the places without a value comes first. 1: each
has its size in front, -1 for none. Numbers and UUIDs are of the first kind, whatever else of the second.
"""

from struct import Struct
from typing import Any, Final, Generic, TypeVar

from ottla.serdes.base import Serde
from ottla.serdes.primitives import DoubleSerde, FloatSerde, IntSerde, LongSerde, ShortSerde, UUIDSerde
from ottla.serdes.types import ANY, array_of

T = TypeVar("T")

_INT: Final = Struct(">i")
_SAME_SIZE: Final = 0
_NO_VALUE: Final = -1
_SIZES: Final[dict[type[Serde[Any]], int]] = {
    ShortSerde: 2,
    IntSerde: 4,
    FloatSerde: 4,
    LongSerde: 8,
    DoubleSerde: 8,
    UUIDSerde: 36,
}


class ListSerde(Serde[list[Any]], Generic[T]):
    name = "list"

    def __init__(self, inner: Serde[T]) -> None:
        self.inner = inner
        self.type = ANY if inner.type == ANY else array_of(inner.type)

    def __repr__(self) -> str:
        return f"Serdes.list({self.inner!r})"

    def encode(self, value: list[Any]) -> bytes:
        if not isinstance(value, list | tuple):
            self.not_written("a list", value)
        same_size = type(self.inner) in _SIZES
        parts = [b"\0" if same_size else b"\1"]
        if same_size:
            missing = [place for place, each in enumerate(value) if each is None]
            parts += [_INT.pack(len(missing)), *map(_INT.pack, missing)]
        parts.append(_INT.pack(len(value)))
        for each in value:
            data = self.inner.serialize(each)
            if not same_size:
                parts.append(_INT.pack(_NO_VALUE if data is None else len(data)))
            parts.append(data or b"")
        return b"".join(parts)

    def decode(self, data: bytes) -> list[Any]:
        try:
            return self._decoded(bytes(data))
        except (IndexError, ValueError) as error:
            self.not_read(f"a list ({error})", data)

    def _decoded(self, data: bytes) -> list[Any]:
        size = _SIZES.get(type(self.inner)) if data[0] == _SAME_SIZE else None
        position = 1
        missing: set[int] = set()
        if data[0] == _SAME_SIZE:
            if size is None:
                raise ValueError(f"{self.inner!r} has no fixed size")
            number, position = _read_int(data, position)
            for _ in range(number):
                place, position = _read_int(data, position)
                missing.add(place)
        count, position = _read_int(data, position)
        found: list[Any] = []
        for place in range(count):
            length = size
            if length is None:
                length, position = _read_int(data, position)
            if length == _NO_VALUE or place in missing:
                found.append(None)
                continue
            if length < 0 or position + length > len(data):
                raise ValueError(f"entry {place} does not end")
            found.append(self.inner.decode(data[position : position + length]))
            position += length
        return found


def _read_int(data: bytes, position: int) -> tuple[int, int]:
    if position + 4 > len(data):
        raise ValueError(f"it ends after {len(data)} bytes")
    return _INT.unpack_from(data, position)[0], position + 4
