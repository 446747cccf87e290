"""Which inputs a task waits for: max.task.idle.ms."""

from ottla.streams.tasks.idling import NEVER_WAITS, Idling

A, B = ("a", 0), ("b", 0)


def test_a_partition_of_which_more_is_at_the_brokers_is_waited_for() -> None:
    assert Idling(0).awaited([A, B], {B}, {A}, 100) == [B]


def test_one_that_is_read_to_its_end_is_not_waited_for_by_default() -> None:
    assert Idling(0).awaited([A, B], set(), {A}, 100) == []


def test_with_an_idle_time_it_is_until_that_is_over() -> None:
    idling = Idling(50)
    assert idling.awaited([A, B], set(), {A}, 100) == [A, B]
    assert idling.deadlines == {B: 150}
    assert idling.next_ms([A, B], set(), {A}, 100) == 150
    again = Idling(50, idling.deadlines)
    assert again.awaited([A, B], set(), {A}, 149) == [A, B]
    assert again.awaited([A, B], set(), {A}, 150) == [A]


def test_what_arrives_ends_the_wait_and_the_next_one_begins_anew() -> None:
    idling = Idling(50, {B: 150})
    assert idling.awaited([A, B], set(), {A, B}, 120) == [A, B]
    assert idling.deadlines == {}
    assert idling.next_ms([A, B], set(), {A}, 120) == 170


def test_minus_one_waits_for_nothing() -> None:
    assert Idling(NEVER_WAITS).awaited([A, B], {B}, {A}, 100) == []


def test_nothing_has_to_be_looked_at_again_where_nothing_waits() -> None:
    assert Idling(50).next_ms([A, B], set(), set(), 100) is None
    assert Idling(0).next_ms([A, B], {B}, {A}, 100) is None
