"""What a log does with what a crash left behind."""

import pytest

from ottla.protocol import batch as b
from ottla.storage import names
from ottla.storage.config import LogConfig
from ottla.storage.fs import CorruptLog
from ottla.storage.log import Log
from ottla.storage.reading import batches_of, max_timestamp_offset, offset_for_timestamp
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import PATH, a_batch, append, created, everything, fetched, fill, flip, reopened, values

FIRST = f"{PATH}/{0:020d}"
SMALL = LogConfig(index_interval_bytes=150)


def written(batches: int, config: LogConfig = SMALL, size: int = 40) -> tuple[SimDisk, list[int]]:
    """A log that was killed, and the positions where its batches start and end."""
    disk = SimDisk()
    log = created(disk, config)
    ends = [0]
    for number in range(batches):
        append(log, b"%04d" % number + b"x" * size, producer=(5, 0, number))
        ends.append(log.active.size)
    return disk.killed(), ends


def copy_with(disk: SimDisk, path: str, content: bytes) -> SimDisk:
    other = disk.killed()
    other.names[path].data[:] = content
    return other


def test_a_log_cut_at_any_byte_of_its_last_three_batches_keeps_the_whole_ones() -> None:
    disk, ends = written(8)
    whole = bytes(disk.names[FIRST + ".log"].data)
    for cut in range(ends[5], ends[8]):
        log = reopened(copy_with(disk, FIRST + ".log", whole[:cut]), SMALL)
        kept = sum(end <= cut for end in ends) - 1
        assert (log.log_end_offset, log.size) == (kept, ends[kept])
        assert len(values(log)) == kept
        assert log.producers.producers[5].last_sequence == kept - 1
        append(log, b"next", producer=(5, 0, kept))
        assert fetched(log, kept) == [kept]


def test_a_zeroed_tail_of_any_length_goes() -> None:
    disk, ends = written(8)
    whole = bytes(disk.names[FIRST + ".log"].data)
    for zeroes in (1, 60, 61, 512, 4096, 65536):
        log = reopened(copy_with(disk, FIRST + ".log", whole + bytes(zeroes)), SMALL)
        assert (log.log_end_offset, log.size) == (8, ends[8])
    for cut in range(ends[6], ends[8], 7):
        zeroed = whole[:cut] + bytes(ends[8] - cut)
        kept = sum(end <= cut for end in ends) - 1
        log = reopened(copy_with(disk, FIRST + ".log", zeroed), SMALL)
        # A batch whose last byte was a zero anyway is still whole.
        assert log.log_end_offset in (kept, kept + 1)
        assert bytes(log.filesystem.read(FIRST + ".log")) == whole[: log.size]


def test_a_flipped_bit_is_refused_wherever_a_valid_batch_follows() -> None:
    disk, ends = written(5)
    checked = 0
    for position in range(ends[1], ends[3], 3):
        for bit in (0, 7):
            if position - ends[1] in range(12, 16) or position - ends[2] in range(12, 16):
                continue  # the leader epoch is not covered by the CRC
            damaged = disk.killed()
            flip(damaged, FIRST + ".log", position, bit)
            before = everything(damaged)
            log_end = opened_or_refused(damaged, 0)
            # A flip in the base offset's low bits may leave a batch that is sound and in order: nothing can tell.
            assert log_end in (None, 5), (position, bit)
            checked += log_end is None
            if log_end is None:
                assert everything(damaged)[FIRST + ".log"] == before[FIRST + ".log"]
    assert checked > 80


def opened_or_refused(disk: SimDisk, recovery_point: int) -> int | None:
    try:
        return reopened(disk, SMALL, recovery_point=recovery_point).log_end_offset
    except CorruptLog:
        return None


def test_a_flipped_bit_in_the_last_batch_is_a_torn_tail_unless_it_was_flushed() -> None:
    disk, ends = written(5)
    for position in range(ends[4] + 16, ends[5], 5):
        damaged = disk.killed()
        flip(damaged, FIRST + ".log", position)
        assert opened_or_refused(damaged.killed(), 4) == 4
        assert opened_or_refused(damaged.killed(), 5) is None


def test_damage_says_where_it_is_and_what_to_do() -> None:
    disk, ends = written(5)
    flip(disk, FIRST + ".log", ends[2] + 70)
    with pytest.raises(CorruptLog, match=rf"{FIRST}.log: at byte {ends[2]}: offset 2 .*a valid batch follows.*restore"):
        reopened(disk, SMALL)
    with pytest.raises(CorruptLog, match=r"everything below 4 was flushed"):
        reopened(disk, SMALL, recovery_point=4)


def test_a_flipped_length_does_not_hide_the_batches_behind_it() -> None:
    disk, ends = written(5)
    for bit in range(8):
        for byte in range(8, 12):
            damaged = disk.killed()
            flip(damaged, FIRST + ".log", ends[1] + byte, bit)
            assert opened_or_refused(damaged, 0) is None


def test_damage_in_an_unflushed_segment_before_a_sound_one_is_refused() -> None:
    config = LogConfig(segment_bytes=400)
    disk, _ = written(10, config)
    flip(disk, FIRST + ".log", disk.open(FIRST + ".log").size() - 1)
    with pytest.raises(CorruptLog, match="valid batch follows"):
        reopened(disk, config)


def test_a_torn_tail_takes_the_unreadable_segments_behind_it() -> None:
    config = LogConfig(segment_bytes=400)
    disk, _ = written(10, config)
    logs = sorted(path for path in disk.names if path.endswith(".log"))
    assert len(logs) > 2
    flip(disk, logs[-2], 30)
    for path in logs[-2:]:
        disk.names[path].data[:] = bytes(len(disk.names[path].data))
    log = reopened(disk, config)
    base = int(logs[-2][-24:-4])
    assert (log.log_end_offset, log.active.base_offset, log.active.size) == (base, base, 0)
    append(log, b"again", producer=(5, 0, base))
    assert len(values(log)) == base + 1


def test_segments_below_the_recovery_point_are_not_read_again() -> None:
    config = LogConfig(segment_bytes=400)
    disk, _ = written(10, config)
    logs = sorted(path for path in disk.names if path.endswith(".log"))
    flip(disk, logs[0], 70)
    recovery_point = int(logs[-1][-24:-4])
    log = reopened(disk, config, recovery_point=recovery_point)
    assert (log.log_end_offset, log.recovery_point) == (10, recovery_point)


def test_the_recovery_point_never_moves_on_load() -> None:
    disk, _ = written(5)
    assert reopened(disk.killed(), SMALL).recovery_point == 0
    assert reopened(disk.killed(), SMALL, recovery_point=3).recovery_point == 3


def test_recovery_rebuilds_what_was_in_memory() -> None:
    disk = SimDisk()
    config = LogConfig(segment_bytes=700, index_interval_bytes=150)
    log = created(disk, config)
    for number in range(30):
        append(log, b"%04d" % number + b"x" * 40, at=1000 + (number * 7) % 11, producer=(number % 3, 0, number // 3))
    again = reopened(disk.killed(), config)
    assert again.log_end_offset == log.log_end_offset
    assert again.producers.producers == log.producers.producers
    assert (again.epochs.epochs, again.epochs.starts) == (log.epochs.epochs, log.epochs.starts)
    assert values(again) == values(log)
    for old, new in zip(log.segments, again.segments, strict=True):
        assert (old.base_offset, old.size, old.max_timestamp) == (new.base_offset, new.size, new.max_timestamp)
        assert old.offsets is not None and new.offsets is not None
        assert (old.offsets.relative, old.offsets.positions) == (new.offsets.relative, new.offsets.positions)


def test_recovery_writes_snapshots_at_the_last_two_segments_and_the_end() -> None:
    config = LogConfig(segment_bytes=400)
    disk, _ = written(10, config)
    for path in [path for path in disk.names if path.endswith(".snapshot")]:
        disk.remove(path)
    log = reopened(disk, config)
    found = sorted(int(path[-29:-9]) for path in disk.names if path.endswith(".snapshot"))
    assert found == [segment.base_offset for segment in log.segments[-2:]] + [10]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "odd", "zeroes", "beyond", "backwards"])
def test_a_bad_index_is_rebuilt_even_after_a_clean_shutdown(suffix: str, damage: str) -> None:
    disk = SimDisk()
    log = created(disk, SMALL)
    for number in range(30):
        append(log, b"x" * 40, at=1000 + number)
    log.close()
    good = bytes(disk.names[FIRST + suffix].data)
    entry = 8 if suffix == ".index" else 12
    bad = {
        "odd": good[:-1],
        "zeroes": good + bytes(10 * entry),
        "beyond": good[:-entry] + b"\x7f" * entry,
        "backwards": good[-entry:] + good[:-entry],
    }
    if damage == "missing":
        disk.remove(FIRST + suffix)
    else:
        disk.names[FIRST + suffix].data[:] = bad[damage]
    log = reopened(disk, SMALL, clean=True)
    assert log.log_end_offset == 30
    assert [fetched(log, offset, 1) for offset in range(30)] == [[offset] for offset in range(30)]
    if damage != "beyond" or suffix == ".index":
        assert [offset_for_timestamp(log, 1000 + at) is not None for at in range(30)] == [True] * 30


def test_an_index_without_its_log_goes() -> None:
    disk, _ = written(3)
    disk.open(f"{PATH}/{99:020d}.index", create=True)
    disk.open(f"{PATH}/{99:020d}.timeindex", create=True)
    reopened(disk, SMALL)
    assert not [path for path in disk.names if "99." in path]


def test_a_half_written_temporary_file_goes() -> None:
    disk, _ = written(3)
    disk.open(f"{PATH}/leader-epoch-checkpoint.tmp", create=True)
    reopened(disk, SMALL)
    assert f"{PATH}/leader-epoch-checkpoint.tmp" not in disk.names


def test_a_log_that_ends_below_its_start_begins_anew() -> None:
    disk, _ = written(3)
    log = reopened(disk, SMALL, log_start_offset=7)
    assert (log.log_start_offset, log.log_end_offset, log.active.base_offset) == (7, 7, 7)
    append(log, b"a")
    assert fetched(log, 7) == [7]


def test_an_empty_directory_becomes_an_empty_log() -> None:
    disk = SimDisk()
    disk.mkdir(PATH)
    log = reopened(disk)
    append(log, b"a")
    assert values(log) == [b"a"]


def test_a_lost_partition_metadata_is_written_again_and_another_id_is_refused() -> None:
    disk, _ = written(1)
    path = f"{PATH}/{names.PARTITION_METADATA}"
    good = bytes(disk.names[path].data)
    disk.names[path].data[:] = b"vers"
    reopened(disk, SMALL)
    assert bytes(disk.names[path].data) == good
    disk.names[path].data[:] = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    with pytest.raises(CorruptLog, match="another topic id"):
        reopened(disk, SMALL)


# -- leftovers of an interrupted compaction ----------------------------------------------------------------------


def swapped(disk: SimDisk, base: int, suffix: str) -> None:
    """A compacted segment holding one batch, as a cleaner leaves it before its files have their final names."""
    batch = a_batch(b"compacted", base_offset=base, leader_epoch=0)
    disk.open(f"{PATH}/{base:020d}.log{suffix}", create=True).pwrite(batch, 0)
    disk.open(f"{PATH}/{base:020d}.index{suffix}", create=True)
    disk.open(f"{PATH}/{base:020d}.timeindex{suffix}", create=True)


def three_segments() -> SimDisk:
    disk = SimDisk()
    log = created(disk)
    for _ in range(3):
        append(log, b"a", b"b")
        log.roll(0)
    return disk.killed()


def offsets(log: Log) -> list[int]:
    return [b.read_header(batch).base_offset for batch in batches_of(log, 0)]


def test_cleaned_files_never_took_effect() -> None:
    disk = three_segments()
    swapped(disk, 0, ".cleaned")
    assert offsets(reopened(disk)) == [0, 2, 4]
    assert not [path for path in disk.names if path.endswith(".cleaned")]


def test_a_swap_is_finished_and_replaces_the_segments_in_its_range() -> None:
    disk = three_segments()
    batch = a_batch(b"x", b"y", b"z", base_offset=0, leader_epoch=0)
    disk.open(f"{FIRST}.log.swap", create=True).pwrite(batch, 0)
    log = reopened(disk)
    assert offsets(log) == [0, 4]
    assert values(log)[:3] == [b"x", b"y", b"z"]
    assert not [path for path in disk.names if path.endswith(".swap")]


def test_kafka_6264_a_swap_at_or_above_a_cleaned_file_belongs_to_an_unfinished_split() -> None:
    disk = three_segments()
    swapped(disk, 0, ".cleaned")
    swapped(disk, 2, ".swap")
    assert offsets(reopened(disk)) == [0, 2, 4]
    assert not [path for path in disk.names if path.endswith((".swap", ".cleaned"))]


def test_a_swap_below_every_cleaned_file_is_finished() -> None:
    disk = three_segments()
    swapped(disk, 0, ".swap")
    swapped(disk, 2, ".cleaned")
    log = reopened(disk)
    assert values(log)[0] == b"compacted"
    assert offsets(log) == [0, 2, 4]


def test_deleted_files_are_removed_but_not_a_metadata_snapshot() -> None:
    disk = three_segments()
    disk.rename(f"{FIRST}.log", f"{FIRST}.log.deleted")
    disk.open(f"{PATH}/{1:020d}-{1:010d}.checkpoint.deleted", create=True)
    log = reopened(disk, log_start_offset=2)
    assert offsets(log) == [2, 4]
    assert [path for path in disk.names if path.endswith(".deleted")] == [
        f"{PATH}/{1:020d}-{1:010d}.checkpoint.deleted"
    ]


# -- truncation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_truncation_leaves_the_log_as_if_the_rest_had_never_been(restart: bool) -> None:
    config = LogConfig(segment_bytes=500, index_interval_bytes=100)
    for target in range(13):
        disk = SimDisk()
        log = created(disk, config)
        for number in range(12):
            append(log, b"%03d" % number + b"x" * 40, at=1000 + number)
        log.truncate_to(target, 0)
        if restart:
            log.close()
            log = reopened(disk, config, clean=True)
        assert log.log_end_offset == target
        assert len(values(log)) == target
        found = max_timestamp_offset(log)
        assert (found.timestamp if found else None) == (999 + target if target else None)
        append(log, b"new")
        assert values(log)[target:] == [b"new"]


def test_truncation_inside_a_batch_drops_the_batch_and_keeps_the_offset() -> None:
    log = created()
    append(log, b"a", b"b", b"c")
    log.truncate_to(2, 0)
    assert (log.log_end_offset, log.size) == (2, 0)
    assert append(log, b"d").base_offset == 2
    assert fetched(log, 0) == [2]


def test_truncation_beyond_the_end_does_nothing() -> None:
    log = created()
    fill(log, 3)
    assert log.truncate_to(3, 0) is None
    assert log.log_end_offset == 3


def test_starting_over_at_an_offset() -> None:
    disk = SimDisk()
    log = created(disk)
    fill(log, 3)
    log.truncate_fully_and_start_at(100, 0)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, log.latest_epoch) == (100, 100, 100, -1)
    assert append(log, b"a").base_offset == 100
    assert reopened(disk.killed(), log_start_offset=100).log_end_offset == 101
    log.truncate_fully_and_start_at(100, 0)
    assert (log.size, append(log, b"b").base_offset) == (0, 100)
