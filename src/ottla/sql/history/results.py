"""Rows of Spark as the server's clients see them: columns with SQL's types, values as plain data."""

from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import types as s

from ottla.serdes import dates
from ottla.serdes.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Type,
    array_of,
    decimal_of,
    map_of,
)
from ottla.sql.plain import TEXTS

Shown = Callable[[Any], Any]
"""A value, never None, as plain data."""

_KINDS: Final[dict[type[s.DataType], Type]] = {
    s.ByteType: INT,
    s.ShortType: INT,
    s.IntegerType: INT,
    s.LongType: LONG,
    s.FloatType: DOUBLE,
    s.DoubleType: DOUBLE,
    s.BooleanType: BOOLEAN,
    s.BinaryType: BINARY,
    s.DateType: DATE,
    s.TimestampType: TIMESTAMP,
    s.TimestampNTZType: TIMESTAMP,
}


def kind_of(given: s.DataType) -> Type:
    """What SQL has no name for is a text."""
    match given:
        case s.DecimalType():
            return decimal_of(given.precision, given.scale)
        case s.ArrayType():
            return array_of(kind_of(given.elementType))
        case s.MapType():
            return map_of(kind_of(given.valueType))
        case s.StructType():
            return Type("struct", fields=tuple((each.name, kind_of(each.dataType)) for each in given.fields))
    return _KINDS.get(type(given), STRING)


def shown_by(given: s.DataType) -> Shown:
    match given:
        case s.ArrayType():
            return _list(_or_null(shown_by(given.elementType)))
        case s.MapType():
            return _map(_or_null(shown_by(given.valueType)))
        case s.StructType():
            return _struct([(each.name, _or_null(shown_by(each.dataType))) for each in given.fields])
        case s.TimestampType():
            return lambda value: dates.timestamp_text(value.astimezone(UTC))
    return _plain


def row_of(schema: s.StructType) -> Callable[[Any], list[Any]]:
    cells = [_or_null(shown_by(each.dataType)) for each in schema.fields]
    return lambda row: [cell(value) for cell, value in zip(cells, row, strict=True)]


def _or_null(shown: Shown) -> Shown:
    return lambda value: None if value is None else shown(value)


def _list(part: Shown) -> Shown:
    return lambda value: [part(each) for each in value]


def _map(part: Shown) -> Shown:
    return lambda value: {str(key): part(each) for key, each in value.items()}


def _struct(parts: list[tuple[str, Shown]]) -> Shown:
    return lambda value: {name: part(each) for (name, part), each in zip(parts, value, strict=True)}


def _plain(value: Any) -> Any:
    match value:
        case bool() | int() | float() | str() | Decimal():
            return value
        case bytearray():
            value = bytes(value)
    leaf = TEXTS.get(type(value))
    return str(value) if leaf is None else leaf(value)
