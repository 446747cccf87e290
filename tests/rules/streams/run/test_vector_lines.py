"""A line of nodes over columns gives what the task gives of the same records, one by one."""

import random
from collections.abc import Callable

import pytest

from ottla.streams import Joined, Materialized, Serdes, StreamsBuilder
from ottla.streams.expressions import concat, key, left, right, value
from ottla.streams.record import Raw
from ottla.streams.run.stages import output_columns
from ottla.streams.run.vector_lines import VectorLine, line_of
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.task import Task
from tests.rules.streams.run.test_stages import batch_of, random_records, spec_of

Build = Callable[[StreamsBuilder], None]
TEXTS = Joined(Serdes.string, Serdes.string, Serdes.string)
TABLE = [
    Raw("table", 1, 0, b"a", b"A", 0),
    Raw("table", 1, 1, b"b c", b"\xffB", 1),
    Raw("table", 1, 2, b"gone", None, 2),
]


def inner(builder: StreamsBuilder) -> None:
    table = builder.table("table", materialized=Materialized("kept"))
    builder.stream("in").join(table, concat(left, "|", right), joined=TEXTS).to("out")


def left_join(builder: StreamsBuilder) -> None:
    table = builder.table("table", materialized=Materialized("kept"))
    joiner = concat(key, left, "|", right.coalesce("none"))
    builder.stream("in").left_join(table, joiner, joined=TEXTS).to("out")


def in_a_line(builder: StreamsBuilder) -> None:
    table = builder.table("table", materialized=Materialized("kept"))
    words = builder.stream("in").filter(value != "b").flat_map_values(value.split(" "))
    words.join(table, concat(right, key), joined=TEXTS).filter_not(value == "Aa").map_values(value.lower()).to("out")


def task_of(build: Build) -> Task:
    task = spec_of(build).task(1, lambda _: MemoryBackend(), 0)
    task.process(TABLE)
    return task


def line_behind(task: Task) -> VectorLine | None:
    way = task.way_of("in")
    assert way is not None
    return line_of(*way)


@pytest.mark.parametrize("build", [inner, left_join, in_a_line])
def test_a_line_gives_what_the_task_gives(build: Build) -> None:
    for seed in range(20):
        records = random_records(seed)
        at_once, one_by_one = task_of(build), task_of(build)
        line = line_behind(at_once)
        assert line is not None
        made = line.run(batch_of(records))
        assert made is not None
        at_once.passed("in", random.Random(seed).randrange(9), made.dropped)
        expected = [(raw.topic, raw.key, raw.value, raw.timestamp) for raw in one_by_one.process(records)]
        rows = [row for batch in output_columns(made) for row in batch.to_pylist()]
        assert [(row["topic"], row["key"], row["value"], row["timestamp"]) for row in rows] == expected
        assert at_once.dropped == one_by_one.dropped


def test_records_with_headers_go_one_by_one() -> None:
    line = line_behind(task_of(inner))
    assert line is not None
    assert line.run(batch_of([Raw("in", 1, 0, b"a", b"v", 5, (("h", b"1"),))])) is None


def test_records_without_a_time_go_one_by_one() -> None:
    line = line_behind(task_of(inner))
    assert line is not None
    assert line.run(batch_of([Raw("in", 1, 0, b"a", b"v", -1)])) is None


def by_a_callable(builder: StreamsBuilder) -> None:
    table = builder.table("table", materialized=Materialized("kept"))
    builder.stream("in").join(table, lambda line, row: f"{line}{row}", joined=TEXTS).to("out")


def two_topics(builder: StreamsBuilder) -> None:
    table = builder.table("table", materialized=Materialized("kept"))
    joined = builder.stream("in").join(table, concat(left, right), joined=TEXTS)
    joined.to("out")
    joined.to("other")


@pytest.mark.parametrize("build", [by_a_callable, two_topics])
def test_functions_of_python_and_branches_have_no_line(build: Build) -> None:
    assert line_behind(task_of(build)) is None
