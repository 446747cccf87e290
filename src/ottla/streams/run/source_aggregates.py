"""Aggregates that begin in the tasks that read (`plan.in_source`): a line of nodes by Arrow, and parts of results.

What a task does with the records that come out of the nodes is one of three: parts by key, for Spark to merge; parts by
key and window, for Spark to merge behind a repartition; or whole windows, which it keeps itself while they are open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.pipelines.source.columns import running_maximum
from ottla.serdes.types import INT, Type
from ottla.streams.expressions.parts import Part
from ottla.streams.run.open_windows import WINDOWS, Carried, OpenWindows
from ottla.streams.run.partials import Gathering, Partials
from ottla.streams.run.reading_stages import ReadingTask
from ottla.streams.run.vectors import VectorChain
from ottla.streams.run.windowing import Windowing, hashes_of, late_windows, open_windows
from ottla.streams.tasks.operators.base import LATE
from ottla.streams.windows import TimeWindows

_NOWHERE: Final = -1
"""As the number of the last record: the window has changed in earlier batches only."""


class Reducer(Protocol):
    """What becomes of columns kb, ts, p, o, origin and arguments."""

    def columns(self) -> dict[str, Type]: ...

    def reduced(
        self, batches: Iterator[pa.RecordBatch], task: ReadingTask, dropped: Counter[str]
    ) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True, slots=True)
class SourceAggregate:
    """A stage of `reading_stages`."""

    chain: VectorChain
    reducer: Reducer

    def rows(self, batches: Iterator[pa.RecordBatch], task: ReadingTask) -> Iterator[pa.RecordBatch]:
        dropped: Counter[str] = Counter()
        yield from self.reducer.reduced(self.chain.run(batches, dropped), task, dropped)
        task.seen.add(dict(dropped))


@dataclass(frozen=True, slots=True)
class ByKey:
    """Parts of all that a task has read of a key."""

    parts: tuple[Part, ...]
    by_partition: bool
    """What comes of different partitions stays apart."""

    def _partials(self) -> Partials:
        return Partials(("kb",), self.parts)

    def columns(self) -> dict[str, Type]:
        return {**self._partials().columns(), "task": INT}

    def reduced(
        self, batches: Iterator[pa.RecordBatch], task: ReadingTask, _: Counter[str]
    ) -> Iterator[pa.RecordBatch]:
        gathering = Gathering(self._partials())
        for batch in batches:
            gathering.add(pa.Table.from_batches([batch]))
        found = gathering.result()
        place = task.span.place.partition if self.by_partition else 0
        yield from found.append_column("task", pa.array(np.full(found.num_rows, place, np.int32))).to_batches()


@dataclass(frozen=True, slots=True)
class ByRepartitionedWindow:
    """Parts of all that a task has read of a key and window."""

    directory: str
    tasks: int
    windows: TimeWindows
    parts: tuple[Part, ...]

    def _partials(self) -> Partials:
        return Partials(("kb", "task", "hash", "start"), self.parts)

    def columns(self) -> dict[str, Type]:
        return self._partials().columns()

    def reduced(
        self, batches: Iterator[pa.RecordBatch], _: ReadingTask, dropped: Counter[str]
    ) -> Iterator[pa.RecordBatch]:
        return Windowing(self.directory, self.tasks, self.windows, self._partials()).reduced(batches, dropped)


@dataclass(frozen=True, slots=True)
class WholeWindows:
    """All that was ever read of each window that a batch changed; open ones are carried on to the next batch."""

    directory: str
    windows: TimeWindows
    parts: tuple[Part, ...]

    def _partials(self) -> Partials:
        return Partials(WINDOWS, self.parts)

    def columns(self) -> dict[str, Type]:
        return {**self._partials().columns(), "task": INT, "hash": INT}

    def reduced(
        self, batches: Iterator[pa.RecordBatch], task: ReadingTask, dropped: Counter[str]
    ) -> Iterator[pa.RecordBatch]:
        partials, span = self._partials(), task.span
        schema = partials.schema()
        carried = schema.remove(schema.get_field_index("origin"))
        kept = OpenWindows(Path(self.directory, str(span.place.partition)), self.windows, carried)
        before = kept.read(span.start, first=task.is_first())
        gathering, stream_time = Gathering(partials), before.stream_time
        for batch in batches:
            times = batch.column("ts").to_numpy()
            advanced = running_maximum(times, stream_time)
            stream_time = int(advanced[-1])
            if late := late_windows(self.windows, times, advanced):
                dropped[LATE] += late
            chosen, starts = open_windows(self.windows, times, advanced)
            table = pa.Table.from_batches([batch if chosen is None else batch.take(pa.array(chosen))])
            gathering.add(table.append_column("start", pa.array(starts)))
        changed = _with_before(partials, gathering.result(), before)
        # Before anything is handed on: what was seen of a batch is kept.
        kept.write(before, span.end, stream_time, changed.select(carried.names))
        for found in changed.sort_by("start").to_batches():
            places = pa.array(np.full(found.num_rows, span.place.partition, np.int32))
            yield found.append_column("task", places).append_column("hash", pa.array(hashes_of(found.column("kb"))))


def _with_before(partials: Partials, now: pa.Table, before: Carried) -> pa.Table:
    """The windows that changed, with what was known of them before."""
    if not now.num_rows or not before.windows.num_rows:
        return now
    nowhere = pa.array(np.full(before.windows.num_rows, _NOWHERE))
    known = before.windows.append_column("origin", nowhere).select(now.column_names)
    both = partials.merged([now, known])
    return both.filter(pc.not_equal(both.column("origin"), _NOWHERE))
