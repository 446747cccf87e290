"""Images and deltas: replay is all there is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metadata.batches import CorruptMetadata, decode_batch, decode_value, encode_batches, read_batches
from ottla.metadata.delta import MetadataDelta, ReplayError
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.metadata.records import image_records, record_version
from ottla.metadata.replay import Replayer, image_of
from ottla.protocol import messages
from ottla.protocol.codec import Message
from tests.rules.metadata.lives import lives, uuid
from tests.support.examples import examples


def at(image: MetadataImage, offset: int) -> MetadataImage:
    return image._replace(offset=offset, epoch=1, timestamp=5)


@settings(max_examples=examples(50), deadline=None)
@given(lives())
def test_a_snapshot_replays_into_the_image_it_was_taken_of(life: list[Message]) -> None:
    image = image_of(life, "c")
    assert image_of(image_records(image), "c") == image


@settings(max_examples=examples(50), deadline=None)
@given(lives(), st.data())
def test_deltas_of_any_size_lead_to_the_same_image_and_leave_the_old_ones_alone(
    life: list[Message], data: st.DataObject
) -> None:
    image, done = EMPTY, 0
    images: list[tuple[MetadataImage, str]] = []
    while done < len(life):
        size = data.draw(st.integers(1, len(life) - done))
        delta = MetadataDelta(image)
        delta.replay_all(life[done : done + size])
        done += size
        image = delta.apply(done, 1, 5)
        images.append((image, repr(image)))
    assert image == at(image_of(life), done)
    assert all(repr(old) == as_it_was for old, as_it_was in images)


@settings(max_examples=examples(40), deadline=None)
@given(lives(), st.integers(200, 3000))
def test_batches_carry_every_record_there_and_back(life: list[Message], max_bytes: int) -> None:
    batches = encode_batches(
        life, base_offset=7, epoch=2, timestamp=99, metadata_version=30, max_bytes=max_bytes, max_records=10
    )
    found = [decode_batch(batch) for batch in batches]
    assert [record for batch in found for record in batch.records] == life
    assert [found[0].base_offset, found[-1].last_offset] == [7, 6 + len(life)]
    assert all(len(batch.records) <= 10 for batch in found)
    assert list(read_batches(b"".join(batches))) == found


@settings(max_examples=30, deadline=None)
@given(lives())
def test_a_delta_names_exactly_what_differs(life: list[Message]) -> None:
    half = len(life) // 2
    before = image_of(life[:half])
    delta = MetadataDelta(before)
    delta.replay_all(life[half:])
    after = delta.apply(-1, -1, -1)
    assert set(delta.created_topics) - set(after.topics) == set()
    assert {t.id for t in before.topics.values()} - {t.id for t in after.topics.values()} == set(delta.deleted_topics)
    changed_brokers = {b for b in {**before.brokers, **after.brokers} if before.brokers.get(b) != after.brokers.get(b)}
    assert changed_brokers <= set(delta.changed_brokers)
    changed_configs = {k for k in {**before.configs, **after.configs} if before.configs.get(k) != after.configs.get(k)}
    assert changed_configs <= set(delta.changed_configs)
    for topic in after.topics.values():
        old = before.topics_by_id.get(topic.id)
        changed = {i for i, p in topic.partitions.items() if old is None or old.partitions.get(i) != p}
        assert changed <= set(delta.changed_partitions.get(topic.id, ()))


def test_one_commit_copies_a_table_once_and_only_if_it_changes() -> None:
    image = image_of(messages.TopicRecord(name=f"t{n}", topic_id=uuid(n)) for n in range(100))
    delta = MetadataDelta(image)
    delta.replay(messages.ConfigRecord(resource_type=4, resource_name="", name="a", value="1"))
    after = delta.apply(1, 1, 1)
    assert after.topics is image.topics
    assert after.configs is not image.configs


def test_naming_the_same_leader_again_begins_a_new_epoch() -> None:
    topic = messages.TopicRecord(name="t", topic_id=uuid(1))
    partition = messages.PartitionRecord(
        partition_id=0, topic_id=uuid(1), replicas=[1], isr=[1], leader=1, leader_epoch=4, partition_epoch=9
    )
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=uuid(1), leader=1)
    after = image_of([topic, partition, change]).topics["t"].partitions[0]
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 5, 10)
    kept = messages.PartitionChangeRecord(partition_id=0, topic_id=uuid(1), isr=[])
    after = image_of([topic, partition, kept]).topics["t"].partitions[0]
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 4, 10)


def test_a_topic_created_again_under_its_name_is_another_topic() -> None:
    first = [messages.TopicRecord(name="t", topic_id=uuid(1))]
    delta = MetadataDelta(image_of(first))
    delta.replay(messages.RemoveTopicRecord(topic_id=uuid(1)))
    delta.replay(messages.TopicRecord(name="t", topic_id=uuid(2)))
    after = delta.apply(-1, -1, -1)
    assert (list(delta.deleted_topics), delta.created_topics) == ([uuid(1)], {"t": uuid(2)})
    assert after.topics["t"].id == uuid(2)


@pytest.mark.parametrize(
    "record",
    [
        messages.RemoveTopicRecord(topic_id=uuid(7)),
        messages.PartitionRecord(partition_id=0, topic_id=uuid(7), replicas=[1]),
        messages.PartitionChangeRecord(partition_id=0, topic_id=uuid(7)),
        messages.PartitionChangeRecord(partition_id=9, topic_id=uuid(1)),
        messages.TopicRecord(name="t", topic_id=uuid(8)),
        messages.ClearElrRecord(topic_name="gone"),
        messages.UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        messages.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1),
        messages.RemoveAccessControlEntryRecord(id=uuid(1)),
        messages.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        messages.PartitionRecord(partition_id=0, topic_id=uuid(1), replicas=[1], directories=[uuid(1), uuid(2)]),
        messages.AbortTransactionRecord(),
        messages.ProduceRequest(),
    ],
)
def test_a_record_that_cannot_follow_is_refused(record: Message) -> None:
    delta = MetadataDelta(image_of([messages.TopicRecord(name="t", topic_id=uuid(1))]))
    with pytest.raises(ReplayError):
        delta.replay(record)


def test_all_26_record_types_have_a_replay() -> None:
    kinds = {cls.__name__ for cls in (messages.METADATA_RECORDS[key] for key in messages.METADATA_RECORDS)}
    assert len(kinds) == 26
    for name in sorted(kinds - {"AbortTransactionRecord"}):
        record = messages.named(name)()
        try:
            MetadataDelta(EMPTY).replay(record)
        except ReplayError as error:
            assert "is not a record" not in str(error)


def test_an_unknown_record_type_is_refused_with_its_number() -> None:
    with pytest.raises(CorruptMetadata, match="type 99"):
        decode_value(bytes([1, 99, 0, 0]))
    with pytest.raises(CorruptMetadata, match="frame version 2"):
        decode_value(bytes([2, 0, 0, 0]))


def test_records_are_written_at_the_version_their_readers_know() -> None:
    partition = messages.PartitionRecord()
    broker = messages.RegisterBrokerRecord()
    levels = (7, 8, 17, 23, 30)
    assert [record_version(partition, level) for level in levels] == [0, 0, 1, 2, 2]
    assert [record_version(broker, level) for level in levels] == [1, 2, 3, 3, 4]
    kind = messages.BrokerRegistrationChangeRecord
    changes = [kind(fenced=1), kind(in_controlled_shutdown=1), kind(log_dirs=[uuid(1)]), kind(cordoned_log_dirs=[])]
    assert [record_version(change, 30) for change in changes] == [0, 1, 2, 3]


# Transactions (KIP-868)


def replayed(*batches: list[Message]) -> Replayer:
    replayer = Replayer(EMPTY)
    offset = 0
    for batch in batches:
        replayer.batch(batch, offset, 1, 5)
        offset += len(batch)
    return replayer


BEGIN = messages.BeginTransactionRecord(name="t")
END = messages.EndTransactionRecord()
ABORT = messages.AbortTransactionRecord(reason="r")
ONE = messages.TopicRecord(name="one", topic_id=uuid(1))
TWO = messages.TopicRecord(name="two", topic_id=uuid(2))


def test_a_transaction_counts_as_a_whole_and_across_batches() -> None:
    replayer = replayed([ONE, BEGIN], [TWO], [END])
    assert (list((image := replayer.take()[1]).topics), image.offset) == (["one", "two"], 3)


def test_an_aborted_transaction_leaves_no_trace() -> None:
    replayer = replayed([ONE, BEGIN], [TWO], [ABORT], [messages.NoOpRecord()])
    assert (list((image := replayer.take()[1]).topics), image.offset) == (["one"], 4)


def test_a_transaction_left_open_is_known_by_its_start_and_can_be_abandoned() -> None:
    replayer = replayed([ONE], [BEGIN, TWO])
    assert replayer.transaction_start == 1
    replayer.abandon_transaction()
    assert (list((image := replayer.take()[1]).topics), image.offset) == (["one"], 0)


@pytest.mark.parametrize("records", [[END], [ABORT], [BEGIN, BEGIN]])
def test_marks_of_a_transaction_must_pair(records: list[Message]) -> None:
    with pytest.raises(ReplayError):
        replayed(records)


@settings(max_examples=examples(40), deadline=None)
@given(lives(max_length=8), st.data())
def test_a_damaged_batch_is_refused_and_never_raises_anything_else(life: list[Message], data: st.DataObject) -> None:
    (batch,) = encode_batches(life, base_offset=0, epoch=1, timestamp=1, metadata_version=30)
    position = data.draw(st.integers(0, len(batch) - 1))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        assert all(isinstance(found.records, list) for found in read_batches(batch))
    except CorruptMetadata:
        return
