"""The number of a record: larger in every later batch, and the way back to the record."""

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.pipelines.source import origins
from ottla.pipelines.source.columns import HEADERS_TYPE
from ottla.pipelines.source.origins import MARK, Origins, Range, numbered, resolved

A, B, C = (TopicPartition("in", partition) for partition in range(3))
steps = st.lists(st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 5), min_size=1), min_size=1, max_size=6)


@given(st.dictionaries(st.sampled_from([A, B]), st.integers(0, 9)), steps)
def test_numbers_are_unique_grow_from_batch_to_batch_and_lead_back(
    start: dict[TopicPartition, int], lengths: list[dict[TopicPartition, int]]
) -> None:
    seen = -1
    for length in lengths:
        end = {place: start.get(place, 0) + length.get(place, 0) for place in start | length}
        batch = Origins.between(start, end)
        numbers = {
            base + offset: (place, offset)
            for (place, first, last), base in zip(batch.ranges, batch.bases(), strict=True)
            for offset in range(first, last)
        }
        assert len(numbers) == sum(last - first for _, first, last in batch.ranges)
        assert all(number > seen for number in numbers)
        back = batch.records(numbers)
        assert {number: (place, offset) for place, found in back.items() for offset, number in found.items()} == numbers
        seen, start = max(numbers, default=seen), end


def headers(*found: list[dict[str, Any]] | None) -> pa.RecordBatch:
    return pa.record_batch({"key": pa.array([b""] * len(found)), "headers": pa.array(found, HEADERS_TYPE)})


def nobody() -> Any:
    """Instead of a cluster."""


def mark(number: int) -> dict[str, Any]:
    return {"key": MARK, "value": struct.pack(">q", numbered(0, number, headers=True))}


def test_marks_become_the_headers_of_their_records_and_all_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own, found = {"key": "own", "value": b"1"}, {"key": "h", "value": None}
    asked: list[set[int]] = []

    def headers_of(_cluster: object, _origins: Origins, numbers: set[int]) -> dict[int, list[dict[str, Any]]]:
        asked.append(numbers)
        return {7: [found, found], 8: []}

    monkeypatch.setattr(origins, "headers_of", headers_of)
    batches = [headers(None), headers([own], [mark(7)]), headers(None, [mark(8)], [mark(7), own])]
    rows = resolved(iter(batches), Origins((Range(A, 0, 9),)), nobody)
    told = [row for batch in rows for row in batch["headers"]]
    assert [row.as_py() for row in told] == [None, [own], [found, found], None, None, [found, found, own]]
    assert asked == [{7, 8}]


def test_without_marks_nobody_is_asked() -> None:
    batches = [headers(None), headers([{"key": "own", "value": b""}])]
    assert list(resolved(batches, Origins(()), nobody)) == batches
