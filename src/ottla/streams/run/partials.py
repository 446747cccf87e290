"""Parts of aggregates (`expressions.parts`) by Arrow: of the records of a batch, and of parts that come together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.serdes.arrow import arrow_type
from ottla.serdes.types import BINARY, INT, LONG, Type
from ottla.streams.expressions.parts import Of, Part

ENOUGH_ROWS: Final = 200_000
"""Parts that are held before they are put together."""

KEY_TYPES: Final = {"kb": BINARY, "task": INT, "hash": INT, "start": LONG}
LATEST: Final = ("ts", "origin")
"""The latest time, and the number of the last record."""


@dataclass(frozen=True, slots=True)
class Partials:
    """What records are told apart by, and what is told of those that are alike."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]

    def columns(self) -> dict[str, Type]:
        """Of `made` and `merged`."""
        return {
            **{name: KEY_TYPES[name] for name in self.keys},
            **dict.fromkeys(LATEST, LONG),
            **{part.name: part.type for part in self.parts},
        }

    def schema(self) -> pa.Schema:
        return pa.schema([(name, arrow_type(kind)) for name, kind in self.columns().items()])

    def made(self, records: pa.Table) -> pa.Table:
        """Of the columns `keys`, ts, origin and what parts are made of: a row for all records with the same keys."""
        columns = {name: records.column(name) for name in (*self.keys, *LATEST)}
        wanted: list[tuple[str | list[str], str]] = [(name, "max") for name in LATEST]
        for part in self.parts:
            if part.of is Of.RECORD:
                wanted.append(([], "count_all"))
                continue
            columns[part.name] = _INPUTS[part.of](records.column(part.argument), part)
            wanted.append((part.name, "count" if part.of is Of.PRESENT else part.merge.value))
        return self._named(pa.table(columns).group_by(list(self.keys), use_threads=False).aggregate(wanted))

    def merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        filled = [table for table in tables if table.num_rows]
        if len(filled) < 2:
            return filled[0] if filled else self.schema().empty_table()
        together = pa.concat_tables(filled)
        wanted = [*((name, "max") for name in LATEST), *((part.name, part.merge.value) for part in self.parts)]
        return self._named(together.group_by(list(self.keys), use_threads=False).aggregate(wanted))

    def _named(self, found: pa.Table) -> pa.Table:
        return found.rename_columns(list(self.columns())).cast(self.schema())


def _plain(column: pa.ChunkedArray, part: Part) -> pa.ChunkedArray:
    return column.cast(arrow_type(part.type))


_INPUTS: Final[dict[Of, Callable[[pa.ChunkedArray, Part], pa.ChunkedArray]]] = {
    Of.PRESENT: lambda column, _: column,
    Of.VALUE: _plain,
    Of.HIGH: lambda column, _: pc.shift_right(column, 32),
    Of.LOW: lambda column, _: pc.bit_wise_and(column, 0xFFFFFFFF),
    Of.NUMBER: lambda column, _: pc.if_else(pc.is_nan(column), None, column),
    Of.NAN: lambda column, _: pc.is_nan(column).cast(pa.int64()),
}


class Gathering:
    """Parts of one batch after the other, put together whenever there are many."""

    __slots__ = ("_enough", "_held", "_partials")

    def __init__(self, partials: Partials) -> None:
        self._partials = partials
        self._held: list[pa.Table] = []
        self._enough = ENOUGH_ROWS

    def add(self, records: pa.Table) -> None:
        self._held.append(self._partials.made(records))
        if sum(table.num_rows for table in self._held) > self._enough:
            self._held = [self.result()]
            self._enough = max(ENOUGH_ROWS, 2 * self._held[0].num_rows)

    def result(self) -> pa.Table:
        return self._partials.merged(self._held)
