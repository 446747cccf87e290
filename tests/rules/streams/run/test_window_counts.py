"""Counting by key and window inside the tasks that read: the same counts as one record after the other gives."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.pipelines.carry import CarryLost
from ottla.pipelines.source.columns import HEADERS_TYPE
from ottla.pipelines.source.data_source import Span
from ottla.streams.run.window_counts import COLUMNS, TOLD, Counting, count_records
from ottla.streams.windows import TimeWindows

WINDOWS = TimeWindows.of(10, grace_ms=2)
Record = tuple[bytes | None, int]


def read(
    records: list[Record], first_offset: int = 0, partition: int = 3, headers: dict[int, bytes] | None = None
) -> pa.RecordBatch:
    """As the source `ottla` gives it. `headers` are those of the records at these offsets, one each."""
    keys, times = zip(*records, strict=True)
    count = len(records)
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "topic": pa.array(["clicks"] * count),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
            "timestamp": pa.array([time * 1000 for time in times]).cast(pa.timestamp("us", "UTC")),
            "headers": pa.array(
                [
                    [{"key": "id", "value": headers[offset]}] if headers and offset in headers else None
                    for offset in range(first_offset, first_offset + count)
                ],
                HEADERS_TYPE,
            ),
        }
    )


def counting(directory: object, windows: TimeWindows = WINDOWS, **more: bool) -> Counting:
    return Counting(windows, str(directory), **{"text": False, "skip_invalid": False, **more})


def rows(how: Counting, *batches: pa.RecordBatch, span: tuple[int, int] | None = None) -> list[dict[str, Any]]:
    """Of a task that reads these, or the offsets of `span`."""
    offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    start, end = span or (offsets[0], offsets[-1] + 1)
    found = list(count_records(batches, Span(TopicPartition("clicks", 3), start, end), how, first=start == 0))
    assert all(batch.schema == COLUMNS for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def counts(found: list[dict[str, Any]]) -> dict[tuple[bytes, int], tuple[int, int]]:
    """(key, start): (records, latest time)"""
    return {(row["kb"], row["start"]): (row["v"], row["ts"]) for row in found if row["kb"] is not None}


def told(found: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    """(records, late, without key, without time)"""
    return [tuple(row[name] for name in TOLD) for row in found if row["records"] is not None]


def test_each_window_that_changed_is_one_row_and_the_last_row_tells_what_was_read(tmp_path: Path) -> None:
    found = rows(counting(tmp_path), read([(b"a", 5), (b"b", 6), (b"a", 8)]), read([(b"a", 12), (b"a", 3)], 3))
    assert counts(found) == {(b"a", 0): (2, 8), (b"b", 0): (1, 6), (b"a", 10): (1, 12)}
    assert told(found) == [(5, 1, 0, 0)]
    assert {row["task"] for row in found if row["kb"] is not None} == {3}
    assert [row["start"] for row in found[:-1]] == [0, 0, 10]


def test_the_next_batch_goes_on_counting_and_hands_on_only_what_changed(tmp_path: Path) -> None:
    how = counting(tmp_path)
    rows(how, read([(b"a", 5), (b"b", 6)]))
    again = [rows(how, read([(b"a", 4), (b"a", 11), (b"b", 12), (b"b", 9)], 2)) for _ in range(2)]
    assert counts(again[0]) == {(b"a", 0): (2, 5), (b"a", 10): (1, 11), (b"b", 10): (1, 12)}
    assert again[0] == again[1]  # also when it runs again
    assert told(again[0]) == [(4, 1, 0, 0)]


def test_offsets_that_hold_no_record_are_passed_by(tmp_path: Path) -> None:
    how = counting(tmp_path)
    rows(how, read([(b"a", 5)]), span=(0, 3))
    assert told(rows(how, span=(3, 4))) == [(0, 0, 0, 0)]
    assert counts(rows(how, read([(b"a", 6)], 7), span=(4, 8))) == {(b"a", 0): (2, 6)}


def test_a_batch_that_does_not_begin_where_one_ended_is_refused(tmp_path: Path) -> None:
    rows(counting(tmp_path), read([(b"a", 5)]))
    with pytest.raises(CarryLost, match="/2 is missing"):
        rows(counting(tmp_path), read([(b"a", 5)], 2))


def test_a_record_without_key_counts_nowhere_and_moves_no_clock(tmp_path: Path) -> None:
    found = rows(counting(tmp_path), read([(None, 500), (b"a", 5)]))
    assert (counts(found), told(found)) == ({(b"a", 0): (1, 5)}, [(2, 0, 1, 0)])


def test_a_timestamp_below_zero_is_an_error_that_names_the_record_or_is_skipped(tmp_path: Path) -> None:
    bad = read([(b"a", 5), (b"a", -1)], 40)
    rows(counting(tmp_path), span=(0, 40))
    with pytest.raises(ValueError, match="offset 41 of clicks-3 has the invalid timestamp: -1"):
        rows(counting(tmp_path), bad)
    found = rows(counting(tmp_path, skip_invalid=True), bad)
    assert (counts(found), told(found)) == ({(b"a", 0): (1, 5)}, [(2, 0, 0, 1)])


def test_a_result_has_the_headers_of_the_last_record_in_it(tmp_path: Path) -> None:
    first = read([(b"a", 5), (b"a", 6), (b"b", 7), (b"c", 7)], headers={0: b"0", 2: b"2", 3: b"3"})
    second = read([(b"b", 8), (b"d", 14), (b"c", 1)], 4, headers={5: b"5", 6: b"late"})
    found = rows(counting(tmp_path, TimeWindows.of(10, grace_ms=0)), first, second)
    headers = {row["kb"]: row["h"] and row["h"][0]["value"] for row in found if row["kb"] is not None}
    assert headers == {b"a": None, b"b": None, b"c": b"3", b"d": b"5"}


def test_keys_that_are_no_text_are_counted_as_what_strings_make_of_them(tmp_path: Path) -> None:
    batch = read([(b"\xff", 5), (None, 5), (b"\xfe", 6), ("ä".encode(), 7)])
    replaced = "\N{REPLACEMENT CHARACTER}".encode()
    found = rows(counting(tmp_path / "text", text=True), batch)
    assert counts(found) == {(replaced, 0): (2, 6), ("ä".encode(), 0): (1, 7)}
    as_bytes = rows(counting(tmp_path / "bytes"), batch)
    assert set(counts(as_bytes)) == {(b"\xff", 0), (b"\xfe", 0), ("ä".encode(), 0)}


def one_by_one(records: list[Record], windows: TimeWindows) -> tuple[dict[tuple[bytes, int], tuple[int, int]], int]:
    found: dict[tuple[bytes, int], tuple[int, int]] = {}
    stream_time, late = -1, 0
    for key, time in records:
        if key is None:
            continue
        stream_time = max(stream_time, time)
        for window in windows.windows_for(time):
            if window.end <= stream_time - windows.grace_ms:
                late += 1
                continue
            count, latest = found.get((key, window.start), (0, -1))
            found[key, window.start] = (count + 1, max(latest, time))
    return found, late


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", None]), st.integers(0, 60)), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=3),
    st.sampled_from([WINDOWS, TimeWindows.of(10, advance_ms=3, grace_ms=4), TimeWindows.of(7, grace_ms=0)]),
)
def test_any_cut_into_batches_and_chunks_counts_as_one_record_after_the_other_does(
    records: list[Record], cuts: list[int], windows: TimeWindows
) -> None:
    bounds = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    last: dict[tuple[bytes, int], tuple[int, int]] = {}
    late = 0

    def chunks(start: int, stop: int) -> Iterator[pa.RecordBatch]:
        middle = (start + stop) // 2
        yield from (read(records[a:b], a) for a, b in ((start, middle), (middle, stop)) if a < b)

    with TemporaryDirectory() as directory:
        for start, stop in pairwise(bounds):
            found = rows(counting(directory, windows), *chunks(start, stop))
            late += sum(each for _, each, _, _ in told(found))
            last |= counts(found)
    assert (last, late) == one_by_one(records, windows)
