"""A backlog of several inputs that is larger than a batch is taken in the order of time, as Kafka Streams takes it."""

import random
import threading
from typing import Any

import pytest

from ottla.client import groups
from ottla.model.ids import TopicPartition
from ottla.streams import StreamsBuilder
from ottla.streams.dsl.options import Joined, Materialized
from tests.spark.applications import (
    CONSUMED,
    PRODUCED,
    START,
    TEXT,
    Input,
    Told,
    World,
    driven,
    in_task_order,
)
from tests.support.patience import eventually

pytestmark = pytest.mark.usefixtures("spark")


def enriched(world: World) -> StreamsBuilder:
    builder = StreamsBuilder()
    lines, table, out = (f"{world.name}.{short}" for short in ("lines", "table", "out"))
    known = builder.table(table, CONSUMED, Materialized("known", key_serde=TEXT, value_serde=TEXT))
    joined: Joined[Any, Any, Any] = Joined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT)
    builder.stream(lines, CONSUMED).join(known, lambda line, found: f"{line}/{found}", joined=joined).to(out, PRODUCED)
    return builder


def backlog(world: World, seed: int, lines: int, table: int) -> list[Input]:
    """Over the same time, however many; out of order, and no two inputs at the same millisecond."""
    dice = random.Random(seed)
    found: list[Input] = []
    for tie, (short, number) in enumerate({"lines": lines, "table": table}.items()):
        topic = world.topic(short)
        for place in range(number):
            time = START + 2 * (place * 10_000 // number + dice.choice([0, 0, -dice.randrange(600)])) + tie
            found.append(Input(topic, dice.choice("abc").encode(), f"{short}{place}".encode(), time))
    world.topic("out")
    return found


def told(world: World) -> list[Told]:
    return [Told(record.key, record.value, record.timestamp) for record in world.read(f"{world.name}.out")]


@pytest.mark.parametrize(
    ("lines", "table", "most"),
    [
        (300, 20, 40),
        pytest.param(20, 300, 40, marks=pytest.mark.matrix),
        pytest.param(150, 150, 25, marks=pytest.mark.matrix),
        pytest.param(60, 60, 2000, marks=pytest.mark.matrix),
    ],
)
def test_a_stream_finds_the_table_as_of_its_own_time(world: World, lines: int, table: int, most: int) -> None:
    records = backlog(world, lines + most, lines, table)
    world.send(records)
    world.app(enriched(world), **{"max.records.per.batch": most}).run(once=True)
    assert told(world) == driven(enriched(world), in_task_order(records), f"{world.name}.out")
    for short, number in (("lines", lines), ("table", table)):
        world.has_read(f"{world.name}.{short}", number)


def test_without_waiting_records_go_as_they_come(world: World) -> None:
    records = backlog(world, 5, 150, 150)
    world.send(records)
    world.app(enriched(world), **{"max.records.per.batch": 25, "max.task.idle.ms": -1}).run(once=True)
    assert told(world) != driven(enriched(world), in_task_order(records), f"{world.name}.out")


def test_an_input_that_is_read_to_its_end_is_waited_for(world: World) -> None:
    lines, table = world.topic("lines"), world.topic("table")
    world.topic("out")
    world.send([Input(table, b"a", b"old", START), Input(lines, b"a", b"line", START + 100)])
    runner = world.app(enriched(world), **{"max.task.idle.ms": 20_000}).runner()
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        eventually(lambda: committed(world, table) == 1 or not thread.is_alive(), "the table's record is processed")
        # The line waits: it is not committed, though it has been read.
        assert (committed(world, lines) or 0) == 0
        world.send([Input(table, b"a", b"new", START + 50), Input(table, b"b", b"late", START + 200)])
        eventually(lambda: committed(world, lines) == 1 or not thread.is_alive(), "the line is processed")
    finally:
        runner.stop()
        thread.join()
    assert [each.value for each in told(world)] == [b"line/new"]


def committed(world: World, topic: str) -> int | None:
    found = groups.committed(world.client, world.name).get(TopicPartition(topic, 0))
    return None if found is None else found.offset
