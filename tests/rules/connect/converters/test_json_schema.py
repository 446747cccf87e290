"""JsonSchemaConverter: which JSON Schemas Connect's schemas become, what schemas read as, and both ways round."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from ottla.connect.converters.json_schema import JsonSchemaConverter
from ottla.connect.data.errors import DataException
from ottla.connect.data.logical import DATE, TIMESTAMP, decimal_schema
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array_schema,
    map_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type
from ottla.registry.in_memory import MemoryRegistry
from tests.support.connect_values import rows

ENUM = "io.confluent.connect.json.Enum"
ONE_OF = "io.confluent.connect.json.OneOf"
KIND, INDEX = "connect.type", "connect.index"


def converter(registry: MemoryRegistry | None = None, **given_: str) -> JsonSchemaConverter:
    texts = {
        "schema.registry.url": "http://127.0.0.1:1",
        **{key.replace("_", "."): each for key, each in given_.items()},
    }
    return JsonSchemaConverter(texts, "value", MemoryRegistry() if registry is None else registry)


def written(schema: Schema, value: Any, **given_: str) -> tuple[Any, Any]:
    """The schema that was registered, and the payload."""
    registry = MemoryRegistry()
    data = converter(registry, **given_).write("t", SchemaAndValue(schema, value))
    assert data is not None and data[:5] == b"\0\0\0\0\1"
    return json.loads(registry.schemas[0].text), json.loads(data[5:])


def read_of(described: Any, found: Any, **given_: str) -> SchemaAndValue:
    registry = MemoryRegistry()
    registry.register("t-value", "JSON", json.dumps(described))
    return converter(registry, **given_).read("t", b"\0\0\0\0\1" + json.dumps(found).encode())


def logical(kind: str, name: str, inner: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, KIND: inner, "title": f"org.apache.kafka.connect.data.{name}", "connect.version": 1, **more}


COLOURS = Schema(Type.STRING, parameters={ENUM: "", f"{ENUM}.red": "red", f"{ENUM}.blue": "blue"})
SCALE = {"connect.parameters": {"scale": "2"}}
KINDS = [
    (INT8, 1, {"type": "integer", KIND: "int8"}, 1),
    (INT64, 1 << 40, {"type": "integer", KIND: "int64"}, 1 << 40),
    (FLOAT32, 1.5, {"type": "number", KIND: "float32"}, 1.5),
    (FLOAT64, 1.1, {"type": "number", KIND: "float64"}, 1.1),
    (BOOLEAN, True, {"type": "boolean"}, True),
    (STRING, "é", {"type": "string"}, "é"),
    (BYTES, b"\xff", {"type": "string", KIND: "bytes"}, "/w=="),
    (OPTIONAL_STRING, "x", {"oneOf": [{"type": "null"}, {"type": "string"}]}, "x"),
    (COLOURS, "red", {"enum": ["red", "blue"]}, "red"),
    (decimal_schema(2), Decimal("1.23"), logical("number", "Decimal", "bytes", **SCALE), "ew=="),
    (DATE, Instant(86_400_000), logical("integer", "Date", "int32"), 1),
    (TIMESTAMP, Instant(-1), logical("integer", "Timestamp", "int64"), -1),
    (array_schema(INT32), [1], {"type": "array", "items": {"type": "integer", KIND: "int32"}}, [1]),
    (
        map_schema(STRING, BOOLEAN),
        {"a": True},
        {"type": "object", "additionalProperties": {"type": "boolean"}, KIND: "map"},
        {"a": True},
    ),
    (
        map_schema(INT32, BOOLEAN),
        {1: True},
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "integer", KIND: "int32", INDEX: 0},
                    "value": {"type": "boolean", INDEX: 1},
                },
            },
            KIND: "map",
        },
        [{"key": 1, "value": True}],
    ),
    (
        struct_schema([("b", INT8), ("a", OPTIONAL_STRING)], name="shop.Row", doc="A row.", version=3),
        Struct(
            struct_schema([("b", INT8), ("a", OPTIONAL_STRING)], name="shop.Row", doc="A row.", version=3), {"b": 1}
        ),
        {
            "type": "object",
            "properties": {
                "b": {"type": "integer", KIND: "int8", INDEX: 0},
                "a": {"oneOf": [{"type": "null"}, {"type": "string"}], INDEX: 1},
            },
            "title": "shop.Row",
            "description": "A row.",
            "connect.version": 3,
        },
        {"b": 1, "a": None},
    ),
]


@pytest.mark.parametrize(("schema", "value", "described", "payload"), KINDS)
def test_a_schema_is_what_confluents_converter_makes_of_it_and_comes_back(
    schema: Schema, value: Any, described: Any, payload: Any
) -> None:
    assert written(schema, value) == (described, payload)
    assert read_of(described, payload) == (schema, value)


def test_settings_close_objects_name_what_is_required_and_write_decimals_as_numbers() -> None:
    row = struct_schema([("a", INT32), ("b", OPTIONAL_STRING), ("c", decimal_schema(2))])
    described, payload = written(
        row,
        Struct(row, {"a": 1, "c": Decimal("1.20")}),
        object_additional_properties="false",
        use_optional_for_nonrequired="true",
        decimal_format="numeric",
    )
    assert (described["additionalProperties"], described["required"]) == (False, ["a", "c"])
    assert payload == {"a": 1, "b": None, "c": 1.2}


FOUND = [
    ({"type": "integer"}, 1, INT64, 1),
    ({"type": "number"}, 1, FLOAT64, 1.0),
    ({"type": ["string", "null"]}, None, OPTIONAL_STRING, None),
    ({"type": "string", "enum": ["red", "blue"]}, "red", COLOURS, "red"),
    ({"allOf": [{"type": "string"}, {"enum": ["red", "blue"]}]}, "red", COLOURS, "red"),
    ({"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}}, 1, INT64, 1),
    ({"type": "string", "default": "x"}, "y", STRING.but(default="x"), "y"),
    (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"a": "b"},
        map_schema(STRING, STRING),
        {"a": "b"},
    ),
]


@pytest.mark.parametrize(("described", "payload", "schema", "value"), FOUND)
def test_schemas_of_others_have_the_schema_that_is_nearest(
    described: Any, payload: Any, schema: Schema, value: Any
) -> None:
    assert read_of(described, payload) == (schema, value)


def test_properties_that_are_not_required_may_be_missing_where_a_setting_says_so() -> None:
    described = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    found = read_of(described, {"a": 1}, use_optional_for_nonrequired="true")
    assert found.schema == struct_schema([("a", INT64), ("b", OPTIONAL_INT64)])
    with pytest.raises(DataException, match="Invalid null value for required INT64 field"):
        read_of(described, {"a": 1})


def test_what_is_one_of_several_is_a_union_and_written_again() -> None:
    branches = [{"type": "null"}, {"type": "integer", INDEX: 0}, {"type": "string", INDEX: 1}]
    union = struct_schema([(f"{ONE_OF}.field.0", OPTIONAL_INT64), (f"{ONE_OF}.field.1", OPTIONAL_STRING)], name=ONE_OF)
    described = {"type": "object", "properties": {"a": {"oneOf": branches, INDEX: 0}}}
    row = struct_schema([("a", union.but(optional=True))])
    found = read_of(described, {"a": "x"})
    value = Struct.of(row, [Struct.of(row.fields[0].schema, [None, "x"])])
    assert found == SchemaAndValue(row, value)
    again, payload = written(row, value)
    assert payload == {"a": "x"}
    assert [each.get("type") for each in again["properties"]["a"]["oneOf"]] == ["null", "integer", "string"]


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({}, "without a type"),
        ({"type": "array"}, "did not specify the items type"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"type": "object", "properties": {"a": True}}, "says nothing of a type"),
        ({"type": "integer", KIND: "int128"}, "Unsupported type int128"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
    ],
)
def test_what_connect_has_no_schema_for_is_refused_with_the_reason(described: Any, reason: str) -> None:
    with pytest.raises(DataException, match=reason):
        read_of(described, {"a": {}})


@pytest.mark.parametrize(
    ("described", "payload"), [({"type": "integer"}, 1 << 70), ({"type": "integer"}, "1"), ({"type": "string"}, 1)]
)
def test_a_value_that_is_not_of_its_schema_is_refused(described: Any, payload: Any) -> None:
    with pytest.raises(DataException, match="Invalid"):
        read_of(described, payload)


def test_values_are_checked_against_the_schema_where_a_setting_says_so() -> None:
    described = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 5}}}
    assert read_of(described, {"a": 9}).value["a"] == 9
    with pytest.raises(DataException, match="9 is greater than the maximum of 5"):
        read_of(described, {"a": 9}, json_fail_invalid_schema="true")


@given(rows())
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
def test_what_is_written_comes_back_with_its_schema(row: tuple[Schema, Struct]) -> None:
    ours = converter()
    assert ours.read("t", ours.write("t", SchemaAndValue(*row))) == row
