"""Produce, batch by batch: what is taken, what is refused and how, and what an idempotent producer may rely on."""

from typing import Any

import pytest

from ottla.protocol import messages as m
from ottla.protocol.batch import read_header, seal
from ottla.protocol.records import NewRecord, build_batch
from tests.support.requests import (
    NAMED_PRODUCE,
    NOON,
    batch,
    batches_in,
    create_topic,
    delete_topic,
    fetch,
    list_offset,
    produce,
    produce_request,
    produced,
    producer_id,
    records,
    records_in,
)
from tests.support.wire import Wire, versions

CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87
UNKNOWN_TOPIC_ID = 100


def test_every_version_takes_a_batch(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    for count, version in enumerate(versions(0)):
        part = produce(wire, topic if version <= NAMED_PRODUCE else topic_id, batch(1), version=version)

        assert (part.index, part.error_code, part.base_offset, part.log_append_time_ms) == (0, 0, count, -1)
        assert part.log_start_offset == (0 if version >= 5 else -1)


def test_every_version_reports_its_errors(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    bad = bytearray(batch(2))
    bad[-1] ^= 1
    for version in versions(0):
        part = produce(wire, topic if version <= NAMED_PRODUCE else topic_id, bytes(bad), version=version)

        assert (part.error_code, part.base_offset, part.log_append_time_ms) == (CORRUPT_MESSAGE, -1, -1)
    assert list_offset(wire, topic, -1).offset == 0


def test_a_batch_is_stored_as_it_came_but_for_offset_and_leader_epoch(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    for codec in range(5):
        sent = batch(20, codec=codec)
        base = produced(wire, topic, sent)
        (stored,) = batches_in(fetch(wire, topic, base).records)

        header = read_header(stored)
        assert (header.base_offset, header.leader_epoch) == (base, 0)
        assert stored[16:] == sent[16:]


def test_one_request_may_carry_many_partitions_and_each_has_its_own_outcome(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=2)
    bad = bytearray(batch(1))
    bad[-1] ^= 1
    data = {0: batch(1), 1: bytes(bad), 2: batch(1)}
    request = m.ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[
            m.ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[m.ProduceRequest.PartitionProduceData(index=i, records=d) for i, d in data.items()],
            )
        ],
    )

    (answer,) = wire.ask(request, NAMED_PRODUCE).responses

    assert {part.index: part.error_code for part in answer.partition_responses} == {
        0: 0,
        1: CORRUPT_MESSAGE,
        2: UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_of_two_batches_for_one_partition_in_a_request_the_last_counts(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    for offset in range(2):
        assert produced(wire, topic_id, batch(1)) == offset  # from here on its batches are ordinary
    request = produce_request(topic_id, batch(2))
    (data,) = request.topic_data
    data.partition_data.append(m.ProduceRequest.PartitionProduceData(index=0, records=batch(3)))

    (answer,) = wire.ask(request, 13).responses

    assert [(part.error_code, part.base_offset) for part in answer.partition_responses] == [(0, 2)]
    assert list_offset(wire, topic, -1).offset == 5


def test_an_unknown_topic_is_refused_by_name_and_by_id(wire: Wire, topic: str) -> None:
    assert produce(wire, topic, batch(1)).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert produce(wire, bytes(range(16)), batch(1)).error_code == UNKNOWN_TOPIC_ID


def test_a_recreated_topic_has_a_new_id_and_the_old_one_is_unknown(wire: Wire, topic: str) -> None:
    old = create_topic(wire, topic)
    produced(wire, old, batch(5))
    delete_topic(wire, topic)
    new = create_topic(wire, topic)

    assert new != old
    assert produce(wire, old, batch(1)).error_code == UNKNOWN_TOPIC_ID
    assert produced(wire, new, batch(1)) == 0


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_are_all_one_or_none(wire: Wire, topic: str, acks: int) -> None:
    create_topic(wire, topic)

    assert produce(wire, topic, batch(1), acks=acks).error_code == INVALID_REQUIRED_ACKS


def changed(data: bytes, **fields: int) -> bytes:
    """The batch with other header fields and a CRC that fits them."""
    sealed = bytearray(data)
    places = {"attributes": (21, 2), "last_offset_delta": (23, 4), "max_timestamp": (35, 8), "record_count": (57, 4)}
    for name, value in fields.items():
        at, size = places[name]
        sealed[at : at + size] = value.to_bytes(size, "big", signed=True)
    seal(sealed)
    return bytes(sealed)


def with_magic(magic: int) -> bytes:
    data = bytearray(batch(1))
    data[16] = magic
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"", INVALID_RECORD, id="nothing"),
        pytest.param(batch(1)[:50], INVALID_RECORD, id="half a header"),
        pytest.param(batch(1)[:-1], INVALID_RECORD, id="a batch cut short"),
        pytest.param(batch(1) + batch(1), INVALID_RECORD, id="two batches"),
        pytest.param(with_magic(0), INVALID_RECORD, id="message format 0"),
        pytest.param(with_magic(1), INVALID_RECORD, id="message format 1"),
        pytest.param(with_magic(3), CORRUPT_MESSAGE, id="message format 3"),
        pytest.param(batch(1, base_offset=77), INVALID_RECORD, id="a base offset that is not 0"),
        pytest.param(batch(1, attributes=0x20), INVALID_RECORD, id="a control batch"),
        pytest.param(changed(batch(3), record_count=2), INVALID_RECORD, id="fewer records than offsets"),
        pytest.param(changed(batch(3), record_count=0), INVALID_RECORD, id="no records"),
        pytest.param(changed(batch(3), last_offset_delta=-1), INVALID_RECORD, id="a negative last offset"),
    ],
)
def test_a_malformed_batch_is_refused_and_leaves_no_trace(wire: Wire, topic: str, data: bytes, error: int) -> None:
    create_topic(wire, topic)

    part = produce(wire, topic, data)

    assert (part.error_code, part.base_offset) == (error, -1)
    assert list_offset(wire, topic, -1).offset == 0
    assert produced(wire, topic, batch(1)) == 0


def test_a_transactional_batch_needs_a_transactional_id(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    part = produce(wire, topic, batch(1, attributes=0x10))

    assert part.error_code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_batch_above_max_message_bytes_is_too_large(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"max.message.bytes": "200"})
    small, large = batch(1), bytes(build_batch(records(1, size=300)))

    part = produce(wire, topic, large)
    assert (part.error_code, part.base_offset) == (MESSAGE_TOO_LARGE, -1)
    assert produced(wire, topic, small) == 0


def test_the_limit_counts_the_batch_to_the_byte(wire: Wire, topic: str) -> None:
    data = bytes(build_batch(records(1, size=300)))
    create_topic(wire, topic, configs={"max.message.bytes": str(len(data) - 1)})
    assert produce(wire, topic, data).error_code == MESSAGE_TOO_LARGE

    exact = topic + "-exact"
    create_topic(wire, exact, configs={"max.message.bytes": str(len(data))})
    assert produced(wire, exact, data) == 0


def test_a_compacted_topic_takes_no_record_without_a_key(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"cleanup.policy": "compact"})
    data = bytes(build_batch([NewRecord(b"k", b"v", NOON), NewRecord(None, b"v", NOON), NewRecord(None, b"w", NOON)]))

    part = produce(wire, topic, data)

    assert part.error_code == INVALID_RECORD
    assert [error.batch_index for error in part.record_errors] == [1, 2]
    assert part.error_message
    assert list_offset(wire, topic, -1).offset == 0
    assert produced(wire, topic, batch(2, codec=1)) == 0
    assert produce(wire, topic, bytes(build_batch([NewRecord(None, b"v", NOON)], codec=4))).error_code == INVALID_RECORD


def test_log_append_time_replaces_the_clients(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"message.timestamp.type": "LogAppendTime"})

    part = produce(wire, topic, batch(3))

    assert part.log_append_time_ms > NOON
    stored = records_in(fetch(wire, topic).records)
    assert {record.timestamp for record in stored} == {part.log_append_time_ms}
    (kept,) = batches_in(fetch(wire, topic).records)
    assert read_header(kept).attributes & 0x08


def test_a_record_too_far_in_the_future_is_refused(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    part = produce(wire, topic, bytes(build_batch(records(2, start=NOON * 2))))

    assert part.error_code == INVALID_TIMESTAMP
    assert [error.batch_index for error in part.record_errors] == [0, 1]


def test_the_bounds_of_timestamps_are_a_topics_own(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"message.timestamp.before.max.ms": "1000"})

    assert produce(wire, topic, batch(1)).error_code == INVALID_TIMESTAMP


def test_zstd_is_taken_from_the_version_that_knows_it(wire: Wire, topic: str) -> None:
    """KIP-110: an older client could not read what another of its kind wrote."""
    topic_id = create_topic(wire, topic)
    packed = bytes(build_batch(records(2), codec=4))
    for version in versions(0):
        part = produce(wire, topic if version <= NAMED_PRODUCE else topic_id, packed, version=version)
        assert part.error_code == (UNSUPPORTED_COMPRESSION_TYPE if version < 7 else 0), version


def test_a_topic_may_ask_for_a_codec_of_its_own(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, configs={"compression.type": "zstd"})
    given = records(50)

    produced(wire, topic, bytes(build_batch(given, codec=1)))

    (stored,) = batches_in(fetch(wire, topic).records)
    assert read_header(stored).codec == 4
    assert [(r.key, r.value, r.timestamp) for r in records_in(stored)] == [(r.key, r.value, r.timestamp) for r in given]


class Idempotent:
    """A producer that chooses its own sequence numbers."""

    def __init__(self, wire: Wire, topic: str) -> None:
        self._wire = wire
        self._topic = topic
        self.id, self.epoch = producer_id(wire)

    def send(self, sequence: int, count: int = 1, epoch: int | None = None) -> Any:
        data = batch(
            count,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
        )
        return produce(self._wire, self._topic, data)


@pytest.fixture
def producer(wire: Wire, topic: str) -> Idempotent:
    create_topic(wire, topic)
    return Idempotent(wire, topic)


def test_each_producer_gets_an_id_of_its_own(wire: Wire) -> None:
    seen = {producer_id(wire) for _ in range(20)}

    assert len({id_ for id_, _ in seen}) == 20
    assert {epoch for _, epoch in seen} == {0}


def test_any_of_the_last_five_batches_may_come_again_and_gets_its_first_offset(producer: Idempotent) -> None:
    offsets = [producer.send(sequence, 2).base_offset for sequence in range(0, 14, 2)]
    assert offsets == [0, 2, 4, 6, 8, 10, 12]

    for sequence in range(4, 14, 2):
        again = producer.send(sequence, 2)
        assert (again.error_code, again.base_offset) == (0, sequence)
    assert producer.send(14, 2).base_offset == 14


def test_a_batch_from_before_the_last_five_is_a_duplicate_or_out_of_order(producer: Idempotent) -> None:
    for sequence in range(7):
        producer.send(sequence)

    assert producer.send(0).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused(producer: Idempotent) -> None:
    assert producer.send(0, 3).base_offset == 0

    assert producer.send(4).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(2).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(3).base_offset == 3


def test_a_duplicate_must_match_in_both_ends(producer: Idempotent) -> None:
    producer.send(0, 4)

    assert producer.send(0, 3).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, 4).base_offset == 0


def test_an_unknown_producer_may_start_at_any_sequence(producer: Idempotent) -> None:
    # Its state may have expired on this broker, so Kafka takes what comes first.
    assert producer.send(100).base_offset == 0
    assert producer.send(101).base_offset == 1


def test_an_old_epoch_is_fenced_and_a_new_one_starts_at_0(producer: Idempotent) -> None:
    producer.send(0, epoch=3)

    assert producer.send(1, epoch=2).error_code == INVALID_PRODUCER_EPOCH
    assert producer.send(7, epoch=4).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, epoch=4).base_offset == 1


def test_the_sequence_wraps_at_its_end(producer: Idempotent) -> None:
    assert producer.send(2**31 - 2, 2).base_offset == 0
    assert producer.send(0).base_offset == 2
    again = producer.send(2**31 - 2, 2)
    assert (again.error_code, again.base_offset) == (0, 0)


def test_partitions_of_a_producer_are_counted_apart(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=2)
    id_, epoch = producer_id(wire)
    data = batch(1, producer_id=id_, producer_epoch=epoch, base_sequence=0)

    assert produced(wire, topic, data, partition=0) == 0
    assert produced(wire, topic, data, partition=1) == 0


def test_describe_producers_shows_who_wrote(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    writer = Idempotent(wire, topic)
    writer.send(0, 3)
    request = m.DescribeProducersRequest(
        topics=[m.DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0, 5])]
    )

    parts = {part.partition_index: part for part in wire.ask(request).topics[0].partitions}

    assert parts[5].error_code == UNKNOWN_TOPIC_OR_PARTITION
    (active,) = parts[0].active_producers
    assert (active.producer_id, active.producer_epoch, active.last_sequence) == (writer.id, 0, 2)
    assert (active.current_txn_start_offset, active.coordinator_epoch) == (-1, -1)


def test_a_null_batch_does_not_stop_the_node(bootstrap: str, topic: str) -> None:
    """Apache Kafka never answers it; what counts is that others are served."""
    with Wire(bootstrap) as wire, Wire(bootstrap) as other:
        create_topic(other, topic)
        wire.send(produce_request(topic, None), NAMED_PRODUCE)
        assert produced(other, topic, batch(1)) == 0
