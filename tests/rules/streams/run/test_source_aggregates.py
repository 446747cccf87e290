"""Aggregates that begin where records are read: the same results as one record after the other gives."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioner import partition_of_key
from ottla.model.ids import TopicPartition
from ottla.pipelines.carry import CarryLost
from ottla.pipelines.source.data_source import Span
from ottla.pipelines.source.offsets import to_json
from ottla.serdes.types import LONG, STRING
from ottla.streams.expressions import value
from ottla.streams.expressions.parts import RECORDS, Merge, Of, Part
from ottla.streams.run.reading_stages import ReadingTask, Seen
from ottla.streams.run.source_aggregates import ByKey, ByRepartitionedWindow, Reducer, SourceAggregate, WholeWindows
from ottla.streams.run.vectors import VectorChain
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.operators.base import LATE, NULL_KEY
from ottla.streams.topology.graph import SourceNode
from ottla.streams.windows import TimeWindows

WINDOWS = TimeWindows.of(10, grace_ms=2)
PLACE = TopicPartition("clicks", 3)
LEAST = Part(Of.VALUE, Merge.MIN, "a0")
PARTS = (RECORDS, LEAST)
Record = tuple[bytes | None, int]
Windows = dict[tuple[bytes, int], tuple[int, int, int]]


def read(records: list[Record], first_offset: int = 0) -> pa.RecordBatch:
    """The value of each is its timestamp."""
    keys, times = zip(*records, strict=True)
    offsets = range(first_offset, first_offset + len(records))
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([time.to_bytes(8, "big") for time in times], pa.binary()),
            "topic": pa.array([PLACE.topic] * len(records)),
            "partition": pa.array([PLACE.partition] * len(records), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.int64()),
            "origin": pa.array([offset << 1 for offset in offsets], pa.int64()),
        }
    )


class Query:
    """One partition, batch by batch."""

    def __init__(self, directory: str | Path, windows: TimeWindows = WINDOWS) -> None:
        self._began = Path(directory, "began.json")
        self._began.write_text(json.dumps(to_json({PLACE: 0})))
        self._reducer: Reducer = WholeWindows(str(directory), windows, PARTS)

    def run(self, *batches: pa.RecordBatch, span: tuple[int, int] | None = None) -> list[dict[str, Any]]:
        """Of a task that reads these, or the offsets of `span`."""
        offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
        self.seen = Seen()
        start, end = span or (offsets[0], offsets[-1] + 1)
        return rows(self._reducer, ReadingTask(Span(PLACE, start, end), self.seen, str(self._began)), *batches)


def rows(reducer: Reducer, task: ReadingTask, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    source = SourceNode("lines", (PLACE.topic,), key_serde=Serdes.string, value_serde=Serdes.long)
    arguments = {"a0": value.bind({"key": STRING, "value": LONG})}
    chain = VectorChain(source, (), Serdes.string, arguments, windowed=True, fails=True, skips_untimed=False)
    found = list(SourceAggregate(chain, reducer).rows(iter(batches), task))
    assert all(set(batch.schema.names) == set(reducer.columns()) for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def results(found: list[dict[str, Any]]) -> Windows:
    """(key, start): (records, least value, latest time)"""
    return {(row["kb"], row["start"]): (row[RECORDS.name], row[LEAST.name], row["ts"]) for row in found}


def test_each_window_that_changed_is_one_row(tmp_path: Path) -> None:
    query = Query(tmp_path)
    found = query.run(read([(b"a", 5), (b"b", 6), (b"a", 8)]), read([(b"a", 12), (b"a", 3)], 3))
    assert results(found) == {(b"a", 0): (2, 5, 8), (b"b", 0): (1, 6, 6), (b"a", 10): (1, 12, 12)}
    assert query.seen.dropped == {LATE: 1}
    assert [(row["start"], row["task"]) for row in found] == [(0, 3), (0, 3), (10, 3)]
    assert {row["kb"]: row["origin"] >> 1 for row in found if row["start"] == 0} == {b"a": 2, b"b": 1}
    assert all(row["hash"] % 7 == partition_of_key(row["kb"], 7) for row in found)


def test_the_next_batch_goes_on_and_hands_on_only_what_changed(tmp_path: Path) -> None:
    query = Query(tmp_path)
    query.run(read([(b"a", 5), (b"b", 6)]))
    again = [query.run(read([(b"a", 4), (b"a", 11), (b"b", 12), (b"b", 9)], 2)) for _ in range(2)]
    assert results(again[0]) == {(b"a", 0): (2, 4, 5), (b"a", 10): (1, 11, 11), (b"b", 10): (1, 12, 12)}
    assert again[0] == again[1]  # also when it runs again
    assert query.seen.dropped == {LATE: 1}


def test_offsets_that_hold_no_record_are_passed_by(tmp_path: Path) -> None:
    query = Query(tmp_path)
    query.run(read([(b"a", 5)]), span=(0, 3))
    assert query.run(span=(3, 4)) == []
    assert results(query.run(read([(b"a", 6)], 7), span=(4, 8))) == {(b"a", 0): (2, 5, 6)}


def test_a_batch_that_does_not_begin_where_one_ended_is_refused(tmp_path: Path) -> None:
    query = Query(tmp_path)
    query.run(read([(b"a", 5)]))
    with pytest.raises(CarryLost, match="/2 is missing"):
        query.run(read([(b"a", 5)], 2))


def test_a_record_without_key_counts_nowhere_and_moves_no_clock(tmp_path: Path) -> None:
    query = Query(tmp_path)
    assert results(query.run(read([(None, 500), (b"a", 5)]))) == {(b"a", 0): (1, 5, 5)}
    assert query.seen.dropped == {NULL_KEY: 1}


def one_by_one(records: list[Record], windows: TimeWindows) -> tuple[Windows, int]:
    found: Windows = {}
    stream_time, late = -1, 0
    for key, time in records:
        if key is None:
            continue
        stream_time = max(stream_time, time)
        for window in windows.windows_for(time):
            if window.end <= stream_time - windows.grace_ms:
                late += 1
                continue
            count, least, latest = found.get((key, window.start), (0, time, -1))
            found[key, window.start] = (count + 1, min(least, time), max(latest, time))
    return found, late


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", None]), st.integers(0, 60)), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=3),
    st.sampled_from([WINDOWS, TimeWindows.of(10, advance_ms=3, grace_ms=4), TimeWindows.of(7, grace_ms=0)]),
)
def test_any_cut_into_batches_and_chunks_gives_what_one_record_after_the_other_does(
    records: list[Record], cuts: list[int], windows: TimeWindows
) -> None:
    bounds = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    last: Windows = {}
    late = 0

    def chunks(start: int, stop: int) -> Iterator[pa.RecordBatch]:
        middle = (start + stop) // 2
        yield from (read(records[a:b], a) for a, b in ((start, middle), (middle, stop)) if a < b)

    with TemporaryDirectory() as directory:
        query = Query(directory, windows)
        for start, stop in pairwise(bounds):
            last |= results(query.run(*chunks(start, stop)))
            late += query.seen.dropped.get(LATE, 0)
    assert (last, late) == one_by_one(records, windows)


def test_without_windows_a_key_is_one_row_of_its_partition_or_of_all() -> None:
    batches = read([(b"a", 5), (b"b", 6)]), read([(b"a", 4)], 2)
    for reducer, task in ((ByKey(PARTS, by_partition=True), 3), (ByKey(PARTS, by_partition=False), 0)):
        found = rows(reducer, ReadingTask(Span(PLACE, 0, 3), Seen()), *batches)
        told = {row["kb"]: (row["task"], row[RECORDS.name], row[LEAST.name], row["ts"], row["origin"]) for row in found}
        assert told == {b"a": (task, 2, 4, 5, 4), b"b": (task, 1, 6, 6, 2)}


def test_behind_a_repartition_windows_belong_to_the_task_of_their_key(tmp_path: Path) -> None:
    seen = Seen()
    reducer = ByRepartitionedWindow(str(tmp_path), 2, WINDOWS, PARTS)
    found = rows(reducer, ReadingTask(Span(PLACE, 0, 3), seen), read([(b"a", 5), (b"a", 30), (b"a", 6)]))
    assert results(found) == {(b"a", 0): (1, 5, 5), (b"a", 30): (1, 30, 30)}
    assert {row["task"] for row in found} == {partition_of_key(b"a", 2)}
    assert seen.dropped == {LATE: 1}
