"""What a round of the cleaner keeps and what it lets go."""

from random import Random

import pytest

from ottla.protocol import batch as b
from ottla.protocol.compression import Bounds
from ottla.protocol.records import read_records
from ottla.storage.cleaner import plan
from ottla.storage.cleaner.cleaned_segment import discard
from ottla.storage.cleaner.facts import Limits
from ottla.storage.cleaner.rewrite import Round
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import CorruptLog
from ottla.storage.reading import aborted_transactions, batches_of, offset_for_timestamp
from ottla.storage.retention import delete_records_before
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from tests.rules.storage.cleaning import (
    COMPACT,
    ROOMY,
    clean,
    committed,
    end,
    headers,
    pairs,
    put,
    put_in_transaction,
    records,
    rolled_and_cleaned,
    shape,
)
from tests.rules.storage.scene import DIR, NOW, PARTITION, PATH, TOPIC_ID, created, everything, flip, reopened

DAY = 24 * 3600 * 1000


def names_in(disk: SimDisk) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in everything(disk) if path.startswith(PATH))


# -- keys --------------------------------------------------------------------------------------------------------


def test_only_the_latest_record_of_a_key_stays() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"a", b"3"), (b"c", b"1"))
    assert rolled_and_cleaned(log).end_offset == 5
    assert pairs(log) == [(1, b"b", b"1"), (3, b"a", b"3"), (4, b"c", b"1")]


def test_a_batch_spans_the_same_offsets_after_it_lost_records() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"a", b"3"), (b"c", b"1"))
    rolled_and_cleaned(log)
    assert shape(log) == [(0, 2, 1), (3, 4, 2)]


def test_a_batch_nothing_is_left_of_goes() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    rolled_and_cleaned(log)
    assert shape(log) == [(1, 1, 1)]


def test_a_batch_that_keeps_everything_is_copied_byte_for_byte() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"2"), codec=1)
    before = [bytes(batch) for batch in batches_of(log, 0)]
    rolled_and_cleaned(log)
    assert [bytes(batch) for batch in batches_of(log, 0)] == before


def test_records_of_cleaned_segments_go_when_their_key_comes_again() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"))
    cleaned_to = rolled_and_cleaned(log).end_offset
    put(log, (b"a", b"2"))
    rolled_and_cleaned(log, cleaned_to)
    assert pairs(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_a_round_that_begins_inside_a_batch_judges_each_of_its_records() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", b"2"), (b"c", b"2"))
    put(log, (b"c", b"3"))
    rolled_and_cleaned(log, 2)
    assert pairs(log) == [(2, b"a", b"2"), (3, b"b", b"2"), (5, b"c", b"3")]


def test_a_record_without_a_key_goes() -> None:
    log = created(config=LogConfig())
    put(log, (None, b"1"), (b"a", b"1"))
    put(log, (b"b", b"1"))
    log.update_config(COMPACT)
    rolled_and_cleaned(log)
    assert pairs(log) == [(1, b"a", b"1"), (2, b"b", b"1")]


def test_long_keys_and_values_and_far_timestamps_are_read_right() -> None:
    log = created(config=COMPACT)
    long_key = b"k" * 300
    put(log, (long_key, b"v" * 20_000), (b"", b"x"), (long_key + b"2", b"y" * 200), at=NOW - DAY)
    put(log, (long_key, b"w" * 70), (b"", b"z"))
    rolled_and_cleaned(log)
    assert pairs(log) == [(2, long_key + b"2", b"y" * 200), (3, long_key, b"w" * 70), (4, b"", b"z")]
    assert [record.timestamp for record in records(log)] == [NOW - DAY + 2, NOW, NOW + 1]


def test_the_greatest_timestamp_of_a_batch_is_that_of_a_record_it_still_has() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"b", b"2"), at=NOW - 500)
    rolled_and_cleaned(log)
    assert [(header.base_timestamp, header.max_timestamp) for header in headers(log)] == [
        (NOW, NOW),
        (NOW - 500, NOW - 500),
    ]
    assert log.segments[0].largest_timestamp() == NOW
    found = offset_for_timestamp(log, NOW - 1)
    assert found is not None and (found.offset, found.timestamp) == (0, NOW)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_compressed_batch_is_compressed_again_by_its_codec(codec: int) -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1" * 100), (b"b", b"2" * 100), (b"c", None), codec=codec)
    put(log, (b"a", b"3"))
    rolled_and_cleaned(log)
    assert pairs(log) == [(1, b"b", b"2" * 100), (2, b"c", None), (3, b"a", b"3")]
    assert [header.codec for header in headers(log)] == [codec, 0]
    assert all(b.computed_crc(batch) == b.read_header(batch).crc for batch in batches_of(log, 0))


def test_a_batch_that_the_topic_would_not_take_any_more_is_cleaned_all_the_same() -> None:
    """The ratio holds for what is to be taken. What a topic took before it was compacted must not stop its cleaner."""
    log = created(config=LogConfig())
    put(log, (b"a", b"1" * 5000), (b"b", b"2" * 5000), codec=4)
    put(log, (b"a", b"3"))
    log.update_config(COMPACT._replace(unpacking=Bounds(max_ratio=2)))
    rolled_and_cleaned(log)
    assert pairs(log) == [(1, b"b", b"2" * 5000), (2, b"a", b"3")]


# -- how far -----------------------------------------------------------------------------------------------------


def test_the_active_segment_is_never_cleaned() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"))
    log.roll(NOW)
    put(log, (b"a", b"2"))
    put(log, (b"a", b"3"))
    assert clean(log).end_offset == 1
    assert pairs(log) == [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"a", b"3")]


def test_nothing_at_or_above_the_last_stable_offset_is_cleaned() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW)
    put_in_transaction(log, (7, 0, 0), (b"a", b"3"))
    log.roll(NOW)
    put(log, (b"a", b"4"))
    log.roll(NOW)
    assert clean(log).end_offset == 2
    assert [offset for offset, _, _ in pairs(log)] == [1, 2, 3]


def test_nothing_at_or_above_the_high_watermark_is_cleaned() -> None:
    log = created(config=COMPACT)
    for number in range(3):
        put(log, (b"a", b"%d" % number))
        log.roll(NOW)
    assert clean(log, high_watermark=2).end_offset == 2
    assert [offset for offset, _, _ in pairs(log)] == [1, 2]


def test_a_segment_younger_than_min_compaction_lag_waits_with_all_behind_it() -> None:
    log = created(config=LogConfig(cleanup_policy=("compact",), min_compaction_lag_ms=1000))
    for at in (NOW - 1000, NOW - 999, NOW - 2000):
        put(log, (b"a", b"1"), at=at)
        log.roll(NOW)
    found = plan.weigh(log, None, high_watermark=3, now=NOW)
    assert (found.first_dirty, found.first_uncleanable) == (0, 1)
    assert plan.weigh(log, None, high_watermark=3, now=NOW + 1).first_uncleanable == 3


def test_a_log_is_due_once_its_dirty_share_exceeds_the_ratio() -> None:
    log = created(config=LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.5))
    for _ in range(4):
        put(log, (b"a", b"1"))
        log.roll(NOW)
    due = [plan.weigh(log, cleaned_to, high_watermark=4, now=NOW).is_due for cleaned_to in (0, 1, 2, 3, 4)]
    assert due == [True, True, False, False, False]
    assert plan.weigh(log, 1, high_watermark=4, now=NOW).ratio == 0.75


def test_a_record_older_than_max_compaction_lag_makes_its_log_due() -> None:
    config = LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    log = created(config=config)
    put(log, (b"a", b"1"))
    log.roll(NOW)
    assert [plan.weigh(log, 0, high_watermark=1, now=NOW + lag).is_due for lag in (500, 501)] == [False, True]
    assert not plan.weigh(log, 1, high_watermark=1, now=NOW + 501).is_due


@pytest.mark.parametrize("checkpoint", [None, 0, 1, 99])
def test_a_checkpoint_outside_the_log_makes_all_of_it_dirty(checkpoint: int | None) -> None:
    log = created(config=COMPACT)
    for number in range(4):
        put(log, (b"a", b"%d" % number))
        log.roll(NOW)
    delete_records_before(log, 2)
    assert plan.weigh(log, checkpoint, high_watermark=4, now=NOW).first_dirty == 2


def test_a_round_ends_where_the_key_map_is_full_and_the_next_goes_on_there() -> None:
    log = created(config=COMPACT)
    for number in range(0, 60, 3):
        put(log, *((b"%d" % (number + i), b"old") for i in range(3)))
    for number in range(60):
        put(log, (b"%d" % number, b"new"))
    log.roll(NOW)
    tiny = Limits(memory=320)  # 8 slots
    cleaned_to, rounds = 0, 0
    while cleaned_to < 120:
        at = clean(log, cleaned_to, limits=tiny).end_offset
        assert at > cleaned_to
        cleaned_to, rounds = at, rounds + 1
    assert rounds > 10
    assert pairs(log) == [(60 + number, b"%d" % number, b"new") for number in range(60)]


def test_a_batch_with_more_keys_than_the_map_takes_is_cleaned_in_parts() -> None:
    log = created(config=COMPACT)
    put(log, *((b"%d" % (number % 25), b"%d" % number) for number in range(50)))
    log.roll(NOW)
    cleaned_to = 0
    while cleaned_to < 50:
        at = clean(log, cleaned_to, limits=Limits(memory=320)).end_offset
        assert at > cleaned_to
        cleaned_to = at
    assert pairs(log) == [(number, b"%d" % (number % 25), b"%d" % number) for number in range(25, 50)]


def test_the_last_batch_of_a_round_stays_even_if_empty() -> None:
    """redpanda#13639: a consumer that waits for the last offset would hang."""
    log = created(config=COMPACT)
    put(log, (b"a", b"1"))
    put(log, (b"b", None))
    log.roll(NOW)
    cleaned_to = clean(log).end_offset
    log.roll(NOW)
    clean(log, cleaned_to, now=NOW + 1000)
    assert shape(log) == [(0, 0, 1), (1, 1, 0)]


# -- tombstones --------------------------------------------------------------------------------------------------


def test_kip_534_a_tombstone_gets_its_delete_horizon_when_first_cleaned_and_goes_once_it_has_passed() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"x", b"1"), (b"a", None))
    put(log, (b"c", b"1"))
    cleaned_to = rolled_and_cleaned(log, now=NOW + 5).end_offset
    marked = headers(log)[1]
    assert (marked.attributes & b.DELETE_HORIZON, marked.base_timestamp) == (b.DELETE_HORIZON, NOW + 5 + 1000)
    assert [(record.offset, record.timestamp) for record in records(log)] == [
        (1, NOW + 1), (2, NOW), (3, NOW + 1), (4, NOW),
    ]  # fmt: skip
    clean(log, cleaned_to, now=NOW + 1004)
    assert [offset for offset, _, _ in pairs(log)] == [1, 2, 3, 4]
    put(log, (b"d", b"1"))
    log.roll(NOW)
    clean(log, cleaned_to, now=NOW + 1005)
    assert [offset for offset, _, _ in pairs(log)] == [1, 2, 4, 5]
    assert headers(log)[1].base_timestamp == NOW + 1005


def test_a_tombstone_in_the_part_cleaned_before_goes_as_well() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", None))
    put(log, (b"b", b"1"))
    cleaned_to = rolled_and_cleaned(log).end_offset
    put(log, (b"c", b"1"))
    rolled_and_cleaned(log, cleaned_to, now=NOW + DAY)
    assert pairs(log) == [(1, b"b", b"1"), (2, b"c", b"1")]


def test_a_tombstone_goes_at_once_when_its_key_comes_again() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    rolled_and_cleaned(log)
    assert pairs(log) == [(1, b"a", b"2")]


def test_log_append_time_survives_a_delete_horizon() -> None:
    log = created(config=COMPACT)
    log.update_config(LogConfig(cleanup_policy=("compact",), message_timestamp_type="LogAppendTime"))
    put(log, (b"a", None), (b"b", b"1"), at=NOW - 77)
    rolled_and_cleaned(log)
    assert [(record.key, record.timestamp) for record in records(log)] == [(b"a", NOW), (b"b", NOW)]


# -- producers and transactions ----------------------------------------------------------------------------------


def test_the_last_batch_of_an_active_producer_stays_even_if_empty() -> None:
    disk = SimDisk()
    log = created(disk, COMPACT)
    put(log, (b"a", b"1"), producer=(7, 3, 0))
    put(log, (b"a", b"2"), (b"b", b"1"), producer=(7, 3, 1))
    put(log, (b"a", b"3"), (b"b", b"3"))
    put(log, (b"z", b"1"))
    rolled_and_cleaned(log)
    emptied = headers(log)[0]
    assert shape(log) == [(1, 2, 0), (3, 4, 2), (5, 5, 1)]
    assert (emptied.producer_id, emptied.producer_epoch, emptied.base_sequence, emptied.last_sequence) == (7, 3, 1, 2)
    assert (emptied.base_timestamp, emptied.max_timestamp, emptied.attributes) == (-1, NOW + 1, 0)
    again = reopened(disk.killed(), COMPACT)
    assert again.last_records(below=6) == log.last_records(below=6)
    put(again, (b"c", b"1"), producer=(7, 3, 3))


def test_the_batch_of_a_producer_that_has_expired_goes() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"), producer=(7, 3, 0))
    put(log, (b"a", b"2"))
    log.expire_producers(NOW + DAY)
    rolled_and_cleaned(log)
    assert shape(log) == [(1, 1, 1)]


def test_aborted_records_go_and_do_not_replace_earlier_ones() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"))
    put_in_transaction(log, (7, 0, 0), (b"a", b"2"), (b"b", b"2"))
    end(log, 7, 0, commit=False)
    put(log, (b"c", b"1"))
    rolled_and_cleaned(log)
    assert [(r.key, r.value) for r in records(log)] == [(b"a", b"1"), (b"c", b"1")]
    assert [(r.key, r.value) for r in committed(log)] == [(b"a", b"1"), (b"c", b"1")]


def test_a_committed_record_replaces_earlier_ones() -> None:
    log = created(config=COMPACT)
    put(log, (b"a", b"1"))
    put_in_transaction(log, (7, 0, 0), (b"a", b"2"))
    end(log, 7, 0, commit=True)
    put(log, (b"c", b"1"))
    rolled_and_cleaned(log)
    assert [(r.key, r.value) for r in committed(log)] == [(b"a", b"2"), (b"c", b"1")]
    assert shape(log) == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]


def test_an_abort_marker_and_its_index_entry_outlive_the_data_by_a_round() -> None:
    log = created(config=COMPACT)
    put_in_transaction(log, (7, 0, 0), (b"a", b"2"))
    marker = end(log, 7, 0, commit=False)
    put(log, (b"c", b"1"))
    log.expire_producers(NOW + DAY)
    cleaned_to = rolled_and_cleaned(log).end_offset
    assert aborted_transactions(log, 0, 9) == [(7, 0)]
    assert [h.base_offset for h in headers(log)] == [marker, 2]
    put(log, (b"d", b"1"))
    rolled_and_cleaned(log, cleaned_to)
    assert aborted_transactions(log, 0, 9) == []
    first = headers(log)[0]
    assert (first.base_offset, first.attributes & b.DELETE_HORIZON) == (marker, b.DELETE_HORIZON)


def test_kip_534_a_marker_is_stamped_once_its_transaction_is_gone_and_removed_at_the_horizon() -> None:
    log = created(config=COMPACT)
    put_in_transaction(log, (7, 0, 0), (b"a", b"2"))
    end(log, 7, 0, commit=True)
    put(log, (b"a", b"3"))
    log.expire_producers(NOW + DAY)
    cleaned_to = rolled_and_cleaned(log, now=NOW).end_offset
    assert [(h.base_offset, h.attributes & b.DELETE_HORIZON) for h in headers(log)] == [(1, 0), (2, 0)]
    put(log, (b"d", b"1"))
    cleaned_to = rolled_and_cleaned(log, cleaned_to, now=NOW + 10).end_offset
    first = headers(log)[0]
    assert (first.base_offset, first.is_control, first.base_timestamp) == (1, True, NOW + 1010)
    put(log, (b"e", b"1"))
    cleaned_to = rolled_and_cleaned(log, cleaned_to, now=NOW + 1009).end_offset
    assert headers(log)[0].base_offset == 1
    put(log, (b"f", b"1"))
    rolled_and_cleaned(log, cleaned_to, now=NOW + 1010)
    assert headers(log)[0].base_offset == 2


def test_the_last_marker_of_an_active_producer_stays_as_an_empty_batch() -> None:
    log = created(config=COMPACT)
    end(log, 7, 5, commit=False)
    put(log, (b"a", b"1"))
    cleaned_to = rolled_and_cleaned(log, now=NOW).end_offset
    put(log, (b"b", b"1"))
    cleaned_to = rolled_and_cleaned(log, cleaned_to, now=NOW + DAY).end_offset
    first = headers(log)[0]
    assert (first.is_control, first.producer_id, first.producer_epoch, first.record_count) == (True, 7, 5, 0)
    log.expire_producers(NOW + DAY)
    put(log, (b"c", b"1"))
    rolled_and_cleaned(log, cleaned_to, now=NOW + DAY)
    assert not headers(log)[0].is_control


def test_control_batches_are_never_taken_for_records_of_the_same_key() -> None:
    log = created(config=COMPACT)
    for producer in (7, 8, 9):
        put_in_transaction(log, (producer, 0, 0), (b"%d" % producer, b"x"))
        end(log, producer, 0, commit=True)
    put(log, (b"\0\0\0\1", b"x"))
    rolled_and_cleaned(log)
    assert sum(header.is_control and header.record_count == 1 for header in headers(log)) == 3


def test_kafka_8351_a_transaction_that_spans_groups_of_segments_is_known_in_all_of_them() -> None:
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=200)
    log = created(config=config)
    put(log, (b"keep", b"1"))
    put_in_transaction(log, (7, 0, 0), (b"a", b"x" * 100))
    put_in_transaction(log, (7, 0, 1), (b"b", b"x" * 100))
    put_in_transaction(log, (7, 0, 2), (b"c", b"x" * 100))
    end(log, 7, 0, commit=False)
    put(log, (b"z", b"1"))
    log.roll(NOW)
    assert len(log.segments) > 3
    clean(log)
    assert [(r.key, r.value) for r in records(log)] == [(b"keep", b"1"), (b"z", b"1")]
    assert aborted_transactions(log, 0, 99) == [(7, 1)]


def test_kafka_13727_the_transaction_index_is_whole_even_if_the_key_map_fills_up_before_the_marker() -> None:
    log = created(config=COMPACT)
    put_in_transaction(log, (7, 0, 0), (b"t", b"1"))
    for number in range(20):
        put(log, (b"%d" % number, b"1"))
    end(log, 7, 0, commit=False)
    put_in_transaction(log, (8, 0, 0), (b"u", b"1"))
    end(log, 8, 0, commit=False)
    log.roll(NOW)
    assert clean(log, limits=Limits(memory=320)).end_offset < 20
    assert aborted_transactions(log, 0, 99) == [(7, 0), (8, 22)]
    assert [r.key for r in committed(log)] == [b"%d" % number for number in range(20)]


def test_a_transaction_that_ends_in_the_active_segment_is_judged_by_its_end() -> None:
    log = created(config=COMPACT)
    put_in_transaction(log, (7, 0, 0), (b"a", b"1"))
    put_in_transaction(log, (8, 0, 0), (b"b", b"1"))
    put(log, (b"c", b"1"))
    log.roll(NOW)
    end(log, 7, 0, commit=False)
    end(log, 8, 0, commit=True)
    clean(log)
    assert [r.key for r in records(log)] == [b"b", b"c"]


# -- segments ----------------------------------------------------------------------------------------------------


def test_small_segments_become_one_and_their_other_files_go() -> None:
    disk = SimDisk()
    log = created(disk, COMPACT)
    for number in range(4):
        put(log, (b"a", b"%d" % number), producer=(7, 0, number))
        log.roll(NOW)
    clean(log)
    assert [segment.base_offset for segment in log.segments] == [0, 4]
    stem = "0" * 19
    assert [name for name in names_in(disk) if name.startswith("0")] == [
        f"{stem}0.index", f"{stem}0.log", f"{stem}0.timeindex",
        f"{stem}4.index", f"{stem}4.log", f"{stem}4.snapshot", f"{stem}4.timeindex",
    ]  # fmt: skip


def test_a_cleaned_segment_has_indexes_that_find_its_batches() -> None:
    log = created(config=LogConfig(cleanup_policy=("compact",), index_interval_bytes=200))
    for number in range(200):
        put(log, (b"%d" % (number % 150), b"x" * 50), at=NOW + number)
    rolled_and_cleaned(log)
    assert len(log.segments[0].load_indexes()[0].relative) > 20
    for offset in range(200):
        found = next(batches_of(log, offset))
        assert b.read_header(found).base_offset == max(offset, 50)
        by_time = offset_for_timestamp(log, NOW + offset)
        assert by_time is not None and by_time.offset == max(offset, 50)


def test_a_group_that_loses_everything_leaves_an_empty_segment() -> None:
    disk = SimDisk()
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=200)
    log = created(disk, config)
    put(log, (b"a", b"x" * 100))
    put(log, (b"a", b"y" * 100))
    put(log, (b"a", b"z"))
    log.roll(NOW)
    clean(log)
    assert (log.segments[0].base_offset, log.segments[0].size) == (0, 0)
    assert pairs(log) == [(2, b"a", b"z")]
    again = reopened(disk.killed(), config)
    assert pairs(again) == [(2, b"a", b"z")]
    assert again.log_end_offset == 3


def test_groups_keep_to_the_sizes_of_logs_and_indexes_and_to_32_bit_offsets() -> None:
    def grouped(*sizes: tuple[int, int, int, int], end_offset: int = 1 << 40) -> list[range]:
        found = [plan.SegmentSizes(*size) for size in sizes]
        return plan.groups(found, end_offset, segment_bytes=100, index_bytes=50)

    assert grouped((0, 40, 0, 0), (10, 60, 0, 0), (20, 1, 0, 0), end_offset=30) == [range(2), range(2, 3)]
    assert grouped((0, 1, 30, 0), (10, 1, 21, 0), (20, 1, 0, 0), end_offset=30) == [range(1), range(1, 3)]
    assert grouped((0, 1, 0, 30), (10, 1, 0, 21), (20, 1, 0, 0), end_offset=30) == [range(1), range(1, 3)]
    far = 1 << 31
    assert grouped((0, 1, 0, 0), (10, 1, 0, 0), (far, 1, 0, 0), end_offset=far + 1) == [range(2), range(2, 3)]
    assert grouped((0, 1, 0, 0), (10, 0, 0, 0), (far + 9, 1, 0, 0), end_offset=far + 10) == [range(2), range(2, 3)]
    assert grouped((0, 500, 0, 0), (10, 1, 0, 0), end_offset=20) == [range(1), range(1, 2)]


def test_a_log_that_changed_meanwhile_keeps_its_segments() -> None:
    log = created(config=COMPACT)
    for number in range(3):
        put(log, (b"a", b"%d" % number))
        log.roll(NOW)
    candidate, generation = plan.weigh(log, None, high_watermark=3, now=NOW), log.generation
    work = Round(candidate.facts(ROOMY, now=NOW), log.filesystem, lambda _: None)
    old = [(segment, segment.size) for segment in log.segments[:-1]]
    (group,) = work.map_keys().groups
    new = work.rewrite(0, {})
    log.truncate_to(2, NOW)
    assert log.generation != generation
    assert [source.base_offset for source in group] == [segment.base_offset for segment, _ in old]
    assert log.replace_segments(old, new) is None
    discard(log.filesystem, log.path, new.base_offset)
    assert pairs(log) == [(0, b"a", b"0"), (1, b"a", b"1")]
    assert not [path for path in everything(log.filesystem) if "cleaned" in path]  # type: ignore[arg-type]


def test_a_reader_in_the_middle_of_the_log_goes_on_over_a_swap() -> None:
    log = created(config=COMPACT)
    for number in range(6):
        put(log, (b"%d" % (number % 4), b"%d" % number))
        log.roll(NOW)
    reader = batches_of(log, 0)
    assert b.read_header(next(reader)).base_offset == 0
    clean(log)
    assert [record.offset for batch in reader for record in read_records(batch)] == [2, 3, 4, 5]


@pytest.mark.parametrize("at", [30, 70])
def test_a_damaged_batch_is_never_given_a_new_crc(at: int) -> None:
    disk = SimDisk()
    log = created(disk, COMPACT)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW)
    flip(disk, log.segments[0].path(), at)
    before = everything(disk)[log.segments[0].path()]
    with pytest.raises(CorruptLog):
        clean(log)
    assert everything(disk)[log.segments[0].path()] == before


def test_each_breath_tells_how_much_was_read_and_written() -> None:
    log = created(config=COMPACT)
    for number in range(500):
        put(log, (b"%d" % number, b"x" * 1000))
    log.roll(NOW)
    told: list[int] = []
    candidate = plan.weigh(log, None, high_watermark=500, now=NOW)
    work = Round(candidate.facts(ROOMY, now=NOW), log.filesystem, told.append)
    for number, _ in enumerate(work.map_keys().groups):
        work.rewrite(number, {})
    size = log.segments[0].size
    assert max(told) <= ROOMY.read_bytes + 2000
    assert 2 * size < sum(told) <= work.stats.bytes_read + size
    assert (work.stats.bytes_written, work.stats.records) == (size, 500)


# -- the checkpoint ----------------------------------------------------------------------------------------------


def directory_with_log(disk: SimDisk) -> LogDirectory:
    directory = LogDirectory.open(OpenFiles(disk), DIR)
    directory.load(lambda _: COMPACT, NOW)
    if PARTITION not in directory.logs:
        directory.create_log(PARTITION, TOPIC_ID, COMPACT, NOW)
    return directory


def test_how_far_logs_are_clean_is_remembered() -> None:
    disk = SimDisk()
    directory = directory_with_log(disk)
    directory.saved.cleaned_to[PARTITION] = 17
    directory.write_cleaner_offsets()
    assert everything(disk)[f"{DIR}/cleaner-offset-checkpoint"] == b"0\n1\norders 0 17\n"
    assert directory_with_log(disk.crash(Random(3))).saved.cleaned_to == {PARTITION: 17}


def test_what_is_appended_after_a_truncation_is_dirty() -> None:
    disk = SimDisk()
    directory = directory_with_log(disk)
    log = directory.logs[PARTITION]
    for number in range(4):
        put(log, (b"a", b"%d" % number))
    directory.saved.cleaned_to[PARTITION] = 3
    directory.write_cleaner_offsets()
    log.truncate_to(2, NOW)
    assert directory_with_log(disk.killed()).saved.cleaned_to == {PARTITION: 2}
    log.truncate_fully_and_start_at(0, NOW)
    assert directory_with_log(disk.killed()).saved.cleaned_to == {PARTITION: 0}


def test_a_topic_made_again_under_its_name_begins_dirty() -> None:
    disk = SimDisk()
    directory = directory_with_log(disk)
    directory.saved.cleaned_to[PARTITION] = 3
    directory.write_cleaner_offsets()
    directory.delete_log(PARTITION, "0" * 32)
    assert directory.saved.cleaned_to == {}
    again = LogDirectory.open(OpenFiles(disk.killed()), DIR)
    again.create_log(PARTITION, TOPIC_ID, COMPACT, NOW)
    assert again.saved.cleaned_to == {}
