"""In which portions Spark is given the records of a query test."""

import random
from itertools import permutations

import pytest

from ottla.sql.on_spark import parts
from ottla.streams.record import Raw
from ottla.streams.tasks.heap import Heap

TOPICS = ("a", "b", "c")


def raw(topic: str, timestamp: int) -> Raw:
    return Raw(topic, 0, -1, None, None, timestamp)


def taken(records: list[Raw], line: tuple[str, ...]) -> list[Raw]:
    """By a task whose partitions stand in line so, when all is there."""
    waiting: Heap[list[Raw]] = Heap()
    for topic in line:
        if some := [each for each in records if each.topic == topic]:
            waiting.add(some[0].timestamp, some)
    found = []
    while len(waiting):
        _, some = waiting.take()
        found.append(some.pop(0))
        if some:
            waiting.add(some[0].timestamp, some)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_task_takes_each_portion_in_the_order_given(seed: int) -> None:
    dice = random.Random(seed)
    records = [raw(dice.choice(TOPICS), place + dice.randrange(3)) for place in range(30)]
    portions = parts(records)
    assert [each for portion in portions for each in portion] == records
    assert all(taken(portion, line) == portion for portion in portions for line in permutations(TOPICS))


def test_records_in_the_order_of_time_and_those_of_one_topic_are_one_portion() -> None:
    records = [raw("a", 1), raw("a", 1), raw("b", 2), raw("b", 5), raw("b", 2), raw("a", 6)]
    assert parts(records) == [records]


def test_one_that_is_as_old_as_another_topics_waits_for_it() -> None:
    records = [raw("a", 1), raw("b", 1), raw("a", 2)]
    assert parts(records) == [records[:1], records[1:]]


def test_where_sides_ask_each_other_every_record_is_a_portion() -> None:
    records = [raw("a", 1), raw("b", 2)]
    assert parts(records, one_by_one=True) == [records[:1], records[1:]]
