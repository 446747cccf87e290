"""Connect's converters and Confluent's serializers over our registry: what one writes the other reads."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from ottla.connect.converters.avro import AvroConverter
from ottla.connect.converters.json_schema import JsonSchemaConverter
from ottla.connect.converters.protobuf import ProtobufConverter
from ottla.connect.converters.registered import RegisteredConverter
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.logical import DATE, TIMESTAMP, decimal_schema
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import INT8, INT64, OPTIONAL_STRING, STRING, array_schema, map_schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant
from ottla.registry.client import RegistryClient
from ottla.registry.languages import LANGUAGES
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.protobuf import Protobuf
from ottla.testing import Cluster
from tests.support.registries import Registry

ITEM = struct_schema([("name", STRING), ("grams", INT8)], name="shop.Item")
ORDER = struct_schema(
    [
        ("id", INT64),
        ("note", OPTIONAL_STRING),
        ("price", decimal_schema(2)),
        ("day", DATE),
        ("at", TIMESTAMP),
        ("items", array_schema(ITEM)),
        ("tags", map_schema(STRING, STRING)),
    ],
    name="shop.Order",
)
PLUM = Struct(ITEM, {"name": "plum", "grams": 40})
VALUE = Struct(
    ORDER,
    {
        "id": 1 << 40,
        "price": Decimal("2.50"),
        "day": Instant(86_400_000 * 20_000),
        "at": Instant(1_700_000_000_123),
        "items": [PLUM],
        "tags": {"a": "b"},
    },
)
HEADERS = "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"
IDS = pytest.mark.parametrize("ids", ["PrefixSchemaIdSerializer", HEADERS])


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with (
        Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as cluster,
        Registry(cluster.bootstrap_servers, languages=LANGUAGES) as started,
    ):
        yield started


@pytest.fixture
def theirs(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def asked(registry: Registry) -> Iterator[RegistryClient]:
    made = RegistryClient(registry.url)
    yield made
    made.close()


def made(kind: type[RegisteredConverter], client: RegistryClient, ids: str, **given: str) -> RegisteredConverter:
    return kind({"schema.registry.url": "http://x", "value.schema.id.serializer": ids, **given}, "value", client)


def written(converter: RegisteredConverter, topic: str) -> tuple[bytes, SerializationContext]:
    headers: Any = []
    (data,) = converter.from_connect(topic, [SchemaAndValue(ORDER, VALUE)], [headers])
    assert isinstance(data, bytes), data
    return data, SerializationContext(topic, MessageField.VALUE, headers)


def read(converter: RegisteredConverter, data: bytes, at: SerializationContext) -> Struct:
    (found,) = converter.to_connect(at.topic, [data], [cast(Any, at.headers or [])])
    assert not isinstance(found, ConnectException), found
    value: Struct = found.value
    return value


def conf(ids: str) -> dict[str, Any]:
    return {"schema.id.serializer": header_schema_id_serializer} if ids == HEADERS else {}


@IDS
def test_avro(asked: RegistryClient, theirs: SchemaRegistryClient, ids: str) -> None:
    ours = made(AvroConverter, asked, ids)
    data, at = written(ours, f"avro-{ids[-10:]}")
    found: Any = AvroDeserializer(theirs)(data, at)
    assert (found["id"], found["price"], found["items"]) == (1 << 40, Decimal("2.50"), [{"name": "plum", "grams": 40}])
    assert found["at"].timestamp() == 1_700_000_000.123
    at = SerializationContext(at.topic, MessageField.VALUE, [])
    text = theirs.get_latest_version(f"{at.topic}-value").schema.schema_str
    again = AvroSerializer(theirs, text, conf=conf(ids))(found, at)
    assert read(ours, again, at) == VALUE


@IDS
def test_json_schema(asked: RegistryClient, theirs: SchemaRegistryClient, ids: str) -> None:
    ours = made(JsonSchemaConverter, asked, ids, **{"decimal.format": "NUMERIC", "json.fail.invalid.schema": "true"})
    data, at = written(ours, f"json-{ids[-10:]}")
    found: Any = JSONDeserializer(None, schema_registry_client=theirs)(data, at)  # it checks against the schema
    assert (found["id"], found["price"], found["at"]) == (1 << 40, 2.5, 1_700_000_000_123)
    at = SerializationContext(at.topic, MessageField.VALUE, [])
    text = theirs.get_latest_version(f"{at.topic}-value").schema.schema_str
    assert text is not None and json.loads(text)["title"] == "shop.Order"
    again = JSONSerializer(text, theirs, conf=conf(ids))(found, at)
    assert again is not None
    assert read(ours, again, at)["items"] == [PLUM]


@IDS
def test_protobuf(asked: RegistryClient, theirs: SchemaRegistryClient, ids: str) -> None:
    ours = made(ProtobufConverter, asked, ids, **{"optional.for.nullables": "true"})
    data, at = written(ours, f"proto-{ids[-10:]}")
    text = theirs.get_latest_version(f"{at.topic}-value").schema.schema_str
    assert text is not None
    schema = Protobuf().parse(text, (), Budget(DEFAULT_STEPS), new=True)
    order: Any = GetMessageClass(schema.pool().FindMessageTypeByName("shop.Order"))
    found: Any = ProtobufDeserializer(order, {"use.deprecated.format": False}, theirs)(data, at)
    assert (found.id, found.items[0].name, found.day.year, dict(found.tags)) == (1 << 40, "plum", 2024, {"a": "b"})
    assert (found.HasField("note"), found.at.ToMilliseconds()) == (False, 1_700_000_000_123)
    at = SerializationContext(f"{at.topic}-theirs", MessageField.VALUE, [])
    again = ProtobufSerializer(order, theirs, {"use.deprecated.format": False, **conf(ids)})(found, at)
    back = read(ours, again, at)
    assert (back["id"], back["note"], back["price"], back["at"]) == (1 << 40, None, Decimal("2.50"), VALUE["at"])
    assert back["items"][0].values == ["plum", 40]
