"""What the converters by schemas of a registry share: subjects, where the id goes, whose schema is written with."""

import json
from typing import Any

import pytest

from ottla.connect.converters.avro import AvroConverter
from ottla.connect.converters.json_schema import JsonSchemaConverter
from ottla.connect.converters.protobuf import ProtobufConverter
from ottla.connect.converters.registered import RegisteredConverter
from ottla.connect.data.errors import ConnectException, DataException
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import INT32, OPTIONAL_STRING, STRING, Schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.definitions import ConfigError
from ottla.registry.client import RegistryClient
from ottla.registry.in_memory import MemoryRegistry

ORDER = struct_schema([("id", STRING), ("pieces", INT32)], name="shop.Order")
PLUMS = SchemaAndValue(ORDER, Struct(ORDER, {"id": "plums", "pieces": 7}))
HEADERS = "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"
ALL = pytest.mark.parametrize("kind", [AvroConverter, JsonSchemaConverter, ProtobufConverter])
Kind = type[RegisteredConverter]


def made(kind: Kind, registry: MemoryRegistry, role: Any = "value", **given: str) -> RegisteredConverter:
    texts = {key.replace("_", "."): value for key, value in given.items()}
    return kind({"schema.registry.url": "http://127.0.0.1:1", **texts}, role, registry)


def written(converter: RegisteredConverter, given: SchemaAndValue, topic: str = "orders") -> bytes:
    (data,) = converter.from_connect(topic, [given])
    assert isinstance(data, bytes), data
    return data


@ALL
@pytest.mark.parametrize(
    ("role", "strategy", "subject"),
    [
        ("value", "io.confluent.kafka.serializers.subject.TopicNameStrategy", "orders-value"),
        ("key", "TopicNameStrategy", "orders-key"),
        ("value", "io.confluent.kafka.serializers.subject.RecordNameStrategy", "shop.Order"),
        ("value", "TopicRecordNameStrategy", "orders-shop.Order"),
    ],
)
def test_every_strategy_names_its_subject(kind: Kind, role: str, strategy: str, subject: str) -> None:
    registry = MemoryRegistry()
    written(made(kind, registry, role, **{f"{role}.subject.name.strategy": strategy}), PLUMS)
    assert list(registry.subjects) == [subject]


@ALL
def test_a_strategy_by_records_wants_records(kind: Kind) -> None:
    converter = made(kind, MemoryRegistry(), value_subject_name_strategy="RecordNameStrategy")
    if kind is ProtobufConverter:  # whose scalars are messages of Google's
        return
    with pytest.raises(DataException, match="has to be a record"):
        converter.write("orders", SchemaAndValue(STRING, "x"))


@ALL
def test_settings_that_are_none_are_refused_by_name(kind: Kind) -> None:
    for name, wrong in [("value.subject.name.strategy", "MyStrategy"), ("value.schema.id.serializer", "Mine")]:
        with pytest.raises(ConfigError, match=name):
            made(kind, MemoryRegistry(), **{name: wrong})


@ALL
def test_a_guid_in_a_header_stands_for_the_schema_and_the_payload_is_bare(kind: Kind) -> None:
    registry = MemoryRegistry()
    converter = made(kind, registry, **{"value.schema.id.serializer": HEADERS})
    headers: list[tuple[str, bytes | None]] = [("trace", b"1")]
    (data,) = converter.from_connect("orders", [PLUMS], [headers])
    assert isinstance(data, bytes) and data[:1] != b"\0"
    assert [name for name, _ in headers] == ["trace", "__value_schema_id"]
    (found,) = converter.to_connect("orders", [data], [headers])
    assert not isinstance(found, ConnectException)
    assert found.value["pieces"] == 7
    assert f"guid {registry.schemas[0].guid}" in registry.asked


@ALL
def test_nothing_is_registered_where_that_is_not_wanted(kind: Kind) -> None:
    registry = MemoryRegistry()
    with pytest.raises(DataException, match="Schema not found"):
        made(kind, registry, auto_register_schemas="false").write("orders", PLUMS)
    data = made(kind, registry).write("orders", PLUMS)
    assert made(kind, registry, auto_register_schemas="false").write("orders", PLUMS) == data


LATEST: dict[Kind, tuple[Any, str]] = {
    AvroConverter: (
        "AVRO",
        json.dumps(
            {
                "type": "record",
                "name": "shop.Order",
                "fields": [
                    {"name": "pieces", "type": "int"},
                    {"name": "note", "type": ["null", "string"], "default": None},
                    {"name": "id", "type": "string"},
                ],
            }
        ),
    ),
    JsonSchemaConverter: (
        "JSON",
        json.dumps({"type": "object", "title": "shop.Order", "properties": {"id": {"type": "string"}}}),
    ),
    ProtobufConverter: (
        "PROTOBUF",
        'syntax = "proto3"; package shop; message Order { int32 pieces = 4; string note = 2; string id = 3; }',
    ),
}


@ALL
def test_with_the_latest_version_bytes_are_of_that_schema(kind: Kind) -> None:
    registry = MemoryRegistry()
    registry.register("orders-value", *LATEST[kind])
    converter = made(kind, registry, use_latest_version="true", latest_compatibility_strict="false")
    found = converter.read("orders", converter.write("orders", PLUMS))
    assert len(registry.schemas) == 1
    assert found.value["id"] == "plums"


@ALL
def test_a_latest_version_that_cannot_read_the_value_is_told(kind: Kind) -> None:
    registry = MemoryRegistry()
    other = struct_schema([("id", INT32), ("needed", struct_schema([("a", INT32)], name="shop.In"))], name="shop.Order")
    inner = Struct(other.fields[1].schema, {"a": 1})
    made(kind, registry).write("orders", SchemaAndValue(other, Struct(other, {"id": 1, "needed": inner})))
    with pytest.raises(DataException, match=r"latest\.compatibility\.strict=false"):
        made(kind, registry, use_latest_version="true").write("orders", PLUMS)


@ALL
def test_a_schema_of_another_language_is_told(kind: Kind) -> None:
    registry = MemoryRegistry()
    another = AvroConverter if kind is not AvroConverter else JsonSchemaConverter
    data = made(another, registry).write("orders", PLUMS)
    with pytest.raises(DataException, match="not of"):
        made(kind, registry).read("orders", data)


@ALL
def test_a_tombstone_stays_one(kind: Kind) -> None:
    converter = made(kind, MemoryRegistry())
    nothing: list[tuple[Schema | None, None]] = [
        (None, None),
        (OPTIONAL_STRING, None),
        (ORDER.but(optional=True), None),
    ]
    for schema, value in nothing:
        assert converter.write("orders", SchemaAndValue(schema, value)) is None
    assert converter.read("orders", None) == (None, None)


@ALL
def test_normalized_schemas_are_looked_up_as_such(kind: Kind) -> None:
    registry = MemoryRegistry()
    data = made(kind, registry, normalize_schemas="true").write("orders", PLUMS)
    found = made(kind, registry).read("orders", data)
    assert (found.value["id"], found.value["pieces"]) == ("plums", 7)


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ({}, ("", "")),
        ({"schema.registry.url": "http://me:p%40ss@127.0.0.1:1"}, ("me", "p@ss")),
        ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "me:a:b"}, ("me", "a:b")),
        ({"schema.registry.basic.auth.user.info": "me:pass"}, ("me", "pass")),
    ],
)
def test_name_and_password_are_found_where_confluents_converters_find_them(
    given: dict[str, str], login: tuple[str, str]
) -> None:
    converter = JsonSchemaConverter({"schema.registry.url": "http://127.0.0.1:1", **given}, "value")
    asked = converter._registry
    assert isinstance(asked, RegistryClient)
    assert (asked._settings.user, asked._settings.password) == login
