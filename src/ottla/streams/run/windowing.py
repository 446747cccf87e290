"""Windows in front of a native aggregate, by stream time: the largest timestamp of the records that came that far.

Kafka's windowed aggregates judge lateness by what reached them, not by what was read: a record that a filter took away
does not count, and behind a repartition every task has a time of its own. So the time is taken right in front of the
aggregate, and carried from batch to batch (`pipelines.carry`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.pipelines.carry import Carry
from ottla.pipelines.sink.encoding import binary, murmur2_of
from ottla.pipelines.source.columns import NOTHING_YET, running_maximum
from ottla.pipelines.workers import settle_worker
from ottla.streams.tasks.operators.base import LATE
from ottla.streams.windows import TimeWindows

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

ENOUGH_ROWS: Final = 200_000
"""Partial counts that are held back, so that each key and window leaves a task once if possible."""

Ints = npt.NDArray[np.int64]


class Windowing:
    """For mapInArrow behind columns kb, ts, p, o, origin of one source topic, in order of offset inside each partition.

    Each record comes out once for every window that is still open for it: columns kb, task, hash (of the key), start,
    ts and the others. With `counts` they come out counted: of every other column the number of values that are not
    null, and in the column `all` the number of records.

    With `tasks` the keys decide which task a record belongs to, and each (source partition, task) has its own time:
    what arrives from other partitions has no fixed place before or after it, in Kafka neither.
    """

    def __init__(
        self,
        directory: str,
        tasks: int | None,
        windows: TimeWindows,
        *,
        counts: bool = False,
        dropped: Accumulator[dict[str, int]] | None = None,
    ) -> None:
        self._directory = directory
        self._tasks = tasks
        self._windows = windows
        self._counts = counts
        self._dropped = dropped

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        carried: dict[int, _Times] = {}
        late = 0
        held: list[pa.Table] = []
        for batch in batches:
            if not batch.num_rows:
                continue
            times = batch.column("ts").to_numpy()
            hashes = (murmur2_of(binary(batch.column("kb"))) & np.uint32(0x7FFFFFFF)).astype(np.int32)
            tasks = hashes % np.int32(self._tasks) if self._tasks is not None else batch.column("p").to_numpy()
            stream_time = self._stream_time(batch, times, tasks, carried)
            late += late_windows(self._windows, times, stream_time)
            opened = self._opened(batch, times, hashes, tasks, stream_time)
            if not self._counts:
                yield from opened.to_batches()
                continue
            held.append(counted(opened))
            if sum(table.num_rows for table in held) > ENOUGH_ROWS:
                yield from summed(held).to_batches()
                held = []
        if held:
            yield from summed(held).to_batches()
        for each in carried.values():
            each.save()
        if late and self._dropped is not None:
            self._dropped.add({LATE: late})

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


KEYS: Final = ("kb", "task", "hash", "start")
LATEST: Final = ("ts", "origin")
_MAXIMA: Final = {f"{name}_max": name for name in LATEST}


def counted(table: pa.Table) -> pa.Table:
    """One row for each key, task and window: the latest time, the last record, and how many values there were."""
    others = [name for name in table.column_names if name not in (*KEYS, *LATEST)]
    wanted = [*((name, "max") for name in LATEST), ([], "count_all"), *((name, "count") for name in others)]
    found = table.group_by(list(KEYS), use_threads=False).aggregate(wanted)
    names = {**_MAXIMA, "count_all": "all", **{f"{name}_count": name for name in others}}
    return _ordered(found, names, others)


def summed(tables: list[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    table = pa.concat_tables(tables)
    others = [name for name in table.column_names if name not in (*KEYS, *LATEST, "all")]
    wanted = [*((name, "max") for name in LATEST), ("all", "sum"), *((name, "sum") for name in others)]
    found = table.group_by(list(KEYS), use_threads=False).aggregate(wanted)
    names = {**_MAXIMA, "all_sum": "all", **{f"{name}_sum": name for name in others}}
    return _ordered(found, names, others)


def _ordered(found: pa.Table, names: dict[str, str], others: list[str]) -> pa.Table:
    named = found.rename_columns([names.get(name, name) for name in found.column_names])
    return named.select([*KEYS, *LATEST, "all", *others])


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
