"""Deduplication, sequences and epochs: what ProducerStateManager and ProducerAppendInfo decide in Kafka."""

import pytest
from crc32c import crc32c

from ottla.model.errors import Errors
from ottla.storage import producer_state
from ottla.storage.answers import ActiveProducer, Appended, Rejected
from ottla.storage.following import append_as_follower
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.producer_state import CachedBatch, CorruptSnapshot, Producer, ProducerStates
from ottla.storage.reading import batches_of
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, PATH, a_batch, accepted, append, created, rejected, reopened

LAST = 2**31 - 1


def send(log: Log, sequence: int, records: int = 1, *, epoch: int = 0, producer_id: int = 7) -> Appended | Rejected:
    batch = a_batch(*[b"v"] * records, producer=(producer_id, epoch, sequence))
    return append_as_leader(log, batch, 0, NOW)


def test_each_of_the_last_five_batches_is_answered_with_its_original_offsets() -> None:
    log = created()
    for number in range(6):
        assert send(log, number * 2, 2) == Appended(number * 2, number * 2 + 1, -1, 0)
    for number in range(1, 6):
        assert send(log, number * 2, 2) == Appended(number * 2, number * 2 + 1, -1, 0, duplicate=True)
    assert rejected(send(log, 0, 2)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 12


def test_a_duplicate_matches_first_and_last_sequence_exactly() -> None:
    log = created()
    send(log, 0, 4)
    for sequence, records in [(0, 3), (0, 5), (1, 3), (2, 2)]:
        assert rejected(send(log, sequence, records)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_out_of_order() -> None:
    log = created()
    send(log, 0)
    assert rejected(send(log, 2)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1) == Appended(1, 1, -1, 0)


def test_an_unknown_producer_may_start_anywhere_because_retention_may_have_removed_its_state() -> None:
    log = created()
    assert send(log, 41) == Appended(0, 0, -1, 0)
    assert send(log, 42) == Appended(1, 1, -1, 0)


def test_sequences_wrap_between_batches() -> None:
    log = created()
    for sequence in (LAST - 2, LAST - 1, LAST, 0, 1):
        accepted(send(log, sequence))
    assert send(log, 0) == Appended(3, 3, -1, 0, duplicate=True)
    assert send(log, LAST) == Appended(2, 2, -1, 0, duplicate=True)


def test_sequences_wrap_inside_a_batch() -> None:
    log = created()
    accepted(send(log, LAST - 2, 5))
    assert send(log, LAST - 2, 5) == Appended(0, 4, -1, 0, duplicate=True)
    assert rejected(send(log, 3)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 2) == Appended(5, 5, -1, 0)


def test_a_newer_epoch_starts_at_sequence_0_and_forgets_the_window() -> None:
    log = created()
    send(log, 0)
    assert rejected(send(log, 1, epoch=1)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1) == Appended(1, 1, -1, 0)
    assert rejected(send(log, 1, epoch=0)).error is Errors.INVALID_PRODUCER_EPOCH


def test_an_old_epoch_is_fenced_even_for_a_batch_that_was_once_accepted() -> None:
    log = created()
    send(log, 0)
    send(log, 0, epoch=1)
    assert rejected(send(log, 0, epoch=0)).error is Errors.INVALID_PRODUCER_EPOCH


def test_producers_do_not_disturb_each_other() -> None:
    log = created()
    for producer_id in (1, 2, 3):
        send(log, 0, producer_id=producer_id)
    assert [send(log, 0, producer_id=p).duplicate for p in (1, 2, 3)] == [True] * 3  # type: ignore[union-attr]


def test_a_duplicate_on_a_log_append_time_topic_returns_the_first_time() -> None:
    log = created()
    log.update_config(log.config.__class__(message_timestamp_type="LogAppendTime"))
    send(log, 0)
    batch = a_batch(b"v", producer=(7, 0, 0))
    assert append_as_leader(log, batch, 0, NOW + 99) == Appended(0, 0, NOW, 0, duplicate=True)


def test_the_window_survives_a_crash_because_the_log_is_read_again() -> None:
    fs = SimDisk()
    log = created(fs)
    for sequence in range(5):
        send(log, sequence)
    log = reopened(fs.killed())
    for sequence in range(5):
        assert send(log, sequence) == Appended(sequence, sequence, -1, 0, duplicate=True)


def test_a_clean_restart_knows_the_last_batch_from_the_snapshot_and_the_window_from_the_log() -> None:
    fs = SimDisk()
    log = created(fs)
    for sequence in range(7):
        send(log, sequence)
        send(log, sequence, producer_id=8)
    log.close()
    log = reopened(fs, clean=True)
    for sequence in range(2, 7):
        assert send(log, sequence) == Appended(2 * sequence, 2 * sequence, -1, 0, duplicate=True)
    assert rejected(send(log, 1)).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 7) == Appended(14, 14, -1, 0)


def test_the_window_is_refilled_over_segments_but_not_over_epochs() -> None:
    fs = SimDisk()
    log = created(fs)
    send(log, 0)
    send(log, 0, epoch=1)
    log.roll(NOW)
    send(log, 1, epoch=1)
    log.close()
    log = reopened(fs, clean=True)
    assert send(log, 0, epoch=1) == Appended(1, 1, -1, 0, duplicate=True)
    assert [batch.first_offset for batch in log.producers.producers[7].batches] == [1, 2]


def test_a_snapshot_survives_the_wrap_of_its_last_batch() -> None:
    states = ProducerStates()
    states.record_batch(7, 0, LAST - 1, 2, 100, 104, NOW, False)
    loaded = ProducerStates()
    loaded.load_snapshot(states.encode_snapshot(), 105, NOW, 1000)
    assert loaded.producers == states.producers
    assert loaded.producers[7].batches == [CachedBatch(LAST - 1, 2, 100, 104, NOW)]


def test_truncation_takes_the_knowledge_back() -> None:
    log = created()
    for sequence in range(4):
        send(log, sequence)
    log.truncate_to(2, NOW)
    assert send(log, 1) == Appended(1, 1, -1, 0, duplicate=True)
    assert send(log, 2) == Appended(2, 2, -1, 0)


@pytest.mark.parametrize("damage", ["flip", "cut", "version", "empty"])
def test_a_damaged_snapshot_is_deleted_and_rebuilt_from_an_older_one_and_the_log(damage: str) -> None:
    fs = SimDisk()
    log = created(fs)
    send(log, 0)
    log.roll(NOW)
    send(log, 1)
    log.close()
    path = f"{PATH}/{2:020d}.snapshot"
    data = fs.names[path].data
    if damage == "flip":
        data[-1] ^= 1
    elif damage == "cut":
        del data[-3:]
    elif damage == "version":
        data[1] = 9
    else:
        data.clear()
    log = reopened(fs, clean=True)
    assert send(log, 1) == Appended(1, 1, -1, 0, duplicate=True)
    assert path not in fs.names


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
def test_a_snapshot_with_a_lying_count_is_corrupt(count: int) -> None:
    states = ProducerStates()
    states.record_batch(7, 0, 0, 0, 0, 0, NOW, False)
    data = bytearray(states.encode_snapshot())
    data[6:10] = count.to_bytes(4, "big", signed=True)
    data[2:6] = crc32c(bytes(data[6:])).to_bytes(4, "big")
    with pytest.raises(CorruptSnapshot):
        ProducerStates().load_snapshot(bytes(data), 1, NOW, 1000)


def test_idle_producers_expire_after_a_day_but_never_inside_a_transaction() -> None:
    states = ProducerStates()
    states.record_batch(1, 0, 0, 0, 0, 0, NOW, False)
    states.record_batch(2, 0, 0, 0, 1, 1, NOW, True)
    day = 24 * 3600 * 1000
    states.expire(NOW + day - 1, day)
    assert list(states.producers) == [1, 2]
    states.expire(NOW + day, day)
    assert list(states.producers) == [2]


def test_expired_producers_are_not_loaded_from_a_snapshot() -> None:
    states = ProducerStates()
    states.record_batch(1, 0, 0, 0, 0, 0, NOW, False)
    states.record_batch(2, 0, 0, 0, 1, 1, NOW, True)
    loaded = ProducerStates()
    loaded.load_snapshot(states.encode_snapshot(), 2, NOW + 1000, 1000)
    assert (list(loaded.producers), loaded.ongoing) == ([2], {1: 2})


def test_the_number_of_producers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 3)
    states = ProducerStates()
    states.record_batch(1, 0, 0, 0, 0, 0, NOW, True)
    for producer_id in (2, 3, 4, 5):
        states.record_batch(producer_id, 0, 0, 0, producer_id, producer_id, NOW, False)
    assert list(states.producers) == [1, 4, 5]


def test_the_number_of_proofs_asked_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 2)
    states = ProducerStates()
    for producer_id in (1, 2, 3):
        states.begin_verification(producer_id, 0, 0, epoch_bump=True, now=NOW)
    states.begin_verification(2, 0, 0, epoch_bump=True, now=NOW)
    assert list(states.verifications) == [2, 3]


def test_active_producers_are_described() -> None:
    log = created()
    send(log, 3, 2, epoch=4)
    assert log.active_producers() == [ActiveProducer(7, 4, 4, NOW + 1, -1, -1)]


def test_plain_batches_leave_no_producer_behind() -> None:
    log = created()
    append(log, b"a")
    assert log.producers.producers == {}


def test_a_follower_learns_the_same_state_as_its_leader() -> None:
    leader, follower = created(), created()
    for sequence in range(7):
        send(leader, sequence, 1)
    append_as_follower(follower, b"".join(bytes(batch) for batch in batches_of(leader, 0)), 0, NOW)
    assert follower.producers.producers == leader.producers.producers
    assert isinstance(leader.producers.producers[7], Producer)
