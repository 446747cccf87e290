"""ListOffsets, OffsetForLeaderEpoch: finding offsets by time and by epoch."""

import pytest

from ottla.protocol.compression import Bounds
from ottla.storage.answers import FoundOffset
from ottla.storage.config import LogConfig
from ottla.storage.epochs import EpochEnd, LeaderEpochs
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.reading import max_timestamp_offset, offset_for_timestamp
from ottla.storage.retention import delete_records_before
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, PATH, a_batch, append, created, reopened


def timed(*timestamps: int, epoch: int = 2, config: LogConfig | None = None) -> Log:
    log = created(config=config)
    for timestamp in timestamps:
        append_as_leader(log, a_batch(b"a", b"b", b"c", at=timestamp), epoch, NOW)
    return log


@pytest.mark.parametrize("codec", [0, 4])
def test_the_first_record_at_or_after_a_time(codec: int) -> None:
    log = created()
    for timestamp in (100, 200, 300):
        append_as_leader(log, a_batch(b"a", b"b", b"c", at=timestamp, codec=codec), 2, NOW)
    assert offset_for_timestamp(log, 0) == FoundOffset(100, 0, 2)
    assert offset_for_timestamp(log, 101) == FoundOffset(101, 1, 2)
    assert offset_for_timestamp(log, 103) == FoundOffset(200, 3, 2)
    assert offset_for_timestamp(log, 302) == FoundOffset(302, 8, 2)
    assert offset_for_timestamp(log, 303) is None


def test_times_need_not_grow() -> None:
    log = timed(300, 100, 500, 200)
    assert offset_for_timestamp(log, 150) == FoundOffset(300, 0, 2)
    assert offset_for_timestamp(log, 400) == FoundOffset(500, 6, 2)


@pytest.mark.parametrize("restart", [False, True])
def test_a_search_by_time_agrees_with_reading_everything(restart: bool) -> None:
    fs = SimDisk()
    config = LogConfig(segment_bytes=2000, index_interval_bytes=200)
    log = created(fs, config)
    times = [(number * 37) % 101 * 10 for number in range(200)]
    for timestamp in times:
        append(log, b"v" * 30, at=timestamp)
    if restart:
        log.close()
        log = reopened(fs, config, clean=True)
    for wanted in range(0, 1020, 7):
        expected = next((offset for offset, at in enumerate(times) if at >= wanted), None)
        found = offset_for_timestamp(log, wanted)
        assert (found.offset if found else None) == expected


@pytest.mark.parametrize("bounds", [Bounds(max_bytes=100), Bounds(max_ratio=1)])
def test_a_batch_that_may_not_be_unpacked_is_found_by_its_header(bounds: Bounds) -> None:
    """Its first offset for a search, so that nothing is missed; its last for the greatest timestamp."""
    log = created(config=LogConfig(unpacking=bounds))
    for timestamp in (100, 200):
        append_as_leader(log, a_batch(b"a" * 500, b"b" * 500, at=timestamp, codec=4), 2, NOW)
    found, greatest = offset_for_timestamp(log, 201), max_timestamp_offset(log)
    assert found is not None and found[:3] == (201, 2, 2) and "unfolds into more" in found.doubt
    assert greatest is not None and greatest[:3] == (201, 3, 2) and "unfolds into more" in greatest.doubt
    assert offset_for_timestamp(log, 202) is None
    delete_records_before(log, 3)
    found = offset_for_timestamp(log, 0)
    assert found is not None and found.offset == 3


def test_records_below_the_log_start_are_not_found() -> None:
    log = timed(100, 200)
    delete_records_before(log, 4)
    assert offset_for_timestamp(log, 0) == FoundOffset(201, 4, 2)


def test_the_epoch_is_the_found_records_own() -> None:
    log = timed(100, epoch=2)
    append_as_leader(log, a_batch(b"a", at=200), 5, NOW)
    assert offset_for_timestamp(log, 50) == FoundOffset(100, 0, 2)
    assert offset_for_timestamp(log, 150) == FoundOffset(200, 3, 5)


def test_the_greatest_timestamp_is_that_of_the_first_record_that_bears_it() -> None:
    assert max_timestamp_offset(timed(100, 300, 200)) == FoundOffset(302, 5, 2)
    assert max_timestamp_offset(created()) is None


@pytest.mark.parametrize("clean", [True, False])
def test_the_greatest_timestamp_is_known_after_a_restart(clean: bool) -> None:
    fs = SimDisk()
    log = created(fs)
    for timestamp in (100, 300, 200):
        append(log, b"v", at=timestamp)
    if clean:
        log.close()
    assert max_timestamp_offset(reopened(fs.killed(), clean=clean)) == FoundOffset(300, 1, 0)


def test_with_log_append_time_all_records_of_a_batch_bear_its_time() -> None:
    log = created(config=LogConfig(message_timestamp_type="LogAppendTime"))
    append_as_leader(log, a_batch(b"a", b"b", at=1), 0, NOW)
    append_as_leader(log, a_batch(b"a", b"b", at=1), 0, NOW + 10)
    assert offset_for_timestamp(log, NOW + 1) == FoundOffset(NOW + 10, 2, 0)
    assert max_timestamp_offset(log) == FoundOffset(NOW + 10, 2, 0)


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    disk = SimDisk()
    disk.mkdir(PATH)
    cache = LeaderEpochs(disk, PATH)
    for epoch, start in entries:
        cache.assign(epoch, start)
    return cache


def entries(cache: LeaderEpochs) -> list[tuple[int, int]]:
    return list(zip(cache.epochs, cache.starts, strict=True))


def test_kip_279_the_end_of_the_largest_epoch_not_above_the_one_asked_for() -> None:
    cache = epochs((2, 10), (5, 20), (7, 30))
    assert cache.end_offset_for(2, 40) == EpochEnd(2, 20)
    assert cache.end_offset_for(3, 40) == EpochEnd(2, 20)
    assert cache.end_offset_for(5, 40) == EpochEnd(5, 30)
    assert cache.end_offset_for(7, 40) == EpochEnd(7, 40)
    assert cache.end_offset_for(8, 40) == EpochEnd(-1, -1)
    assert cache.end_offset_for(-1, 40) == EpochEnd(-1, -1)
    assert cache.end_offset_for(1, 40) == EpochEnd(1, 10)
    assert epochs().end_offset_for(0, 40) == EpochEnd(-1, -1)


def test_an_epoch_starts_once() -> None:
    cache = epochs((1, 0), (1, 5))
    assert entries(cache) == [(1, 0)]


def test_a_new_epoch_removes_those_it_contradicts() -> None:
    assert entries(epochs((1, 0), (3, 10), (2, 10))) == [(1, 0), (2, 10)]
    assert entries(epochs((1, 0), (2, 10), (3, 5))) == [(1, 0), (3, 5)]
    assert entries(epochs((1, 5), (2, 5))) == [(2, 5)]


def test_truncation_cuts_epochs_at_both_ends() -> None:
    cache = epochs((1, 0), (2, 10), (3, 20))
    assert cache.truncate_from_end(20)
    assert entries(cache) == [(1, 0), (2, 10)]
    assert not cache.truncate_from_end(20)
    assert cache.truncate_from_start(12)
    assert entries(cache) == [(2, 12)]
    assert not cache.truncate_from_start(12)
    assert not cache.truncate_from_start(3)


def test_the_epoch_in_force_at_an_offset() -> None:
    cache = epochs((1, 5), (2, 10))
    assert [cache.epoch_for(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 2, 2]


def test_epochs_are_written_with_the_first_append_and_not_before() -> None:
    fs = SimDisk()
    log = created(fs)
    path = f"{PATH}/leader-epoch-checkpoint"
    assert path not in fs.names
    append(log, b"a")
    assert bytes(fs.names[path].data) == b"0\n1\n0 0\n"


@pytest.mark.parametrize("content", [b"", b"0\n1\n", b"0\nx\n1 2\n", b"1\n0\n", None])
def test_a_lost_or_unreadable_epoch_file_is_rebuilt_from_the_batches(content: bytes | None) -> None:
    fs = SimDisk()
    log = created(fs)
    for epoch in (0, 0, 3):
        append_as_leader(log, a_batch(b"a"), epoch, NOW)
    log.close()
    path = f"{PATH}/leader-epoch-checkpoint"
    if content is None:
        del fs.names[path]
    else:
        fs.names[path].data[:] = content
    log = reopened(fs, clean=True)
    assert entries(log.epochs) == [(0, 0), (3, 2)]
    assert log.offset_for_leader_epoch(0) == EpochEnd(0, 2)
    assert log.epoch_at(2) == 3
