"""A day of a secured cluster in a minute: clients write, read in groups and in transactions over SASL_SSL, while the
certificate is renewed, a password is changed, everybody logs in again every few seconds, and each node is restarted.

What counts is what a client is told: no send fails, no transaction, no commit; nothing acknowledged is missing.
Clients that run keep their password, as most cannot be told another; the one that changes is of a user whose clients
come and go. aiokafka does not renew a login (KIP-368): it is cut off when that ends, as by Apache Kafka, and connects
anew. Its transactional producer gives up for good when that meets its search for the coordinator: its application then
makes another. Its consumer may never end its `stop` (its issue 659).

kafka-python's transactional producer forgets a request whose coordinator it cannot reach at that moment, on a plain
listener too (3.0.12: `Sender._maybe_send_pending_request` repeats it only if it knew of no coordinator). The record
behind it ends after two minutes, a commit never. So its transactions have a day without restarts.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from ottla.testing import Cluster
from tests.support.patience import PATIENCE_SECONDS, eventually

LOGIN_MS = 3000
STOPPING_SECONDS = 20
PLAIN_TOPIC, LEDGER = "orders", "ledger"
Settings = dict[str, Any]


class Day:
    """What the clients did, and were told."""

    def __init__(self) -> None:
        self.ending = threading.Event()
        self.written: dict[str, list[str]] = {}
        """By client: acknowledged, or committed."""
        self.aborted: list[str] = []
        self.read: dict[str, dict[str, None]] = {}
        self.troubles: list[str] = []
        self.given_up: list[str] = []
        """Producers that had to be replaced: no trouble where that is how the client is."""
        self._number = 0

    def value(self, who: str) -> str:
        self._number += 1
        return f"{who} {self._number}"

    def counts(self) -> dict[str, int]:
        return {name: len(found) for name, found in {**self.written, **self.read}.items()}

    def goes_on(self) -> None:
        """Everybody gets something done, from now on."""
        before = self.counts()

        def moved() -> bool:
            assert not self.troubles, self.troubles
            return all(count > before[name] + 3 for name, count in self.counts().items())

        eventually(moved, f"everybody goes on from {before}")

    def reads_all(self) -> None:
        """That was written by now."""
        wanted = {value for values in list(self.written.values()) for value in list(values)}
        eventually(lambda: all(wanted <= found.keys() for found in self.read.values()), "everything is read")

    def went_well(self) -> None:
        assert self.troubles == []
        for found in self.read.values():
            assert not set(self.aborted) & found.keys()


Work = Callable[[Day, str, Settings], None]


def paced(day: Day) -> Iterator[int]:
    number = 0
    while not day.ending.wait(0.02):
        number += 1
        yield number


# ---- librdkafka


def confluent_writes(day: Day, name: str, settings: Settings) -> None:
    producer = Producer({**settings, "enable.idempotence": True, "log_level": 0})

    def told(value: str) -> Callable[[Any, Any], None]:
        return lambda error, _: day.troubles.append(f"{name}: {error}") if error else day.written[name].append(value)

    for _ in paced(day):
        value = day.value(name)
        producer.produce(PLAIN_TOPIC, value.encode(), on_delivery=told(value))
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def again(call: Callable[[float], None]) -> None:
    """librdkafka asks for that: the same call is repeated."""
    while True:
        try:
            return call(30)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def confluent_transacts(day: Day, name: str, settings: Settings) -> None:
    producer = Producer({**settings, "transactional.id": name, "log_level": 0})
    again(producer.init_transactions)
    for number in paced(day):
        values = [day.value(name) for _ in range(2)]
        producer.begin_transaction()
        for value in values:
            producer.produce(LEDGER, value.encode())
        if number % 3:
            again(producer.commit_transaction)
            day.written[name] += values
        else:
            # An abort that overtakes the adding of its partitions ends nothing: librdkafka sends it all the same, and
            # is told INVALID_TXN_STATE, by Apache Kafka too (its issue 4849).
            assert producer.flush(PATIENCE_SECONDS) == 0
            again(producer.abort_transaction)
            day.aborted += values


def confluent_reads(day: Day, name: str, settings: Settings) -> None:
    given = {**settings, "group.id": name, "auto.offset.reset": "earliest", "log_level": 0}
    consumer = Consumer(given)
    consumer.subscribe([PLAIN_TOPIC, LEDGER])
    while not day.ending.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            value = message.value()
            assert value is not None
            day.read[name][value.decode()] = None
    consumer.close()


# ---- kafka-python


def for_python(settings: Settings) -> Settings:
    return {
        "bootstrap_servers": settings["bootstrap.servers"],
        "security_protocol": "SASL_SSL",
        "ssl_cafile": settings["ssl.ca.location"],
        "sasl_mechanism": settings["sasl.mechanism"],
        "sasl_plain_username": settings["sasl.username"],
        "sasl_plain_password": settings["sasl.password"],
    }


def kafka_python_writes(day: Day, name: str, settings: Settings) -> None:
    producer = KafkaProducer(**for_python(settings), enable_idempotence=True)
    for _ in paced(day):
        value = day.value(name)
        producer.send(PLAIN_TOPIC, value.encode()).get(PATIENCE_SECONDS)
        day.written[name].append(value)
    producer.close()


def kafka_python_transacts(day: Day, name: str, settings: Settings) -> None:
    producer = KafkaProducer(**for_python(settings), transactional_id=name)
    producer.init_transactions()
    for number in paced(day):
        values = [day.value(name) for _ in range(2)]
        producer.begin_transaction()
        for value in values:
            producer.send(LEDGER, value.encode()).get(PATIENCE_SECONDS)
        if number % 3:
            producer.commit_transaction()
            day.written[name] += values
        else:
            producer.abort_transaction()
            day.aborted += values
    producer.close()


def kafka_python_reads(day: Day, name: str, settings: Settings) -> None:
    consumer = KafkaConsumer(
        PLAIN_TOPIC, LEDGER, group_id=name, auto_offset_reset="earliest", isolation_level="read_committed",
        **for_python(settings),
    )  # fmt: skip
    for topic in (PLAIN_TOPIC, LEDGER):
        consumer.partitions_for_topic(topic)  # before it joins: see `kafka_python` in test_group_clients.py
    while not day.ending.is_set():
        for records in consumer.poll(200).values():
            day.read[name].update((record.value.decode(), None) for record in records)
    consumer.close()


# ---- aiokafka


def for_aio(settings: Settings) -> Settings:
    given = for_python(settings)
    return {"ssl_context": create_ssl_context(cafile=given.pop("ssl_cafile")), **given}


def aio_writes(day: Day, name: str, settings: Settings) -> None:
    async def work() -> None:
        async with AIOKafkaProducer(**for_aio(settings), enable_idempotence=True) as producer:
            while not day.ending.is_set():
                value = day.value(name)
                await producer.send_and_wait(PLAIN_TOPIC, value.encode())
                day.written[name].append(value)
                await asyncio.sleep(0.02)

    asyncio.run(work())


def aio_transacts(day: Day, name: str, settings: Settings) -> None:
    async def one_producer() -> None:
        producer, number = AIOKafkaProducer(**for_aio(settings), transactional_id=name), 0
        try:
            await producer.start()
            while not day.ending.is_set():
                number += 1
                await transaction(producer, [day.value(name) for _ in range(2)], committed=number % 3 != 0)
                await asyncio.sleep(0.02)
        finally:
            await producer.stop()

    async def transaction(producer: AIOKafkaProducer, values: list[str], *, committed: bool) -> None:
        if not committed:
            day.aborted += values
        await producer.begin_transaction()
        for value in values:
            await producer.send_and_wait(LEDGER, value.encode())
        if committed:
            await producer.commit_transaction()
            day.written[name] += values
        else:
            await producer.abort_transaction()

    async def work() -> None:
        while not day.ending.is_set():
            try:
                await one_producer()
            except AioError as error:
                day.given_up.append(f"{name}: {error!r}")

    asyncio.run(work())


def aio_reads(day: Day, name: str, settings: Settings) -> None:
    async def work() -> None:
        consumer = AIOKafkaConsumer(
            PLAIN_TOPIC, LEDGER, group_id=name, auto_offset_reset="earliest", isolation_level="read_committed",
            **for_aio(settings),
        )  # fmt: skip
        try:
            await consumer.start()
            while not day.ending.is_set():
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    day.read[name].update((record.value.decode(), None) for record in records)
        finally:
            await stopped(consumer)

    asyncio.run(work())


async def stopped(consumer: AIOKafkaConsumer) -> None:
    """Its `stop` may wait for ever for a task of its own that has overheard its cancellation, or be cancelled itself by
    one that has not; of the cluster it asks nothing then. What is left of it is to close its connections."""
    stopping = asyncio.ensure_future(consumer.stop())
    await asyncio.wait([stopping], timeout=STOPPING_SECONDS)
    stopping.cancel()
    await asyncio.wait([stopping], timeout=STOPPING_SECONDS)
    if stopping.done() and not stopping.cancelled():
        await stopping
    else:
        await consumer._client.close()


# ---- all together

WRITERS: dict[str, Work] = {
    "librdkafka": confluent_writes,
    "librdkafka-txn": confluent_transacts,
    "kafka-python": kafka_python_writes,
    "txn-kafka-python": kafka_python_transacts,
    "aiokafka": aio_writes,
    "aiokafka-txn": aio_transacts,
}
READERS: dict[str, Work] = {
    "librdkafka-group": confluent_reads,
    "kafka-python-group": kafka_python_reads,
    "aiokafka-group": aio_reads,
}


@contextmanager
def at_work(day: Day, user: Settings, clients: tuple[str, ...]) -> Iterator[None]:
    def run(work: Work, name: str) -> None:
        try:
            work(day, name, user)
        except Exception as error:  # noqa: BLE001  whatever a client raises is what this is about
            day.troubles.append(f"{name}: {error!r}")

    day.written = {name: [] for name in WRITERS if name.startswith(clients)}
    day.read = {name: {} for name in READERS if name.startswith(clients)}
    threads = [
        threading.Thread(target=run, args=(work, name), name=name, daemon=True)
        for name, work in {**WRITERS, **READERS}.items()
        if name.startswith(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        day.ending.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def restart_each(kafka: Cluster) -> None:
    for node_id in (1, 2, 3):
        kafka.restart(node_id)
        eventually(
            lambda: all(len(kafka.in_sync(topic, p)) == 3 for topic in (PLAIN_TOPIC, LEDGER) for p in range(3)),
            "all replicas in sync",
        )


def a_day(kafka: Cluster, clients: tuple[str, ...], during: Callable[[Day], None]) -> Day:
    for topic in (PLAIN_TOPIC, LEDGER):
        kafka.create_topic(topic, partitions=3, replication_factor=3, min_insync_replicas=2)
    day = Day()
    with at_work(day, kafka.user("steady"), clients):
        day.goes_on()
        during(day)
        day.reads_all()
    day.went_well()
    return day


def lets_in(user: Settings) -> bool:
    """Who is refused is told so; who is not refused gets in, however long that takes."""
    refusals: list[KafkaError] = []
    client = Producer({**user, "log_level": 0, "error_cb": refusals.append})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            client.list_topics(timeout=1)
        except KafkaException:
            client.poll(0)
            if any(error.code() == KafkaError._AUTHENTICATION for error in refusals):
                return False
        else:
            return True
    raise AssertionError(f"neither refused nor let in: {refusals}")


def renew_and_change(kafka: Cluster, day: Day) -> Settings:
    """A certificate and a password. Gives what the user logs in with from then on."""
    kafka.renew_certificate()
    day.goes_on()
    before, after = kafka.user("alice"), kafka.user("alice")
    assert lets_in(after)
    assert not lets_in(before)
    day.goes_on()
    return after


@pytest.mark.matrix
@pytest.mark.parametrize("clients", [("librdkafka", "kafka-python"), ("aiokafka",)], ids=str)
def test_clients_notice_nothing_of_renewals_password_changes_logins_and_restarts(clients: tuple[str, ...]) -> None:
    def during(day: Day) -> None:
        began = time.monotonic()
        after = renew_and_change(kafka, day)
        restart_each(kafka)
        assert lets_in(after)
        day.goes_on()
        assert time.monotonic() - began > LOGIN_MS / 1000, "nobody had to log in again"

    with Cluster(nodes=3, security="SASL_SSL", connections_max_reauth_ms=LOGIN_MS) as kafka:
        a_day(kafka, clients, during)


@pytest.mark.matrix
def test_transactions_of_kafka_python_notice_nothing_of_renewals_password_changes_and_logins() -> None:
    def during(day: Day) -> None:
        began = time.monotonic()
        renew_and_change(kafka, day)
        while time.monotonic() - began < 2 * LOGIN_MS / 1000:
            day.goes_on()

    with Cluster(nodes=3, security="SASL_SSL", connections_max_reauth_ms=LOGIN_MS) as kafka:
        a_day(kafka, ("txn-kafka-python", "kafka-python-group"), during)
