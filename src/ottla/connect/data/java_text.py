"""Values as Java's `toString` writes them: a file sink's lines, a string converter's bytes, names in messages."""

import struct as binary
from decimal import Decimal
from math import isfinite, isinf, isnan
from typing import Any, Final

from ottla.connect.data.dates import java_date_text
from ottla.connect.data.types import Float32, Instant, Int8, Int16, Int32, Type

_CLASSES: Final[dict[type, str]] = {
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    Int8: "java.lang.Byte",
    Int16: "java.lang.Short",
    Int32: "java.lang.Integer",
    float: "java.lang.Double",
    Float32: "java.lang.Float",
    str: "java.lang.String",
    bytes: "[B",
    bytearray: "[B",
    memoryview: "java.nio.HeapByteBuffer",
    list: "java.util.ArrayList",
    tuple: "java.util.ArrayList",
    dict: "java.util.HashMap",
    Decimal: "java.math.BigDecimal",
    Instant: "java.util.Date",
}
_OF_TYPES: Final = {
    Type.INT8: "java.lang.Byte",
    Type.INT16: "java.lang.Short",
    Type.INT32: "java.lang.Integer",
    Type.FLOAT32: "java.lang.Float",
}


def java_class_name(value: object, of: Type | None = None) -> str:
    """Of the class that a value has in Java; `of`: the type that its schema has, as an int does not tell its width."""
    if of is not None and type(value) in (int, float):
        return _OF_TYPES.get(of) or _CLASSES[type(value)]
    found = _CLASSES.get(type(value)) or getattr(type(value), "java_class", None)
    return found or f"{type(value).__module__}.{type(value).__qualname__}"


def java_text(value: Any, of: Type | None = None) -> str:
    """`of`: the type of its schema. Bytes, which Java prints as `[B@` and a number of no use, are read as UTF-8."""
    kind = type(value)
    if kind is str:
        return str(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is Float32 or (of is Type.FLOAT32 and kind is float):
        return float_text(value)
    if kind is float:
        return double_text(value)
    if kind is Instant:
        return java_date_text(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if kind is dict:
        return "{" + ", ".join(f"{java_text(k)}={java_text(v)}" for k, v in value.items()) + "}"
    if kind in (list, tuple):
        return "[" + ", ".join(map(java_text, value)) + "]"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode(errors="replace")
    return str(value)


def double_text(value: float) -> str:
    """Double.toString, with the fewest digits that tell the number (Java 19 and later)."""
    return _java_digits(repr(float(value))) if isfinite(value) else _not_finite(value)


def float_text(value: float) -> str:
    """Float.toString."""
    if not isfinite(value):
        return _not_finite(value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if as_float32(float(text)) == value:
            break
    return _java_digits(text)


def as_float32(value: float) -> float:
    """The nearest float of four bytes."""
    try:
        return float(binary.unpack("f", binary.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _not_finite(value: float) -> str:
    if isnan(value):
        return "NaN"
    assert isinf(value)
    return "Infinity" if value > 0 else "-Infinity"


def _java_digits(text: str) -> str:
    """Java writes an exponent from 10^7 on and below 10^-3, Python from 10^16 on and below 10^-4."""
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # 0.digits times ten to this
    place = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0") or "0"
    if -3 < place <= 7:
        if place <= 0:
            return f"{sign}0.{'0' * -place}{digits}"
        return f"{sign}{digits[:place].ljust(place, '0')}.{digits[place:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{place - 1}"
