"""Rows of JSON as it lies in a topic: Arrow reads it column by column, without an object for each record.

Only what comes out as it does one by one (`rows`): anything else, down to a single field that was not seen before or a
number with a point in a column of whole ones, is for that way, which knows what to make of it and whom to refuse.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ottla.connect.connectors.tables.rows import rows_of
from ottla.connect.converters.json_texts import parsed
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.record import ConnectRecord

SAMPLE: Final = 100
"""Records that say which columns there are, where no table does."""
_PLAIN: Final = (pa.types.is_signed_integer, pa.types.is_float64, pa.types.is_boolean, pa.types.is_string)
_PLAIN_TOO: Final = (pa.types.is_large_string, pa.types.is_null)


def quick_rows(values: pa.Array, known: pa.Schema | None) -> pa.Table | None:
    """`known`: the columns of the table, all of which come out, in its types; else they are found out. None: not this
    way."""
    if not len(values) or values.null_count:
        return None
    columns = _told_by(values[:SAMPLE].to_pylist()) if known is None else known
    if not columns or not all(_is_plain(field.type) for field in columns):
        return None
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:  # it is no UTF-8
        return None
    # Each of them then is a row at least; and so as many rows as there are values are one each.
    if not (pc.all(pc.starts_with(text, "{")).as_py() and pc.all(pc.ends_with(text, "}")).as_py()):
        return None
    table = _read(text, columns)
    if table is None or len(table) != len(values) or not all(map(_is_finite, table.columns)):
        return None
    kept = [field.name for field in columns if not pa.types.is_null(field.type)]
    return table.select(kept) if kept else None


def _read(text: pa.Array, columns: pa.Schema) -> pa.Table | None:
    all_of_it = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
    lines = pc.binary_join(all_of_it, "\n")[0].as_buffer()
    try:
        return pj.read_json(
            pa.BufferReader(lines),
            # In one piece: a record may hold line breaks.
            read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
            parse_options=pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="error"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None


def _told_by(sample: Sequence[bytes]) -> pa.Schema | None:
    """With a column of nulls for each field that has nothing but nulls in the sample."""
    try:
        found: list[Any] = [parsed(each) for each in sample]
    except ConnectException:
        return None
    if not all(isinstance(each, dict) for each in found):
        return None
    made = rows_of([ConnectRecord("", value=each) for each in found], None)
    if made.refused:
        return None
    types = {field.name: field.type for field in made.table.schema}
    names = dict.fromkeys(chain.from_iterable(found))
    return pa.schema([pa.field(name, types.get(name, pa.null())) for name in names])


def _is_plain(kind: pa.DataType) -> bool:
    """Whether JSON of it is read as it is one by one: a text for a time, say, is not."""
    if pa.types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_plain(kind.value_type)
    return any(is_kind(kind) for is_kind in (*_PLAIN, *_PLAIN_TOO))


def _is_finite(column: pa.ChunkedArray | pa.Array) -> bool:
    """Arrow takes NaN and Infinity for numbers, and JSON has none such."""
    if isinstance(column, pa.ChunkedArray):
        return all(map(_is_finite, column.chunks))
    if pa.types.is_struct(column.type):
        return all(map(_is_finite, column.flatten()))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _is_finite(column.flatten())
    return not pa.types.is_floating(column.type) or pc.all(pc.is_finite(column)).as_py() is not False
