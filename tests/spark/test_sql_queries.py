"""Persistent queries of a SQL server, as jobs of a Spark host: they write topics, stop one by one, and come back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.node.spark_host import SparkHost
from ottla.sql.server.persistent import SparkQueries
from ottla.testing import Cluster
from tests.spark.test_host import QUICK
from tests.support.patience import eventually
from tests.support.sql_servers import SqlServer, unique


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SparkHost]:
    found = SparkHost(tmp_path, "local[2]", QUICK)
    yield found
    found.close()


def test_queries_write_topics_and_are_back_after_a_restart(kafka: Cluster, host: SparkHost, tmp_path: Path) -> None:
    service, name = unique("sql"), unique("ORDERS")

    def queries() -> SparkQueries:
        return SparkQueries(
            host.client, service_id=service, bootstrap=kafka.bootstrap_servers, state_dir=str(tmp_path / "state")
        )

    settings = {"ksql.service.id": service}
    first = queries()
    with SqlServer(kafka.bootstrap_servers, settings, first) as server:
        server.ksql(
            f"CREATE STREAM {name} (ID INT KEY, ITEM STRING, PRICE INT) "
            f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"CREATE STREAM {name}_LOUD AS SELECT ID, UCASE(ITEM) AS ITEM, PRICE * 2 AS TWICE FROM {name} "
            "WHERE PRICE > 1;"
            f"CREATE TABLE {name}_SUMS AS SELECT ITEM, COUNT(*) AS N, SUM(PRICE) AS TOTAL FROM {name} GROUP BY ITEM;"
        )
        server.ksql(f"INSERT INTO {name} VALUES (1, 'tea', 2); INSERT INTO {name} VALUES (2, 'milk', 1);")
        eventually(lambda: server.select(f"SELECT ID, ITEM, TWICE FROM {name}_LOUD;")[1:] == [[1, "TEA", 4]])
        wanted = [["milk", 1, 1], ["tea", 1, 2]]
        eventually(lambda: sorted(server.select(f"SELECT * FROM {name}_SUMS;")[1:]) == wanted)
        assert server.select(f"SELECT TOTAL FROM {name}_SUMS WHERE ITEM = 'tea';")[1:] == [[2]]
        (listed,) = server.ksql("SHOW QUERIES;")
        assert {each["state"] for each in listed["queries"]} == {"RUNNING"}
        (paused,) = [each["id"] for each in listed["queries"] if each["id"].startswith("CSAS")]
        server.ksql(f"PAUSE {paused};")
    first.close()
    second = queries()
    with SqlServer(kafka.bootstrap_servers, settings, second) as server:
        server.ksql(f"INSERT INTO {name} VALUES (3, 'tea', 5);")
        eventually(lambda: server.select(f"SELECT TOTAL FROM {name}_SUMS WHERE ITEM = 'tea';")[1:] == [[7]])
        server.ksql(f"RESUME {paused};")
        eventually(lambda: len(server.select(f"SELECT ID FROM {name}_LOUD;")[1:]) == 2)
        server.ksql("TERMINATE ALL;")
        (left,) = server.ksql("SHOW QUERIES;")
        assert left["queries"] == []
    second.close()
