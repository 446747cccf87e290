"""Columns that a database gave, as Connect's schemas and values."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa

from ottla.connect.connectors.jdbc.config import SourceConfig
from ottla.connect.data.logical import OPTIONAL_DATE, OPTIONAL_TIME, OPTIONAL_TIMESTAMP, decimal_schema, scale_of
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
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant

_DAY_MS: Final = 86_400_000
_UUID_BYTES: Final = 16
_INTS: Final = {8: OPTIONAL_INT8, 16: OPTIONAL_INT16, 32: OPTIONAL_INT32, 64: OPTIONAL_INT64}


class Column(NamedTuple):
    schema: Schema
    values: list[Any]


def structs(table: pa.Table, name: str, config: SourceConfig) -> list[Struct]:
    """Its rows."""
    columns = [_column(column, table.schema.field(index), config) for index, column in enumerate(table.columns)]
    schema = struct_schema([(n, c.schema) for n, c in zip(table.column_names, columns, strict=True)], name=name)
    return [Struct.of(schema, list(row)) for row in zip(*(column.values for column in columns), strict=True)]


def _column(column: pa.ChunkedArray, field: pa.Field, config: SourceConfig) -> Column:
    kind, named = field.type, _opaque_name(field)
    if isinstance(kind, pa.BaseExtensionType):
        column, kind = (
            pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type),
            kind.storage_type,
        )
    if named == "numeric" or pa.types.is_decimal(kind):
        return _numeric(column.to_pylist(), config)
    if pa.types.is_signed_integer(kind):
        return Column(_INTS[kind.bit_width], column.to_pylist())
    if pa.types.is_timestamp(kind):
        return _instants(OPTIONAL_TIMESTAMP, column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()), 1)
    if pa.types.is_date(kind):
        return _instants(OPTIONAL_DATE, column.cast(pa.date32()).cast(pa.int32()), _DAY_MS)
    if pa.types.is_time(kind):
        whole = column.cast(pa.time64("us")).cast(pa.int64()).to_pylist()
        return Column(OPTIONAL_TIME, [None if each is None else Instant(each // 1000) for each in whole])
    if pa.types.is_list(kind):
        inner = _column(pa.chunked_array([column.combine_chunks().flatten()]), kind.value_field, config).schema
        return Column(array_schema(inner, optional=True), column.to_pylist())
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == _UUID_BYTES:
        return Column(OPTIONAL_STRING, [None if each is None else str(UUID(bytes=each)) for each in column.to_pylist()])
    for is_kind, schema in _PLAIN:
        if is_kind(kind):
            return Column(schema, column.to_pylist())
    texts = [None if each is None else str(each) for each in column.to_pylist()]
    return Column(OPTIONAL_STRING, texts)


_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], Schema], ...]] = (
    (pa.types.is_boolean, OPTIONAL_BOOLEAN),
    (pa.types.is_float32, OPTIONAL_FLOAT32),
    (pa.types.is_float64, OPTIONAL_FLOAT64),
    (pa.types.is_binary, OPTIONAL_BYTES),
)


def _opaque_name(field: pa.Field) -> str:
    """ADBC gives what Arrow has no type for as texts, and says what it is."""
    named = getattr(field.type, "type_name", None)
    if named is not None:
        return str(named)
    return ((field.metadata or {}).get(b"ADBC:postgresql:typname") or b"").decode()


def _instants(schema: Schema, column: pa.ChunkedArray, by: int) -> Column:
    return Column(schema, [None if each is None else Instant(each * by) for each in column.to_pylist()])


def _numeric(found: list[Any], config: SourceConfig) -> Column:
    numbers = [None if each is None else Decimal(each) for each in found]
    finite = [each if each is None or each.is_finite() else None for each in numbers]
    scale = max((scale_of(each) for each in finite if each is not None), default=0)
    if config.numeric_mapping == "best_fit" and scale > 0:
        return Column(OPTIONAL_FLOAT64, [None if each is None else float(each) for each in numbers])
    small = all(each is None or abs(each) < 1 << 63 for each in finite)
    if config.numeric_mapping != "none" and scale <= 0 and small:
        return Column(OPTIONAL_INT64, [None if each is None else int(each) for each in finite])
    unit = Decimal(1).scaleb(-scale)
    return Column(
        decimal_schema(scale, optional=True),
        [None if each is None else each if scale_of(each) == scale else each.quantize(unit) for each in finite],
    )
