"""Where keys and values lie in the records of a batch, for who has to look at each without making an object of it."""

from typing import Final

from ottla.protocol.records import CorruptBatch
from ottla.protocol.varint import Truncated, read_signed

Span = tuple[int, int, int, int, int]
"""Start and end of the key, start and end of the value, where the headers begin. A start of -1: there is none."""

_ABSENT: Final = -1


def spans(body: bytes, count: int) -> list[Span]:
    """Of the `count` records that make up a body. Raises CorruptBatch."""
    found: list[Span] = []
    pos, whole = 0, len(body)
    try:
        for _ in range(count):
            length, pos = _signed(body, pos)
            end = pos + length
            if length < 0 or end > whole:
                raise CorruptBatch(f"a record claims {length} bytes where {whole - pos} are left")
            pos += 1  # attributes
            while body[pos] >= 0x80:  # timestamp
                pos += 1
            pos += 1
            while body[pos] >= 0x80:  # offset
                pos += 1
            size, pos = _signed(body, pos + 1)
            key = key_end = _ABSENT
            if size >= 0:
                key = pos
                pos = key_end = pos + size
            size, pos = _signed(body, pos)
            value = value_end = _ABSENT
            if size >= 0:
                value = pos
                pos = value_end = pos + size
            if pos >= end:
                raise CorruptBatch("a record's length does not match its content")
            found.append((key, key_end, value, value_end, pos))
            pos = end
    except (IndexError, Truncated) as error:
        raise CorruptBatch(f"the records of a batch end too early: {error}") from None
    if pos != whole:
        raise CorruptBatch(f"{whole - pos} bytes follow the {count} records of the batch")
    return found


def _signed(body: bytes, pos: int) -> tuple[int, int]:
    """Nearly every length is one or two bytes long."""
    low = body[pos]
    if low < 0x80:
        return low >> 1 ^ -(low & 1), pos + 1
    high = body[pos + 1]
    if high < 0x80:
        number = low & 0x7F | high << 7
        return number >> 1 ^ -(number & 1), pos + 2
    return read_signed(body, pos)


def header_value(body: bytes, pos: int, name: bytes) -> bytes | None:
    """Of the last header of that name, of those that begin at `pos`. Raises CorruptBatch."""
    found: bytes | None = None
    try:
        count, pos = read_signed(body, pos)
        if not 0 <= count <= len(body) - pos:
            raise CorruptBatch(f"a record claims {count} headers")
        for _ in range(count):
            size, pos = read_signed(body, pos)
            if size < 0 or pos + size > len(body):
                raise CorruptBatch("a header without a name")
            key = body[pos : pos + size]
            size, pos = read_signed(body, pos + size)
            if size > len(body) - pos:
                raise CorruptBatch("a header that is longer than its record")
            if key == name and size >= 0:
                found = body[pos : pos + size]
            pos += max(size, 0)
    except Truncated as error:
        raise CorruptBatch(str(error)) from None
    return found
