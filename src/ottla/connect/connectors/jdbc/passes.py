"""A pass through a table, from its first row to its last: what bulk reads again and again, and windows of transactions
once each.

It is a query whose answer is taken batch by batch and stays open between reads. Where that was lost, the pass goes on
behind the last key; in a table without one, behind as many rows as were given, which is right as long as it rests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.connect.connectors.jdbc.database import Database

if TYPE_CHECKING:
    import pyarrow as pa

_KEYS: Final = {
    "postgresql": (
        "SELECT a.attname::text, format_type(a.atttypid, NULL)::text FROM pg_index i JOIN pg_attribute a ON "
        "a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = to_regclass($1) AND i.indisprimary "
        "ORDER BY array_position(i.indkey::int2[], a.attnum)"
    ),
    "sqlite": "SELECT name, type FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk",
    "mysql": (
        "SELECT k.column_name, c.data_type FROM information_schema.key_column_usage k JOIN information_schema.columns c"
        " USING (table_schema, table_name, column_name) WHERE k.constraint_name = 'PRIMARY' AND k.table_schema = "
        "COALESCE(%s, database()) AND k.table_name = %s ORDER BY k.ordinal_position"
    ),
}
_ORDERED: Final = (
    *("smallint", "integer", "bigint", "tinyint", "mediumint", "int", "text", "character varying", "character"),
    *("varchar", "char"),
)
"""Types whose values go into a position as JSON has them, and come back as they were."""


class Place(NamedTuple):
    """In a pass: how many rows were given, and the key of the last."""

    rows: int = 0
    after: tuple[Any, ...] = ()

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Place:
        return cls(int(offset.get("rows", 0)), tuple(offset.get("after") or ()))

    def offset(self) -> dict[str, Any]:
        made: dict[str, Any] = {"rows": self.rows}
        if self.after:
            made["after"] = list(self.after)
        return made


class Pass(NamedTuple):
    """What is passed through."""

    source: str
    """What stands behind FROM."""
    keys: tuple[str, ...]
    """Columns by which it is in order, and each row has values of its own; none: as the database gives it."""
    condition: str = ""

    def sql(self, database: Database, place: Place, limit: int | None = None) -> str:
        quoted = database.dialect.quoted
        conditions = [self.condition] if self.condition else []
        names = ", ".join(map(quoted, self.keys))
        skipped = 0
        if self.keys and place.after:
            last = ", ".join(map(database.dialect.literal, place.after))
            conditions.append(f"({names}) > ({last})" if len(self.keys) > 1 else f"{names} > {last}")
        elif place.rows:
            skipped = place.rows
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = f" ORDER BY {names}" if self.keys else ""
        return f"SELECT * FROM {self.source}{where}{order}{database.dialect.page(limit, skipped)}"

    def behind(self, place: Place, given: pa.Table) -> Place:
        if not given.num_rows:
            return place
        last = given.slice(given.num_rows - 1)
        after = tuple(last.column(name)[0].as_py() for name in self.keys)
        return Place(place.rows + given.num_rows, after)


class Running:
    """A pass that is under way, on a connection of its own."""

    __slots__ = ("_answer", "_database", "_left", "place", "through")

    def __init__(self, database: Database, through: Pass, place: Place) -> None:
        self._database = database
        self.through = through
        self.place = place
        self._answer: Iterator[pa.RecordBatch] = database.stream(through.sql(database, place))
        self._left: pa.Table | None = None

    def take(self, most: int) -> pa.Table | None:
        """Up to so many rows; None behind the last."""
        import pyarrow as pa  # noqa: PLC0415  heavy

        parts = [] if self._left is None else [self._left]
        count = sum(part.num_rows for part in parts)
        while count < most:
            batch = next(self._answer, None)
            if batch is None:
                break
            parts.append(pa.Table.from_batches([batch]))
            count += batch.num_rows
        if not count:
            return None
        whole = pa.concat_tables(parts)
        self._left = whole.slice(most) if count > most else None
        taken = whole.slice(0, most)
        self.place = self.through.behind(self.place, taken)
        return taken

    def close(self) -> None:
        self._database.close()


def key_columns(database: Database, table: str) -> tuple[str, ...]:
    """By which a table can be passed through; none if it has no key, or one of a type that a position cannot hold."""
    name = database.dialect.name
    schema, _, bare = table.rpartition(".")
    values: Sequence[Any] = [table]
    if name == "postgresql":
        values = [".".join(map(database.dialect.quoted, table.split(".")))]
    elif name == "mysql":
        values = [schema or None, bare]
    found = database.rows(_KEYS[name], values)
    if any(kind.lower().partition("(")[0] not in _ORDERED for _, kind in found):
        return ()
    return tuple(column for column, _ in found)
