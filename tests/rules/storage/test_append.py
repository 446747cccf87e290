"""What a leader checks before it appends, and what it answers."""

import time

import pytest

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.protocol.records import read_records
from ottla.storage.answers import COORDINATOR, RAFT, Appended, Rejected
from ottla.storage.config import LogConfig
from ottla.storage.following import append_as_follower
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.opening import open_log
from ottla.storage.reading import batches_of
from ottla.storage.retention import delete_records_before
from ottla.storage.validate import RecordError
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, PARTITION, PATH, a_batch, accepted, append, created, rejected, values


def the_error(outcome: Appended | Rejected) -> Errors:
    return rejected(outcome).error


def resealed(batch: bytearray, position: int, data: bytes) -> bytearray:
    batch[position : position + len(data)] = data
    b.seal(batch)
    return batch


def test_offsets_are_dense_and_the_epoch_is_written_into_the_batch() -> None:
    log = created()
    assert append_as_leader(log, a_batch(b"a", b"b"), 3, NOW) == Appended(0, 1, -1, 0)
    assert append_as_leader(log, a_batch(b"c"), 3, NOW) == Appended(2, 2, -1, 0)
    headers = [b.read_header(batch) for batch in batches_of(log, 0)]
    assert [(h.base_offset, h.leader_epoch) for h in headers] == [(0, 3), (2, 3)]
    assert values(log) == [b"a", b"b", b"c"]
    assert (log.log_end_offset, log.latest_epoch) == (3, 3)


def test_a_batch_that_cannot_be_written_to_is_copied() -> None:
    log = created()
    sent = bytes(a_batch(b"a"))
    assert append_as_leader(log, memoryview(sent), 1, NOW) == Appended(0, 0, -1, 0)
    assert sent == a_batch(b"a")


def test_less_than_a_header_is_no_record_batch() -> None:
    assert the_error(append_as_leader(created(), a_batch()[:60], 0, NOW)) is Errors.INVALID_RECORD


def test_a_length_beyond_what_was_sent_is_no_record_batch() -> None:
    assert the_error(append_as_leader(created(), a_batch()[:-1], 0, NOW)) is Errors.INVALID_RECORD


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_below_the_header_is_corrupt(length: int) -> None:
    batch = a_batch()
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    assert the_error(append_as_leader(created(), batch, 0, NOW)) is Errors.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (bytes(11), Errors.INVALID_RECORD),
        (bytes(16), Errors.CORRUPT_MESSAGE),  # a length of 0
        (a_batch()[:16], Errors.INVALID_RECORD),
        (a_batch() + bytes(1), Errors.CORRUPT_MESSAGE),
        (a_batch() + bytes(20), Errors.CORRUPT_MESSAGE),
        (a_batch() + a_batch()[:40], Errors.CORRUPT_MESSAGE),
        (a_batch() + a_batch(), Errors.INVALID_RECORD),
    ],
)
def test_damage_is_told_apart_from_what_is_no_batch_for_produce(sent: bytes, error: Errors) -> None:
    """A client may send again what was damaged on the way, and gives up on a record that is invalid."""
    assert the_error(append_as_leader(created(), bytearray(sent), 0, NOW)) is error


@pytest.mark.parametrize("length", [14, 47, 49])
def test_a_length_below_what_was_sent_is_corrupt(length: int) -> None:
    batch = a_batch(b"value")
    batch[8:12] = length.to_bytes(4, "big")
    assert the_error(append_as_leader(created(), batch, 0, NOW)) is Errors.CORRUPT_MESSAGE


def test_every_flipped_bit_under_the_crc_is_found() -> None:
    log = created()
    good = a_batch(b"value")
    for position in range(17, len(good)):
        bad = bytearray(good)
        bad[position] ^= 1
        assert the_error(append_as_leader(log, bad, 0, NOW)) is Errors.CORRUPT_MESSAGE
    assert log.size == 0


def test_two_batches_from_a_client_are_refused_and_taken_from_a_coordinator() -> None:
    log = created()
    two = a_batch(b"a") + a_batch(b"b", b"c")
    assert the_error(append_as_leader(log, bytearray(two), 0, NOW)) is Errors.INVALID_RECORD
    assert append_as_leader(log, bytearray(two), 0, NOW, origin=COORDINATOR) == Appended(0, 2, -1, 0)
    assert append_as_leader(log, bytearray(two), 0, NOW, origin=RAFT) == Appended(3, 5, -1, 0)


def test_of_several_internal_batches_all_are_appended_or_none() -> None:
    log = created()
    bad = a_batch(b"b")
    bad[-1] ^= 1
    refused = append_as_leader(log, a_batch(b"a") + bad, 0, NOW, origin=COORDINATOR)
    assert the_error(refused) is Errors.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.size) == (0, 0)


@pytest.mark.parametrize(
    ("magic", "error"), [(0, Errors.INVALID_RECORD), (1, Errors.INVALID_RECORD), (3, Errors.CORRUPT_MESSAGE)]
)
def test_only_magic_2_is_taken(magic: int, error: Errors) -> None:
    batch = a_batch()
    batch[16] = magic
    assert the_error(append_as_leader(created(), batch, 0, NOW)) is error


def test_a_batch_above_max_message_bytes_is_too_large() -> None:
    log = created(config=LogConfig(max_message_bytes=200))
    exact = a_batch(b"x" * (200 - len(a_batch(b"")) - 2))
    assert len(exact) == 200
    accepted(append_as_leader(log, exact, 0, NOW))
    assert the_error(append_as_leader(log, a_batch(b"x" * 200), 0, NOW)) is Errors.MESSAGE_TOO_LARGE


def test_a_batch_above_segment_bytes_has_its_own_error() -> None:
    log = created(config=LogConfig(segment_bytes=100))
    assert the_error(append_as_leader(log, a_batch(b"x" * 200), 0, NOW)) is Errors.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize(("count", "delta"), [(0, -1), (0, 0), (2, 0), (1, 1), (-1, -2)])
def test_the_record_count_must_fit_the_offsets(count: int, delta: int) -> None:
    batch = resealed(a_batch(), 57, count.to_bytes(4, "big", signed=True))
    batch = resealed(batch, 23, delta.to_bytes(4, "big", signed=True))
    assert the_error(append_as_leader(created(), batch, 0, NOW)) is Errors.INVALID_RECORD


def test_a_client_sends_base_offset_0() -> None:
    assert the_error(append_as_leader(created(), a_batch(base_offset=1), 0, NOW)) is Errors.INVALID_RECORD


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        (b.CONTROL, Errors.INVALID_RECORD),
        (b.DELETE_HORIZON, Errors.INVALID_RECORD),
        (b.TRANSACTIONAL, Errors.INVALID_RECORD),
        (5, Errors.INVALID_RECORD),
        (7, Errors.INVALID_RECORD),
    ],
)
def test_what_clients_may_not_set(attributes: int, error: Errors) -> None:
    batch = resealed(a_batch(), 21, attributes.to_bytes(2, "big"))
    assert the_error(append_as_leader(created(), batch, 0, NOW)) is error


@pytest.mark.parametrize(("codec", "compression_type"), [(0, "producer"), (4, "producer"), (4, "gzip")])
def test_a_stamp_of_another_log_is_taken_off_where_records_keep_their_own_time(
    codec: int, compression_type: str
) -> None:
    log = created(config=LogConfig(compression_type=compression_type))
    stamped = a_batch(b"a", b"b", at=5, codec=codec)
    b.stamp_append_time(stamped, NOW)
    accepted(append_as_leader(log, stamped, 0, NOW))
    (stored,) = batches_of(log, 0)
    header = b.read_header(stored)
    assert (header.attributes & b.LOG_APPEND_TIME, header.crc) == (0, b.computed_crc(stored))
    assert [record.timestamp for record in read_records(stored)] == [5, 6]


def test_a_producer_may_not_stamp_what_the_log_stamps() -> None:
    log = created(config=LogConfig(message_timestamp_type="LogAppendTime"))
    batch = resealed(a_batch(), 21, b.LOG_APPEND_TIME.to_bytes(2, "big"))
    assert the_error(append_as_leader(log, batch, 0, NOW)) is Errors.INVALID_TIMESTAMP


@pytest.mark.parametrize("producer", [(7, -1, 0), (7, 0, -1)])
def test_a_producer_id_needs_an_epoch_and_a_sequence(producer: tuple[int, int, int]) -> None:
    assert the_error(append_as_leader(created(), a_batch(producer=producer), 0, NOW)) is Errors.INVALID_RECORD


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_batches_of_every_codec_are_kept_as_they_are(codec: int) -> None:
    log = created()
    sent = bytes(a_batch(b"a" * 100, b"b" * 100, codec=codec))
    accepted(append_as_leader(log, bytearray(sent), 0, NOW))
    (stored,) = batches_of(log, 0)
    assert bytes(stored[16:]) == sent[16:]
    assert values(log) == [b"a" * 100, b"b" * 100]


def compacted() -> Log:
    return created(config=LogConfig(cleanup_policy=("compact",)))


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    log = compacted()
    outcome = rejected(append_as_leader(log, a_batch(b"a", b"b", key=None), 0, NOW))
    text = "a compacted topic takes no record without a key"
    assert (outcome.error, outcome.record_errors) == (
        Errors.INVALID_RECORD,
        (RecordError(0, text), RecordError(1, text)),
    )
    accepted(append_as_leader(log, a_batch(b"a", key=b""), 0, NOW))


def test_a_compacted_topic_refuses_what_it_cannot_decompress() -> None:
    batch = a_batch(b"a" * 100, codec=1)
    garbled = resealed(batch, b.HEADER_SIZE, b"\xff" * 8)
    assert the_error(append_as_leader(compacted(), garbled, 0, NOW)) is Errors.INVALID_RECORD


@pytest.mark.parametrize(("name", "codec"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
@pytest.mark.parametrize("sent", [0, 1, 4])
def test_a_topic_codec_is_forced_upon_every_batch(name: str, codec: int, sent: int) -> None:
    log = created(config=LogConfig(compression_type=name))
    batch = a_batch(b"a" * 50, b"b" * 50, codec=sent, producer=(9, 0, 0))
    assert append_as_leader(log, batch, 0, NOW) == Appended(0, 1, -1, 0)
    (stored,) = batches_of(log, 0)
    header = b.read_header(stored)
    assert (header.codec, header.crc, header.producer_id, header.record_count) == (codec, b.computed_crc(stored), 9, 2)
    assert [record.value for record in read_records(stored)] == [b"a" * 50, b"b" * 50]


def test_log_append_time_is_stamped_and_returned() -> None:
    log = created(config=LogConfig(message_timestamp_type="LogAppendTime"))
    assert append_as_leader(log, a_batch(b"a", at=5), 0, NOW) == Appended(0, 0, NOW, 0)
    (stored,) = batches_of(log, 0)
    header = b.read_header(stored)
    assert (header.max_timestamp, header.crc) == (NOW, b.computed_crc(stored))
    assert header.attributes & b.LOG_APPEND_TIME
    assert [record.timestamp for record in read_records(stored)] == [NOW]


def test_timestamps_are_bounded_on_both_sides() -> None:
    log = created(config=LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500))
    for at, fine in [(NOW - 1000, True), (NOW - 1001, False), (NOW + 500, True), (NOW + 501, False), (-1, True)]:
        outcome = append_as_leader(log, a_batch(b"a", at=at), 0, NOW)
        assert isinstance(outcome, Appended) is fine, at
        if not fine:
            assert the_error(outcome) is Errors.INVALID_TIMESTAMP


def test_log_append_time_topics_do_not_care_for_a_producers_clock() -> None:
    log = created(config=LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=500))
    accepted(append_as_leader(log, a_batch(b"a", at=NOW + 10_000), 0, NOW))


def test_a_refused_batch_leaves_no_trace() -> None:
    log = created()
    append_as_leader(log, a_batch(b"a"), 0, NOW)
    before = log.size
    rejected(append_as_leader(log, a_batch(b"b")[:-1], 1, NOW))
    assert (log.size, log.log_end_offset, log.latest_epoch) == (before, 1, 0)


def test_a_follower_keeps_offsets_epochs_and_gaps() -> None:
    log = created()
    run = a_batch(b"a", base_offset=5, leader_epoch=1) + a_batch(b"b", b"c", base_offset=9, leader_epoch=2)
    assert append_as_follower(log, run, 2, NOW) == Appended(5, 10, -1, 0)
    assert (log.log_end_offset, log.epochs.epochs, log.epochs.starts) == (11, [1, 2], [5, 9])
    assert b"".join(bytes(batch) for batch in batches_of(log, 0)) == run


def test_a_follower_leaves_out_batches_of_an_epoch_it_does_not_know_yet() -> None:
    log = created()
    run = a_batch(b"a", base_offset=0, leader_epoch=1) + a_batch(b"b", base_offset=1, leader_epoch=2)
    assert append_as_follower(log, run, 1, NOW) == Appended(0, 0, -1, 0)
    assert log.log_end_offset == 1


def test_a_follower_refuses_offsets_that_go_back_and_bad_crcs() -> None:
    log = created()
    accepted(append_as_follower(log, a_batch(b"a", base_offset=4, leader_epoch=1), 1, NOW))
    again = append_as_follower(log, a_batch(b"a", base_offset=4, leader_epoch=1), 1, NOW)
    assert the_error(again) is Errors.OFFSET_OUT_OF_RANGE
    bad = a_batch(b"a", base_offset=5, leader_epoch=1)
    bad[-1] ^= 1
    assert the_error(append_as_follower(log, bad, 1, NOW)) is Errors.CORRUPT_MESSAGE


def test_a_follower_takes_many_small_batches_in_time_that_grows_with_their_number() -> None:
    """One that was away finds megabytes of them in every answer, and nothing else of the node runs meanwhile."""
    count = 10_000
    run = b"".join(a_batch(b"x", base_offset=offset, leader_epoch=0) for offset in range(count))
    log = created()
    began = time.thread_time()
    assert append_as_follower(log, run, 0, NOW) == Appended(0, count - 1, -1, 0)
    assert time.thread_time() - began < 1  # 0.05 s; it was 2.6 s when each batch looked at all before it


def test_a_follower_rolls_in_the_middle_of_a_run() -> None:
    log = created(config=LogConfig(segment_bytes=250))
    run = b"".join(a_batch(b"x" * 50, base_offset=offset, leader_epoch=0) for offset in range(6))
    assert append_as_follower(log, run, 0, NOW) == Appended(0, 5, -1, 0)
    assert len(log.segments) > 2
    assert b"".join(bytes(batch) for batch in batches_of(log, 0)) == run


def test_a_copy_of_a_log_whose_start_lies_inside_a_batch_begins_with_the_whole_batch() -> None:
    """Records were deleted in the middle of it, and the leader has nothing else to send."""
    copy = created()
    copy.truncate_fully_and_start_at(1, NOW)
    whole = a_batch(b"one", b"two", b"three", base_offset=0, leader_epoch=0)
    outcome = append_as_follower(copy, whole, 0, NOW)
    assert isinstance(outcome, Appended)
    delete_records_before(copy, 1)
    assert (copy.log_start_offset, copy.log_end_offset, values(copy)) == (1, 3, [b"two", b"three"])


def test_a_log_that_is_renamed_is_read_and_written_under_its_new_name() -> None:
    disk = SimDisk()
    log = created(disk)
    append(log, b"one")
    log.rename("/data/other-0")
    append(log, b"two")
    log.roll(NOW)
    append(log, b"three")
    log.close()
    assert not disk.exists(PATH)
    again = open_log(
        disk, "/data/other-0", PARTITION, None, LogConfig(), now=NOW, clean=True, recovery_point=3, log_start_offset=0
    )
    assert values(again) == [b"one", b"two", b"three"]
