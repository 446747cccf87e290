"""The JDBC sink on databases that are there: PostgreSQL, MariaDB and SQLite."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.connectors.jdbc.config import SinkConfig
from ottla.connect.connectors.jdbc.connecting import connected
from ottla.connect.connectors.jdbc.database import Rejected
from ottla.connect.connectors.jdbc.mysql import MySQLDatabase
from ottla.connect.connectors.jdbc.sink import JdbcSink
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.data.logical import DATE, TIME, TIMESTAMP, decimal_schema
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import (
    BOOLEAN,
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
from tests.platform.connect.cdc import Database
from tests.platform.connect.databases import ask, run
from tests.platform.systems.postgresql import postgresql

KEY = struct_schema({"id": INT64})
ROW = struct_schema({"name": STRING, "size": FLOAT64, "note": OPTIONAL_STRING, "good": OPTIONAL_BOOLEAN})


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


def written(target: JdbcSink, records: Sequence[ConnectRecord], end: bool = True, topic_id: str = "") -> list[int]:
    """The places of those that were refused."""
    span = spi.Span("t", 0, records[0].offset or 0, (records[-1].offset or 0) + 1, topic_id)
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


def test_a_topic_that_was_deleted_and_made_again_is_written_from_its_beginning(url: str) -> None:
    target = sink(url, auto_create="true", insert_mode="insert", pk_mode="none")
    written(target, [row(0, 1, "old"), row(1, 2, "old too")], topic_id="one")
    written(target, [row(0, 3, "new")], topic_id="another")
    target.close()
    assert ask(url, "SELECT name FROM t ORDER BY name") == [("new",), ("old",), ("old too",)]


def test_a_row_that_the_database_refuses_is_a_verdict_and_the_others_are_written(url: str) -> None:
    run(url, "CREATE TABLE t (id bigint PRIMARY KEY, name text NOT NULL CHECK (name <> 'bad'), size real)")
    target = sink(url, insert_mode="upsert", pk_mode="record_key", fields_whitelist="name,size")
    records = [row(n, n, "bad" if n in (3, 17) else f"n{n}") for n in range(20)]
    assert written(target, records) == [3, 17]
    target.close()
    assert ask(url, "SELECT count(*) FROM t") == [(18,)]


def test_what_a_row_that_is_refused_stood_in_the_place_of_counts(url: str) -> None:
    run(url, "CREATE TABLE t (id bigint PRIMARY KEY, name text NOT NULL CHECK (name <> 'bad'), size real)")
    target = sink(url, insert_mode="upsert", pk_mode="record_key", auto_evolve="true")
    names = ["good", "bad", "a", "better", "bad", "bad", "bad"]
    keys = [1, 1, 2, 2, 2, 2, 3]
    records = [row(offset, key, name) for offset, (key, name) in enumerate(zip(keys, names, strict=True))]
    # Of those that were replaced by what is good nobody knows whether they are.
    assert sorted(written(target, records)) == [1, 4, 5, 6]
    target.close()
    assert ask(url, "SELECT id, name FROM t ORDER BY id") == [(1, "good"), (2, "better")]


def test_a_field_that_no_column_can_be_called_after_is_refused_with_its_record(url: str, kind: str) -> None:
    target = sink(url, insert_mode="insert", pk_mode="none", auto_create="true", auto_evolve="true")
    values = [{"id": 1}, {"": 2}, {}, {"id": 3, "x" * 70: 3}, {"id": 4, "ID": 4}, {"id": 5, "a b": 5}]
    records = [ConnectRecord("t", 0, value=value, offset=offset) for offset, value in enumerate(values)]
    odd = {"postgresql": [1, 2, 3], "mariadb": [1, 2, 3, 4], "sqlite": [1, 2, 4]}[kind]
    assert sorted(written(target, records)) == odd
    # Where large letters are small ones, a name in either is the column that is there.
    upper = [ConnectRecord("t", 0, value={"ID": 6}, offset=6)]
    assert written(target, upper) == []
    target.close()
    column = '"ID"' if kind == "postgresql" else "id"
    assert (6,) in ask(url, f"SELECT {column} FROM t")


def test_a_table_that_was_dropped_is_made_again_or_fails_the_connector(url: str) -> None:
    target = sink(url, insert_mode="upsert", pk_mode="record_key", auto_create="true", errors_tolerance="all")
    assert written(target, [row(0, 1, "a")]) == []
    run(url, "DROP TABLE t")
    assert written(target, [row(1, 2, "b"), row(2, 3, "c")]) == []
    assert ask(url, "SELECT id, name FROM t ORDER BY id") == [(2, "b"), (3, "c")]
    target.close()
    strict = sink(url, insert_mode="upsert", pk_mode="record_key", errors_tolerance="all")
    assert written(strict, [row(3, 4, "d")]) == []
    run(url, "DROP TABLE t")
    with pytest.raises(spi.ConnectorFailed, match="There is no table t"):
        written(strict, [row(4, 5, "e")])


def test_a_column_that_was_dropped_is_added_again_or_fails_the_connector(url: str) -> None:
    target = sink(url, insert_mode="upsert", pk_mode="record_key", auto_create="true", auto_evolve="true")
    assert written(target, [row(0, 1, "a", note="x")]) == []
    run(url, "ALTER TABLE t DROP COLUMN note")
    if "mariadb" in url:
        with pytest.raises(spi.ConnectorFailed, match="it is changed now, and the batch is written when"):
            written(target, [row(1, 2, "b", note="y")])
    assert written(target, [row(1, 2, "b", note="y")]) == []
    assert ask(url, "SELECT id, note FROM t ORDER BY id") == [(1, None), (2, "y")]
    target.close()
    strict = sink(url, insert_mode="upsert", pk_mode="record_key")
    assert written(strict, [row(2, 3, "c")]) == []
    run(url, "ALTER TABLE t DROP COLUMN note")
    with pytest.raises(spi.ConnectorFailed, match="Table t lacks note"):
        written(strict, [row(3, 4, "d")])


def test_rows_are_written_in_statements_of_the_size_that_was_set(url: str) -> None:
    target = sink(url, insert_mode="upsert", pk_mode="record_key", auto_create="true", batch_size="3")
    records = [row(n, n % 8, "x" if n == 9 else f"n{n}") for n in range(12)]
    assert written(target, records) == []
    target.close()
    assert ask(url, "SELECT name FROM t ORDER BY id") == [
        (name,) for name in ("n8", "x", "n10", "n11", "n4", "n5", "n6", "n7")
    ]


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


TYPES = struct_schema(
    {
        "day": DATE,
        "clock": TIME,
        "at": TIMESTAMP,
        "price": decimal_schema(2),
        "raw": BYTES,
        "list": array_schema(INT64),
        "text": STRING,
        "yes": BOOLEAN,
        "nothing": OPTIONAL_STRING,
        "empty": OPTIONAL_STRING,
    }
)
AWKWARD = 'é"\\,\n\t\0NULL\\N;\'"'


def of_all_types() -> ConnectRecord:
    values = {
        "day": Instant(19000 * 86_400_000),
        "clock": Instant(3_723_004),
        "at": Instant(1_700_000_000_123),
        "price": Decimal("-12345678901234567890.12"),
        "raw": b'\x00\xff"\n,\\',
        "list": [1, 2],
        "text": AWKWARD,
        "yes": True,
        "nothing": None,
        "empty": "",
    }
    return ConnectRecord("t", 0, value_schema=TYPES, value=Struct(TYPES, values), offset=0)


def test_all_types_arrive_in_postgresql(postgres: str) -> None:
    target = sink(postgres, auto_create="true")
    record = of_all_types()
    record.value.put("text", AWKWARD.replace("\0", ""))  # which it does not take
    assert written(target, [record]) == []
    target.close()
    columns = "day::text, clock::text, at::text, price::text, encode(raw, 'hex'), list::text, text, yes, nothing, empty"
    assert ask(postgres, f"SELECT {columns} FROM t") == [
        (
            *("2022-01-08", "01:02:03.004", "2023-11-14 22:13:20.123", "-12345678901234567890.12", "00ff220a2c5c"),
            *("[1, 2]", AWKWARD.replace("\0", ""), True, None, ""),
        )
    ]


@pytest.mark.parametrize("loads", ["ON", "OFF"])
def test_all_types_arrive_in_mariadb(maria: str, loads: str) -> None:
    """By LOAD DATA, and by INSERTs where the server does not take it."""
    run(maria, f"SET GLOBAL local_infile = {loads}")
    target = sink(maria, auto_create="true")
    assert written(target, [of_all_types()]) == []
    target.close()
    run(maria, "SET GLOBAL local_infile = ON")
    columns = (
        "CAST(day AS char), CAST(clock AS char), CAST(at AS char), CAST(price AS char), hex(raw), list, `text`, yes, "
        "nothing, empty"
    )
    assert ask(maria, f"SELECT {columns} FROM t") == [
        (
            *("2022-01-08", "01:02:03.004", "2023-11-14 22:13:20.123", "-12345678901234567890.12", "00FF220A2C5C"),
            *("[1,2]", AWKWARD, 1, None, ""),
        )
    ]


def test_mariadb_is_given_no_file_but_the_one_it_was_offered(maria: str) -> None:
    """A server may answer any statement by asking for a file of ours."""
    database = MySQLDatabase(parse_url(maria))
    run(maria, "CREATE TABLE t (line text)")
    try:
        with pytest.raises((Rejected, RuntimeError), match="local_infile"):
            database.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t")
    finally:
        database._connection._force_close()  # the server still waits for the file
    assert ask(maria, "SELECT count(*) FROM t") == [(0,)]


@pytest.mark.parametrize("value", [float("nan"), 1e300])
def test_a_number_that_mariadb_would_change_is_refused(maria: str, value: float) -> None:
    """LOAD DATA puts another one there, and only warns."""
    run(maria, "CREATE TABLE t (id bigint PRIMARY KEY, name varchar(5), size float)")
    target = sink(maria, insert_mode="upsert", pk_mode="record_key", fields_whitelist="name,size")
    records = [row(0, 1, "a"), row(1, 2, "b", value), row(2, 3, "too long"), row(3, 4, "d")]
    assert written(target, records) == [1, 2]
    target.close()
    assert ask(maria, "SELECT id, name FROM t ORDER BY id") == [(1, "a"), (4, "d")]


def test_columns_that_come_in_mid_transaction_are_there_when_the_batch_comes_again(maria: str) -> None:
    """MariaDB lets nobody change a table that a transaction has written to."""
    target = sink(maria, auto_create="true", auto_evolve="true")
    span = spi.Span("t", 0, 0, 2)
    records = [ConnectRecord("t", 0, value=value, offset=n) for n, value in enumerate(({"a": 1}, {"a": 2, "b": 3}))]
    target.begin([span])
    assert list(target.write(spi.Batch(records[:1], [span]))) == []
    with pytest.raises(spi.ConnectorFailed, match="written when the connector is started again"):
        target.write(spi.Batch(records[1:], [span]))
    assert written(target, records) == []
    target.close()
    assert ask(maria, "SELECT a, b FROM t ORDER BY a") == [(1, None), (2, 3)]


def test_a_server_that_crashed_under_an_open_connection_may_come_back() -> None:
    with postgresql() as url:
        database, beside = connected(parse_url(url)), Database(url)
        try:
            assert database.rows("SELECT 1") == [(1,)]
            database.rollback()
            beside.crash()
            with pytest.raises(spi.TryAgain):
                database.rows("SELECT 1")
        finally:
            beside.connection.close()
            with suppress(spi.TryAgain):
                database.close()


def test_a_server_that_takes_connections_and_says_nothing_may_come_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(spi.TryAgain, match="cannot be reached"):
            connected(parse_url(f"jdbc:postgresql://127.0.0.1:{port}/shop?user=a&connect_timeout=2"))
