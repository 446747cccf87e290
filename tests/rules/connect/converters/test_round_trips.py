"""What a converter writes it reads again: random schemas and values."""

from typing import Any

from hypothesis import given, settings

from ottla.connect.converters.avro import AvroConverter
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.registry.in_memory import MemoryRegistry
from tests.support.connect_values import rows, schemas_with_values

JSON = JsonConverter({}, "value")
NUMERIC = JsonConverter({"decimal.format": "NUMERIC"}, "value")
URL = {"schema.registry.url": "http://127.0.0.1:1"}


@given(schemas_with_values())
@settings(max_examples=60, deadline=None)
def test_json_in_an_envelope_comes_back_with_its_schema(given_: tuple[Schema, Any]) -> None:
    schema, value = given_
    data = JSON.write("t", SchemaAndValue(schema, value))
    assert JSON.read("t", data) == (schema, value)


@given(rows())
@settings(max_examples=30, deadline=None)
def test_decimals_as_numbers_keep_every_digit(row: tuple[Schema, Struct]) -> None:
    assert NUMERIC.read("t", NUMERIC.write("t", SchemaAndValue(*row))) == row


@given(rows())
@settings(max_examples=60, deadline=None)
def test_avro_comes_back_with_its_schema(row: tuple[Schema, Struct]) -> None:
    converter = AvroConverter(URL, "value", MemoryRegistry())
    [data] = converter.from_connect("t", [SchemaAndValue(*row)])
    assert converter.to_connect("t", [data]) == [row]  # type: ignore[list-item]
