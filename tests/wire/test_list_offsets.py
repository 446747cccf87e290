"""ListOffsets and OffsetForLeaderEpoch: by time, by the special timestamps, at every version."""

from typing import Any

import pytest

from ottla.protocol import messages as m
from ottla.protocol.batch import seal
from ottla.protocol.records import NewRecord, build_batch
from tests.support.requests import NOON, batch, create_topic, delete_records, list_offset, produced, records
from tests.support.wire import Wire, versions

UNKNOWN_TOPIC_OR_PARTITION = 3
UNSUPPORTED_VERSION = 35
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SPECIAL = {  # timestamp: the first version that knows it
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@pytest.fixture
def ten(wire: Wire, topic: str) -> str:
    """A topic with offsets 0 to 9 a minute apart, in two batches, and the first two deleted."""
    create_topic(wire, topic)
    given = records(10, step=60_000)
    produced(wire, topic, bytes(build_batch(given[:6])))
    produced(wire, topic, bytes(build_batch(given[6:], codec=3)))
    assert delete_records(wire, topic, 2).low_watermark == 2
    return topic


@pytest.mark.parametrize("version", versions(2))
def test_special_timestamps_at_every_version_that_has_them(wire: Wire, ten: str, version: int) -> None:
    expected = {
        LATEST: (0, -1, 10, 0),
        EARLIEST: (0, -1, 2, 0),
        MAX_TIMESTAMP: (0, NOON + 9 * 60_000, 9, 0),
        EARLIEST_LOCAL: (0, -1, 2, 0),
        LATEST_TIERED: (0, -1, -1, -1),
        EARLIEST_PENDING_UPLOAD: (0, -1, -1, -1),
    }
    for timestamp, first in SPECIAL.items():
        part = list_offset(wire, ten, timestamp, version=version)
        seen = (part.error_code, part.timestamp, part.offset, part.leader_epoch)

        error, found_at, offset, epoch = expected[timestamp] if version >= first else (UNSUPPORTED_VERSION, -1, -1, -1)
        assert seen == (error, found_at, offset, epoch if version >= 4 else -1), (timestamp, version)


@pytest.mark.parametrize("version", versions(2))
def test_a_time_finds_the_first_record_not_before_it(wire: Wire, ten: str, version: int) -> None:
    def ask(timestamp: int) -> tuple[int, int, int]:
        part = list_offset(wire, ten, timestamp, version=version)
        assert part.leader_epoch == (0 if version >= 4 and part.offset >= 0 else -1)
        return part.error_code, part.timestamp, part.offset

    assert ask(0) == (0, NOON + 2 * 60_000, 2)
    assert ask(NOON + 2 * 60_000 + 1) == (0, NOON + 3 * 60_000, 3)
    assert ask(NOON + 7 * 60_000) == (0, NOON + 7 * 60_000, 7)
    assert ask(NOON + 9 * 60_000) == (0, NOON + 9 * 60_000, 9)
    assert ask(NOON + 9 * 60_000 + 1) == (0, -1, -1)


@pytest.mark.parametrize("timestamp", [-7, -100, -(2**63)])
def test_other_negative_timestamps_are_of_versions_to_come(wire: Wire, ten: str, timestamp: int) -> None:
    part = list_offset(wire, ten, timestamp)

    assert (part.error_code, part.offset) == (UNSUPPORTED_VERSION, -1)


def test_an_empty_log_has_ends_but_no_times(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    def ask(timestamp: int) -> tuple[int, int, int, int]:
        part = list_offset(wire, topic, timestamp)
        return part.error_code, part.timestamp, part.offset, part.leader_epoch

    assert ask(LATEST) == (0, -1, 0, 0)
    assert ask(EARLIEST) == (0, -1, 0, 0)
    assert ask(MAX_TIMESTAMP) == (0, -1, -1, -1)
    assert ask(NOON) == (0, -1, -1, -1)


def test_records_out_of_the_order_of_time(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    for minute in (5, 1, 9, 3):
        produced(wire, topic, bytes(build_batch([NewRecord(b"k", b"v", NOON + minute * 60_000)])))

    assert list_offset(wire, topic, NOON).offset == 0
    assert list_offset(wire, topic, NOON + 6 * 60_000).offset == 2
    assert list_offset(wire, topic, MAX_TIMESTAMP).offset == 2


@pytest.mark.parametrize("codec", range(5))
def test_a_time_is_found_inside_of_a_compressed_batch(wire: Wire, topic: str, codec: int) -> None:
    create_topic(wire, topic)
    produced(wire, topic, bytes(build_batch(records(100, step=10), codec=codec)))

    part = list_offset(wire, topic, NOON + 555)

    assert (part.offset, part.timestamp) == (56, NOON + 560)


def test_an_unknown_partition_is_refused_at_every_version(wire: Wire, topic: str) -> None:
    for version in versions(2):
        part = list_offset(wire, topic, LATEST, version=version)
        assert (part.error_code, part.offset, part.timestamp) == (UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_one_partition_asked_for_twice_is_an_invalid_request(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    places = [m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=t) for t in (LATEST, EARLIEST)]
    request = m.ListOffsetsRequest(
        replica_id=-1, topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=places)]
    )

    assert {part.error_code for part in wire.ask(request).topics[0].partitions} == {42}


def test_the_leader_epoch_a_client_believes_in_is_checked(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    def ask(epoch: int) -> int:
        place = m.ListOffsetsRequest.ListOffsetsPartition(
            partition_index=0, timestamp=LATEST, current_leader_epoch=epoch
        )
        topics = [m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[place])]
        code: int = wire.ask(m.ListOffsetsRequest(replica_id=-1, topics=topics)).topics[0].partitions[0].error_code
        return code

    assert (ask(-1), ask(0), ask(3), ask(-2)) == (0, 0, UNKNOWN_LEADER_EPOCH, FENCED_LEADER_EPOCH)


def end_of_epoch(wire: Wire, topic: str, epoch: int, version: int, partition: int = 0) -> Any:
    place = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=partition, leader_epoch=epoch)
    request = m.OffsetForLeaderEpochRequest(
        replica_id=-1 if version >= 3 else -2,
        topics=[m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[place])],
    )
    return wire.ask(request, version).topics[0].partitions[0]


def test_the_end_of_a_leader_epoch_at_every_version(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(5))
    for version in versions(23):
        part = end_of_epoch(wire, topic, 0, version)
        assert (part.partition, part.error_code, part.leader_epoch, part.end_offset) == (0, 0, 0, 5)

        part = end_of_epoch(wire, topic, 9, version)
        assert (part.error_code, part.leader_epoch, part.end_offset) == (0, -1, -1)

        part = end_of_epoch(wire, topic, 0, version, partition=9)
        assert part.error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_that_does_not_unfold_is_found_by_its_header_and_the_log_says_so(
    wire: Wire, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(wire, topic)
    lie = bytearray(batch(3))
    lie[22] |= 1  # says gzip, and is not
    seal(lie)
    produced(wire, topic, bytes(lie))

    found = list_offset(wire, topic, NOON + 1)

    assert (found.error_code, found.offset, found.timestamp) == (0, 0, NOON + 2)
    (line,) = caplog.messages
    assert line.startswith(f"{topic}-0: what a producer wrote cannot be searched by time: not gzip")
    assert list_offset(wire, topic, LATEST).offset == 3
