"""kill -9 of the Spark host, of the broker and of the target, at each step of a batch, for sources and sinks that
promise exactly once: what they leave in the end is what one leaves that nobody disturbs.

All connectors of a rig run at once and halt at the same step; when the last is there, the victim dies. Then all of them
go on: in a new host, or in the same one, where some fail and are started again.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.node.spark_host import SparkHost
from tests.platform.connect.cdc import Database
from tests.platform.systems.postgresql import postgresql
from tests.spark.applications import START, Input, World
from tests.spark.connect.connectors import JSON, TEXTS
from tests.spark.connect.halting import STEPS
from tests.spark.connect.rig import Rig
from tests.spark.connect.targets import Systems, TablesSearchAndMirror
from tests.support.hosted_worker import QUICK
from tests.support.nodes import Ottla

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ottla]:
    with Ottla(tmp_path_factory.mktemp("broker")) as node:
        yield node


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkHost]:
    # A task that halts holds a thread.
    host = SparkHost(tmp_path_factory.mktemp("host"), "local[8]", QUICK)
    yield host
    host.close()


@pytest.fixture
def world(broker: Ottla, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    with Client(parse_bootstrap(broker.bootstrap)) as client:
        yield World(client, broker.bootstrap, f"kill-{zlib.crc32(request.node.name.encode()):08x}", tmp_path)


def killed_at_each_step(rig: Rig, kill: Callable[[], None], *, host_dies: bool) -> None:
    for step in STEPS:
        rig.give()
        folder = rig.halted(step)
        kill()
        if not host_dies:
            (folder / "go").touch()
            rig.stop()
    rig.finish()
    rig.check()


def kill_broker(broker: Ottla) -> None:
    broker.kill()
    broker.start()


# Files, PostgreSQL by three connectors, Delta.


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with postgresql("wal_level=logical") as url:
        opened = Database(url)
        yield opened
        opened.connection.close()


class FilesAndPostgres(Rig):
    def __init__(self, world: World, host: SparkHost, database: Database) -> None:
        super().__init__(world, host)
        self.database = database
        database.run(f"CREATE TABLE {self.name} (id int PRIMARY KEY)")
        self.begin()

    def configs(self) -> Mapping[str, dict[str, str]]:
        world, name = self.world, self.name
        url = f"jdbc:postgresql://127.0.0.1:{self.database.port}/postgres?user=postgres"
        sinks = {"topics": self.topic}
        changes = self.database.config(
            name, {"topic.prefix": world.name, "table.include.list": f"public.{name}", "poll.interval.ms": "100"}
        )
        return {
            "lines": {
                **TEXTS,
                "connector.class": "FileStreamSource",
                "file": self.path("in"),
                "topic": f"{world.name}.lines",
            },
            "rows": {
                **JSON,
                "connector.class": "jdbc-source",
                "connection.url": url,
                "table.whitelist": name,
                "mode": "incrementing",
                "incrementing.column.name": "id",
                "topic.prefix": f"{world.name}.rows.",
                "poll.interval.ms": "100",
            },
            "changes": {**JSON, "key.converter": JSON["value.converter"], "connector.class": "postgres-cdc", **changes},
            "out": {**TEXTS, "connector.class": "FileStreamSink", "file": self.path("out"), **sinks},
            "table": {
                **JSON,
                "connector.class": "jdbc-sink",
                "connection.url": url,
                "table.name.format": f"{name}_sink",
                "insert.mode": "insert",
                "pk.mode": "none",
                "auto.create": "true",
                **sinks,
            },
            "delta": {**JSON, "connector.class": "delta-sink", "table.uri": self.path("delta"), **sinks},
            "files": {
                **JSON,
                "connector.class": "files-sink",
                "directory": self.path("files"),
                "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
                **sinks,
            },
        }

    def bring(self, numbers: Sequence[int]) -> None:
        with open(self.path("in"), "a") as file:
            file.writelines(f"line {number}\n" for number in numbers)
        self.database.run(f"INSERT INTO {self.name} SELECT generate_series({numbers[0]}, {numbers[-1]})")
        self.world.send([Input(self.topic, None, json.dumps({"id": number}).encode(), START) for number in numbers])

    def found(self) -> Mapping[str, list[int]]:
        return {
            "lines": [int((record.value or b"").split()[1]) for record in self.world.read(f"{self.world.name}.lines")],
            "rows": self._ids(f"{self.world.name}.rows.{self.name}"),
            "changes": self._ids(f"{self.world.name}.public.{self.name}"),
            "out": [json.loads(line)["id"] for line in Path(self.path("out")).read_text().splitlines()],
            "table": [id for (id,) in self.database.ask(f"SELECT id FROM {self.name}_sink ORDER BY id")],
            "delta": self._delta(),
            "files": sorted(
                json.loads(line)["id"]
                for file in Path(self.path("files")).rglob("*.json")
                for line in file.read_text().splitlines()
            ),
        }

    def _ids(self, topic: str) -> list[int]:
        values = [json.loads(record.value or b"{}") for record in self.world.read(topic)]
        return [(value.get("after") or value)["id"] for value in values]

    def _delta(self) -> list[int]:
        from deltalake import DeltaTable  # noqa: PLC0415

        return sorted(DeltaTable(f"{self.path('delta')}/{self.topic}").to_pyarrow_table().column("id").to_pylist())


@pytest.mark.parametrize("victim", ["host", "broker", "database"])
def test_what_is_left_is_what_one_leaves_that_nobody_disturbs(
    world: World, host: SparkHost, broker: Ottla, database: Database, victim: str
) -> None:
    rig = FilesAndPostgres(world, host, database)
    kills = {"host": rig.kill_host, "broker": lambda: kill_broker(broker), "database": database.crash}
    killed_at_each_step(rig, kills[victim], host_dies=victim == "host")


# Iceberg, OpenSearch, MariaDB, HTTP, files read back, a mirror.


class Others(Rig):
    def __init__(self, world: World, host: SparkHost, there: World, systems: Systems) -> None:
        super().__init__(world, host)
        self._targets = TablesSearchAndMirror(world, there, systems, self.topic, Path(self.path("")))
        self.begin()

    def configs(self) -> Mapping[str, dict[str, str]]:
        return self._targets.configs()

    def bring(self, numbers: Sequence[int]) -> None:
        self._targets.bring(numbers)

    def found(self) -> Mapping[str, list[int]]:
        return self._targets.found()


@pytest.mark.jvm
@pytest.mark.parametrize("victim", ["host", "broker", "database", "search", "mirrored"])
def test_tables_searches_and_mirrors_leave_what_nobody_disturbed_leaves(
    world: World, there: World, host: SparkHost, broker: Ottla, us: Ottla, systems: Systems, victim: str
) -> None:
    rig = Others(world, host, there, systems)
    kills = {
        "host": rig.kill_host,
        "broker": lambda: kill_broker(broker),
        "database": systems.maria.crash,
        "search": systems.search.crash,
        "mirrored": lambda: kill_broker(us),
    }
    killed_at_each_step(rig, kills[victim], host_dies=victim == "host")
