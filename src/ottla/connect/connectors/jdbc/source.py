"""JdbcSource: rows of tables, or of a query, as records; each table is a partition with a position of its own.

By a column that only grows, rows may still come late: a transaction that took its number early and commits after
others. The position keeps the holes among the last numbers (`incrementing.look.back`), and they are asked for again. By
time, rows younger than `timestamp.delay.interval.ms` are left for later, and all rows of one time come together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from ottla.connect import spi
from ottla.connect.connectors.jdbc.columns import structs
from ottla.connect.connectors.jdbc.config import SourceConfig
from ottla.connect.connectors.jdbc.database import Database, Rejected, connected
from ottla.connect.connectors.jdbc.holes import Holes
from ottla.connect.connectors.jdbc.urls import parse_url

_TABLES: Final = {
    "postgresql": (
        "SELECT table_name::text FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = "
        "current_schema() ORDER BY 1"
    ),
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY 1",
}


class JdbcSource(spi.Source[SourceConfig]):
    def __init__(self, config: SourceConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006
        super().__init__(config, name, partition)
        self._address = parse_url(config.connection_url, config.user, config.connection_password)
        self._database: Database | None = None

    def validate(self) -> None:
        if "incrementing" in self.config.mode and not self.config.incrementing_column_name:
            raise spi.ConfigRefused("incrementing.column.name", f"mode={self.config.mode} needs it")
        if "timestamp" in self.config.mode and not self.config.timestamp_column_name:
            raise spi.ConfigRefused("timestamp.column.name", f"mode={self.config.mode} needs it")
        if self.config.query and (self.config.table_whitelist or self.config.table_include_list):
            raise spi.ConfigRefused("query", "cannot be used together with table.whitelist")

    def partitions(self) -> Sequence[spi.Partition]:
        if self.config.query:
            return [{"query": "query"}]
        wanted = self.config.table_whitelist or self.config.table_include_list
        if not wanted:
            found = [row[0] for row in self._asked(_TABLES[self._address.dialect], []).to_pylist_rows()]
            wanted = tuple(name for name in found if name not in self.config.table_blacklist)
        return [{"protocol": "1", "table": name} for name in wanted]

    def poll_interval_ms(self) -> int:
        return self.config.poll_interval_ms

    def close(self) -> None:
        opened, self._database = self._database, None
        if opened is not None:
            opened.close()

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        most = min(limit, self.config.batch_max_rows)
        if self.config.mode == "bulk":
            rounds = int((start or {}).get("round", 0))
            return spi.Read(self._rows(self._query("", "")), {"round": rounds + 1}, more=False)
        if self.config.mode == "incrementing":
            return self._by_number(Holes.of(start), most)
        return self._by_time(start or {}, most)

    # ---- by a number

    def _by_number(self, holes: Holes, most: int) -> spi.Read:
        column = self._quoted(self.config.incrementing_column_name)
        table = self._query(f"WHERE {holes.condition(column)}", f"ORDER BY {column} LIMIT {most}")
        if table.num_rows == 0:
            return spi.Read((), None, more=False)
        numbers = table.column(self.config.incrementing_column_name).to_pylist()
        after = holes.after([int(each) for each in numbers], self.config.incrementing_look_back)
        return spi.Read(self._rows(table), after.offset(), more=table.num_rows >= most)

    # ---- by a time

    def _by_time(self, start: spi.Offset, most: int) -> spi.Read:
        names = [self._quoted(name) for name in self.config.timestamp_column_name]
        at = names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"
        both = "incrementing" in self.config.mode
        number = self._quoted(self.config.incrementing_column_name) if both else ""
        condition = f"{at} < {self._bound()}"
        if "micros" in start:
            last = self._time(int(start["micros"]))
            later = f"{at} > {last}"
            if both:
                later = f"({later} OR ({at} = {last} AND {number} > {int(start['incrementing'])}))"
            condition += f" AND {later}"
        if both:
            table = self._query(f"WHERE {condition}", f"ORDER BY {at}, {number} LIMIT {most}", extra=at)
        else:
            page = f"SELECT {at} AS c FROM {self._from()} WHERE {condition} ORDER BY {at} LIMIT {most}"
            whole = f"WHERE {condition} AND {at} <= (SELECT MAX(c) FROM ({page}) AS page)"
            table = self._query(whole, f"ORDER BY {at}", extra=at)
        if table.num_rows == 0:
            return spi.Read((), None, more=False)
        end: dict[str, Any] = {"micros": _micros(table.column("ottla_at")[-1].as_py())}
        if both:
            end["incrementing"] = int(table.column(self.config.incrementing_column_name)[-1].as_py())
        rows = self._rows(table.drop_columns(["ottla_at"]))
        return spi.Read(rows, end, more=table.num_rows >= most)

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

    def _query(self, where: str, tail: str, extra: str = "") -> Any:
        also = f", {extra} AS ottla_at" if extra else ""
        return self._asked(f"SELECT *{also} FROM {self._from()} {where} {tail}", []).table

    def _rows(self, table: Any) -> list[spi.Row]:
        named = "query" if self.config.query else str(self.partition["table"]).rpartition(".")[2]
        topic = self.config.topic_prefix + ("" if self.config.query else named)
        return [spi.Row(topic, each, value_schema=each.schema) for each in structs(table, named, self.config)]

    def _connection(self) -> Database:
        if self._database is None:
            self._database = connected(self._address)
        return self._database

    def _asked(self, sql: str, values: list[Any]) -> _Answer:
        database = self._connection()
        try:
            table = database.query(sql, values)
            database.commit()  # a snapshot is not kept between polls
            return _Answer(table)
        except Rejected as error:
            self._forget()
            raise spi.ConnectorFailed(f"{error}; asked: {sql}") from error
        except spi.TryAgain:
            self._forget()
            raise

    def _forget(self) -> None:
        self._database = None


class _Answer:
    __slots__ = ("table",)

    def __init__(self, table: Any) -> None:
        self.table = table

    def to_pylist_rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in self.table.columns), strict=True))


def _micros(found: Any) -> int:
    """Of a time, or of milliseconds, as SQLite has them."""
    if isinstance(found, int | float):
        return int(found) * 1000
    from datetime import UTC  # noqa: PLC0415  small

    known = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    seconds = int(known.replace(microsecond=0).timestamp())
    return seconds * 1_000_000 + int(found.microsecond)
