"""A live query on Spark: paused and resumed, failing and tried again, and of two servers the one that runs it."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.spark.test_sql_kill_nine import rows
from tests.support.sql_servers import SqlProcess, unique, until

STATEMENTS = """
CREATE STREAM {n}_IN (ID STRING KEY, V INT) WITH (KAFKA_TOPIC='{n}_IN', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE STREAM {n}_OUT AS SELECT ID, V * 2 AS TWICE FROM {n}_IN;
SET 'ksql.fail.on.deserialization.error' = 'true';
CREATE STREAM {n}_STRICT AS SELECT ID, V FROM {n}_IN;
"""


class Queries:
    """The two queries of a service, the second of which fails at what it cannot read."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self._bootstrap = bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def write(self, *values: object) -> None:
        for value in values:
            text = json.dumps({"V": value}) if isinstance(value, int) else str(value)
            self._producer.produce(f"{self.name}_IN", text, "k")
        assert self._producer.flush(60) == 0

    def written(self, sink: str) -> list[Any]:
        return [next(iter(value.values())) for _, value in rows(self._bootstrap, f"{self.name}_{sink}")]


def state(server: SqlProcess, query: str) -> str:
    (listed,) = server.ksql("SHOW QUERIES;")
    return str(next(each["state"] for each in listed["queries"] if each["id"] == query))


def test_one_of_two_servers_runs_a_query_and_the_other_takes_over(bootstrap: str, tmp_path: Path) -> None:
    name = unique("T").upper()
    queries = Queries(bootstrap, name)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    servers = [SqlProcess(bootstrap, name, folder) for folder in folders]
    first, second = servers
    try:
        made = first.ksql(STATEMENTS.format(n=name))
        lenient, strict = [each["commandStatus"]["queryId"] for each in made if each["commandStatus"]["queryId"]]
        queries.write(1, 2)
        until(lambda: queries.written("OUT") == [2, 4] and queries.written("STRICT") == [1, 2])
        assert {state(server, lenient) for server in servers} == {"RUNNING"}

        second.ksql(f"PAUSE {lenient};")
        until(lambda: {state(server, lenient) for server in servers} == {"PAUSED"})
        queries.write(3)
        until(lambda: queries.written("STRICT") == [1, 2, 3])
        assert queries.written("OUT") == [2, 4], "it was paused"
        first.ksql(f"RESUME {lenient};")
        until(lambda: queries.written("OUT") == [2, 4, 6])

        queries.write("no JSON", 4)
        until(lambda: "ERROR" in {state(server, strict) for server in servers})
        until(lambda: queries.written("OUT") == [2, 4, 6, 8])
        (told,) = next(server for server in servers if state(server, strict) == "ERROR").ksql(f"EXPLAIN {strict};")
        assert "JSON" in told["queryDescription"]["queryErrors"][0]["errorMessage"]
        assert queries.written("STRICT") == [1, 2, 3], "nothing behind what it cannot read"

        first.kill()
        queries.write(5)
        until(lambda: queries.written("OUT") == [2, 4, 6, 8, 10])
        assert state(second, lenient) == "RUNNING"
        second.ksql(f"TERMINATE {strict}; TERMINATE {lenient};")
        (listed,) = second.ksql("SHOW QUERIES;")
        assert listed["queries"] == []
    finally:
        for server in servers:
            server.stop()
