"""Query tests on Spark: records go into topics, an application runs until it has processed them, its output is read.

Brokers are those of `bootstrap.servers`, else one node of its own: a process that ends with this one. Every run takes
topics and a session of its own, so that several may go on at once. Records are processed in the order given, as in the
test driver.
"""

import atexit
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from socket import socket
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.client.errors import ClientError
from ottla.client.offsets import LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.pipelines.session import new_session
from ottla.serdes.base import SerdeAround
from ottla.sql.analysis.typed import Joining, Read, TypedQuery
from ottla.sql.catalog import PersistentQuery
from ottla.sql.compile import topology
from ottla.sql.errors import SERVER_ERROR, SqlError
from ottla.sql.formats.registered import RegisteredRows
from ottla.sql.model import DataSource
from ottla.sql.records import Formats
from ottla.streams.app import StreamsApp
from ottla.streams.record import Raw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER: Final = "local[2]"
START_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.2
_runs = count(1)
_starting = Lock()


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Runs queries one after another, each over topics that nobody else has."""

    bootstrap: str
    registry: Any

    @staticmethod
    def of(properties: Mapping[str, Any], registry: Any) -> "SparkEngine":
        given = properties.get("bootstrap.servers")
        return SparkEngine(str(given) if given else own_node(), registry)

    def ran(self, query: PersistentQuery, records: Sequence[Raw], config: Mapping[str, Any]) -> list[Raw]:
        prefix = f"sql-test-{_process()}-{next(_runs)}-"
        sink = replace(query.sink, topic=prefix + query.sink.topic)
        placed = _renamed(query.query, prefix)
        topics = {source.topic for source in placed.reads()}
        with Cluster(parse_bootstrap(self.bootstrap)) as cluster, tempfile.TemporaryDirectory() as folder:
            news = [admin.NewTopic(topic, 1, 1) for topic in sorted({*topics, sink.topic})]
            admin.create_topics(cluster, news)
            producer = Producer(cluster)
            settings = {
                **config,
                "bootstrap.servers": self.bootstrap,
                "state.dir": folder,
                "auto.offset.reset": "earliest",
            }
            for topic in (query.sink.topic, sink.topic):
                self._announce(sink, topic)
            made = topology(placed, sink, self.registry)
            own = [raw for raw in records if prefix + raw.topic in topics]
            for part in parts(own, one_by_one=_joins_by_foreign_key(placed.source)):
                for raw in part:
                    producer.send(
                        prefix + raw.topic,
                        raw.value,
                        key=raw.key,
                        headers=raw.headers,
                        partition=0,
                        timestamp=raw.timestamp,
                    )
                producer.flush()
                StreamsApp(f"{prefix}{query.id}", made, **settings).runner(once=True).run(_session())
            return [each._replace(topic=query.sink.topic) for each in _read(cluster, sink.topic)]

    def _announce(self, sink: DataSource, topic: str) -> None:
        """The registry of a test is in this process: what workers registered in their copies, nobody could read."""
        formats = Formats(self.registry)
        for serde in (formats.key(sink), formats.value(sink)):
            rows = serde.inner if isinstance(serde, SerdeAround) else serde
            if isinstance(rows, RegisteredRows):
                rows.announce(topic)


def _session() -> "SparkSession":
    """Beside those of other runs, in the SparkContext of this process."""
    with _starting:
        return new_session("sql-test", MASTER).newSession()


def parts(records: Sequence[Raw], *, one_by_one: bool = False) -> list[list[Raw]]:
    """What is processed before the next is written, so that records go in the order given.

    Of several topics a task takes the oldest record first: one that is not later than those of other topics before it
    has to wait until they are processed.
    """
    found: list[list[Raw]] = [[]]
    latest: dict[str, int] = {}
    """Of each topic in the last part."""
    for raw in records:
        others = [time for topic, time in latest.items() if topic != raw.topic]
        if found[-1] and (one_by_one or any(raw.timestamp <= time for time in others)):
            found.append([])
            latest = {}
        found[-1].append(raw)
        latest[raw.topic] = max(raw.timestamp, latest.get(raw.topic, raw.timestamp))
    return found


def _joins_by_foreign_key(source: Read | Joining) -> bool:
    """The sides of such a join tell each other over topics: a row that is replaced before its answer is there has none,
    so there each record waits for those before it."""
    if isinstance(source, Read):
        return False
    return source.how == "foreign-key" or _joins_by_foreign_key(source.left)


def _renamed(query: TypedQuery, prefix: str) -> TypedQuery:
    return replace(query, source=_renamed_source(query.source, prefix))


def _renamed_source(source: Read | Joining, prefix: str) -> Any:
    if isinstance(source, Read):
        return replace(source, source=_with_prefix(source.source, prefix))
    left = _renamed_source(source.left, prefix)
    return replace(source, left=left, right=_renamed_source(source.right, prefix))


def _with_prefix(source: DataSource, prefix: str) -> DataSource:
    return replace(source, topic=prefix + source.topic)


def _read(cluster: Cluster, topic: str) -> list[Raw]:
    place = TopicPartition(topic, 0)
    found = list_offsets(cluster, {place: LATEST}, isolation=READ_COMMITTED)
    end = offset_of(found[place])
    consumer = Consumer(cluster, {place: (0, end)}, isolation=READ_COMMITTED)
    read: list[Raw] = []
    while consumer.active:
        for fetched in consumer.poll(_POLL_S):
            for each in fetched.records:
                headers = tuple((name, content) for name, content in each.headers)
                read.append(Raw(topic, 0, each.offset, each.key, each.value, each.timestamp, headers))
    return read


# ---- a node of its own

_node: list[tuple[str, "subprocess.Popen[bytes]"]] = []


def own_node() -> str:
    """The address of a node that ends with this process. Started once."""
    if not _node:
        _node.append(_started())
    return _node[0][0]


def _started() -> tuple[str, "subprocess.Popen[bytes]"]:
    port = _free_port()
    folder = tempfile.TemporaryDirectory(prefix="ottla-sql-test-")
    command = [sys.executable, "-m", "ottla", "start", "--only", "kafka", "--port", str(port), "--data", folder.name]
    process = subprocess.Popen(
        [*command, "-o", "http.listeners="], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    atexit.register(_ended, process, folder)
    address = f"127.0.0.1:{port}"
    _wait(address, process)
    return address, process


def _ended(process: "subprocess.Popen[bytes]", folder: "tempfile.TemporaryDirectory[str]") -> None:
    process.terminate()
    process.wait(timeout=START_PATIENCE_S)
    folder.cleanup()


def _wait(address: str, process: "subprocess.Popen[bytes]") -> None:
    from time import monotonic, sleep  # noqa: PLC0415  the one place that waits

    deadline = monotonic() + START_PATIENCE_S
    while monotonic() < deadline and process.poll() is None:
        try:
            with Cluster(parse_bootstrap(address)) as cluster:
                admin.describe_cluster(cluster)
                return
        except (ClientError, OSError):
            sleep(_POLL_S)
    raise SqlError(SERVER_ERROR, f"no node came up at {address} for engine='spark': name one by bootstrap.servers")


def _free_port() -> int:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _process() -> int:
    from os import getpid  # noqa: PLC0415

    return getpid()
