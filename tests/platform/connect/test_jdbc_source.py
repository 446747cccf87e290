"""The JDBC source on databases that are there: PostgreSQL, MariaDB and SQLite."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect import spi
from ottla.connect.connectors.jdbc.config import SourceConfig
from ottla.connect.connectors.jdbc.connecting import connected
from ottla.connect.connectors.jdbc.database import Database
from ottla.connect.connectors.jdbc.source import HELD_FROM, JdbcSource
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.data.types import Instant
from tests.platform.connect.databases import run

PLACE = {"protocol": "1", "table": "t"}
TIMES = {"postgresql": "timestamp(6)", "mariadb": "datetime(6)", "sqlite": "integer"}
BY_TIME = {"mode": "timestamp", "timestamp_column_name": "at"}
BY_BOTH = {"mode": "timestamp+incrementing", "timestamp_column_name": "at", "incrementing_column_name": "id"}
BY_NUMBER = {"mode": "incrementing", "incrementing_column_name": "id"}


def source(url: str, opened: list[Any], **config: str) -> JdbcSource:
    texts = {"connection.url": url, "topic.prefix": "db-", "table.whitelist": "t", "poll.interval.ms": "0"}
    texts |= {key.replace("_", "."): value for key, value in config.items()}
    made = JdbcSource(spi.parse(SourceConfig, texts), "c", PLACE)
    made.validate()
    opened.append(made)
    return made


def names(read: spi.Read) -> list[str]:
    return [row.value.get("name") for row in read.as_rows()]


def pages(reader: JdbcSource, start: spi.Offset | None = None, limit: int = 100) -> list[list[str]]:
    """What it gives until there is no more."""
    found: list[list[str]] = []
    while True:
        read = reader.read(start, limit)
        if read.size:
            found.append(names(read))
        if not read.has_more(limit):
            return found
        start = read.end


def moment(kind: str, micros: int) -> str:
    """So many microseconds behind 2020-01-01."""
    return str(1_577_836_800_000 + micros // 1000) if kind == "sqlite" else f"'2020-01-01 00:00:00.{micros:06}'"


def numbered(url: str, count: int, key: str = " PRIMARY KEY") -> None:
    rows = ", ".join(f"({n}, 'n{n}')" for n in range(count))
    run(url, f"CREATE TABLE t (id bigint{key}, name varchar(20)); INSERT INTO t VALUES {rows}")


def test_bulk_reads_all_each_time(url: str, opened: list[Any]) -> None:
    run(url, "CREATE TABLE t (id bigint, name text); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    reader = source(url, opened)
    assert reader.partitions() == [PLACE]
    first = reader.read(None, 100)
    assert [(row.topic, str(row.value)) for row in first.as_rows()] == [
        ("db-t", "Struct{id=1,name=a}"),
        ("db-t", "Struct{id=2}"),
    ]
    assert names(reader.read(first.end, 100)) == ["a", None]


def test_bulk_waits_for_its_interval_and_has_nothing_of_an_empty_table(url: str, opened: list[Any]) -> None:
    run(url, "CREATE TABLE t (id bigint, name text)")
    reader = source(url, opened, poll_interval_ms="3600000")
    assert reader.read(None, 100) == spi.Read((), None, more=False)
    run(url, "INSERT INTO t VALUES (1, 'a')")
    first = reader.read(None, 100)
    assert (names(first), reader.read(first.end, 100).size) == (["a"], 0)


@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
@pytest.mark.parametrize("limit", [3, HELD_FROM])
def test_bulk_goes_page_by_page_and_on_from_any_of_them(url: str, opened: list[Any], key: str, limit: int) -> None:
    numbered(url, 8, key)
    reader = source(url, opened, batch_max_rows="3")
    first = reader.read(None, limit)
    second = reader.read(first.end, limit)
    third = reader.read(second.end, limit)
    assert [names(each) for each in (first, second, third)] == [
        ["n0", "n1", "n2"],
        ["n3", "n4", "n5"],
        ["n6", "n7"],
    ]
    assert (first.has_more(limit), third.has_more(limit), (third.end or {})["round"]) == (True, False, 1)
    again = source(url, opened, batch_max_rows="3")  # one that died held the answer open
    assert pages(again, first.end, limit) == [["n3", "n4", "n5"], ["n6", "n7"]]
    assert names(reader.read(second.end, limit)) == ["n6", "n7"]


def test_bulk_by_keys_of_several_texts(url: str, opened: list[Any]) -> None:
    run(
        url,
        "CREATE TABLE t (a varchar(9), b varchar(9), name varchar(9), PRIMARY KEY (a, b)); INSERT INTO t VALUES "
        "('it''s', 'x', '1'), ('it''s', 'y\"', '2'), ('zoë', 'é', '3'), ('zoë', 'ü', '4')",
    )
    reader = source(url, opened, batch_max_rows="1")
    assert sorted(name for page in pages(reader) for name in page) == ["1", "2", "3", "4"]


def test_by_a_growing_number_each_row_comes_once_page_by_page(url: str, opened: list[Any]) -> None:
    run(url, "CREATE TABLE t (id bigint, name text); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (5, 'e')")
    reader = source(url, opened, **BY_NUMBER, batch_max_rows="2")
    first = reader.read(None, 100)
    second = reader.read(first.end, 100)
    assert (names(first), names(second), second.end) == (["a", "b"], ["e"], {"incrementing": 5, "holes": [[3, 4]]})
    run(url, "INSERT INTO t VALUES (4, 'late'), (6, 'f')")
    third = reader.read(second.end, 100)
    assert (names(third), third.end) == (["late", "f"], {"incrementing": 6, "holes": [[3, 3]]})
    assert names(reader.read(third.end, 100)) == []
    assert names(reader.read(second.end, 100)) == ["late", "f"]  # a read that was lost is repeated


def test_a_transaction_that_commits_late_is_not_lost(postgres: str, opened: list[Any]) -> None:
    run(postgres, "CREATE TABLE t (id bigint, name text)")
    slow: Database = connected(parse_url(postgres))
    opened.append(slow)
    slow.execute("INSERT INTO t VALUES (1, 'slow')")
    run(postgres, "INSERT INTO t VALUES (0, 'first'), (2, 'quick')")
    reader = source(postgres, opened, **BY_NUMBER)
    first = reader.read(None, 100)
    slow.commit()
    assert (names(first), names(reader.read(first.end, 100))) == (["first", "quick"], ["slow"])


def test_rows_of_one_time_come_together(kind: str, url: str, opened: list[Any]) -> None:
    rows = ", ".join(f"({n}, 'n{n}', {moment(kind, n // 3 * 1000)})" for n in range(9))
    run(url, f"CREATE TABLE t (id bigint, name varchar(9), at {TIMES[kind]}); INSERT INTO t VALUES {rows}")
    reader = source(url, opened, **BY_TIME, batch_max_rows="2")
    assert [sorted(page) for page in pages(reader)] == [["n0", "n1", "n2"], ["n3", "n4", "n5"], ["n6", "n7", "n8"]]


def test_by_time_and_number_pages_end_anywhere(kind: str, url: str, opened: list[Any]) -> None:
    rows = ", ".join(f"({n}, 'n{n}', {moment(kind, 0)})" for n in range(5))
    run(url, f"CREATE TABLE t (id bigint, name varchar(9), at {TIMES[kind]}); INSERT INTO t VALUES {rows}")
    reader = source(url, opened, **BY_BOTH, batch_max_rows="2")
    first = reader.read(None, 100)
    second = reader.read(first.end, 100)
    assert (names(first), names(second)) == (["n0", "n1"], ["n2", "n3"])
    run(url, f"UPDATE t SET at = {moment(kind, 5000)}, name = 'changed' WHERE id = 0")
    assert names(reader.read(second.end, 100)) == ["n4", "changed"]


@pytest.mark.parametrize("mode", [BY_TIME, BY_BOTH])
def test_by_time_what_is_committed_late_is_found_by_looking_back(
    kind: str, url: str, opened: list[Any], mode: dict[str, str]
) -> None:
    columns = f"(id bigint, name varchar(9), at {TIMES[kind]})"
    rows = f"(1, 'a', {moment(kind, 1000)}), (4, 'd', {moment(kind, 900_000)})"
    run(url, f"CREATE TABLE t {columns}; INSERT INTO t VALUES {rows}")
    reader = source(url, opened, **mode, timestamp_look_back_ms="500")
    first = reader.read(None, 100)
    late = f"(3, 'late', {moment(kind, 500_000)}), (2, 'too late', {moment(kind, 300_000)})"
    run(url, f"INSERT INTO t VALUES {late}, (5, 'e', {moment(kind, 950_000)})")
    second = reader.read(first.end, 100)
    third = reader.read(second.end, 100)
    assert [names(each) for each in (first, second, third)] == [["a", "d"], ["late"], ["e"]]
    assert reader.read(third.end, 100).size == 0
    assert names(reader.read(first.end, 100)) == ["late"]  # a read that was lost is repeated


@pytest.mark.parametrize("mode", [BY_NUMBER, BY_TIME])
@pytest.mark.parametrize("limit", [2, HELD_FROM])
def test_by_snapshot_no_commit_is_too_late(postgres: str, opened: list[Any], mode: dict[str, str], limit: int) -> None:
    """With numbers and times that no look-back would find."""
    run(postgres, "CREATE TABLE t (id bigint PRIMARY KEY, name text, at timestamp)")
    reader = source(postgres, opened, **mode, snapshot_safe="true", batch_max_rows="2")
    run(postgres, "INSERT INTO t SELECT n, 'n' || n, now() FROM generate_series(1000000, 1000004) n")
    slow = connected(parse_url(postgres))
    opened.append(slow)
    slow.execute("INSERT INTO t VALUES (7, 'slow', '1999-01-01')")
    run(postgres, "INSERT INTO t VALUES (2000000, 'quick', now())")
    first = reader.read(None, limit)
    rest = pages(reader, first.end, limit)
    assert [names(first), *rest] == [["n1000000", "n1000001"], ["n1000002", "n1000003"], ["n1000004"]]
    start, read = None, first
    while read.has_more(limit):
        start = read.end
        read = reader.read(start, limit)
    start = read.end
    assert reader.read(start, limit).size == 0  # the quick one waits for the slow one
    slow.commit()
    run(postgres, "UPDATE t SET name = 'changed' WHERE id = 1000000")
    assert pages(reader, start, limit) == [["slow", "changed"], ["quick"]]


def test_snapshot_safe_is_refused_where_it_means_nothing(url: str, kind: str, opened: list[Any]) -> None:
    mode = {"mode": "bulk"} if kind == "postgresql" else BY_NUMBER
    with pytest.raises(spi.ConfigRefused, match=r"snapshot\.safe: is for tables of PostgreSQL"):
        source(url, opened, **mode, snapshot_safe="true")


def test_a_query_in_place_of_tables(url: str, opened: list[Any]) -> None:
    numbered(url, 5)
    asked = {"query": "SELECT id, name FROM t WHERE id > 1", "table_whitelist": ""}
    reader = source(url, opened, **BY_NUMBER, **asked)
    assert (reader.partitions(), pages(reader)) == ([{"query": "query"}], [["n2", "n3", "n4"]])


@pytest.mark.parametrize("limit", [10, HELD_FROM])
def test_usual_types_of_postgresql_have_connects_types(postgres: str, opened: list[Any], limit: int) -> None:
    run(
        postgres,
        "CREATE TABLE t (a smallint, b real, c numeric(10,2), d date, e timestamp, f bytea, g boolean, h jsonb, i uuid,"
        " j time, k timestamptz, l date[], m numeric); SET TIME ZONE 'Asia/Tokyo'; INSERT INTO t VALUES (1, 1.5, 12.30,"
        " '2022-01-08', '2023-11-14 22:13:20.123', '\\x00ff', true, '{\"k\": 1}', "
        "'00000000-0000-0000-0000-000000000001', '01:02:03.004', '2023-11-15 07:13:20.123', '{2022-01-08,NULL}', 7), "
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'NaN')",
    )
    first, second = (row.value for row in source(postgres, opened).read(None, limit).as_rows())
    day, instant = Instant(19000 * 86_400_000), Instant(1_700_000_000_123)
    assert first.values == [
        *(1, 1.5, Decimal("12.30"), day, instant, b"\x00\xff", True, '{"k": 1}'),
        *("00000000-0000-0000-0000-000000000001", Instant(3_723_004), instant, [day, None], Decimal(7)),
    ]
    assert second.values == [None] * 13


@pytest.mark.parametrize("limit", [10, HELD_FROM])
def test_usual_types_of_mariadb_have_connects_types(maria: str, opened: list[Any], limit: int) -> None:
    run(
        maria,
        "CREATE TABLE t (a tinyint, b smallint unsigned, c int unsigned, d bigint unsigned, e float, f double, "
        "g decimal(20,3), h date, i datetime(3), j timestamp(3) NULL, k time(3), l varchar(20), m blob, n json, "
        "o enum('x', 'y'), p boolean, q year, r bit(4), s varbinary(4)); INSERT INTO t VALUES (-1, 65535, 4294967295, "
        "9, 1.5, 2.25, -12345678901234567.890, '2022-01-08', '2023-11-14 22:13:20.123', '2023-11-14 22:13:20.123', "
        "'01:02:03.004', 'é\\'', x'00ff', '{\"k\": 1}', 'y', true, 2024, b'0101', x'ff'); "
        "INSERT INTO t (a) VALUES (NULL)",
    )
    first, second = (row.value for row in source(maria, opened).read(None, limit).as_rows())
    instant = Instant(1_700_000_000_123)
    assert first.values[:17] == [
        *(-1, 65535, 4294967295, 9, 1.5, 2.25, Decimal("-12345678901234567.890"), Instant(19000 * 86_400_000)),
        *(instant, instant, Instant(3_723_004), "é'", b"\x00\xff", '{"k": 1}', "y", 1, "2024"),
    ]
    assert first.values[18] == b"\xff"
    assert second.values == [None] * 19


@pytest.mark.parametrize("limit", [10, HELD_FROM])
def test_what_drivers_give_for_one_row_is_what_they_give_for_many(
    kind: str, url: str, opened: list[Any], limit: int
) -> None:
    """Short answers and long ones take different roads: the topic must not show it."""
    numbered(url, 3)
    rows = source(url, opened, batch_max_rows="10").read(None, limit).rows
    assert isinstance(rows, spi.Table)
    assert rows.values == pa.table({"id": pa.array([0, 1, 2]), "name": ["n0", "n1", "n2"]})
