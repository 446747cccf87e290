"""A task: order of records, time, bad input, exceptions, what survives from batch to batch."""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Materialized, Produced
from ottla.streams.errors import ErrorContext, HandlerResponse, ProducerRecord, StreamsError
from ottla.streams.expressions import BatchAggregate, concat, max_, now, own, value
from ottla.streams.record import Raw, Record
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.store_maker import backend_names
from ottla.streams.tasks.task import Task
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.graph import InvalidTimestamp, TimestampExtractor
from ottla.streams.topology.processor import Processor, ProcessorContext, PunctuationType
from ottla.streams.topology.topology import Topology
from ottla.streams.windows import Emit, JoinWindows, SessionWindows, TimeWindows
from tests.rules.streams.driving import driver_of, feed, results


class Batches:
    """Tasks that live for one batch each, over stores that stay."""

    def __init__(self, build: Any, config: Mapping[str, Any] | None = None) -> None:
        builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
        build(builder)
        self.topology: Topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
        (self._nodes,) = self.topology.sub_topologies()
        self._config = config
        self.backends = {name: MemoryBackend() for name in backend_names(self._nodes)}
        self._saved: bytes | None = None

    def waiting(
        self, records: list[Raw], awaited: list[tuple[str, int]]
    ) -> tuple[list[tuple[str, bytes | None, bytes | None, int]], list[Raw]]:
        task = self.task()
        if self._saved is not None:
            task.restore(self._saved)
        out = task.process(records, awaited=awaited) + task.commit()
        self._saved = task.save()
        told = [(raw.topic, raw.key, raw.value, raw.timestamp) for raw in out if not raw.topic.endswith("-changelog")]
        return told, task.left()

    def task(self) -> Task:
        return Task(self._nodes, self.topology.graph, "app", 0, self.backends, self._config)

    def run(self, *records: Raw, now: int = 0) -> list[tuple[str, bytes | None, bytes | None, int]]:
        task = Task(self._nodes, self.topology.graph, "app", 0, self.backends, self._config, now=now)
        if self._saved is not None:
            task.restore(self._saved)
        out = task.process(records) + task.advance_wall_clock(now) + task.commit()
        self._saved = task.save()
        return [(raw.topic, raw.key, raw.value, raw.timestamp) for raw in out if not raw.topic.endswith("-changelog")]


def raws(topic: str, *times: int, key: bytes = b"k") -> list[Raw]:
    return [Raw(topic, 0, offset, key, f"{topic}{time}".encode(), time) for offset, time in enumerate(times)]


def copying(builder: StreamsBuilder) -> None:
    builder.stream("a").merge(builder.stream("b")).to("out")


def test_the_partition_whose_first_record_is_oldest_goes_next_and_offsets_keep_their_order() -> None:
    out = Batches(copying).run(*raws("a", 5, 1, 20), *raws("b", 6, 7))
    assert [row[2] for row in out] == [b"a5", b"a1", b"b6", b"b7", b"a20"]


def test_records_wait_for_a_partition_of_which_more_is_to_come() -> None:
    task = Batches(copying).task()
    assert [raw.value for raw in task.process([*raws("a", 5, 30), *raws("b", 6)], awaited=[("b", 0)])] == [b"a5", b"b6"]
    assert [raw.value for raw in task.left()] == [b"a30"]


@pytest.mark.parametrize("seed", range(20))
def test_where_a_backlog_is_cut_changes_nothing_if_tasks_wait_for_what_is_to_come(seed: int) -> None:
    dice = random.Random(seed)
    backlog = {
        name: raws(
            name, *(3 * max(0, step * 5 + dice.randrange(-20, 20)) + tie for step in range(dice.randrange(1, 40)))
        )
        for tie, name in enumerate("abc")
    }
    whole = [raw.value for raw in Batches(three).task().process([raw for name in "abc" for raw in backlog[name]])]
    batches = Batches(three)
    out: list[bytes | None] = []
    left: list[Raw] = []
    while any(backlog.values()):
        cuts = {name: dice.randrange(1, 9) for name, raws in backlog.items() if raws}
        read = [raw for name, cut in cuts.items() for raw in backlog[name][:cut]]
        backlog = {name: raws[cuts.get(name, 0) :] for name, raws in backlog.items()}
        task = batches.task()
        out += [
            raw.value for raw in task.process([*left, *read], awaited=[(name, 0) for name in backlog if backlog[name]])
        ]
        left = task.left()
    assert out == whole


@pytest.mark.parametrize("seed", range(8))
def test_a_stream_whose_records_go_together_waits_for_its_table_all_the_same(seed: int) -> None:
    dice = random.Random(seed)

    def enriched(builder: StreamsBuilder) -> None:
        table: Materialized[Any, Any] = Materialized("known", Serdes.string, Serdes.string)
        known = builder.table("table", Consumed(Serdes.string, Serdes.string), table)
        stream = builder.stream("lines", Consumed(Serdes.string, Serdes.string))
        stream.join(known, lambda line, found: f"{line}/{found}").to("out", Produced(Serdes.string, Serdes.string))

    backlog = {
        name: raws(name, *(2 * max(0, step * 5 + dice.randrange(-20, 20)) + tie for step in range(400)))
        for tie, name in enumerate(("lines", "table"))
    }
    whole = Batches(enriched).run(*backlog["lines"], *backlog["table"])
    batches, left = Batches(enriched), list[Raw]()
    out: list[tuple[str, bytes | None, bytes | None, int]] = []
    while any(backlog.values()):
        cuts = {name: dice.randrange(60, 150) for name, some in backlog.items() if some}
        read = [raw for name, cut in cuts.items() for raw in backlog[name][:cut]]
        backlog = {name: some[cuts.get(name, 0) :] for name, some in backlog.items()}
        made, left = batches.waiting([*left, *read], [(name, 0) for name, some in backlog.items() if some])
        out += made
    assert out == whole


def three(builder: StreamsBuilder) -> None:
    builder.stream("a").merge(builder.stream("b")).merge(builder.stream("c")).to("out")


def test_equal_timestamps_alternate() -> None:
    out = Batches(copying).run(*raws("a", 5, 5, 5), *raws("b", 5, 5))
    assert [row[2] for row in out] == [b"a5", b"b5", b"a5", b"b5", b"a5"]


def test_a_topic_that_nobody_reads_is_an_error() -> None:
    with pytest.raises(StreamsError, match="no source of this task reads topic c; there are a, b"):
        Batches(copying).run(*raws("c", 1))


# ---- bad input


def numbers(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.long))
    stream.map_values(lambda number: 10 // number, name="divide").to("out", Produced(Serdes.string, Serdes.long))


def long(number: int) -> bytes:
    return number.to_bytes(8, "big")


POISON = [Raw("in", 0, 7, b"k", b"bad", 3, (("h", b"1"),)), Raw("in", 0, 8, b"k", long(5), 4)]


def test_a_record_that_cannot_be_read_ends_the_task() -> None:
    with pytest.raises(
        StreamsError, match=r"could not be read at in-0 offset 7, node KSTREAM-SOURCE-0000000000, task 0_0"
    ):
        Batches(numbers).run(*POISON)


def test_or_is_left_out_and_counted_and_goes_to_the_dead_letter_topic_with_its_story() -> None:
    config = {"deserialization.exception.handler": "continue", "errors.dead.letter.queue.topic.name": "dead"}
    with driver_of(numbers, config) as driver:
        for raw in POISON:
            driver.pipe_raw(raw.topic, raw.key, raw.value, raw.timestamp, raw.headers)
        assert results(driver) == [("k", 2, 4)]
        (dead,) = driver.output("dead")
        assert (dead.key, dead.value, dead.timestamp) == (b"k", b"bad", 3)
        headers = dict(dead.headers)
        assert list(headers) == [
            "h",
            "__streams.errors.exception",
            "__streams.errors.message",
            "__streams.errors.stacktrace",
            "__streams.errors.topic",
            "__streams.errors.partition",
            "__streams.errors.offset",
        ]
        assert headers["__streams.errors.exception"] == b"ottla.serdes.base.SerdeError"
        assert b"8 bytes" in (headers["__streams.errors.message"] or b"")
        assert b"Traceback" in (headers["__streams.errors.stacktrace"] or b"")
        assert [headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")] == [b"in", b"0", b"0"]
        assert driver.dropped_records == {"deserialization-error": 1}
        assert driver.metrics() == {"dropped-records-total": 1}


def test_a_function_that_raises_ends_the_task_and_the_error_names_node_and_record() -> None:
    with pytest.raises(StreamsError, match=r"at in-0 offset 3, node divide, task 0_0: ZeroDivisionError") as caught:
        Batches(numbers).run(Raw("in", 0, 3, b"k", long(0), 1))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_or_only_the_record_is_lost_and_the_parents_other_children_get_it() -> None:
    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("in", Consumed(Serdes.string, Serdes.long))
        stream.map_values(lambda number: 10 // number).to("out", Produced(Serdes.string, Serdes.long))
        stream.to("copy", Produced(Serdes.string, Serdes.long))

    config = {"processing.exception.handler": "continue", "errors.dead.letter.queue.topic.name": "dead"}
    out = Batches(build, config).run(Raw("in", 0, 0, b"k", long(0), 1), Raw("in", 0, 1, b"k", long(5), 2))
    assert out == [
        ("dead", b"k", long(0), 1),
        ("copy", b"k", long(0), 1),
        ("out", b"k", long(2), 2),
        ("copy", b"k", long(5), 2),
    ]


def test_a_handler_may_decide_from_case_to_case() -> None:
    asked: list[tuple[str, str | None, int, str]] = []

    def handler(context: ErrorContext, error: BaseException) -> str:
        asked.append((context.node, context.topic, context.offset, type(error).__name__))
        return "continue" if context.offset == 0 else "fail"

    batches = Batches(numbers, {"processing.exception.handler": handler})
    assert batches.run(Raw("in", 0, 0, b"k", long(0), 1)) == []
    with pytest.raises(StreamsError, match="offset 1"):
        batches.run(Raw("in", 0, 1, b"k", long(0), 1))
    assert asked == [("divide", "in", 0, "ZeroDivisionError"), ("divide", "in", 1, "ZeroDivisionError")]


def test_a_handler_may_have_dead_letters_of_its_own_which_are_then_the_only_ones() -> None:
    def handler(context: ErrorContext, error: BaseException) -> HandlerResponse:
        letter = ProducerRecord("own", context.key, b"why", (("record", repr(context.record.value).encode()),))
        return HandlerResponse.resume([letter, letter._replace(topic="other", timestamp=7, partition=1)])

    config = {"processing.exception.handler": handler, "errors.dead.letter.queue.topic.name": "dead"}
    task = Batches(numbers, config).task()
    assert task.process([Raw("in", 0, 0, b"k", long(0), 5)]) == [
        Raw("own", -1, -1, b"k", b"why", 5, (("record", b"0"),)),
        Raw("other", 1, -1, b"k", b"why", 7, (("record", b"0"),)),
    ]


@pytest.mark.parametrize("said", ["retry", HandlerResponse.retry(), "ignore", None])
def test_what_a_handler_may_not_say_ends_the_task(said: Any) -> None:
    batches = Batches(numbers, {"processing.exception.handler": lambda context, error: said})
    with pytest.raises(StreamsError, match="the exception handler gave"):
        batches.run(Raw("in", 0, 0, b"k", long(0), 1))


def test_retrying_to_serialize_fails_since_it_cannot_help() -> None:
    seen: list[Any] = []

    def handler(context: ErrorContext, error: BaseException) -> HandlerResponse:
        seen.append(context.record.value)
        return HandlerResponse.retry()

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(lambda text: 1).to("out")

    told = pytest.raises(StreamsError, match="a record for out could not be written at in-0 offset 0")
    with driver_of(build, {"production.exception.handler": handler}) as driver, told:
        feed(driver, [("in", "k", "bad", 1)])
    assert seen == [1]


def test_a_result_that_cannot_be_written_may_be_left_out() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(lambda text: text if text == "good" else 1).to("out")

    with driver_of(build, {"production.exception.handler": "continue"}) as driver:
        feed(driver, [("in", "k", "bad", 1), ("in", "k", "good", 2)])
        assert results(driver) == [("k", "good", 2)]
        assert driver.dropped_records == {"serialization-error": 1}


# ---- event time


def timed(extractor: TimestampExtractor) -> Any:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in", Consumed(timestamp_extractor=extractor)).to("out")

    return build


def test_an_invalid_timestamp_ends_the_task_unless_something_else_was_said() -> None:
    with pytest.raises(StreamsError, match="the record at in-0 offset 4 has the invalid timestamp -1"):
        Batches(timed(TimestampExtractor())).run(Raw("in", 0, 4, b"k", b"v", -1))


def test_invalid_timestamps_may_be_skipped_or_take_the_partitions_time() -> None:
    records = [Raw("in", 0, 0, b"k", b"1", 10), Raw("in", 0, 1, b"k", b"2", 5), Raw("in", 0, 2, b"k", b"3", -1)]
    skip = Batches(timed(TimestampExtractor(on_invalid=InvalidTimestamp.SKIP)))
    assert [row[3] for row in skip.run(*records)] == [10, 5]
    partition_time = Batches(timed(TimestampExtractor(on_invalid=InvalidTimestamp.PARTITION_TIME)))
    assert [row[3] for row in partition_time.run(*records)] == [10, 5, 10]
    assert [row[3] for row in partition_time.run(records[2])] == [10]


def test_a_record_for_which_a_function_gives_no_time_is_skipped_and_counted() -> None:
    extractor = TimestampExtractor(lambda key, text, timestamp, partition_time: int(text))
    topology_builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    timed(extractor)(topology_builder)
    with TopologyTestDriver(topology_builder.build()) as driver:
        driver.create_input_topic("in").pipe_many([("k", "-5", 1), ("k", "7", 2)])
        assert [record.timestamp for record in driver.create_output_topic("out")] == [7]
        assert driver.dropped_records == {"invalid-timestamp": 1}


def test_partition_time_needs_a_record_before() -> None:
    batches = Batches(timed(TimestampExtractor(on_invalid=InvalidTimestamp.PARTITION_TIME)))
    with pytest.raises(StreamsError, match="no record before it had a valid one"):
        batches.run(Raw("in", 0, 0, b"k", b"3", -1))


def test_event_time_may_come_from_a_function_an_expression_or_the_wall_clock() -> None:
    by_function = TimestampExtractor(lambda key, text, timestamp, partition_time: int(text) + max(0, partition_time))
    assert [
        row[3] for row in Batches(timed(by_function)).run(*[raw._replace(value=b"7") for raw in raws("in", 1, 2)])
    ] == [7, 14]
    by_expression = TimestampExtractor(value.cast("long"))
    assert [row[3] for row in Batches(timed(by_expression)).run(Raw("in", 0, 0, b"k", b"42", 1))] == [42]
    by_clock = TimestampExtractor(wall_clock=True)
    assert [row[3] for row in Batches(timed(by_clock)).run(Raw("in", 0, 0, b"k", b"42", 1), now=99)] == [99]


# ---- from batch to batch


def windowed(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").group_by_key()
    closing = stream.windowed_by(TimeWindows.of(10, grace_ms=5)).emit_strategy(Emit.ON_CLOSE)
    closing.count(Materialized("tumbling")).to_stream(lambda key, _: f"t{key.window.start}").to("out")
    sessions = stream.windowed_by(SessionWindows.of(10, grace_ms=5))
    sessions.count(Materialized("sessions")).to_stream(lambda key, _: f"s{key.window.start}").to("out")


def joined(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of(15, grace_ms=5)
    builder.stream("in").outer_join(builder.stream("other"), lambda mine, other: f"{mine}/{other}", windows).to("out")


@pytest.mark.parametrize("build", [windowed, joined])
def test_a_task_per_batch_does_what_one_task_does(build: Any) -> None:
    times = [1, 5, 14, 40, 22, 2, 60, 58, 100, 30, 170, 171, 90]
    records = [Raw("in", 0, offset, b"k" if time % 3 else b"l", b"v", time) for offset, time in enumerate(times)]
    if build is joined:
        records = [raw._replace(topic="other") if raw.offset % 2 else raw for raw in records]
    one_by_one = Batches(build)
    at_once = Task(one_by_one._nodes, one_by_one.topology.graph, "app", 0, lambda _: MemoryBackend())
    whole: list[Any] = []
    for raw in records:
        at_once.add([raw])
        while at_once.step():
            pass
        whole += at_once.commit(flush=False)
    whole = [(raw.topic, raw.key, raw.value, raw.timestamp) for raw in whole if raw.topic == "out"]
    assert [row for raw in records for row in one_by_one.run(raw)] == whole


class Ticking(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context
        context.schedule(10, PunctuationType.STREAM_TIME, lambda now: context.forward(Record("s", str(now), now)))
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, lambda now: context.forward(Record("w", str(now), now)))

    def process(self, record: Record) -> None:
        pass


def test_punctuators_keep_their_times() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").process(Ticking).to("out")

    batches = Batches(build)
    assert [row[2] for row in batches.run(*raws("in", 3), now=1000)] == [b"3"]
    assert [row[2] for row in batches.run(*raws("in", 9), now=1050)] == []
    assert [row[2] for row in batches.run(*raws("in", 12), now=1100)] == [b"12", b"1100"]


def test_stores_shrink_again_when_windows_expire() -> None:
    batches = Batches(windowed)
    for start in range(0, 2_000_000, 20_000):
        batches.run(*[Raw("in", 0, 0, f"{start}-{number}".encode(), b"v", start) for number in range(5)])
    assert len(batches.backends["tumbling"]) <= 12
    assert len(batches.backends["sessions"]) <= 60


class Longest(BatchAggregate):
    """The longest text; `sizes` tells how many values each call was given."""

    takes, keeps, returns = ("string",), "string", "string"
    sizes: ClassVar[list[int]] = []

    def initial(self) -> str:
        return ""

    def add(self, state: str, *columns: Any) -> str:
        self.sizes.append(len(columns[0]))
        texts: list[str] = [state, *columns[0].to_pylist()]
        return max(texts, key=len)

    def merge(self, state: str, other: str) -> str:
        return max(state, other, key=len)

    def result(self, state: str) -> str:
        return state


def longest(*, windowed: bool, caching: bool) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        grouped: Any = builder.stream("a").group_by_key()
        found = (grouped.windowed_by(TimeWindows.of(100, grace_ms=0)) if windowed else grouped).aggregate(
            own(Longest(), value), materialized=Materialized("kept", Serdes.string, Serdes.string, caching=caching)
        )
        found.to_stream(lambda key, _: key.key if windowed else key).to("out", Produced(Serdes.string, Serdes.string))

    return build


@pytest.mark.parametrize("windowed", [False, True])
def test_without_a_cache_an_aggregate_over_columns_tells_each_of_its_updates(windowed: bool) -> None:
    batches = Batches(longest(windowed=windowed, caching=False))
    told = batches.run(*raws("a", 5, 10, 1))
    assert told == [("out", b"k", b"a5", 5), ("out", b"k", b"a10", 10), ("out", b"k", b"a10", 10)]


@pytest.mark.parametrize("windowed", [False, True])
def test_an_aggregate_over_columns_is_called_once_for_each_key_of_a_batch(windowed: bool) -> None:
    Longest.sizes.clear()
    batches = Batches(longest(windowed=windowed, caching=True))
    first = batches.run(*raws("a", 5, 10, 1), *raws("a", 7, key=b"j"))
    assert first == [("out", b"k", b"a10", 10), ("out", b"j", b"a7", 7)]
    assert batches.run(*raws("a", 3, 20)) == [("out", b"k", b"a10", 20)]
    assert Longest.sizes == [3, 1, 2]


# ---- expressions that ask for the time


def test_an_expression_is_told_the_time_of_its_task_wherever_it_stands() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    stream = builder.stream("in").map_values(now().cast("string"))
    stream.to(concat("at-", now().cast("string")))
    stream.group_by_key().aggregate(max_(now()), materialized=Materialized("last", value_serde=Serdes.long))
    with TopologyTestDriver(builder.build(), initial_wall_clock_ms=5_000) as driver:
        driver.pipe_raw("in", b"k", b"v", 7)
        driver.advance_wall_clock_time(250)
        driver.pipe_raw("in", b"k", b"v", 8)
        assert [raw.value for raw in (*driver.output("at-5000"), *driver.output("at-5250"))] == [b"5000", b"5250"]
        assert driver.get_key_value_store("last").get("k") == 5_250
