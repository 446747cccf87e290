"""Counts of the windows that are still open, carried from one micro-batch to the next.

Once a window has closed no record changes it any more, so all that counting has to remember of a partition are its open
windows. Each task leaves them in a file named after the offset at which it ended, and the batch that begins there takes
them up: one that runs again finds what it found the first time. Where many windows are open and few change, a file
holds only those that changed and the name of the one it goes on from. Counts and times only grow, so putting files
together is taking the largest.
"""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.streams.windows import TimeWindows

NOTHING_YET: Final = -1
"""Stream time before the first record: what Kafka Streams starts with."""
KEPT: Final = 12
"""Files that stay for each partition, beside those that they go on from: more than the batches that Spark can go back
(minBatchesToRetain)."""
LONGEST_CHAIN: Final = 8
SMALL_SHARE: Final = 4
"""Less than one in so many open windows has changed: only those are written."""

WINDOWS: Final = ("kb", "start")
SCHEMA: Final = pa.schema([("kb", pa.binary()), ("start", pa.int64()), ("ts", pa.int64()), ("all", pa.int64())])
"""Key and start of a window, the latest time in it, and how many records."""
_STREAM_TIME, _BASE = b"stream-time", b"base"


class Carried(NamedTuple):
    """What is known of a partition up to an offset."""

    end: int
    stream_time: int
    windows: pa.Table
    chain: int = 0
    """How many files the one of `end` goes on from."""


class StateLost(Exception):
    """A batch begins where no batch has ended."""


class OpenWindows:
    """The files of one partition."""

    __slots__ = ("_folder", "_windows")

    def __init__(self, folder: Path, windows: TimeWindows) -> None:
        self._folder = folder
        self._windows = windows

    def read(self, start: int, *, first: bool) -> Carried:
        """Raises StateLost, unless the batch is the first one."""
        if first and not (self._folder / str(start)).exists():
            return Carried(start, NOTHING_YET, SCHEMA.empty_table())
        newest = self._file(start)
        tables, table = [newest], newest
        while (base := _number(table, _BASE)) is not None:
            table = self._file(base)
            tables.append(table)
        stream_time = _number(newest, _STREAM_TIME)
        assert stream_time is not None
        return Carried(start, stream_time, self._open(largest(tables), stream_time), len(tables) - 1)

    def write(self, before: Carried, end: int, stream_time: int, changed: pa.Table) -> None:
        """`changed` are the windows that a batch changed, with all that was counted in them before."""
        changed = self._open(changed, stream_time)
        whole = self._open(before.windows, stream_time)
        few = changed.num_rows * SMALL_SHARE < whole.num_rows and before.chain < LONGEST_CHAIN
        about = {_STREAM_TIME: b"%d" % stream_time}
        if few:
            about |= {_BASE: b"%d" % before.end}
        content = changed if few else largest([changed, whole])
        self._write(str(end), content.replace_schema_metadata(about))
        for old in sorted(self._ends())[: -KEPT - LONGEST_CHAIN]:
            (self._folder / str(old)).unlink(missing_ok=True)

    def _open(self, table: pa.Table, stream_time: int) -> pa.Table:
        closed = stream_time - self._windows.grace_ms - self._windows.size_ms
        return table.filter(pc.greater(table.column("start"), closed))

    def _file(self, end: int) -> pa.Table:
        try:
            with pa.OSFile(str(self._folder / str(end))) as file:
                return pa.ipc.open_file(file).read_all()
        except (FileNotFoundError, pa.ArrowInvalid) as error:
            raise StateLost(
                f"[ottla] the counts of open windows up to offset {end} should be in {self._folder}, and are not: "
                f"what was in state.dir is lost, and the application needs a reset [end]"
            ) from error

    def _write(self, name: str, content: pa.Table) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._folder / f".{name}.{token_hex(4)}"
        with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
            writer.write_table(content)
        unfinished.replace(self._folder / name)

    def _ends(self) -> list[int]:
        return [int(name) for name in os.listdir(self._folder) if name.isdigit()]


def largest(tables: list[pa.Table]) -> pa.Table:
    """Of several tellings of a window the latest, which counts most."""
    return _grouped(tables, "max")


def summed(tables: list[pa.Table]) -> pa.Table:
    """Counts are added up, of other columns the largest is taken."""
    return _grouped(tables, "sum")


def _grouped(tables: list[pa.Table], counts: str) -> pa.Table:
    filled = [table for table in tables if table.num_rows]
    if len(filled) < 2:
        return (filled or tables)[0].replace_schema_metadata()
    together = pa.concat_tables([table.replace_schema_metadata() for table in filled])
    others = [name for name in together.column_names if name not in WINDOWS]
    how = {name: counts if name == "all" else "max" for name in others}
    found = together.group_by(list(WINDOWS), use_threads=False).aggregate(list(how.items()))
    return found.rename_columns({f"{name}_{each}": name for name, each in how.items()}).select(together.column_names)


def _number(table: pa.Table, name: bytes) -> int | None:
    found = (table.schema.metadata or {}).get(name)
    return None if found is None else int(found)
