"""Rows of tables, as they are: all of them by one view, or a chunk by a view of its own."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.connect.connectors.postgresql.catalog import Catalog
from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.connectors.postgresql.pgoutput import Columns
from ottla.connect.connectors.postgresql.position import Portion, View
from ottla.connect.connectors.postgresql.server import Refused, Server, quoted
from ottla.connect.connectors.postgresql.signals import checked_condition
from ottla.connect.connectors.postgresql.tables import Capture, Table

FETCHED: Final = 500
"""Rows at a time."""
MOST_BYTES: Final = 32 << 20
"""Of the rows of one read, about."""
_VIEW: Final = "SELECT pg_current_snapshot()::text, (pg_current_wal_insert_lsn() - '0/0')::bigint"
_NO_SUCH_VIEW: Final = ("22023", "42704", "55000")


class Rows(NamedTuple):
    table: Table | None
    """None: it is gone."""
    rows: list[Columns]
    after: tuple[str, ...]
    """Where the next begin."""
    is_end: bool


class Sight:
    """A transaction that sees what a view shows."""

    __slots__ = ("_capture", "_cursor", "_declared", "_server", "_tables", "view")

    def __init__(self, config: PostgresConfig, name: str, capture: Capture, shared: View | None = None) -> None:
        """A view of its own, or a part in one. Raises Refused if that is gone, spi.TryAgain."""
        self._server = Server(config, name)
        self._capture = capture
        self._tables: dict[str, Table | None] = {}
        self._declared = False
        self._cursor: Portion | None = None
        """What the open cursor reads on from."""
        try:
            self._server.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if shared is not None:
                self._server.run(f"SET TRANSACTION SNAPSHOT {_literal(shared.name)}")
                self.view = shared
                return
            [[exported]] = self._server.rows("SELECT pg_export_snapshot()")
            [[xids, until]] = self._server.rows(_VIEW)
            self.view = View(xids, until, exported)
        except BaseException:
            self._server.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._server.is_open

    def close(self) -> None:
        self._server.close()

    def rows(self, portion: Portion, most: int) -> Rows:
        """The next ones of a table, in the order of its key. Whether they are its last is known, too."""
        table = self._table(portion.table)
        if table is None:
            return Rows(None, [], (), True)
        if self._cursor != portion:
            self._declare(table, portion)
        found: list[Columns] = []
        size = 0
        is_end = False
        while len(found) < most and size < MOST_BYTES and not is_end:
            asked = min(FETCHED, most - len(found))
            fetched = self._server.texts(f"FETCH {asked} FROM ottla_rows")
            is_end = len(fetched) < asked
            size += sum(len(each) for row in fetched for each in row if isinstance(each, str))
            found += fetched
        after = portion.after
        if found:
            last = found[-1]
            after = tuple(str(last[place]) for place in table.key_places) if table.key_places else (str(last[-1]),)
        if not table.key_places:
            found = [row[:-1] for row in found]
        self._cursor = None if is_end else portion._replace(after=after)
        return Rows(table, found, after, is_end)

    def _table(self, full_name: str) -> Table | None:
        if full_name not in self._tables:
            self._tables[full_name] = described(full_name, Catalog(self._server), self._capture)
        return self._tables[full_name]

    def _declare(self, table: Table, portion: Portion) -> None:
        facts = list(_columns(Catalog(self._server), table))
        key = [facts[place] for place in table.key_places] or ["ctid"]
        names = ", ".join(map(quoted, facts)) + ("" if table.key_places else ", ctid")
        order = ", ".join(map(_order_name, key))
        conditions = [f"({checked_condition(portion)})"] if portion.condition else []
        if portion.after:
            marks = ", ".join(["%s"] * len(portion.after))
            conditions.append(f"({order}) > ({marks})" if len(key) > 1 else f"{order} > {marks}")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        if self._declared:
            self._server.run("CLOSE ottla_rows")
        self._declared, self._cursor = True, None
        asked = f"{quoted(table.schema)}.{quoted(table.name)}"
        self._server.texts(
            f"DECLARE ottla_rows NO SCROLL CURSOR FOR SELECT {names} FROM {asked} {where} ORDER BY {order}",
            portion.after,
        )
        self._cursor = portion


def _order_name(name: str) -> str:
    return name if name == "ctid" else quoted(name)


def _columns(catalog: Catalog, table: Table) -> list[str]:
    oid = catalog.oid(table.schema, table.name)
    return [] if oid is None else list(catalog.table(oid, table.schema, table.name).columns)


def described(full_name: str, catalog: Catalog, capture: Capture) -> Table | None:
    """As it is now; None if it is gone."""
    schema, _, name = full_name.partition(".")
    oid = catalog.oid(schema, name)
    if oid is None:
        return None
    facts = catalog.table(oid, schema, name)
    return Table(facts, list(facts.columns), capture) if facts.columns else None


def joined(config: PostgresConfig, name: str, capture: Capture, view: View) -> Sight | None:
    """None: whoever made the view is gone, and the view with it."""
    try:
        return Sight(config, name, capture, view)
    except Refused as error:
        if error.state in _NO_SUCH_VIEW:
            return None
        raise


def _literal(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
