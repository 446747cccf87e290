"""Fetching: where a slice starts, where it ends, and how little it takes."""

import pytest

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.storage.answers import FileSlice
from ottla.storage.config import LogConfig
from ottla.storage.following import append_as_follower
from ottla.storage.log import Log
from ottla.storage.reading import batches_of, read, upper_offset
from ottla.storage.retention import apply_retention, delete_records_before
from ottla.storage.segment import TAIL_LIMIT
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import a_batch, append, base_offsets, created, fetched, fill, reopened


def piece(log: Log, offset: int, max_bytes: int, upper: int | None = None, *, min_one: bool = True) -> FileSlice:
    found = read(
        log, offset, max_bytes, upper_bound=log.log_end_offset if upper is None else upper, min_one_message=min_one
    )
    assert isinstance(found, FileSlice)
    return found


def test_an_offset_inside_a_batch_returns_the_whole_batch() -> None:
    log = created()
    append(log, b"a", b"b", b"c")
    append(log, b"d", b"e")
    assert [fetched(log, offset) for offset in range(5)] == [[0, 3], [0, 3], [0, 3], [3], [3]]


def test_the_end_of_the_log_is_empty_and_beyond_it_is_out_of_range() -> None:
    log = created()
    assert read(log, 0, 100, upper_bound=0) is None
    append(log, b"a")
    assert read(log, 1, 100, upper_bound=1) is None
    assert read(log, 2, 100, upper_bound=1) is Errors.OFFSET_OUT_OF_RANGE
    assert read(log, -1, 100, upper_bound=1) is Errors.OFFSET_OUT_OF_RANGE


def test_below_the_log_start_is_out_of_range() -> None:
    log = created()
    fill(log, 3)
    delete_records_before(log, 2)
    assert read(log, 1, 100, upper_bound=3) is Errors.OFFSET_OUT_OF_RANGE
    assert fetched(log, 2) == [2]


def test_the_first_batch_comes_whole_however_small_the_limit() -> None:
    log = created()
    fill(log, 3)
    size = len(a_batch(b"x" * 106))
    assert len(piece(log, 1, 1)) == size
    assert read(log, 1, size - 1, upper_bound=3, min_one_message=False) is None
    assert len(piece(log, 1, size, min_one=False)) == size


@pytest.mark.parametrize("restart", [False, True])
def test_nothing_at_or_beyond_the_upper_bound_is_returned(restart: bool) -> None:
    fs = SimDisk()
    log = created(fs)
    fill(log, 100)
    if restart:
        log.close()
        log = reopened(fs, clean=True)
    for upper in (0, 1, 37, 99, 100):
        assert fetched(log, 0, upper=upper) == list(range(upper))
        assert read(log, upper, 100, upper_bound=upper) is None


@pytest.mark.parametrize("restart", [False, True])
def test_a_reader_that_follows_the_slices_sees_every_batch_once(restart: bool) -> None:
    fs = SimDisk()
    config = LogConfig(segment_bytes=20_000)
    log = created(fs, config)
    fill(log, 500)
    if restart:
        log.close()
        log = reopened(fs, config, clean=True)
    for limit in (1, 500, 1000, 5000, 12_345):
        seen: list[int] = []
        while len(seen) < 500:
            seen += fetched(log, seen[-1] + 1 if seen else 0, limit)
        assert seen == list(range(500))


def test_slices_at_the_tail_end_with_a_whole_batch() -> None:
    log = created()
    fill(log, 20)
    size = len(a_batch(b"x" * 106))
    assert len(piece(log, 0, 5 * size + 17)) == 5 * size


def test_the_tail_is_read_without_touching_the_disk() -> None:
    fs = SimDisk()
    log = created(fs)
    fill(log, 50)
    before = len(fs.steps)
    log.active.offsets = None  # an index look-up would have to load it
    for offset in range(50):
        assert len(piece(log, offset, 10_000)) > 0
    assert log.active.offsets is None
    assert len(fs.steps) == before


def test_positions_behind_the_remembered_tail_come_from_the_index() -> None:
    log = created()
    fill(log, TAIL_LIMIT + 100)
    assert log.active.tail.start > 0
    for offset in (0, 1, 50, log.active.tail.start - 1, log.active.tail.start, log.log_end_offset - 1):
        assert fetched(log, offset, 1) == [offset]


def test_offsets_in_a_gap_return_the_next_batch() -> None:
    fs = SimDisk()
    log = created(fs)
    run = a_batch(b"a", base_offset=0, leader_epoch=0) + a_batch(b"b", base_offset=10, leader_epoch=0)
    append_as_follower(log, run, 0, 0)
    assert fetched(log, 5) == [10]
    log.close()
    assert fetched(reopened(fs, clean=True), 5) == [10]


def test_a_gap_at_the_end_of_a_segment_leads_into_the_next() -> None:
    log = created()
    append(log, b"a")
    append_as_follower(log, a_batch(b"b", base_offset=7, leader_epoch=0), 0, 0)
    log.roll(0)
    append_as_follower(log, a_batch(b"c", base_offset=20, leader_epoch=0), 0, 0)
    assert fetched(log, 9) == [20]


def test_batches_iterates_across_segments_up_to_a_bound() -> None:
    log = created(config=LogConfig(segment_bytes=1000))
    fill(log, 30)
    assert [b.read_header(batch).base_offset for batch in batches_of(log, 4, 21)] == list(range(4, 21))


def test_a_slice_stays_readable_when_its_segment_is_deleted() -> None:
    log = created(config=LogConfig(segment_bytes=1000, retention_bytes=0))
    fill(log, 30)
    old = piece(log, 0, 500)
    assert apply_retention(log, 10) is not None
    assert base_offsets(old.read())[0] == 0


def test_an_upper_offset_bounds_what_the_slice_holds() -> None:
    log = created()
    fill(log, 200)
    found = piece(log, 3, 2000)
    last = base_offsets(found.read())[-1]
    assert last < upper_offset(log, found) <= 200
    assert upper_offset(log, piece(log, 190, 1 << 20)) == 200
