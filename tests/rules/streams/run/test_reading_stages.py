"""A stage that runs where records are read: its rows, and what it tells of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.packing import CHUNK, Packer, Topics, chunks_of
from ottla.pipelines.source.columns import HEADERS_TYPE, Columns
from ottla.pipelines.source.data_source import Span
from ottla.serdes.types import BINARY, INT, LONG, STRING
from ottla.streams.expressions.parts import RECORDS
from ottla.streams.record import Raw
from ottla.streams.run.reading_stages import LARGEST_BYTES, ReadingTask, Seen, is_large, pickled, rows_of, schema_of
from ottla.streams.run.stages import COUNTED, CountingStage, PythonStage
from ottla.streams.tasks.operators.base import NO_KEY_FOR_REPARTITION
from tests.rules.streams.run.test_stages import spec_of, words

SPAN = Span(TopicPartition("in", 1), 4, 7, base=100)
CHUNKS = schema_of(
    {
        "writer": INT,
        "topic": STRING,
        "partition": INT,
        "src_partition": INT,
        "src_offset": LONG,
        "seq": INT,
        "task": INT,
        "chunk": INT,
        "rows": BINARY,
    }
)
COUNTS = schema_of(COUNTED.columns())


class OneEach(Topics):
    """Every topic has one partition."""

    def ask(self, topic: str) -> int:
        return 1


def told_by(stage: PythonStage, schema: pa.Schema) -> list[dict[str, Any]]:
    pack = Packer(OneEach({}), writers=1, task=0, spread=0).pack
    found = rows_of(stage, ReadingTask(SPAN, Seen()), read(), schema, pack)
    return [row for batch in found for row in batch.to_pylist()]


def read() -> Iterator[Columns]:
    for offsets, lines in (([4, 5], [b"a b", b"nobody a"]), ([6], [b"b"])):
        count = len(lines)
        yield Columns(
            pa.nulls(count, pa.binary()),
            pa.array(lines, pa.binary()),
            np.array(offsets),
            np.array(offsets) * 10,
            np.zeros(count, np.int32),
            pa.nulls(count, HEADERS_TYPE),
            np.zeros(count, np.bool_),
        )


def test_rows_leave_packed_and_the_last_row_tells_what_was_read_and_left_out() -> None:
    *chunks, told = told_by(PythonStage(spec_of(words)), CHUNKS)
    cut = pa.RecordBatch.from_pylist([{name: chunk[name] for name in CHUNK.names} for chunk in chunks], schema=CHUNK)
    rows = [row for _, packed in chunks_of([cut]) for row in packed.to_pylist()]
    assert [(row["key"], row["timestamp"], row["src_partition"], row["src_offset"]) for row in rows] == [
        (b"a", 40, 1, 4),
        (b"b", 40, 1, 4),
        (b"a", 50, 1, 4),
        (b"b", 60, 1, 6),
    ]
    assert told == {**dict.fromkeys(CHUNK.names), "records": 3, "dropped": [(NO_KEY_FOR_REPARTITION, 1)]}


def test_counts_lead_back_to_the_number_of_the_last_piece() -> None:
    spec = spec_of(words)
    topic = next(raw.topic for raw in spec.task(1, dict.__getitem__, 0).process([Raw("in", 1, 0, None, b"a", 5)]))  # type: ignore[arg-type]
    stage = CountingStage(spec, topic, by_partition=True)
    *counts, told = told_by(stage, COUNTS)
    found = {row["kb"]: (row["task"], row["ts"], row["origin"] >> 1, row[RECORDS.name]) for row in counts}
    assert found == {b"a": (1, 50, 104, 2), b"b": (1, 60, 106, 2)}
    assert (told["kb"], told["records"], told["dropped"]) == (None, 3, [(NO_KEY_FOR_REPARTITION, 1)])


def test_a_stage_with_a_large_function_stays_behind_the_reading_tasks() -> None:
    model = bytes(LARGEST_BYTES)
    large = spec_of(lambda builder: builder.stream("in").filter(lambda k, v: bool(model)).to("out"))
    assert is_large(pickled(PythonStage(large)))
    assert not is_large(pickled(PythonStage(spec_of(words))))
