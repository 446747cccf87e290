"""A database whose changes are read, and whoever reads them, without Spark and without a broker."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

from ottla.connect import spi
from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.connectors.postgresql.source import PostgresSource
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.record import SchemaAndValue
from tests.support.patience import eventually

LIMIT = 50_000


class Database:
    """One server, and a connection to it that commits by itself."""

    def __init__(self, url: str) -> None:
        port = urlsplit(url.removeprefix("jdbc:")).port
        assert port is not None
        self.port = port
        self.connection = self.connected()

    def connected(self, *, autocommit: bool = True) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", autocommit=autocommit
        )

    def run(self, sql: str) -> None:
        self.connection.execute(sql)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def crash(self) -> None:
        """A process of the server is killed, and all others with it; the first starts them again, and they recover."""
        [(pid,)] = self.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        os.kill(pid, signal.SIGKILL)
        eventually(self._is_gone, "the end of the server's processes")  # until then it lets new connections in

        def again() -> bool:
            try:
                self.connection = self.connected()
            except psycopg.OperationalError:
                return False
            return not self._is_gone()

        eventually(again, "a connection to the server")

    def _is_gone(self) -> bool:
        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            self.connection.close()
            return True
        return False

    def config(self, slot: str, more: Mapping[str, str] = {}) -> dict[str, str]:
        return {
            "database.hostname": "127.0.0.1",
            "database.port": str(self.port),
            "database.user": "postgres",
            "database.dbname": "postgres",
            "topic.prefix": "p",
            "slot.name": slot,
            **more,
        }

    def forget(self) -> None:
        """Everything that was made in it, and whoever is still connected."""
        self.run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname IS NOT NULL"
        )
        self.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")
        self.run("DROP PUBLICATION IF EXISTS dbz_publication")
        self.run("DROP SCHEMA IF EXISTS side CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public")


class Record(NamedTuple):
    topic: str
    key: Any
    value: Any
    headers: tuple[str, ...] = ()

    @property
    def short(self) -> tuple[str, Any, Any]:
        """The operation, the row before and after; of a tombstone, its key."""
        if self.value is None:
            return ("tombstone", self.key, None)
        return (self.value["op"], self.value["before"], self.value["after"])


class Reader:
    """Whoever reads: what was given, and where it stands. `crash` loses all but that."""

    def __init__(self, config: Mapping[str, str], limit: int = LIMIT) -> None:
        self._config = dict(config)
        self.limit = limit
        self.position: spi.Offset | None = None
        self.records: list[Record] = []
        self.source = self._opened()

    def _opened(self) -> PostgresSource:
        source = PostgresSource(spi.parse(PostgresConfig, self._config), "c", {"server": "p"})
        source.validate()
        return source

    def crash(self) -> None:
        self.source.close()
        self.source = self._opened()

    def change(self, **config: str) -> None:
        self._config |= {name.replace("_", "."): value for name, value in config.items()}
        self.crash()

    def once(self, *, acknowledge: bool = True) -> list[Record]:
        read = self.source.read(self.position, self.limit)
        found = records_of(read)
        if read.end is not None:
            self.position = json.loads(json.dumps(read.end))
            if acknowledge:
                self.source._advanced = (0, 0.0)  # tests do not wait
                self.source.written(self.position)
        self.records += found
        return found

    def all(self) -> list[Record]:
        """Until nothing new comes."""
        found: list[Record] = []
        while True:
            before = self.position
            found += self.once()
            if self.position == before:
                return found

    def take(self) -> list[Record]:
        """What there is, and nothing of it again."""
        found = self.all()
        self.records.clear()
        return found

    def close(self) -> None:
        self.source.close()


_JSON = JsonConverter({"schemas.enable": "false"}, "value")


def records_of(read: spi.Read) -> list[Record]:
    """The two ways to JSON give the same bytes."""
    rows = read.rows
    if not isinstance(rows, spi.Prepared):
        assert isinstance(rows, list | tuple) and not rows
        return []
    slow = [record_of(row) for row in rows.as_rows()]
    quick: dict[str, list[tuple[bytes | None, bytes | None]]] = {}
    for part in rows.as_json(spi.JsonForm(False, False)):
        if isinstance(part, spi.Texts):
            quick.setdefault(part.topic, []).extend(zip(part.keys, part.values, strict=True))
        else:
            for row in part:
                quick.setdefault(row.topic, []).append(bytes_of(row))
    long: dict[str, list[tuple[bytes | None, bytes | None]]] = {}
    for row in rows.as_rows():
        long.setdefault(row.topic, []).append(bytes_of(row))
    assert quick == long
    return slow


def bytes_of(row: spi.Row) -> tuple[bytes | None, bytes | None]:
    return (
        _JSON.write(row.topic, SchemaAndValue(row.key_schema, row.key)) if row.key is not None else None,
        _JSON.write(row.topic, SchemaAndValue(row.value_schema, row.value)),
    )


def record_of(row: spi.Row) -> Record:
    key, value = bytes_of(row)
    return Record(
        row.topic,
        None if key is None else json.loads(key),
        None if value is None else json.loads(value),
        tuple(name for name, _ in row.headers),
    )


@contextmanager
def reading(database: Database, slot: str = "ours", limit: int = LIMIT, **config: str) -> Iterator[Reader]:
    given = {name.replace("_", "."): value for name, value in config.items()}
    reader = Reader(database.config(slot, given), limit)
    try:
        yield reader
    finally:
        reader.close()
