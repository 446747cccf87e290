"""JdbcSink: records as rows, each micro-batch in one transaction with the offsets that it brought.

Rows are staged by Arrow and put in place by one statement for each table; of several changes of one key in a batch the
last counts. If the database does not take a statement, its rows are halved until the ones to blame are found: those
are dead letters, and the others are written. A table or column that is gone is no row's fault: it is made again, or the
connector fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.config import SinkConfig
from ottla.connect.connectors.jdbc.connecting import connected
from ottla.connect.connectors.jdbc.database import STAGE, Database, Missing, Rejected
from ottla.connect.connectors.jdbc.ledger import Ledger
from ottla.connect.connectors.jdbc.rows import Change, Shape, Shapes, laid_out, staged
from ottla.connect.connectors.jdbc.tables import Tables
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.connectors.tables.quick_rows import quick_rows
from ottla.connect.converters.json_texts import parsed
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.record import ConnectRecord

if TYPE_CHECKING:
    import pyarrow as pa

_SAVED: Final = "ottla_before"
_BAD: Final = (Rejected, ValueError, TypeError, OverflowError, ArithmeticError)
"""What a row may be to blame for."""


class JdbcSink(spi.Sink[SinkConfig]):
    exactly_once = True
    first_records = 20_000

    def __init__(self, config: SinkConfig, name: str) -> None:
        super().__init__(config, name)
        self._address = parse_url(config.connection_url, config.user, config.connection_password)
        self._open: _Open | None = None
        self._shapes = Shapes(config)
        self._spans: Sequence[spi.Span] = ()
        self._passed: dict[tuple[str, int], int] = {}

    def validate(self) -> None:
        if self.config.insert_mode != "insert" and self.config.key_mode == "none":
            raise spi.ConfigRefused("pk.mode", f"insert.mode={self.config.insert_mode} needs a key: none will not do")
        if self.config.delete_enabled and self.config.key_mode != "record_key":
            raise spi.ConfigRefused("delete.enabled", "rows are deleted by the record's key: set pk.mode=record_key")

    def begin(self, spans: Sequence[spi.Span]) -> None:
        if self._open is None:
            self._open = _Open(connected(self._address), self.config, self.name)
        try:
            self._open.database.rollback()
            self._open.tables.touched.clear()
            self._spans = spans
            self._passed = self._open.ledger.begin(spans)
        except (spi.TryAgain, Rejected) as error:
            self._drop()
            raise spi.TryAgain(f"the ledger of offsets cannot be read: {error}") from error

    @property
    def takes_json(self) -> bool:
        return self.config.key_mode in ("none", "record_value")

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        if self._open is None:
            raise spi.ConnectorFailed(
                "The connection was lost in the middle of a batch, which is written when the connector is started again"
            )
        for columns in batch.columns:
            self._write_json(self._open, columns)
        changes: list[Change] = []
        refused: list[spi.Refused] = []
        change_of = self._shapes.change
        for at, record in enumerate(batch.records):
            if self._passed and self._is_there(record):
                continue
            try:
                changes.append(change_of(record, at))
            except ConnectException as error:
                refused.append(spi.Refused(at, error))
        last, before = _last_of_each(changes)
        try:
            while last:
                bad = self._put(self._open, last)
                refused += bad
                # What a change that is no good stood in the place of counts after all.
                last = [before[each.at] for each in bad if each.at in before]
        except spi.TryAgain:
            self._drop()
            raise
        return refused

    def _put(self, opened: _Open, changes: Sequence[Change]) -> list[spi.Refused]:
        """Of different keys. Those that the database does not take."""
        refused: list[spi.Refused] = []
        # All tables first: MariaDB changes none that the transaction has written to.
        ready: list[tuple[list[Change], Mapping[str, str]]] = []
        for group in _grouped(changes, self.config.batch_size):
            try:
                ready.append((group, opened.types(group[0].shape)))
            except spi.BadRecord as error:
                refused += [spi.Refused(change.at, error) for change in group]
        for group, types in ready:
            refused += opened.written(group, types)
        return refused

    def _write_json(self, opened: _Open, columns: spi.Columns) -> None:
        """All of it, or none. Raises OneByOne."""
        rows = quick_rows(columns.values, None)
        if rows is None or columns.offsets[0] < self._passed.get((columns.topic, columns.partition), -1):
            raise spi.OneByOne
        shape, laid = laid_out(columns.topic, parsed(columns.values[0].as_py()), rows, self.config)
        try:
            if not opened.takes(shape, laid):
                raise spi.OneByOne
        except spi.BadRecord as error:
            raise spi.OneByOne from error
        except spi.TryAgain:
            self._drop()
            raise

    def _is_there(self, record: ConnectRecord) -> bool:
        # A transform may have changed the topic: the offset counts where the record was read.
        read: Any = record if record.origin is None else record.origin
        assert record.offset is not None
        return record.offset < self._passed.get((read.topic, read.partition), -1)

    def end(self) -> spi.Verdicts:
        assert self._open is not None, "begin comes before"
        try:
            self._open.ledger.end(self._spans)
            self._open.database.commit()
        except (spi.TryAgain, Rejected) as error:
            self._drop()
            raise spi.TryAgain(f"the transaction cannot be committed: {error}") from error
        return ()

    def close(self) -> None:
        self._drop()

    def _drop(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            with suppress(spi.TryAgain, Rejected):  # it may have gone already
                opened.database.close()


class _Open:
    """One connection and what is known of its tables."""

    __slots__ = ("_config", "database", "ledger", "tables")

    def __init__(self, database: Database, config: SinkConfig, name: str) -> None:
        self.database = database
        self._config = config
        self.ledger = Ledger(database, name)
        self.tables = Tables(database, makes=config.makes_tables, adds=config.adds_columns)

    def types(self, shape: Shape) -> Mapping[str, str]:
        """Of the columns, all of which are there now. Raises BadRecord."""
        return self.tables.columns(shape.table, shape.columns, shape.keys)

    def takes(self, shape: Shape, rows: pa.Table) -> bool:
        """Whether it took all of them; or none. Raises BadRecord."""
        types = self.types(shape)
        self.tables.touched.add(shape.table)
        self.database.execute(f"SAVEPOINT {_SAVED}")
        try:
            for start in range(0, len(rows), self._config.batch_size):
                self._put(shape, rows.slice(start, self._config.batch_size), types)
        except _BAD:
            self._undo()
            return False
        self.database.execute(f"RELEASE SAVEPOINT {_SAVED}")
        return True

    def written(self, group: Sequence[Change], types: Mapping[str, str]) -> list[spi.Refused]:
        """Those that the database does not take."""
        table = group[0].shape.table
        self.tables.touched.add(table)
        try:
            return list(self._halved(group, types))
        except Missing:
            self.tables.forget(table)  # somebody has changed it since it was looked at
        try:
            return list(self._halved(group, self.types(group[0].shape)))
        except Missing as error:
            raise spi.ConnectorFailed(f"Table {table} cannot be written to: {error}") from error

    def _halved(self, group: Sequence[Change], types: Mapping[str, str]) -> Iterator[spi.Refused]:
        self.database.execute(f"SAVEPOINT {_SAVED}")
        try:
            self._put(group[0].shape, staged(group, self.database.dialect.name), types)
            self.database.execute(f"RELEASE SAVEPOINT {_SAVED}")
            return
        except Missing:
            self._undo()
            raise
        except _BAD as error:
            self._undo()
            if len(group) == 1:
                yield spi.Refused(group[0].at, str(error))
                return
        half = len(group) // 2
        yield from self._halved(group[:half], types)
        yield from self._halved(group[half:], types)

    def _undo(self) -> None:
        self.database.execute(f"ROLLBACK TO SAVEPOINT {_SAVED}")
        self.database.execute(f"RELEASE SAVEPOINT {_SAVED}")

    def _put(self, shape: Shape, rows: pa.Table, types: Mapping[str, str]) -> None:
        dialect = self.database.dialect
        table = self.tables.quoted(shape.table)
        self.database.stage(rows, table)
        names, keys = list(shape.columns), list(shape.keys)
        of = {name: dialect.cast(f"{STAGE}.{dialect.quoted(name)}", types[name]) for name in names}
        same = " AND ".join(f"{table}.{dialect.quoted(name)} = {of[name]}" for name in keys)
        if shape.deletes:
            self.database.execute(dialect.delete(table, STAGE, same))
            return
        others = [name for name in names if name not in keys]
        if self._config.insert_mode == "update":
            changed = [(dialect.quoted(name), of[name]) for name in others]
            self.database.execute(dialect.update(table, STAGE, changed, same))
            return
        columns = ", ".join(map(dialect.quoted, names))
        tail = dialect.upsert_tail(keys, others) if self._config.insert_mode == "upsert" else ""
        values = ", ".join(of[name] for name in names)
        self.database.execute(f"INSERT INTO {table} ({columns}) SELECT {values} FROM {STAGE}{tail}")


def _last_of_each(changes: Sequence[Change]) -> tuple[list[Change], dict[int, Change]]:
    """Of each key the last change only, so that order does not matter between groups; and by the places of those that
    there are others before, the one before."""
    last: dict[tuple[object, ...], Change] = {}
    before: dict[int, Change] = {}
    for change in changes:
        shape = change.shape
        one: tuple[object, ...] = (shape.table, *change.key) if shape.keys else (change.at,)
        if (earlier := last.get(one)) is not None:
            before[change.at] = earlier
        last[one] = change
    return list(last.values()), before


def _grouped(changes: Sequence[Change], most: int) -> Iterator[list[Change]]:
    """By table, kind and columns; so many at a time."""
    groups: dict[int, list[Change]] = {}
    for change in changes:
        groups.setdefault(id(change.shape), []).append(change)
    for group in groups.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]
