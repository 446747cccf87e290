"""The Python Data Source `ottla-cells`: records for tasks, a few megabytes of them in one cell.

A task works record by record in Python, and so does whoever reads: between the two Spark only has to bring records to
the right task. As rows each of them would be converted on its way into the JVM and again out of it, and the packing
would take a Python process of its own. So the reading task packs: a row is the task's slot, where the records come
from, and an Arrow stream of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ottla.model.ids import TopicPartition
from ottla.pipelines.progress import OBSERVED_READ
from ottla.pipelines.rows import headers_of
from ottla.pipelines.source.columns import HEADERS_TYPE, Columns
from ottla.pipelines.source.data_source import OttlaStreamReader, Span, columns_of
from ottla.pipelines.source.options import SourceOptions, parse_options
from ottla.pipelines.source.planned import stream_of
from ottla.streams.errors import StreamsError
from ottla.streams.record import Raw
from ottla.streams.run.stages import header_column
from ottla.streams.tasks.current import new

FORMAT: Final = "ottla-cells"
_SLOTS: Final = "cells.slots"

_TYPES: Final = {
    "slot": (pa.int32(), IntegerType()),
    "task": (pa.int32(), IntegerType()),
    "topic": (pa.string(), StringType()),
    "first": (pa.int64(), LongType()),
    "number": (pa.int64(), LongType()),
    "records": (pa.binary(), BinaryType()),
    "more": (pa.int32(), IntegerType()),
}
COLUMNS: Final = pa.schema([(name, arrow) for name, (arrow, _) in _TYPES.items()])
_RECORDS: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", HEADERS_TYPE),
    ]
)


def cells(spark: SparkSession, options: Mapping[str, str], slots: Sequence[int]) -> DataFrame:
    """Columns slot, task (the partition), topic, first (offset), number and records, of a stream. `slots` are those of
    the tasks. With the option `together` one row more stands behind the last of each partition that is read, without
    records: `more` of it is 1 if more lies at the brokers, else 0."""
    rows = stream_of(spark, Cells, {**options, _SLOTS: json.dumps(list(slots))})
    return rows.observe(OBSERVED_READ, F.coalesce(F.sum("number"), F.lit(0)).alias("records"))


class Cells(DataSource):
    """Not for users: `cells` gives it what it needs."""

    own: Final = (_SLOTS,)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return StructType([StructField(name, spark) for name, (_, spark) in _TYPES.items()])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        (slots,) = (value for name, value in self.options.items() if name.lower() == _SLOTS)
        others = {name: value for name, value in self.options.items() if name.lower() != _SLOTS}
        return _Reader(parse_options(others), json.loads(slots))


class _Reader(OttlaStreamReader):
    def __init__(self, options: SourceOptions, slots: Sequence[int]) -> None:
        super().__init__(options)
        self._slots = slots

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Span):
            return  # Spark's stand-in for "no partition at all"
        slot = slot_of(partition.place, self._slots)
        for columns in columns_of(self._options, partition):
            yield cell(slot, partition.place, columns)
        if self._options.together:
            place, more = partition.place, int(partition.more)
            yield _row(slot, place.partition, place.topic, partition.end, 0, None, more)


def slot_of(place: TopicPartition, slots: Sequence[int]) -> int:
    if place.partition < len(slots):
        return slots[place.partition]
    raise StreamsError(
        f"topic {place.topic} has got partition {place.partition}, but the application began with {len(slots)} and "
        "keeps state by partition: reset it (`ottla streams reset`), or give it another id"
    )


def cell(slot: int, place: TopicPartition, columns: Columns) -> pa.RecordBatch:
    assert columns.headers is not None, "tasks see headers"
    arrays = [
        pa.array(columns.offsets),
        columns.keys,
        columns.values,
        pa.array(columns.timestamps),
        columns.headers,
    ]
    content = pa.RecordBatch.from_arrays(arrays, schema=_RECORDS).serialize()
    return _row(slot, place.partition, place.topic, int(columns.offsets[0]), len(columns), content.to_pybytes(), None)


def _row(*row: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([each], kind.type) for each, kind in zip(row, COLUMNS, strict=True)], schema=COLUMNS
    )


def packed(records: Sequence[Raw]) -> bytes:
    """Of one partition, as `records_in` reads them."""
    _, _, offsets, keys, values, times, headers = zip(*records, strict=True)
    columns = [
        pa.array(column, kind.type) for column, kind in zip((offsets, keys, values, times), _RECORDS, strict=False)
    ]
    batch = pa.RecordBatch.from_arrays([*columns, header_column(headers)], schema=_RECORDS)
    content: bytes = batch.serialize().to_pybytes()
    return content


def columns_in(content: bytes) -> pa.RecordBatch:
    """Of a cell, in the order of offsets."""
    return pa.ipc.read_record_batch(pa.py_buffer(content), _RECORDS)


def records_in(topic: str, partition: int, batch: pa.RecordBatch) -> list[Raw]:
    """The same as records."""
    offsets, keys, values, times = (batch.column(number).to_pylist() for number in range(4))
    columns = zip(repeat(topic), repeat(partition), offsets, keys, values, times, headers_of(batch.column(4)))
    return list(map(new, repeat(Raw), columns))
