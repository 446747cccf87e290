"""Stream time at a windowed aggregate: of the records that reached it, carried from batch to batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioner import partition_of_key
from ottla.streams.expressions.parts import RECORDS, Merge, Of, Part
from ottla.streams.run.partials import Partials
from ottla.streams.run.windowing import Windowing, late_windows
from ottla.streams.windows import TimeWindows

WINDOWS = TimeWindows.of(10, grace_ms=2)


def batch(rows: list[tuple[bytes, int, int, int]]) -> pa.RecordBatch:
    """(key, time, partition, offset)"""
    keys, times, partitions, offsets = zip(*rows, strict=True)
    return pa.record_batch(
        {
            "kb": pa.array(keys, pa.binary()),
            "ts": pa.array(times, pa.int64()),
            "p": pa.array(partitions, pa.int32()),
            "o": pa.array(offsets, pa.int64()),
            "origin": pa.array(offsets, pa.int64()),
        }
    )


def rows_of(stage: Windowing, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for out in stage(iter(batches)) for row in out.to_pylist()]


def starts(stage: Windowing, *batches: pa.RecordBatch) -> list[tuple[int, int]]:
    """(time of the record, start of a window that takes it)"""
    return [(row["ts"], row["start"]) for row in rows_of(stage, *batches)]


def test_a_record_that_comes_after_the_grace_of_its_window_is_left_out_in_the_next_batch_too(tmp_path: Path) -> None:
    stage = Windowing(str(tmp_path), None, WINDOWS)
    first, second = (
        batch([(b"a", 5, 0, 0), (b"b", 11, 0, 1)]),
        batch([(b"a", 9, 0, 4), (b"a", 12, 0, 5), (b"a", 9, 0, 6)]),
    )
    assert starts(stage, first, second) == [(5, 0), (11, 10), (9, 0), (12, 10)]
    # Partition 1 has a time of its own.
    assert starts(stage, batch([(b"a", 3, 0, 7), (b"a", 3, 1, 7)])) == [(3, 0)]


def test_a_batch_that_runs_again_finds_what_it_found_the_first_time(tmp_path: Path) -> None:
    stage = Windowing(str(tmp_path), None, WINDOWS)
    rows_of(stage, batch([(b"a", 5, 0, 0)]))
    second = batch([(b"a", 3, 0, 1), (b"a", 18, 0, 2), (b"a", 4, 0, 3)])
    assert starts(stage, second) == [(3, 0), (18, 10)]
    assert starts(stage, second) == [(3, 0), (18, 10)]


def test_behind_a_repartition_every_task_has_a_time_of_its_own(tmp_path: Path) -> None:
    keys = [b"%d" % number for number in range(40)]
    here, there = (next(key for key in keys if partition_of_key(key, 2) == task) for task in (0, 1))
    stage = Windowing(str(tmp_path), 2, WINDOWS)
    found = rows_of(stage, batch([(here, 50, 0, 0), (there, 10, 0, 1), (here, 20, 0, 2), (there, 15, 0, 3)]))
    assert [(row["kb"], row["task"], row["start"]) for row in found] == [(here, 0, 50), (there, 1, 10), (there, 1, 10)]
    assert starts(stage, batch([(there, 10, 0, 4), (here, 10, 0, 5)])) == [(10, 10)]


def test_hopping_windows_take_a_record_several_times_and_none_begins_before_the_epoch(tmp_path: Path) -> None:
    stage = Windowing(str(tmp_path), None, TimeWindows.of(10, advance_ms=4, grace_ms=0))
    assert sorted(starts(stage, batch([(b"a", 3, 0, 0), (b"a", 13, 0, 1)]))) == [(3, 0), (13, 4), (13, 8), (13, 12)]


def test_parts_leave_in_a_row_for_each_key_and_window(tmp_path: Path) -> None:
    values, largest = Part(Of.PRESENT, Merge.SUM, "a0"), Part(Of.VALUE, Merge.MAX, "a0")
    partials = Partials(("kb", "task", "hash", "start"), (RECORDS, values, largest))
    stage = Windowing(str(tmp_path), None, WINDOWS, partials)
    one = batch([(b"a", 5, 0, 0), (b"a", 7, 0, 1), (b"b", 6, 0, 2)]).append_column("a0", pa.array([1, None, None]))
    two = batch([(b"a", 4, 0, 3)]).append_column("a0", pa.array([7], pa.int64()))
    names = ("start", "ts", RECORDS.name, values.name, largest.name)
    found = {row["kb"]: tuple(row[name] for name in names) for row in rows_of(stage, one, two)}
    assert found == {b"a": (0, 7, 3, 2, 7), b"b": (0, 6, 1, 0, None)}


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40))),
)
def test_late_pairs_are_counted_as_record_by_record(
    size: int, advance: int, grace: int, rows: list[tuple[int, int]]
) -> None:
    windows = TimeWindows.of(size, advance_ms=min(advance, size), grace_ms=grace)
    ahead = [(time, time + more) for time, more in rows]
    expected = sum(
        window.end <= stream_time - grace for time, stream_time in ahead for window in windows.windows_for(time)
    )
    record_times = np.array([time for time, _ in ahead], np.int64)
    stream_times = np.array([stream_time for _, stream_time in ahead], np.int64)
    assert late_windows(windows, record_times, stream_times) == expected
