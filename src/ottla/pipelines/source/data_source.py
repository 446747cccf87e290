"""The Python Data Source `ottla`: topics as Spark rows, in batches and as a stream, with exact offsets.

Offsets are planned on the driver; each topic partition of a micro-batch is one task, which fetches by wire and hands
Arrow record batches to Spark. Names, types and options are those of Spark's own Kafka source.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.partition_reader import DataLost, PartitionReader
from ottla.client.reach import Reach
from ottla.model.ids import TopicPartition
from ottla.pipelines.carry import Carry
from ottla.pipelines.source.batch_size import FIRST, BatchSize
from ottla.pipelines.source.columns import HEADERS_TYPE, NOTHING_YET, Columns, read_columns, running_maximum
from ottla.pipelines.source.offsets import EARLIEST, LATEST, OffsetJson, Offsets, from_json, more_of, share, to_json
from ottla.pipelines.source.options import Position, SourceOptions, parse_options
from ottla.pipelines.source.origins import Origins
from ottla.pipelines.source.positions import METADATA_AGE_S, Positions, open_cluster, together
from ottla.pipelines.workers import settle_worker

FORMAT: Final = "ottla"
FIRST_LOOK_S: Final = 0.02
LAST_LOOK_S: Final = 0.1
"""How soon brokers are asked again by a stream that waits for records: each time later, up to the last."""

logger = logging.getLogger(__name__)


def source_schema(options: SourceOptions) -> StructType:
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if options.headers:
        fields.append(StructField("headers", ArrayType(header)))
    if options.origin:
        fields.append(StructField("origin", LongType()))
    if options.stream_time is not None:
        fields.append(StructField("stream_time", LongType()))
    return StructType(fields)


def arrow_schema(options: SourceOptions) -> pa.Schema:
    """What Spark expects for `source_schema`, to the letter."""
    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
    ]
    if options.headers:
        fields.append(("headers", HEADERS_TYPE))
    if options.origin:
        fields.append(("origin", pa.int64()))
    if options.stream_time is not None:
        fields.append(("stream_time", pa.int64()))
    return pa.schema(fields)


class Span(InputPartition):
    """Offsets [start, end) of one topic partition: one task."""

    def __init__(
        self, place: TopicPartition, start: int, end: int, base: int = 0, *, more: bool = False, is_new: bool = False
    ) -> None:
        super().__init__(tuple(place))
        self.place = place
        self.start = start
        self.end = end
        self.base = base
        """What an offset is added to for the number of its record."""
        self.more = more
        """Whether more of the partition was at the brokers when the batch was planned (option `together`)."""
        self.is_new = is_new
        """Whether it is read from its beginning: what retention took before that was never promised."""


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Spark looks for one of the same name in the session that is active, and refuses what that has: so a session
    beside one that has it (`newSession`) is made the active one meanwhile."""
    sessions: Any = cast("Any", spark)._jvm.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(cast("Any", spark)._jsparkSession)
    try:
        spark.dataSource.register(source)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())


class OttlaDataSource(DataSource):
    """`spark.read.format("ottla")` and `spark.readStream.format("ottla")`, once `register` was called."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @classmethod
    def register(cls, spark: SparkSession) -> None:
        register(spark, cls)

    def schema(self) -> StructType:
        return source_schema(parse_options(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        _require_schema(schema, options)
        return OttlaReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = parse_options(self.options)
        _require_schema(schema, options)
        return OttlaStreamReader(options)


class Planner(DataSource):
    """Any source of ours for the process in which Spark plans its batches: where they begin and end. What is done with
    the records is not in there, and what that needs is not imported."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return OttlaStreamReader(parse_options(self.options))


def _require_schema(asked: StructType, options: SourceOptions) -> None:
    given = source_schema(options)
    if asked != given:
        raise ValueError(f"the source {FORMAT} has the columns {given.simpleString()}, not {asked.simpleString()}")


class OttlaReader(DataSourceReader):
    """A batch query: what is there now, between two positions."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        starting = options.starting or Position(EARLIEST)
        if starting == Position(LATEST) or (starting.exactly and LATEST in starting.exactly.values()):
            raise ValueError("startingOffsets cannot be the latest in a batch query: nothing would be read")
        with open_cluster(options) as cluster:
            positions = Positions(cluster, options)
            start = positions.resolve("startingOffsets", starting)
            end = positions.resolve("endingOffsets", options.ending)
        return _spans(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_span(self._options, partition)


class OttlaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query. One instance lives on the driver; tasks have copies of their own."""

    def __init__(self, options: SourceOptions, first: int = FIRST) -> None:
        """`first`: records of the first batch, where its size is found out by time."""
        self._options = options
        self._positions_now: Positions | None = None
        self._seen: Offsets | None = None
        """The last answer of the brokers, for progress reports."""
        self._ceiling: Offsets | None = None
        """Of a query that reads what is there now and then ends."""
        self._batch_size = None if options.target_ms is None else BatchSize(options.target_ms / 1000, first)
        self.ending = False
        """Whether nobody needs it any more: it goes on waiting for no records."""

    @property
    def _positions(self) -> Positions:
        if self._positions_now is None:
            self._positions_now = Positions(open_cluster(self._options), self._options)
        return self._positions_now

    @property
    def topic_ids(self) -> Mapping[str, bytes]:
        """Of the topics that are read; empty ones come from brokers that have no ids."""
        return self._positions.topic_ids

    def initialOffset(self) -> OffsetJson:
        return to_json(self._positions.starting(self._options.starting or Position(LATEST)))

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._ceiling = self._positions.latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> OffsetJson:
        known = from_json(start)
        self._seen = self._latest(known)
        self._require_nothing_lost(known, self._seen)
        begin = {**self._named, **known}
        end = self._under_ceiling(begin, self._seen)
        latest = end
        if self._batch_size is not None:
            end = share(begin, end, self._batch_size.next(begin, time.monotonic()))
        end = self._limited(begin, end, limit)
        if not self._options.together:
            return to_json(end)
        end = together(begin, end, latest, self._positions)
        return to_json(end, [place for place, offset in end.items() if offset < latest[place]])

    @property
    def _named(self) -> Offsets:
        """Where partitions begin that a checkpoint does not know, as far as the options say it: the query was told to
        read others than before."""
        starting = self._options.starting
        exactly = {} if starting is None or starting.exactly is None else starting.exactly
        return {place: offset for place, offset in exactly.items() if offset >= 0}

    def _latest(self, begin: Offsets) -> Offsets:
        """Waits for something new, if the options say so: not in a query that is to end."""
        latest = self._positions.latest(fresh=self._seen is None)
        if self._options.wait_ms is None or self._ceiling is not None:
            return latest
        deadline, pause = time.monotonic() + self._options.wait_ms / 1000, FIRST_LOOK_S
        while latest == begin and not self.ending and (left := deadline - time.monotonic()) > 0:
            self._positions.await_news(begin, min(left, METADATA_AGE_S))
            if self.ending:
                break
            latest = self._positions.latest(fresh=False)
            if latest == begin:  # several brokers, or what came is not committed
                time.sleep(min(pause, max(deadline - time.monotonic(), 0)))
                pause = min(pause * 2, LAST_LOOK_S)
        return latest

    def _limited(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> Offsets:
        if isinstance(limit, ReadAllAvailable):
            return end
        if isinstance(limit, ReadMaxRows):
            end = share(begin, end, limit.max_rows)
        most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        if most_bytes is not None:
            end = share(begin, end, most_bytes, self._positions.weights(begin, end))
        return end

    def _under_ceiling(self, begin: Offsets, latest: Offsets) -> Offsets:
        """A query that reads what is there now does not follow what grows, and meets no partition made since."""
        if self._ceiling is None:
            return latest
        return {
            place: min(latest[place], max(ceiling, begin.get(place, 0)))
            for place, ceiling in self._ceiling.items()
            if place in latest
        }

    def _require_nothing_lost(self, begin: Offsets, latest: Offsets) -> None:
        """What the query is not to read any more is no loss."""
        for place, offset in begin.items():
            if place not in latest and self._options.topics.has(place):
                self._lost(DataLost(place, offset, offset + 1, "the partition is not there any more"))
            elif latest.get(place, offset) < offset:
                reason = f"the log ends at {latest[place]}: it was truncated, or the topic made anew"
                self._lost(DataLost(place, latest[place], offset, reason))

    def _lost(self, loss: DataLost) -> None:
        if self._options.fail_on_data_loss:
            raise loss
        logger.warning("%s; going on, as failOnDataLoss=false asks for", loss)

    def reportLatestOffset(self) -> OffsetJson | None:
        return None if self._seen is None else to_json(self._seen)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        known, asked = from_json(start), self._options.topics.has
        first = {**self._named, **known}
        # What of an unfinished batch is not to be read any more is left to whoever reads it now.
        last = {place: offset for place, offset in from_json(end).items() if asked(place)}
        if not self._options.fail_on_data_loss:  # a log that has shrunk is followed from where it ends now
            last = {place: max(offset, first.get(place, 0)) for place, offset in last.items()}
        return _spans(first, last, more_of(end), self._options.origin_base)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_span(self._options, partition)

    def end(self) -> None:
        """From another thread: `stop` follows when what is being asked is answered."""
        self.ending = True

    def stop(self) -> None:
        if self._positions_now is not None:
            self._positions_now.close()
            self._positions_now = None


def _spans(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    more: frozenset[TopicPartition] = frozenset(),
    base: int = 0,
) -> list[InputPartition]:
    """A partition that appears in `end` alone is new, and read from its first offset, whichever that is by now."""
    spans: list[InputPartition] = []
    origins = Origins.between(start, end, base)
    for (place, first, last), number in zip(origins.ranges, origins.bases(), strict=True):
        if first > last:
            # A replayed first batch whose beginning was asked for again, and `latest` had moved on by then.
            raise ValueError(
                f"the offsets of {place} begin at {first} and end at {last}; "
                "a stream that does not begin at fixed offsets needs the option initialOffsetsFile"
            )
        if first < last:
            spans.append(Span(place, first, last, number, more=place in more, is_new=place not in start))
    return spans


# In the tasks.

_clusters: dict[Reach, Cluster] = {}
"""Of this worker process. Spark keeps workers, so most tasks find a connection open."""


def read_span(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one task, a few megabytes at a time. Raises DataLost, CorruptAnswer, KafkaError, TimedOut."""
    if not isinstance(partition, Span):
        return  # Spark's stand-in for "no partition at all"
    rows = _Rows(options, partition)
    for columns in columns_of(options, partition):
        yield rows.batch(columns)
    rows.finish()


def columns_of(options: SourceOptions, span: Span) -> Iterator[Columns]:
    """The same before they are rows. Raises as `read_span` does."""
    settle_worker()
    reader = PartitionReader(
        _cluster(options),
        span.place,
        span.start,
        span.end,
        isolation=options.isolation,
        skip_lost=span.is_new or not options.fail_on_data_loss,
    )
    name = str(span.place)
    for low, batches in reader:
        yield from read_columns(name, batches, low, span.end, with_headers=options.headers, omitted=options.omitted)


def _cluster(options: SourceOptions) -> Cluster:
    cluster = _clusters.get(options.reach)
    if cluster is None:
        cluster = _clusters[options.reach] = open_cluster(options)
    return cluster


def _times(directory: str, place: TopicPartition) -> Carry[int]:
    return Carry(Path(directory, str(place)), lambda time: b"%d" % time, int)


class _Rows:
    """Columns become Spark's rows: the ones that are the same in every row are made once."""

    __slots__ = ("_carry", "_origin", "_partition", "_schema", "_span", "_stream_time", "_topic")

    def __init__(self, options: SourceOptions, span: Span) -> None:
        self._schema = arrow_schema(options)
        self._origin = options.origin
        self._span = span
        self._topic = pa.array([], pa.string())
        self._partition = pa.array([], pa.int32())
        self._carry = None if options.stream_time is None else _times(options.stream_time, span.place)
        left = None if self._carry is None else self._carry.latest(span.start)
        self._stream_time = NOTHING_YET if left is None else left

    def batch(self, columns: Columns) -> pa.RecordBatch:
        count = len(columns)
        self._stretch(count)
        arrays = [
            columns.keys,
            columns.values,
            self._topic.slice(0, count),
            self._partition.slice(0, count),
            pa.array(columns.offsets),
            pa.array(columns.timestamps * 1000).cast(self._schema.field("timestamp").type),
            pa.array(columns.timestamp_types),
        ]
        if columns.headers is not None:
            arrays.append(columns.headers)
        if self._origin:
            arrays.append(pa.array((columns.offsets + self._span.base) << 1 | columns.have_headers))
        if self._carry is not None:
            times = running_maximum(columns.timestamps, self._stream_time)
            self._stream_time = int(times[-1])
            arrays.append(pa.array(times))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _stretch(self, count: int) -> None:
        if len(self._topic) < count:
            self._topic = pa.repeat(pa.scalar(self._span.place.topic, pa.string()), count)
            self._partition = pa.array(np.full(count, self._span.place.partition, np.int32))

    def finish(self) -> None:
        if self._carry is not None:
            self._carry.write(self._span.end, self._stream_time)
