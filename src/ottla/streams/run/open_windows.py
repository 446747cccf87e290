"""Windows that are still open, carried from one micro-batch to the next.

Once a window has closed no record changes it any more, so all that a task has to remember of a partition are its open
windows, which tasks carry on to the next batch (`pipelines.carry`). Where many windows are open and few change, a file
holds only those that changed and the end of the one it goes on from; of what several files tell of a window the newest
is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.pipelines.carry import KEPT, Carry
from ottla.pipelines.source.columns import NOTHING_YET
from ottla.streams.windows import TimeWindows

LONGEST_CHAIN: Final = 8
SMALL_SHARE: Final = 4
"""Less than one in so many open windows has changed: only those are written."""

WINDOWS: Final = ("kb", "start")
"""Key and start: what windows are told apart by. The other columns are what is known of each."""
_STREAM_TIME, _BASE = b"stream-time", b"base"


class Carried(NamedTuple):
    """What is known of a partition up to an offset."""

    end: int
    stream_time: int
    windows: pa.Table
    chain: int = 0
    """How many files the one of `end` goes on from."""


class OpenWindows:
    """The files of one partition."""

    __slots__ = ("_carry", "_schema", "_windows")

    def __init__(self, folder: Path, windows: TimeWindows, schema: pa.Schema) -> None:
        self._carry = Carry(folder, _as_bytes, _as_table, KEPT + LONGEST_CHAIN)
        self._windows = windows
        self._schema = schema

    def read(self, start: int, *, first: bool) -> Carried:
        """Raises CarryLost, unless the batch is the first one."""
        if first and start not in self._carry:
            return Carried(start, NOTHING_YET, self._schema.empty_table())
        newest = self._carry.read(start)
        tables, table = [newest], newest
        while (base := _number(table, _BASE)) is not None:
            table = self._carry.read(base)
            tables.append(table)
        stream_time = _number(newest, _STREAM_TIME)
        assert stream_time is not None
        return Carried(start, stream_time, self._open(newest_of(tables), stream_time), len(tables) - 1)

    def write(self, before: Carried, end: int, stream_time: int, changed: pa.Table) -> None:
        """`changed` are the windows that a batch changed, with all that was known of them before."""
        changed = self._open(changed, stream_time)
        whole = self._open(before.windows, stream_time)
        few = changed.num_rows * SMALL_SHARE < whole.num_rows and before.chain < LONGEST_CHAIN
        about = {_STREAM_TIME: b"%d" % stream_time}
        if few:
            about |= {_BASE: b"%d" % before.end}
        content = changed if few else newest_of([changed, whole])
        self._carry.write(end, content.replace_schema_metadata(about))

    def _open(self, table: pa.Table, stream_time: int) -> pa.Table:
        closed = stream_time - self._windows.grace_ms - self._windows.size_ms
        return table.filter(pc.greater(table.column("start"), closed))


def _as_table(content: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()


def _as_bytes(table: pa.Table) -> memoryview:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    return memoryview(buffer.getvalue())


def newest_of(tables: Sequence[pa.Table]) -> pa.Table:
    """Of several tellings of a window the first one, tables being given with the newest first."""
    filled = [table.replace_schema_metadata() for table in tables if table.num_rows]
    if len(filled) < 2:
        return filled[0] if filled else tables[0].replace_schema_metadata()
    together = pa.concat_tables(filled)
    numbered = together.select(list(WINDOWS)).append_column("row", pa.array(np.arange(together.num_rows)))
    firsts = numbered.group_by(list(WINDOWS), use_threads=False).aggregate([("row", "min")])
    return together.take(firsts.column("row_min"))


def _number(table: pa.Table, name: bytes) -> int | None:
    found = (table.schema.metadata or {}).get(name)
    return None if found is None else int(found)
