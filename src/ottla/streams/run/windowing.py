"""Windows in front of a native aggregate, by stream time: the largest timestamp of the records that came that far.

Kafka's windowed aggregates judge lateness by what reached them, not by what was read: a record that a filter took away
does not count, and behind a repartition every task has a time of its own. So the time is taken right in front of the
aggregate, and carried from batch to batch (`pipelines.carry`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.pipelines.carry import Carry
from ottla.pipelines.sink.encoding import binary, murmur2_of
from ottla.pipelines.source.columns import NOTHING_YET, running_maximum
from ottla.pipelines.workers import settle_worker
from ottla.streams.run.partials import Gathering, Partials
from ottla.streams.tasks.operators.base import LATE
from ottla.streams.windows import TimeWindows

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

Ints = npt.NDArray[np.int64]


class Windowing:
    """For mapInArrow behind columns kb, ts, p, o, origin of one source topic, in order of offset inside each partition.

    Each record comes out once for every window that is still open for it: columns kb, task, hash (of the key), start,
    ts and the others. With `partials` a row comes out for each key and window, with the parts of its aggregate.

    With `tasks` the keys decide which task a record belongs to, and each (source partition, task) has its own time:
    what arrives from other partitions has no fixed place before or after it, in Kafka neither.
    """

    def __init__(
        self,
        directory: str,
        tasks: int | None,
        windows: TimeWindows,
        partials: Partials | None = None,
        *,
        dropped: Accumulator[dict[str, int]] | None = None,
    ) -> None:
        self._directory = directory
        self._tasks = tasks
        self._windows = windows
        self._partials = partials
        self._dropped = dropped

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        late: Counter[str] = Counter()
        yield from self.reduced(batches, late)
        if late and self._dropped is not None:
            self._dropped.add(dict(late))

    def reduced(self, batches: Iterator[pa.RecordBatch], dropped: Counter[str]) -> Iterator[pa.RecordBatch]:
        carried: dict[int, _Times] = {}
        opened = (self._windowed(batch, carried, dropped) for batch in batches if batch.num_rows)
        if self._partials is None:
            for table in opened:
                yield from table.to_batches()
        else:
            gathering = Gathering(self._partials)
            for table in opened:
                gathering.add(table)
            yield from gathering.result().to_batches()
        for each in carried.values():
            each.save()

    def _windowed(self, batch: pa.RecordBatch, carried: dict[int, _Times], dropped: Counter[str]) -> pa.Table:
        times = batch.column("ts").to_numpy()
        hashes = hashes_of(batch.column("kb"))
        tasks = hashes % np.int32(self._tasks) if self._tasks is not None else batch.column("p").to_numpy()
        stream_time = self._stream_time(batch, times, tasks, carried)
        if late := late_windows(self._windows, times, stream_time):
            dropped[LATE] += late
        return self._opened(batch, times, hashes, tasks, stream_time)

    def _stream_time(
        self, batch: pa.RecordBatch, times: Ints, tasks: npt.NDArray[np.int32], carried: dict[int, _Times]
    ) -> Ints:
        partitions, offsets = batch.column("p").to_numpy(), batch.column("o").to_numpy()
        found = np.empty(len(times), np.int64)
        for partition in np.unique(partitions).tolist():
            mine = np.flatnonzero(partitions == partition)
            if partition not in carried:
                carried[partition] = _Times(Path(self._directory, str(partition)), int(offsets[mine][0]))
            found[mine] = carried[partition].observe(times[mine], tasks[mine], int(offsets[mine][-1]) + 1)
        return found

    def _opened(
        self,
        batch: pa.RecordBatch,
        times: Ints,
        hashes: npt.NDArray[np.int32],
        tasks: npt.NDArray[np.int32],
        stream_time: Ints,
    ) -> pa.Table:
        """A row for each record and each window that holds it and has not closed."""
        chosen, starts = open_windows(self._windows, times, stream_time)
        table = pa.Table.from_batches([batch]).drop_columns(["p", "o"])
        columns = {name: table.column(name) for name in table.column_names}
        whole = pa.table({**columns, "task": pa.array(tasks, pa.int32()), "hash": pa.array(hashes)})
        taken = whole if chosen is None else whole.take(pa.array(chosen))
        return taken.append_column("start", pa.array(starts))


def hashes_of(keys: pa.Array) -> npt.NDArray[np.int32]:
    """By which keys choose their partitions."""
    return (murmur2_of(binary(keys)) & np.uint32(0x7FFFFFFF)).astype(np.int32)


def open_windows(windows: TimeWindows, times: Ints, stream_time: Ints) -> tuple[Ints | None, Ints]:
    """Which records go into windows that have not closed, once for each (None: all of them, once), and where those
    windows begin."""
    size, advance = windows.size_ms, windows.advance_ms
    last = times // advance * advance
    closed = stream_time - windows.grace_ms
    rows, starts = [], []
    for back in range(-(-size // advance)):
        start = last - back * advance
        open_still = np.flatnonzero((start >= 0) & (start + size > times) & (start + size > closed))
        rows.append(open_still)
        starts.append(start[open_still])
    if len(rows) == 1 and len(rows[0]) == len(times):
        return None, starts[0]
    return np.concatenate(rows), np.concatenate(starts)


def late_windows(windows: TimeWindows, times: Ints, stream_time: Ints) -> int:
    """How many (record, window) pairs come after the window's grace: what Kafka counts as dropped."""
    size, advance = windows.size_ms, windows.advance_ms
    first = np.maximum(times - size + advance, 0) // advance * advance
    closed = stream_time - windows.grace_ms - size  # the last start that is too old
    number = (np.minimum(closed, times) - first) // advance + 1
    return int(np.maximum(number, 0).sum())


class _Times:
    """The times of one source partition, by task."""

    __slots__ = ("_carry", "_end", "_times")

    def __init__(self, folder: Path, start: int) -> None:
        self._carry: Carry[dict[str, int]] = Carry(folder, lambda times: json.dumps(times).encode(), json.loads)
        self._end = start
        left = self._carry.latest(start)
        self._times = {int(task): time for task, time in (left or {}).items()}

    def observe(self, times: Ints, tasks: npt.NDArray[np.int32], end: int) -> Ints:
        self._end = max(self._end, end)
        found = np.empty(len(times), np.int64)
        for task in np.unique(tasks).tolist():
            mine = np.flatnonzero(tasks == task)
            running = running_maximum(times[mine], self._times.get(task, NOTHING_YET))
            self._times[task] = int(running[-1])
            found[mine] = running
        return found

    def save(self) -> None:
        self._carry.write(self._end, {str(task): time for task, time in self._times.items()})
