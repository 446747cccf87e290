"""Functions that raise or give what nobody can use, wherever they stand: an error that names node and record, or a dead
letter that is counted. Never a record that is gone without a word."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Materialized, Produced
from ottla.streams.errors import AGGREGATE_RESULT, StreamsError
from ottla.streams.expressions import lit, value, when
from ottla.streams.record import Raw, Record
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.task import Task
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.graph import TimestampExtractor
from ottla.streams.topology.processor import Processor, ProcessorContext, PunctuationType
from ottla.streams.windows import JoinWindows
from tests.rules.streams.driving import driver_of, feed, results

Build = Callable[[StreamsBuilder], None]

DEAD = "dead"
GOES_ON = {
    "deserialization.exception.handler": "continue",
    "processing.exception.handler": "continue",
    "production.exception.handler": "continue",
    "errors.dead.letter.queue.topic.name": DEAD,
}
LINES = [("in", "a", "good", 1), ("in", "b", "bad", 2), ("in", "c", "fine", 3)]
TEXTS: Produced[Any, Any] = Produced(Serdes.string, Serdes.string)


def picky(text: str) -> str:
    if text == "bad":
        raise KeyError("not this one")
    return text


def by_filter(builder: StreamsBuilder) -> None:
    builder.stream("in").filter(lambda key, text: bool(picky(text)), name="bug").to("out")


def by_map(builder: StreamsBuilder) -> None:
    builder.stream("in").map(lambda key, text: (key, picky(text)), name="bug").to("out")


def by_pair(builder: StreamsBuilder) -> None:
    no_pair: Any = lambda key, text: None if text == "bad" else (key, text)  # noqa: E731
    builder.stream("in").map(no_pair, name="bug").to("out")


def by_aggregate(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by_key()
    grouped.aggregate(lambda: "", lambda key, text, _: picky(text), name="bug").to_stream().to("out")


def by_type_of_aggregate(builder: StreamsBuilder) -> None:
    wrong: Any = lambda key, text, _: 7 if text == "bad" else text  # noqa: E731
    stored: Materialized[Any, Any] = Materialized("texts", Serdes.string, Serdes.string)
    builder.stream("in").group_by_key().aggregate(lambda: "", wrong, stored, name="bug").to_stream().to("out")


def by_join(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    joined = stream.left_join(builder.table("table"), lambda text, _: picky(text), name="bug")
    joined.to("out")


class Picky(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        self._context.forward(record._replace(value=picky(record.value)))


class BackInTime(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        self._context.forward(record._replace(timestamp=-1) if record.value == "bad" else record)


def by_processor(builder: StreamsBuilder) -> None:
    builder.stream("in").process(Picky, name="bug").to("out")


def by_time(builder: StreamsBuilder) -> None:
    builder.stream("in").process(BackInTime, name="bug").to("out")


def by_type_of_result(builder: StreamsBuilder) -> None:
    wrong: Any = lambda text: 7 if text == "bad" else text  # noqa: E731
    builder.stream("in").map_values(wrong).to("out", TEXTS, name="bug")


FUNCTIONS = [
    by_filter,
    by_map,
    by_pair,
    by_aggregate,
    by_type_of_aggregate,
    by_join,
    by_processor,
    by_time,
    by_type_of_result,
]


@pytest.mark.parametrize("build", FUNCTIONS)
def test_a_function_that_fails_ends_the_application_with_its_node_and_the_record(build: Build) -> None:
    with driver_of(build) as driver, pytest.raises(StreamsError, match=r"at in-0 offset 1, node bug, task 0_0: "):
        feed(driver, LINES)


@pytest.mark.parametrize("build", FUNCTIONS)
def test_or_costs_its_record_alone_which_becomes_a_dead_letter_and_is_counted(build: Build) -> None:
    with driver_of(build, GOES_ON) as driver:
        feed(driver, LINES)
        assert [text for _, text, _ in results(driver)] == ["good", "fine"]
        assert [(letter.key, letter.value, letter.timestamp) for letter in driver.output(DEAD)] == [(b"b", b"bad", 2)]
        assert driver.metrics() == {"dropped-records-total": 1}


class PickyPunctuator(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context
        context.schedule(1, PunctuationType.STREAM_TIME, self._tick)

    def process(self, record: Record) -> None:
        pass

    def _tick(self, now: int) -> None:
        self._context.forward(Record("tick", picky("bad" if now == 2 else str(now)), now))


def punctual(builder: StreamsBuilder) -> None:
    builder.stream("in").process(PickyPunctuator, name="bug").to("out")


def test_a_punctuator_that_fails_has_no_record_but_a_node() -> None:
    with driver_of(punctual) as driver, pytest.raises(StreamsError, match="in a punctuator, node bug, task 0_0: KeyEr"):
        feed(driver, LINES)
    with driver_of(punctual, GOES_ON) as driver:
        feed(driver, LINES)
        assert [text for _, text, _ in results(driver)] == ["1", "3"]
        (letter,) = driver.output(DEAD)
        assert (letter.key, letter.value, letter.timestamp) == (None, None, 2)
        assert dict(letter.headers)["__streams.errors.topic"] is None


class Unstartable(Processor):
    def init(self, context: ProcessorContext) -> None:
        raise OSError("no such file")

    def process(self, record: Record) -> None:
        pass


def test_a_processor_that_cannot_start_is_named() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").process(Unstartable, name="bug").to("out")

    with pytest.raises(StreamsError, match="bug could not be started in task 0_0: OSError: no such file"):
        driver_of(build)


# ---- where a record goes


def partitioned(chosen: Any) -> Build:
    def build(builder: StreamsBuilder) -> None:
        produced = Produced(Serdes.string, Serdes.string, lambda topic, key, text, count: chosen(text))
        builder.stream("in").filter(lambda key, text: True).to("out", produced, name="bug")

    return build


def in_three_partitions(build: Build, config: dict[str, Any]) -> list[Raw]:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    build(builder)
    topology = builder.build()
    (nodes,) = topology.sub_topologies()
    backends: Callable[[str], MemoryBackend] = lambda _: MemoryBackend()  # noqa: E731
    task = Task(nodes, topology.graph, "app", 0, backends, config, partition_count=lambda _: 3)
    return task.process(
        [Raw("in", 0, place, key.encode(), text.encode(), at) for place, (_, key, text, at) in enumerate(LINES)]
    )


@pytest.mark.parametrize("wrong", [-1, 3, "first", 1.5])
def test_a_partition_that_the_topic_lacks_is_an_error_and_no_other_partition(wrong: object) -> None:
    build = partitioned(lambda text: wrong if text == "bad" else 2)
    with pytest.raises(StreamsError, match=r"at in-0 offset 1, node bug, task 0_0: (ValueError|TypeError): "):
        in_three_partitions(build, {})
    out = in_three_partitions(build, GOES_ON)
    assert [(raw.topic, raw.partition, raw.value) for raw in out] == [
        ("out", 2, b"good"),
        (DEAD, -1, b"bad"),
        ("out", 2, b"fine"),
    ]


def test_the_error_tells_how_many_partitions_there_are() -> None:
    with pytest.raises(StreamsError, match="the partitioner chose partition 3 of topic out, which has 3, numbered fro"):
        in_three_partitions(partitioned(lambda text: 3), {})


def test_a_partitioner_may_leave_the_choice_to_the_producer() -> None:
    assert [raw.partition for raw in in_three_partitions(partitioned(lambda text: None), {})] == [-1, -1, -1]


def test_the_driver_knows_no_numbers_of_partitions_and_takes_any() -> None:
    with driver_of(partitioned(lambda text: 17)) as driver:
        feed(driver, LINES)
        assert len(results(driver)) == 3
    with driver_of(partitioned(lambda text: -1)) as driver, pytest.raises(StreamsError, match="chose partition -1"):
        feed(driver, LINES)


@pytest.mark.parametrize("wrong", [None, "", 5])
def test_what_is_no_name_of_a_topic_is_an_error_at_its_record(wrong: object) -> None:
    def build(builder: StreamsBuilder) -> None:
        chooser: Any = lambda key, text, metadata: wrong if text == "bad" else "out"  # noqa: E731
        builder.stream("in").filter(lambda key, text: True).to(chooser, TEXTS, name="bug")

    with driver_of(build) as driver, pytest.raises(StreamsError, match=r"at in-0 offset 1, node bug, .* gave"):
        feed(driver, LINES)
    with driver_of(build, GOES_ON) as driver:
        feed(driver, LINES)
        assert len(driver.output("out")) == 2
        assert [letter.value for letter in driver.output(DEAD)] == [b"bad"]


def test_an_expression_that_gives_no_topic_is_an_error_too() -> None:
    def build(builder: StreamsBuilder) -> None:
        nothing = lit(None).cast("string")
        builder.stream("in").to(when(value == "bad", nothing).otherwise(lit("out")), TEXTS, name="bug")

    with driver_of(build) as driver, pytest.raises(StreamsError, match=r"at in-0 offset 1, node bug, .* gave None"):
        feed(driver, LINES)


# ---- time


@pytest.mark.parametrize("config", [{}, GOES_ON], ids=["fails", "goes on"])
def test_an_extractor_that_fails_ends_the_application_whatever_the_handlers_say(config: dict[str, Any]) -> None:
    def build(builder: StreamsBuilder) -> None:
        extractor = TimestampExtractor(lambda key, text, timestamp, partition_time: len(picky(text)))
        builder.stream("in", Consumed(timestamp_extractor=extractor)).to("out")

    expected = "the timestamp extractor of KSTREAM-SOURCE-0000000000 failed at in-0 offset 1: KeyError: 'not this one'"
    with driver_of(build, config) as driver, pytest.raises(StreamsError, match=expected):
        feed(driver, LINES)


# ---- keys


def test_records_without_a_key_are_counted_wherever_they_fall_out() -> None:
    def build(builder: StreamsBuilder) -> None:
        stream, other = builder.stream("in"), builder.stream("other")
        builder.table("table").to_stream().to("rows")
        stream.group_by_key().count().to_stream().to("counts", Produced(Serdes.string, Serdes.long))
        stream.join(other, lambda one, two: one + two, JoinWindows.of(10, grace_ms=0)).to("pairs")

    with driver_of(build) as driver:
        feed(driver, [("in", None, "x", 1), ("other", None, "y", 1), ("table", None, "z", 1)])
        assert driver.produced_topic_names() == set()
        assert sum(driver.dropped_records.values()) == 4
        assert all("null-key" in reason for reason in driver.dropped_records)


# ---- behind an aggregate of Spark's


def test_behind_an_aggregate_the_letter_is_its_result_since_no_one_record_led_to_it() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream(AGGREGATE_RESULT).map_values(picky, name="bug").to("out")

    with (
        driver_of(build) as driver,
        pytest.raises(StreamsError, match="at the result of an aggregate with the key b'k"),
    ):
        driver.pipe_raw(AGGREGATE_RESULT, b"k", b"bad", 9)
    with driver_of(build, GOES_ON) as driver:
        driver.pipe_raw(AGGREGATE_RESULT, b"k", b"bad", 9)
        (letter,) = driver.output(DEAD)
        headers = dict(letter.headers)
        assert (letter.key, letter.value, letter.timestamp) == (b"k", b"bad", 9)
        assert [headers[f"__streams.errors.{name}"] for name in ("partition", "offset")] == [b"-1", b"-1"]


@pytest.mark.parametrize(("chosen", "places"), [({2, 0}, [0, 2]), ([1], [1]), ((), []), (1, [1])])
def test_a_partitioner_may_name_several_partitions_or_none(chosen: Any, places: list[int]) -> None:
    """KIP-837. With none of them the record is dropped and counted."""
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    builder.stream("in").to("out", Produced(partitioner=lambda topic, key, value, count: chosen))
    topology = builder.build()
    (sub,) = topology.sub_topologies()
    task = Task(sub, topology.graph, "app", 0, {}, partition_count=lambda _: 3)
    assert [raw.partition for raw in task.process([Raw("in", 0, 0, b"k", b"v", 1)])] == places
    assert task.dropped == ({} if places else {"no-partition": 1})


def test_a_processor_has_no_store_that_it_is_not_connected_with() -> None:
    """Another one of the same task is: Kafka refuses as well."""

    class Curious(Processor):
        def init(self, context: ProcessorContext) -> None:
            context.state_store("kv")

        def process(self, record: Record) -> None:
            pass

    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    stream = builder.stream("in")
    stream.group_by_key().count("kv")
    stream.process(Curious, name="curious")
    with pytest.raises(StreamsError, match="curious has no store kv; it is connected with: none"):
        TopologyTestDriver(builder.build())
