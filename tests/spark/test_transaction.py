"""The transaction under the sink, without Spark: who may write, what is seen, and what a failure leaves behind."""

from collections.abc import Iterator

import pytest

from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.blocking.consumer import Consumer
from ottla.client.errors import KafkaError, TimedOut
from ottla.client.offsets import LATEST, READ_COMMITTED, Found, list_offsets
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink import markers
from ottla.pipelines.sink.delivery import Delivery
from ottla.pipelines.sink.encoding import Encoded, next_sequence
from ottla.pipelines.sink.transaction import Fenced, Transaction, TransactionTimedOut
from ottla.protocol.batch import TRANSACTIONAL
from ottla.protocol.records import NewRecord, build_batch
from ottla.streams.run.topics import await_decided
from ottla.testing import Cluster
from tests.support.patience import eventually
from tests.support.wire import Deadline

TIMEOUT_MS = 600_000
"""No test is meant to see the end of it."""
DOWN = 2


def client_of(kafka: Cluster) -> Client:
    return Client(parse_bootstrap(kafka.bootstrap_servers), timeout_s=60)


@pytest.fixture(scope="module", params=[1, 2], ids=["TV1", "TV2"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Of a node with this level of transaction.version, where abandoned transactions are looked for all the time."""
    with (
        # For ever: the records are of 1970.
        Cluster(1, log_retention_ms=-1, transaction_abort_timed_out_transaction_cleanup_interval_ms=50) as kafka,
        client_of(kafka) as client,
    ):
        if request.param == 1:
            admin.update_feature(client, "transaction.version", 1, upgrade_type=DOWN)
        yield client


def begun(client: Client, name: str, timeout_ms: int = TIMEOUT_MS) -> Transaction:
    transaction = Transaction(client, name, timeout_ms=timeout_ms)
    transaction.initialise()
    return transaction


def create(client: Client, topic: str, partitions: int = 1) -> TopicPartition:
    outcome = admin.create_topics(client, [admin.NewTopic(topic, partitions, -1)])[topic]
    assert not isinstance(outcome, KafkaError), outcome
    return TopicPartition(topic, 0)


class Writer:
    """Records of one value each, into one partition."""

    def __init__(self, client: Client, transaction: Transaction, place: TopicPartition) -> None:
        self._client, self._transaction, self._place = client, transaction, place
        self._epoch = transaction.sender
        self._sequence = 0

    def write(self, *values: str, each: int = 1) -> None:
        sender = self._transaction.sender
        if sender != self._epoch:
            self._epoch, self._sequence = sender, 0
        self._transaction.add_partitions([self._place])
        delivery = Delivery(self._client, self._transaction.name, second=self._transaction.second)
        for start in range(0, len(values), each):
            records = [NewRecord(None, value.encode(), 0) for value in values[start : start + each]]
            batch = build_batch(
                records,
                attributes=TRANSACTIONAL,
                producer_id=sender.producer_id,
                producer_epoch=sender.epoch,
                base_sequence=self._sequence,
            )
            delivery.send(self._place, Encoded(len(records), batch))
            self._sequence = next_sequence(self._sequence, len(records))
        delivery.flush()
        assert delivery.delivered[self._place].records == len(values)


def seen(client: Client, place: TopicPartition) -> list[str]:
    end = list_offsets(client, {place: LATEST}, isolation=READ_COMMITTED)[place]
    assert isinstance(end, Found), end
    consumer = Consumer(client, {place: (0, end.offset)}, isolation=READ_COMMITTED)
    found: list[str] = []
    while consumer.active:
        for fetched in consumer.poll(1.0):
            found += [(record.value or b"").decode() for record in fetched.records]
    return found


def wait_until_seen(client: Client, place: TopicPartition, expected: list[str]) -> None:
    """A commit is decided before its markers are written."""
    eventually(lambda: len(seen(client, place)) >= len(expected), f"{len(expected)} records in {place}")
    assert seen(client, place) == expected


def test_what_commits_is_seen_and_what_aborts_is_not(client: Client, topic: str) -> None:
    place, read = create(client, topic), create(client, f"{topic}-input")
    transaction = begun(client, topic)
    writer = Writer(client, transaction, place)
    for number in range(3):
        writer.write(f"{number}a", f"{number}b", f"{number}c")
        transaction.commit_offsets(topic, {read: 10 * number})
        if number == 1:
            transaction.abort()
            transaction.initialise()
        else:
            transaction.commit()
    wait_until_seen(client, place, ["0a", "0b", "0c", "2a", "2b", "2c"])
    eventually(lambda: groups.committed(client, topic)[read].offset == 20, "the group")


def test_offsets_and_partitions_of_a_transaction_are_waited_for_until_it_is_decided(client: Client, topic: str) -> None:
    place, read = create(client, topic), create(client, f"{topic}-input")
    transaction = begun(client, topic)
    Writer(client, transaction, place).write("some")
    transaction.commit_offsets(topic, {read: 7})
    with hurried(client) as impatient:
        with pytest.raises(TimedOut, match=f"the offsets of {topic}"):
            groups.decided(impatient, topic, [read])
        with pytest.raises(TimedOut, match=f"a transaction in {place}"):
            await_decided(impatient, [read, place])
    assert groups.committed(client, topic) == {}
    transaction.commit()
    assert groups.decided(client, topic, [read])[read].offset == 7
    await_decided(client, [read, place])
    assert seen(client, place) == ["some"]


def hurried(client: Client) -> Client:
    """Another one, that waits for no more than half a second."""
    (broker,) = client.metadata().brokers
    return Client(parse_bootstrap(f"{broker.host}:{broker.port}"), timeout_s=0.5)


def test_only_the_second_version_bumps_the_epoch_at_each_end(client: Client, topic: str) -> None:
    place = create(client, topic)
    transaction = begun(client, topic)
    writer = Writer(client, transaction, place)
    before = transaction.sender
    writer.write("one")
    transaction.commit()
    assert transaction.sender == before._replace(epoch=before.epoch + transaction.second)
    writer.write("two")
    transaction.commit()
    wait_until_seen(client, place, ["one", "two"])


def test_a_successor_fences(client: Client, topic: str) -> None:
    place = create(client, topic)
    old = begun(client, topic)
    writer = Writer(client, old, place)
    writer.write("lost")
    new = begun(client, topic)
    with pytest.raises((KafkaError, Fenced)) as refusal:
        writer.write("late")
    assert not isinstance(refusal.value, KafkaError) or refusal.value.error == Errors.INVALID_PRODUCER_EPOCH
    assert isinstance(old.refused(), Fenced)
    with pytest.raises(Fenced, match="another instance"):
        old.commit()
    with pytest.raises(Fenced):
        old.commit_offsets("group", {place: 1})
    Writer(client, new, place).write("kept")
    new.commit()
    wait_until_seen(client, place, ["kept"])


def test_a_transaction_that_took_too_long_is_not_taken_for_a_successors(client: Client, topic: str) -> None:
    place = create(client, topic)
    transaction = begun(client, topic, timeout_ms=1)
    writer = Writer(client, transaction, place)
    deadline = Deadline("a transaction that the broker gives up")
    with pytest.raises((KafkaError, Fenced)):
        while True:
            writer.write("lost")
            deadline.check("still open")
    refusal = transaction.refused()
    assert isinstance(refusal, TransactionTimedOut if transaction.second else Fenced)
    assert "took longer than" in str(refusal)


def test_a_marker_counts_when_its_transaction_committed(client: Client, topic: str) -> None:
    markers.ensure_topic(client, topic)
    markers.ensure_topic(client, topic)
    place = markers.place_of(client, topic, "query")
    transaction = begun(client, topic)
    assert markers.last_batch(client, place, "query") == markers.NONE

    def mark(query: str, batch: int, by: Transaction) -> None:
        by.add_partitions([place])
        record = markers.Marker(query, "name", batch).record(0)
        sender = by.sender
        content = build_batch(
            [record],
            attributes=TRANSACTIONAL,
            producer_id=sender.producer_id,
            producer_epoch=sender.epoch,
            base_sequence=0,
        )
        delivery = Delivery(client, by.name, second=by.second)
        delivery.send(place, Encoded(1, content))
        delivery.flush()

    # Somebody else's transaction stays open in front: committed readers would see nothing behind it.
    other = begun(client, f"{topic}-other")
    mark("other query", 100, other)
    mark("query", 7, transaction)
    transaction.commit()
    transaction.initialise()
    assert markers.last_batch(client, place, "query") == 7
    mark("query", 8, transaction)
    assert markers.last_batch(client, place, "query") == 7
    transaction.abort()
    transaction.initialise()
    assert markers.last_batch(client, place, "query") == 7
    assert markers.last_batch(client, place, "other query") == markers.NONE
    other.abort()


def test_records_survive_their_leader_once_and_in_order(topic: str) -> None:
    with Cluster(3, log_retention_ms=-1) as kafka, client_of(kafka) as client:
        place = create(client, topic)
        transaction = begun(client, topic)
        writer = Writer(client, transaction, place)
        values = [f"{number:04}" for number in range(400)]
        writer.write(*values[:200], each=3)
        kafka.kill(kafka.leader_of(topic))
        writer.write(*values[200:], each=3)
        transaction.commit()
        wait_until_seen(client, place, values)
