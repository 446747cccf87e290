"""The types of Connect and the few Python classes that stand for Java's where int and float do not say enough."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final


class Type(Enum):
    """Connect's types; `value` is the name in lower case, as `Cast` and messages spell it."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    __hash__ = object.__hash__  # Enum's own hashes the name: three times slower, and these are keys of tables

    @property
    def is_primitive(self) -> bool:
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)

    def __str__(self) -> str:
        return self.name


BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


class Instant(int):
    """java.util.Date: milliseconds since 1970 in UTC, of any year (datetime ends with 9999)."""

    __slots__ = ()

    @property
    def utc(self) -> datetime:
        """Raises OverflowError outside the years 1 to 9999."""
        return _EPOCH + timedelta(milliseconds=int(self))

    @classmethod
    def of(cls, when: datetime) -> "Instant":
        """A time without a zone counts as UTC."""
        known = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return cls((known - _EPOCH) // timedelta(milliseconds=1))

    def __repr__(self) -> str:
        return f"Instant({int(self)})"


class Int8(int):
    """A Byte without a schema."""

    __slots__ = ()


class Int16(int):
    """A Short without a schema."""

    __slots__ = ()


class Int32(int):
    """An Integer without a schema; a plain int is a Long."""

    __slots__ = ()


class Float32(float):
    """A Float without a schema; a plain float is a Double."""

    __slots__ = ()


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

NARROW: Final = {Type.INT8: Int8, Type.INT16: Int16, Type.INT32: Int32, Type.FLOAT32: Float32}
"""What a value of these types becomes when it loses its schema."""


def wrapped(value: int, bits: int) -> int:
    """As Java narrows an integer: the low bits, signed."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half
