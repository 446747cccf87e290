"""Rows are gathered into chunks by partition, and come out of them in the order of their source."""

from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.errors import KafkaError
from ottla.client.partitioner import partition_of_key
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink import packing
from ottla.pipelines.sink.encoding import encode_headers
from ottla.pipelines.sink.limits import UNKNOWN, Instead, Limit, Refused
from ottla.pipelines.sink.packing import CHUNK_ORDER, Packer, Topics, chunks_of, merged, writer_of
from ottla.pipelines.source.columns import HEADERS_TYPE
from tests.support.examples import examples

COUNTS = {"a": 3, "b": 1}
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("src_partition", pa.int32()),
        ("src_offset", pa.int64()),
        ("seq", pa.int32()),
    ]
)


class Row(NamedTuple):
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes
    timestamp: int | None
    src_partition: int | None
    src_offset: int | None
    seq: int | None


rows = st.builds(
    Row,
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, 0]),
    st.binary(max_size=3),
    st.binary(max_size=5),
    st.integers(0, 10),
    st.none() | st.integers(0, 2),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 3),
)


def batch_of(given: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row._asdict() for row in given], schema=SCHEMA)


def packed_by(tasks: list[list[list[Row]]], writers: int = 2) -> list[pa.RecordBatch]:
    return [
        chunk
        for task, batches in enumerate(tasks)
        for chunk in Packer(Topics(COUNTS), writers=writers, task=task, spread=0).pack(map(batch_of, batches))
    ]


def shuffled(chunks: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """What Spark does: all chunks by CHUNK_ORDER."""
    return [pa.Table.from_batches(chunks).sort_by([(name, "ascending") for name in CHUNK_ORDER]).combine_chunks()]


def place_of(row: Row) -> TopicPartition:
    chosen = partition_of_key(row.key or b"", COUNTS[row.topic]) if row.partition is None else row.partition
    return TopicPartition(row.topic, chosen)


def order_of(row: Row) -> tuple[int, ...]:
    return tuple(-1 if number is None else number for number in row[5:])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(st.lists(rows, max_size=8), max_size=3), min_size=1, max_size=3), st.integers(0, 200))
def test_every_partition_gets_its_rows_in_order(tasks: list[list[list[Row]]], enough: int) -> None:
    sent = [row for task in tasks for batch in task for row in batch]
    if not sent:
        assert packed_by(tasks) == []
        return
    (table,) = shuffled(packed_by(tasks))
    got: dict[TopicPartition, list[tuple[object, ...]]] = {}
    for place, chunks in groupby(chunks_of(table.to_batches()), key=lambda chunk: chunk.place):
        assert place not in got
        got[place] = [
            (key, value, int(time))
            for part in merged(chunks, enough)
            for key, value, time in zip(part.key.to_pylist(), part.value.to_pylist(), part.timestamp, strict=True)
        ]
    expected: dict[TopicPartition, list[tuple[object, ...]]] = {}
    # Equal rows keep their order inside a task; between tasks nothing is promised, so those are compared as sets.
    for row in sorted(sent, key=order_of):
        expected.setdefault(place_of(row), []).append((row.key, row.value, row.timestamp))
    if len(tasks) == 1:
        assert got == expected
    assert {place: sorted(map(repr, found)) for place, found in got.items()} == {
        place: sorted(map(repr, found)) for place, found in expected.items()
    }


def test_overlapping_chunks_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 1)
    one = [[Row("b", None, b"", b"%d" % n, 0, 0, n, 0)] for n in (0, 2, 4)]
    two = [[Row("b", None, b"", b"%d" % n, 0, 0, n, 0) for n in (1, 3, 5)]]
    (table,) = shuffled(packed_by([one, two]))
    assert table.num_rows == 4
    parts = list(merged(chunks_of(table.to_batches()), 1))
    assert [value for part in parts for value in part.value.to_pylist()] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_a_partition_has_one_writer_and_neighbours_have_others() -> None:
    assert {writer_of("topic", partition, 2) for partition in (0, 2, 4)} != {writer_of("topic", 1, 2)}
    chunks = packed_by([[[Row("a", index, None, b"", 0, None, None, None) for index in (0, 1, 2)]]], writers=3)
    assert sorted(chunks[0].column("writer").to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("row", "error", "text"),
    [
        (Row("a", 3, None, b"", 0, None, None, None), KafkaError, "numbered from 0 to 2"),
        (Row("a", -2, None, b"", 0, None, None, None), KafkaError, "numbered from 0 to 2"),
        (Row("c", None, None, b"", 0, None, None, None), KafkaError, "c"),
        (Row("a", None, None, b"", -5, None, None, None), ValueError, "timestamp is -5"),
    ],
)
def test_a_row_that_cannot_be_written_is_refused(row: Row, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        packed_by([[[row]]])


def test_a_row_needs_a_topic() -> None:
    row = Row("a", None, None, b"", 0, None, None, None)._replace(topic=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no topic"):
        packed_by([[[row]]])


class SmallTopics(Topics):
    def ask_limit(self, topic: str) -> Limit:
        return Limit(100, needs_keys=True) if topic == "a" else UNKNOWN


def test_a_judge_says_what_is_written_instead_of_a_record_that_its_topic_does_not_take() -> None:
    judged: list[Refused] = []

    def judge(refused: Refused) -> list[Instead]:
        judged.append(refused)
        return [Instead("b", 0, b"letter", None, (("h", b"1"),), 7)] if refused.key else []

    given = [
        Row("a", 0, b"k", b"short", 1, 2, 0, None),
        Row("a", 2, b"k", bytes(40), 1, 2, 1, None),
        Row("a", None, None, b"no key", 1, 2, 2, None),
        Row("b", None, b"k", bytes(40), 1, 2, 3, None),
    ]
    packer = Packer(SmallTopics(COUNTS), writers=1, task=0, spread=0, judge=judge)
    found = [
        (chunk.place, row["key"], row["value"], row["headers"], row["src_offset"])
        for chunk in chunks_of(packer.pack([batch_of(given)]))
        for row in chunk.packed.to_pylist()
    ]
    letter = encode_headers(pa.array([[{"key": "h", "value": b"1"}]], HEADERS_TYPE))
    assert letter is not None
    assert found == [
        (TopicPartition("a", 0), b"k", b"short", None, 0),
        (TopicPartition("b", 0), b"k", bytes(40), None, 3),
        (TopicPartition("b", 0), b"letter", None, letter[0].as_py(), 1),
    ]
    assert [(each.topic, each.partition, each.key, each.error.error) for each in judged] == [
        ("a", 2, b"k", Errors.MESSAGE_TOO_LARGE),
        ("a", None, None, Errors.INVALID_RECORD),
    ]
