"""`kill -9` of a SQL server under three persistent queries, twice: nothing is lost, nothing comes twice.

The queries are a stateless one, a windowed count and a join with a table. The server is killed while they run (its
Spark host has to notice and go, too), and started again with nothing but its topic of statements and its folder.
What readers of committed records see in the end is what the same statements give in the test driver.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.offsets import LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.sql.testing import run
from tests.support.sql_servers import SqlProcess, unique, until

pytestmark = pytest.mark.matrix
STATEMENTS = """
CREATE TABLE {n}_USERS (ID STRING PRIMARY KEY, CITY STRING)
    WITH (KAFKA_TOPIC='{n}_USERS', PARTITIONS=2, VALUE_FORMAT='JSON');
CREATE STREAM {n}_ORDERS (USER_ID STRING KEY, PRICE INT)
    WITH (KAFKA_TOPIC='{n}_ORDERS', PARTITIONS=2, VALUE_FORMAT='JSON');
CREATE STREAM {n}_DEAR AS SELECT USER_ID, PRICE * 10 AS CENTS FROM {n}_ORDERS WHERE PRICE > 1;
CREATE TABLE {n}_COUNTS AS SELECT USER_ID, COUNT(*) AS N, SUM(PRICE) AS TOTAL FROM {n}_ORDERS
    WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY USER_ID;
CREATE STREAM {n}_CITIES AS SELECT O.USER_ID, O.PRICE, U.CITY FROM {n}_ORDERS O JOIN {n}_USERS U ON O.USER_ID = U.ID;
"""
PER_PART = 300
PARTS = 4
"""One before the first death, one while it is dead, and so on."""


def read(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """All that is committed now."""
    with Cluster(parse_bootstrap(bootstrap)) as client:
        places = [TopicPartition(topic, index) for index in client.partitions(topic)]
        ends = list_offsets(client, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
        consumer = Consumer(client, {place: (0, offset_of(ends[place])) for place in places}, isolation=READ_COMMITTED)
        found = []
        while consumer.active:
            for fetched in consumer.poll(1.0):
                found += [(record.key, record.value) for record in fetched.records]
        return found


def rows(bootstrap: str, topic: str) -> list[tuple[bytes | None, Any]]:
    return [(key, json.loads(value)) for key, value in read(bootstrap, topic) if value is not None]


def orders(part: int) -> list[tuple[str, int, int]]:
    """User, price, time."""
    first = part * PER_PART
    return [(f"u{each % 7}", each % 5, 1_600_000_000_000 + each * 50) for each in range(first, first + PER_PART)]


def write(bootstrap: str, topic: str, part: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for user, price, moment in orders(part):
        producer.produce(topic, json.dumps({"PRICE": price}), user, timestamp=moment)
    if part == 1:
        producer.produce(topic, b"no JSON", b"u1", timestamp=1_600_000_000_000)
    assert producer.flush(60) == 0


def test_what_is_committed_is_as_if_nobody_had_been_killed(bootstrap: str, tmp_path: Path) -> None:
    name = unique("K").upper()
    statements = STATEMENTS.format(n=name)
    users = [
        {"topic": f"{name}_USERS", "key": f"u{each}", "value": {"CITY": f"c{each}"}, "timestamp": 1}
        for each in range(7)
    ]
    server = SqlProcess(bootstrap, name, tmp_path)
    try:
        server.ksql(statements)
        for each in range(7):  # before all orders, as time goes
            server.ksql(f"INSERT INTO {name}_USERS (ROWTIME, ID, CITY) VALUES (1, 'u{each}', 'c{each}');")
        queries = [each["id"] for each in server.ksql("SHOW QUERIES;")[0]["queries"]]
        assert len(queries) == 3
        write(bootstrap, f"{name}_ORDERS", 0)
        until(lambda: len(rows(bootstrap, f"{name}_DEAR")) > 0)
        for death in (1, 2):
            write(bootstrap, f"{name}_ORDERS", 2 * death - 1)
            server.kill()
            if death < 2:
                write(bootstrap, f"{name}_ORDERS", 2)
            server = SqlProcess(bootstrap, name, tmp_path)
            assert [each["id"] for each in server.ksql("SHOW QUERIES;")[0]["queries"]] == queries
        inputs = users + [
            {"topic": f"{name}_ORDERS", "key": user, "value": {"PRICE": price}, "timestamp": moment}
            for part in range(PARTS)
            for user, price, moment in orders(part)
        ]
        expected, _ = run(statements, inputs)
        for sink in ("DEAR", "CITIES"):
            wanted = Counter(
                (each["key"], json.dumps(each["value"])) for each in expected if each["topic"] == f"{name}_{sink}"
            )
            until(lambda sink=sink, wanted=wanted: len(rows(bootstrap, f"{name}_{sink}")) >= wanted.total())  # type: ignore[misc]
            found = Counter(
                ((key or b"").decode(), json.dumps(value)) for key, value in rows(bootstrap, f"{name}_{sink}")
            )
            assert found == wanted
        windows = {
            (each["key"], each["window"]["start"]): each["value"]
            for each in expected
            if each["topic"] == f"{name}_COUNTS"
        }

        def counted() -> dict[tuple[str, int], Any]:
            return {
                (key[:-8].decode(), int.from_bytes(key[-8:], "big")): value
                for key, value in rows(bootstrap, f"{name}_COUNTS")
                if key is not None
            }

        assert {value for _, value in read(bootstrap, f"{name}_DEAD")} == {b"no JSON"}
        until(lambda: sum(each["N"] for each in counted().values()) >= PARTS * PER_PART)
        assert counted() == windows
    finally:
        server.stop()
