"""Single values of columns, in Python: as Arrow and rows of Spark have them, and as expressions and serdes do.

They differ for times (milliseconds), timestamps (no zone on a column, UTC in Python), maps (pairs in Arrow) and JSON
without a type, which travels as text.
"""

from collections.abc import Callable
from datetime import UTC
from typing import Any, Final, TypeAlias

import pyarrow as pa

from ottla.serdes import dates
from ottla.serdes.types import Type

Convert: TypeAlias = Callable[[Any], Any]

_ARROW: Final[dict[str, Callable[[], pa.DataType]]] = {
    "string": pa.string,
    "binary": pa.binary,
    "int": pa.int32,
    "long": pa.int64,
    "double": pa.float64,
    "boolean": pa.bool_,
    "date": pa.date32,
    "time": pa.int32,
    "timestamp": lambda: pa.timestamp("us"),
    "null": pa.string,
}


def arrow_type(kind: Type) -> pa.DataType:
    """Of the column that Spark keeps such values in."""
    match kind:
        case Type(name="array", element=Type() as element):
            return pa.list_(arrow_type(element))
        case Type(name="map", element=Type() as element):
            return pa.map_(pa.string(), arrow_type(element))
        case Type(name="struct"):
            return pa.struct([pa.field(name, arrow_type(part)) for name, part in kind.fields])
        case Type(name="decimal"):
            return pa.decimal128(kind.precision, kind.scale)
        case Type(name="any" | "windowed"):
            raise TypeError(f"a column of type {kind} cannot travel to Python: cast it")
    return _ARROW[kind.name]()


def from_column(kind: Type) -> Convert | None:
    """From what Arrow's `to_pylist` or a row gives to the value; None where that is the value already."""
    return _nullable(_from_column(kind))


def to_column(kind: Type) -> Convert | None:
    """From the value to what Arrow and createDataFrame take; None where they take it as it is."""
    return _nullable(_to_column(kind))


def _nullable(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda given: None if given is None else convert(given)


def _as_is(given: Any) -> Any:
    return given


def _from_column(kind: Type) -> Convert | None:
    match kind.name:
        case "time":
            return dates.time_of
        case "timestamp":
            return lambda given: given.replace(tzinfo=UTC)
        case "map":
            return _map_part(from_column(kind.element or kind))
    return _part_by_part(kind, from_column)


def _to_column(kind: Type) -> Convert | None:
    match kind.name:
        case "time":
            return dates.ms_of_day
        case "timestamp":
            return lambda given: given.replace(tzinfo=None)
        case "map":
            return _map_part(to_column(kind.element or kind))
    return _part_by_part(kind, to_column)


def _map_part(part: Convert | None) -> Convert:
    convert = part or _as_is
    return lambda given: {key: convert(value) for key, value in dict(given).items()}


def _part_by_part(kind: Type, converter: Callable[[Type], Convert | None]) -> Convert | None:
    if kind.name == "array" and kind.element is not None:
        part = converter(kind.element)
        return None if part is None else lambda given: [part(each) for each in given]
    if kind.name == "struct":
        parts = [(name, converter(field)) for name, field in kind.fields]
        if all(part is None for _, part in parts):
            return None
        return lambda given: {name: (part or _as_is)(given[name]) for name, part in parts}
    return None
