"""The little of DER that certificates and key stores need: values by tag and length, none believed beyond its end."""

from collections.abc import Iterator
from typing import Final, NamedTuple

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_ID: Final = 0x06
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
SEQUENCE: Final = 0x30
SET: Final = 0x31


class Malformed(ValueError):
    """The bytes are no DER, or not of the shape that is expected."""


class Value(NamedTuple):
    tag: int
    body: bytes
    whole: bytes
    """Tag and length included."""

    def expect(self, tag: int) -> "Value":
        if self.tag != tag:
            raise Malformed(f"a value of type {self.tag:#04x} stands where {tag:#04x} is expected")
        return self

    def parts(self) -> "list[Value]":
        return list(values(self.body))


def values(data: bytes) -> Iterator[Value]:
    """The values that stand behind each other in `data`."""
    position = 0
    while position < len(data):
        found = _value(data, position)
        yield found
        position += len(found.whole)


def only(data: bytes) -> Value:
    """The one value that `data` is."""
    found = _value(data, 0)
    if len(found.whole) != len(data):
        raise Malformed(f"{len(data) - len(found.whole)} bytes stand behind the end")
    return found


def _value(data: bytes, start: int) -> Value:
    if start + 2 > len(data):
        raise Malformed("it ends in the middle of a value")
    tag, length, position = data[start], data[start + 1], start + 2
    if tag & 0x1F == 0x1F:
        raise Malformed("it has a tag of more than one byte")
    if length & 0x80:
        width = length & 0x7F
        if not 1 <= width <= 4 or position + width > len(data):
            raise Malformed("it has a length that cannot be read")
        length = int.from_bytes(data[position : position + width], "big")
        position += width
    end = position + length
    if end > len(data):
        raise Malformed("it ends in the middle of a value")
    return Value(tag, data[position:end], data[start:end])


def object_id(body: bytes) -> str:
    """As 1.2.840.113549."""
    if not body or body[-1] & 0x80:
        raise Malformed("an object identifier ends in the middle")
    numbers: list[int] = []
    number = 0
    for byte in body:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
