"""A case on Spark: its inputs go into topics, an application runs until it has processed them, its outputs are read."""

from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.model import ids
from ottla.protocol.records import NewRecord, build_batch
from ottla.streams import StreamsApp, Topology
from tests.oracle import functions
from tests.oracle.cases import Case, Input, Written
from tests.oracle.ours import as_bytes, as_text, settings_of
from tests.oracle.topologies import topology_of
from tests.spark.decided import stable_ends
from tests.support.requests import produced, wait_for_topic
from tests.support.wire import Deadline, Wire

MARKERS = "-ottla-batches"


class OnSpark:
    """One application, run again and again: each run goes on from the checkpoint of the last."""

    def __init__(
        self,
        case: Case,
        bootstrap: str,
        directory: Path,
        *,
        columns: bool = False,
        partitions: int = 1,
        topology: Topology | None = None,
    ) -> None:
        """`topology`: ours, where the case does not say it."""
        self._bootstrap = bootstrap
        self._application = case.name
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._outputs = {step["topic"] for step in case.steps if step["op"] == "to"}
        if case.dead_letters is not None:
            self._outputs.add(case.dead_letters)
        self._partitions = partitions
        self._positions: dict[tuple[str, int], int] = {}
        inputs = {topic for step in case.steps for topic in step.get("topics", [])}
        inputs |= {step["topic"] for step in case.steps if step["op"] in ("table", "global_table")}
        news = [NewTopic(topic, partitions, 1) for topic in sorted(inputs | self._outputs)]
        for created in self._admin.create_topics(news).values():
            created.result()
        self.app = StreamsApp(
            case.name,
            topology or topology_of(case, columns=columns),
            bootstrap_servers=bootstrap,
            state_dir=str(directory),
            auto_offset_reset="earliest",
            # Records of days ago: their changelogs are read here, and retention would take them in the midst of it.
            windowstore_changelog_additional_retention_ms=30 * 86_400_000,
            **settings_of(case),
        )

    def run(self, inputs: list[Input], *, most: int, clock: int) -> list[Written]:
        """All that comes of these inputs, which are there at once and taken `most` at a time. Processors are told that
        it is `clock`."""
        places: dict[tuple[str, int], list[NewRecord]] = {}
        for step in inputs:
            headers = [(name, as_bytes(value)) for name, value in step["headers"]]
            record = NewRecord(as_bytes(step["key"]), as_bytes(step["value"]), step["timestamp"], headers)
            places.setdefault((step["topic"], step.get("partition", 0)), []).append(record)
        with Wire(self._bootstrap) as wire:
            for (topic, partition), records in places.items():
                wait_for_topic(wire, topic, self._partitions)
                produced(wire, topic, bytes(build_batch(records)), partition=partition)
        limited = self.app.changed(config={"max.records.per.batch": most})
        limited.runner(once=True, clock=functions.constant(clock)).run()
        return self._written_since()

    def _places(self) -> set[tuple[str, int]]:
        """Partitions of outputs and of internal topics."""
        return {
            (name, partition)
            for name, topic in self._admin.list_topics(timeout=60).topics.items()
            if name in self._outputs or (name.startswith(f"{self._application}-") and not name.endswith(MARKERS))
            for partition in topic.partitions
        }

    def _written_since(self) -> list[Written]:
        places = self._places()
        with Cluster(parse_bootstrap(self._bootstrap)) as cluster:
            stable_ends(cluster, [ids.TopicPartition(*place) for place in places])
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(*place, self._positions.get(place, 0)) for place in sorted(places)])
        found: list[Written] = []
        deadline = Deadline("the end of all topics")
        while places:
            deadline.check(f"not yet: {sorted(places)}")
            message = consumer.poll(0.2)
            if message is None:
                continue
            place = (message.topic() or "", message.partition() or 0)
            if message.error():
                places.discard(place)
            else:
                self._positions[place] = (message.offset() or 0) + 1
                found.append(self._written(message))
        consumer.close()
        return found

    def _written(self, message: Message) -> Written:
        topic = message.topic() or ""
        if topic.startswith(f"{self._application}-"):
            topic = "oracle" + topic.removeprefix(self._application)
        pairs: Any = message.headers() or ()
        headers = tuple((name, as_text(_raw(value))) for name, value in pairs)
        return Written(
            topic, as_text(_raw(message.key())), as_text(_raw(message.value())), message.timestamp()[1], headers
        )


def _raw(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
