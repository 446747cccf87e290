"""Validation at the broker: records without the schema of their subject are refused, or become dead letters."""

import json
import signal
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp

from ottla.protocol.records import NewRecord, build_batch
from ottla.testing import Cluster
from tests.support.nodes import Ottla
from tests.support.requests import (
    NAMED_PRODUCE,
    NOON,
    create_topic,
    fetch,
    list_offset,
    produce,
    produce_request,
    producer_id,
    records_in,
)
from tests.support.scripted_registry import ScriptedRegistry
from tests.support.wire import Wire, connections

REQUEST_TIMED_OUT = 7
INVALID_RECORD = 87
VALUES = {"confluent.value.schema.validation": "true"}
DEEP = VALUES | {"ottla.schema.validation.depth": "payload"}

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; } message Other { string x = 1; }'


@pytest.fixture(scope="module")
def registry() -> Iterator[ScriptedRegistry]:
    with ScriptedRegistry() as registry:
        yield registry


@pytest.fixture(scope="module")
def broker(registry: ScriptedRegistry) -> Iterator[Cluster]:
    with Cluster(confluent_schema_registry_url=registry.url, confluent_missing_id_cache_ttl_sec=0) as kafka:
        yield kafka


@pytest.fixture
def wire(broker: Cluster) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


@pytest.fixture(autouse=True)
def known(registry: ScriptedRegistry, topic: str) -> None:
    registry.answers.clear()
    registry.broken = False
    registry.register(1, f"{topic}-value", "elsewhere-value", schema=json.dumps(ORDER))
    registry.register(2, "elsewhere-value", schema='"string"')


def named(schema_id: int, payload: bytes = b"x") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def order(**members: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, ORDER, members)
    return out.getvalue()


def sent(
    wire: Wire, topic: str, *values: bytes | None, key: bytes | None = None, codec: int = 0, headers: Any = ()
) -> Any:
    batch = build_batch([NewRecord(key, value, NOON, headers) for value in values], codec=codec)
    return produce(wire, topic, bytes(batch))


def stored(wire: Wire, topic: str) -> list[bytes | None]:
    return [record.value for record in records_in(fetch(wire, topic).records)]


def errors(part: Any) -> list[tuple[int, str]]:
    return [(each.batch_index, each.batch_index_error_message) for each in part.record_errors]


def test_a_topic_that_does_not_ask_takes_everything(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic)
    registry.asked.clear()
    assert sent(wire, topic, b"anything", named(99)).error_code == 0
    assert registry.asked == []


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_records_of_the_subject_are_taken(wire: Wire, topic: str, codec: int) -> None:
    create_topic(wire, topic, configs=VALUES)
    part = sent(wire, topic, named(1), None, named(1, b"y"), codec=codec)
    assert (part.error_code, part.base_offset) == (0, 0)
    assert stored(wire, topic) == [named(1), None, named(1, b"y")]


def test_batches_that_come_at_the_same_time_are_each_kept(
    topic: str, registry: ScriptedRegistry, tmp_path: Path
) -> None:
    values = [named(1, b"%d" % number) for number in range(8)]
    with (
        Ottla(tmp_path / "node", extra={"confluent.schema.registry.url": registry.url}) as node,
        connections(node.bootstrap, len(values)) as wires,
    ):
        assert node.process is not None
        create_topic(wires[0], topic, configs=VALUES)
        for wire in wires:
            assert fetch(wire, topic).error_code == 0
        node.process.send_signal(signal.SIGSTOP)
        for wire, value in zip(wires, values, strict=True):
            batch = bytes(build_batch([NewRecord(None, value, NOON)]))
            wire.send(produce_request(topic, batch, version=NAMED_PRODUCE), NAMED_PRODUCE)
        node.process.send_signal(signal.SIGCONT)
        told = [wire.receive(0, NAMED_PRODUCE).responses[0].partition_responses[0].error_code for wire in wires]
        assert (told, sorted(filter(None, stored(wires[0], topic)))) == ([0] * len(values), values)


def test_others_are_refused_each_with_its_reason(wire: Wire, topic: str) -> None:
    """KIP-467: which records of a batch were at fault."""
    create_topic(wire, topic, configs=VALUES)
    part = sent(wire, topic, named(1), b"bare", named(2), named(99), b"")
    assert (part.error_code, part.base_offset) == (INVALID_RECORD, -1)
    told = dict(errors(part))
    assert sorted(told) == [1, 2, 3, 4]
    assert told[2] == f"the schema id 2 is not registered under the subject {topic}-value"
    assert told[3] == "the schema id 99 is not known to the schema registry"
    assert "names no schema" in told[1] == told[4]
    assert part.error_message.startswith("4 of 5 records: ")
    assert list_offset(wire, topic, -1).offset == 0


def test_a_schema_that_is_registered_afterwards_is_taken(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic, configs=VALUES)
    assert sent(wire, topic, named(5)).error_code == INVALID_RECORD
    registry.register(5, f"{topic}-value")
    assert sent(wire, topic, named(5)).error_code == 0


def test_what_is_known_is_not_asked_again(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic, configs=VALUES)
    registry.register(1_001, f"{topic}-value")
    sent(wire, topic, named(1_001))
    registry.asked.clear()
    assert sent(wire, topic, named(1_001)).error_code == 0
    assert registry.asked == []


def test_keys_are_validated_by_themselves(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic, configs={"confluent.key.schema.validation": "true"})
    registry.register(7, f"{topic}-key")
    assert sent(wire, topic, b"bare", key=named(7)).error_code == 0
    assert sent(wire, topic, b"bare").error_code == 0  # without a key
    assert sent(wire, topic, b"bare", key=named(1)).error_code == INVALID_RECORD


def test_a_guid_in_a_header_names_the_schema(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic, configs=DEEP)
    guid = bytes(range(16))
    registry.answers["/schemas/guids/00010203-0405-0607-0809-0a0b0c0d0e0f/ids"] = [{"context": ".", "id": 1}]
    header = (("__value_schema_id", b"\1" + guid),)
    assert sent(wire, topic, order(id=1, who="me"), headers=header).error_code == 0
    assert sent(wire, topic, b"\xff", headers=header).error_code == INVALID_RECORD


@pytest.mark.parametrize(
    ("strategy", "subject"), [("RecordNameStrategy", "shop.Order"), ("TopicRecordNameStrategy", "{topic}-shop.Order")]
)
def test_subjects_may_be_named_after_the_record(
    wire: Wire, topic: str, registry: ScriptedRegistry, strategy: str, subject: str
) -> None:
    create_topic(
        wire,
        topic,
        configs=VALUES
        | {"confluent.value.subject.name.strategy": f"io.confluent.kafka.serializers.subject.{strategy}"},
    )
    number = 30 + len(strategy)
    registry.register(number, subject.format(topic=topic), schema=json.dumps(ORDER))
    assert sent(wire, topic, named(number)).error_code == 0
    assert sent(wire, topic, named(1)).error_code == INVALID_RECORD


def test_payloads_are_decoded_where_a_topic_asks_for_it(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic, configs=DEEP)
    registry.register(
        41, f"{topic}-value", schema=json.dumps({"type": "object", "required": ["id"]}), schemaType="JSON"
    )
    registry.register(42, f"{topic}-value", schema=PROTO, schemaType="PROTOBUF")
    registry.register(43, f"{topic}-value", schema=json.dumps(ORDER))
    good = (
        named(43, order(id=1, who="me")),
        named(41, b'{"id": 1}'),
        named(42, b"\0\x08\x05"),
        named(42, b"\x02\x02\x0a\x01x"),
    )
    assert sent(wire, topic, *good).error_code == 0
    bad = (
        named(43, b"\xff\xff\xff"), named(43, order(id=1, who="me")[:-1]), named(41, b"{}"), named(41, b"no JSON"),
        named(42, b"\0\x08"), named(42, b"\x02\x08\x08\x01"), named(42, b"\x02\x01"),
    )  # fmt: skip
    part = sent(wire, topic, *good[:1], *bad)
    assert part.error_code == INVALID_RECORD
    assert [index for index, _ in errors(part)] == [1, 2, 3, 4, 5, 6, 7]


def test_payloads_may_be_of_schemas_that_refer_to_others(wire: Wire, topic: str, registry: ScriptedRegistry) -> None:
    create_topic(wire, topic, configs=DEEP)
    registry.answers["/subjects/a%2Fmoney/versions/3?deleted=true"] = {
        "schema": 'syntax = "proto3"; message Money { int64 cents = 1; }', "schemaType": "PROTOBUF",
    }  # fmt: skip
    registry.register(
        61,
        f"{topic}-value",
        schema='syntax = "proto3"; import "money.proto"; message Price { Money net = 1; }',
        schemaType="PROTOBUF",
        references=[{"name": "money.proto", "subject": "a/money", "version": 3}],
    )
    assert sent(wire, topic, named(61, b"\0\x0a\x02\x08\x05")).error_code == 0
    assert sent(wire, topic, named(61, b"\0\x0a\x02\x08")).error_code == INVALID_RECORD


def test_a_record_nested_without_end_does_not_harm_the_broker(
    wire: Wire, topic: str, registry: ScriptedRegistry
) -> None:
    create_topic(wire, topic, configs=DEEP)
    nested = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}
    registry.register(62, f"{topic}-value", schema=json.dumps(nested))
    part = sent(wire, topic, named(62, b"\2" * 500_000 + b"\0"))
    assert part.error_code == INVALID_RECORD
    assert sent(wire, topic, named(62, b"\2\2\0")).error_code == 0


def test_a_record_that_would_be_looked_at_for_days_is_refused_and_says_so(
    wire: Wire, topic: str, registry: ScriptedRegistry
) -> None:
    """Sixty levels of two alternatives, and thirty of two records of nothing."""
    create_topic(wire, topic, configs=DEEP)
    inner = {"properties": {"n": {"$ref": "#"}}}
    registry.register(
        63, f"{topic}-value", schema=json.dumps({"type": "object", "anyOf": [inner, inner]}), schemaType="JSON"
    )
    empty: Any = {"type": "record", "name": "R0", "fields": []}
    for level in range(1, 31):
        fields = [{"name": "a", "type": empty}, {"name": "b", "type": f"R{level - 1}"}]
        empty = {"type": "record", "name": f"R{level}", "fields": fields}
    registry.register(64, f"{topic}-value", schema=json.dumps(empty))
    part = sent(wire, topic, named(63, b'{"n":' * 60 + b"1" + b"}" * 60), named(64, b""), named(63, b'{"n":{}}'))
    assert part.error_code == INVALID_RECORD
    (first, deep), (second, empty_record) = errors(part)
    assert (first, second) == (0, 1)
    assert "too many alternatives" in deep and "too many values that have no bytes" in empty_record


def test_a_registry_that_cannot_be_asked_says_nothing_against_a_record(
    wire: Wire, topic: str, registry: ScriptedRegistry
) -> None:
    """The producer tries again, as after any timeout."""
    create_topic(wire, topic, configs=VALUES)
    registry.broken = True
    part = sent(wire, topic, named(51))
    assert (part.error_code, "answers 500" in part.error_message) == (REQUEST_TIMED_OUT, True)
    registry.broken = False
    registry.register(51, f"{topic}-value")
    assert sent(wire, topic, named(51)).error_code == 0


def test_bad_records_become_dead_letters_and_the_others_are_stored(wire: Wire, topic: str) -> None:
    dead = f"{topic}-dead"
    create_topic(wire, dead)
    create_topic(wire, topic, configs=VALUES | {"ottla.schema.validation.dead.letter.topic": dead})
    part = sent(wire, topic, b"bad", named(1, b"a"), named(2), named(1, b"b"), key=b"k")
    assert (part.error_code, part.base_offset) == (0, 0)
    kept = records_in(fetch(wire, topic).records)
    assert [(record.offset, record.value) for record in kept] == [(1, named(1, b"a")), (3, named(1, b"b"))]
    letters = records_in(fetch(wire, dead).records)
    assert [(record.key, record.value) for record in letters] == [(b"k", b"bad"), (b"k", named(2))]
    assert [dict(record.headers)["__connect.errors.topic"] for record in letters] == [topic.encode()] * 2
    assert b"is not registered" in (dict(letters[1].headers)["__connect.errors.exception.message"] or b"")
    assert sent(wire, topic, b"bad").error_code == 0
    assert list_offset(wire, topic, -1).offset == 5
    assert sent(wire, topic, named(1, b"c")).base_offset == 5
    assert stored(wire, topic) == [named(1, b"a"), named(1, b"b"), named(1, b"c")]


def test_an_idempotent_producer_keeps_its_sequence_when_records_are_taken_away(wire: Wire, topic: str) -> None:
    dead = f"{topic}-dead"
    create_topic(wire, dead)
    create_topic(wire, topic, configs=VALUES | {"ottla.schema.validation.dead.letter.topic": dead})
    number, epoch = producer_id(wire)
    for sequence, values in ((0, (named(1), b"bad")), (2, (b"bad",)), (3, (named(1),)), (3, (named(1),))):
        batch = build_batch(
            [NewRecord(None, value, NOON) for value in values],
            producer_id=number,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        assert produce(wire, topic, bytes(batch)).error_code == 0
    assert list_offset(wire, topic, -1).offset == 4
    assert stored(wire, topic) == [named(1), named(1)]


def test_without_the_dead_letter_topic_nothing_is_lost(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs=VALUES | {"ottla.schema.validation.dead.letter.topic": "nowhere"})
    part = sent(wire, topic, b"bad")
    assert (part.error_code, "no such topic" in part.error_message) == (REQUEST_TIMED_OUT, True)


def test_a_topic_that_is_its_own_dead_letter_topic_refuses(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs=VALUES | {"ottla.schema.validation.dead.letter.topic": topic})
    assert sent(wire, topic, b"bad").error_code in (INVALID_RECORD, REQUEST_TIMED_OUT)


def test_a_damaged_batch_is_told_as_always(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs=VALUES)
    batch = build_batch([NewRecord(None, named(1), NOON)])
    batch[-1] ^= 1
    assert produce(wire, topic, bytes(batch)).error_code == 2


def test_a_client_is_told_which_record_and_why(broker: Cluster, wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs=VALUES)
    told: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    producer.produce(topic, b"bare", on_delivery=lambda error, _: told.append(error))
    producer.flush()
    assert [error.name() for error in told] == ["INVALID_RECORD"] and isinstance(KafkaException(told[0]), Exception)


def test_several_partitions_in_one_request_are_judged_each(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic, partitions=2, configs=VALUES)
    good, bad = (bytes(build_batch([NewRecord(None, value, NOON)])) for value in (named(1), b"bare"))
    request = produce_request(topic_id, good)
    request.topic_data[0].partition_data += produce_request(topic_id, bad, partition=1).topic_data[0].partition_data
    answer = wire.ask(request)
    assert [part.error_code for part in answer.responses[0].partition_responses] == [0, INVALID_RECORD]


def test_confluents_serializers_pass_with_the_registry_of_the_house(topic: str) -> None:
    with Cluster(registry=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create_topic(wire, topic, configs=DEEP)
        with SchemaRegistryClient({"url": kafka.schema_registry_url}) as client:
            at = SerializationContext(topic, MessageField.VALUE)
            conf = {"use.deprecated.format": False, "skip.known.types": True}
            good = ProtobufSerializer(Timestamp, client, conf)(Timestamp(seconds=5), at)
            assert good is not None
            elsewhere = AvroSerializer(client, json.dumps(ORDER))(
                {"id": 1, "who": "me"}, SerializationContext("elsewhere", MessageField.VALUE)
            )
        assert sent(wire, topic, good).error_code == 0
        assert sent(wire, topic, elsewhere).error_code == INVALID_RECORD
        assert sent(wire, topic, good[:-1]).error_code == INVALID_RECORD
        kafka.restart(1)
        with Wire(kafka.bootstrap_servers) as anew:  # a node that has come since knows the registry as well
            assert sent(anew, topic, good).error_code == 0
