"""Three nodes in this process: what clients see when one of them is lost, stopped, paused or cut off."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from ottla.protocol import messages as m
from ottla.testing import Cluster
from tests.support.patience import PATIENCE_SECONDS, eventually
from tests.support.transactions import CONCURRENT_TRANSACTIONS, ByHand
from tests.support.wire import Wire

PARTITIONS = 3
DEADLINE_SECONDS = int(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    """A node is given up after nine seconds, not two: on a busy machine one that is well may be still for as long."""
    with Cluster(
        3, add_partitions_to_txn_retry_backoff_max_ms=DEADLINE_SECONDS * 1000, broker_session_timeout_ms=9_000
    ) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: Cluster, new_topic_name: Callable[[], str]) -> str:
    kafka.reset()
    name = new_topic_name()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name].result(DEADLINE_SECONDS)
    eventually(lambda: all(len(kafka.in_sync(name, p)) == 3 for p in range(PARTITIONS)))
    return name


class Acknowledged:
    """Sends numbered records with acks=all and keeps those that were acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": int(DEADLINE_SECONDS * 1000),
                "linger.ms": 1,
            }
        )
        self._topic = topic
        self._next = 0
        self.values: list[str] = []
        self.failures: list[str] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            value = str(self._next)
            self._next += 1
            self._producer.produce(
                self._topic, value.encode(), partition=int(value) % PARTITIONS, on_delivery=self._delivered
            )
            self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(DEADLINE_SECONDS) == 0

    def _delivered(self, error: object, message: object) -> None:
        value = message.value().decode()  # type: ignore[attr-defined]
        if error is None:
            self.values.append(value)
        else:
            self.failures.append(f"{value}: {error}")


def everything(bootstrap: str, topic: str) -> list[str]:
    """All records of the topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    found: list[str] = []
    try:
        for index in range(PARTITIONS):
            place = TopicPartition(topic, index, 0)
            _, end = watermarks(consumer, place)
            consumer.assign([place])
            read = 0
            while read < end:
                message = consumer.poll(DEADLINE_SECONDS)
                assert message is not None and message.error() is None
                found.append((message.value() or b"").decode())
                read = (message.offset() or 0) + 1
    finally:
        consumer.close()
    return found


def watermarks(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=DEADLINE_SECONDS)
            return low, high
        except KafkaException:
            assert time.monotonic() < deadline


def in_order(values: list[str]) -> list[str]:
    """What a reader of the partitions one after the other sees if nothing was lost, doubled or reordered."""
    return [
        v for index in range(PARTITIONS) for v in sorted((v for v in values if int(v) % PARTITIONS == index), key=int)
    ]


def test_records_are_on_every_node_before_they_are_acknowledged(kafka: Cluster, topic: str) -> None:
    sent = Acknowledged(kafka.bootstrap_servers, topic)
    sent.send(300)
    sent.flush()
    assert everything(kafka.bootstrap_servers, topic) == in_order(sent.values)
    assert len(sent.values) == 300


def test_a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(kafka: Cluster, topic: str) -> None:
    sent = Acknowledged(kafka.bootstrap_servers, topic)
    sent.send(300)
    sent.flush()
    leader = kafka.leader_of(topic)
    kafka.kill(leader)
    sent.send(300)
    sent.flush()
    eventually(lambda: kafka.leader_of(topic) not in (leader, -1))
    kafka.restart(leader)
    eventually(lambda: all(len(kafka.in_sync(topic, p)) == 3 for p in range(PARTITIONS)))
    assert (sent.failures, everything(kafka.bootstrap_servers, topic)) == ([], in_order(sent.values))


def test_the_controller_may_die_with_its_node(kafka: Cluster, topic: str) -> None:
    sent = Acknowledged(kafka.bootstrap_servers, topic)
    eventually(lambda: kafka.controller in kafka.running)
    controller = kafka.controller
    kafka.kill(controller)
    sent.send(100)
    sent.flush()
    eventually(lambda: kafka.controller not in (controller, -1))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(f"{topic}-later", 1, 2)])[f"{topic}-later"].result(DEADLINE_SECONDS)
    kafka.restart(controller)
    assert (sent.failures, everything(kafka.bootstrap_servers, topic)) == ([], in_order(sent.values))


def test_a_node_that_is_shut_down_hands_its_leaders_over_first(kafka: Cluster, topic: str) -> None:
    sent = Acknowledged(kafka.bootstrap_servers, topic)
    for node_id in (1, 2, 3):
        sent.send(50)
        kafka.shut_down(node_id)
        sent.send(50)
        sent.flush()
        kafka.restart(node_id)
        eventually(lambda: all(len(kafka.in_sync(topic, p)) == 3 for p in range(PARTITIONS)))
    assert (sent.failures, everything(kafka.bootstrap_servers, topic)) == ([], in_order(sent.values))


def test_a_leader_cut_off_from_the_others_acknowledges_nothing(kafka: Cluster, topic: str) -> None:
    sent = Acknowledged(kafka.bootstrap_servers, topic)
    sent.send(60)
    sent.flush()
    leader = kafka.leader_of(topic)
    others = [node_id for node_id in kafka.running if node_id != leader]
    kafka.partition([leader], others)
    sent.send(60)
    eventually(lambda: kafka.leader_of(topic, seen_by=others[0]) in others)
    kafka.heal()
    sent.flush()
    eventually(lambda: all(len(kafka.in_sync(topic, p)) == 3 for p in range(PARTITIONS)))
    assert (sent.failures, everything(kafka.bootstrap_servers, topic)) == ([], in_order(sent.values))


def test_a_partition_added_while_the_last_transaction_ends_is_added_when_it_has_ended(
    kafka: Cluster, topic: str
) -> None:
    """Instead of CONCURRENT_TRANSACTIONS, upon which clients pause for much longer than markers need."""
    lone = f"{topic}-of-one-replica"
    kafka.create_topic(lone, partitions=PARTITIONS, replication_factor=1)
    with Wire(kafka.bootstrap_servers.split(",")[0]) as anybody:
        ByHand(anybody, topic).find()
        found = anybody.ask(m.FindCoordinatorRequest(key_type=1, coordinator_keys=[topic])).coordinators[0]
    lost, other = [index for index in range(PARTITIONS) if kafka.leader_of(lone, index) != found.node_id][:2]
    with Wire(f"{found.host}:{found.port}") as coordinator, ThreadPoolExecutor(1) as beside:
        producer = ByHand(coordinator, topic).begin()
        assert producer.add((lone, lost)) == {(lone, lost): 0}
        victim = kafka.leader_of(lone, lost)
        kafka.kill(victim)
        commit = m.EndTxnRequest(topic, producer.producer_id, producer.epoch, committed=True)
        eventually(lambda: coordinator.ask(commit, 3).error_code in (0, CONCURRENT_TRANSACTIONS))
        added = beside.submit(producer.add, (lone, other))
        kafka.restart(victim)
        assert added.result(DEADLINE_SECONDS) == {(lone, other): 0}
        assert producer.end(committed=False) == 0
