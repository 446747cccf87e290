"""Bytes as Kafka's stores and changelogs have them: all numbers big-endian, so that their order is the bytes' order."""

from struct import Struct
from typing import Final

from ottla.streams.record import Headers

LONG: Final = Struct(">q")
INT: Final = Struct(">i")
_WINDOW: Final = Struct(">qi")
_SESSION: Final = Struct(">qq")
_CONTEXT: Final = Struct(">qqi")

NULL_LENGTH: Final = -1
SAME_AS_PRIOR: Final = -2


def timestamped(value: bytes, timestamp: int) -> bytes:
    return LONG.pack(timestamp) + value


def window_key(key: bytes, start: int, sequence: int) -> bytes:
    return key + _WINDOW.pack(start, sequence)


def session_key(key: bytes, start: int, end: int) -> bytes:
    return key + _SESSION.pack(end, start)


def unwindowed(stored: bytes) -> tuple[bytes, int, int]:
    """Key, start and sequence number of a window store's key."""
    return stored[:-12], *_WINDOW.unpack_from(stored, len(stored) - 12)


def unsessioned(stored: bytes) -> tuple[bytes, int, int]:
    """Key, start and end of a session store's key."""
    end, start = _SESSION.unpack_from(stored, len(stored) - 16)
    return stored[:-16], start, end


def waiting_key(timestamp: int, is_left: bool, key: bytes) -> bytes:
    """Of a record that waits for its match in an outer join."""
    return LONG.pack(timestamp) + (b"\x01" if is_left else b"\x00") + key


def unwaiting(stored: bytes) -> tuple[int, bool, bytes]:
    """Timestamp, whether of the left side, and key of a record that waits."""
    return LONG.unpack_from(stored)[0], stored[8] == 1, stored[9:]


def listed(values: list[bytes]) -> bytes:
    """Kafka's list serde with entries of variable size."""
    parts = [b"\x01", INT.pack(len(values))]
    for value in values:
        parts.append(INT.pack(len(value)))
        parts.append(value)
    return b"".join(parts)


def unlisted(data: bytes) -> list[bytes]:
    (count,) = INT.unpack_from(data, 1)
    values = []
    position = 5
    for _ in range(count):
        (length,) = INT.unpack_from(data, position)
        values.append(data[position + 4 : position + 4 + length])
        position += 4 + length
    return values


def nullable(value: bytes | None) -> bytes:
    return INT.pack(NULL_LENGTH) if value is None else INT.pack(len(value)) + value


def read_nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = INT.unpack_from(data, position)
    position += 4
    if length < 0:
        return None, position
    return data[position : position + length], position + length


def record_context(timestamp: int, offset: int, topic: str, partition: int, headers: Headers) -> bytes:
    name = topic.encode()
    parts = [LONG.pack(timestamp), LONG.pack(offset), INT.pack(len(name)), name, INT.pack(partition)]
    parts.append(INT.pack(len(headers)))
    for key, value in headers:
        parts.append(nullable(key.encode()))
        parts.append(nullable(value))
    return b"".join(parts)


def read_record_context(data: bytes, position: int) -> tuple[int, int, str, int, Headers, int]:
    """Timestamp, offset, topic, partition, headers, and where they end."""
    timestamp, offset, length = _CONTEXT.unpack_from(data, position)
    position += _CONTEXT.size
    topic = data[position : position + length].decode()
    position += length
    (partition,) = INT.unpack_from(data, position)
    (count,) = INT.unpack_from(data, position + 4)
    position += 8
    headers = []
    for _ in range(count):
        key, position = read_nullable(data, position)
        value, position = read_nullable(data, position)
        headers.append(((key or b"").decode(), value))
    return timestamp, offset, topic, partition, tuple(headers), position
