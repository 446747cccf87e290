"""Rows that lie in Arrow's columns as JSON, column by column: the bytes that `json_writing` makes of them one by one.

What Arrow writes as Jackson does (numbers, words, texts without anything to be escaped) is written by Arrow; only what
it does not is looked at value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.converters.json_texts import quoted
from ottla.connect.converters.json_writing import Writers, double_json
from ottla.connect.data.columns import clock_millis_of, millis_of, values_of
from ottla.connect.data.logical import DATE_NAME, DECIMAL_NAME, LOGICAL_NAMES, TIME_NAME, TIMESTAMP_NAME, decimal_scale
from ottla.connect.data.schema import Schema
from ottla.connect.data.types import Type

_ESCAPED: Final = r'["\\\x00-\x1f]'
_MOST_PLAIN_SCALE: Final = 6
"""With more digits behind the point BigDecimal may write an exponent."""


def object_texts(schema: Schema, table: pa.Table, writers: Writers, head: str = "", tail: str = "") -> pa.ChunkedArray:
    """One text for each row, between `head` and `tail`. Raises DataException, as a writer does."""
    parts: list[pa.ChunkedArray | pa.Scalar] = []
    before = head + "{"
    for field, column in zip(schema.fields, table.columns, strict=True):
        parts.append(pa.scalar(f"{before}{quoted(field.name)}:"))
        parts.append(_texts(field.schema, column, writers))
        before = ","
    parts.append(pa.scalar("}" + tail))
    return pc.binary_join_element_wise(*parts, "")


def _texts(schema: Schema, column: pa.ChunkedArray, writers: Writers) -> pa.ChunkedArray:
    write = _logical(schema, writers) if schema.name in LOGICAL_NAMES else _PLAIN.get(schema.type)
    may_be_null = schema.optional and (schema.default is None or not writers.replace_null)
    if write is None or (column.null_count and not may_be_null):
        one = writers.of(schema)
        return pa.chunked_array(
            [pa.array([one(value) for value in values_of(schema, chunk)], pa.string()) for chunk in column.chunks],
            pa.string(),
        )
    chunks = [pc.fill_null(write(chunk), "null") for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.string())


def _logical(schema: Schema, writers: Writers) -> Callable[[pa.Array], pa.Array] | None:
    if schema.name == DATE_NAME:
        return lambda column: column.cast(pa.int32()).cast(pa.string())
    if schema.name == TIME_NAME:
        return lambda column: clock_millis_of(column).cast(pa.string())
    if schema.name == TIMESTAMP_NAME:
        return lambda column: millis_of(column).cast(pa.string())
    assert schema.name == DECIMAL_NAME
    if writers.decimals_as_numbers and 0 <= decimal_scale(schema) <= _MOST_PLAIN_SCALE:
        return lambda column: column
    return None


def _number(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    plain = pc.binary_join_element_wise(pa.scalar('"'), column, pa.scalar('"'), "")
    unsafe = pc.fill_null(pc.match_substring_regex(column, _ESCAPED), False)
    if not pc.any(unsafe).as_py():
        return plain
    return pc.replace_with_mask(plain, unsafe, pa.array([quoted(each) for each in column.filter(unsafe).to_pylist()]))


def _double(column: pa.Array) -> pa.Array:
    """Java has an exponent from 10^7 on and below 10^-3, and always a point."""
    size = pc.abs(column)
    is_plain = pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7))
    text = column.cast(pa.string())
    pointed = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, pa.scalar(".0"), ""))
    odd = pc.fill_null(pc.invert(is_plain), False)
    if not pc.any(odd).as_py():
        return pointed
    return pc.replace_with_mask(
        pointed, odd, pa.array([double_json(each) for each in column.filter(odd).to_pylist()], pa.string())
    )


_PLAIN: Final[dict[Type, Callable[[pa.Array], pa.Array]]] = {
    Type.INT8: _number,
    Type.INT16: _number,
    Type.INT32: _number,
    Type.INT64: _number,
    Type.BOOLEAN: _number,
    Type.FLOAT64: _double,
    Type.STRING: _quoted,
}
