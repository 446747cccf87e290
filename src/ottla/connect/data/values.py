"""Java's `Values`: values as texts, texts as values, and numbers of one kind as another. Headers live by it.

`to_text` writes a value in a form like JSON, `parse_text` reads it back and finds a schema for it: `1` is an INT8,
`[1,2]` an array of them, `2020-01-31` a Date, and what is nothing else a string. `parsing` has the reader.
"""

from base64 import b64encode
from decimal import Decimal, InvalidOperation
from math import isinf, isnan
from typing import Any, Final

from ottla.connect.data.date_format import DateFormat
from ottla.connect.data.dates import MILLIS_PER_DAY
from ottla.connect.data.errors import DataException, NumberFormatException
from ottla.connect.data.java_text import as_float32, double_text, float_text, java_class_name, java_text
from ottla.connect.data.logical import (
    DATE_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_to_days,
    time_to_millis,
    timestamp_to_millis,
)
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import BITS, Float32, Instant, Type, wrapped

TIME_FORMAT: Final = DateFormat("HH:mm:ss.SSS'Z'")
DATE_ONLY_FORMAT: Final = DateFormat("yyyy-MM-dd")
TIMESTAMP_FORMAT: Final = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
_MOST_EXPONENT: Final = 1 << 31
MOST_DIGITS: Final = 10_000
"""Of a number in a text: longer ones cost more than they are worth."""


def date_format_for(value: Instant) -> DateFormat:
    if value < MILLIS_PER_DAY:
        return TIME_FORMAT
    return DATE_ONLY_FORMAT if value % MILLIS_PER_DAY == 0 else TIMESTAMP_FORMAT


# ---- to texts


def to_text(value: Any, schema: Schema | None = None) -> str:
    """`schema` tells a float of four bytes from one of eight."""
    return _text(value, schema, embedded=False)


def _text(value: Any, schema: Schema | None, *, embedded: bool) -> str:
    kind = type(value)
    if value is None:
        return "null"
    if kind is str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if embedded else str(value)
    if kind is Instant:
        return date_format_for(value).format(value)
    if kind is float or kind is Float32:
        single = kind is Float32 or (schema is not None and schema.type is Type.FLOAT32)
        return float_text(value) if single else double_text(value)
    if isinstance(value, bool | int | Decimal):
        return java_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        coded = b64encode(bytes(value)).decode()
        return f'"{coded}"' if embedded else coded
    keys, inner = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(each, inner, embedded=True) for each in value) + "]"
    if kind is dict:
        pairs = (f"{_text(k, keys, embedded=True)}:{_text(v, inner, embedded=True)}" for k, v in value.items())
        return "{" + ",".join(pairs) + "}"
    if kind is Struct:
        fields = (
            f"{_text(field.name, None, embedded=True)}:{_text(value.get(field.name), field.schema, embedded=True)}"
            for field in value.schema.fields
        )
        return "{" + ",".join(fields) + "}"
    raise DataException(f"Failed to serialize unexpected value type {java_class_name(value)}: {value}")


# ---- numbers


def big_decimal(text: str) -> Decimal:
    """`new BigDecimal(text)`. Raises NumberFormatException."""
    if len(text) > MOST_DIGITS or not text.isascii() or "_" in text or text != text.strip() or text[-1:].isspace():
        raise NumberFormatException(f"{text[:40]!r} is no number")
    try:
        found = Decimal(text)
    except InvalidOperation as error:
        raise NumberFormatException(f"{text[:40]!r} is no number") from error
    if not found.is_finite() or abs(found.adjusted()) > _MOST_EXPONENT:
        raise NumberFormatException(f"{text[:40]!r} is no number")
    return found


def decimal_to_long(value: Decimal) -> int:
    """BigDecimal's longValue: the whole part's low 64 bits. One of a thousand digits more ends in zero bits."""
    if value.adjusted() > MOST_DIGITS:
        return 0
    return wrapped(int(value), 64)


def float_to_int(value: float, bits: int) -> int:
    """As Java's casts: to int and long what is too big stops at the end, narrower ones go by way of int."""
    if isnan(value):
        return 0
    wide = max(bits, 32)
    top = 1 << (wide - 1)
    whole = (top - 1 if value > 0 else -top) if isinf(value) else min(max(int(value), -top), top - 1)
    return wrapped(whole, bits)


def number_to_int(value: Any, bits: int) -> int:
    """Number.byteValue to longValue."""
    if isinstance(value, float):
        return float_to_int(value, bits)
    return wrapped(decimal_to_long(value) if isinstance(value, Decimal) else int(value), bits)


def number_to_float(value: Any, *, single: bool) -> float:
    """Number.floatValue and doubleValue."""
    try:
        double = float(value)
    except OverflowError:
        double = float("inf") if value > 0 else float("-inf")
    return as_float32(double) if single else double


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool | Instant)


def as_long(value: Any, schema: Schema | None) -> int:
    if is_number(value):
        return number_to_int(value, 64)
    cause: NumberFormatException | None = None
    if isinstance(value, str):
        try:
            return decimal_to_long(big_decimal(value))
        except NumberFormatException as error:
            cause = error
    if schema is not None and type(value) is Instant:
        if schema.name == DATE_NAME:
            return date_to_days(schema, value)
        if schema.name == TIME_NAME:
            return time_to_millis(schema, value)
        if schema.name == TIMESTAMP_NAME:
            return timestamp_to_millis(schema, value)
    target = "a number" if schema is None else repr(schema)
    raise DataException(f"Unable to convert {java_text(value)} (class {java_class_name(value)}) to {target}") from cause


def as_double(value: Any, schema: Schema | None) -> float:
    if is_number(value):
        return number_to_float(value, single=False)
    if isinstance(value, str):
        try:
            return number_to_float(big_decimal(value), single=False)
        except NumberFormatException:
            pass
    return float(as_long(value, schema))


def convert_number(value: Any, to: Type, schema: Schema | None = None) -> int | float | None:
    """Values.convertToByte to convertToDouble."""
    if value is None:
        return None
    bits = BITS.get(to)
    if bits is not None:
        return wrapped(as_long(value, schema), bits)
    double = as_double(value, schema)
    return as_float32(double) if to is Type.FLOAT32 else double
