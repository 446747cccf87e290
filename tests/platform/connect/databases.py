"""Databases that the tests of the JDBC connectors run on, and what is asked of them beside the connectors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.connect.connectors.jdbc.connecting import connected
from ottla.connect.connectors.jdbc.urls import parse_url
from tests.platform.systems.mariadb import mariadb
from tests.platform.systems.postgresql import postgresql

KINDS = ("postgresql", "mariadb", "sqlite")
_SERVERS = {"postgresql": postgresql, "mariadb": mariadb}
_EMPTY = {
    "postgresql": "DROP SCHEMA public CASCADE; CREATE SCHEMA public",
    "mariadb": "DROP DATABASE test; CREATE DATABASE test",
}


@contextmanager
def server(kind: str) -> Iterator[str]:
    """Its address; none for SQLite, which needs no server."""
    if kind == "sqlite":
        yield ""
        return
    with _SERVERS[kind]() as url:
        yield url


def emptied(kind: str, url: str, directory: Path) -> str:
    """The address of a database with nothing in it."""
    if kind == "sqlite":
        return f"jdbc:sqlite:{directory / 'test.db'}"
    run(url, _EMPTY[kind])
    return url


def run(url: str, sql: str) -> None:
    database = connected(parse_url(url))
    try:
        for each in sql.split(";"):
            database.execute(each)
        database.commit()
    finally:
        database.close()


def ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    database = connected(parse_url(url))
    try:
        return database.rows(sql)
    finally:
        database.close()
