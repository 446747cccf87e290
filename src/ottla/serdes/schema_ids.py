"""How a record names its schema, the same for Avro, JSON Schema and Protobuf.

Version 0, which everybody speaks: a zero byte and the id in four bytes in front of the payload. Version 1 (Confluent
8.0): a one and the 16 bytes of the GUID, in a header of the record, so that the payload is the plain one; or in front.
Protobuf says behind either which message of the schema it is: a path of indexes through nested messages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ottla.serdes.base import SerdeError, shown

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Part: TypeAlias = Literal["key", "value"]

HEADER_OF: Final[dict[Part, str]] = {"key": "__key_schema_id", "value": "__value_schema_id"}
SCHEMA_HEADERS: Final = frozenset(HEADER_OF.values())
"""They speak of the bytes beside them: whoever passes headers on to a record of other bytes leaves these out."""
_ID: Final = 0
_GUID: Final = 1
ID_BYTES: Final = 5
GUID_BYTES: Final = 17
MOST_INDEXES: Final = 100
"""Of a path of messages: Protobuf's own compiler nests no deeper than 32."""
_MOST_VARINT_BYTES: Final = 5
_DASHES: Final = (8, 12, 16, 20)


@dataclass(frozen=True, slots=True)
class SchemaId:
    """One of the two."""

    id: int | None = None
    guid: str | None = None
    indexes: bytes | None = None
    """Of a GUID in a header: what stands behind it there. None: it would stand in front of the payload."""

    def __str__(self) -> str:
        return f"id {self.id}" if self.guid is None else f"GUID {self.guid}"


def framed(schema_id: int, payload: bytes) -> bytes:
    return _ID.to_bytes() + schema_id.to_bytes(4, "big") + payload


def guid_header(guid: str) -> bytes:
    """The value of the header."""
    return _GUID.to_bytes() + bytes.fromhex(guid.replace("-", ""))


def schema_of(data: bytes, headers: Headers, part: Part) -> tuple[SchemaId, int]:
    """The schema, and where the payload begins. A header counts before what stands in front: it was put there by
    somebody who knows; of several the last, as in Kafka. Raises SerdeError."""
    if headers:
        wanted = HEADER_OF[part]
        for name, value in reversed(headers):
            if name == wanted and value is not None:
                found, place = _in_front(value)
                return SchemaId(found.id, found.guid, value[place:]), 0
    return _in_front(data)


def _in_front(data: bytes) -> tuple[SchemaId, int]:
    if len(data) >= ID_BYTES and data[0] == _ID:
        return SchemaId(id=int.from_bytes(data[1:ID_BYTES], "big", signed=True)), ID_BYTES
    if len(data) >= GUID_BYTES and data[0] == _GUID:
        return SchemaId(guid=_dashed(data[1:GUID_BYTES].hex())), GUID_BYTES
    raise SerdeError(f"no schema id in front of it: a 0 and 4 bytes or a 1 and 16 bytes expected, found {shown(data)}")


def _dashed(digits: str) -> str:
    a, b, c, d = _DASHES
    return f"{digits[:a]}-{digits[a:b]}-{digits[b:c]}-{digits[c:d]}-{digits[d:]}"


# ---- message indexes


def write_indexes(indexes: Sequence[int]) -> bytes:
    """The first message of a schema, which is nearly always meant, is one byte."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(_zigzag, (len(indexes), *indexes)))


def read_indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """The path, and where the payload begins. Raises SerdeError."""
    count, place = _from_zigzag(data, start)
    if count == 0:
        return (0,), place
    if not 0 < count <= MOST_INDEXES:
        raise SerdeError(f"a path of 1 to {MOST_INDEXES} message indexes expected, found {count}")
    found = []
    for _ in range(count):
        index, place = _from_zigzag(data, place)
        if index < 0:
            raise SerdeError(f"the message index {index} is negative")
        found.append(index)
    return tuple(found), place


def _zigzag(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _from_zigzag(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for index, byte in enumerate(_from(data, place)):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place + index + 1
    raise SerdeError(f"message indexes expected, found {shown(data)}")


def _from(data: bytes, place: int) -> Iterable[int]:
    return data[place : place + _MOST_VARINT_BYTES]
