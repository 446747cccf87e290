"""Rolling, retention, DeleteRecords and the files they leave."""

import pytest

from ottla.model.errors import Errors
from ottla.storage.answers import Deletion
from ottla.storage.config import LogConfig
from ottla.storage.following import append_as_follower
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.retention import apply_retention, delete_records_before
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, PATH, a_batch, append, created, everything, fetched, fill, reopened, values

DAY = 24 * 3600 * 1000
BATCH = len(a_batch(b"x" * 106))


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_is_closed_before_it_would_exceed_its_size() -> None:
    log = created(config=LogConfig(segment_bytes=3 * BATCH))
    fill(log, 7)
    assert bases(log) == [0, 3, 6]
    assert [segment.size for segment in log.segments] == [3 * BATCH, 3 * BATCH, BATCH]
    assert log.size == 7 * BATCH


def test_a_segment_is_closed_when_the_first_records_time_is_too_long_ago() -> None:
    log = created(config=LogConfig(segment_ms=1000))
    for at in (0, 1000, 1001, 2001, 2002):
        append(log, b"v", at=NOW + at)
    assert bases(log) == [0, 2, 4]


def test_jitter_shortens_the_time() -> None:
    log = created(config=LogConfig(segment_ms=1000, segment_jitter_ms=400))
    for at in (0, 600, 601):
        append(log, b"v", at=NOW + at)
    assert bases(log) == [0, 2]


def test_without_timestamps_the_age_of_the_segment_counts() -> None:
    log = created(config=LogConfig(segment_ms=1000))
    for now in (NOW, NOW + 1000, NOW + 1001):
        append_as_leader(log, a_batch(b"v", at=-1), 0, now)
    assert bases(log) == [0, 2]


def test_a_full_index_closes_the_segment() -> None:
    log = created(config=LogConfig(index_interval_bytes=0, segment_index_bytes=64))
    fill(log, 12)
    assert bases(log) == [0, 9]  # 64 // 8 entries, and the first batch has none


def test_a_full_time_index_closes_the_segment_while_its_last_entry_is_free() -> None:
    log = created(config=LogConfig(index_interval_bytes=0, segment_index_bytes=64))
    for number in range(12):
        append(log, b"v", at=NOW + number)
    assert bases(log) == [0, 5, 10]  # 64 // 12 - 1 entries


def test_an_offset_too_far_for_relative_offsets_opens_a_segment_of_its_own() -> None:
    log = created()
    append_as_follower(log, a_batch(b"a", base_offset=0, leader_epoch=0), 0, NOW)
    append_as_follower(log, a_batch(b"b", base_offset=2**31, leader_epoch=0), 0, NOW)
    assert bases(log) == [0, 2**31]
    assert fetched(log, 1) == [2**31]


def test_an_empty_log_moves_to_an_offset_out_of_its_reach() -> None:
    log = created()
    append_as_follower(log, a_batch(b"b", base_offset=2**31, leader_epoch=0), 0, NOW)
    assert bases(log) == [2**31]


def test_rolling_writes_a_snapshot_and_exact_indexes() -> None:
    fs = SimDisk()
    log = created(fs, LogConfig(index_interval_bytes=0))
    fill(log, 3)
    log.roll(NOW)
    files = everything(fs)
    assert len(files[f"{PATH}/{0:020d}.index"]) == 2 * 8
    assert len(files[f"{PATH}/{0:020d}.timeindex"]) == 12
    assert f"{PATH}/{3:020d}.snapshot" in files


def test_rolling_an_empty_segment_changes_nothing() -> None:
    log = created()
    log.roll(NOW)
    assert bases(log) == [0]


def test_size_retention_keeps_at_least_the_limit() -> None:
    log = created(config=LogConfig(segment_bytes=2 * BATCH, retention_bytes=5 * BATCH, retention_ms=-1))
    fill(log, 10)
    apply_retention(log, NOW)
    assert (bases(log), log.log_start_offset) == ([4, 6, 8], 4)
    assert apply_retention(log, NOW) is None


def test_time_retention_goes_by_the_greatest_timestamp_of_a_segment() -> None:
    log = created(config=LogConfig(retention_ms=1000))
    for at in (0, 500, 900):
        append(log, b"v", at=NOW + at)
        log.roll(NOW)
    append(log, b"v", at=NOW + 1600)
    apply_retention(log, NOW + 1000)
    assert log.log_start_offset == 0
    apply_retention(log, NOW + 1501)
    assert (bases(log), log.log_start_offset) == ([2, 3], 2)


def test_an_active_segment_that_is_too_old_is_replaced() -> None:
    log = created(config=LogConfig(retention_ms=1000))
    append(log, b"v")
    append(log, b"v")
    apply_retention(log, NOW + 2000)
    assert (bases(log), log.log_start_offset, log.log_end_offset, log.size) == ([2], 2, 2, 0)


def test_an_empty_log_is_left_alone() -> None:
    log = created(config=LogConfig(retention_ms=0, retention_bytes=0))
    assert apply_retention(log, NOW + DAY) is None


def test_nothing_at_or_above_the_high_watermark_is_deleted() -> None:
    log = created(config=LogConfig(segment_bytes=2 * BATCH, retention_bytes=0))
    fill(log, 6)
    apply_retention(log, NOW, high_watermark=3)
    assert bases(log) == [2, 4]


@pytest.mark.parametrize("policy", [("compact",), ()])
def test_only_the_delete_policy_deletes_by_size_and_time(policy: tuple[str, ...]) -> None:
    log = created(config=LogConfig(segment_bytes=2 * BATCH, retention_bytes=0, retention_ms=0, cleanup_policy=policy))
    fill(log, 6)
    assert apply_retention(log, NOW + DAY) is None
    delete_records_before(log, 4)
    apply_retention(log, NOW + DAY)
    assert bases(log) == [4]


def test_deleted_files_are_renamed_now_and_removed_later() -> None:
    fs = SimDisk()
    log = created(fs, LogConfig(segment_bytes=2 * BATCH, retention_bytes=0, file_delete_delay_ms=60))
    fill(log, 4)
    deletion = apply_retention(log, NOW)
    names = [f"{PATH}/{base:020d}.{suffix}.deleted" for base in (0, 2) for suffix in ("log", "index", "timeindex")]
    assert deletion == Deletion((*names, f"{PATH}/{2:020d}.snapshot.deleted"), 60)
    assert all(path in fs.names for path in deletion.paths)


def test_a_restart_removes_what_was_marked() -> None:
    fs = SimDisk()
    config = LogConfig(segment_bytes=2 * BATCH, retention_bytes=0)
    log = created(fs, config)
    fill(log, 4)
    apply_retention(log, NOW)
    log = reopened(fs.killed(), config, log_start_offset=4)
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([4], 4, 4)
    assert not [path for path in everything(log.filesystem) if path.endswith(".deleted")]  # type: ignore[arg-type]


def test_delete_records_moves_the_log_start_and_retention_takes_the_segments() -> None:
    log = created(config=LogConfig(segment_bytes=2 * BATCH))
    fill(log, 6)
    assert delete_records_before(log, 3) is Errors.NONE
    assert (log.log_start_offset, bases(log)) == (3, [0, 2, 4])
    assert delete_records_before(log, 1) is Errors.NONE
    assert log.log_start_offset == 3
    apply_retention(log, NOW)
    assert bases(log) == [2, 4]
    assert len(values(log)) == 3


def test_delete_records_beyond_the_high_watermark_is_out_of_range() -> None:
    log = created()
    fill(log, 3)
    assert delete_records_before(log, 3, high_watermark=2) is Errors.OFFSET_OUT_OF_RANGE
    assert delete_records_before(log, 4) is Errors.OFFSET_OUT_OF_RANGE
    assert delete_records_before(log, -1) is Errors.OFFSET_OUT_OF_RANGE
    assert delete_records_before(log, 3) is Errors.NONE


def test_deleting_a_log_frees_its_name_at_once() -> None:
    fs = SimDisk()
    log = created(fs)
    fill(log, 2)
    deletion = log.delete("0" * 32)
    assert deletion.directory == f"{PATH}.{'0' * 32}-delete"
    assert values(created(fs)) == []
