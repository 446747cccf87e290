"""Our serdes and Confluent's over our registry: what one writes the other reads, in both wire formats."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from ottla.registry.client import RegistryClient, RegistryRefused
from ottla.registry.languages import LANGUAGES
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.protobuf import Protobuf
from ottla.serdes.by_name import Serdes
from ottla.testing import Cluster
from tests.support.registries import Registry

MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "price", "type": ["null", "double"], "default": None}],
}
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "none"}]}
IDS = ["payload", "header"]


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with (
        Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as cluster,
        Registry(cluster.bootstrap_servers, languages=LANGUAGES) as started,
    ):
        yield started


@pytest.fixture
def ours(registry: Registry) -> Iterator[RegistryClient]:
    client = RegistryClient(registry.url)
    yield client
    client.close()


@pytest.fixture
def theirs(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def place(topic: str) -> tuple[SerializationContext, list[tuple[str, Any]]]:
    """Where a record is serialized, and the headers that it gets there."""
    headers: list[tuple[str, Any]] = []
    return SerializationContext(topic, MessageField.VALUE, headers), headers


@pytest.mark.parametrize("ids", IDS)
def test_confluents_serializer_is_read_by_ours_into_an_evolved_schema(
    ours: RegistryClient, theirs: SchemaRegistryClient, ids: Any
) -> None:
    more = {"schema.id.serializer": header_schema_id_serializer} if ids == "header" else {}
    serializer = AvroSerializer(theirs, json.dumps(ORDER), conf=more)
    at, headers = place(f"read-{ids}")
    data = serializer({"id": "a", "price": 1.5}, at)
    assert bool(headers) == (ids == "header")
    found = Serdes.avro(ours, WIDER).decode_from(data, at.topic, headers)
    assert found == {"id": "a", "price": 1.5, "note": "none"}


@pytest.mark.parametrize("ids", IDS)
def test_ours_is_read_by_confluents_deserializer(ours: RegistryClient, theirs: SchemaRegistryClient, ids: Any) -> None:
    at, headers = place(f"written-{ids}")
    value = {"id": "longer", "price": None}  # theirs refuses payloads of 5 bytes, though the id is in a header
    data = Serdes.avro(ours, ORDER, ids=ids).encode_for(value, at.topic, headers)
    assert bool(headers) == (ids == "header")
    assert AvroDeserializer(theirs)(data, at) == value
    assert theirs.get_latest_version(f"{at.topic}-value").version == 1


def test_bytes_are_the_same(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    at, _ = place("same")
    value = {"id": "é", "price": 2.5}
    assert Serdes.avro(ours, ORDER).encode_for(value, "same", []) == AvroSerializer(theirs, json.dumps(ORDER))(
        value, at
    )


def test_references_are_followed(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    theirs.register_schema("money", Schema(json.dumps(MONEY), "AVRO"))
    priced = {"type": "record", "name": "shop.Priced", "fields": [{"name": "price", "type": "Money"}]}
    reference = SchemaReference("shop.Money", "money", 1)
    theirs.register_schema("priced-value", Schema(json.dumps(priced), "AVRO", [reference]))
    serde = Serdes.avro(ours, subject="priced-value")
    at, headers = place("priced")
    data = serde.encode_for({"price": {"cents": 5}}, at.topic, headers)
    assert serde.decode_from(data, at.topic, headers) == {"price": {"cents": 5}}
    assert AvroDeserializer(theirs)(data, at) == {"price": {"cents": 5}}


def test_what_the_registry_refuses_is_told_in_its_words(ours: RegistryClient) -> None:
    ours.register("strict", "AVRO", json.dumps(ORDER))
    more = {**ORDER, "fields": [*ORDER["fields"], {"name": "new", "type": "int"}]}
    with pytest.raises(RegistryRefused, match="READER_FIELD_MISSING_DEFAULT_VALUE") as refused:
        ours.register("strict", "AVRO", json.dumps(more))
    assert refused.value.code == 40901
    with pytest.raises(RegistryRefused) as unknown:
        ours.by_id(999)
    assert unknown.value.code == 40403


@pytest.mark.parametrize("ids", IDS)
def test_json_schema_is_read_by_the_other_in_both_directions(
    ours: RegistryClient, theirs: SchemaRegistryClient, ids: Any
) -> None:
    schema = {"title": "Order", "type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}}
    value = {"id": "longer", "size": 5}
    serde = Serdes.json_schema(ours, schema, ids=ids)
    at, headers = place(f"json-ours-{ids}")
    assert (
        JSONDeserializer(None, schema_registry_client=theirs)(serde.encode_for(value, at.topic, headers), at) == value
    )
    more = {"schema.id.serializer": header_schema_id_serializer} if ids == "header" else {}
    at, headers = place(f"json-theirs-{ids}")
    data = JSONSerializer(json.dumps(schema), theirs, conf=more)(value, at)
    assert serde.decode_from(data, at.topic, headers) == value


PROTO = 'syntax = "proto3"; package shop; message First {} message Order { string id = 1; int32 size = 2; }'


@pytest.mark.parametrize("ids", IDS)
def test_protobuf_is_read_by_the_other_in_both_directions(
    ours: RegistryClient, theirs: SchemaRegistryClient, ids: Any
) -> None:
    schema = Protobuf().parse(PROTO, (), Budget(DEFAULT_STEPS), new=True)
    order = GetMessageClass(schema.pool().FindMessageTypeByName("shop.Order"))
    value = {"id": "longer", "size": 5}
    serde = Serdes.protobuf(ours, PROTO, message="shop.Order", ids=ids)
    at, headers = place(f"proto-ours-{ids}")
    data = serde.encode_for(value, at.topic, headers)
    read = ProtobufDeserializer(order, {"use.deprecated.format": False}, theirs)(data, at)
    assert (read.id, read.size) == ("longer", 5)
    more = {"schema.id.serializer": header_schema_id_serializer} if ids == "header" else {}
    at, headers = place(f"proto-theirs-{ids}")
    data = ProtobufSerializer(order, theirs, {"use.deprecated.format": False, **more})(order(**value), at)
    assert serde.decode_from(data, at.topic, headers) == value
    assert Serdes.protobuf(ours).decode_from(data, at.topic, headers) == value
