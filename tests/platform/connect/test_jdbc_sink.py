"""The JDBC sink on databases that are there: PostgreSQL and SQLite."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.connectors.jdbc.config import SinkConfig
from ottla.connect.connectors.jdbc.database import connected
from ottla.connect.connectors.jdbc.sink import JdbcSink
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.data.logical import DATE, TIMESTAMP, decimal_schema
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import (
    BYTES,
    FLOAT64,
    INT64,
    OPTIONAL_BOOLEAN,
    OPTIONAL_STRING,
    STRING,
    array_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant
from tests.platform.systems.postgresql import postgresql

KEY = struct_schema({"id": INT64})
ROW = struct_schema({"name": STRING, "size": FLOAT64, "note": OPTIONAL_STRING, "good": OPTIONAL_BOOLEAN})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["postgresql", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"jdbc:sqlite:{tmp_path / 'test.db'}"
    address: str = request.getfixturevalue("server")
    run(address, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return address


def run(url: str, sql: str) -> None:
    database = connected(parse_url(url))
    for each in sql.split(";"):
        database.execute(each)
    database.commit()
    database.close()


def ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    database = connected(parse_url(url))
    try:
        return database.rows(sql)
    finally:
        database.close()


MADE: list[JdbcSink] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A sink that a test left open would hold its locks."""
    yield
    while MADE:
        MADE.pop().close()


def sink(url: str, **config: str) -> JdbcSink:
    texts = {"connection.url": url, **{key.replace("_", "."): value for key, value in config.items()}}
    MADE.append(JdbcSink(spi.parse(SinkConfig, texts), "c"))
    return MADE[-1]


def row(offset: int, key: int, name: str, size: float = 1.5, **more: Any) -> ConnectRecord:
    made = Struct(ROW, {"name": name, "size": size, **more})
    return ConnectRecord("t", 0, KEY, Struct(KEY, {"id": key}), ROW, made, 0, (), offset)


def deleted(offset: int, key: int) -> ConnectRecord:
    return ConnectRecord("t", 0, KEY, Struct(KEY, {"id": key}), None, None, 0, (), offset)


def written(target: JdbcSink, records: Sequence[ConnectRecord], end: bool = True) -> list[int]:
    """The places of those that were refused."""
    span = spi.Span("t", 0, records[0].offset or 0, (records[-1].offset or 0) + 1)
    target.begin([span])
    refused = list(target.write(spi.Batch(records, [span])))
    if end:
        target.end()
    return [each.at for each in refused]


def test_upserts_make_the_table_and_the_last_of_a_key_counts(url: str) -> None:
    target = sink(url, insert_mode="upsert", pk_mode="record_key", auto_create="true", delete_enabled="true")
    assert written(target, [row(0, 1, "a"), row(1, 2, "b"), row(2, 1, "c", good=True), row(3, 3, "d")]) == []
    assert written(target, [row(4, 2, "e", note="n"), deleted(5, 3), deleted(6, 9)]) == []
    target.close()
    assert ask(url, "SELECT id, name, note FROM t ORDER BY id") == [(1, "c", None), (2, "e", "n")]


def test_a_batch_that_comes_again_leaves_nothing_twice(url: str) -> None:
    config = {"auto_create": "true", "insert_mode": "insert", "pk_mode": "none"}
    first = sink(url, **config)
    records = [row(0, 1, "a"), row(1, 2, "b")]
    written(first, records, end=False)
    first.close()  # before its end: nothing is there
    second = sink(url, **config)
    written(second, records)
    second.close()
    third = sink(url, **config)
    written(third, [*records, row(2, 3, "c")])
    third.close()
    assert ask(url, "SELECT name FROM t ORDER BY name") == [("a",), ("b",), ("c",)]
    assert ask(url, "SELECT topic, part, next_offset FROM ottla_connect_offsets") == [("t", 0, 3)]


def test_a_row_that_the_database_refuses_is_a_verdict_and_the_others_are_written(url: str) -> None:
    run(url, "CREATE TABLE t (id bigint PRIMARY KEY, name text NOT NULL CHECK (name <> 'bad'), size real)")
    target = sink(url, insert_mode="upsert", pk_mode="record_key", fields_whitelist="name,size")
    records = [row(n, n, "bad" if n in (3, 17) else f"n{n}") for n in range(20)]
    assert written(target, records) == [3, 17]
    target.close()
    assert ask(url, "SELECT count(*) FROM t") == [(18,)]


def test_columns_are_added_where_that_is_allowed(url: str) -> None:
    run(url, "CREATE TABLE t (id bigint PRIMARY KEY, name text, size real)")
    strict = sink(url, insert_mode="upsert", pk_mode="record_key")
    with pytest.raises(spi.ConnectorFailed, match=r"lacks note, good, and auto.evolve=false"):
        written(strict, [row(0, 1, "a")])
    strict.close()
    target = sink(url, insert_mode="upsert", pk_mode="record_key", auto_evolve="true")
    assert written(target, [row(0, 1, "a", note="x")]) == []
    target.close()
    assert ask(url, "SELECT id, note FROM t") == [(1, "x")]


def test_json_without_a_schema_is_a_row_too(url: str) -> None:
    target = sink(
        url, auto_create="true", auto_evolve="true", pk_mode="record_value", pk_fields="id", insert_mode="upsert"
    )
    values = [
        {"id": 1, "a": "x", "list": [1, 2]},
        {"id": 2, "b": 1.5, "a": None},
        {"id": 1, "a": "y"},
        {"a": "no id"},
        [1],
    ]
    records = [ConnectRecord("t", 0, value=value, offset=n) for n, value in enumerate(values)]
    assert written(target, records) == [3, 4]
    target.close()
    assert ask(url, "SELECT id, a, b FROM t ORDER BY id") == [(1, "y", None), (2, None, 1.5)]


def test_updates_touch_only_rows_that_are_there(url: str) -> None:
    run(url, "CREATE TABLE t (id bigint PRIMARY KEY, name text, size real); INSERT INTO t VALUES (1, 'old', 0)")
    target = sink(url, insert_mode="update", pk_mode="record_key", fields_whitelist="name")
    assert written(target, [row(0, 1, "new"), row(1, 2, "none")]) == []
    target.close()
    assert ask(url, "SELECT id, name FROM t") == [(1, "new")]


def test_all_types_arrive(server: str) -> None:
    run(server, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    schema = struct_schema(
        {
            "day": DATE,
            "at": TIMESTAMP,
            "price": decimal_schema(2),
            "raw": BYTES,
            "list": array_schema(INT64),
            "text": STRING,
        }
    )
    value = Struct(
        schema,
        {
            "day": Instant(19000 * 86_400_000),
            "at": Instant(1_700_000_000_123),
            "price": Decimal("-12345678901234567890.12"),
            "raw": b"\x00\xff",
            "list": [1, 2],
            "text": 'é"\\',
        },
    )
    target = sink(server, auto_create="true")
    assert written(target, [ConnectRecord("t", 0, value_schema=schema, value=value, offset=0)]) == []
    target.close()
    found = ask(server, "SELECT day::text, at::text, price::text, encode(raw, 'hex'), list::text, text FROM t")
    assert found == [("2022-01-08", "2023-11-14 22:13:20.123", "-12345678901234567890.12", "00ff", "[1, 2]", 'é"\\')]
