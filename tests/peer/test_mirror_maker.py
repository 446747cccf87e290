"""MirrorMaker 2 of Kafka 4.3.1 and `ottla mirror`, in turn on one file, between Apache Kafka and ottla, both ways.

Each goes on where the other stopped; MirrorMaker's own classes read what either wrote; a group that moves over after
any of the turns skips nothing.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.admin import NewTopic, create_topics
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.client.groups import commit
from ottla.client.offsets import LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.mirror.following import committed_of
from ottla.model.ids import TopicPartition
from tests.support import jvm
from tests.support.nodes import ApacheKafka, Ottla
from tests.support.programs import Dialogue, Program

pytestmark = [pytest.mark.jvm, pytest.mark.matrix]

JAVA = Path(__file__).parent / "java" / "mirror"
FILE = """\
clusters = apache, ottla
apache.bootstrap.servers = {apache}
ottla.bootstrap.servers = {ottla}
apache->ottla.enabled = true
ottla->apache.enabled = true
topics = orders
groups = app
tasks.max = 2
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
config.storage.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
offset.flush.interval.ms = 500
refresh.topics.interval.seconds = 1
refresh.groups.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 1
"""
SIDES = ("apache", "ottla")
PARTITIONS = 2


class Mirrored:
    """Two clusters with a topic `orders` each, and a group `app` that is a little behind on either."""

    def __init__(self, apache: str, ottla: str, directory: Path) -> None:
        self.directory = directory
        self.bootstrap = {"apache": apache, "ottla": ottla}
        self.clusters = {
            side: Cluster(parse_bootstrap(at), client_id="test", timeout_s=60) for side, at in self.bootstrap.items()
        }
        self.file = directory / "mm2.properties"
        self.file.write_text(FILE.format(apache=apache, ottla=ottla))
        self.sent: dict[str, list[list[bytes]]] = {side: [[] for _ in range(PARTITIONS)] for side in SIDES}
        for cluster in self.clusters.values():
            create_topics(cluster, [NewTopic("orders", PARTITIONS, 1)])

    def send(self, count: int) -> None:
        """To every partition of both, and the group commits all but the last ten."""
        for side, cluster in self.clusters.items():
            producer = Producer(cluster)
            for partition, values in enumerate(self.sent[side]):
                more = [b"%s-%d" % (side.encode(), number) for number in range(len(values), len(values) + count)]
                for value in more:
                    producer.send("orders", value, key=b"k", partition=partition)
                values.extend(more)
            producer.flush()
            places = {TopicPartition("orders", n): len(values) - 10 for n, values in enumerate(self.sent[side])}
            assert set(commit(cluster, "app", places).values()) == {None}

    def copied(self, side: str, partition: int, start: int = 0) -> list[bytes]:
        """What lies on the other side of a partition of `side`."""
        other = self.clusters[self.other(side)]
        place = TopicPartition(f"{side}.orders", partition)
        if f"{side}.orders" not in {topic.name for topic in other.metadata().topics}:
            return []
        end = offset_of(list_offsets(other, {place: LATEST}, isolation=READ_COMMITTED)[place])
        consumer = Consumer(other, {place: (start, end)}, isolation=READ_COMMITTED)
        found: list[bytes] = []
        while consumer.active:
            found += [bytes(record.value or b"") for each in consumer.poll(1) for record in each.records]
        return found

    def is_copied(self) -> bool:
        return all(self.copied(side, n) == self.sent[side][n] for side in SIDES for n in range(PARTITIONS))

    def has_moved(self) -> bool:
        """Whether the group was brought along as far as it has committed: at the other side, nothing before is left."""
        for side in SIDES:
            there = committed_of(self.clusters[self.other(side)], "app")
            for partition in range(PARTITIONS):
                at = there.get((f"{side}.orders", partition))
                if at is None or at.offset <= len(self.sent[side][partition]) - 10 - LAG:
                    return False
        return True

    @staticmethod
    def other(side: str) -> str:
        return SIDES[1 - SIDES.index(side)]

    def close(self) -> None:
        for cluster in self.clusters.values():
            cluster.close()


LAG = 120
"""offset.lag.max, and what a checkpoint may be behind."""


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    directory = tmp_path_factory.mktemp("mirrors")
    with (
        ApacheKafka(directory / "apache") as apache,
        Ottla(directory / "ottla") as ottla,
        closing(Mirrored(apache.bootstrap, ottla.bootstrap, directory)) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def reader() -> Iterator[Dialogue]:
    jars = jvm.jars_of("mirror-maker", JAVA / "pom.xml")
    command = jvm.java(jars, "MirrorReader", classes=jvm.compiled(jars, JAVA / "MirrorReader.java"))
    dialogue = Dialogue("MirrorReader", command)
    yield dialogue
    dialogue.close()


def mirror_maker(mirrored: Mirrored) -> Program:
    jars = jvm.jars_of("mirror-maker", JAVA / "pom.xml")
    flags = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
    words = ("org.apache.kafka.connect.mirror.MirrorMaker", str(mirrored.file))
    return Program("mirror-maker", jvm.java(jars, *words, flags=flags), mirrored.directory)


def ottla_mirror(mirrored: Mirrored) -> Program:
    command = [
        sys.executable,
        "-m",
        "ottla",
        "mirror",
        str(mirrored.file),
        "--state-dir",
        str(mirrored.directory / "s"),
    ]
    return Program("ottla-mirror", command, mirrored.directory)


MIRRORS = {"mirror-maker": mirror_maker, "ottla-mirror": ottla_mirror}


def asked(reader: Dialogue, *words: str) -> Any:
    return json.loads(reader.ask(" ".join(words)))


def check(mirrored: Mirrored, reader: Dialogue) -> None:
    """What MirrorMaker's own classes say of both sides, and that a group that moves over now skips nothing."""
    for side in SIDES:
        other = mirrored.other(side)
        here, there = mirrored.bootstrap[other], mirrored.bootstrap[side]
        standing = asked(reader, "standing", here, side)
        assert standing["hops"] == 1
        assert side in standing["upstream"]
        assert f"{side}.orders" in standing["topics"]
        assert f"{side}.checkpoints.internal" in standing["checkpoints"]
        for sync in asked(reader, "syncs", there, f"mm2-offset-syncs.{other}.internal"):
            assert sync[0].startswith(("orders-", "heartbeats-"))
        points = asked(reader, "checkpoints", here, f"{side}.checkpoints.internal")
        assert {(point[0], point[1]) for point in points} == {("app", f"{side}.orders-{n}") for n in range(PARTITIONS)}
        beats = asked(reader, "heartbeats", here, f"{side}.heartbeats")
        assert {(beat[0], beat[1]) for beat in beats} == {(other, side)}
        translated = asked(reader, "translate", here, side, "app")
        for partition in range(PARTITIONS):
            unread = mirrored.sent[side][partition][-10:]
            start = translated[f"{side}.orders-{partition}"]
            assert mirrored.copied(side, partition, start)[-10:] == unread
            assert start <= len(mirrored.sent[side][partition]) - 10
            at = committed_of(mirrored.clusters[other], "app")[f"{side}.orders", partition].offset
            assert set(unread) <= set(mirrored.copied(side, partition, at))


def test_either_goes_on_where_the_other_stopped_and_groups_move_over(mirrored: Mirrored, reader: Dialogue) -> None:
    for turn in ("mirror-maker", "ottla-mirror", "mirror-maker", "ottla-mirror"):
        mirrored.send(300)
        with MIRRORS[turn](mirrored) as mirror:
            mirror.until(f"copies by {turn}", mirrored.is_copied)
            mirror.until(f"groups by {turn}", mirrored.has_moved)
            mirror.stop_or_kill()
        assert mirrored.is_copied()  # each once
        check(mirrored, reader)
