"""What the connectors of two test modules write into, or read from, beside the broker that they belong to."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.mirror.flows import SOURCE
from tests.platform.connect.databases import ask
from tests.platform.systems.http_server import CommandedServer
from tests.platform.systems.mariadb import MariaDb
from tests.platform.systems.opensearch import OpenSearch
from tests.spark.applications import START, Input, World
from tests.spark.connect.connectors import JSON

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Systems(NamedTuple):
    search: OpenSearch
    maria: MariaDb
    web: CommandedServer


class TablesSearchAndMirror:
    """Iceberg, OpenSearch, MariaDB, a server that is asked by HTTP, files that are read back, a mirror: numbers from 0
    on go through each of them."""

    def __init__(self, world: World, there: World, systems: Systems, topic: str, folder: Path) -> None:
        """`there`: where the mirror reads."""
        self._world = world
        self._there = there
        self._systems = systems
        self._topic = topic
        self._folder = folder
        self._mirrored = there.topic("mirrored")
        self._read_back = world.topic("back")
        self._table = world.name.replace("-", "_")
        self._catalog = {
            "iceberg.catalog.uri": f"sqlite:///{folder / 'catalog.db'}",
            "iceberg.catalog.warehouse": f"file://{folder / 'warehouse'}",
        }
        (folder / "warehouse").mkdir()
        (folder / "given" / "back").mkdir(parents=True)

    def configs(self) -> dict[str, dict[str, str]]:
        sinks = {**JSON, "topics": self._topic}
        return {
            "iceberg": {
                **sinks,
                "connector.class": "iceberg-sink",
                "iceberg.tables": f"default.{self._table}",
                **self._catalog,
            },
            "search": {
                **sinks,
                "connector.class": "OpensearchSinkConnector",
                "connection.url": self._systems.search.url,
                "key.ignore": "true",
                "schema.ignore": "true",
            },
            "maria": {
                **sinks,
                "connector.class": "jdbc-sink",
                "connection.url": self._systems.maria.url,
                "table.name.format": self._table,
                "insert.mode": "insert",
                "pk.mode": "none",
                "auto.create": "true",
            },
            "http": {**sinks, "connector.class": "http-sink", "http.api.url": self._web_url},
            "back": {
                **JSON,
                "connector.class": "files-source",
                "mode": "GENERIC",
                "directory": str(self._folder / "given"),
                "topics.dir": "back",
                "topic.regex.list": f"{self._read_back}:.*",
                "s3.poll.interval.ms": "100",
            },
            "mirror": {
                "connector.class": SOURCE,
                "source.cluster.alias": "us",
                "target.cluster.alias": "eu",
                "source.cluster.bootstrap.servers": self._there.bootstrap,
                "target.cluster.bootstrap.servers": self._world.bootstrap,
                "topics": self._mirrored,
                "replication.factor": "1",
                "offset-syncs.topic.replication.factor": "1",
                "key.converter": BYTES,
                "value.converter": BYTES,
                "header.converter": BYTES,
            },
        }

    @property
    def _web_url(self) -> str:
        return f"{self._systems.web.url}/{self._table}"

    def bring(self, numbers: Sequence[int]) -> None:
        lines = [json.dumps({"id": number}) for number in numbers]
        self._world.send([Input(self._topic, None, line.encode(), START) for line in lines])
        self._there.send([Input(self._mirrored, None, b"%d" % number, START) for number in numbers])
        unfinished = self._folder / "given" / f"{numbers[0]:09d}.json"
        unfinished.write_text("".join(f"{line}\n" for line in lines))
        unfinished.rename(unfinished.parent / "back" / unfinished.name)

    def found(self) -> Mapping[str, list[int]]:
        """Sorted where a target has no order. Requests that came again under the key that they had count once."""
        return {
            "iceberg": self._iceberg(),
            "search": sorted(each["id"] for each in self._systems.search.documents(self._topic).values()),
            "maria": [id for (id,) in ask(self._systems.maria.url, f"SELECT id FROM {self._table} ORDER BY id")],
            "http": self._asked(),
            "back": [json.loads(record.value or b"{}")["id"] for record in self._world.read(self._read_back)],
            "mirror": [int(record.value or b"-1") for record in self._world.read(f"us.{self._mirrored}")],
        }

    def _asked(self) -> list[int]:
        ours = [each for each in self._systems.web.taken if each.path == f"/{self._table}"]
        return sorted(json.loads(body)["id"] for body in {e.headers["idempotency-key"]: e.body for e in ours}.values())

    def _iceberg(self) -> list[int]:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415

        own = {name.removeprefix("iceberg.catalog."): value for name, value in self._catalog.items()}
        rows = load_catalog("iceberg", **own).load_table(f"default.{self._table}").scan().to_arrow()
        return sorted(rows.column("id").to_pylist())
