"""Whole columns of records: bytes to typed Arrow columns and back, for serdes that read schemas (`base.ColumnSerde`).

Values come and go field by field: Arrow takes a list of numbers 30 times as fast as one of dicts.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.serdes.arrow import arrow_type, from_column
from ottla.serdes.base import ColumnSerde, SerdeError
from ottla.serdes.types import Type


class DecodedColumn(NamedTuple):
    values: pa.Array
    errors: pa.Array
    """What is wrong with the bytes; null where nothing is."""


def decode(serde: ColumnSerde[Any], data: pa.Array, headers: pa.Array | None = None) -> DecodedColumn:
    """Null where the bytes are null or cannot be read. A registry that does not answer raises."""
    read = serde.read
    values: list[Any] = []
    errors: list[str | None] = [None] * len(data)
    for index, (record, beside) in enumerate(zip(data.to_pylist(), _headers(headers, len(data)), strict=True)):
        value = None
        if record is not None:
            try:
                value = read(record, beside, for_columns=True)
            except SerdeError as error:
                errors[index] = str(error)
        values.append(value)
    return DecodedColumn(column_of(serde.type, values), pa.array(errors, pa.string()))


def encode(serde: ColumnSerde[Any], values: pa.Array, topics: pa.Array) -> pa.Array:
    """For the topic beside each value. Raises SerdeError for the first that cannot be written."""
    write = serde.encode_for
    headers: list[tuple[str, bytes | None]] = []
    rows = [
        None if value is None else write(value, topic, headers)
        for value, topic in zip(values_of(serde.type, values), topics.to_pylist(), strict=True)
    ]
    assert not headers, "columns cannot add headers"
    return pa.array(rows, pa.binary())


def _headers(column: pa.Array | None, count: int) -> Sequence[Sequence[tuple[str, bytes | None]]]:
    if column is None or column.null_count == count:
        return [()] * count
    return [[(each["key"], each["value"]) for each in headers] if headers else () for headers in column.to_pylist()]


def column_of(kind: Type, values: list[Any]) -> pa.Array:
    """Of values as Arrow takes them: numbers for dates, times and timestamps."""
    element = kind.element
    match kind.name:
        case "struct":
            columns = [
                column_of(part, [None if value is None else value[name] for value in values])
                for name, part in kind.fields
            ]
            fields = [pa.field(name, arrow_type(part)) for name, part in kind.fields]
            return pa.StructArray.from_arrays(columns, fields=fields, mask=_absent(values))
        case "array" if element is not None:
            items = [item for value in values if value is not None for item in value]
            return pa.ListArray.from_arrays(_offsets(values), column_of(element, items), mask=_absent(values))
        case "map" if element is not None:
            keys = [key for value in values if value is not None for key in value]
            items = [item for value in values if value is not None for item in value.values()]
            names, cells = pa.array(keys, pa.string()), column_of(element, items)
            return pa.MapArray.from_arrays(_offsets(values), names, cells, mask=_absent(values))
    return pa.array(values, arrow_type(kind))


def _absent(values: list[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _offsets(values: list[Any]) -> pa.Array:
    lengths = (0 if value is None else len(value) for value in values)
    return pa.array(accumulate(lengths, initial=0), pa.int32())


def values_of(kind: Type, column: pa.Array) -> list[Any]:
    """As serdes take them."""
    if kind.name == "struct":
        names = [name for name, _ in kind.fields]
        parts = [values_of(part, pc.struct_field(column, index)) for index, (_, part) in enumerate(kind.fields)]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        if not column.null_count:
            return rows
        return [row if there else None for row, there in zip(rows, column.is_valid().to_pylist(), strict=True)]
    values: list[Any] = column.to_pylist()
    convert = from_column(kind)
    return values if convert is None else list(map(convert, values))
