"""The Processor API: forwarding, stores, punctuators, what a context tells."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.errors import StreamsError
from ottla.streams.record import Record, RecordMetadata
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.processor import FixedKeyProcessor, Processor, ProcessorContext, PunctuationType
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.topology.topology import Stores, Topology
from tests.rules.streams.driving import driver_of, feed, results


class Scripted(Processor):
    """Runs a function at the start, and one for each record."""

    def __init__(self, begin: Callable[..., None] | None, each: Callable[..., None]) -> None:
        self._begin = begin
        self._each = each

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        if self._begin is not None:
            self._begin(context)

    def process(self, record: Record) -> None:
        self._each(self._context, record)


def processing(each: Callable[..., None], begin: Callable[..., None] | None = None) -> TopologyTestDriver:
    topology = Topology()
    topology.add_source("source", "in", key_serde=Serdes.string, value_serde=Serdes.string)
    topology.add_processor("work", lambda: Scripted(begin, each), "source")
    topology.add_state_store(Stores.key_value("kept", Serdes.string, Serdes.string), "work")
    topology.add_sink("sink", "out", "work", key_serde=Serdes.string, value_serde=Serdes.string)
    topology.add_sink("other", "aside", "work", key_serde=Serdes.string, value_serde=Serdes.string)
    return TopologyTestDriver(topology, "app", initial_wall_clock_ms=1000)


def test_a_record_goes_to_all_children_or_to_the_one_named() -> None:
    def each(context: ProcessorContext, record: Record) -> None:
        context.forward(record)
        context.forward(record.with_value("aside"), "other")

    with processing(each) as driver:
        feed(driver, [("in", "k", "v", 1)])
        assert results(driver) == [("k", "v", 1)]
        assert results(driver, "aside") == [("k", "v", 1), ("k", "aside", 1)]


def test_a_child_that_is_none_is_an_error() -> None:
    def each(context: ProcessorContext, record: Record) -> None:
        context.forward(record, "nobody")

    with (
        processing(each) as driver,
        pytest.raises(StreamsError, match="nobody is no child of work; its children are sink"),
    ):
        feed(driver, [("in", "k", "v", 1)])


def test_a_record_needs_a_timestamp_to_go_on() -> None:
    with (
        processing(lambda context, record: context.forward(record.with_timestamp(-1))) as driver,
        pytest.raises(StreamsError, match="negative timestamp"),
    ):
        feed(driver, [("in", "k", "v", 1)])


def test_a_plain_stores_changes_carry_the_time_of_the_record() -> None:
    def each(context: ProcessorContext, record: Record) -> None:
        store = context.state_store("kept")
        before = store.put_if_absent(record.key, record.value)
        context.forward(record.with_value(str(before)))

    with processing(each) as driver:
        feed(driver, [("in", "k", "1", 7), ("in", "k", "2", 8)])
        assert results(driver) == [("k", "None", 7), ("k", "1", 8)]
        changes = driver.output("app-kept-changelog")
        assert [(raw.key, raw.value, raw.timestamp) for raw in changes] == [(b"k", b"1", 7)]


def test_a_store_may_be_changed_while_it_is_read_through() -> None:
    def each(context: ProcessorContext, record: Record) -> None:
        store = context.state_store("kept")
        store.put(record.key, record.value)
        for key, _ in store.all():
            if record.value == "clear":
                store.delete(key)

    with processing(each) as driver:
        feed(driver, [("in", "b", "1", 1), ("in", "a", "2", 2)])
        assert list(driver.get_key_value_store("kept").all()) == [("a", "2"), ("b", "1")]
        feed(driver, [("in", "c", "clear", 3)])
        assert list(driver.get_key_value_store("kept").all()) == []


def test_a_store_that_is_not_connected_is_an_error() -> None:
    def begin(context: ProcessorContext) -> None:
        context.state_store("nothing")

    with pytest.raises(StreamsError, match="work has no store nothing; it is connected with: kept"):
        processing(lambda context, record: None, begin)


def test_the_context_tells_where_the_record_came_from_and_what_time_it_is() -> None:
    told: list[Any] = []

    def each(context: ProcessorContext, record: Record) -> None:
        told.append((context.record_metadata(), context.current_stream_time_ms(), context.current_system_time_ms()))

    with processing(each) as driver:
        feed(driver, [("in", "k", "v", 9), ("in", "k", "v", 5)])
    assert told == [(RecordMetadata("in", 0, 0), 9, 1000), (RecordMetadata("in", 0, 1), 9, 1000)]


def punctuating(
    kind: PunctuationType, interval: int, start_ms: int | None = None
) -> tuple[TopologyTestDriver, list[int]]:
    called: list[int] = []

    def begin(context: ProcessorContext) -> None:
        def punctuate(now: int) -> None:
            called.append(now)
            assert context.record_metadata() is None
            context.forward(Record("p", "tick", now))

        context.schedule(interval, kind, punctuate, start_ms=start_ms)

    return processing(lambda context, record: context.forward(record), begin), called


def test_stream_time_punctuators_start_with_the_first_record_and_do_not_make_up_for_gaps() -> None:
    driver, called = punctuating(PunctuationType.STREAM_TIME, 10)
    with driver:
        feed(driver, [("in", "k", "v", at) for at in (3, 9, 10, 35, 39, 40)])
        assert called == [3, 10, 35, 40]
        assert results(driver)[:3] == [("k", "v", 3), ("p", "tick", 3), ("k", "v", 9)]


def test_a_record_that_is_late_does_not_punctuate() -> None:
    driver, called = punctuating(PunctuationType.STREAM_TIME, 10)
    with driver:
        feed(driver, [("in", "k", "v", at) for at in (20, 1, 15)])
        assert called == [20]


def test_punctuators_may_start_at_a_given_time() -> None:
    driver, called = punctuating(PunctuationType.STREAM_TIME, 10, start_ms=15)
    with driver:
        feed(driver, [("in", "k", "v", at) for at in (3, 14, 15, 24, 26)])
        assert called == [15, 26]


def test_wall_clock_punctuators_run_when_the_clock_moves_and_with_records_not() -> None:
    driver, called = punctuating(PunctuationType.WALL_CLOCK_TIME, 10)
    with driver:
        feed(driver, [("in", "k", "v", 5000)])
        driver.advance_wall_clock_time(9)
        assert called == []
        driver.advance_wall_clock_time(1)
        driver.advance_wall_clock_time(35)
        driver.advance_wall_clock_time(5)
        assert called == [1010, 1045, 1050]


def test_a_cancelled_punctuator_runs_no_more() -> None:
    called: list[int] = []

    def begin(context: ProcessorContext) -> None:
        def once(now: int) -> None:
            called.append(now)
            schedule.cancel()

        schedule = context.schedule(1, PunctuationType.STREAM_TIME, once)

    with processing(lambda context, record: None, begin) as driver:
        feed(driver, [("in", "k", "v", at) for at in (1, 2, 3)])
    assert called == [1]


def test_a_punctuator_that_raises_ends_the_task_with_the_nodes_name() -> None:
    def begin(context: ProcessorContext) -> None:
        def fail(now: int) -> None:
            raise RuntimeError("no")

        context.schedule(1, PunctuationType.STREAM_TIME, fail)

    with (
        processing(lambda context, record: None, begin) as driver,
        pytest.raises(StreamsError, match="in a punctuator, node work, task 0_0: RuntimeError: no"),
    ):
        feed(driver, [("in", "k", "v", 1)])


class Rekeying(FixedKeyProcessor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        self._context.forward(record.with_key("other") if record.value == "bad" else record.with_value("good"))


def test_process_values_must_not_change_the_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").process_values(Rekeying).to("out", None)

    with driver_of(build) as driver:
        feed(driver, [("in", "k", "v", 1)])
        assert results(driver) == [("k", "good", 1)]
        with pytest.raises(StreamsError, match="use process to change keys"):
            feed(driver, [("in", "k", "bad", 1)])


def test_every_task_gets_its_own_processor_and_closes_it() -> None:
    closed: list[int] = []

    class Closing(Processor):
        def process(self, record: Record) -> None:
            pass

        def close(self) -> None:
            closed.append(1)

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").process(Closing)

    with driver_of(build):
        assert closed == []
    assert closed == [1]


class Numbering(Processor):
    """Says itself which store it needs."""

    SEEN = Stores.key_value("seen", Serdes.string, Serdes.long)

    @classmethod
    def stores(cls) -> list[StoreSpec]:
        return [cls.SEEN]

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._seen = context.state_store("seen")
        assert (context.key_serde, context.value_serde) == (Serdes.string, None)

    def process(self, record: Record) -> None:
        number = (self._seen.get(record.key) or 0) + 1
        self._seen.put(record.key, number)
        self._context.forward(record.with_value(f"{record.value}{number}"))


class Supplying:
    def __call__(self) -> Processor:
        return Numbering()

    def stores(self) -> list[StoreSpec]:
        return [Numbering.SEEN]


@pytest.mark.parametrize("supplier", [Numbering, Supplying()])
def test_a_supplier_may_name_its_stores_itself(supplier: Any) -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    builder.stream("in").process(supplier).to("out")
    with TopologyTestDriver(builder.build(), config={"default.key.serde": "string"}) as driver:
        driver.create_input_topic("in").pipe_many([("k", "a", 0), ("k", "b", 1)])
        assert driver.create_output_topic("out").read_key_values() == [("k", "a1"), ("k", "b2")]
