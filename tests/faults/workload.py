"""The clients: writers, readers, a transactional copy, and an observer. Each is a thread that records what it saw.

Writers and readers are of any language of `clients`; the others are librdkafka's.
"""

import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ottla.client import transactions
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.testing.checkers import Action, Kind, Leadership, Poll, Send, Watermarks
from tests.faults.clients import Follower, Language, Place, Record, Sender, decoded, encoded, reading, records
from tests.faults.cluster import FaultyCluster, Member
from tests.faults.door import CLIENT, Door, own_security
from tests.faults.recorder import Recorder

T = TypeVar("T")

IN_FLIGHT: Final = 100
"""Unacknowledged records that a writer allows itself in one partition, so that a dead one does not stop the others."""
TRANSACTIONAL_ID: Final = "copier"
STUCK_S: Final = 20.0
ATTEMPTS: Final = 1000
"""A copied value is its source's times this, plus the number of the attempt: what is repeated stays unique."""


def origin(copied: int) -> int:
    return copied // ATTEMPTS


class Client(threading.Thread, ABC):
    """Runs until it is told to end; an exception in it is kept for the one who asks for the result."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._recorder = recorder
        self._ending = threading.Event()
        self.trouble: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  it belongs to the thread that asks for the result
            self.trouble = error

    @abstractmethod
    def work(self) -> None: ...

    def end(self) -> None:
        self._ending.set()

    def situation(self) -> str:
        """For the one who has to find out why it does not end: where its thread is."""
        frame = sys._current_frames().get(self.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame else "its thread has ended"

    def finish(self, seconds: float = 150.0) -> None:
        self.end()
        self.join(seconds)
        assert not self.is_alive(), f"{self.name} does not end: {self.situation()}"
        if self.trouble is not None:
            raise self.trouble


class Writer(Client):
    """Sends to all partitions in turn, `rate` records a second, and never gives up on one."""

    def __init__(self, recorder: Recorder, language: Language, place: Place, *, rate: int, acks: str = "all") -> None:
        super().__init__(recorder, f"{language.name} writer to {place.topic}")
        self._language = language
        self._place = place
        self._rate = rate
        self._acks = acks

    def work(self) -> None:
        while not self._ending.is_set():
            self._one_producer()

    def _one_producer(self) -> None:
        """A producer with a fatal error is replaced, and the new one is another process of the history."""
        process, partitions = self._recorder.new_process(self._language.name), self._place.partitions
        sender = self._language.sender(self._place, self._acks)
        under_way = [0] * partitions
        turns, began = 0, time.monotonic()
        while not self._ending.is_set() and not sender.broken:
            due = int((time.monotonic() - began) * self._rate)
            for turn in range(turns, due):
                partition = turn % partitions
                if under_way[partition] < IN_FLIGHT:  # one that is full misses its turn
                    self._send(sender, process, partition, under_way)
            turns = due
            sender.serve(0.005)
        sender.finish()
        if sender.broken:
            self._recorder.failed.append(sender.broken)

    def _send(self, sender: Sender, process: int, partition: int, under_way: list[int]) -> None:
        value, invoked = self._recorder.new_value(), time.monotonic_ns()
        place, written = f"{self._place.topic}-{partition}", self._recorder.written
        key = (self._language.name, place)

        def delivered(offset: int | None, trouble: str) -> None:
            under_way[partition] -= 1
            if not trouble:
                self._recorder.acknowledged += 1
                written[key] = max(written.get(key, 0), invoked)
                self._recorder.ended(process, Action.SEND, Kind.OK, invoked, (Send(place, value, offset),))
            else:
                # Whatever went wrong, an earlier attempt may have been written.
                self._recorder.failed.append(trouble)
                self._recorder.ended(process, Action.SEND, Kind.INFO, invoked, (Send(place, value),))

        under_way[partition] += 1
        sender.send(partition, value, delivered)


def grouped(topic: str, found: Sequence[Record]) -> tuple[Poll, ...]:
    """The records of one poll by partition, in the order they came."""
    places: dict[str, list[tuple[int, int]]] = {}
    for partition, offset, value in found:
        places.setdefault(f"{topic}-{partition}", []).append((offset, value))
    return tuple(Poll(place, tuple(records)) for place, records in places.items())


class Reader(Client):
    """Follows a topic by assignment. `lives_s`: after so long it is replaced by another that begins near the end."""

    def __init__(self, recorder: Recorder, language: Language, place: Place, *, lives_s: float | None = None) -> None:
        super().__init__(recorder, f"{language.name} reader of {place.topic}")
        self._language = language
        self._place = place
        self._lives_s = lives_s

    def work(self) -> None:
        follower, near_end = self._language.follower(self._place), False
        try:
            while not self._ending.is_set():
                self._one_consumer(follower, near_end=near_end)
                near_end = True
        finally:
            follower.close()

    def _one_consumer(self, follower: Follower, *, near_end: bool) -> None:
        process, invoked = self._recorder.new_process(self._language.name), time.monotonic_ns()
        follower.assign(near_end=near_end)
        places = tuple(f"{self._place.topic}-{p}" for p in range(self._place.partitions))
        self._recorder.ended(process, Action.ASSIGN, Kind.OK, invoked, partitions=places, fresh=True)
        until = time.monotonic() + self._lives_s if self._lives_s else float("inf")
        while not self._ending.is_set() and time.monotonic() < until:
            self._poll(follower, process)

    def _poll(self, follower: Follower, process: int) -> None:
        invoked = time.monotonic_ns()
        polls = grouped(self._place.topic, follower.poll())
        if polls:
            self._recorder.ended(process, Action.POLL, Kind.OK, invoked, polls)


class StuckClient(Exception):
    """A call of the client did not come back within twice its own timeout."""


def in_time(call: Callable[[], object]) -> None:
    """librdkafka does not look at the timeout of send_offsets_to_transaction, and may wait for ever for a coordinator
    that was restarted (its issues 5456 and 5511). Whoever is stuck there is replaced, as an operator would do."""
    outcome: list[KafkaException | None] = []

    def attempt() -> None:
        try:
            call()
        except KafkaException as error:
            outcome.append(error)
        else:
            outcome.append(None)

    thread = threading.Thread(target=attempt, name="call that may be stuck", daemon=True)
    thread.start()
    thread.join(STUCK_S)
    if not outcome:
        raise StuckClient(f"send_offsets_to_transaction has not come back for {STUCK_S:.0f} s")
    if outcome[0] is not None:
        raise outcome[0]


class Copier(Client):
    """Copies a topic to another, partition by partition, exactly once: reads, writes and offsets in one transaction."""

    def __init__(
        self, recorder: Recorder, bootstrap: str, source: str, target: str, partitions: int, door: Door | None = None
    ) -> None:
        super().__init__(recorder, f"copier of {source}")
        self._door = door
        self._servers = bootstrap
        self._source = source
        self._target = target
        self._partitions = partitions
        self._attempt = 0
        self._goal: dict[int, int] | None = None
        self._copied: dict[int, int] = {}
        """Partition to the offset below which all is copied."""
        self.restarts: list[str] = []
        self.refusals: list[str] = []
        """What was answered to calls that were then repeated."""

    def end_at(self, goal: dict[int, int]) -> None:
        """Ends when it has copied everything below these offsets."""
        self._goal = goal

    def situation(self) -> str:
        with Cluster(parse_bootstrap(self._servers), timeout_s=5.0, security=own_security(self._door)) as cluster:
            try:
                transaction: object = transactions.describe(cluster, TRANSACTIONAL_ID)
            except ClientError as error:
                transaction = error
        facts = {
            "attempt": self._attempt,
            "goal": self._goal,
            "copied": self._copied,
            "restarts": self.restarts,
            "refusals": self.refusals[-20:],
            "transaction": transaction,
        }
        return "\n".join([*(f"{name}: {fact}" for name, fact in facts.items()), super().situation()])

    def work(self) -> None:
        while not self._ending.is_set():
            try:
                self._one_copier()
            except (KafkaException, StuckClient) as error:
                self.restarts.append(str(error.args[0]))

    def _one_copier(self) -> None:
        process = self._recorder.new_process()
        producer = Producer(
            {
                **CLIENT,
                "bootstrap.servers": self._servers,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": 20_000,
                "linger.ms": 2,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
            },
            error_cb=lambda error: None,
        )
        self._patiently(lambda: producer.init_transactions(10))
        consumer = reading(self._servers, group_id="copy")
        try:
            self._rewind(consumer, process)
            while not self._ending.is_set() and not self._done():
                messages = [m for m in consumer.consume(2000, 0.2) if m.error() is None]
                if messages:
                    self._copy(producer, consumer, process, messages)
            if self._done():
                self._ending.set()
        finally:
            consumer.close()

    def _done(self) -> bool:
        return self._goal is not None and all(self._copied.get(p, 0) >= end for p, end in self._goal.items())

    def _rewind(self, consumer: Consumer, process: int) -> None:
        """To what is committed. Whoever reads it waits for the transaction before (KIP-447)."""
        wanted = [TopicPartition(self._source, p) for p in range(self._partitions)]
        invoked, committed = time.monotonic_ns(), self._patiently(lambda: consumer.committed(wanted, timeout=10))
        assert committed is not None
        places = [TopicPartition(p.topic, p.partition, p.offset if p.offset >= 0 else 0) for p in committed]
        consumer.assign(places)
        self._copied = {place.partition: place.offset for place in places}
        names = tuple(f"{self._source}-{p}" for p in range(self._partitions))
        self._recorder.ended(process, Action.ASSIGN, Kind.OK, invoked, partitions=names, fresh=True)

    def _copy(self, producer: Producer, consumer: Consumer, process: int, messages: list[Message]) -> None:
        invoked, sends = time.monotonic_ns(), list[Send]()
        self._attempt = (self._attempt + 1) % ATTEMPTS
        polls = grouped(self._source, records(messages))
        outcome = Kind.INFO
        try:
            producer.begin_transaction()
            for message in messages:
                self._send_copy(producer, message, sends)
            after = {m.partition(): m.offset() for m in messages}
            places = [TopicPartition(self._source, p, o + 1) for p, o in after.items()]  # type: ignore[operator,arg-type]
            group = consumer.consumer_group_metadata()
            self._patiently(lambda: in_time(lambda: producer.send_offsets_to_transaction(places, group, 10)))
            self._patiently(lambda: producer.commit_transaction(10))
            outcome = Kind.OK
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._patiently(lambda: producer.abort_transaction(10))
            outcome = Kind.FAIL
        finally:
            self._recorder.ended(process, Action.TXN, outcome, invoked, (*polls, *sends))
        if outcome is Kind.FAIL:
            self._rewind(consumer, process)
        else:
            self._copied.update((place.partition, place.offset) for place in places)

    def _send_copy(self, producer: Producer, message: Message, sends: list[Send]) -> None:
        value, partition = decoded(message) * ATTEMPTS + self._attempt, message.partition()
        assert partition is not None
        index, place = len(sends), f"{self._target}-{partition}"
        sends.append(Send(place, value))

        def delivered(error: KafkaError | None, done: Message) -> None:
            if error is None:
                sends[index] = Send(place, value, done.offset())

        producer.produce(self._target, encoded(value), partition=partition, on_delivery=delivered)

    def _patiently(self, call: Callable[[], T]) -> T:
        """Again while librdkafka says that the same call may be repeated."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
                self.refusals.append(str(error.args[0]))


class Observer(Client):
    """Asks one node again and again who leads what; nodes that lag behind may say so, but not contradict."""

    def __init__(self, recorder: Recorder, member: Member, topics: Sequence[str]) -> None:
        super().__init__(recorder, f"observer of node {member.number}")
        self._member = member
        self._topics = topics

    def work(self) -> None:
        while not self._ending.wait(0.3):
            answer = self._member.metadata(*self._topics)
            for topic in answer.topics if answer else ():
                for p in topic.partitions:
                    seen = Leadership(f"{topic.name}-{p.partition_index}", p.leader_epoch, p.leader_id)
                    self._recorder.leaderships.append(seen)


class WatermarkReader(Client):
    """Asks leaders for the high watermark and the last stable offset, which must not go back (KIP-207)."""

    def __init__(self, recorder: Recorder, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(recorder, f"watermarks of {topic}")
        self._servers = bootstrap
        self._topic = topic
        self._partitions = partitions

    def work(self) -> None:
        high = reading(self._servers, isolation_level="read_uncommitted")
        stable = reading(self._servers)
        try:
            while not self._ending.wait(0.5):
                for partition in range(self._partitions):
                    self._look(stable, high, TopicPartition(self._topic, partition))
        finally:
            high.close()
            stable.close()

    def _look(self, stable: Consumer, high: Consumer, place: TopicPartition) -> None:
        try:
            # The stable offset first: asked for in the other order, it may have passed the high watermark meanwhile.
            last_stable = stable.get_watermark_offsets(place, timeout=2)[1]
            high_watermark = high.get_watermark_offsets(place, timeout=2)[1]
        except KafkaException:
            return
        name = f"{place.topic}-{place.partition}"
        self._recorder.watermarks.append(Watermarks("observer", name, high_watermark, last_stable))


def ends(cluster: FaultyCluster, topic: str, partitions: int, seconds: float = 60.0) -> dict[int, int]:
    """Partition to its last stable offset, from leaders that know it."""
    consumer = reading(cluster.bootstrap)
    found: dict[int, int] = {}

    def ask() -> bool:
        for partition in range(partitions):
            try:
                found[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=5)[1]
            except KafkaException:
                return False
        return True

    try:
        cluster.wait(f"all leaders of {topic} tell where it ends", ask, seconds)
    finally:
        consumer.close()
    return found


def read_everything(recorder: Recorder, cluster: FaultyCluster, topic: str, partitions: int) -> dict[int, list[int]]:
    """The final polls: each partition from its beginning to its end. Returns the values by partition."""
    goal = ends(cluster, topic, partitions)
    process, invoked = recorder.new_process(), time.monotonic_ns()
    # Markers of transactions are never handed out: only the event at the end tells that a partition is read.
    consumer = reading(cluster.bootstrap, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    names = tuple(f"{topic}-{p}" for p in range(partitions))
    recorder.ended(process, Action.ASSIGN, Kind.OK, invoked, partitions=names, fresh=True)
    found: dict[int, list[int]] = {p: [] for p in range(partitions)}
    reached = dict.fromkeys(range(partitions), 0)
    deadline = time.monotonic() + 120
    try:
        while any(reached[p] < goal[p] for p in range(partitions)):
            assert time.monotonic() < deadline, f"{topic} was to be read to {goal} and was to {reached}"
            invoked = time.monotonic_ns()
            messages = consumer.consume(1000, 0.5)
            _advance(reached, messages)
            polls = grouped(topic, records(messages))
            for poll in polls:
                found[int(poll.partition.rsplit("-", 1)[1])].extend(value for _, value in poll.records)
            if polls:
                recorder.ended(process, Action.POLL, Kind.OK, invoked, polls)
    finally:
        consumer.close()
    return found


def _advance(reached: dict[int, int], messages: Sequence[Message]) -> None:
    for message in messages:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if partition is None or offset is None:
            continue
        if error is None:
            reached[partition] = max(reached[partition], offset + 1)
        elif error.code() == KafkaError._PARTITION_EOF:
            reached[partition] = max(reached[partition], offset)
