"""PostgreSQL's changes through Spark into topics: each of them once, whoever dies."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ottla.connect.jobs.query import ConnectorStopped
from tests.platform.connect.cdc import Database
from tests.platform.systems.postgresql import postgresql
from tests.spark.applications import World
from tests.spark.connect.connectors import COMMITTED, PLANNED, WRITTEN, run, run_and_die, spec_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 700
"""More than what goes along with a plan, so that tasks read for themselves as well."""
CONVERTERS = {
    f"{side}.converter{key}": value
    for side in ("key", "value")
    for key, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "false"))
}


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with postgresql("wal_level=logical") as url:
        opened = Database(url)
        yield opened
        opened.connection.close()


def told(world: World, topic: str) -> list[tuple[str, int, int]]:
    """The operation, the key and the value of each record."""
    found: list[tuple[str, int, int]] = []
    for record in world.read(topic):
        value: Any = json.loads(record.value or b"{}")
        if value:
            row = value["after"] or value["before"]
            found.append((value["op"], row["id"], row["v"]))
    return found


def test_a_connector_that_dies_at_every_step_and_a_server_that_crashes_give_each_change_once(
    spark: "SparkSession", world: World, database: Database
) -> None:
    prefix = world.name
    database.run(
        f"CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g"
    )
    given = database.config("spark", {"topic.prefix": prefix, **CONVERTERS, "connector.class": "postgres-cdc"})
    spec = spec_of(world, "cdc", given)
    wanted = [("r", number, 0) for number in range(1, ROWS + 1)]
    with pytest.raises(ConnectorStopped, match=PLANNED):
        run_and_die(spark, spec, PLANNED, 1)  # the first batch only makes the slot
    run(spark, spec)
    for life, point in enumerate((WRITTEN, COMMITTED), 1):
        database.run(f"UPDATE t SET v = {life}")
        with pytest.raises(ConnectorStopped, match=point):
            run_and_die(spark, spec, point, 0)
        wanted += [("u", number, life) for number in range(1, ROWS + 1)]
    database.crash()
    run(spark, spec)
    assert told(world, f"{prefix}.public.t") == wanted
