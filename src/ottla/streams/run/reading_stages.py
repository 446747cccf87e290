"""The Python Data Source `ottla-stage`: a stage without state that runs in the tasks that read its records.

Between the reading and the stage records would go into the JVM as rows and out of it again, to a Python process of its
own. Here they never leave the one they are read in: what comes out are the stage's rows, packed as the sink takes them,
or parts of aggregates. Each task ends with a row that tells how many records were read, and how many left out for which
reason: Spark brings home no accumulators of a source.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructField, StructType

from ottla.pipelines.progress import OBSERVED_ENTRIES, OBSERVED_READ
from ottla.pipelines.sink.packing import CHUNK
from ottla.pipelines.sink.writer import Pack, Packing
from ottla.pipelines.source.columns import Columns
from ottla.pipelines.source.data_source import OttlaStreamReader, Span, columns_of
from ottla.pipelines.source.offsets import from_json
from ottla.pipelines.source.options import SourceOptions, parse_options
from ottla.pipelines.source.planned import stream_of
from ottla.pipelines.type_names import type_named
from ottla.serdes.arrow import arrow_type
from ottla.serdes.types import BINARY, INT, LONG, STRING, Type
from ottla.streams.run.type_columns import spark_type

FORMAT: Final = "ottla-stage"
_STAGE, _COLUMNS = "stage.pickled", "stage.columns"

LARGEST_BYTES: Final = 4 * (1 << 20) // 3
"""Of a pickled stage as text. Spark broadcasts functions of more than 1 MiB."""

_TOLD: Final = pa.schema([("records", pa.int64()), ("dropped", pa.map_(pa.string(), pa.int64()))])
_TOLD_TYPES: Final = {"records": "bigint", "dropped": "map<string,bigint>"}
_KINDS: Final = {pa.int32(): INT, pa.int64(): LONG, pa.string(): STRING, pa.binary(): BINARY}
_CHUNKS: Final = {field.name: _KINDS[field.type] for field in CHUNK}


@dataclass(slots=True)
class Seen:
    """What a task has to tell."""

    records: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def add(self, dropped: Mapping[str, int]) -> None:
        """As an accumulator's."""
        for reason, number in dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + number


@dataclass(frozen=True, slots=True)
class ReadingTask:
    """What a stage may know of the task that it runs in."""

    span: Span
    seen: Seen
    initial_offsets_file: str | None = None

    def is_first(self) -> bool:
        """Whether nothing of the partition was read before: the query began at this offset, or at 0 in a partition that
        came later."""
        assert self.initial_offsets_file is not None
        began = from_json(Path(self.initial_offsets_file).read_text(encoding="utf-8")).get(self.span.place, 0)
        return self.span.start == began


class Stage(Protocol):
    """What runs in a task: batches of key, value, topic, partition, offset, timestamp (ms), headers, and of numbers
    (`origin`) where parts lead back to the last record."""

    def rows(self, batches: Iterator[pa.RecordBatch], task: ReadingTask) -> Iterator[pa.RecordBatch]: ...


def pickled(stage: Stage) -> str:
    found: bytes = cloudpickle.dumps(stage)  # type: ignore[no-untyped-call]
    return base64.b64encode(found).decode()


def is_large(pickled_stage: str) -> bool:
    """As one with a model in a function of its: it would travel with every task."""
    return len(pickled_stage) > LARGEST_BYTES


def partial(spark: SparkSession, options: Mapping[str, str], stage: str, columns: Mapping[str, Type]) -> DataFrame:
    """The rows of a pickled stage that gives parts of aggregates: `columns`, of which kb is never null."""
    return _read(spark, options, stage, columns).where(F.col("kb").isNotNull())


def records(spark: SparkSession, options: Mapping[str, str], stage: str, columns: Mapping[str, Type]) -> DataFrame:
    """The rows of a pickled stage that gives records: `columns`, of which the offset is never null."""
    return _read(spark, options, stage, columns).where(F.col("offset").isNotNull())


def packed(spark: SparkSession, options: Mapping[str, str], stage: str) -> DataFrame:
    """The rows of a pickled stage, packed for the sink."""
    return _read(spark, options, stage, _CHUNKS).where(F.col("rows").isNotNull())


def _read(spark: SparkSession, options: Mapping[str, str], stage: str, columns: Mapping[str, Type]) -> DataFrame:
    more = {_STAGE: stage, _COLUMNS: base64.b64encode(pickle.dumps(dict(columns))).decode()}
    rows = stream_of(spark, ReadingStage, {**options, **more})
    # A row of each task, whatever the reasons are: functions of users have their own.
    counts = F.flatten(F.collect_list(F.map_entries("dropped")))
    read = F.coalesce(F.sum("records"), F.lit(0)).alias("records")
    # In one look: each is an operator, and every row passes it.
    return rows.observe(OBSERVED_READ, read, counts.alias(OBSERVED_ENTRIES)).drop(*_TOLD.names)


class ReadingStage(DataSource):
    """Not for users: `partial` and `packed` give it what it needs."""

    own: Final = (_STAGE, _COLUMNS)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _own(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.options.items() if name.lower() in self.own}

    def schema(self) -> StructType:
        columns = {name: spark_type(kind) for name, kind in _columns(self._own()).items()}
        return StructType([StructField(name, type_named(kind)) for name, kind in {**columns, **_TOLD_TYPES}.items()])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        own = self._own()
        others = {name: value for name, value in self.options.items() if name.lower() not in own}
        return _Reader(parse_options(others), own)


def _columns(own: Mapping[str, str]) -> dict[str, Type]:
    found: dict[str, Type] = pickle.loads(base64.b64decode(own[_COLUMNS]))
    return found


def schema_of(columns: Mapping[str, Type]) -> pa.Schema:
    return pa.schema([*((name, arrow_type(kind)) for name, kind in columns.items()), *_TOLD])


class _Reader(OttlaStreamReader):
    def __init__(self, options: SourceOptions, own: Mapping[str, str]) -> None:
        super().__init__(options)
        self._own = own
        """The stage stays as it came until a task needs it: who unpacks functions of the user's file and packs them
        again would send their names instead."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Span):
            return  # Spark's stand-in for "no partition at all"
        stage: Stage = pickle.loads(base64.b64decode(self._own[_STAGE]))
        task = ReadingTask(partition, Seen(), self._options.initial_offsets_file)
        yield from rows_of(stage, task, columns_of(self._options, partition), schema_of(_columns(self._own)))


def rows_of(
    stage: Stage, task: ReadingTask, read: Iterator[Columns], schema: pa.Schema, pack: Packing | None = None
) -> Iterator[pa.RecordBatch]:
    """Of one task."""
    own = [name for name in schema.names if name not in _TOLD.names]
    parts = own != CHUNK.names
    found = stage.rows(_batches(task, read, numbered=parts), task)
    for made in found if parts else (pack or Pack(task.seen.add))(found):
        nothing = [pa.nulls(made.num_rows, each.type) for each in _TOLD]
        yield pa.RecordBatch.from_arrays([*map(made.column, own), *nothing], schema=schema)
    told = {"records": task.seen.records, "dropped": list(task.seen.dropped.items())}
    yield pa.RecordBatch.from_pylist([told], schema=schema)


def _batches(task: ReadingTask, read: Iterator[Columns], *, numbered: bool) -> Iterator[pa.RecordBatch]:
    """As stages take them."""
    span = task.span
    for columns in read:
        count = len(columns)
        task.seen.records += count
        arrays = {
            "key": columns.keys,
            "value": columns.values,
            "topic": pa.repeat(pa.scalar(span.place.topic, pa.string()), count),
            "partition": pa.array(np.full(count, span.place.partition, np.int32)),
            "offset": pa.array(columns.offsets),
            "timestamp": pa.array(columns.timestamps),
        }
        if columns.headers is not None:
            arrays["headers"] = columns.headers
        if numbered:
            arrays["origin"] = pa.array((columns.offsets + span.base) << 1 | columns.have_headers)
        yield pa.record_batch(arrays)
