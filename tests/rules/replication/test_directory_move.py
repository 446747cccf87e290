"""What a replica on its way to another directory does next (KIP-113)."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.replication.directory_move import DirectoryMove, Do, Next, Stage
from tests.rules.replication.cluster import MemoryLog


class DiskLog(MemoryLog):
    def __init__(self, *records: tuple[int, int], start: int = 0, durable: int = 0) -> None:
        super().__init__()
        self.records = list(records)
        self.log_start_offset = start
        self.recovery_point = durable


ALL = ((1, 10), (1, 11), (3, 12))


def next_of(current: DiskLog, future: DiskLog, stage: Stage = Stage.COPYING) -> Next:
    move = DirectoryMove()
    move.stage = stage
    return move.next(current, future)


def test_what_is_missing_is_copied() -> None:
    assert next_of(DiskLog(*ALL), DiskLog()) == Next(Do.COPY)
    assert next_of(DiskLog(*ALL), DiskLog(*ALL[:2]), Stage.AGREED) == Next(Do.COPY)


def test_a_copy_that_is_whole_is_flushed_before_the_controller_hears_of_it() -> None:
    assert next_of(DiskLog(*ALL, durable=3), DiskLog(*ALL)) == Next(Do.FLUSH)
    assert next_of(DiskLog(*ALL, durable=3), DiskLog(*ALL, durable=3)) == Next(Do.ASK)
    assert next_of(DiskLog(*ALL, durable=3), DiskLog(*ALL, durable=2), Stage.WHOLE) == Next(Do.ASK)


def test_the_logs_change_places_only_when_the_controller_has_agreed() -> None:
    current, future = DiskLog(*ALL), DiskLog(*ALL)
    move = DirectoryMove()
    move.asked()
    assert move.next(current, future) == Next(Do.WAIT)
    move.placed(here=False)
    assert move.next(current, future) == Next(Do.WAIT)
    move.placed(here=True)
    assert move.next(current, future) == Next(Do.SWAP)


def test_what_is_on_the_disk_is_so_after_the_change_too() -> None:
    assert next_of(DiskLog(*ALL, durable=3), DiskLog(*ALL, durable=2), Stage.AGREED) == Next(Do.FLUSH_AND_SWAP)


def test_a_copy_is_cut_back_with_its_log() -> None:
    assert next_of(DiskLog(*ALL[:1]), DiskLog(*ALL)) == Next(Do.TRUNCATE, 1)
    assert next_of(DiskLog((1, 10), (2, 21), (2, 22)), DiskLog(*ALL)) == Next(Do.TRUNCATE, 2)
    assert next_of(DiskLog(), DiskLog(start=4)) == Next(Do.TRUNCATE, 0)


def test_a_copy_of_what_has_been_deleted_begins_anew_where_the_log_begins() -> None:
    assert next_of(DiskLog(*ALL, start=5), DiskLog((1, 9))) == Next(Do.RESTART, 5)


def epochs(*values: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(values), max_size=5).map(sorted)


@given(epochs(1, 2, 3), epochs(3, 4, 6), epochs(5, 7), st.integers(0, 3))
def test_whatever_the_copy_holds_it_becomes_the_log(
    common: list[int], mine: list[int], other: list[int], start: int
) -> None:
    """Both are histories of one partition that have parted: an epoch has one leader, and begins at one offset."""
    current = DiskLog(*((epoch, at) for at, epoch in enumerate(common + mine)))
    current.raise_start(min(start, len(current.records)))
    future = DiskLog(*((epoch, at) for at, epoch in enumerate(common + other)))
    move = DirectoryMove(agreed=True)
    for _ in range(40):
        do, offset = move.next(current, future)
        if do == Do.SWAP:
            break
        if do == Do.COPY:
            future.records.append(current.at(future.log_end_offset))
        elif do == Do.TRUNCATE:
            assert offset < future.log_end_offset
            future.truncate(offset)
        else:
            assert do == Do.RESTART
            future.restart(offset)
    future.raise_start(current.log_start_offset)
    assert (future.log_start_offset, future.records) == (current.log_start_offset, current.records)
