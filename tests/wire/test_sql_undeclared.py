"""The SQL server and topics that nobody declared: columns by the registry, else by what lies in them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla.registry.client import RegistryClient
from ottla.registry.languages import LANGUAGES
from tests.support.registries import Registry
from tests.support.sql_servers import SqlServer, unique

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
    }
)


@pytest.fixture(scope="module")
def registry(bootstrap: str) -> Iterator[Registry]:
    with Registry(bootstrap, {"kafkastore.topic": unique("_schemas")}, LANGUAGES) as running:
        yield running


@pytest.fixture(scope="module")
def server(bootstrap: str, registry: Registry) -> Iterator[SqlServer]:
    settings = {"ksql.service.id": unique("sql"), "ksql.schema.registry.url": registry.url}
    with SqlServer(bootstrap, settings, registry=RegistryClient(registry.url)) as running:
        yield running


@pytest.fixture(scope="module")
def producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap})


def write(producer: Producer, topic: str, *values: Any, key: bytes | None = None) -> None:
    for value in values:
        producer.produce(topic, value if isinstance(value, bytes) else json.dumps(value).encode(), key)
    assert producer.flush(60) == 0


def refused(server: SqlServer, sql: str, path: str = "/query-stream") -> str:
    name = "ksql" if path == "/ksql" else "sql"
    status, answer = server.ask("POST", path, {name: sql})
    assert (status, answer["error_code"]) == (400, 40001), answer
    return str(answer["message"])


def test_json_is_selected_from_at_once(server: SqlServer, producer: Producer) -> None:
    topic = unique("orders")
    write(producer, topic, {"id": 1, "item": "tea", "price": 2}, {"id": 2, "price": 2.5}, key=b"x")
    head, *rows = server.select(f"SELECT * FROM {topic};")
    assert head["columnNames"] == ["ROWKEY", "ID", "ITEM", "PRICE"]
    assert head["columnTypes"] == ["STRING", "BIGINT", "STRING", "DOUBLE"]
    assert rows == [["x", 1, "tea", 2.0], ["x", 2, None, 2.5]]
    with server.following(f"SELECT o.item FROM {topic} o WHERE id > 1 EMIT CHANGES LIMIT 1;") as lines:
        assert next(lines)["columnNames"] == ["ITEM"]
        write(producer, topic, {"id": 3, "item": "milk"})
        assert list(lines) == [["milk"]]


def test_avro_is_selected_from_at_once(server: SqlServer, producer: Producer, registry: Registry) -> None:
    topic = unique("baskets")
    with SchemaRegistryClient({"url": registry.url}) as client:
        serialize = AvroSerializer(client, AVRO)
        at = SerializationContext(topic, MessageField.VALUE)
        write(producer, topic, serialize({"id": 1, "item": "tea"}, at), serialize({"id": 2, "item": "milk"}, at))
    head, *rows = server.select(f"SELECT ID, UCASE(ITEM) AS ITEM FROM {topic} WHERE ID = 2;")
    assert (head["columnTypes"], rows) == (["INTEGER", "STRING"], [[2, "MILK"]])
    sql = f"SELECT ITEM, COUNT(*) AS N FROM {topic} GROUP BY ITEM EMIT CHANGES LIMIT 2;"
    assert sorted(server.select(sql, auto_offset_reset="earliest")[1:]) == [["milk", 1], ["tea", 1]]


def test_what_is_declared_wins_over_a_topic_of_its_name(server: SqlServer, producer: Producer) -> None:
    topic = unique("carts")
    write(producer, topic, {"a": 1, "b": 2})
    assert server.select(f"SELECT * FROM {topic};")[1:] == [[1, 2]]
    server.ksql(f"CREATE STREAM {topic} (B INT) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');")
    assert server.select(f"SELECT * FROM {topic};")[1:] == [[2]]


def test_a_topic_is_found_in_any_case_unless_there_are_several(server: SqlServer, producer: Producer) -> None:
    topic = unique("Mixed")
    write(producer, topic, {"a": 1})
    assert server.select(f"SELECT a FROM {topic};")[1:] == [[1]]
    write(producer, topic.replace("xed", "XED"), {"a": 2})
    assert f"`{topic}`" in refused(server, f"SELECT a FROM {topic};")
    assert server.select(f"SELECT a FROM `{topic}`;")[1:] == [[1]]


def test_what_nothing_tells_is_refused_and_nothing_is_made(server: SqlServer, producer: Producer) -> None:
    topic = unique("blobs")
    write(producer, topic, b"\x00\xff\x01", b"\xfe\x00")
    message = refused(server, f"SELECT * FROM {topic} EMIT CHANGES;")
    assert "2 of 2 are neither JSON nor text" in message
    assert f"CREATE STREAM `{topic.upper()}` (...) WITH (KAFKA_TOPIC='{topic}'" in message
    nowhere = unique("nowhere")
    assert f"there is no stream or table {nowhere.upper()}" in refused(server, f"SELECT * FROM {nowhere};")
    (listed,) = server.ksql("SHOW TOPICS;")
    assert not [each for each in listed["topics"] if each["name"].lower() == nowhere.lower()]


def test_a_query_that_writes_a_topic_is_refused_with_the_statement_that_makes_it_work(
    server: SqlServer, producer: Producer
) -> None:
    topic = unique("visits")
    write(producer, topic, {"page": "a"})
    create = f"CREATE STREAM {topic}_2 AS SELECT page FROM {topic};"
    message = refused(server, create, "/ksql")
    declaring = message[message.index("CREATE STREAM") :]
    (described,) = server.ksql(f"DESCRIBE {topic};")
    assert described["sourceDescription"]["statement"] == declaring
    server.ksql(declaring)
    (made,) = server.ksql(create)
    assert made["commandStatus"]["queryId"].startswith("CSAS_")


def test_a_select_from_a_topic_is_explained(server: SqlServer, producer: Producer) -> None:
    topic = unique("clicks")
    write(producer, topic, {"page": "a"})
    (told,) = server.ksql(f"EXPLAIN SELECT page FROM {topic} EMIT CHANGES;")
    assert [each["name"] for each in told["queryDescription"]["fields"]] == ["PAGE"]


def test_a_look_reads_no_more_than_it_may(bootstrap: str, producer: Producer) -> None:
    topic = unique("wide")
    write(producer, topic, {"old": 1}, {"new": 1}, {"new": 2, "last": "x" * 2_000})
    for name, columns in (("sql.sample.max.records", ["NEW", "LAST"]), ("sql.sample.max.bytes", ["OLD"])):
        given = {"ksql.service.id": unique("sql"), name: 2}
        with SqlServer(bootstrap, given) as small:
            assert small.select(f"SELECT * FROM {topic};")[0]["columnNames"] == columns


def test_what_a_pull_query_cannot_do_is_refused_with_what_can(server: SqlServer, producer: Producer) -> None:
    topic = unique("sales")
    write(producer, topic, {"a": 1})
    for sql in (f"SELECT a FROM {topic} ORDER BY a;", f"SELECT a, COUNT(*) FROM {topic} GROUP BY a;"):
        assert "ottla sql history" in refused(server, sql)


# ---- declared, in the formats of the registry

TEXTS = {
    "AVRO": json.dumps({"type": "record", "name": "O", "fields": [{"name": "A", "type": "string"}]}),
    "PROTOBUF": 'syntax = "proto3"; message O { string A = 1; }',
    "JSON": json.dumps({"type": "object", "properties": {"A": {"type": "string"}}}),
}
"""Schemas with a text where the stream has a number."""


@pytest.mark.parametrize("name", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_poison_is_skipped_in_the_formats_of_the_registry(
    server: SqlServer, producer: Producer, registry: Registry, name: str
) -> None:
    topic = unique("POISON").upper()
    server.ksql(f"CREATE STREAM {topic} (A INT) WITH (KAFKA_TOPIC='{topic}', PARTITIONS=1, VALUE_FORMAT='{name}');")
    server.ksql(f"INSERT INTO {topic} VALUES (1);")
    with_text = [
        registry.ask("POST", f"/subjects/{unique(kind)}/versions", {"schema": text, "schemaType": kind})[1]["id"]
        for kind, text in TEXTS.items()
    ]
    heads = [bytes(1) + each.to_bytes(4) for each in (99_999, *with_text)]
    bodies = (b"\x02x", b"\x00\x0a\x01x", b'{"A": "x"}', b"\xff" * 11)
    write(producer, topic, b"\xff\xfe\x00", b"", b"\x00", *(head + body for head in heads for body in bodies))
    server.ksql(f"INSERT INTO {topic} VALUES (2);")
    assert server.select(f"SELECT A FROM {topic};")[1:] == [[1], [2]]
    counted = f"SELECT A, COUNT(*) AS N FROM {topic} GROUP BY A EMIT CHANGES LIMIT 2;"
    with server.following(counted, auto_offset_reset="earliest") as lines:
        assert list(lines)[1:] == [[1, 1], [2, 1]]
