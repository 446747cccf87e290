"""Confluent's serializers of all three languages over our registry: references, contexts, who may not register."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ottla.registry.languages import LANGUAGES
from ottla.testing import Cluster
from tests.support.registries import Registry

ORDER = {"id": "plums", "cents": 250}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}],
    }
)
JSON = json.dumps(
    {
        "title": "shop.Order",
        "type": "object",
        "properties": {"id": {"type": "string"}, "cents": {"type": "integer"}},
    }
)
File = descriptor_pb2.FileDescriptorProto
Field = descriptor_pb2.FieldDescriptorProto


def file_of(message: str, *fields: Field, imports: tuple[str, ...] = ()) -> File:
    """`message` in package shop, in a file of its name."""
    file = File(name=f"{message.lower()}.proto", package="shop", syntax="proto3", dependency=imports)
    file.message_type.add(name=message, field=fields)
    return file


def field(number: int, name: str, kind: "Field.Type.ValueType", of: str | None = None) -> Field:
    return Field(name=name, number=number, type=kind, label=Field.LABEL_OPTIONAL, type_name=of)


POOL = descriptor_pool.DescriptorPool()
POOL.Add(file_of("Order", field(1, "id", Field.TYPE_STRING), field(2, "cents", Field.TYPE_INT64)))
POOL.Add(file_of("Basket", field(1, "order", Field.TYPE_MESSAGE, ".shop.Order"), imports=("order.proto",)))
Order: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName("shop.Order"))
Basket: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName("shop.Basket"))


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with (
        Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as cluster,
        Registry(cluster.bootstrap_servers, languages=LANGUAGES) as started,
    ):
        yield started


@pytest.fixture
def theirs(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as made:
        yield made


def avro(client: SchemaRegistryClient, conf: dict[str, Any]) -> tuple[Any, Any]:
    return AvroSerializer(client, AVRO, conf=conf), AvroDeserializer(client)


def json_schema(client: SchemaRegistryClient, conf: dict[str, Any]) -> tuple[Any, Any]:
    return JSONSerializer(JSON, client, conf=conf), JSONDeserializer(None, schema_registry_client=client)


def protobuf(client: SchemaRegistryClient, conf: dict[str, Any]) -> tuple[Any, Any]:
    serializer = ProtobufSerializer(Order, client, conf=conf)
    deserializer = ProtobufDeserializer(Order, {}, client)

    def write(value: dict[str, Any], at: SerializationContext) -> bytes:
        data: bytes = serializer(Order(**value), at)
        return data

    def read(data: bytes, at: SerializationContext) -> dict[str, Any]:
        found: Any = deserializer(data, at)
        return {"id": found.id, "cents": found.cents}

    return write, read


Making = Callable[[SchemaRegistryClient, dict[str, Any]], tuple[Any, Any]]
LANGUAGES_OF = pytest.mark.parametrize("language", [avro, json_schema, protobuf])


def at(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


@LANGUAGES_OF
def test_who_may_not_register_uses_what_is_there(language: Making, theirs: SchemaRegistryClient) -> None:
    place = at(f"there-{language.__name__}")
    write, _ = language(theirs, {"auto.register.schemas": False})
    with pytest.raises(Exception, match="404"):
        write(ORDER, place)
    language(theirs, {})[0](ORDER, place)
    write, read = language(theirs, {"auto.register.schemas": False, "use.latest.version": True})
    assert read(write(ORDER, place), place) == ORDER


@LANGUAGES_OF
def test_a_context_in_the_address_has_ids_of_its_own(language: Making, registry: Registry) -> None:
    context = f".{language.__name__}"
    with SchemaRegistryClient({"url": f"{registry.url}/contexts/{context}"}) as client:
        write, read = language(client, {})
        place = at("orders")
        data = write(ORDER, place)
        assert data[:5] == b"\0\0\0\0\1"
        assert read(data, place) == ORDER
        assert client.get_subjects() == [f":{context}:orders-value"]
    assert registry.ask("GET", "/subjects/orders-value/versions")[0] == 404


def test_protobuf_registers_what_it_imports_as_a_reference(theirs: SchemaRegistryClient) -> None:
    place = at("baskets")
    data = ProtobufSerializer(Basket, theirs)(Basket(order=Order(**ORDER)), place)
    latest = theirs.get_latest_version("baskets-value")
    assert latest.schema is not None
    assert latest.schema.references == [SchemaReference("order.proto", "order.proto", 1)]
    found: Any = ProtobufDeserializer(Basket, {}, theirs)(data, place)
    assert (found.order.id, found.order.cents) == ("plums", 250)
    assert theirs.get_referenced_by("order.proto", 1) == [latest.schema_id]
    with pytest.raises(SchemaRegistryError) as refused:
        theirs.delete_version("order.proto", 1)
    assert refused.value.error_code == 42206


def test_json_schema_follows_references(theirs: SchemaRegistryClient) -> None:
    theirs.register_schema("order.json", Schema(JSON, "JSON"))
    text = json.dumps({"title": "Basket", "type": "object", "properties": {"order": {"$ref": "order.json"}}})
    schema = Schema(text, "JSON", references=[SchemaReference("order.json", "order.json", 1)])
    place = at("json-baskets")
    data = JSONSerializer(schema, theirs)({"order": ORDER}, place)
    assert JSONDeserializer(schema, schema_registry_client=theirs)(data, place) == {"order": ORDER}
    with pytest.raises(Exception, match="is not of type 'string'"):
        JSONSerializer(schema, theirs)({"order": {"id": 1}}, place)


@LANGUAGES_OF
def test_what_does_not_fit_is_refused_before_it_is_written(language: Making, theirs: SchemaRegistryClient) -> None:
    place = at(f"refused-{language.__name__}")
    language(theirs, {})[0](ORDER, place)
    proto = 'syntax = "proto3"; package shop; message Order { string id = 1; bytes cents = 2; }'
    other = {
        "avro": Schema(AVRO.replace('"long"', '"string"'), "AVRO"),
        "json_schema": Schema(JSON.replace('"integer"', '"boolean"'), "JSON"),
        "protobuf": Schema(proto, "PROTOBUF"),
    }[language.__name__]
    with pytest.raises(SchemaRegistryError) as refused:
        theirs.register_schema(f"{place.topic}-value", other)
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
