"""Tasks inside Spark: `transformWithState` grouped by task, the sub-topology's cores inside, stores over Spark's state.

Spark hands Python one row at a time and one state entry per call. So records come packed, a whole Arrow batch in one
cell (`cells`), results leave in the same way, which the sink knows, and stores are read and written in pages
(`paged_state`). Spark's checkpoint holds the state; a task that has none there takes it from its changelogs
(`changelogs`), if the query began so. A task of several inputs may leave records to its next batch: those of one input
that have to wait for another's (`tasks.idling`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.pipelines.full_disks import told_where_full
from ottla.pipelines.sink.packing import CHUNK_TYPE
from ottla.pipelines.sink.writer import Pack, Packing
from ottla.pipelines.workers import settle_worker
from ottla.streams.record import Raw
from ottla.streams.run.cells import cells, columns_in, packed, records_in
from ottla.streams.run.changelogs import restore
from ottla.streams.run.paged_state import PagedState
from ottla.streams.run.stages import AtOnce, StageSpec, chained, output_batch, output_columns
from ottla.streams.run.vector_lines import VectorLine, line_of
from ottla.streams.tasks.bulk import FEWEST
from ottla.streams.tasks.chains import Chain
from ottla.streams.tasks.idling import Idling
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.store_maker import backend_names
from ottla.streams.tasks.task import Task

_NAME: Final = StructType([StructField("page", BinaryType())])
_CONTENT: Final = StructType([StructField("content", BinaryType())])
TIMES: Final = "ottla-task"
"""The state variable that holds a task's times."""

MOST_PARTITIONS: Final = 16
"""Each has a state store of its own that every batch opens and commits."""
_BEHIND: Final = b"\n"
"""Between the parts of what is kept of a task: JSON has none in it."""
FROM_TIMER: Final = 1
"""Rows of punctuators that a timer called go behind those of the batch's records."""


class TaskStage:
    """The stage as a change of data frames."""

    def __init__(self, spec: StageSpec, tasks: int) -> None:
        self._spec = spec
        self.shuffle_partitions = min(tasks, MOST_PARTITIONS)
        self._slots = slots(tasks)
        # A task that waits for a while has to be called when that is over.
        self.by_wall_clock = uses_wall_clock(spec) or (spec.waits is not None and spec.waits.idle_ms > 0)

    def rows(self, spark: SparkSession, source: Mapping[str, str]) -> DataFrame:
        """For the sink, packed. `source` are the options of what is read."""
        grouped = cells(spark, source, self._slots).groupBy("slot")
        time_mode = "ProcessingTime" if self.by_wall_clock else "None"
        return grouped.transformWithState(TaskProcessor(self._spec), CHUNK_TYPE, "Append", time_mode)


def uses_wall_clock(spec: StageSpec) -> bool:
    """Whether a processor schedules a punctuator by the wall clock when it starts: only then batches have to run
    without data. Found out by starting the task once, on empty stores."""
    task = spec.task(0, lambda _: MemoryBackend(), spec.now())
    found = task.next_wall_clock_ms() is not None
    task.close()
    return found


# ---- which of Spark's partitions a task lands in


def slots(tasks: int) -> list[int]:
    """For each task a number that Spark's hash puts into that of so many partitions: so all of them get work.

    State is kept under these numbers, so they depend on nothing but the number of tasks.
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < tasks:
        found.setdefault(spark_hash(candidate) % tasks, candidate)
        candidate += 1
    return [found[task] for task in range(tasks)]


def spark_hash(number: int) -> int:
    """Spark's hash of an int column (Murmur3 with the seed 42), signed."""
    mask = 0xFFFFFFFF
    k = (number * 0xCC9E2D51) & mask
    k = ((k << 15) | (k >> 17)) & mask
    k = (k * 0x1B873593) & mask
    h = 42 ^ k
    h = ((h << 13) | (h >> 19)) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & mask
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


# ---- inside transformWithState


class _MapPages:
    """Pages in Spark's MapState."""

    __slots__ = ("_state",)

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, name: bytes) -> bytes | None:
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: bytes, content: bytes) -> None:
        self._state.updateValue((name,), (content,))

    def remove(self, name: bytes) -> None:
        self._state.removeKey((name,))

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        for name, content in self._state.iterator():
            yield bytes(name[0]), bytes(content[0])


class TaskProcessor(StatefulProcessor):
    """One call is one task in one micro-batch: it is made, gets its times back, works and is written away."""

    def __init__(self, spec: StageSpec, pack: Packing | None = None) -> None:
        self._spec = spec
        self._pack = pack or Pack(None if spec.dropped is None else spec.dropped.add)
        self._folders: Sequence[str] = ()

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle_worker()
        self._handle = handle
        # Where the state is kept, and where it is while it is in use.
        self._folders = (self._spec.config.get("state.dir", ""), *os.environ.get("SPARK_LOCAL_DIRS", "").split(","))
        self._times = handle.getValueState(TIMES, _CONTENT)
        self._maps = {name: handle.getMapState(name, _NAME, _CONTENT) for name in backend_names(self._spec.sub)}

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        with told_where_full(self._folders):
            yield from self._worked_off(rows, timerValues)

    def _worked_off(self, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        cells = sorted(rows, key=lambda row: (row.topic, row.first))
        work = _Work(self._spec, cells[0].task, self._maps, self._saved())
        read = [(cell.topic, columns_in(cell.records)) for cell in cells if cell.more is None]
        more = {cell.topic: bool(cell.more) for cell in cells if cell.more is not None}
        out = work.process(read, more, self._batch_time(timerValues))
        out += work.task.advance_wall_clock(work.now)
        yield from self._done(work, out, 0)

    def _batch_time(self, timer_values: Any) -> int:
        """Of Spark's log: the same when the batch runs again. There is none where no timers are."""
        waits = self._spec.waits
        return int(timer_values.getCurrentProcessingTimeInMs()) if waits is not None and waits.idle_ms > 0 else 0

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:
        with told_where_full(self._folders):
            yield from self._woken(timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def _woken(self, timerValues: Any, due_ms: int) -> Iterator[Row]:
        saved = self._saved()
        if saved is None:
            return
        task = int.from_bytes(saved[:4], "big")
        work = _Work(self._spec, task, self._maps, saved)
        out = work.process([], {}, self._batch_time(timerValues))
        out += work.task.advance_wall_clock(max(work.now, due_ms))
        yield from self._done(work, out, FROM_TIMER)

    def close(self) -> None:
        pass

    def _saved(self) -> bytes | None:
        found = self._times.get()
        return None if found is None else bytes(found[0])

    def _done(self, work: _Work, out: list[Raw], place: int) -> Iterator[Row]:
        out += work.finish()
        self._times.update((work.saved(),))
        due = work.due_ms()
        if due is not None and self._spec.clock is None:  # Spark's timers know its own clock only
            self._handle.registerTimer(due)
        for chunks in self._pack(work.rows(out, place)):
            yield from (Row(**chunk) for chunk in chunks.to_pylist())


Read = tuple[str, pa.RecordBatch]
"""Of a topic: columns as cells have them."""


class _Work:
    """A task for the length of one call."""

    def __init__(self, spec: StageSpec, partition: int, maps: dict[str, Any], saved: bytes | None) -> None:
        self.now = spec.now()
        self._spec = spec
        self._backends = {name: PagedState(_MapPages(state)) for name, state in maps.items()}
        self.task: Task = spec.task(partition, self._backends.__getitem__, self.now)
        self._at_once: list[AtOnce] = []
        self._aside = Aside()
        if saved is not None:
            times, _, aside = saved[4:].partition(_BEHIND)
            self.task.restore(times)
            self._aside = Aside.decode(aside, partition).of(self.task.reads)
        elif spec.restore is not None:
            restore(self.task, spec.restore, self._write_away)
        self._due_ms: int | None = None

    def process(self, read: Sequence[Read], more: Mapping[str, bool], batch_time: int) -> list[Raw]:
        """With what earlier batches left; what waits for others is left to the next one."""
        waits, number = self._spec.waits, self.task.partition
        if waits is None:
            return self._processed(read, self._taken(), ())
        aside = self._aside
        seen = {*aside.later, *(topic for topic, _ in read), *more}
        later = tuple(sorted(seen - waits.partitions.keys()))
        places = [*waits.places(number), *((topic, number) for topic in later)]
        told = {topic for topic in {*aside.more, *more} if more.get(topic, topic in aside.more)}
        to_come = frozenset((topic, number) for topic in told)
        idling = Idling(waits.idle_ms, {(topic, number): due for topic, due in aside.deadlines.items()})
        taken = self._taken()
        filled = _filled(taken) | {(topic, number) for topic, _ in read}
        awaited = idling.awaited(places, to_come, filled, batch_time)
        out = self._processed(read, taken, awaited)
        left = self.task.left()
        self._due_ms = idling.next_ms(places, to_come, _filled(left), batch_time)
        deadlines = {topic: due for (topic, _), due in idling.deadlines.items()}
        self._aside = Aside(left, tuple(sorted(told)), deadlines, later)
        return out

    def _processed(self, read: Sequence[Read], left: Sequence[Raw], awaited: Sequence[tuple[str, int]]) -> list[Raw]:
        number = self.task.partition
        topics = {topic for topic, _ in read}
        if len(topics) == 1 and not left and frozenset(awaited) <= {(topic, number) for topic in topics}:
            (topic,) = topics
            read = self._passed(topic, [batch for _, batch in read])
        records = [record for topic, batch in read for record in records_in(topic, number, batch)]
        return self.task.process(records, left=left, awaited=awaited)

    def _passed(self, topic: str, batches: Sequence[pa.RecordBatch]) -> list[Read]:
        """Lets the records of the only partition that has some through at once. Those that have to go one by one are
        given back, and all that come behind them."""
        task = self.task
        way = task.way_of(topic) if sum(batch.num_rows for batch in batches) >= FEWEST else None
        line = None if way is None else line_of(*way)
        for place, batch in enumerate(batches):
            numbered = batch.append_column("partition", pa.array(np.full(batch.num_rows, task.partition, np.int32)))
            made = None if way is None else _through(way.chain, line, numbered)
            if made is None:
                return [(topic, each) for each in batches[place:]]
            self._at_once.append(made)
            task.passed(topic, pc.max(batch.column("timestamp")).as_py(), made.dropped)
        return []

    def rows(self, out: Sequence[Raw], place: int) -> Iterator[pa.RecordBatch]:
        """All that came out, in order, for the sink."""
        first = 0
        for made in self._at_once:
            yield from output_columns(made._replace(place=place), first)
            first += max((len(sink.times) for sink in made.sinks), default=0)
        yield output_batch(out, self.task.partition, place, first)

    def _taken(self) -> Sequence[Raw]:
        left, self._aside = self._aside.records, self._aside._replace(records=())
        return left

    def due_ms(self) -> int | None:
        """When the task has to be called, if nothing comes."""
        times = [due for due in (self.task.next_wall_clock_ms(), self._due_ms) if due is not None]
        return min(times, default=None)

    def finish(self) -> list[Raw]:
        out = self.task.commit()
        self._write_away()
        self._spec.count_dropped(self.task)
        self._spec.tell_times(self.task, self._aside.records)
        return out

    def _write_away(self) -> None:
        for backend in self._backends.values():
            backend.flush()

    def saved(self) -> bytes:
        aside = self._aside.encode()
        return self.task.partition.to_bytes(4, "big") + self.task.save() + (_BEHIND + aside if aside else b"")


def _through(chain: Chain, line: VectorLine | None, batch: pa.RecordBatch) -> AtOnce | None:
    try:
        made = None if line is None else line.run(batch)
    except Exception:  # noqa: BLE001  it goes record by record then, and whose fault it is comes out there
        made = None
    return chained(chain, batch) if made is None else made


class Aside(NamedTuple):
    """What a task of several inputs leaves to its next batch."""

    records: Sequence[Raw] = ()
    """Those that wait for records of other partitions, each topic's together."""
    more: Sequence[str] = ()
    """Topics of which more was at the brokers."""
    deadlines: Mapping[str, int] = {}
    """Until when a topic without records is waited for."""
    later: Sequence[str] = ()
    """Topics that have come to match a pattern since the query was planned."""

    def of(self, reads: Callable[[str], bool]) -> Aside:
        """Without topics that a new version does not read any more."""
        records = [raw for raw in self.records if reads(raw.topic)]
        more = [topic for topic in self.more if reads(topic)]
        deadlines = {topic: due for topic, due in self.deadlines.items() if reads(topic)}
        return Aside(records, more, deadlines, [topic for topic in self.later if reads(topic)])

    def encode(self) -> bytes:
        if not any(self):
            return b""
        by_topic: dict[str, list[Raw]] = {}
        for raw in self.records:
            by_topic.setdefault(raw.topic, []).append(raw)
        contents = {topic: packed(some) for topic, some in by_topic.items()}
        about = {
            "more": list(self.more),
            "deadlines": dict(self.deadlines),
            "later": list(self.later),
            "sizes": [[topic, len(content)] for topic, content in contents.items()],
        }
        return b"".join([json.dumps(about).encode(), _BEHIND, *contents.values()])

    @classmethod
    def decode(cls, data: bytes, partition: int) -> Aside:
        if not data:
            return cls()
        about, _, contents = data.partition(_BEHIND)
        told = json.loads(about)
        records: list[Raw] = []
        at = 0
        for topic, size in told["sizes"]:
            records += records_in(topic, partition, columns_in(contents[at : at + size]))
            at += size
        return cls(records, told["more"], told["deadlines"], told.get("later", ()))


def _filled(records: Iterable[Raw]) -> frozenset[tuple[str, int]]:
    return frozenset((raw.topic, raw.partition) for raw in records)
