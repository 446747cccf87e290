"""Rows of JSON that Arrow reads as it lies are those that are made one by one, or none."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.connect.connectors.tables.quick_rows import SAMPLE, quick_rows
from ottla.connect.connectors.tables.rows import rows_of
from ottla.connect.converters.json_texts import parsed
from ottla.connect.data.record import ConnectRecord
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns, Span
from tests.support.examples import examples

WHOLE = st.integers(-(2**63) - 5, 2**63 + 5) | st.integers(-5, 5)
SCALARS = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "ü", ""]), VALUES, max_size=3)
ALIKE = st.fixed_dictionaries({"id": st.integers(0, 9), "at": st.floats(-9, 9), "name": st.text(max_size=3)})


def column(values: Sequence[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary())


def by_name(table: pa.Table) -> pa.Table:
    return table.select(sorted(table.column_names))


def one_by_one(values: Sequence[bytes], known: pa.Schema | None = None) -> pa.Table:
    made = rows_of([ConnectRecord("t", value=parsed(each)) for each in values], known)
    assert made.refused == []
    return made.table


def written(objects: Sequence[Any]) -> list[bytes]:
    return [json.dumps(each, ensure_ascii=len(objects) % 2 == 0).encode() for each in objects]


@given(st.lists(OBJECTS, min_size=1, max_size=6))
def test_each_object_is_a_row_or_refused(objects: list[Any]) -> None:
    made = rows_of([ConnectRecord("t", value=each) for each in objects], None)
    assert len({each.at for each in made.refused}) == len(made.refused)
    assert len(made.table) + len(made.refused) == len(objects)


@given(st.lists(OBJECTS, min_size=1, max_size=6) | st.lists(ALIKE, min_size=1, max_size=6))
def test_what_comes_out_is_what_comes_out_one_by_one(objects: list[Any]) -> None:
    values = written(objects)
    found = quick_rows(column(values), None)
    assert found is None or found.equals(one_by_one(values))


@given(st.lists(ALIKE | OBJECTS, min_size=1, max_size=4), st.lists(ALIKE | OBJECTS, min_size=1, max_size=4))
def test_so_it_does_in_the_types_of_a_table_that_is_there(before: list[Any], objects: list[Any]) -> None:
    there = rows_of([ConnectRecord("t", value=each) for each in before], None).table.schema
    values = written(objects)
    found = quick_rows(column(values), there)
    assert found is None or found.equals(one_by_one(values, there))


@given(st.lists(ALIKE, min_size=1, max_size=6))
def test_rows_that_are_all_alike_come_out(objects: list[Any]) -> None:
    assert quick_rows(column(written(objects)), None) is not None


def test_a_column_of_whole_numbers_with_a_point_among_them_behind_the_sample_is_for_one_by_one() -> None:
    values = [b'{"n":1}'] * SAMPLE
    assert quick_rows(column(values), None) == one_by_one(values)
    assert quick_rows(column([*values, b'{"n":1.5}']), None) is None
    assert quick_rows(column([*values, b'{"m":1}']), None) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b" ",
        b"[1]",
        b"{",
        b'{"n":1',
        b'{"n":1}{"n":2}',
        b'{"n":NaN}',
        b'{"f":NaN}',
        b'{"f":-Infinity}',
        b'{"n":1,"n":2}',
        b'{"n":01}',
        b'{"s":"\xff"}',
        b'{"s":"\\ud800"}',
        b'{"s":"a\nb"}',
        b'{"n":9223372036854775808}',
        b'{"n":"1"}',
        b'{"t":"2020-01-01T00:00:00Z"}',
        b'{"new":null}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_no_good_or_of_another_kind_is_for_one_by_one(value: bytes | None) -> None:
    known = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
    good = [b'{"n":1,"f":2,"s":"x"}', b'{"n":null}']
    assert quick_rows(column(good), known) is not None
    assert quick_rows(column([good[0], value, good[1]]), known) is None


def test_two_rows_in_one_value_and_none_in_another_are_not_one_each() -> None:
    assert quick_rows(column([b'{"n":1}{"n":2}', b" "]), None) is None


def test_texts_for_times_are_not_taken_for_times() -> None:
    moments = pa.schema([("t", pa.timestamp("us", tz="UTC"))])
    assert quick_rows(column([b'{"t":"2020-01-01T00:00:00Z"}']), moments) is None


def test_a_record_may_have_line_breaks() -> None:
    assert quick_rows(column([b'{"n":\n 1\n}', b'{\n"n":2}']), None) == pa.table({"n": [1, 2]})


# In sinks.

JSON = {
    "errors.tolerance": "all",
    "topics": "t",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
ONE_BY_ONE = {"transforms": "same", "transforms.same.type": "DropHeaders", "transforms.same.headers": "none"}
"""Nothing is changed by it, but records have to be made."""
GOOD = (b'{"n":1}', b'{"n":2}', b'{"n":1.5}', b'{"n":"x"}', b'{"n":null,"m":1}', b'{"o":{"p":1}}', b'{"o":{"q":2}}')
LINES = st.sampled_from([*GOOD, b"{", b"[1]"])


PARQUET = {
    "connector.class": "files-sink",
    "directory": "{place}",
    "flush.size": "3",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
}
TABLE = {
    "connector.class": "jdbc-sink",
    "connection.url": "jdbc:sqlite:{place}/db",
    "auto.create": "true",
    "auto.evolve": "true",
}
BY_KEY = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "n"}
Given = list[list[bytes]]
Letters = list[tuple[int | None, bytes | None, Any]]


def letters_of(config: dict[str, str], parts: Given) -> Letters:
    def columns() -> Iterator[Columns]:
        first = 0
        for part in parts:
            offsets = np.arange(first, first + len(part))
            nothing = pa.nulls(len(part), pa.binary())
            yield Columns("t", 0, nothing, column(part), offsets, np.zeros(len(part), np.int64))
            first += len(part)

    task = SinkTask(JobSpec("c", {**JSON, **config}, "", "g", "o", ""))
    report = task.run(0, [Span("t", 0, 0, sum(map(len, parts)))], columns())
    task.close()
    assert report.failed is None
    return sorted((each.offset, each.value, each.failure.stage) for each in report.letters)


def at(place: Path, config: dict[str, str]) -> dict[str, str]:
    return {key: value.format(place=place) for key, value in config.items()}


def files(place: Path) -> dict[str, pa.Table]:
    return {file.name: by_name(pq.read_table(file)) for file in place.rglob("*.parquet")}


def rows(place: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(place / "db")) as database:
        names = sorted(name for (name,) in database.execute("SELECT name FROM pragma_table_info('t')"))
        if not names:
            return []
        columns = ", ".join(f'"{name}"' for name in names)
        return [tuple(names), *sorted(database.execute(f"SELECT {columns} FROM t").fetchall(), key=str)]


PARTS = st.lists(st.lists(LINES, min_size=1, max_size=4), min_size=1, max_size=4)


@given(parts=PARTS)
def test_files_and_letters_are_the_same_either_way(tmp_path_factory: pytest.TempPathFactory, parts: Given) -> None:
    quick, slow = tmp_path_factory.mktemp("quick"), tmp_path_factory.mktemp("slow")
    found = letters_of(at(quick, PARQUET), parts)
    assert found == letters_of({**at(slow, PARQUET), **ONE_BY_ONE}, parts)
    assert files(quick) == files(slow)


@pytest.mark.parametrize("more", [{}, BY_KEY, {"batch.size": "2"}])
@settings(max_examples=examples(60))
@given(parts=PARTS)
def test_so_are_rows_of_a_database(
    tmp_path_factory: pytest.TempPathFactory, more: dict[str, str], parts: Given
) -> None:
    quick, slow = tmp_path_factory.mktemp("quick"), tmp_path_factory.mktemp("slow")
    found = letters_of({**at(quick, TABLE), **more}, parts)
    assert found == letters_of({**at(slow, TABLE), **more, **ONE_BY_ONE}, parts)
    assert rows(quick) == rows(slow)
