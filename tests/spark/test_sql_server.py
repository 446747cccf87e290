"""A SQL server with Spark behind it: history over HTTP, and what persistent queries leave out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.sql_servers import SqlProcess, unique, until

ORDERS: list[dict[str, Any]] = [{"id": n, "who": "abc"[n % 3], "price": n % 7} for n in range(60)]


@pytest.fixture(scope="module")
def service() -> str:
    return unique("H").upper()


@pytest.fixture(scope="module")
def server(bootstrap: str, service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlProcess]:
    """With a topic of JSON that nobody declared (`<service>_orders`), and a table <service>_PEOPLE."""
    folder: Path = tmp_path_factory.mktemp("sql")
    producer = Producer({"bootstrap.servers": bootstrap})
    for place, each in enumerate(ORDERS):
        producer.produce(f"{service}_orders", json.dumps(each), "k", timestamp=1000 * place + 1)
    assert producer.flush(60) == 0
    running = SqlProcess(bootstrap, service, folder)
    try:
        running.ksql(
            f"CREATE TABLE {service}_PEOPLE (WHO STRING PRIMARY KEY, TOWN STRING) "
            f"WITH (KAFKA_TOPIC='{service}_PEOPLE', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"INSERT INTO {service}_PEOPLE VALUES ('a', 'Bern'); INSERT INTO {service}_PEOPLE VALUES ('b', 'Chur');"
            f"INSERT INTO {service}_PEOPLE VALUES ('b', 'Bern');"
        )
        yield running
    finally:
        running.stop()


def asked(server: SqlProcess, sql: str) -> tuple[dict[str, Any], list[Any]]:
    status, (head, *rows) = server.select(sql)
    assert status == 200, head
    return head, rows


def test_a_rank_with_a_cte_and_an_order_comes_over_http(server: SqlProcess, service: str) -> None:
    head, rows = asked(
        server,
        f"WITH ranked AS (SELECT id, who, RANK() OVER (PARTITION BY who ORDER BY price DESC, id) AS place "
        f"FROM {service}_orders) SELECT who, id, place FROM ranked WHERE place <= 2 ORDER BY who, place;",
    )
    best = {who: sorted((-each["price"], each["id"]) for each in ORDERS if each["who"] == who)[:2] for who in "abc"}
    assert head["columnNames"] == ["who", "id", "place"]
    assert head["columnTypes"] == ["STRING", "BIGINT", "INTEGER"]
    assert rows == [[who, best[who][place][1], place + 1] for who in "abc" for place in (0, 1)]


def test_a_declared_table_is_joined_with_a_topic_that_nobody_declared(server: SqlProcess, service: str) -> None:
    _, rows = asked(
        server,
        f"SELECT town, COUNT(*) AS n, CAST(SUM(price) AS DECIMAL(10, 2)) AS total FROM {service}_orders "
        f"JOIN {service}_people USING (who) GROUP BY town ORDER BY town;",
    )
    assert rows == [["Bern", 40, sum(each["price"] for each in ORDERS if each["who"] in "ab")]]


def test_times_and_offsets_bound_what_is_read(server: SqlProcess, service: str) -> None:
    by_time = f"SELECT COUNT(*) FROM {service}_orders BETWEEN '1970-01-01T00:00:10Z' AND '1970-01-01T00:00:20Z';"
    assert asked(server, by_time)[1] == [[10]]
    assert asked(server, f"SELECT MIN(id), MAX(ROWOFFSET) FROM {service}_orders BETWEEN 3 AND 5;")[1] == [[3, 5]]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT prize FROM {}_orders ORDER BY 1", "prize"),
        ("SELECT * FROM nothing_there ORDER BY 1", "nothing_there"),
        ("SELECT reflect('java.lang.System', 'exit', 1) FROM {}_orders ORDER BY 1", "calls of Java"),
        ("SELECT * FROM parquet.`/etc` ORDER BY 1", ""),
        ("SELECT id FROM {}_orders ORDER BY", ""),
    ],
)
def test_what_is_wrong_is_said_and_the_server_goes_on(server: SqlProcess, service: str, sql: str, words: str) -> None:
    status, (answer, *_) = server.select(sql.format(service) + ";")
    assert (status, answer["error_code"]) == (400, 40001), answer
    assert words in answer["message"]
    assert asked(server, "SELECT 1 AS one ORDER BY 1;")[1] == [[1]]


def test_what_queries_leave_out_is_in_the_log_and_the_dead_letters(
    server: SqlProcess, service: str, bootstrap: str
) -> None:
    """One that Spark's columns compute, and one that counts where it reads."""
    made = server.ksql(
        f"CREATE STREAM {service}_READINGS (ID STRING KEY, V STRING) "
        f"WITH (KAFKA_TOPIC='{service}_READINGS', PARTITIONS=2, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {service}_NUMBERS AS SELECT ID, CAST(V AS INT) AS N FROM {service}_READINGS;"
        f"CREATE TABLE {service}_COUNTS AS SELECT ID, COUNT(*) AS N FROM {service}_READINGS GROUP BY ID;"
    )
    stateless, counting = [each["commandStatus"]["queryId"] for each in made[1:]]
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in ('{"V": "1"}', "geheim", '{"V": "geheim"}', '{"V": "2"}'):
        producer.produce(f"{service}_READINGS", value, "k")
    assert producer.flush(60) == 0

    def told() -> dict[str, str]:
        _, rows = asked(server, "SELECT LOGGER, MESSAGE FROM KSQL_PROCESSING_LOG;")
        return {logger: json.dumps(message) for logger, message in rows}

    expected = {
        f"processing.{stateless}.KsqlTopic.Source",
        f"processing.{stateless}.Project",
        f"processing.{counting}.KsqlTopic.Source",
    }
    until(lambda: told().keys() >= expected)
    assert told().keys() == expected
    assert not [each for each in told().values() if "geheim" in each]
    _, dead = asked(server, f"SELECT * FROM `{service}_DEAD`;")
    assert ["geheim" in json.dumps(each) for each in dead] == [True, True]
    (described,) = server.ksql(f"DESCRIBE {service}_NUMBERS EXTENDED;")
    assert "deserialization-error: 1" in described["sourceDescription"]["errorStats"]

    def internal() -> list[str]:
        (listed,) = server.ksql("SHOW ALL TOPICS;")
        return [each["name"] for each in listed["topics"] if f"query_{counting}-" in each["name"]]

    assert internal()
    server.ksql(f"TERMINATE {counting};")
    until(lambda: not internal())  # a query that is ended leaves nothing


def test_a_query_that_is_replaced_goes_on_where_it_was_and_finds_its_function_after_a_restart(
    bootstrap: str, tmp_path: Path
) -> None:
    name = unique("R").upper()
    producer = Producer({"bootstrap.servers": bootstrap})
    server = SqlProcess(bootstrap, name, tmp_path)

    def kept() -> list[list[Any]]:
        return sorted(server.select(f"SELECT ID, GRADE, WHO FROM {name}_GRADES;")[1][1:])

    def comes(key: str, who: str, points: int) -> None:
        producer.produce(f"{name}_POINTS", json.dumps({"WHO": who, "POINTS": points}), key)
        assert producer.flush(60) == 0

    select = "SELECT ID, {n}_GRADE(POINTS) AS GRADE, {who} FROM {n}_POINTS WHERE POINTS > 0;"
    try:
        server.ksql(
            f"CREATE FUNCTION {name}_GRADE (points INT) RETURNS STRING LANGUAGE PYTHON AS "
            f"$$\ndef {name}_GRADE(points):\n    return 'good' if points > 5 else 'poor'\n$$;"
            f"CREATE STREAM {name}_POINTS (ID STRING KEY, WHO STRING, POINTS INT) "
            f"WITH (KAFKA_TOPIC='{name}_POINTS', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {name}_GRADES AS {select.format(n=name, who='WHO')}"
        )
        comes("1", "ann", 9)
        until(lambda: len(kept()) == 1)
        server.ksql(f"CREATE OR REPLACE STREAM {name}_GRADES AS {select.format(n=name, who='UCASE(WHO) AS WHO')}")
        comes("2", "bob", 1)
        until(lambda: len(kept()) == 2)
        server.stop()
        server = SqlProcess(bootstrap, name, tmp_path)
        comes("3", "cid", 7)
        until(lambda: len(kept()) == 3)
        assert kept() == [["1", "good", "ann"], ["2", "poor", "BOB"], ["3", "good", "CID"]]
    finally:
        server.stop()
