"""Power cuts between any two operations, full disks, failed fsyncs."""

import errno
from collections.abc import Callable
from itertools import groupby
from random import Random

import pytest

from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.storage.answers import COORDINATOR
from ottla.storage.config import LogConfig
from ottla.storage.following import append_as_follower
from ottla.storage.fs import CorruptLog, RealFilesystem, StorageError
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.opening import create_log
from ottla.storage.reading import offset_for_timestamp, read
from ottla.storage.retention import apply_retention, delete_records_before
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import Crashed, SimDisk, SimFile
from tests.rules.storage.scene import (
    NOW,
    PATH,
    a_batch,
    a_marker,
    accepted,
    append,
    created,
    everything,
    fetched,
    fill,
    reopened,
    values,
)

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150)
LOG = f"{PATH}/{0:020d}.log"


def numbered(log: Log, count: int) -> None:
    for _ in range(count):
        number = log.log_end_offset
        append(log, b"%05d" % number + b"x" * 40, producer=(5, 0, number))


class Story:
    """A life of a log, told up to the moment the power goes."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.disk = SimDisk(crash_at=crash_at)
        self.flushed = 0
        self.begun = 0
        self.done = 0
        self.log_start = 0

    def tell(self) -> None:
        log = created(self.disk, CONFIG)
        for _ in range(3):
            self.write(log, 4)
            log.flush()
            self.flushed = log.recovery_point
        delete_records_before(log, 5)
        self.log_start = 5
        apply_retention(log, NOW)
        self.write(log, 3)
        log.close()
        self.flushed = log.recovery_point

    def write(self, log: Log, count: int) -> None:
        for _ in range(count):
            self.begun = log.log_end_offset + 1
            numbered(log, 1)
            self.done = log.log_end_offset


def steps_of_the_story() -> int:
    story = Story()
    story.tell()
    return len(story.disk.steps)


def told_until(step: int) -> Story:
    story = Story(crash_at=step)
    with pytest.raises(Crashed):
        story.tell()
    return story


def check(log: Log, story: Story) -> None:
    """A prefix of what was written, at least what was flushed, every record where it belongs, and it goes on."""
    assert story.flushed <= log.log_end_offset <= story.begun
    first = log.log_start_offset
    assert first <= max(story.log_start, log.segments[0].base_offset)
    assert [value[:5] for value in values(log) if value] == [b"%05d" % n for n in range(first, log.log_end_offset)]
    producers = log.producers.producers
    if log.log_end_offset > first:
        assert producers[5].last_sequence == log.log_end_offset - 1
    numbered(log, 2)
    assert fetched(log, log.log_end_offset - 1) == [log.log_end_offset - 1]


def test_a_process_killed_between_any_two_operations_loses_nothing() -> None:
    for step in range(1, steps_of_the_story()):
        story = told_until(step)
        if PATH not in story.disk.dirs:
            continue
        log = reopened(story.disk.killed(), CONFIG, recovery_point=story.flushed)
        assert log.log_end_offset >= story.done
        check(log, story)


@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_between_any_two_operations_loses_only_what_was_not_flushed(seed: int) -> None:
    for step in range(1, steps_of_the_story()):
        story = told_until(step)
        if PATH not in story.disk.dirs:
            continue
        disk = story.disk.crash(Random(f"{seed}/{step}"))
        try:
            log = reopened(disk, CONFIG, recovery_point=story.flushed)
        except CorruptLog as error:
            # Two segments were not flushed, and the disk kept the later one: cutting would lose what is still there.
            assert "valid batch follows" in error.reason
            assert int(max(path for path in disk.names if path.endswith(".log"))[-24:-4]) > story.flushed
        else:
            check(log, story)


def test_a_power_cut_during_recovery_can_be_recovered_from() -> None:
    story = Story()
    story.tell()
    torn = story.disk.killed()
    torn.names[max(path for path in torn.names if path.endswith(".log"))].data += b"torn"
    whole = torn.killed()
    reopened(whole, CONFIG, recovery_point=4)
    for step in range(1, len(whole.steps)):
        disk = torn.killed()
        disk.crash_at = step
        with pytest.raises(Crashed):
            reopened(disk, CONFIG, recovery_point=4)
        again = disk.crash(Random(step))
        check(reopened(again, CONFIG, recovery_point=4), story)


def test_recovering_twice_gives_the_same_files() -> None:
    story = told_until(steps_of_the_story() - 10)
    disk = story.disk.killed()
    reopened(disk, CONFIG)
    once = everything(disk)
    reopened(disk, CONFIG)
    assert everything(disk) == once


# -- a full disk -------------------------------------------------------------------------------------------------


def test_an_append_that_does_not_fit_is_rolled_back_and_the_log_goes_on_when_there_is_room() -> None:
    disk = SimDisk()
    log = created(disk)
    fill(log, 3)
    size = log.size
    for room in range(0, 160, 13):
        disk.room = disk.used + room
        with pytest.raises(StorageError) as raised:
            fill(log, 1)
        assert raised.value.errno == errno.ENOSPC
        assert (log.is_online, log.size, log.log_end_offset) == (True, size, 3)
        assert disk.open(LOG).size() == size
        assert fetched(log, 0) == [0, 1, 2]
    disk.room = None
    fill(log, 1)
    assert fetched(log, 3) == [3]
    assert len(values(reopened(disk.killed()))) == 4


def test_a_roll_that_does_not_fit_leaves_the_log_usable() -> None:
    for room in range(0, 400, 7):
        disk = SimDisk()
        log = created(disk, CONFIG)
        numbered(log, 5)
        disk.room = disk.used + room
        try:
            numbered(log, 20)
        except StorageError as error:
            assert error.errno == errno.ENOSPC
        end = log.log_end_offset
        assert log.is_online
        assert len(values(log)) == end
        disk.room = None
        numbered(log, 7)
        assert len(values(log)) == end + 7
        assert len(values(reopened(disk.killed(), CONFIG))) == end + 7


def test_the_error_names_the_directory() -> None:
    disk = SimDisk()
    log = created(disk)
    disk.room = disk.used
    with pytest.raises(StorageError, match=r"log directory /data: cannot append to orders-0: .*no space") as raised:
        append(log, b"a")
    assert raised.value.directory == "/data"


# -- errors of the disk itself -----------------------------------------------------------------------------------


class BrokenFile:
    """Fails the way its test says."""

    def __init__(self, error: int) -> None:
        self._error = error

    def pwrite(self, data: bytes, position: int) -> None:
        raise OSError(self._error, "broken")

    def pread(self, length: int, position: int) -> bytes:
        raise OSError(self._error, "broken")

    def truncate(self, size: int) -> None:
        raise OSError(self._error, "broken")

    def size(self) -> int:
        return 0

    def sync(self) -> None:
        raise OSError(self._error, "broken")

    def fileno(self) -> int:
        raise OSError(self._error, "broken")


def refuses_everything(log: Log) -> None:
    writes: list[Callable[[], object]] = [
        lambda: append(log, b"a"),
        lambda: append_as_follower(log, a_batch(b"a", base_offset=99, leader_epoch=0), 0, NOW),
        lambda: log.roll(NOW),
        lambda: log.truncate_to(0, NOW),
        lambda: log.truncate_fully_and_start_at(0, NOW),
        lambda: delete_records_before(log, 1),
        lambda: apply_retention(log, NOW),
        log.flush,
        log.close,
        lambda: log.delete("0" * 32),
    ]
    for write in writes:
        with pytest.raises(StorageError, match="is offline since an earlier error"):
            write()


def test_a_failed_write_takes_the_directory_offline_for_good() -> None:
    disk = SimDisk()
    log = created(disk)
    fill(log, 2)
    good = log.active.file
    log.active.file = BrokenFile(errno.EIO)  # type: ignore[assignment]
    with pytest.raises(StorageError, match="cannot append"):
        append(log, b"a")
    log.active.file = good
    steps = len(disk.steps)
    refuses_everything(log)
    assert len(disk.steps) == steps
    assert fetched(log, 0) == [0, 1]


def test_the_first_failed_fsync_takes_the_directory_offline_and_is_not_retried() -> None:
    disk = SimDisk()
    log = created(disk)
    fill(log, 2)
    syncs: list[str] = []

    def fail(path: str) -> bool:
        syncs.append(path)
        return True

    disk.failing_sync = fail
    with pytest.raises(StorageError, match="fsync failed"):
        log.flush()
    assert log.recovery_point == 0
    refuses_everything(log)
    assert syncs == [LOG]


def test_no_room_in_an_fsync_is_as_final_as_any_other_error_of_it() -> None:
    log = created()
    fill(log, 2)
    flush = log.flush_begin()
    assert flush is not None
    flush.files[:] = [BrokenFile(errno.ENOSPC)]  # type: ignore[list-item]
    with pytest.raises(StorageError):
        flush.run()
    refuses_everything(log)


def test_the_recovery_point_moves_only_after_the_fsync() -> None:
    log = created()
    fill(log, 2)
    flush = log.flush_begin()
    assert flush is not None
    fill(log, 1)
    assert log.recovery_point == 0
    flush.run()
    assert log.recovery_point == 0
    log.flush_done(flush)
    assert (log.recovery_point, log.log_end_offset) == (2, 3)


def test_a_flush_that_a_truncation_overtook_counts_for_nothing() -> None:
    log = created()
    fill(log, 5)
    flush = log.flush_begin()
    assert flush is not None
    log.truncate_to(2, NOW)
    fill(log, 5)
    flush.run()
    log.flush_done(flush)
    assert log.recovery_point == 0


def test_a_flush_of_what_is_durable_already_is_none() -> None:
    log = created()
    fill(log, 2)
    log.flush()
    assert log.flush_begin() is None


def test_a_flush_syncs_the_log_before_indexes_and_indexes_before_directories() -> None:
    disk = SimDisk()
    log = created(disk, CONFIG)
    numbered(log, 8)
    before = len(disk.steps)
    log.flush()
    kinds = []
    for step in disk.steps[before:]:
        operation, path = step.split()
        if operation in ("sync", "sync_dir"):
            kinds.append("dir" if operation == "sync_dir" else "log" if path.endswith(".log") else "rest")
    assert [kind for kind, _ in groupby(kinds)] == ["log", "rest", "dir"]
    assert kinds.count("log") == len(log.segments) > 1


def test_a_missing_transaction_index_entry_is_never_tolerated() -> None:
    disk = SimDisk()
    log = created(disk)
    append_as_leader(log, a_batch(b"v", producer=(1, 0, 0), attributes=b.TRANSACTIONAL), 0, NOW)
    marker = a_marker(1, 0, commit=False)
    disk.room = disk.used + len(marker)
    with pytest.raises(StorageError, match="transaction index"):
        append_as_leader(log, marker, 0, NOW, origin=COORDINATOR)
    assert not log.is_online


def test_the_real_filesystem_reports_a_full_disk_as_lack_of_room() -> None:
    file = RealFilesystem().open("/dev/full")
    with pytest.raises(OSError, match="No space left") as raised:
        file.pwrite(b"x", 0)
    assert raised.value.errno == errno.ENOSPC


def test_a_damaged_segment_is_a_storage_error_to_its_readers_and_to_nobody_else() -> None:
    disk = SimDisk()
    log = created(disk, CONFIG)
    numbered(log, 10)
    log.close()
    log = reopened(disk, CONFIG, clean=True)
    disk.names[LOG].data[8:12] = b"\x7f\xff\xff\xff"
    with pytest.raises(StorageError, match=r"cannot read orders-0: .*\.log: at byte 0: a batch claims"):
        read(log, 0, 100, upper_bound=10)
    with pytest.raises(StorageError, match="cannot read"):
        offset_for_timestamp(log, 0)
    assert log.is_online
    assert fetched(log, 9) == [9]
    numbered(log, 1)


class Crowded(SimDisk):
    """The disk of a process that may have so many files open."""

    descriptors = 1 << 30
    files: OpenFiles | None = None

    def open(self, path: str, *, create: bool = False) -> SimFile:
        if (len(self.files) if self.files is not None else 0) >= self.descriptors:
            raise OSError(errno.EMFILE, "no descriptor is left")
        return super().open(path, create=create)


def test_an_append_that_finds_no_descriptor_fails_alone_and_the_directory_stays_online() -> None:
    disk = Crowded()
    log = created(disk)
    append(log, b"before")
    log.active.files.forget(log.active)
    disk.descriptors = 0
    with pytest.raises(StorageError, match="no descriptor is left"):
        append(log, b"refused")
    assert log.is_online
    disk.descriptors = 1
    assert append(log, b"after").base_offset == 1
    assert values(log) == [b"before", b"after"]


def test_when_descriptors_run_out_one_log_gets_that_of_another() -> None:
    disk = Crowded()
    files = disk.files = OpenFiles(disk)
    one = create_log(files, "/data/one-0", TopicPartition("one", 0), None, LogConfig(), now=NOW)
    two = create_log(files, "/data/two-0", TopicPartition("two", 0), None, LogConfig(), now=NOW)
    append(one, b"a")
    append(two, b"a")
    files.forget(one.active)
    disk.descriptors = 1
    append(one, b"b")
    append(two, b"b")
    assert values(one) == values(two) == [b"a", b"b"]


def test_an_epoch_that_could_not_be_written_is_written_by_the_next_flush() -> None:
    disk = Crowded()
    log = created(disk)
    append(log, b"before")
    disk.descriptors = 0
    with pytest.raises(StorageError):
        append_as_leader(log, a_batch(b"refused"), 7, NOW)
    disk.descriptors = 1
    assert accepted(append_as_leader(log, a_batch(b"after"), 7, NOW)).base_offset == 1
    log.flush()
    assert reopened(disk, clean=True).epoch_at(1) == 7
