"""kill -9 under load, fifty times: nothing acknowledged is lost, nothing is there twice.

The load is what a careful user runs: idempotent producers with acks=all that do not give up. After the last kill every
record is read back, batch by batch, straight from the wire.
"""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from confluent_kafka import KafkaError, Message, Producer

from ottla.protocol import messages as m
from tests.support.examples import examples
from tests.support.nodes import Ottla
from tests.support.patience import PATIENCE_SECONDS
from tests.support.requests import create_topic, fetch, records_in, wait_for_topic
from tests.support.wire import Closed, Wire

KILLS = examples(50)
PARTITIONS = 4
PRODUCERS = 2
SLICE_S = 0.25
"""How long the load runs on a freshly started node before it is killed."""


class Load:
    """Producers that write numbered values for as long as they may."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._numbers = itertools.count()
        self._ending = threading.Event()
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """Number of a record to the partition and offset it was acknowledged at."""
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._produce) for _ in range(PRODUCERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive()

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "delivery.timeout.ms": 300_000,
                "socket.connection.setup.timeout.ms": 1000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 10,
                "retry.backoff.max.ms": 50,
                "queue.buffering.max.messages": 2000,
                "log_level": 0,
            },
            error_cb=lambda error: None,
        )
        while not self._ending.is_set():
            number = next(self._numbers)
            try:
                value = b"%d %s" % (number, b"." * 200)
                producer.produce(self._topic, value, partition=number % PARTITIONS, on_delivery=self._delivered)
            except BufferError:
                producer.poll(0.05)
            producer.poll(0.001 if number % 20 == 0 else 0)  # some thousand a second leave the node room to start
        assert producer.flush(60) == 0, "records are still under way"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert isinstance(value, bytes) and partition is not None and offset is not None
        self.acknowledged[number_of(value)] = (partition, offset)


def number_of(value: bytes) -> int:
    return int(value.split()[0])


def everything(bootstrap: str, topic: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Every record: its number and where it stands."""
    with Wire(bootstrap) as wire:
        for partition in range(PARTITIONS):
            offset = 0
            while True:
                part = fetch(wire, topic, offset, partition=partition, max_bytes=4_000_000)
                assert part.error_code == 0
                found = records_in(part.records)
                if not found:
                    assert offset == part.high_watermark
                    break
                for record in found:
                    assert record.offset == offset, "offsets are dense"
                    assert record.value is not None
                    yield number_of(record.value), (partition, offset)
                    offset += 1


def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = Ottla(tmp_path, extra={"log.segment.bytes": str(2 << 20)})
    node.start()
    with Wire(node.bootstrap) as wire:
        create_topic(wire, "load", PARTITIONS)
    load = Load(node.bootstrap, "load")
    load.start()
    started: list[float] = []
    try:
        for _ in range(KILLS):
            let_it_run(load, SLICE_S)
            node.kill()
            began = time.monotonic()
            node.start()
            started.append(time.monotonic() - began)
    finally:
        load.finish()
    stored = list(everything(node.bootstrap, "load"))
    assert node.stop() == 0

    with capsys.disabled():
        print(
            f"\n{KILLS} kills, {len(load.acknowledged)} records acknowledged; start-up median "
            f"{median(started) * 1000:.0f} ms, slowest {max(started) * 1000:.0f} ms"
        )
    assert not load.failures
    assert "Traceback" not in node.printed()
    assert len(load.acknowledged) > KILLS * 100, "the load was too small to show anything"
    doubled = [number for number, count in Counter(number for number, _ in stored).items() if count > 1]
    assert not doubled
    places = dict(stored)
    lost = [number for number in load.acknowledged if number not in places]
    assert not lost
    moved = [number for number, place in load.acknowledged.items() if places[number] != place]
    assert not moved


def let_it_run(load: Load, seconds: float) -> None:
    """Until so much time has passed and enough was acknowledged to show something."""
    before, end = len(load.acknowledged), time.monotonic() + seconds
    hopeless = end + PATIENCE_SECONDS
    while time.monotonic() < end or len(load.acknowledged) <= before + 100:
        assert time.monotonic() < hopeless, "nothing is acknowledged any more"
        assert not load.failures, load.failures[0]
        threading.Event().wait(0.005)  # the load runs in threads of this process: let them


def test_a_kill_in_the_middle_of_creating_topics_leaves_whole_topics(tmp_path: Path) -> None:
    """What CreateTopics has acknowledged is there after kill -9, every partition with its leader."""
    node = Ottla(tmp_path)
    created: list[str] = []
    for round_ in range(5):
        node.start()
        killer = threading.Timer(0.1 + 0.02 * round_, node.process.kill)  # type: ignore[union-attr]
        try:
            with Wire(node.bootstrap) as wire:
                for number in itertools.count():
                    if number == 5:  # not by the clock alone: a busy machine makes few topics in a tenth of a second
                        killer.start()
                    name = f"topic-{round_}-{number}"
                    new = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=3, replication_factor=1)
                    answer = wire.ask(m.CreateTopicsRequest(topics=[new], timeout_ms=60_000))
                    assert answer.topics[0].error_code == 0
                    created.append(name)
        except (Closed, OSError):
            pass
        killer.join()
        node.kill()

    with node, Wire(node.bootstrap) as wire:
        for name in created:
            wait_for_topic(wire, name, 3)
        described = {t.name: t for t in wire.ask(m.MetadataRequest(topics=None)).topics}
        for name in created:
            assert [(p.error_code, p.leader_id) for p in described[name].partitions] == [(0, 1)] * 3
            assert fetch(wire, name, partition=2).error_code == 0
    assert len(created) > 20
