"""A stream with a table, and with a global table."""

from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Materialized, Suppressed
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import left, right, value
from ottla.streams.record import Raw
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.task import Task
from ottla.streams.windows import TimeWindows
from tests.rules.streams.driving import driver_of, feed, results, run


def joining(how: str) -> Any:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("table", materialized=Materialized("kept"))
        getattr(builder.stream("in"), how)(table, lambda mine, row: f"{mine}/{row}").to("out")

    return build


STEPS = [("in", "k", "1", 1), ("table", "k", "x", 5), ("in", "k", "2", 2), ("table", "k", None, 6), ("in", "k", "3", 3)]


def test_a_join_looks_the_row_up_when_the_streams_record_comes() -> None:
    assert run(joining("join"), STEPS) == [("k", "2/x", 2)]
    assert run(joining("left_join"), STEPS) == [("k", "1/None", 1), ("k", "2/x", 2), ("k", "3/None", 3)]


def test_without_a_value_a_record_is_dropped_without_a_key_only_by_an_inner_join() -> None:
    inputs = [("in", "k", None, 1), ("in", None, "1", 2)]
    with driver_of(joining("join")) as driver:
        feed(driver, inputs)
        assert results(driver) == []
        assert driver.dropped_records == {"null-key-or-value": 2}
    with driver_of(joining("left_join")) as driver:
        feed(driver, inputs)
        assert results(driver) == [(None, "1/None", 2)]
        assert driver.dropped_records == {"null-key-or-value": 1}


def test_a_table_that_keeps_no_store_is_computed_when_it_is_looked_up() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("table").filter(value != "hidden").map_values(lambda row: row.upper())
        builder.stream("in").left_join(table, left + "/" + right).to("out")

    inputs = [("table", "k", "seen", 1), ("in", "k", "1", 1), ("table", "k", "hidden", 2), ("in", "k", "2", 2)]
    assert [value for _, value, _ in run(build, inputs)] == ["1/SEEN", None]


def test_what_suppress_holds_back_is_not_seen_by_a_join() -> None:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of(10, grace_ms=0))
        final = windowed.count().suppress(Suppressed.until_window_closes())
        final.to_stream().left_join(final, lambda mine, row: f"{mine}/{row}").to("out")

    # A result leaves the buffer after it was sent, so whoever is sent it finds the value from before: a count of 0.
    inputs = [("in", "k", "v", 1), ("in", "k", "v", 2), ("in", "k", "v", 10)]
    assert [value for _, value, _ in run(build, inputs)] == ["2/0"]


def test_a_global_table_is_looked_up_by_a_key_of_the_streams_choice() -> None:
    def build(builder: StreamsBuilder) -> None:
        people = builder.global_table("people", materialized=Materialized("people"))
        orders = builder.stream("orders")
        orders.join(people, lambda order, person: f"{order} by {person}", key_mapper=value).to("out")

    with driver_of(build) as driver:
        feed(driver, [("people", "p1", "Ann", 100), ("orders", "o1", "p1", 1), ("orders", "o2", "p2", 2)])
        assert results(driver) == [("o1", "p1 by Ann", 1)]
        assert driver.get_key_value_store("people").get("p1") == "Ann"


def test_a_global_table_drops_records_without_a_key_and_asks_the_handler_about_bad_ones() -> None:
    def build(builder: StreamsBuilder) -> None:
        numbers = builder.global_table("numbers", Consumed(Serdes.string, Serdes.long), Materialized("numbers"))
        builder.stream("in").join(numbers, lambda mine, number: f"{mine}{number}", key_mapper=value).to("out")

    with driver_of(build) as driver, pytest.raises(StreamsError, match="a record of a global table could not be read"):
        driver.pipe_raw("numbers", b"k", b"bad", 1)
    with driver_of(build, {"deserialization.exception.handler": "continue"}) as driver:
        driver.pipe_raw("numbers", b"k", b"bad", 1)
        driver.pipe_raw("numbers", None, bytes(8), 1)
        assert driver.dropped_records == {"deserialization-error": 1, "null-key": 1}


def test_in_a_batch_the_table_goes_first_where_timestamps_are_equal() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    joining("left_join")(builder)
    topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
    (whole,) = topology.sub_topologies()
    task = Task(whole, topology.graph, "app", 0, lambda _: MemoryBackend())
    records = [Raw("in", 0, 0, b"k", b"1", 5), Raw("table", 0, 0, b"k", b"x", 5), Raw("in", 0, 1, b"k", b"2", 4)]
    assert [raw.value for raw in task.process(records) if raw.topic == "out"] == [b"1/x", b"2/x"]
