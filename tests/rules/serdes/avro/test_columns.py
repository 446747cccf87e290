"""Whole columns: the same values as record by record, errors beside them."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.in_memory import MemoryRegistry
from ottla.registry.lookup import RegistryUnavailable
from ottla.serdes import columns
from ottla.serdes.arrow import arrow_type, from_column
from ottla.serdes.base import SerdeError
from ottla.serdes.by_name import Serdes
from ottla.serdes.types import Type, parse_type
from tests.rules.serdes.avro.everything import ALL, VALUE, record

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_a_column_holds_what_records_hold_and_is_written_back_to_the_same_bytes() -> None:
    serde = Serdes.avro(MemoryRegistry(), ALL)
    assert serde.has_columns
    rows = [VALUE, None, {**VALUE, "inner": None, "either": None, "list": [], "map": {}}]
    data = pa.array([serde.encode_for(row, "t", []) if row else None for row in rows], pa.binary())
    values, errors = columns.decode(serde, data)
    assert values.type == arrow_type(serde.type)
    assert errors.to_pylist() == [None, None, None]
    convert = from_column(serde.type)
    assert convert is not None
    assert [convert(each) for each in values.to_pylist()] == rows
    assert columns.encode(serde, values, pa.array(["t"] * 3)).to_pylist() == data.to_pylist()
    assert columns.encode(serde, values[2:], pa.array(["t"])).to_pylist() == data.to_pylist()[2:]


def test_what_cannot_be_read_is_null_with_a_reason_and_the_others_are_read() -> None:
    serde = Serdes.avro(MemoryRegistry(), record(("a", "int")))
    good = serde.encode_for({"a": 1}, "t", [])
    values, errors = columns.decode(serde, pa.array([good, b"bad", None, good]))
    assert values.to_pylist() == [{"a": 1}, None, None, {"a": 1}]
    assert [error and "no schema id" in error for error in errors.to_pylist()] == [None, True, None, None]


def test_ids_are_found_in_headers_too() -> None:
    registry = MemoryRegistry()
    writer, reader = (
        Serdes.avro(registry, record(("a", "int")), ids="header"),
        Serdes.avro(registry, record(("a", "int"))),
    )
    headers: list[tuple[str, bytes | None]] = []
    data = [writer.encode_for({"a": 1}, "t", headers), reader.encode_for({"a": 2}, "t", [])]
    beside = pa.array([[{"key": key, "value": value} for key, value in headers], None], HEADERS)
    assert columns.decode(reader, pa.array(data), beside).values.to_pylist() == [{"a": 1}, {"a": 2}]
    assert not writer.has_columns


def test_a_value_that_cannot_be_written_ends_it() -> None:
    serde = Serdes.avro(MemoryRegistry(), record(("a", "int")))
    with pytest.raises(SerdeError, match="a: an int expected, not NoneType None"):
        columns.encode(serde, pa.array([{"a": None}], arrow_type(serde.type)), pa.array(["t"]))


def test_a_registry_that_is_away_ends_it() -> None:
    registry = MemoryRegistry()
    data = Serdes.avro(registry, record(("a", "int"))).encode_for({"a": 1}, "t", [])
    registry.is_away = True
    with pytest.raises(RegistryUnavailable):
        columns.decode(Serdes.avro(registry, record(("a", "long"))), pa.array([data]))


TYPE = parse_type("struct<a: int, l: array<struct<s: string, m: map<string, array<long>>>>, b: boolean>")


def values_of(kind: Type) -> st.SearchStrategy[Any]:
    element = kind.element
    match kind.name:
        case "struct":
            found: st.SearchStrategy[Any] = st.fixed_dictionaries({name: values_of(part) for name, part in kind.fields})
        case "array" if element is not None:
            found = st.lists(values_of(element), max_size=3)
        case "map" if element is not None:
            found = st.dictionaries(st.text(max_size=2), values_of(element), max_size=3)
        case "string":
            found = st.text(max_size=3)
        case "boolean":
            found = st.booleans()
        case _:
            found = st.integers(-(1 << 31), (1 << 31) - 1)
    return st.none() | found


@given(st.lists(values_of(TYPE), max_size=6))
def test_columns_put_together_field_by_field_are_those_that_arrow_makes(rows: list[Any]) -> None:
    column = columns.column_of(TYPE, rows)
    column.validate(full=True)
    assert column.equals(pa.array(rows, arrow_type(TYPE)))
    assert columns.values_of(TYPE, column) == rows
