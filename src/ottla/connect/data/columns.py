"""Arrow's columns in Connect's terms, and the other way round: the one place that says which type is which.

Times are `timestamp[us, UTC]`, `date32` and `time64[us]`. Decimals of Connect have a scale and no bound to their
digits, so in columns on their way to a topic they are texts with as many digits behind the point as the scale says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.data.dates import MILLIS_PER_DAY
from ottla.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    OPTIONAL_DATE,
    OPTIONAL_TIME,
    OPTIONAL_TIMESTAMP,
    TIME_NAME,
    TIMESTAMP_NAME,
    decimal_scale,
    decimal_schema,
)
from ottla.connect.data.schema import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT8,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    Schema,
    array_schema,
    map_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type

TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
MOST_DIGITS: Final = 38
"""Of a decimal in a table that keeps numbers as numbers."""

_ARROW: Final = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_LOGICAL: Final = {DATE_NAME: pa.date32(), TIME_NAME: pa.time64("us"), TIMESTAMP_NAME: TIMESTAMP_TYPE}


def arrow_type(schema: Schema, *, decimals_as_texts: bool = False) -> pa.DataType:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == DECIMAL_NAME:
        return pa.string() if decimals_as_texts else pa.decimal128(MOST_DIGITS, decimal_scale(schema))
    if schema.type is Type.STRUCT:
        return pa.struct(
            [
                pa.field(field.name, arrow_type(field.schema, decimals_as_texts=decimals_as_texts))
                for field in schema.fields
            ]
        )
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return pa.list_(arrow_type(schema.value_schema, decimals_as_texts=decimals_as_texts))
    if schema.type is Type.MAP:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        return pa.map_(
            arrow_type(schema.key_schema, decimals_as_texts=decimals_as_texts),
            arrow_type(schema.value_schema, decimals_as_texts=decimals_as_texts),
        )
    return _ARROW[schema.type]


_SCHEMAS: Final[tuple[tuple[Callable[[pa.DataType], bool], Schema], ...]] = (
    (pa.types.is_int8, OPTIONAL_INT8),
    (pa.types.is_int16, OPTIONAL_INT16),
    (pa.types.is_int32, OPTIONAL_INT32),
    (pa.types.is_int64, OPTIONAL_INT64),
    (pa.types.is_uint8, OPTIONAL_INT16),
    (pa.types.is_uint16, OPTIONAL_INT32),
    (pa.types.is_unsigned_integer, OPTIONAL_INT64),
    (pa.types.is_boolean, OPTIONAL_BOOLEAN),
    (pa.types.is_float16, OPTIONAL_FLOAT32),
    (pa.types.is_float32, OPTIONAL_FLOAT32),
    (pa.types.is_float64, OPTIONAL_FLOAT64),
    (pa.types.is_timestamp, OPTIONAL_TIMESTAMP),
    (pa.types.is_date, OPTIONAL_DATE),
    (pa.types.is_time, OPTIONAL_TIME),
    (pa.types.is_binary, OPTIONAL_BYTES),
    (pa.types.is_large_binary, OPTIONAL_BYTES),
    (pa.types.is_fixed_size_binary, OPTIONAL_BYTES),
)


def schema_of(kind: pa.DataType) -> Schema:
    """Everything may be null. What Connect has no type for is a text."""
    for is_kind, schema in _SCHEMAS:
        if is_kind(kind):
            return schema
    if pa.types.is_decimal(kind):
        return decimal_schema(kind.scale, optional=True)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return array_schema(schema_of(kind.value_type), optional=True)
    if pa.types.is_map(kind):
        return map_schema(schema_of(kind.key_type), schema_of(kind.item_type), optional=True)
    if pa.types.is_struct(kind):
        return struct_schema([(field.name, schema_of(field.type)) for field in kind], optional=True)
    return OPTIONAL_STRING


def as_told(column: pa.ChunkedArray, schema: Schema) -> pa.ChunkedArray:
    """In the type that a column of this schema has. Raises ArrowException for a number that does not fit."""
    wanted = arrow_type(schema, decimals_as_texts=True)
    if column.type == wanted:
        return column
    if pa.types.is_timestamp(column.type):
        naive = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
        return naive.cast(wanted) if column.type.tz is None else naive.cast(pa.int64()).cast(wanted)
    return column.cast(wanted)


# ---- values, one by one


def structs(schema: Schema, table: pa.Table) -> list[Struct]:
    """The rows of a table whose columns are those of the schema."""
    columns = [
        values_of(field.schema, column.combine_chunks())
        for field, column in zip(schema.fields, table.columns, strict=True)
    ]
    return [Struct.of(schema, list(row)) for row in zip(*columns, strict=True)]


def values_of(schema: Schema, column: pa.Array) -> list[Any]:
    """As Connect has them."""
    logical = _VALUES.get(schema.name or "")
    if logical is not None:
        return logical(column)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return _cut(values_of(schema.value_schema, column.flatten()), column)
    if schema.type is Type.MAP:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        pairs = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
        keys, items = pairs.flatten().flatten()
        both = zip(values_of(schema.key_schema, keys), values_of(schema.value_schema, items), strict=True)
        return [None if each is None else dict(each) for each in _cut(list(both), pairs)]
    if schema.type is Type.STRUCT:
        inner = [values_of(field.schema, each) for field, each in zip(schema.fields, column.flatten(), strict=True)]
        rows = zip(*inner, strict=True) if inner else iter([()] * len(column))
        return [
            Struct.of(schema, list(row)) if is_there else None
            for row, is_there in zip(rows, column.is_valid().to_pylist(), strict=True)
        ]
    found: list[Any] = column.to_pylist()
    return found


def _cut(values: Sequence[Any], lists: pa.Array) -> list[Any]:
    lengths = pc.list_value_length(lists).to_pylist()
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + (length or 0))
    return [
        None if length is None else list(values[start:end])
        for length, (start, end) in zip(lengths, pairwise(ends), strict=True)
    ]


def _instants(by: int, numbers: pa.Array) -> list[Any]:
    return [None if each is None else Instant(each * by) for each in numbers.to_pylist()]


def millis_of(column: pa.Array) -> pa.Array:
    """Of timestamps, rounded towards the past."""
    return pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())


def clock_millis_of(column: pa.Array) -> pa.Array:
    return pc.divide(column.cast(pa.int64()), 1000)


_VALUES: Final[dict[str, Callable[[pa.Array], list[Any]]]] = {
    DATE_NAME: lambda column: _instants(MILLIS_PER_DAY, column.cast(pa.int32())),
    TIME_NAME: lambda column: _instants(1, clock_millis_of(column)),
    TIMESTAMP_NAME: lambda column: _instants(1, millis_of(column)),
    DECIMAL_NAME: lambda column: [None if each is None else Decimal(each) for each in column.to_pylist()],
}
