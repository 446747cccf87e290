"""JSON by schemas of a registry: types, both directions, what is refused."""

import json
from typing import Any

import pyarrow as pa
import pytest

from ottla.registry.in_memory import MemoryRegistry
from ottla.serdes import columns
from ottla.serdes.base import SerdeError
from ottla.serdes.by_name import Serdes
from ottla.serdes.types import ANY, Type, parse_schema, parse_type

ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 2},
        "size": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "who": {"$ref": "#/definitions/person"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object", "additionalProperties": {"type": "integer"}},
        "hot": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "required": ["id", "price"],
    "additionalProperties": False,
    "definitions": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
}
TYPE = parse_schema(
    "id STRING, size LONG, price DOUBLE, who STRUCT<name: STRING>, tags ARRAY<STRING>, more MAP<STRING, LONG>, "
    "hot BOOLEAN"
)
VALUE = {
    "id": "ab",
    "size": None,
    "price": None,
    "who": {"name": None},
    "tags": ["x"],
    "more": {"a": 1},
    "hot": True,
}


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def test_the_payload_is_plain_json_without_nulls_that_nobody_asks_for(registry: MemoryRegistry) -> None:
    serde = Serdes.json_schema(registry, ORDER)
    assert serde.type == TYPE
    data = serde.encode_for(VALUE, "t", [])
    assert data[:5] == b"\0\0\0\0\1"
    assert json.loads(data[5:]) == {
        "id": "ab", "price": None, "who": {}, "tags": ["x"], "more": {"a": 1}, "hot": True,
    }  # fmt: skip
    assert serde.decode_from(data, "t", ()) == VALUE
    assert registry.schemas[0].language == "JSON"


TYPES: list[tuple[Any, Type]] = [
    ({"type": "integer"}, parse_type("long")),
    ({"enum": ["a", "b"]}, parse_type("string")),
    ({"type": ["string", "integer"]}, ANY),
    ({"type": "object"}, ANY),
    ({"type": "object", "properties": {"a": {}}}, parse_type("struct<a: any>")),
    ({"$ref": "https://elsewhere/x"}, ANY),
    ({"$ref": "#"}, ANY),
    (True, ANY),
]


@pytest.mark.parametrize(("schema", "kind"), TYPES)
def test_what_a_schema_leaves_open_has_no_type(registry: MemoryRegistry, schema: Any, kind: Type) -> None:
    assert Serdes.json_schema(registry, schema).type == kind


def _fan(levels: int) -> dict[str, Any]:
    """Two ways from each level to the next."""
    both = {
        f"d{n}": {"type": "object", "properties": {side: {"$ref": f"#/definitions/d{n + 1}"} for side in "lr"}}
        for n in range(levels)
    }
    return {"$ref": "#/definitions/d0", "definitions": {**both, f"d{levels}": {"type": "integer"}}}


OPEN = [{"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "x": {"type": "integer"}}}, _fan(40)]


@pytest.mark.parametrize("schema", OPEN)
def test_a_schema_that_contains_itself_or_never_ends_has_no_type(registry: MemoryRegistry, schema: Any) -> None:
    serde = Serdes.json_schema(registry, schema)
    assert serde.type == ANY and not serde.has_columns
    assert Serdes.json_schema(registry, _fan(3)).has_columns


def test_what_has_no_type_is_written_as_it_is(registry: MemoryRegistry) -> None:
    serde = Serdes.json_schema(registry, OPEN[0])
    value = {"x": 1, "a": {"x": 2}}
    assert serde.decode_from(serde.encode_for(value, "t", []), "t", ()) == value


UNWRITABLE: list[tuple[Any, str]] = [
    ({**VALUE, "id": "a"}, '"a" is shorter than 2 characters at #/id'),
    ({**VALUE, "size": 1.5}, "an int expected"),
    ({**VALUE, "other": 1}, "the schema has no field other"),
]


@pytest.mark.parametrize(("value", "reason"), UNWRITABLE)
def test_a_value_that_is_not_of_the_schema_is_told_where(registry: MemoryRegistry, value: Any, reason: str) -> None:
    with pytest.raises(SerdeError) as told:
        Serdes.json_schema(registry, ORDER).encode_for(value, "t", [])
    assert reason in str(told.value)


UNREADABLE = [
    (b'{"id":"ab"}', '"price" is a required property at #'),
    (b'{"id":5,"price":1}', "5 is not of type"),
    (b"{", "no JSON"),
    (b"\xff", "no JSON"),
]


@pytest.mark.parametrize(("payload", "reason"), UNREADABLE)
def test_a_record_that_is_not_of_its_schema_is_told_where(
    registry: MemoryRegistry, payload: bytes, reason: str
) -> None:
    serde = Serdes.json_schema(registry, ORDER)
    serde.encode_for(VALUE, "t", [])
    with pytest.raises(SerdeError) as told:
        serde.decode_from(b"\0\0\0\0\1" + payload, "t", ())
    assert reason in str(told.value)


def test_an_evolved_reader_takes_what_it_knows(registry: MemoryRegistry) -> None:
    data = Serdes.json_schema(registry, ORDER).encode_for(VALUE, "t", [])
    reader = Serdes.json_schema(
        registry, {"type": "object", "properties": {"id": {"type": "string"}, "new": {"type": "integer"}}}
    )
    assert reader.decode_from(data, "t", ()) == {"id": "ab", "new": None}


def test_without_a_schema_of_its_own_the_value_is_what_json_gives(registry: MemoryRegistry) -> None:
    data = Serdes.json_schema(registry, ORDER).encode_for(VALUE, "t", [])
    assert Serdes.json_schema(registry).decode_from(data, "t", ())["more"] == {"a": 1}


def test_guids_in_headers_leave_the_payload_plain(registry: MemoryRegistry) -> None:
    serde = Serdes.json_schema(registry, {"type": "integer"}, ids="header")
    headers: list[tuple[str, bytes | None]] = []
    assert serde.encode_for(5, "t", headers) == b"5"
    assert serde.decode_from(b"5", "t", headers) == 5


def test_records_are_columns_too(registry: MemoryRegistry) -> None:
    serde = Serdes.json_schema(registry, ORDER)
    data = pa.array([serde.encode_for(VALUE, "t", []), None, b"\0\0\0\0\1[]"])
    values, errors = columns.decode(serde, data)
    assert columns.values_of(serde.type, values) == [VALUE, None, None]
    assert [error is None for error in errors.to_pylist()] == [True, True, False]
    assert columns.encode(serde, values, pa.array(["t"] * 3)).to_pylist()[:2] == data.to_pylist()[:2]
