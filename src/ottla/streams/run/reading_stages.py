"""The Python Data Source `ottla-stage`: a stage without state that runs in the tasks that read its records.

Between the reading and the stage records would go into the JVM as rows and out of it again, to a Python process of its
own. Here they never leave the one they are read in: what comes out are the stage's rows, packed for the sink, or
counts. Each task ends with a row that tells how many records were read, and how many left out for which reason:
Spark brings home no accumulators of a source.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, IntegerType, LongType, MapType, StringType, StructField, StructType

from ottla.pipelines.progress import OBSERVED_DROPS, OBSERVED_READ
from ottla.pipelines.rows import PACKED_ROWS
from ottla.pipelines.source.columns import Columns
from ottla.pipelines.source.data_source import OttlaStreamReader, Span, columns_of
from ottla.pipelines.source.options import SourceOptions, parse_options
from ottla.streams.run.stages import Dropped, PythonStage
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR, PROCESSING_ERROR, SERIALIZATION_ERROR
from ottla.streams.tasks.inputs import INVALID_TIMESTAMP
from ottla.streams.tasks.operators.base import NO_KEY_FOR_REPARTITION, NULL_KEY, NULL_KEY_OR_VALUE

FORMAT: Final = "ottla-stage"
_STAGE, _COUNTS = "stage.pickled", "stage.counts"

LARGEST_BYTES: Final = 1 << 20
"""Of a pickled stage; Spark broadcasts functions that are larger."""

REASONS: Final = (
    DESERIALIZATION_ERROR,
    INVALID_TIMESTAMP,
    NO_KEY_FOR_REPARTITION,
    NULL_KEY,
    NULL_KEY_OR_VALUE,
    PROCESSING_ERROR,
    SERIALIZATION_ERROR,
)
"""For which nodes without state leave out records."""

_TOLD: Final = {
    "records": (pa.int64(), LongType()),
    "dropped": (pa.map_(pa.string(), pa.int64()), MapType(StringType(), LongType())),
}
_COUNTED: Final = {
    "kb": (pa.binary(), BinaryType()),
    "task": (pa.int32(), IntegerType()),
    "ts": (pa.int64(), LongType()),
    "origin": (pa.int64(), LongType()),
    "n": (pa.int64(), LongType()),
    **_TOLD,
}
_PACKED: Final = {PACKED_ROWS: (pa.binary(), BinaryType()), **_TOLD}


def pickled(stage: PythonStage) -> str | None:
    """None for one that is too large, as one with a model in a function of its: it would travel with every task."""
    found: bytes = cloudpickle.dumps(stage.without_counter())  # type: ignore[no-untyped-call]
    return base64.b64encode(found).decode() if len(found) <= LARGEST_BYTES else None


def counted(spark: SparkSession, options: Mapping[str, str], stage: str) -> DataFrame:
    """The rows of a pickled CountingStage: kb, task, ts, origin, n."""
    return _read(spark, options, stage, counts=True).where(F.col("kb").isNotNull())


def packed(spark: SparkSession, options: Mapping[str, str], stage: str) -> DataFrame:
    """The rows of a pickled stage, packed for the sink."""
    return _read(spark, options, stage, counts=False).where(F.col(PACKED_ROWS).isNotNull())


def _read(spark: SparkSession, options: Mapping[str, str], stage: str, *, counts: bool) -> DataFrame:
    spark.dataSource.register(ReadingStage)
    more = {_STAGE: stage, _COUNTS: str(counts)}
    rows = spark.readStream.format(FORMAT).options(**options, **more).load()
    reasons = [F.coalesce(F.sum(F.col("dropped")[reason]), F.lit(0)).alias(reason) for reason in REASONS]
    told = rows.observe(OBSERVED_READ, F.coalesce(F.sum("records"), F.lit(0)).alias("records")).observe(
        f"{OBSERVED_DROPS}-by-stage", *reasons
    )
    return told.drop(*_TOLD)


class ReadingStage(DataSource):
    """Not for users: `counted` and `packed` give it what it needs."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _own(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.options.items() if name.lower() in (_STAGE, _COUNTS)}

    def schema(self) -> StructType:
        return StructType([StructField(name, spark) for name, (_, spark) in _columns(self._own()).items()])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        own = self._own()
        others = {name: value for name, value in self.options.items() if name.lower() not in own}
        return _Reader(parse_options(others), own)


def _columns(own: Mapping[str, str]) -> dict[str, tuple[pa.DataType, Any]]:
    return _COUNTED if own[_COUNTS] == str(True) else _PACKED


class _Reader(OttlaStreamReader):
    def __init__(self, options: SourceOptions, own: Mapping[str, str]) -> None:
        super().__init__(options)
        self._own = own
        """The stage stays as it came until a task needs it: who unpacks functions of the user's file and packs them
        again would send their names instead."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Span):
            return  # Spark's stand-in for "no partition at all"
        stage: PythonStage = pickle.loads(base64.b64decode(self._own[_STAGE]))
        schema = pa.schema([(name, arrow) for name, (arrow, _) in _columns(self._own).items()])
        yield from rows_of(stage, partition, columns_of(self._options, partition), schema)


class _Seen:
    """What a task has to tell."""

    def __init__(self) -> None:
        self.records = 0
        self.dropped: Dropped = {}

    def add(self, dropped: Dropped) -> None:
        """As an accumulator's."""
        for reason, number in dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + number


def rows_of(stage: PythonStage, span: Span, read: Iterator[Columns], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Of one task."""
    seen = _Seen()
    counts = "kb" in schema.names
    for made in stage.with_counter(seen)(_batches(span, read, seen, numbered=counts)):
        columns = made.columns if counts else [_cell(made)]
        count = len(columns[0])
        nothing = [pa.nulls(count, _TOLD[name][0]) for name in _TOLD]
        yield pa.RecordBatch.from_arrays([*columns, *nothing], schema=schema)
    told = {"records": seen.records, "dropped": list(seen.dropped.items())}
    yield pa.RecordBatch.from_pylist([told], schema=schema)


def _batches(span: Span, read: Iterator[Columns], seen: _Seen, *, numbered: bool) -> Iterator[pa.RecordBatch]:
    """As stages take them. Counts lead back to the last record, by its number."""
    for columns in read:
        count = len(columns)
        seen.records += count
        arrays = {
            "key": columns.keys,
            "value": columns.values,
            "topic": pa.repeat(pa.scalar(span.place.topic, pa.string()), count),
            "partition": pa.array(np.full(count, span.place.partition, np.int32)),
            "offset": pa.array(columns.offsets),
            "timestamp": pa.array(columns.timestamps),
            "headers": columns.headers,
        }
        if numbered:
            arrays["origin"] = pa.array((columns.offsets + span.base) << 1 | columns.have_headers)
        yield pa.record_batch(arrays)


def _cell(made: pa.RecordBatch) -> pa.Array:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_batch(made)
    return pa.array([sink.getvalue().to_pybytes()], pa.binary())
