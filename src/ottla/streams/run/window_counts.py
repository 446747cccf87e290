"""The Python Data Source `ottla-window-counts`: a topic's records, counted by key and window in the tasks that read
them.

For the query that most people write first: a count by key and window with nothing in between. The records never leave
the task, and Spark keeps no state: what comes out is a row for each window that a micro-batch changed, with all that
was ever counted in it. Each task ends with a row without a key, which tells how many records were read and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ottla.pipelines.progress import OBSERVED_DROPS, OBSERVED_READ
from ottla.pipelines.rows import have_no_headers
from ottla.pipelines.sink.encoding import binary, murmur2_of
from ottla.pipelines.source.columns import HEADERS_TYPE, running_maximum
from ottla.pipelines.source.data_source import OttlaStreamReader, Span, read_span
from ottla.pipelines.source.offsets import from_json
from ottla.pipelines.source.options import SourceOptions, parse_options
from ottla.streams.run.open_windows import SCHEMA, WINDOWS, Carried, OpenWindows, summed
from ottla.streams.run.windowing import Ints, late_windows, open_windows
from ottla.streams.tasks.inputs import INVALID_TIMESTAMP
from ottla.streams.tasks.operators.base import LATE, NULL_KEY
from ottla.streams.windows import TimeWindows

FORMAT: Final = "ottla-window-counts"
_NOWHERE: Final = -1
"""As an offset: the window was counted in earlier batches only."""
ENOUGH_ROWS: Final = 200_000
"""Counts of parts of a batch that are held before they are put together."""

_PREFIX: Final = "count."
_SIZE, _ADVANCE, _GRACE = f"{_PREFIX}size.ms", f"{_PREFIX}advance.ms", f"{_PREFIX}grace.ms"
_DIRECTORY, _TEXT, _SKIP = f"{_PREFIX}directory", f"{_PREFIX}text", f"{_PREFIX}skip.invalid"

DROPPED: Final = {"late": LATE, "keyless": NULL_KEY, "untimed": INVALID_TIMESTAMP}
TOLD: Final = ("records", *DROPPED)
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: Final = {
    "kb": (pa.binary(), BinaryType()),
    "start": (pa.int64(), LongType()),
    "ts": (pa.int64(), LongType()),
    "v": (pa.int64(), LongType()),
    "h": (HEADERS_TYPE, ArrayType(_HEADER)),
    "task": (pa.int32(), IntegerType()),
    "hash": (pa.int32(), IntegerType()),
    **{name: (pa.int64(), LongType()) for name in TOLD},
}
COLUMNS: Final = pa.schema([(name, arrow) for name, (arrow, _) in _TYPES.items()])
_COUNTS: Final = SCHEMA.append(pa.field("o", pa.int64()))
"""With the offset of the last record: its headers are those of the result."""


class Counting(NamedTuple):
    """How to count."""

    windows: TimeWindows
    directory: str
    """Where open windows are carried from batch to batch."""
    text: bool
    """Keys are strings: bytes that are no UTF-8 become U+FFFD, as wherever strings are read."""
    skip_invalid: bool
    """Records with a timestamp below 0 are left out, instead of an error."""

    def options(self) -> dict[str, str]:
        windows = self.windows
        return {
            _SIZE: str(windows.size_ms),
            _ADVANCE: str(windows.advance_ms),
            _GRACE: str(windows.grace_ms),
            _DIRECTORY: self.directory,
            _TEXT: str(self.text),
            _SKIP: str(self.skip_invalid),
        }


def counted(spark: SparkSession, options: Mapping[str, str], counting: Counting) -> DataFrame:
    """Columns kb, start, ts (the latest), v (how many), h (headers of the last record), task and hash (of the key) of a
    stream."""
    spark.dataSource.register(WindowCounts)
    rows = spark.readStream.format(FORMAT).options(**{**options, **counting.options()}).load()
    told = rows.observe(OBSERVED_READ, _total("records")).observe(
        f"{OBSERVED_DROPS}-by-source", *(_total(name).alias(reason) for name, reason in DROPPED.items())
    )
    return told.where(F.col("kb").isNotNull()).drop(*TOLD)


def _total(name: str) -> Column:
    return F.coalesce(F.sum(name), F.lit(0)).alias(name)


class WindowCounts(DataSource):
    """Not for users: `counted` gives it what it needs."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return StructType([StructField(name, spark) for name, (_, spark) in _TYPES.items()])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        given = {name.lower(): value for name, value in self.options.items()}
        counting = Counting(
            TimeWindows.of(int(given[_SIZE]), advance_ms=int(given[_ADVANCE]), grace_ms=int(given[_GRACE])),
            given[_DIRECTORY],
            given[_TEXT] == str(True),
            given[_SKIP] == str(True),
        )
        others = {name: value for name, value in self.options.items() if not name.lower().startswith(_PREFIX)}
        return _Reader(parse_options(others), counting)


class _Reader(OttlaStreamReader):
    def __init__(self, options: SourceOptions, counting: Counting) -> None:
        super().__init__(options)
        self._counting = counting

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Span):
            return  # Spark's stand-in for "no partition at all"
        first = partition.start == _first_offset(self._options, partition)
        yield from count_records(read_span(self._options, partition), partition, self._counting, first=first)


def _first_offset(options: SourceOptions, span: Span) -> int:
    """At which the query began, or 0 in a partition that came later."""
    assert options.initial_offsets_file is not None
    return from_json(Path(options.initial_offsets_file).read_text()).get(span.place, 0)


def count_records(
    batches: Iterable[pa.RecordBatch], span: Span, counting: Counting, *, first: bool
) -> Iterator[pa.RecordBatch]:
    """Of one task, behind the columns of the source `ottla`. `first`: nothing was counted before."""
    kept = OpenWindows(Path(counting.directory, str(span.place.partition)), counting.windows)
    before = kept.read(span.start, first=first)
    counts = _Counts(counting, before.stream_time)
    for batch in batches:
        counts.add(batch)
    changed = _with_before(counts.found(), before)
    # Before anything is handed on: what was seen of a batch has its counts kept.
    kept.write(before, span.end, counts.stream_time, changed.select(SCHEMA.names))
    for found in changed.sort_by("start").to_batches():
        yield _rows(found, counts.headers_at(found.column("o")), span.place.partition)
    told = {name: getattr(counts, name) for name in TOLD}
    yield pa.RecordBatch.from_pylist([told], schema=COLUMNS)


def _with_before(counts: pa.Table, before: Carried) -> pa.Table:
    """The windows that were counted now, with what was counted in them before."""
    if not counts.num_rows or not before.windows.num_rows:
        return counts
    nowhere = pa.array(np.full(before.windows.num_rows, _NOWHERE))
    both = summed([counts, before.windows.append_column("o", nowhere)])
    return both.filter(pc.not_equal(both.column("o"), _NOWHERE))


def _rows(windows: pa.RecordBatch, headers: pa.Array, partition: int) -> pa.RecordBatch:
    count = windows.num_rows
    hashes = (murmur2_of(binary(windows.column("kb"))) & np.uint32(0x7FFFFFFF)).astype(np.int32)
    nothing = pa.nulls(count, pa.int64())
    columns = {
        "kb": windows.column("kb"),
        "start": windows.column("start"),
        "ts": windows.column("ts"),
        "v": windows.column("all"),
        "h": headers,
        "task": pa.array(np.full(count, partition, np.int32)),
        "hash": pa.array(hashes),
        **dict.fromkeys(TOLD, nothing),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=COLUMNS)


class _Counts:
    """What the records of a task add up to."""

    __slots__ = ("_counting", "_enough", "_headers", "_held", "keyless", "late", "records", "stream_time", "untimed")

    def __init__(self, counting: Counting, stream_time: int) -> None:
        self._counting = counting
        self._held: list[pa.Table] = []
        self._enough = ENOUGH_ROWS
        self._headers: list[tuple[pa.Array, pa.Array]] = []
        """Offsets and headers of records that have some, and that were the last of a window for a while."""
        self.stream_time = stream_time
        self.records = self.late = self.keyless = self.untimed = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.records += batch.num_rows
        keyed = self._keyed(batch)
        if not keyed.num_rows:
            return
        times = _millis(keyed)
        stream_time = running_maximum(times, self.stream_time)
        self.stream_time = int(stream_time[-1])
        windows = self._counting.windows
        self.late += late_windows(windows, times, stream_time)
        chosen, starts = open_windows(windows, times, stream_time)
        table = pa.table({"kb": keyed.column("key"), "ts": pa.array(times), "o": keyed.column("offset")})
        table = table if chosen is None else table.take(pa.array(chosen))
        counts = _counted(table.append_column("start", pa.array(starts)), self._counting.text)
        self._keep_headers(keyed, counts)
        self._hold(counts)

    def _keyed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Records without a key belong to no window and move no clock."""
        times = _millis(batch)
        valid = times >= 0
        if not valid.all():
            if not self._counting.skip_invalid:
                _refuse(batch, int(np.argmin(valid)), times)
            self.untimed += len(valid) - int(valid.sum())
            batch = batch.filter(pa.array(valid))
        keys = batch.column("key")
        self.keyless += keys.null_count
        return batch.filter(keys.is_valid()) if keys.null_count else batch

    def _keep_headers(self, batch: pa.RecordBatch, counts: pa.Table) -> None:
        headers = batch.column("headers")
        if have_no_headers(headers):
            return
        last = pc.and_(headers.is_valid(), pc.is_in(batch.column("offset"), counts.column("o").combine_chunks()))
        self._headers.append((batch.column("offset").filter(last), headers.filter(last)))

    def _hold(self, counts: pa.Table) -> None:
        self._held.append(counts)
        if sum(table.num_rows for table in self._held) > self._enough:
            self._held = [summed(self._held)]
            self._enough = max(ENOUGH_ROWS, 2 * self._held[0].num_rows)

    def found(self) -> pa.Table:
        return summed(self._held or [_COUNTS.empty_table()])

    def headers_at(self, offsets: pa.Array) -> pa.Array:
        """Of the records at these offsets."""
        if not self._headers:
            return pa.nulls(len(offsets), HEADERS_TYPE)
        known, headers = (pa.concat_arrays(parts) for parts in zip(*self._headers, strict=True))
        return headers.take(pc.index_in(offsets, known))


def _millis(batch: pa.RecordBatch) -> Ints:
    times: Ints = batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000
    return times


def _counted(table: pa.Table, text: bool) -> pa.Table:
    wanted = [("ts", "max"), ([], "count_all"), ("o", "max")]
    found = table.group_by(list(WINDOWS), use_threads=False).aggregate(wanted)
    if text and not _is_text(found.column("kb")):
        readable = [key.decode(errors="replace").encode() for key in table.column("kb").to_pylist()]
        place = table.column_names.index("kb")
        return _counted(table.set_column(place, "kb", pa.array(readable, pa.binary())), False)
    return found.rename_columns({"ts_max": "ts", "count_all": "all", "o_max": "o"}).select(_COUNTS.names)


def _is_text(keys: pa.ChunkedArray) -> bool:
    try:
        keys.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _refuse(batch: pa.RecordBatch, row: int, times: Ints) -> None:
    offset, topic, partition = (batch.column(name)[row].as_py() for name in ("offset", "topic", "partition"))
    raise ValueError(
        f"[ottla] the record at offset {offset} of {topic}-{partition} has the invalid timestamp: {times[row]} [end]"
    )
