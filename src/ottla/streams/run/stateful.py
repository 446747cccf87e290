"""Tasks inside Spark: `transformWithState` grouped by task, the sub-topology's cores inside, stores over Spark's state.

Spark hands Python one row at a time and one state entry per call. So records come packed, a whole Arrow batch in one
cell, results leave in the same way, and stores are read and written in pages (`paged_state`). Spark's checkpoint holds
the state: changelog topics are written for others and never read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.pipelines.rows import OUTPUT_TYPE
from ottla.pipelines.workers import settle_worker
from ottla.streams.errors import StreamsError
from ottla.streams.record import Raw
from ottla.streams.run.paged_state import PagedState
from ottla.streams.run.stages import OUTPUT, StageSpec, output_batch, records_of
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.store_maker import backend_names
from ottla.streams.tasks.task import Task

PACKED_TYPE: Final = "slot int, task int, topic string, first bigint, records binary"
_PACKED: Final = pa.schema(
    [
        ("slot", pa.int32()),
        ("task", pa.int32()),
        ("topic", pa.string()),
        ("first", pa.int64()),
        ("records", pa.binary()),
    ]
)
_NAME: Final = StructType([StructField("page", BinaryType())])
_CONTENT: Final = StructType([StructField("content", BinaryType())])
_RESULT: Final = StructType([StructField("rows", BinaryType())])
TIMES: Final = "ottla-task"
"""The state variable that holds a task's times."""

MOST_PARTITIONS: Final = 16
"""Each has a state store of its own that every batch opens and commits."""
FROM_TIMER: Final = 1
"""Rows of punctuators that a timer called go behind those of the batch's records."""


class TaskStage:
    """The stage as a change of data frames."""

    def __init__(self, spec: StageSpec, tasks: int) -> None:
        self._spec = spec
        self.shuffle_partitions = min(tasks, MOST_PARTITIONS)
        self._slots = slots(tasks)
        self.by_wall_clock = uses_wall_clock(spec)

    def rows(self, records: DataFrame) -> DataFrame:
        packed = records.mapInArrow(Packing(self._slots), PACKED_TYPE)
        grouped = packed.groupBy("slot")
        time_mode = "ProcessingTime" if self.by_wall_clock else "None"
        results = grouped.transformWithState(TaskProcessor(self._spec), _RESULT, "Append", time_mode)
        return results.mapInArrow(unpack, OUTPUT_TYPE)


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


# ---- packing


class Packing:
    """For mapInArrow: batches of records become cells."""

    def __init__(self, task_slots: Sequence[int]) -> None:
        self._slots = task_slots

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for batch in batches:
            for part in _places(batch):
                task = part.column("partition")[0].as_py()
                if task >= len(self._slots):
                    raise StreamsError(
                        f"topic {part.column('topic')[0].as_py()} has got partition {task}, but the application began "
                        f"with {len(self._slots)} and keeps state by partition: reset it (`ottla streams reset`), or "
                        "give it another id"
                    )
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, part.schema) as writer:
                    writer.write_batch(part)
                cells: tuple[Any, ...] = (
                    self._slots[task],
                    task,
                    part.column("topic")[0].as_py(),
                    part.column("offset")[0].as_py(),
                    sink.getvalue().to_pybytes(),
                )
                yield pa.RecordBatch.from_arrays(
                    [pa.array([cell], kind.type) for cell, kind in zip(cells, _PACKED, strict=True)], schema=_PACKED
                )


def _places(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A Spark partition reads one topic partition, so nearly always the batch is of one."""
    if not batch.num_rows:
        return
    topics, partitions = batch.column("topic"), batch.column("partition")
    if len(pc.unique(topics)) == 1 and len(pc.unique(partitions)) == 1:
        yield batch
        return
    places = dict.fromkeys(zip(topics.to_pylist(), partitions.to_pylist(), strict=True))
    for topic, partition in places:
        yield batch.filter(pc.and_(pc.equal(topics, topic), pc.equal(partitions, partition)))


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for cell in batch.column("rows"):
            yield from pa.ipc.open_stream(cell.as_buffer())


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

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        settle_worker()
        self._handle = handle
        self._times = handle.getValueState(TIMES, _CONTENT)
        self._maps = {name: handle.getMapState(name, _NAME, _CONTENT) for name in backend_names(self._spec.sub)}

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        cells = sorted(rows, key=lambda row: (row.topic, row.first))
        work = _Work(self._spec, cells[0].task, self._maps, self._saved())
        records = [record for cell in cells for record in _unpacked(cell.records)]
        out = work.task.process(records)
        out += work.task.advance_wall_clock(work.now)
        yield self._done(work, out, 0)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:
        saved = self._saved()
        if saved is None:
            return
        task = int.from_bytes(saved[:4], "big")
        work = _Work(self._spec, task, self._maps, saved)
        out = work.task.advance_wall_clock(max(work.now, expiredTimerInfo.getExpiryTimeInMs()))
        yield self._done(work, out, FROM_TIMER)

    def close(self) -> None:
        pass

    def _saved(self) -> bytes | None:
        found = self._times.get()
        return None if found is None else bytes(found[0])

    def _done(self, work: _Work, out: list[Raw], place: int) -> Row:
        out += work.finish()
        self._times.update((work.saved(),))
        due = work.task.next_wall_clock_ms()
        if due is not None and self._spec.clock is None:  # Spark's timers know its own clock only
            self._handle.registerTimer(due)
        batch = output_batch(out, work.task.partition, place)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, OUTPUT) as writer:
            writer.write_batch(batch)
        return Row(rows=sink.getvalue().to_pybytes())


class _Work:
    """A task for the length of one call."""

    def __init__(self, spec: StageSpec, partition: int, maps: dict[str, Any], saved: bytes | None) -> None:
        self.now = spec.now()
        self._spec = spec
        self._backends = {name: PagedState(_MapPages(state)) for name, state in maps.items()}
        self.task: Task = spec.task(partition, self._backends.__getitem__, self.now)
        if saved is not None:
            self.task.restore(saved[4:])

    def finish(self) -> list[Raw]:
        out = self.task.commit()
        for backend in self._backends.values():
            backend.flush()
        self._spec.count_dropped(self.task)
        return out

    def saved(self) -> bytes:
        return self.task.partition.to_bytes(4, "big") + self.task.save()


def _unpacked(records: bytes) -> Iterator[Raw]:
    for batch in pa.ipc.open_stream(records):
        yield from records_of(batch)
