"""Transactions of real producers: committed, aborted, fenced, timed out, gone on with after a kill of the node."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ottla.broker.coordination.coordinators import positive_hash
from ottla.coordinator.records import encode_key, encode_value
from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from tests.conftest import NewTopicName
from tests.support import jvm
from tests.support.group_conversations import ready
from tests.support.nodes import Ottla
from tests.support.patience import PATIENCE_SECONDS, eventually
from tests.support.requests import create_topic, fetch, produce_request, wait_for_topic, wait_until_stable
from tests.support.transactions import TV1, TV2, ByHand
from tests.support.wire import Deadline, Wire

DEADLINE_S = PATIENCE_SECONDS


class Fenced(Exception):
    """The client says that another producer has taken its place."""


class Transactional(Protocol):
    """What every client's transactional producer can do."""

    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: str) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Librdkafka:
    def __init__(self, bootstrap: str, name: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 1, "log_level": 0}
        )
        self._producer.init_transactions(DEADLINE_S)

    def _do(self, call: Callable[..., object], *args: object) -> None:
        try:
            call(*args)
        except KafkaException as error:
            raise (Fenced(str(error)) if error.args[0].fatal() else error) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._producer.produce(topic, value.encode(), partition=partition)

    def commit(self) -> None:
        self._do(self._producer.commit_transaction, DEADLINE_S)

    def abort(self) -> None:
        self._producer.flush(DEADLINE_S)
        self._do(self._producer.abort_transaction, DEADLINE_S)

    def close(self) -> None:
        self._producer.purge()
        with suppress(KafkaException):  # a fenced producer says so on every occasion
            self._producer.flush(DEADLINE_S)


class KafkaPython:
    def __init__(self, bootstrap: str, name: str) -> None:
        from kafka import KafkaProducer  # noqa: PLC0415  pytest's filters must hold for its warnings

        self._producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        self._producer.init_transactions()

    def _do(self, call: Callable[..., Any], *args: object, **options: object) -> Any:
        from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError  # noqa: PLC0415

        try:
            return call(*args, **options)
        except (ProducerFencedError, InvalidProducerEpochError) as error:
            raise Fenced(str(error)) from error
        except KafkaError as error:
            raise (
                Fenced(str(error)) if "Fenced" in repr(error) or "Fenced" in repr(error.__cause__) else error
            ) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do(self._producer.send, topic, value.encode(), partition=partition)

    def commit(self) -> None:
        self._do(self._producer.commit_transaction)

    def abort(self) -> None:
        self._do(self._producer.flush)
        self._do(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=1)


class AioKafka:
    def __init__(self, bootstrap: str, name: str) -> None:
        self._runner = asyncio.Runner()
        # aiokafka keeps the error of a fenced producer in futures nobody asks: `commit` has told it already.
        self._runner.get_loop().set_exception_handler(lambda _loop, _context: None)
        self._producer = self._runner.run(self._started(bootstrap, name))

    async def _started(self, bootstrap: str, name: str) -> Any:
        from aiokafka import AIOKafkaProducer  # noqa: PLC0415

        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        await producer.start()
        return producer

    def _do(self, work: Any) -> None:
        from aiokafka.errors import ProducerFenced  # noqa: PLC0415

        try:
            self._runner.run(work)
        except ProducerFenced as error:
            raise Fenced(str(error)) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do(self._send(topic, partition, value))

    async def _send(self, topic: str, partition: int, value: str) -> None:
        sent = await self._producer.send(topic, value.encode(), partition=partition)
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())  # told by commit as well

    def commit(self) -> None:
        self._do(self._producer.commit_transaction())

    def abort(self) -> None:
        self._do(self._producer.flush())
        self._do(self._producer.abort_transaction())

    def close(self) -> None:
        with suppress(Fenced):
            self._do(self._producer.stop())
        self._runner.close()


CLIENTS = [Librdkafka, KafkaPython, AioKafka]
every_client = pytest.mark.parametrize("made_by", CLIENTS, ids=[each.__name__.lower() for each in CLIENTS])


@pytest.fixture
def topic(wire: Wire, new_topic_name: NewTopicName) -> str:
    name = new_topic_name()
    create_topic(wire, name, 2)
    return name


def read(
    bootstrap: str, topic: str, partitions: Iterable[int] = (0, 1), isolation: str = "read_committed"
) -> list[str]:
    """Everything up to the end as that isolation level sees it, each partition in order. No transaction is open."""
    with Wire(bootstrap) as wire:
        for partition in partitions:
            wait_until_stable(wire, topic, partition)
    values: list[str] = []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        for partition in partitions:
            consumer.assign([TopicPartition(topic, partition, 0)])
            end = time.monotonic() + DEADLINE_S
            while True:
                assert time.monotonic() < end, f"no end of {topic}-{partition}"
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error():
                    break  # the end of the partition
                value = message.value()
                assert value is not None
                values.append(value.decode())
    finally:
        consumer.close()
    return values


@every_client
def test_committed_transactions_are_seen_and_aborted_ones_are_not(
    bootstrap: str, topic: str, made_by: Callable[[str, str], Transactional]
) -> None:
    producer = made_by(bootstrap, f"{topic}-txn")
    expected = []
    for number in range(9):
        producer.begin()
        producer.send(topic, 0, f"a{number}")
        producer.send(topic, 1, f"b{number}")
        if number % 3 == 1:
            producer.abort()
        else:
            producer.commit()
            expected.append(number)
    producer.close()
    assert read(bootstrap, topic) == [f"{letter}{number}" for letter in "ab" for number in expected]
    everything = [f"{letter}{number}" for letter in "ab" for number in range(9)]
    assert read(bootstrap, topic, isolation="read_uncommitted") == everything


@every_client
def test_a_producer_whose_name_was_taken_over_is_fenced(
    bootstrap: str, topic: str, made_by: Callable[[str, str], Transactional]
) -> None:
    old = made_by(bootstrap, f"{topic}-txn")
    old.begin()
    old.send(topic, 0, "old")
    fresh = made_by(bootstrap, f"{topic}-txn")
    fresh.begin()
    fresh.send(topic, 0, "fresh")
    fresh.commit()
    with pytest.raises(Fenced):
        old.commit()
    old.close()
    fresh.close()
    assert read(bootstrap, topic) == ["fresh"]


@pytest.mark.jvm
def test_javas_producer_in_transactions_of_the_second_kind(bootstrap: str, topic: str) -> None:
    said = java_transactions(bootstrap, topic, "alternate=12", "fence", "empty", "offsets", "read=18")
    kept = [number for number in range(12) if number % 3 != 2]
    values = sorted([f"{letter}{number}" for letter in "ab" for number in kept] + ["after-empty", "fresh"])
    assert said == [
        "alternate done",
        "fence fenced",
        "empty done",
        "offsets 3,3",
        f"read {','.join(values)}",
    ]


def java_transactions(bootstrap: str, topic: str, *scenarios: str) -> list[str]:
    jars = jvm.kafka_jars()
    classes = jvm.compiled(jars, Path(__file__).parent / "java" / "Transactions.java")
    command = jvm.java(jars, "Transactions", bootstrap, topic, *scenarios, classes=classes)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


# ---- a node of one's own


QUICK = {
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}


def test_a_transaction_past_its_timeout_is_aborted_and_its_producer_fenced(tmp_path: Path) -> None:
    with Ottla(tmp_path, extra=QUICK) as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "t")
        producer = ByHand(wire, "slow", TV2).begin(timeout_ms=200)
        assert producer.produce("t") == (0, 0)
        deadline = Deadline("the abort of a transaction that timed out")
        while (state := producer.describe()).transaction_state != "CompleteAbort":
            deadline.check(state)
        part = fetch(wire, "t", isolation_level=1)
        assert part.last_stable_offset == 2
        assert producer.end(committed=True) == 90  # PRODUCER_FENCED


@every_client
def test_where_no_more_transactions_may_be_open_a_client_waits(
    tmp_path: Path, made_by: Callable[[str, str], Transactional]
) -> None:
    with Ottla(tmp_path, extra=QUICK | {"ottla.transactions.open.max": "1"}) as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "t", 2)
        only = ByHand(wire, "only", TV2).begin(timeout_ms=1_000)
        waiting = made_by(node.bootstrap, "waiting")
        assert only.produce("t") == (0, 0)
        waiting.begin()
        waiting.send("t", 1, "late")
        waiting.commit()
        waiting.close()
        assert only.settle().transaction_state == "CompleteAbort", "the other one gave way when its time was up"
        assert read(node.bootstrap, "t") == ["late"]


@pytest.mark.parametrize("versions", [TV1, TV2], ids=["tv1", "tv2"])
def test_nothing_changes_where_every_append_waits_for_the_disk(tmp_path: Path, versions: dict[int, int]) -> None:
    with Ottla(tmp_path, extra=QUICK | {"log.flush.interval.messages": "1"}) as node, Wire(node.bootstrap) as wire:
        create_topic(wire, "t", 2)
        ready(wire, "g")
        producer = ByHand(wire, "app", versions).begin()
        for number, commit in enumerate((True, False, True)):
            for partition in (0, 1):
                if versions is TV1:
                    assert producer.add(("t", partition)) == {("t", partition): 0}
                assert producer.produce("t", partition)[0] == 0
            if versions is TV1:
                assert producer.add_offsets("g") == 0
            assert producer.commit_offsets("g", "t", number) == 0
            assert producer.end(committed=commit) == 0
            producer.settle()
        fresh = ByHand(wire, "app", versions).begin()
        assert fresh.verify(("t", 0), add=True) == {("t", 0): 0}
        assert producer.end(committed=True) == 90  # PRODUCER_FENCED
        part = fetch(wire, "t", isolation_level=1)
        assert (part.last_stable_offset, len(part.aborted_transactions)) == (6, 1)


@pytest.mark.parametrize("versions", [TV1, TV2], ids=["tv1", "tv2"])
def test_what_was_open_or_decided_before_kill_nine_goes_on_after_it(tmp_path: Path, versions: dict[int, int]) -> None:
    node = Ottla(tmp_path, extra=QUICK).start()
    with Wire(node.bootstrap) as wire:
        create_topic(wire, "t", 2)
        opened, ended = (ByHand(wire, name, versions).begin() for name in ("opened", "ended"))
        for partition, producer in enumerate((opened, ended)):
            if versions is not TV2:
                assert producer.add(("t", partition)) == {("t", partition): 0}
            assert producer.produce("t", partition) == (0, 0)
        assert ended.end(committed=True) == 0
    node.kill()
    node.start()
    with Wire(node.bootstrap) as wire:
        opened.wire = ended.wire = wire
        opened.find()
        wait_for_topic(wire, "t", 2)
        assert fetch(wire, "t", partition=0, isolation_level=1).last_stable_offset == 0
        # The marker may have to be written anew, once the coordinator has read its log: also behind one that was
        # written and not acknowledged, as in Kafka.
        wait_until_stable(wire, "t", 1)
        assert fetch(wire, "t", partition=1, isolation_level=1).last_stable_offset in (2, 3)
        eventually(lambda: opened.describe().transaction_state == "Ongoing", "the state is read")
        assert opened.produce("t", 0) == (0, 1), "the transaction is still open"
        assert opened.end(committed=True) == 0
        opened.settle()
        assert fetch(wire, "t", partition=0, isolation_level=1).last_stable_offset == 3
        assert ended.begin().epoch == (2 if versions is TV2 else 1)
    assert node.stop() == 0


@pytest.mark.jvm
def test_java_goes_on_when_the_epochs_of_its_producer_id_are_used_up(tmp_path: Path) -> None:
    """The state is written into the coordinator's log, as if the producer had made 32,760 transactions before."""
    node = Ottla(tmp_path, extra=QUICK).start()
    name = "t-alternate"
    with Wire(node.bootstrap, client_id="__admin_client") as wire:
        create_topic(wire, "t", 2)
        ByHand(wire, name).begin()
        value = m.TransactionLogValue(
            producer_id=777, producer_epoch=32_760, transaction_timeout_ms=60_000, transaction_partitions=None
        )
        key, now = m.TransactionLogKey(name), int(time.time() * 1000)
        state = build_batch([NewRecord(encode_key(key), encode_value(value, 1), now)])
        request = produce_request("__transaction_state", bytes(state), partition=positive_hash(name) % 3)
        (result,) = wire.ask(request, 12).responses[0].partition_responses
        assert result.error_code == 0
    assert node.stop() == 0
    with node, Wire(node.bootstrap) as wire:
        said = java_transactions(node.bootstrap, "t", "alternate=12", "read=16")
        kept = sorted(f"{letter}{number}" for letter in "ab" for number in range(12) if number % 3 != 2)
        assert said == ["alternate done", f"read {','.join(kept)}"]
        after = ByHand(wire, name).describe()
        assert (after.producer_id != 777, after.producer_epoch) == (True, 6)
