"""A controller and brokers as nodes of their own, from Kafka's server.properties: they find each other, serve, and
outlive a restart of each kind."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.cli.app import run
from ottla.model.errors import Errors
from ottla.model.properties import Settings
from ottla.protocol import messages as m
from ottla.testing.node_thread import NodeThread
from tests.support.nodes import free_ports
from tests.support.patience import PATIENCE_SECONDS
from tests.support.wire import Wire

DEADLINE_SECONDS = PATIENCE_SECONDS
CONTROLLER = """\
process.roles=controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
"""
BROKER = """\
process.roles=broker
node.id={node_id}
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
default.replication.factor=2
offsets.topic.replication.factor=2
max.connections.per.ip=1000000
"""


class Nodes:
    """Node 1 is the controller, 2 and 3 are brokers."""

    def __init__(self, directory: Path) -> None:
        controller, *self.ports = free_ports(3)
        data = {node_id: directory / f"node-{node_id}" for node_id in (1, 2, 3)}
        texts = {1: CONTROLLER.format(controller=controller, data=data[1])}
        for node_id, port in zip((2, 3), self.ports, strict=True):
            texts[node_id] = BROKER.format(node_id=node_id, controller=controller, port=port, data=data[node_id])
        self._settings = {node_id: Settings.from_properties(text) for node_id, text in texts.items()}
        self._threads: dict[int, NodeThread] = {}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self._threads[node_id] = NodeThread(self._settings[node_id])
            self._threads[node_id].start()
        for node_id in node_ids:
            self._threads[node_id].ready()

    def stop(self, node_id: int) -> None:
        self._threads[node_id].stop()

    def kill(self, node_id: int) -> None:
        self._threads[node_id].kill()

    def cluster_ids(self) -> set[str]:
        nodes = [thread.node for thread in self._threads.values()]
        return {node.control_plane.image.cluster_id for node in nodes if node is not None}

    def until_in_sync(self, topic: str) -> None:
        """Both brokers have everything: either may be lost."""
        node = self._threads[1].node
        deadline = time.monotonic() + DEADLINE_SECONDS
        while node is not None and len(node.control_plane.image.topics[topic].partitions[0].isr) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def close(self) -> None:
        for thread in self._threads.values():
            thread.kill()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    try:
        yield nodes
    finally:
        nodes.close()
        shutil.rmtree(tmp_path, ignore_errors=True)


def create(nodes: Nodes, topic: str) -> None:
    # A request that was under way when the controller came or went is sent again, and may have been done before.
    words = ["topics", "create", topic, "-p", "2", "-r", "2", "--if-not-exists"]
    assert run([*words, "--bootstrap", nodes.bootstrap]) == 0


def produce(nodes: Nodes, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": nodes.bootstrap, "acks": "all"})
    failures: list[object] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert failures == [None] * len(values)


def consume(nodes: Nodes, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found: list[str] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(found) < count and time.monotonic() < deadline:
            messages = consumer.consume(count - len(found), 0.2)
            found += [(message.value() or b"").decode() for message in messages if message.error() is None]
        return found
    finally:
        consumer.close()


def test_a_controller_and_two_brokers_form_a_cluster_that_outlives_restarts(nodes: Nodes) -> None:
    nodes.start(3, 1, 2)  # in any order
    assert len(nodes.cluster_ids()) == 1
    create(nodes, "orders")
    produce(nodes, "orders", "a", "b")

    nodes.stop(1)
    produce(nodes, "orders", "c")  # brokers serve without a controller
    nodes.start(1)
    create(nodes, "more")

    nodes.stop(2)
    produce(nodes, "orders", "d")
    nodes.start(2)
    nodes.until_in_sync("orders")
    nodes.kill(3)
    produce(nodes, "orders", "e")
    nodes.start(3)
    assert consume(nodes, "orders", 5) == ["a", "b", "c", "d", "e"]
    assert len(nodes.cluster_ids()) == 1


def test_who_asks_for_a_producer_id_while_no_controller_is_there_is_told_to_try_again(nodes: Nodes) -> None:
    nodes.start(1, 2)
    nodes.stop(1)
    with Wire(f"127.0.0.1:{nodes.ports[0]}") as wire:
        answer = wire.ask(m.InitProducerIdRequest(transactional_id=None))
        assert (Errors(answer.error_code), answer.producer_id) == (Errors.COORDINATOR_LOAD_IN_PROGRESS, -1)
        nodes.start(1)
        while wire.ask(m.InitProducerIdRequest(transactional_id=None)).error_code:
            pass
