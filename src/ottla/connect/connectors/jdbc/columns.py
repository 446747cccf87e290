"""Columns that a database gave, as columns of a topic: what drivers tell beside Arrow's types is looked at here."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.connectors.jdbc.config import SourceConfig
from ottla.connect.data.columns import as_told, schema_of
from ottla.connect.data.logical import OPTIONAL_TIME, decimal_schema, scale_of
from ottla.connect.data.schema import OPTIONAL_FLOAT64, OPTIONAL_INT64, OPTIONAL_STRING, Schema, struct_schema
from ottla.connect.spi import Table

_UUID_BYTES: Final = 16
_PLAIN_NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?$"
_CLOCK: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?$"
_LONG_DIGITS: Final = 18
"""That a whole number of 64 bits has in any case."""


class Column(NamedTuple):
    schema: Schema
    values: pa.ChunkedArray


def topic_table(found: pa.Table, topic: str, name: str, config: SourceConfig) -> Table:
    """`name`: of the rows' schema."""
    columns = [_column(column, found.schema.field(index), config) for index, column in enumerate(found.columns)]
    fields = [(name, column.schema) for name, column in zip(found.column_names, columns, strict=True)]
    values = pa.table([column.values for column in columns], names=found.column_names)
    return Table(topic, struct_schema(fields, name=name), values)


def _column(column: pa.ChunkedArray, field: pa.Field, config: SourceConfig) -> Column:
    kind, named = field.type, _told_name(field)
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if named in ("numeric", "decimal"):
        return _numeric(column.cast(pa.string()), config)
    if pa.types.is_decimal(kind):
        return _numeric(column.cast(pa.string()), config)
    if named == "time" and pa.types.is_string(kind):
        return _clock(column)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == _UUID_BYTES:
        texts = [None if each is None else str(UUID(bytes=each)) for each in column.to_pylist()]
        return Column(OPTIONAL_STRING, pa.chunked_array([pa.array(texts, pa.string())]))
    schema = schema_of(kind)
    if schema is OPTIONAL_STRING and not pa.types.is_string(kind):
        texts = [None if each is None else str(each) for each in column.to_pylist()]
        return Column(schema, pa.chunked_array([pa.array(texts, pa.string())]))
    return Column(schema, as_told(column, schema))


def _told_name(field: pa.Field) -> str:
    """Of what Arrow has no type for, and drivers give as texts."""
    named = getattr(field.type, "type_name", None)
    if named is not None:
        return str(named)
    metadata = field.metadata or {}
    return (metadata.get(b"ADBC:postgresql:typname") or metadata.get(b"ottla:mysql:type") or b"").decode()


def _clock(column: pa.ChunkedArray) -> Column:
    """MariaDB's TIME may be longer than a day, or negative: then it stays a text."""
    if pc.all(pc.match_substring_regex(column, _CLOCK)).as_py() is False:
        return Column(OPTIONAL_STRING, column)
    dated = pc.binary_join_element_wise(pa.scalar("1970-01-01 "), column, "")
    return Column(OPTIONAL_TIME, dated.cast(pa.timestamp("us")).cast(pa.time64("us")))


def _numeric(texts: pa.ChunkedArray, config: SourceConfig) -> Column:
    """What is no number (NaN and the infinities of PostgreSQL) is null."""
    plain, scale = _scaled(texts)
    if config.numeric_mapping == "best_fit" and scale > 0:
        return Column(OPTIONAL_FLOAT64, plain.cast(pa.float64()))
    longest = pc.max(pc.utf8_length(plain)).as_py() or 0
    if config.numeric_mapping != "none" and scale == 0 and longest <= _LONG_DIGITS:
        return Column(OPTIONAL_INT64, plain.cast(pa.int64()))
    return Column(decimal_schema(scale, optional=True), plain)


def _scaled(texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """All with as many digits behind the point as the one that has most."""
    is_plain = pc.match_substring_regex(texts, _PLAIN_NUMBER)
    if pc.all(is_plain).as_py() is not False:
        behind = pc.subtract(
            pc.utf8_length(texts), pc.add(pc.find_substring(texts, "."), 1)
        )  # of a text without a point, its length
        bounds = pc.min_max(pc.if_else(pc.match_substring(texts, "."), behind, 0)).as_py()
        if bounds["min"] == bounds["max"]:
            return texts, bounds["max"] or 0
    found = [None if each is None else Decimal(each) for each in texts.to_pylist()]
    finite = [each if each is not None and each.is_finite() else None for each in found]
    scale = max((scale_of(each) for each in finite if each is not None), default=0)
    scale = max(scale, 0)
    made: list[Any] = [None if each is None else f"{each:.{scale}f}" for each in finite]
    return pa.chunked_array([pa.array(made, pa.string())]), scale
