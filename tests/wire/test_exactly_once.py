"""An exactly-once copy by real clients over aborts, kills of the copiers and kills of the node."""

import os
import random
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.protocol import messages as m
from tests.support import copier
from tests.support.nodes import Ottla
from tests.support.requests import create_topic
from tests.support.wire import Deadline, Wire

RECORDS = 200_000
PARTITIONS = 4
NODE_KILLS = 3
CLIENT_KILLS = 6
SEED = 20_261_115
PATIENCE_S = 1200.0
"""Fifty times what it takes: only a copy that stands still fails here."""
STUCK_S = 120.0
"""librdkafka may wait for ever for a coordinator that was restarted (its issues 5456 and 5511). Any call that minds its
own timeout is back by then; who says nothing for so long is replaced, as an operator would do."""

QUICK = {
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.min.session.timeout.ms": "100",
}


class Strike(NamedTuple):
    """`victim` None is the node. It comes with the first such line after so many records were committed."""

    committed: int
    step: str
    victim: int | None


def strikes(dice: random.Random) -> list[Strike]:
    victims: list[int | None] = [None] * NODE_KILLS + [kill % 2 for kill in range(CLIENT_KILLS)]
    steps = [copier.BEGUN, copier.WRITTEN, copier.OFFSETS_SENT, copier.COMMITTED]
    dice.shuffle(victims)
    # The last ones come at four fifths: what a kill hides from the count must not put them out of reach.
    gap = RECORDS * 4 // 5 // len(victims)
    return [Strike(number * gap, dice.choice(steps), victim) for number, victim in enumerate(victims, 1)]


class Crew:
    """Two copiers in one group, and what they say. One that ends on its own is a failure of the test."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._selector = selectors.DefaultSelector()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._rest: dict[int, bytes] = {}
        self._lives: Counter[int] = Counter()
        self._heard: dict[int, float] = {}
        self.told: Counter[str] = Counter()
        self.committed = 0

    def start(self, number: int) -> None:
        self._lives[number] += 1
        seed = SEED + number * 1000 + self._lives[number]
        words = [self._bootstrap, f"copier-{number}", str(seed), ("static", "dynamic")[number]]
        with (self._directory / f"copier-{number}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.copier", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=Path(__file__).parent.parent.parent,
            )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._processes[number] = process
        self._rest[number] = b""
        self._heard[number] = time.monotonic()
        self._selector.register(process.stdout, selectors.EVENT_READ, number)

    def kill(self, number: int) -> None:
        self._end(number, signal.SIGKILL)

    def dismiss(self) -> list[int]:
        """Their exit codes."""
        return [self._end(number, signal.SIGTERM) for number in list(self._processes)]

    def _end(self, number: int, how: signal.Signals) -> int:
        process = self._processes.pop(number)
        assert process.stdout is not None
        self._selector.unregister(process.stdout)
        process.send_signal(how)
        os.set_blocking(process.stdout.fileno(), True)
        try:
            process.communicate(timeout=STUCK_S)  # reads on: a full pipe must not keep it from ending
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return process.returncode

    def hear(self, deadline: Deadline) -> list[str]:
        """Waits for one of them to say something: the steps."""
        steps: list[str] = []
        for key, _ in self._selector.select(1.0):
            number: int = key.data
            self._heard[number] = time.monotonic()
            piece = os.read(key.fd, 1 << 16)
            assert piece, f"copier {number} ended by itself: {self._said(number)}"
            *lines, self._rest[number] = (self._rest[number] + piece).split(b"\n")
            for line in lines:
                step, count, *_ = line.decode().split(" ", 2)
                self.told[step] += 1
                self.committed += int(count) if step == copier.COMMITTED else 0
                steps.append(step)
        for number in list(self._processes):
            if time.monotonic() - self._heard[number] > STUCK_S:
                self.kill(number)
                self.start(number)
        deadline.check((self.committed, dict(self.told)))
        return steps

    def _said(self, number: int) -> str:
        return (self._directory / f"copier-{number}.log").read_text()


def test_a_copy_is_exactly_once_over_aborts_and_kills_of_everybody(tmp_path: Path) -> None:
    node = Ottla(tmp_path / "node", extra=QUICK).start()
    with Wire(node.bootstrap) as wire:
        create_topic(wire, copier.SOURCE, PARTITIONS)
        create_topic(wire, copier.TARGET, PARTITIONS)
    given = fill(node.bootstrap)
    crew = Crew(node.bootstrap, tmp_path)
    deadline = Deadline("the whole copy", PATIENCE_S)
    try:
        for number in range(2):
            crew.start(number)
        for strike in strikes(random.Random(SEED)):
            while not (strike.step in crew.hear(deadline) and crew.committed >= strike.committed):
                pass
            if strike.victim is None:
                node.kill()
                node.start()
            else:
                crew.kill(strike.victim)
                crew.start(strike.victim)
        while not (copier.IDLE in crew.hear(deadline) and sum(committed(node)) == RECORDS):
            pass
    finally:
        codes = crew.dismiss()
    assert codes == [0, 0]
    ended = crew.told[copier.COMMITTED] + crew.told[copier.ABORTED]
    assert crew.told[copier.ABORTED] * 10 >= ended, crew.told
    assert committed(node) == [RECORDS // PARTITIONS] * PARTITIONS
    assert nothing_hangs(node)
    assert read(node.bootstrap) == given
    assert node.stop() == 0


def fill(bootstrap: str) -> list[list[bytes]]:
    """What the copy of each partition has to be."""
    settings = {"enable.idempotence": True, "linger.ms": 5, "queue.buffering.max.messages": RECORDS}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    given: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for number in range(RECORDS):
        value = b"%06d" % number
        producer.produce(copier.SOURCE, value, partition=number % PARTITIONS)
        given[number % PARTITIONS].append(copier.transformed(value))
    assert producer.flush(PATIENCE_S) == 0
    return given


def committed(node: Ottla) -> list[int]:
    """The group's offsets; 0 for a partition that has none, or one that is not certain yet."""
    kind = m.OffsetFetchRequest
    wanted = kind.OffsetFetchRequestTopics(name=copier.SOURCE, partition_indexes=list(range(PARTITIONS)))
    asked = kind.OffsetFetchRequestGroup(group_id=copier.GROUP, topics=[wanted])
    with Wire(node.bootstrap) as wire:
        (group,) = wire.ask(kind(groups=[asked], require_stable=True), 8).groups
    if group.error_code:
        return [0] * PARTITIONS
    return [max(part.committed_offset, 0) for part in group.topics[0].partitions]


def nothing_hangs(node: Ottla) -> bool:
    """Waits until readers of committed records see everything there is, and no transaction is open."""
    deadline = Deadline("the end of all transactions")
    with Wire(node.bootstrap) as wire:
        while True:
            ends = [[end(wire, index, isolation) for index in range(PARTITIONS)] for isolation in (0, 1)]
            busy = wire.ask(m.ListTransactionsRequest(state_filters=["Ongoing", "PrepareCommit", "PrepareAbort"]))
            if ends[0] == ends[1] and not busy.transaction_states:
                return True
            deadline.check((ends, busy))


def end(wire: Wire, partition: int, isolation: int) -> int:
    kind = m.ListOffsetsRequest
    place = kind.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    topic = kind.ListOffsetsTopic(name=copier.TARGET, partitions=[place])
    answer = wire.ask(kind(replica_id=-1, isolation_level=isolation, topics=[topic]))
    return int(answer.topics[0].partitions[0].offset)


def read(bootstrap: str) -> list[list[bytes]]:
    """What a reader of committed records sees, by partition, each in its order."""
    seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(copier.TARGET, index, 0) for index in range(PARTITIONS)])
    finished = 0
    end_at = time.monotonic() + PATIENCE_S
    while finished < PARTITIONS:
        assert time.monotonic() < end_at, [len(values) for values in seen]
        for message in consumer.consume(10_000, 0.2):
            if message.error() is not None:
                finished += 1  # the end of a partition
                continue
            partition, value = message.partition(), message.value()
            assert partition is not None and value is not None
            seen[partition].append(value)
    consumer.close()
    return seen
