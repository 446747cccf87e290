"""Three nodes: what replicas do for each other, and what a client hears from a broker that is not the leader."""

import logging
import socket
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch, read_records
from ottla.testing import Cluster
from tests.support.patience import PATIENCE_MS, PATIENCE_SECONDS, eventually
from tests.support.wire import Wire

DEADLINE_SECONDS = PATIENCE_SECONDS
NODES = (1, 2, 3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replicas")


@pytest.fixture(scope="module")
def kafka(data: Path) -> Iterator[Cluster]:
    with Cluster(3, data_dir=data, replica_lag_time_max_ms=10_000) as cluster:
        yield cluster


def wire_to(kafka: Cluster, node_id: int) -> Wire:
    return Wire(kafka._node(node_id).bootstrap_servers)


def all_active(kafka: Cluster) -> bool:
    images = [kafka._node(node).control_plane.image for node in NODES]
    return all(image.brokers[node].is_active for image in images for node in NODES)


def create(
    kafka: Cluster, name: str, replicas: tuple[int, ...] = NODES, configs: dict[str, str] | None = None
) -> bytes:
    """One partition on the nodes given; the first leads. Gives the topic id."""
    eventually(lambda: all_active(kafka))
    kind = m.CreateTopicsRequest
    topic = kind.CreatableTopic(
        name,
        assignments=[kind.CreatableReplicaAssignment(0, list(replicas))],
        num_partitions=-1,
        replication_factor=-1,
        configs=[kind.CreatableTopicConfig(key, value) for key, value in (configs or {}).items()],
    )
    with wire_to(kafka, kafka.running[0]) as wire:
        created = wire.ask(kind(topics=[topic], timeout_ms=10_000)).topics[0]
    assert not created.error_code, created
    eventually(lambda: all(kafka.leader_of(name, seen_by=node) == replicas[0] for node in kafka.running))
    topic_id: bytes = created.topic_id
    return topic_id


def produce(wire: Wire, topic: str, *values: bytes, acks: int = -1, version: int = 12) -> Any:
    kind = m.ProduceRequest
    batch = build_batch([NewRecord(None, value, 1) for value in values])
    data = kind.TopicProduceData(name=topic, partition_data=[kind.PartitionProduceData(0, memoryview(batch))])
    return wire.ask(kind(acks=acks, timeout_ms=PATIENCE_MS, topic_data=[data]), version)


def fetch(wire: Wire, topic: str, offset: int, *, version: int = 12, epoch: int = -1) -> Any:
    kind = m.FetchRequest
    asked = kind.FetchPartition(0, epoch, offset, partition_max_bytes=1 << 20)
    answer = wire.ask(kind(max_wait_ms=0, topics=[kind.FetchTopic(topic=topic, partitions=[asked])]), version)
    return answer.responses[0].partitions[0]


def values_of(data: Any) -> list[bytes | None]:
    values, position, view = [], 0, memoryview(data.records or b"")
    while position < len(view):
        size = int.from_bytes(view[position + 8 : position + 12], "big") + 12
        values += [record.value for record in read_records(view[position : position + size])]
        position += size
    return values


def test_what_is_acknowledged_lies_on_every_replica_byte_for_byte(
    kafka: Cluster, data: Path, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    create(kafka, name)
    with wire_to(kafka, 1) as wire:
        for at in range(50):
            answer = produce(wire, name, b"%d" % at, b"x" * at)
            assert answer.responses[0].partition_responses[0].error_code == 0
    segments = [(data / f"node-{node}" / f"{name}-0" / f"{0:020}.log").read_bytes() for node in NODES]
    assert segments[0] and segments[0] == segments[1] == segments[2]


def test_a_broker_that_does_not_lead_says_who_does(kafka: Cluster, new_topic_name: Callable[[], str]) -> None:
    name = new_topic_name()
    topic_id = create(kafka, name, (1, 2))
    leader = kafka._node(1).bootstrap_servers
    kind = m.FetchRequest
    for other in (2, 3):  # a follower, and one without a replica
        with wire_to(kafka, other) as wire:
            answer = produce(wire, name, b"x")
            refused = answer.responses[0].partition_responses[0]
            assert (refused.error_code, refused.current_leader.leader_id) == (Errors.NOT_LEADER_OR_FOLLOWER, 1)
            assert [f"{node.host}:{node.port}" for node in answer.node_endpoints] == [leader]
            asked = kind.FetchPartition(0, 0 if other == 3 else -1, 0, partition_max_bytes=1000)
            topics = [kind.FetchTopic(topic_id=topic_id, partitions=[asked])]
            fetched = wire.ask(kind(max_wait_ms=0, topics=topics), 17)
            if other == 3:
                assert fetched.responses[0].partitions[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER
                assert fetched.responses[0].partitions[0].current_leader.leader_id == 1
                assert [f"{node.host}:{node.port}" for node in fetched.node_endpoints] == [leader]


def test_a_client_may_read_from_a_follower_up_to_the_high_watermark(
    kafka: Cluster, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    create(kafka, name)
    with wire_to(kafka, 1) as wire:
        produce(wire, name, b"a", b"b")
    with wire_to(kafka, 2) as wire:
        eventually(lambda: bool(values_of(fetch(wire, name, 0)) == [b"a", b"b"]))
        assert fetch(wire, name, 0, version=10).error_code == Errors.NOT_LEADER_OR_FOLLOWER  # before KIP-392
        assert fetch(wire, name, 0, epoch=77).error_code == Errors.UNKNOWN_LEADER_EPOCH
        kind = m.ListOffsetsRequest
        asked = kind.ListOffsetsTopic(name, [kind.ListOffsetsPartition(0, -1, -1)])
        found = wire.ask(kind(replica_id=-1, topics=[asked])).topics[0].partitions[0]
        assert found.error_code == Errors.NOT_LEADER_OR_FOLLOWER


def test_kip_664_any_replica_tells_which_producers_it_remembers(
    kafka: Cluster, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    create(kafka, name, (1, 2))
    kind = m.ProduceRequest
    batch = build_batch([NewRecord(None, b"x", 1)], producer_id=77, producer_epoch=0, base_sequence=0)
    data = kind.TopicProduceData(name=name, partition_data=[kind.PartitionProduceData(0, memoryview(batch))])
    with wire_to(kafka, 1) as wire:
        answer = wire.ask(kind(acks=-1, timeout_ms=PATIENCE_MS, topic_data=[data]), 12)
        assert not answer.responses[0].partition_responses[0].error_code
    asked = m.DescribeProducersRequest(topics=[m.DescribeProducersRequest.TopicRequest(name, [0])])
    told = {}
    for node in NODES:
        with wire_to(kafka, node) as wire:
            (partition,) = wire.ask(asked).topics[0].partitions
            told[node] = (partition.error_code, [active.producer_id for active in partition.active_producers])
    assert told == {1: (Errors.NONE, [77]), 2: (Errors.NONE, [77]), 3: (Errors.NOT_LEADER_OR_FOLLOWER, [])}


def test_with_fewer_in_sync_than_asked_for_acks_all_is_refused_and_nothing_is_visible(
    kafka: Cluster, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    create(kafka, name, (1, 2, 3), {"min.insync.replicas": "3"})
    with wire_to(kafka, 1) as wire:
        assert not produce(wire, name, b"first").responses[0].partition_responses[0].error_code
        kafka.kill(3)
        eventually(lambda: kafka.in_sync(name) == [1, 2])
        answer = produce(wire, name, b"second")
        assert answer.responses[0].partition_responses[0].error_code == Errors.NOT_ENOUGH_REPLICAS
        # KIP-966: acks=1 writes, but what too few replicas have is not shown.
        assert produce(wire, name, b"third", acks=1).responses[0].partition_responses[0].base_offset == 1
        assert (values_of(fetch(wire, name, 0)), fetch(wire, name, 0).high_watermark) == ([b"first"], 1)
        kafka.restart(3)
        eventually(lambda: len(kafka.in_sync(name)) == 3)
        eventually(lambda: values_of(fetch(wire, name, 0)) == [b"first", b"third"])


def test_deleted_records_are_gone_from_every_replica_when_the_answer_comes(
    kafka: Cluster, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    create(kafka, name)
    with wire_to(kafka, 1) as wire:
        for value in (b"a", b"b", b"c"):
            produce(wire, name, value)
        kind = m.DeleteRecordsRequest
        asked = kind.DeleteRecordsTopic(name, [kind.DeleteRecordsPartition(0, 2)])
        result = wire.ask(kind(topics=[asked], timeout_ms=2 * int(DEADLINE_SECONDS) * 1000)).topics[0].partitions[0]
        assert (result.error_code, result.low_watermark) == (Errors.NONE, 2)
    for node in (2, 3):
        with wire_to(kafka, node) as wire:
            assert fetch(wire, name, 1).error_code == Errors.OFFSET_OUT_OF_RANGE


def test_a_topic_made_again_under_its_name_starts_empty_everywhere(
    kafka: Cluster, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    for turn in range(3):
        create(kafka, name)
        with wire_to(kafka, 1) as wire:
            answer = produce(wire, name, b"%d" % turn)
            assert answer.responses[0].partition_responses[0].base_offset == 0
            deletion = m.DeleteTopicsRequest(
                topics=[m.DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=10_000
            )
            assert not wire.ask(deletion).responses[0].error_code
        eventually(lambda: all(kafka.leader_of(name, seen_by=node) == -1 for node in NODES))


def test_a_replica_that_was_away_cuts_off_what_nobody_else_has(
    kafka: Cluster, data: Path, new_topic_name: Callable[[], str]
) -> None:
    name = new_topic_name()
    create(kafka, name, NODES, {"min.insync.replicas": "1"})
    with wire_to(kafka, 1) as wire:
        produce(wire, name, b"kept")
        kafka.partition([1], [2, 3])
        eventually(lambda: all(kafka._peers[node]._cut for node in NODES))
        assert produce(wire, name, b"lost", acks=1).responses[0].partition_responses[0].base_offset == 1
    eventually(lambda: kafka.leader_of(name, seen_by=2) in (2, 3))
    leader = kafka.leader_of(name, seen_by=2)
    eventually(lambda: kafka.leader_of(name, seen_by=leader) == leader)
    with wire_to(kafka, leader) as wire:
        assert produce(wire, name, b"instead").responses[0].partition_responses[0].base_offset == 1
    kafka.heal()
    eventually(lambda: len(kafka.in_sync(name)) == 3)

    def segments() -> list[bytes]:
        return [(data / f"node-{node}" / f"{name}-0" / f"{0:020}.log").read_bytes() for node in NODES]

    eventually(lambda: segments()[0] == segments()[1] == segments()[2])
    with wire_to(kafka, 1) as wire:
        eventually(lambda: values_of(fetch(wire, name, 0)) == [b"kept", b"instead"])


def test_a_leader_that_is_gone_is_told_of_when_the_reason_changes_and_not_at_every_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO), Cluster(3) as kafka:
        create(kafka, "orders")
        host, port = kafka.bootstrap_server(1).rsplit(":", 1)
        kafka.kill(2)
        kafka.kill(1)  # without a majority nobody else is elected, and the third goes on asking it
        with socket.create_server((host, int(port))) as hangs_up:
            hangs_up.settimeout(DEADLINE_SECONDS)
            for _ in range(4):
                hangs_up.accept()[0].close()
    told = [each for each in caplog.messages if each.startswith("fetching from broker 1 failed")]
    assert told
    assert all(each != following for each, following in pairwise(told))
