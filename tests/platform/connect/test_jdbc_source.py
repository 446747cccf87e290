"""The JDBC source on databases that are there."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.connectors.jdbc.config import SourceConfig
from ottla.connect.connectors.jdbc.database import Database, connected
from ottla.connect.connectors.jdbc.source import JdbcSource
from ottla.connect.connectors.jdbc.urls import parse_url
from ottla.connect.data.types import Instant
from tests.platform.systems.postgresql import postgresql

PLACE = {"protocol": "1", "table": "t"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    made: list[Any] = []
    yield made
    for each in made:
        each.close()


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


def with_table(server: str, columns: str, rows: str) -> None:
    run(server, f"DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE t ({columns}); INSERT INTO t {rows}")


def source(url: str, opened: list[Any], **config: str) -> JdbcSource:
    texts = {"connection.url": url, "topic.prefix": "db-", "table.whitelist": "t"}
    texts |= {key.replace("_", "."): value for key, value in config.items()}
    made = JdbcSource(spi.parse(SourceConfig, texts), "c", PLACE)
    opened.append(made)
    return made


def names(read: spi.Read) -> list[str]:
    assert not isinstance(read.rows, spi.Lines | spi.Copies)
    return [row.value.get("name") for row in read.rows]


def test_bulk_reads_all_each_time(url: str, opened: list[Any]) -> None:
    run(url, "CREATE TABLE t (id bigint, name text); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    reader = source(url, opened)
    assert reader.partitions() == [PLACE]
    first = reader.read(None, 100)
    assert not isinstance(first.rows, spi.Lines | spi.Copies)
    assert [(row.topic, str(row.value)) for row in first.rows] == [
        ("db-t", "Struct{id=1,name=a}"),
        ("db-t", "Struct{id=2}"),
    ]
    assert names(reader.read(first.end, 100)) == ["a", None]


def test_by_a_growing_number_each_row_comes_once_page_by_page(url: str, opened: list[Any]) -> None:
    run(url, "CREATE TABLE t (id bigint, name text); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (5, 'e')")
    reader = source(url, opened, mode="incrementing", incrementing_column_name="id", batch_max_rows="2")
    first = reader.read(None, 100)
    second = reader.read(first.end, 100)
    assert (names(first), names(second), second.end) == (["a", "b"], ["e"], {"incrementing": 5, "holes": [[3, 4]]})
    run(url, "INSERT INTO t VALUES (4, 'late'), (6, 'f')")
    third = reader.read(second.end, 100)
    assert (names(third), third.end) == (["late", "f"], {"incrementing": 6, "holes": [[3, 3]]})
    assert names(reader.read(third.end, 100)) == []
    assert names(reader.read(second.end, 100)) == ["late", "f"]  # a read that was lost is repeated


def test_a_transaction_that_commits_late_is_not_lost(server: str, opened: list[Any]) -> None:
    run(server, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE t (id bigint, name text)")
    slow: Database = connected(parse_url(server))
    opened.append(slow)
    slow.execute("INSERT INTO t VALUES (1, 'slow')")
    run(server, "INSERT INTO t VALUES (0, 'first'), (2, 'quick')")
    reader = source(server, opened, mode="incrementing", incrementing_column_name="id")
    first = reader.read(None, 100)
    slow.commit()
    assert (names(first), names(reader.read(first.end, 100))) == (["first", "quick"], ["slow"])


def test_rows_of_one_time_come_together(server: str, opened: list[Any]) -> None:
    with_table(
        server,
        "id bigint, name text, at timestamp",
        "SELECT n, 'n' || n, timestamp '2020-01-01' + (n / 3) * interval '1 us' FROM generate_series(0, 8) n",
    )
    reader = source(server, opened, mode="timestamp", timestamp_column_name="at", batch_max_rows="2")
    start: spi.Offset | None = None
    seen: list[list[str]] = []
    for _ in range(3):
        read = reader.read(start, 100)
        start, seen = read.end, [*seen, names(read)]
    assert [sorted(page) for page in seen] == [["n0", "n1", "n2"], ["n3", "n4", "n5"], ["n6", "n7", "n8"]]
    assert names(reader.read(start, 100)) == []


def test_by_time_and_number_pages_end_anywhere(server: str, opened: list[Any]) -> None:
    rows = "SELECT n, 'n' || n, timestamp '2020-01-01' FROM generate_series(0, 4) n"
    with_table(server, "id bigint, name text, at timestamp", rows)
    config = {"mode": "timestamp+incrementing", "timestamp_column_name": "at", "incrementing_column_name": "id"}
    reader = source(server, opened, **config, batch_max_rows="2")
    first = reader.read(None, 100)
    second = reader.read(first.end, 100)
    assert (names(first), names(second)) == (["n0", "n1"], ["n2", "n3"])
    run(server, "UPDATE t SET at = '2020-01-02', name = 'changed' WHERE id = 0")
    assert names(reader.read(second.end, 100)) == ["n4", "changed"]


def test_usual_types_have_connects_types(server: str, opened: list[Any]) -> None:
    with_table(
        server,
        "a smallint, b real, c numeric(10,2), d date, e timestamp, f bytea, g boolean, h jsonb, i uuid",
        "VALUES (1, 1.5, 12.30, '2022-01-08', '2023-11-14 22:13:20.123', '\\x00ff', true, '{\"k\": 1}', "
        "'00000000-0000-0000-0000-000000000001')",
    )
    read = source(server, opened).read(None, 10)
    assert not isinstance(read.rows, spi.Lines | spi.Copies)
    found = read.rows[0].value
    assert found.values[:7] == [
        1,
        1.5,
        Decimal("12.30"),
        Instant(19000 * 86_400_000),
        Instant(1_700_000_000_123),
        b"\x00\xff",
        True,
    ]
    assert found.get("h") == '{"k": 1}'
    assert found.get("i") == "00000000-0000-0000-0000-000000000001"
