"""A log directory: lock, identity, clean marker, checkpoints, what is refused and what is remembered."""

from random import Random

import pytest

from ottla.model.ids import TopicPartition, Uuid
from ottla.protocol import batch as b
from ottla.storage import checkpoints, names
from ottla.storage.answers import Deletion
from ottla.storage.checkpoints import MetaProperties
from ottla.storage.config import LogConfig
from ottla.storage.directory import DirectoryInUse, LogDirectory
from ottla.storage.fs import StorageError
from ottla.storage.retention import delete_records_before
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import Crashed, SimDisk
from tests.rules.storage.scene import DIR, NOW, TOPIC_ID, append, everything, fill, flip, values

A, B = TopicPartition("a", 0), TopicPartition("b-with-dash", 12)
CONFIG = LogConfig()
MARKER = f"{DIR}/{names.CLEAN_SHUTDOWN}"


def opened(disk: SimDisk, *, reserve_bytes: int = 0) -> LogDirectory:
    directory = LogDirectory.open(OpenFiles(disk), DIR, reserve_bytes=reserve_bytes)
    directory.load(lambda topic: CONFIG, NOW)
    return directory


def with_logs(disk: SimDisk) -> LogDirectory:
    directory = opened(disk)
    for partition in (A, B):
        fill(directory.create_log(partition, TOPIC_ID, CONFIG, NOW), 3)
    return directory


def test_every_log_is_found_again_with_its_topic_id() -> None:
    disk = SimDisk()
    with_logs(disk).close(broker_epoch=7)
    again = opened(disk)
    assert list(again.logs) == [A, B]
    assert [log.topic_id for log in again.logs.values()] == [TOPIC_ID, TOPIC_ID]
    assert [len(values(log)) for log in again.logs.values()] == [3, 3]


def test_the_marker_is_written_last_and_taken_away_before_anything_else_is_written() -> None:
    disk = SimDisk()
    with_logs(disk).close(broker_epoch=7)
    assert [step for step in disk.steps if not step.startswith("sync")][-1] == f"rename {MARKER}.tmp"
    disk.steps.clear()
    directory = opened(disk)
    assert (directory.was_clean, directory.clean_broker_epoch) == (True, 7)
    assert disk.steps[:2] == [f"remove {MARKER}", f"sync_dir {DIR}"]


def test_after_a_crash_there_is_no_marker() -> None:
    disk = SimDisk()
    with_logs(disk)
    directory = opened(disk.killed())
    assert (directory.was_clean, directory.clean_broker_epoch) == (False, None)
    assert [log.recovery_point for log in directory.logs.values()] == [0, 0]


def test_a_crash_after_a_clean_start_is_not_clean() -> None:
    disk = SimDisk()
    with_logs(disk).close()
    directory = opened(disk)
    append(directory.logs[A], b"more")
    assert not opened(disk.crash(Random(1))).was_clean


@pytest.mark.parametrize("clean", [True, False])
def test_a_directory_that_is_closed_before_its_logs_are_read_is_left_as_it_was(clean: bool) -> None:
    """A node that is stopped while it waits for its quorum knows nothing of them: a marker would hide a crash, and
    checkpoints written from nothing would bring deleted records back."""
    disk = SimDisk()
    directory = with_logs(disk)
    delete_records_before(directory.logs[A], 2)
    directory.write_checkpoints()
    directory.close(clean=clean, broker_epoch=7)
    disk = disk.killed()
    before = {name: bytes(inode.data) for name, inode in disk.names.items()}
    LogDirectory.open(OpenFiles(disk), DIR).close(broker_epoch=8)
    assert {name: bytes(inode.data) for name, inode in disk.names.items()} == before
    again = opened(disk.killed())
    assert (again.was_clean, again.logs[A].log_start_offset) == (clean, 2)


def test_a_log_that_is_shorter_than_it_was_when_it_was_closed_is_refused() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    ends = {partition: log.log_end_offset for partition, log in directory.logs.items()}
    directory.close(broker_epoch=7)
    disk = disk.killed()
    segment = disk.names[f"{DIR}/a-0/00000000000000000000.log"]
    del segment.data[b.read_frame(segment.data)[1] :]  # after its first batch
    again = opened(disk)
    assert (list(again.logs), list(again.refused)) == ([B], [A])
    assert str(ends[A]) in again.refused[A].reason


def test_an_old_marker_without_an_epoch_is_clean_but_matches_no_epoch() -> None:
    disk = SimDisk()
    with_logs(disk).close()
    disk.names[MARKER].data[:] = b""
    directory = opened(disk)
    assert (directory.was_clean, directory.clean_broker_epoch) == (True, -1)


def ready_to_close(disk: SimDisk) -> LogDirectory:
    directory = with_logs(disk)
    for log in directory.logs.values():
        log.flush()
    directory.write_checkpoints()
    append(directory.logs[A], b"unflushed")
    return directory


def test_a_power_cut_at_any_step_of_a_clean_shutdown_never_looks_clean_too_early() -> None:
    whole = SimDisk()
    directory = ready_to_close(whole)
    first = len(whole.steps)
    directory.close(broker_epoch=3)
    clean = 0
    for step in range(first, len(whole.steps)):
        disk = SimDisk()
        directory = ready_to_close(disk)
        disk.crash_at = step
        with pytest.raises(Crashed):
            directory.close(broker_epoch=3)
        again = opened(disk.crash(Random(step)))
        found = [len(values(log)) for log in again.logs.values()]
        assert (again.refused, found in ([3, 3], [4, 3])) == ({}, True)
        if again.was_clean:
            assert found == [4, 3]
            clean += 1
    assert clean <= 1  # only when nothing but the last directory sync was missing


def test_two_nodes_cannot_share_a_directory() -> None:
    disk = SimDisk()
    first = opened(disk)
    with pytest.raises(DirectoryInUse, match=DIR):
        opened(disk)
    first.close()
    opened(disk)


def test_the_identity_is_kept() -> None:
    disk = SimDisk()
    meta = MetaProperties("6PMpHYL9QkeyXRj9Nrp4KA", 1, Uuid(bytes(range(16))))
    directory = opened(disk)
    assert directory.meta is None
    directory.format(meta)
    directory.close()
    assert opened(disk).meta == meta


def test_a_damaged_log_is_refused_alone_and_stays_as_it_is() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    for log in directory.logs.values():
        log.flush()
    directory.write_checkpoints()
    disk = disk.killed()
    path = f"{DIR}/a-0/{0:020d}.log"
    flip(disk, path, 80)
    before = bytes(disk.names[path].data)
    again = opened(disk)
    assert (list(again.logs), list(again.refused)) == ([B], [A])
    assert "flushed" in str(again.refused[A])
    again.close(broker_epoch=1)
    assert bytes(disk.names[path].data) == before
    # No marker, and the promise about the damaged log is remembered: the next start refuses it again.
    third = opened(disk)
    assert (third.was_clean, list(third.refused)) == (False, [A])


def test_recovery_points_and_log_starts_are_checkpointed() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    directory.logs[A].flush()
    delete_records_before(directory.logs[B], 2)
    directory.write_checkpoints()
    files = everything(disk)
    assert files[f"{DIR}/{names.RECOVERY_POINTS}"] == b"0\n2\na 0 3\nb-with-dash 12 0\n"
    assert files[f"{DIR}/{names.LOG_STARTS}"] == b"0\n1\nb-with-dash 12 2\n"
    again = opened(disk.killed())
    assert [log.recovery_point for log in again.logs.values()] == [3, 0]
    assert again.logs[B].log_start_offset == 2


def test_high_watermarks_are_kept_for_the_broker() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    directory.write_high_watermarks({A: 2})
    assert opened(disk.killed()).saved.high_watermarks == {A: 2}


@pytest.mark.parametrize("content", [b"", b"1\n0\n", b"0\n5\na 0 1\n", b"0\n1\na 0\n", b"\xff\xfe"])
def test_an_unreadable_checkpoint_means_that_everything_is_checked(content: bytes) -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    directory.logs[A].flush()
    directory.write_checkpoints()
    disk = disk.killed()
    disk.names[f"{DIR}/{names.RECOVERY_POINTS}"].data[:] = content
    assert opened(disk).logs[A].recovery_point == 0


def test_a_truncation_lowers_the_promise_on_disk_before_any_data_goes() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    log = directory.logs[A]
    log.flush()
    directory.write_checkpoints()
    before = len(disk.steps)
    log.truncate_to(1, NOW)
    changes = disk.steps[before:]
    promise = changes.index(f"rename {DIR}/{names.RECOVERY_POINTS}.tmp")
    assert promise < min(i for i, step in enumerate(changes) if step.startswith("truncate") and step.endswith(".log"))
    assert checkpoints.decode_offsets(disk.read(f"{DIR}/{names.RECOVERY_POINTS}"))[A] == 1


def test_a_checkpoint_that_a_truncation_overtook_is_not_written() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    log = directory.logs[A]
    log.flush()
    checkpoint = directory.checkpoint_begin()
    log.truncate_to(1, NOW)
    checkpoint.run()
    directory.checkpoint_done(checkpoint)
    assert checkpoints.decode_offsets(disk.read(f"{DIR}/{names.RECOVERY_POINTS}"))[A] == 1
    fill(log, 5)
    disk = disk.killed()
    data = disk.names[f"{DIR}/a-0/{0:020d}.log"].data
    del data[-1:]
    assert opened(disk).logs[A].log_end_offset == 5


def test_a_recreated_topic_does_not_inherit_promises() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    log = directory.logs[A]
    log.flush()
    delete_records_before(log, 2)
    directory.write_checkpoints()
    directory.delete_log(A, "1" * 32)
    fill(directory.create_log(A, TOPIC_ID, CONFIG, NOW), 2)
    disk = disk.killed()
    del disk.names[f"{DIR}/a-0/{0:020d}.log"].data[-1:]
    again = opened(disk)
    assert (again.refused, again.logs[A].log_start_offset, again.logs[A].log_end_offset) == ({}, 0, 1)


def test_an_interrupted_topic_deletion_is_handed_on() -> None:
    disk = SimDisk()
    directory = with_logs(disk)
    directory.delete_log(A, "1" * 32)
    disk = disk.killed()
    directory = LogDirectory.open(OpenFiles(disk), DIR)
    loading = directory.load(lambda topic: CONFIG, NOW)
    target = f"{DIR}/a-0.{'1' * 32}-delete"
    assert (list(directory.logs), loading.deletions) == ([B], [Deletion((), 0, target)])
    directory.perform(loading.deletions[0])
    directory.perform(loading.deletions[0])
    assert not disk.exists(target)


def test_what_is_not_a_log_is_left_alone() -> None:
    disk = SimDisk()
    with_logs(disk)
    for name in ("lost+found", "__cluster_metadata-0", "a-1.0123-future", "a-2.4567-stray", "x-", "-1"):
        disk.mkdir(f"{DIR}/{name}")
    directory = LogDirectory.open(OpenFiles(disk.killed()), DIR)
    loading = directory.load(lambda topic: CONFIG, NOW)
    assert (list(directory.logs), list(directory.futures)) == ([A, B], [TopicPartition("a", 1)])
    assert sorted(loading.ignored) == ["-1", "a-2.4567-stray", "lost+found", "x-"]


def test_one_disk_error_takes_every_log_of_the_directory_offline() -> None:
    disk = SimDisk()
    told: list[StorageError] = []
    directory = LogDirectory.open(OpenFiles(disk), DIR, on_offline=told.append)
    for partition in (A, B):
        fill(directory.create_log(partition, TOPIC_ID, CONFIG, NOW), 1)
    disk.failing_sync = lambda path: path.endswith(".log")
    with pytest.raises(StorageError):
        directory.logs[A].flush()
    assert len(told) == 1
    disk.failing_sync = lambda path: False
    for write in (
        lambda: append(directory.logs[B], b"x"),
        directory.write_checkpoints,
        lambda: directory.create_log(TopicPartition("c", 0), TOPIC_ID, CONFIG, NOW),
    ):
        with pytest.raises(StorageError, match="offline"):
            write()
    directory.close(broker_epoch=1)
    assert MARKER not in disk.names


def test_the_reserve_makes_room_to_close_cleanly_on_a_full_disk() -> None:
    disk = SimDisk()
    directory = opened(disk, reserve_bytes=10_000)
    log = directory.create_log(A, TOPIC_ID, CONFIG, NOW)
    fill(log, 3)
    disk.room = disk.used
    with pytest.raises(StorageError):
        fill(log, 1)
    directory.close(broker_epoch=5)
    again = opened(disk)
    assert (again.was_clean, len(values(again.logs[A]))) == (True, 3)


def test_no_more_than_a_sixteenth_of_a_disk_is_held_back() -> None:
    disk = SimDisk()
    disk.room = 64 << 20
    opened(disk, reserve_bytes=64 << 20)
    assert len(disk.read(f"{DIR}/{names.RESERVE}")) == 4 << 20


def test_a_reserve_that_was_left_is_cut_to_what_is_held_back_now() -> None:
    disk = SimDisk()
    disk.mkdir(DIR)
    disk.reserve(f"{DIR}/{names.RESERVE}", 60 << 20)
    disk.room = 64 << 20
    directory = opened(disk, reserve_bytes=64 << 20)
    assert (directory.is_full, len(disk.read(f"{DIR}/{names.RESERVE}"))) == (False, 4 << 20)


def test_nothing_is_held_back_for_a_node_that_could_not_start() -> None:
    disk = SimDisk()
    opened(disk, reserve_bytes=10_000).close(clean=False)
    assert f"{DIR}/{names.RESERVE}" not in disk.names


def test_a_directory_without_room_for_the_reserve_is_full_and_can_be_read() -> None:
    disk = SimDisk()
    with_logs(disk)
    disk = disk.killed()
    disk.open("/others", create=True).pwrite(bytes(1_000_000), 0)
    disk.room = disk.used + 1_000
    directory = LogDirectory.open(OpenFiles(disk), DIR, reserve_bytes=10_000)
    directory.load(lambda topic: CONFIG, NOW)
    assert (directory.is_full, directory.low_on_space, directory.has_reserve) == (True, True, False)
    assert list(directory.logs) == [A, B]
    assert f"{DIR}/{names.RESERVE}" not in disk.names  # nor a part of it

    disk.room = None
    assert directory.hold_reserve()
    assert directory.has_reserve


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("a-0", (TopicPartition("a", 0), "")),
        ("a-b-17", (TopicPartition("a-b", 17), "")),
        ("a-0.0a-delete", (TopicPartition("a", 0), "-delete")),
        ("a.b-3.ff-future", (TopicPartition("a.b", 3), "-future")),
        ("a-0-delete", None),
        ("a", None),
        ("a-", None),
        ("-0", None),
        ("a--1", (TopicPartition("a-", 1), "")),
        ("a-x", None),
    ],
)
def test_directory_names(name: str, parsed: tuple[TopicPartition, str] | None) -> None:
    assert names.parse_log_dir(name) == parsed


def test_a_long_topic_name_is_cut_when_it_is_marked() -> None:
    marked = names.marked_dir_name(TopicPartition("t" * 249, 3), "0" * 32, names.DELETE_DIR)
    assert (len(marked), marked.endswith(f"t-3.{'0' * 32}-delete")) == (255, True)
