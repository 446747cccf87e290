"""Which offsets are in the database: a table of its own, written in the transaction of what they brought.

The topic is filed by name and id, so one that was deleted and made again is read from its beginning.
The rows of a task's partitions stay locked while it writes, so that one that was given up and still runs waits, finds
its offsets passed, and writes nothing.
"""

from collections.abc import Sequence
from typing import Final

from ottla.connect.connectors.jdbc.database import Database
from ottla.connect.spi import Span

TABLE: Final = "ottla_connect_offsets"
_CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (connector varchar(255) NOT NULL, topic varchar(280) NOT NULL, "
    "part integer NOT NULL, next_offset bigint NOT NULL, PRIMARY KEY (connector, topic, part))"
)


class Ledger:
    """Of one connector."""

    __slots__ = ("_connector", "_database", "_made")

    def __init__(self, database: Database, connector: str) -> None:
        self._database = database
        self._connector = connector
        self._made = False

    def begin(self, spans: Sequence[Span]) -> dict[tuple[str, int], int]:
        """Where each partition goes on, of which something is there already."""
        if not self._made:
            self._database.define(_CREATE)
            self._database.commit()
            self._made = True
        found = {}
        for span in sorted(spans):
            offset = self._next(span)
            if offset is None:
                self._insert(span)
            else:
                found[span.topic, span.partition] = offset
        return found

    def end(self, spans: Sequence[Span]) -> None:
        mark = self._database.mark
        for span in sorted(spans):
            self._database.execute(
                f"UPDATE {TABLE} SET next_offset = {mark(1)} WHERE connector = {mark(2)} AND topic = {mark(3)} AND "
                f"part = {mark(4)} AND next_offset < {mark(5)}",
                [span.end, self._connector, span.log, span.partition, span.end],
            )

    def _next(self, span: Span) -> int | None:
        mark = self._database.mark
        locked = "" if self._database.dialect.name == "sqlite" else " FOR UPDATE"
        rows = self._database.rows(
            f"SELECT next_offset FROM {TABLE} WHERE connector = {mark(1)} AND topic = {mark(2)} AND part = {mark(3)}"
            + locked,
            [self._connector, span.log, span.partition],
        )
        return None if not rows else int(rows[0][0])

    def _insert(self, span: Span) -> None:
        mark = self._database.mark
        self._database.execute(
            f"INSERT INTO {TABLE} VALUES ({mark(1)}, {mark(2)}, {mark(3)}, {mark(4)})",
            [self._connector, span.log, span.partition, span.start],
        )
