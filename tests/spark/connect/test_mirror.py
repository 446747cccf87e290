"""Topics of one cluster copied to another, by connectors that die, and a group that moves over."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.blocking.consumer import Consumer
from ottla.client.groups import commit
from ottla.client.offsets import LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.connect.jobs.query import ConnectorStopped
from ottla.connect.jobs.spec import JobSpec
from ottla.mirror.flows import CHECKPOINT, HEARTBEAT, SOURCE
from ottla.mirror.following import Follower, committed_of
from ottla.mirror.formats import Checkpoint, Heartbeat, OffsetSync
from ottla.mirror.policy import policy_of
from ottla.mirror.selection import Selection, topics_of
from ottla.mirror.sides import connected
from ottla.mirror.standing import FlowTopics, Standing
from ottla.mirror.syncs import SyncStore
from ottla.model.ids import TopicPartition
from ottla.testing import Cluster
from tests.spark.applications import World
from tests.spark.connect.connectors import POINTS, run, run_and_die

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.fixture(scope="module")
def us() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def flow(us: Cluster, world: World) -> dict[str, str]:
    """Of topics that are named after the test: the target is shared with others."""
    us.reset()
    return {
        "source.cluster.alias": world.name,
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": us.bootstrap_servers,
        "target.cluster.bootstrap.servers": world.bootstrap,
        "topics": "orders,payments",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
    }


def _spec(world: World, flow: dict[str, str], connector: str) -> JobSpec:
    return JobSpec(
        name=f"{world.name}-{connector.rpartition('.')[2]}",
        config={**flow, "connector.class": connector},
        bootstrap=world.bootstrap,
        group_id="mirror-tests",
        offsets_topic=f"{world.name}.offsets",
        directory=str(world.directory / connector),
        tasks=2,
        once=True,
    )


def _copied(world: World, topic: str, partition: int) -> list[tuple[bytes | None, bytes | None]]:
    place = TopicPartition(f"{world.name}.{topic}", partition)
    with closing(Client(parse_bootstrap(world.bootstrap), client_id="test", timeout_s=60)) as target:
        end = offset_of(list_offsets(target, {place: LATEST})[place])
        consumer = Consumer(target, {place: (0, end)}, isolation=READ_COMMITTED)
        found = []
        while consumer.active:
            found += [(record.key, record.value) for each in consumer.poll(1) for record in each.records]
    return [(bytes(key) if key else None, bytes(value) if value else None) for key, value in found]


def _syncs(cluster: Client, topic: str) -> SyncStore:
    store = SyncStore(keeps_history=True)
    Follower(cluster, topic, lambda key, value: store.replay(OffsetSync.read(key, value))).catch_up()
    store.complete = True
    return store


def test_a_mirror_that_dies_at_every_step_copies_each_record_once_to_the_partition_that_it_had(
    spark: "SparkSession", world: World, us: Cluster, flow: dict[str, str]
) -> None:
    us.create_topic("orders", partitions=2)
    spec = _spec(world, flow, SOURCE)
    sent: dict[int, list[bytes]] = {0: [], 1: []}

    def send(count: int) -> None:
        for partition, values in sent.items():
            more = [b"v%d" % number for number in range(len(values), len(values) + count)]
            us.produce("orders", *more, key=b"k%d" % partition, partition=partition)
            values.extend(more)

    send(700)
    for point in POINTS:
        with pytest.raises(ConnectorStopped, match=point):
            run_and_die(spark, spec, point, 0)
        send(10)
    run(spark, spec)
    for partition, values in sent.items():
        assert _copied(world, "orders", partition) == [(b"k%d" % partition, value) for value in values]


def test_a_group_that_moves_over_skips_nothing_and_begins_where_it_was(
    spark: "SparkSession", world: World, us: Cluster, flow: dict[str, str]
) -> None:
    us.create_topic("orders", partitions=1)
    us.produce("orders", *(f"v{number}" for number in range(300)), partition=0)
    with closing(connected(flow, "source")) as source, closing(connected(flow, "target")) as target:
        commit(source, f"{world.name}-app", {TopicPartition("orders", 0): 250})
        run(spark, _spec(world, flow, SOURCE))
        store = _syncs(source, "mm2-offset-syncs.eu.internal")
        assert store.translate("orders", 0, 299) == 299
        translated = store.translate("orders", 0, 250)
        assert translated is not None
        assert 100 < translated <= 250

        checkpoint = {**flow, "groups": f"{world.name}-app", "sync.group.offsets.enabled": "true"}
        run(spark, _spec(world, checkpoint, CHECKPOINT))
        run(spark, _spec(world, flow, HEARTBEAT))
        policy = policy_of(flow)
        standing = Standing(
            policy,
            Selection(policy, topics_of(flow), "eu", heartbeats=False),
            world.name,
            source,
            target,
            FlowTopics(f"{world.name}.offsets", f"{world.name}.checkpoints.internal", "heartbeats"),
        )
        (group,) = standing.of_groups("eu")
        assert group.in_step
        assert group.checkpoint == Checkpoint(
            f"{world.name}-app", f"{world.name}.orders", 0, 250, translated, group.checkpoint.metadata
        )
        (topic,) = standing.of_topics(f"{world.name}-MirrorSourceConnector")
        assert topic.lag == 0
        assert committed_of(target, f"{world.name}-app")[f"{world.name}.orders", 0].offset == translated
    beats = [Heartbeat.read(record.key or b"", record.value or b"") for record in world.read("heartbeats")]
    assert (world.name, "eu") in {(beat.source, beat.target) for beat in beats}
