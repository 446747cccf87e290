"""JdbcSource: rows of tables, or of a query, as records; each table is a partition with a position of its own.

By a column that only grows, rows may still come late: a transaction that took its number early and commits after
others. The position keeps the holes among the last numbers (`incrementing.look.back`), and they are asked for again. By
time, rows younger than `timestamp.delay.interval.ms` are left for later, all rows of one time come together, and what
turns up late is looked for `timestamp.look.back.ms` back (`late`). On PostgreSQL `snapshot.safe` needs neither: rows
are read by the transactions that wrote them, when none of those before them is under way any more (`windows`).

Rows stay in Arrow's columns from the driver to the topic where converters and transforms let them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.columns import topic_table
from ottla.connect.connectors.jdbc.config import SourceConfig
from ottla.connect.connectors.jdbc.connecting import connected
from ottla.connect.connectors.jdbc.database import Database, Rejected
from ottla.connect.connectors.jdbc.holes import Holes
from ottla.connect.connectors.jdbc.late import Seen, digest
from ottla.connect.connectors.jdbc.passes import Pass, Place, Running, key_columns
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.connectors.jdbc.windows import HORIZON, Window

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES: Final = {
    "postgresql": (
        "SELECT table_name::text FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = "
        "current_schema() ORDER BY 1"
    ),
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    "mysql": (
        "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = database()"
        " ORDER BY 1"
    ),
}
HELD_FROM: Final = 5_000
"""Who asks for fewer rows than this only looks whether there is something: nothing is held open for them."""
_AT: Final = "ottla_at"
"""The column with the time that counts."""


class JdbcSource(spi.Source[SourceConfig]):
    def __init__(self, config: SourceConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006
        super().__init__(config, name, partition)
        self._address = parse_url(config.connection_url, config.user, config.connection_password)
        self._database: Database | None = None
        self._running: Running | None = None
        self._keys: tuple[str, ...] | None = None

    def validate(self) -> None:
        config = self.config
        if "incrementing" in config.mode and not config.incrementing_column_name:
            raise spi.ConfigRefused("incrementing.column.name", f"mode={config.mode} needs it")
        if "timestamp" in config.mode and not config.timestamp_column_name:
            raise spi.ConfigRefused("timestamp.column.name", f"mode={config.mode} needs it")
        if config.query and (config.table_whitelist or config.table_include_list):
            raise spi.ConfigRefused("query", "cannot be used together with table.whitelist")
        if config.snapshot_safe and (self._address.dialect != "postgresql" or config.mode == "bulk" or config.query):
            raise spi.ConfigRefused("snapshot.safe", "is for tables of PostgreSQL, in another mode than bulk")

    def partitions(self) -> Sequence[spi.Partition]:
        if self.config.query:
            return [{"query": "query"}]
        wanted = self.config.table_whitelist or self.config.table_include_list
        if not wanted:
            found = self._asked(_TABLES[self._address.dialect]).column(0).to_pylist()
            wanted = tuple(name for name in found if name not in self.config.table_blacklist)
        return [{"protocol": "1", "table": name} for name in wanted]

    @classmethod
    def check_offset(cls, partition: spi.Partition, offset: spi.Offset | None) -> None:
        spi.text_of(partition, "query" if "query" in partition else "table")
        given = offset or {}
        try:
            for read in (Place.of, Window.of, Seen.of, *((Holes.of,) if "incrementing" in given else ())):
                read(given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{dict(given)} is no position in a table: {error}") from None

    def poll_interval_ms(self) -> int:
        return self.config.poll_interval_ms

    def close(self) -> None:
        self._end_pass()
        opened, self._database = self._database, None
        if opened is not None:
            opened.close()

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        most = min(limit, self.config.batch_max_rows)
        if self.config.mode == "bulk":
            return self._all(start or {}, limit)
        if self.config.snapshot_safe:
            return self._by_transaction(Window.of(start), Place.of(start or {}), limit)
        if self.config.mode == "incrementing":
            return self._by_number(Holes.of(start), most)
        return self._by_time(start or {}, most)

    # ---- all of it, again and again

    def _all(self, start: spi.Offset, limit: int) -> spi.Read:
        now_ms = time.time_ns() // 1_000_000
        if int(start.get("next_ms", 0)) > now_ms:
            return spi.Read((), None, more=False)
        place, number = Place.of(start), int(start.get("round", 0))
        through = Pass(self._from(), () if self.config.query else self._key())
        found = self._passed(through, place, limit)
        if found is None and not place.rows:
            return spi.Read((), None, more=False)
        if found is None or found.num_rows < self._most(limit):
            end = {"round": number + 1, "next_ms": now_ms + self.config.poll_interval_ms}
            return spi.Read(() if found is None else self._table(found), end, more=False)
        end = {"round": number, **through.behind(place, found).offset()}
        return spi.Read(self._table(found), end, more=True)

    def _most(self, limit: int) -> int:
        return min(limit, self.config.batch_max_rows)

    def _key(self) -> tuple[str, ...]:
        if self._keys is None:
            self._keys = self._trying(lambda database: key_columns(database, str(self.partition["table"])), "its key")
        return self._keys

    def _passed(self, through: Pass, place: Place, limit: int) -> pa.Table | None:
        """The next rows of a pass."""
        if limit < HELD_FROM:
            found = self._asked(through.sql(self._connection(), place, self._most(limit)))
            return found if found.num_rows else None
        if self._running is None or (self._running.through, self._running.place) != (through, place):
            self._end_pass()
            self._running = Running(connected(self._address), through, place)
        try:
            found = self._running.take(self._most(limit))
        except Rejected as error:
            self._end_pass()
            raise spi.ConnectorFailed(f"{error}; asked: {through.sql(self._connection(), place)}") from error
        except spi.TryAgain:
            self._end_pass()
            raise
        if found is None or found.num_rows < self._most(limit):
            self._end_pass()
        return found

    def _end_pass(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            with suppress(spi.TryAgain, Rejected):  # it may have gone already
                running.close()

    # ---- by the transactions that wrote

    def _by_transaction(self, window: Window, place: Place, limit: int) -> spi.Read:
        keys = (self.config.incrementing_column_name,) if "incrementing" in self.config.mode else self._key()
        if not keys:
            raise spi.ConnectorFailed(
                f"snapshot.safe needs a column to go by, and {self.partition['table']} has no primary key of numbers or"
                " texts: set mode=incrementing and incrementing.column.name"
            )
        if window.until is None:
            window = window.opened(int(self._asked(HORIZON).column(0)[0].as_py()))
            if window.is_empty:
                return spi.Read((), None, more=False)
        through = Pass(self._from(), keys, window.condition())
        found = self._passed(through, place, limit)
        if found is None and not place.rows:
            return spi.Read((), None, more=False)  # the next window begins where this one does
        if found is None or found.num_rows < self._most(limit):
            return spi.Read(() if found is None else self._table(found), window.closed().offset(), more=False)
        end = {**window.offset(), **through.behind(place, found).offset()}
        return spi.Read(self._table(found), end, more=True)

    # ---- by a number

    def _by_number(self, holes: Holes, most: int) -> spi.Read:
        column = self._quoted(self.config.incrementing_column_name)
        table = self._query(f"WHERE {holes.condition(column)}", f"ORDER BY {column} LIMIT {most}")
        if table.num_rows == 0:
            return spi.Read((), None, more=False)
        numbers = table.column(self.config.incrementing_column_name).to_pylist()
        after = holes.after([int(each) for each in numbers], self.config.incrementing_look_back)
        return spi.Read(self._table(table), after.offset(), more=table.num_rows >= most)

    # ---- by a time

    def _by_time(self, start: spi.Offset, most: int) -> spi.Read:
        late = self._late(start, most)
        if late is not None:
            return late
        at, number = self._time_column(), self._number_column()
        condition = f"{at} < {self._bound()}"
        if "micros" in start:
            last = self._time(int(start["micros"]))
            later = f"{at} > {last}"
            if number:
                later = f"({later} OR ({at} = {last} AND {number} > {int(start['incrementing'])}))"
            condition += f" AND {later}"
        if number:
            table = self._query(f"WHERE {condition}", f"ORDER BY {at}, {number} LIMIT {most}", extra=at)
        else:
            page = f"SELECT {at} AS c FROM {self._from()} WHERE {condition} ORDER BY {at} LIMIT {most}"
            whole = f"WHERE {condition} AND {at} <= (SELECT MAX(c) FROM ({page}) AS page)"
            table = self._query(whole, f"ORDER BY {at}", extra=at)
        if table.num_rows == 0:
            return spi.Read((), None, more=False)
        times = _micros(table.column(_AT))
        end: dict[str, Any] = {"micros": times[-1]}
        if number:
            end["incrementing"] = int(table.column(self.config.incrementing_column_name)[-1].as_py())
        rows = table.drop_columns([_AT])
        if self.config.timestamp_look_back_ms:
            look_back = self.config.timestamp_look_back_ms * 1000
            young = [at for at, micros in enumerate(times) if micros > times[-1] - look_back]
            given = _told(rows.slice(young[0]), times[young[0] :])
            end |= Seen.of(start).after(given, times[-1], look_back).offset()
        return spi.Read(self._table(rows), end, more=table.num_rows >= most)

    def _late(self, start: spi.Offset, most: int) -> spi.Read | None:
        """Rows from before the position that were not there when it was passed."""
        if not self.config.timestamp_look_back_ms or "micros" not in start:
            return None
        at, seen = self._time_column(), Seen.of(start)
        window = f"WHERE {at} > {self._time(seen.floor)} AND {at} <= {self._time(int(start['micros']))}"
        number = self._number_column()
        if number:  # those of the last time with a higher number are on the way
            window += (
                f" AND NOT ({at} = {self._time(int(start['micros']))} AND {number} > {int(start['incrementing'])})"
            )
        table = self._query(window, f"ORDER BY {at}", extra=at)
        rows = table.drop_columns([_AT])
        told = _told(rows, _micros(table.column(_AT)))
        places = seen.late(told)[:most]
        if not places:
            return None
        look_back = self.config.timestamp_look_back_ms * 1000
        after = seen.after([told[place] for place in places], int(start["micros"]), look_back)
        return spi.Read(self._table(rows.take(places)), {**start, **after.offset()}, more=True)

    def _time_column(self) -> str:
        names = [self._quoted(name) for name in self.config.timestamp_column_name]
        return names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"

    def _number_column(self) -> str:
        return self._quoted(self.config.incrementing_column_name) if "incrementing" in self.config.mode else ""

    def _bound(self) -> str:
        return self._time(time.time_ns() // 1000 - self.config.timestamp_delay_interval_ms * 1000)

    def _time(self, micros: int) -> str:
        if self._address.dialect == "sqlite":
            return str(micros // 1000)
        seconds, rest = divmod(micros, 1_000_000)
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
        return f"TIMESTAMP '{text}.{rest:06}'"

    # ---- asking

    def _quoted(self, name: str) -> str:
        return self._connection().dialect.quoted(name)

    def _from(self) -> str:
        if self.config.query:
            return f"({self.config.query}) AS asked"
        return ".".join(map(self._quoted, str(self.partition["table"]).split(".")))

    def _query(self, where: str, tail: str, extra: str = "") -> pa.Table:
        also = f", {extra} AS {_AT}" if extra else ""
        named = "asked" if self.config.query else self._from()
        return self._asked(f"SELECT {named}.*{also} FROM {self._from()} {where} {tail}")

    def _table(self, found: pa.Table) -> spi.Table:
        named = "query" if self.config.query else str(self.partition["table"]).rpartition(".")[2]
        topic = self.config.topic_prefix + ("" if self.config.query else named)
        return topic_table(found, topic, named, self.config)

    def _connection(self) -> Database:
        if self._database is None:
            self._database = connected(self._address)
        return self._database

    def _asked(self, sql: str) -> pa.Table:
        return self._trying(lambda database: database.query(sql), sql)

    def _trying(self, ask: Any, what: str) -> Any:
        database = self._connection()
        try:
            found = ask(database)
            database.commit()  # a snapshot is not kept between polls
        except Rejected as error:
            self._forget()
            raise spi.ConnectorFailed(f"{error}; asked: {what}") from error
        except spi.TryAgain:
            self._forget()
            raise
        return found

    def _forget(self) -> None:
        opened, self._database = self._database, None
        if opened is not None:
            with suppress(spi.TryAgain, Rejected):  # it may have gone already
                opened.close()


def _micros(column: pa.ChunkedArray) -> list[int]:
    """Of times, or of milliseconds, as SQLite has them."""
    import pyarrow as pa  # noqa: PLC0415  heavy

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return [int(each) * 1000 for each in column.to_pylist()]
    found: list[int] = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None))).cast(pa.int64()).to_pylist()
    return found


def _told(rows: pa.Table, times: Sequence[int]) -> list[tuple[int, str]]:
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    return [(micros, digest(row)) for micros, row in zip(times, values, strict=True)]
