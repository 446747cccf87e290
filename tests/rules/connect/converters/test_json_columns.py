"""Rows in Arrow's columns become the bytes that they become one by one."""

from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.columns import as_told, schema_of, structs
from ottla.connect.data.errors import DataException
from ottla.connect.data.logical import decimal_schema
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import INT64, OPTIONAL_INT64, OPTIONAL_STRING, Schema, struct_schema

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "a": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    'quo"ted': (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "text": (pa.string(), st.text()),
    "small": (pa.float64(), st.floats()),
    "usual": (pa.float64(), st.floats(-1e8, 1e8)),
    "single": (pa.float32(), st.floats(width=32)),
    "word": (pa.bool_(), st.booleans()),
    "raw": (pa.binary(), st.binary()),
    "day": (pa.date32(), st.dates(date(1, 1, 1))),
    "clock": (pa.time64("us"), st.times()),
    "at": (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    ),
    "list": (pa.list_(pa.date32()), st.lists(st.none() | st.dates(date(1, 1, 1)), max_size=3)),
    "inner": (
        pa.struct([("x", pa.int8()), ("y", pa.time64("us"))]),
        st.fixed_dictionaries({"x": st.integers(-128, 127), "y": st.none() | st.just(time(1, 2, 3, 4567))}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int16()),
        st.dictionaries(st.text(), st.integers(0, 99), max_size=2).map(lambda d: list(d.items())),
    ),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}), min_size=1, max_size=3
)


def both_ways(schema: Schema, table: pa.Table, **config: str) -> tuple[list[bytes], Any]:
    converter = JsonConverter({name.replace("_", "."): text for name, text in config.items()}, "value")
    column = converter.from_columns("t", schema, table)
    assert column is not None
    one_by_one = [SchemaAndValue(schema, row) for row in structs(schema, table)]
    return column.cast(pa.binary()).to_pylist(), converter.from_connect("t", one_by_one)


@settings(max_examples=40)
@given(ROWS, st.sampled_from(["true", "false"]))
def test_columns_have_the_bytes_of_single_values(rows: list[dict[str, Any]], enveloped: str) -> None:
    table = pa.Table.from_pylist(rows, pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()]))
    schema = struct_schema([(field.name, schema_of(field.type)) for field in table.schema])
    told = pa.table(
        [as_told(column, field.schema) for column, field in zip(table.columns, schema.fields, strict=True)],
        names=table.column_names,
    )
    columns, singles = both_ways(schema, told, schemas_enable=enveloped)
    assert columns == singles


@pytest.mark.parametrize("form", ["BASE64", "NUMERIC"])
@pytest.mark.parametrize("scale", [0, 2, 6, 9])
def test_decimals_are_texts_with_their_scale(form: str, scale: int) -> None:
    texts = [f"{number:.{scale}f}" for number in (0, 1, -3, 12345678)]
    table = pa.table({"d": pa.chunked_array([[*texts, None]])})
    schema = struct_schema({"d": decimal_schema(scale, optional=True)})
    columns, singles = both_ways(schema, table, schemas_enable="false", decimal_format=form)
    assert columns == singles


def test_defaults_take_the_place_of_nulls_and_required_fields_have_none() -> None:
    table = pa.table({"n": pa.chunked_array([[1, None]], pa.int64())})
    columns, singles = both_ways(struct_schema({"n": OPTIONAL_INT64.but(default=7)}), table, schemas_enable="false")
    assert columns == singles == [b'{"n":1}', b'{"n":7}']
    with pytest.raises(DataException, match="null value for field that is required"):
        both_ways(struct_schema({"n": INT64}), table)


def test_chunks_need_not_be_those_of_the_other_column() -> None:
    table = pa.table({"n": pa.chunked_array([[1, 2], [3]]), "t": pa.chunked_array([["a"], ["b", None]])})
    schema = struct_schema({"n": OPTIONAL_INT64, "t": OPTIONAL_STRING})
    columns, singles = both_ways(schema, table, schemas_enable="false")
    assert columns == singles
