"""Applications on Spark: what comes out is what the test driver says, after restarts and bad input too."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.streams import StreamsApp, StreamsBuilder
from ottla.streams.expressions import value
from ottla.streams.operators.base import LATE, NULL_KEY
from ottla.streams.options import Consumed, Grouped
from ottla.streams.partition_counts import PartitionsError
from ottla.streams.processor import Processor, ProcessorContext, PunctuationType
from ottla.streams.record import Record as StreamRecord
from ottla.streams.topology import Stores
from tests.spark.applications import (
    CONSUMED,
    COUNTED,
    COUNTS,
    HOPPING,
    LONG,
    NATIVE,
    PRODUCED,
    SEQUENCES,
    START,
    TASKS,
    TEXT,
    Build,
    Input,
    Told,
    World,
    counted_by_source,
    driven,
    in_task_order,
    joined,
    lasts,
    lines_of,
    word_count,
)
from tests.support.patience import eventually

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.parametrize("build", [*NATIVE.values(), *TASKS.values()], ids=[*NATIVE, *TASKS])
def test_the_last_result_of_each_key_is_the_test_drivers_whatever_the_batches_and_after_a_restart(
    world: World, build: Build
) -> None:
    lines, others, out = world.topic("lines"), world.topic("others"), world.topic("out")
    builder = StreamsBuilder()
    build(builder, lines, others, out)
    records = lines_of(11, [lines])
    world.send(records[:90])
    world.app(builder).run(once=True)
    world.send(records[90:])
    world.app(builder).run(once=True)
    assert world.last(out) == lasts(driven(builder, records, out))
    world.has_read(lines, len(records))


@pytest.mark.parametrize("build", SEQUENCES.values(), ids=SEQUENCES)
def test_tasks_give_the_test_drivers_sequence(world: World, build: Build) -> None:
    lines, others, out = world.topic("lines"), world.topic("others"), world.topic("out")
    builder = StreamsBuilder()
    build(builder, lines, others, out)
    records = lines_of(12, [lines, others] if build is joined else [lines])
    world.send(records)
    world.app(builder, **{"max.records.per.batch": 1000}).run(once=True)
    told = [Told(record.key, record.value, record.timestamp) for record in world.read(out)]
    assert told == driven(builder, in_task_order(records), out)


def test_windows_that_the_source_counts_change_record_by_record_as_in_the_test_driver(world: World) -> None:
    from ottla.streams.spark.application import Runner, plan_of  # noqa: PLC0415  imports pyspark

    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    counted_by_source(builder, lines, "", out)
    without_key = Input(lines, None, b"omega", START + 90_000)
    records = [*lines_of(19, [lines], 12), without_key, *lines_of(20, [lines], 12)]
    world.send(records)
    app = world.app(builder, **{"max.records.per.batch": 1})
    (query,) = plan_of(app).queries
    assert query.aggregate is not None and query.aggregate.counted_by_source
    runner = Runner(app, once=True)
    runner.run()
    told = [Told(record.key, record.value, record.timestamp) for record in world.read(out)]
    assert told == driven(builder, records, out)
    changelog = [(record.value, record.timestamp) for record in world.read(f"{world.name}-counts-changelog")]
    assert changelog == [(each.value, each.timestamp) for each in told]
    (status,) = runner.status()["queries"]
    windows = sum(len(list(HOPPING.windows_for(each.timestamp))) for each in records if each.key is not None)
    assert status["read"] == len(records)
    assert status["dropped-by-reason"] == {NULL_KEY: 1, LATE: windows - len(told)}


def test_counts_are_logged_to_the_stores_changelog_under_kafkas_name_and_policy(world: World) -> None:
    lines, out = world.topic("lines", 2), world.topic("out", 3)
    builder = StreamsBuilder()
    word_count(builder, lines, "", out)
    world.send(lines_of(13, [lines], 30))
    world.app(builder).run(once=True)
    changelog = f"{world.name}-counts-changelog"
    assert world.last(changelog) == world.last(out)
    assert len(world.client.partitions(changelog)) == 2
    topics = {topic.name for topic in world.client.metadata().topics}
    assert f"{world.name}-counts-repartition" not in topics  # Spark's shuffle stands in for it


# ---- what goes wrong


def test_a_function_that_raises_ends_the_application_with_the_node_and_the_record(world: World) -> None:
    from ottla.streams.spark.application import StreamsFailed  # noqa: PLC0415  imports pyspark

    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    builder.stream(lines, CONSUMED).map_values(lambda text: str(1 // (len(text) - 3))).to(out, PRODUCED)
    world.send([Input(lines, b"k", text, START) for text in (b"good", b"bad", b"fine")])
    with pytest.raises(StreamsFailed) as failed:
        world.app(builder).run(once=True)
    text = str(failed.value)
    assert "KSTREAM-MAPVALUES-0000000001" in text
    assert f"{lines}-0 offset 1" in text
    assert "ZeroDivisionError" in text
    assert len(text) < 500
    assert world.read(out) == []


@pytest.mark.parametrize("counted", [False, True], ids=["stateless", "aggregate"])
def test_what_cannot_be_read_goes_to_the_dead_letters_and_the_rest_goes_on(world: World, counted: bool) -> None:
    numbers, out, dead = world.topic("numbers"), world.topic("out"), world.topic("dead")
    builder = StreamsBuilder()
    stream = builder.stream(numbers, Consumed(key_serde=TEXT, value_serde=LONG)).filter(value > 0)
    if counted:
        stream.group_by_key(Grouped(key_serde=TEXT, value_serde=LONG)).count(COUNTS).to_stream().to(out, COUNTED)
    else:
        stream.to(out, COUNTED)
    one = (1).to_bytes(8, "big")
    world.send(
        [
            Input(numbers, b"a", one, START),
            Input(numbers, b"b", b"poison", START, (("own", b"1"),)),
            Input(numbers, b"c", one, START),
        ]
    )
    config = {"deserialization.exception.handler": "continue", "errors.dead.letter.queue.topic.name": dead}
    world.app(builder, **config).run(once=True)
    assert world.last(out) == {b"a": (one, START), b"c": (one, START)}
    (letter,) = world.read(dead)
    assert (letter.key, letter.value) == (b"b", b"poison")
    assert letter.headers[0] == ("own", b"1")
    headers = dict(letter.headers)
    assert [headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")] == [
        numbers.encode(),
        b"0",
        b"1",
    ]
    assert b"8 bytes expected" in (headers["__streams.errors.message"] or b"")


def test_what_is_left_out_without_a_dead_letter_is_counted(world: World) -> None:
    numbers, out = world.topic("numbers"), world.topic("out")
    builder = StreamsBuilder()
    stream = builder.stream(numbers, Consumed(key_serde=TEXT, value_serde=LONG))
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=LONG)).count(COUNTS).to_stream().to(out, COUNTED)
    one = (1).to_bytes(8, "big")
    contents = [(b"a", one), (b"b", b"poison"), (None, one), (b"c", None), (b"d", b"poison")]
    world.send([Input(numbers, key, content, START) for key, content in contents])
    runner = world.app(builder, **{"deserialization.exception.handler": "continue"}).runner(once=True)
    runner.run()
    assert world.last(out) == {b"a": (one, START)}
    (query,) = runner.status()["queries"]
    assert query["dropped-by-reason"] == {"deserialization-error": 2, "null-key-or-value": 2}
    assert [metric.value for metric in runner.metrics() if metric.name == "dropped-records-total"] == [4.0]


def test_what_cannot_be_read_ends_an_application_that_does_not_go_on(world: World) -> None:
    from ottla.streams.spark.application import StreamsFailed  # noqa: PLC0415

    numbers, out = world.topic("numbers"), world.topic("out")
    builder = StreamsBuilder()
    builder.stream(numbers, Consumed(key_serde=TEXT, value_serde=LONG)).to(out, COUNTED)
    world.send([Input(numbers, b"b", b"poison", START)])
    with pytest.raises(StreamsFailed) as failed:
        world.app(builder).run(once=True)
    assert f"the record at offset 0 of {numbers}-0 cannot be read: Serdes.long: 8 bytes expected" in str(failed.value)


def test_a_missing_input_is_told_before_anything_starts(world: World) -> None:
    builder = StreamsBuilder()
    builder.stream("not-there", CONSUMED).to("nor-this", PRODUCED)
    with pytest.raises(PartitionsError) as missing:
        world.app(builder).run(once=True)
    assert "not-there" in str(missing.value)


# ---- running on


@contextmanager
def running(app: StreamsApp) -> Iterator[Any]:
    runner = app.runner(master="local[2]")
    failures: list[BaseException] = []

    def run() -> None:
        try:
            runner.run()
        except BaseException as error:  # noqa: BLE001  told by the test's own thread
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield runner
    finally:
        runner.stop()
        thread.join()
        assert failures == []


class Ticking(Processor):
    """Tells by the wall clock what it has seen."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._store = context.state_store("seen")
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self._tick)

    def process(self, record: StreamRecord) -> None:
        self._store.put(record.key, (self._store.get(record.key) or 0) + 1)

    def _tick(self, now: int) -> None:
        for key, number in list(self._store.all()):
            self._context.forward(StreamRecord(key, number, now))
            self._store.delete(key)


def test_a_running_application_goes_on_with_new_records_and_ends_when_it_is_told_to(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    word_count(builder, lines, "", out)
    with running(world.app(builder)) as runner:
        eventually(lambda: runner.state == "RUNNING", "the start")
        world.send([Input(lines, None, b"one two", START)])
        eventually(lambda: b"two" in world.last(out), "the first count")
        world.send([Input(lines, None, b"two", START + 1)])
        eventually(lambda: world.last(out)[b"two"] == ((2).to_bytes(8, "big"), START + 1), "the second count")

        def total(name: str) -> float:
            return float(sum(metric.value for metric in runner.metrics() if metric.name == name))

        # Committed records are seen before the application has counted its commit.
        eventually(lambda: total("process-total") == 2.0, "two records")
        eventually(lambda: total("commit-total") >= 2, "two commits")
    assert runner.state == "NOT_RUNNING"


def test_punctuators_of_the_wall_clock_run_without_new_records(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value("seen", TEXT, LONG))
    builder.stream(lines, CONSUMED).process(Ticking, stores=["seen"]).to(out, COUNTED)
    with running(world.app(builder)):
        world.send([Input(lines, b"k", b"x", START)])
        eventually(lambda: b"k" in world.last(out), "the tick")
