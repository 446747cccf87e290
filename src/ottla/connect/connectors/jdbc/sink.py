"""JdbcSink: records as rows, each micro-batch in one transaction with the offsets that it brought.

Rows are staged by Arrow and put in place by one statement for each table; of several changes of one key in a batch the
last counts. If the database does not take a statement, its rows are halved until the ones to blame are found: those
are dead letters, and the others are written. A table or column that is gone is no row's fault: it is made again, or the
connector fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.config import SinkConfig
from ottla.connect.connectors.jdbc.connecting import connected
from ottla.connect.connectors.jdbc.database import STAGE, Database, Missing, Rejected
from ottla.connect.connectors.jdbc.ledger import Ledger
from ottla.connect.connectors.jdbc.rows import Change, Shapes, staged
from ottla.connect.connectors.jdbc.tables import Tables
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.record import ConnectRecord

_SAVED: Final = "ottla_before"


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

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        if self._open is None:
            raise spi.ConnectorFailed(
                "The connection was lost in the middle of a batch, which is written when the connector is started again"
            )
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
        try:
            groups = list(_grouped(changes))
            # All tables first: MariaDB changes none that the transaction has written to.
            types = [self._open.types(group) for group in groups]
            for group, known in zip(groups, types, strict=True):
                refused += self._open.written(group, known)
        except spi.TryAgain:
            self._drop()
            raise
        return refused

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

    def types(self, group: Sequence[Change]) -> Mapping[str, str]:
        """Of the columns, all of which are there now."""
        shape = group[0].shape
        return self.tables.columns(shape.table, shape.columns, shape.keys)

    def written(self, group: Sequence[Change], types: Mapping[str, str]) -> list[spi.Refused]:
        """Those that the database does not take."""
        table = group[0].shape.table
        self.tables.touched.add(table)
        try:
            return list(self._halved(group, types))
        except Missing:
            self.tables.forget(table)  # somebody has changed it since it was looked at
        try:
            return list(self._halved(group, self.types(group)))
        except Missing as error:
            raise spi.ConnectorFailed(f"Table {table} cannot be written to: {error}") from error

    def _halved(self, group: Sequence[Change], types: Mapping[str, str]) -> Iterator[spi.Refused]:
        self.database.execute(f"SAVEPOINT {_SAVED}")
        try:
            self._put(group, types)
            self.database.execute(f"RELEASE SAVEPOINT {_SAVED}")
            return
        except Missing:
            self._undo()
            raise
        except (Rejected, ValueError, TypeError, OverflowError, ArithmeticError) as error:
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

    def _put(self, group: Sequence[Change], types: Mapping[str, str]) -> None:
        dialect, shape = self.database.dialect, group[0].shape
        table = self.tables.quoted(shape.table)
        self.database.stage(staged(group, dialect.name), table)
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


def _grouped(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """By table, kind and columns; of one key the last change only, so that order does not matter between groups."""
    last: dict[tuple[object, ...], Change] = {}
    for change in changes:
        shape = change.shape
        one: tuple[object, ...] = (shape.table, *change.key) if shape.keys else (change.at,)
        last[one] = change
    groups: dict[int, list[Change]] = {}
    for change in last.values():
        groups.setdefault(id(change.shape), []).append(change)
    yield from groups.values()
