"""Names of certificates, as DER, made by hand: of types and values that no library would write."""

from collections.abc import Sequence
from typing import NamedTuple


class Attribute(NamedTuple):
    oid: str
    tag: int
    value: bytes


def tlv(tag: int, body: bytes) -> bytes:
    length = len(body)
    if length < 0x80:
        return bytes((tag, length)) + body
    width = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | width)) + length.to_bytes(width, "big") + body


def oid_der(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    body = b""
    for number in (40 * first + second, *rest):
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | number & 0x7F)
        body += bytes(reversed(digits))
    return tlv(0x06, body)


def name_der(*elements: Sequence[Attribute]) -> bytes:
    """Each element is one attribute, or several that belong together."""
    return tlv(
        0x30,
        b"".join(
            tlv(0x31, b"".join(tlv(0x30, oid_der(each.oid) + tlv(each.tag, each.value)) for each in element))
            for element in elements
        ),
    )
