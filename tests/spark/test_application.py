"""Applications on Spark: what comes out is what the test driver says, after restarts and bad input too."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.limits import PRODUCTION_ERROR
from ottla.registry.in_memory import MemoryRegistry
from ottla.streams import StreamsApp, StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized, Produced
from ottla.streams.errors import AGGREGATE_RESULT, ErrorContext, HandlerResponse, ProducerRecord
from ottla.streams.expressions import lit, value, when
from ottla.streams.record import Record as StreamRecord
from ottla.streams.run.topics import EARLIEST, LATEST, NoOffsets, starting_offsets
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.nodes import NO_PARTITION
from ottla.streams.tasks.operators.base import LATE, NO_KEY_FOR_REPARTITION, NULL_KEY
from ottla.streams.topology.graph import InvalidTimestamp, Reset, ResetByDuration, SourceNode, TimestampExtractor
from ottla.streams.topology.partition_counts import PartitionsError
from ottla.streams.topology.processor import (
    Processor,
    ProcessorContext,
    PunctuationType,
    ValueTransformerWithKey,
)
from ottla.streams.topology.topology import Stores
from ottla.testing import Cluster
from tests.spark.applications import (
    CONSUMED,
    COUNTED,
    COUNTS,
    GROUPED,
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
    driven,
    in_task_order,
    joined,
    lasts,
    lines_of,
    windows_in_source,
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
    # What is counted behind a table depends on how many of its updates go out: every one, as in the test driver.
    every_update = {"statestore.cache.max.bytes": 0} if build in TASKS.values() else {}
    world.send(records[:90])
    world.app(builder, **every_update).run(once=True)
    world.send(records[90:])
    world.app(builder, **every_update).run(once=True)
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


def test_windows_that_reading_tasks_keep_change_record_by_record_as_in_the_test_driver(world: World) -> None:
    from ottla.streams.run.application import Runner  # noqa: PLC0415  imports pyspark
    from ottla.streams.run.planning import plan_of  # noqa: PLC0415

    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    windows_in_source(builder, lines, "", out)
    without_key = Input(lines, None, b"omega", START + 90_000)
    records = [*lines_of(19, [lines], 12), without_key, *lines_of(20, [lines], 12)]
    world.send(records)
    # And its changelog is not compacted before it is read.
    app = world.app(builder, **{"max.records.per.batch": 1, "topic.min.cleanable.dirty.ratio": "1"})
    (query,) = plan_of(app).queries
    assert query.aggregate is not None and query.aggregate.kept_in_source
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


def dropped_by(app: StreamsApp) -> dict[str, int]:
    """Runs it once, and gives how many records it left out, by reason."""
    runner = app.runner(once=True)
    runner.run()
    counts = [query["dropped-by-reason"] for query in runner.status()["queries"]]
    return {reason: number for each in counts for reason, number in each.items()}


def test_a_function_that_raises_ends_the_application_with_the_node_and_the_record(world: World) -> None:
    from ottla.streams.run.failures import StreamsFailed  # noqa: PLC0415  imports pyspark

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
    assert f'File "{__file__}"' in text and "str(1 // (len(text) - 3))" in text, "the user's own line"
    assert len(text) < 900, "nothing but that"
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
    assert dropped_by(world.app(builder, **config)) == {"deserialization-error": 1}
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
    from ottla.streams.run.failures import StreamsFailed  # noqa: PLC0415

    numbers, out = world.topic("numbers"), world.topic("out")
    builder = StreamsBuilder()
    builder.stream(numbers, Consumed(key_serde=TEXT, value_serde=LONG)).to(out, COUNTED)
    world.send([Input(numbers, b"b", b"poison", START)])
    with pytest.raises(StreamsFailed) as failed:
        world.app(builder).run(once=True)
    assert f"the record at offset 0 of {numbers}-0 cannot be read: Serdes.long: 8 bytes expected" in str(failed.value)


@pytest.mark.parametrize("beside", [False, True], ids=["shuffled", "by a topic"])
def test_a_record_without_key_in_front_of_a_repartition_is_counted(world: World, beside: bool) -> None:
    lines, copies, out = world.topic("lines"), world.topic("copies"), world.topic("out")
    builder = StreamsBuilder()
    without_key = when(value == "bad", lit(None).cast("string")).otherwise(value)
    stream = builder.stream(lines, CONSUMED).select_key(without_key)
    stream.group_by_key(GROUPED).count(COUNTS).to_stream().to(out, COUNTED)
    if beside:
        stream.to(copies, PRODUCED)
    world.send([Input(lines, b"k", text, START) for text in (b"good", b"bad", b"fine")])
    assert dropped_by(world.app(builder)) == {NO_KEY_FOR_REPARTITION: 1}
    assert set(world.last(out)) == {b"good", b"fine"}
    assert len(world.read(copies)) == 3 * beside


def test_a_partitions_time_is_known_to_the_batches_that_follow(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    by_content = TimestampExtractor(value.cast("long"), on_invalid=InvalidTimestamp.PARTITION_TIME)
    builder.stream(lines, Consumed(TEXT, TEXT, timestamp_extractor=by_content)).to(out, PRODUCED)
    world.send([Input(lines, b"k", text, START) for text in (b"7000", b"3000", b"unknown")])
    world.app(builder, **{"max.records.per.batch": 1}).run(once=True)
    assert [record.timestamp for record in world.read(out)] == [7000, 3000, 7000]


def picky(text: str) -> str:
    if text == "bad":
        raise KeyError("not this one")
    return text


def test_functions_that_raise_around_a_native_count_cost_their_record_or_result_alone(world: World) -> None:
    lines, out, dead = world.topic("lines"), world.topic("out"), world.topic("dead")
    builder = StreamsBuilder()
    counts = builder.stream(lines, CONSUMED).map_values(picky).group_by(value, GROUPED).count(COUNTS)
    counts.to_stream().map(lambda word, number: (word, number // (5 - len(word)))).to(out, COUNTED)
    world.send([Input(lines, b"k", text, START) for text in (b"good", b"bad", b"seven", b"seven")])
    config = {"processing.exception.handler": "continue", "errors.dead.letter.queue.topic.name": dead}
    assert dropped_by(world.app(builder, **config)) == {"processing-error": 2}
    assert set(world.last(out)) == {b"good"}
    letters = {letter.key: (letter.value, dict(letter.headers)) for letter in world.read(dead)}
    assert {key: content for key, (content, _) in letters.items()} == {b"k": b"bad", b"seven": (2).to_bytes(8, "big")}
    assert letters[b"k"][1]["__streams.errors.offset"] == b"1"
    assert letters[b"seven"][1]["__streams.errors.topic"] == AGGREGATE_RESULT.encode()


def small_topic(world: World, short: str, **configs: str) -> str:
    topic = f"{world.name}.{short}"
    wanted = {"retention.ms": "-1", "max.message.bytes": "2000", **configs}
    outcome = admin.create_topics(world.client, [admin.NewTopic(topic, 1, 1, wanted)])[topic]
    assert not isinstance(outcome, Exception), outcome
    return topic


class Forwarding(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: StreamRecord) -> None:
        self._context.forward(record)


def too_large(context: ErrorContext, error: BaseException) -> HandlerResponse:
    topic, key, *_ = context.record
    return HandlerResponse.resume([ProducerRecord(f"{topic}-dead", key, str(error).encode())])


@pytest.mark.parametrize("stateful", [False, True])
def test_what_its_topic_does_not_take_is_the_production_handlers_case(world: World, stateful: bool) -> None:
    """Many small records are cut into batches that the topic takes, and ask nobody."""
    lines, dead = world.topic("lines"), world.topic("out-dead")
    out = small_topic(world, "out")
    builder = StreamsBuilder()
    stream = builder.stream(lines, CONSUMED).map_values(lambda text: text * 100)
    (stream.process(Forwarding) if stateful else stream).to(out, PRODUCED)
    texts = [b"%02d" % number for number in range(30)] + [b"x" * 20]
    world.send([Input(lines, b"k", text, START) for text in texts])
    found = dropped_by(world.app(builder, **{"production.exception.handler": too_large}))
    assert found == {PRODUCTION_ERROR: 1}
    assert [record.value for record in world.read(out)] == [text * 100 for text in texts[:-1]]
    (letter,) = world.read(dead)
    why = f"{out}: a record takes 2071 bytes, and max.message.bytes of the topic is 2000 (MESSAGE_TOO_LARGE)"
    assert (letter.key, letter.value, letter.timestamp) == (b"k", why.encode(), START)


def test_so_is_a_record_without_a_key_for_a_compacted_topic(world: World) -> None:
    lines, dead = world.topic("lines"), world.topic("dead")
    out = small_topic(world, "out", **{"cleanup.policy": "compact"})
    builder = StreamsBuilder()
    builder.stream(lines, CONSUMED).map_values(value.upper()).to(out, PRODUCED)
    world.send([Input(lines, key, b"text", START) for key in (b"k", None)])
    goes_on = {"production.exception.handler": "continue", "errors.dead.letter.queue.topic.name": dead}
    assert dropped_by(world.app(builder, **goes_on)) == {PRODUCTION_ERROR: 1}
    assert [record.key for record in world.read(out)] == [b"k"]
    (letter,) = world.read(dead)
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["__streams.errors.topic"]) == (None, None, None)
    assert headers["__streams.errors.exception"] == b"ottla.client.errors.KafkaError"


class Refusing(ValueTransformerWithKey):
    """Leaves out what is too short, for a reason of its own."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._seen = context.metrics.add_rate_total_sensor("shop", "lines", "seen")

    def transform(self, key: str, text: str) -> str:
        self._seen.record()
        if len(text) < 3:
            self._context.dropped("too-short")
        return text.upper()


def test_whatever_a_stage_without_state_leaves_out_is_counted(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    rows = builder.table(lines, CONSUMED).transform_values(Refusing)
    nobody_wants = Produced(TEXT, TEXT, lambda topic, key, text, partitions: () if text == "NOBODY" else None)
    rows.to_stream().to(out, nobody_wants)
    world.send([Input(lines, b"k", text, START) for text in (b"good", b"nobody", b"no")])
    app = world.app(builder)
    assert "T " not in app.explain()
    assert dropped_by(app) == {NO_PARTITION: 1, "too-short": 1}
    assert [record.value for record in world.read(out)] == [b"GOOD", b"NO"]
    assert {each.name: each.value for each in app.metrics() if each.group == "stream-shop-metrics"}["seen-total"] == 3


def test_a_partition_that_is_not_there_and_a_bad_row_of_a_global_table_are_told(world: World) -> None:
    lines, rows, out, dead = (world.topic(short) for short in ("lines", "rows", "out", "dead"))
    builder = StreamsBuilder()
    table = builder.global_table(rows, Consumed(TEXT, LONG), Materialized("rows", TEXT, LONG))
    looked_up = builder.stream(lines, CONSUMED).left_join(table, lambda text, _: text, key_mapper=lambda key, _: key)
    looked_up.to(out, Produced(TEXT, TEXT, lambda topic, key, text, partitions: len(text) - 4))
    world.send([Input(rows, b"k", b"not a long", START), Input(rows, None, bytes(8), START)])
    world.send([Input(lines, b"k", text, START) for text in (b"good", b"seven", b"bad")])
    handlers = {f"{kind}.exception.handler": "continue" for kind in ("deserialization", "processing")}
    found = dropped_by(world.app(builder, **handlers, **{"errors.dead.letter.queue.topic.name": dead}))
    assert found == {"deserialization-error": 1, NULL_KEY: 1, "processing-error": 2}
    assert [record.value for record in world.read(out)] == [b"good"]
    messages = [dict(letter.headers)["__streams.errors.message"] for letter in world.read(dead)]
    told = "the partitioner chose partition {} of topic {}, which has 1, numbered from 0"
    assert messages == [told.format(number, out).encode() for number in (1, -1)]


def test_a_replica_of_a_global_table_reads_headers_as_the_test_driver_does(world: World) -> None:
    from ottla.streams.run.replicas import Replica  # noqa: PLC0415

    rows = world.topic("rows")
    serde = Serdes.avro(MemoryRegistry(), {"type": "string"}, ids="header")
    headers: list[tuple[str, bytes | None]] = []
    builder = StreamsBuilder()
    builder.global_table(rows, Consumed(TEXT, serde), Materialized("rows"))
    payload = serde.encode_for("Ada", rows, headers)
    world.send([Input(rows, b"k", payload, START, tuple(headers)), Input(rows, b"j", b"no schema", START)])
    config = {"deserialization.exception.handler": "continue"}
    with closing(Replica(builder.build().graph, world.app(builder, **config).config)) as replica:
        replica.refresh()
        store: Any = replica.tables.stores["rows"]
        assert [(key, found.value) for key, found in store.all()] == [("k", "Ada")]
        assert replica.take_dropped() == {"deserialization-error": 1}


def test_an_input_without_offsets_begins_where_its_source_or_the_application_says(world: World) -> None:
    lines = world.topic("lines")
    place = TopicPartition(lines, 0)
    world.send([Input(lines, b"k", b"v", START + second * 1000) for second in range(5)])

    def begins(reset: Reset | ResetByDuration | None, default: Reset | ResetByDuration = Reset.NONE) -> int:
        source = SourceNode("in", (lines,), reset=reset)
        return starting_offsets(world.client, world.name, [(source, {lines: 1})], default, START + 5000)[place]

    assert (begins(Reset.EARLIEST), begins(None, Reset.LATEST)) == (EARLIEST, LATEST)
    assert [begins(Reset.by_duration(ms)) for ms in (2500, 2000, 1 << 62, 999)] == [3, 3, 0, LATEST]
    assert begins(None, Reset.by_duration(4000)) == 1
    with pytest.raises(NoOffsets, match="forbids to choose one"):
        begins(None)


def test_an_extractor_of_a_source_goes_before_the_applications(world: World) -> None:
    from ottla.streams.run.planning import resolved  # noqa: PLC0415  imports pyspark

    builder = StreamsBuilder()
    own, default = TimestampExtractor(value.cast("long")), TimestampExtractor(wall_clock=True)
    builder.stream("timed", Consumed(TEXT, TEXT, timestamp_extractor=own), name="timed").to("out", PRODUCED)
    builder.stream("others", CONSUMED, name="others").to("out", PRODUCED)
    nodes = resolved(world.app(builder, **{"default.timestamp.extractor": default})).graph.nodes
    extractors = [node.extractor for node in nodes.values() if isinstance(node, SourceNode)]
    assert extractors[0] is own
    assert extractors[1] is default


def test_a_missing_input_is_told_before_anything_starts_and_so_are_settings_that_do_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    builder.stream("not-there", CONSUMED).to("nor-this", PRODUCED)
    with pytest.raises(PartitionsError) as missing:
        world.app(builder, poll_ms=5).run(once=True)
    assert f"{world.name}: poll.ms has no meaning here and is ignored" in caplog.messages
    assert "not-there" in str(missing.value)


def connected(servers: str) -> Client:
    return Client(parse_bootstrap(servers))


def test_so_is_a_missing_output_where_brokers_make_no_topics(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).to("out", PRODUCED)
    with Cluster(1, auto_create_topics_enable=False) as strict, connected(strict.bootstrap_servers) as client:
        world = World(client, strict.bootstrap_servers, "app", tmp_path)
        admin.create_topics(client, [admin.NewTopic("in")])
        with pytest.raises(PartitionsError) as missing:
            world.app(builder, **{"errors.dead.letter.queue.topic.name": "dead"}).run(once=True)
    assert [problem.partition(" does not exist")[0] for problem in missing.value.problems] == [
        "topic out (written by KSTREAM-SINK-0000000001)",
        "topic dead (for dead letters)",
    ]


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


@pytest.mark.parametrize("native", [True, False])
def test_topics_that_come_to_match_a_pattern_are_read_while_the_application_runs(world: World, native: bool) -> None:
    first, out = world.topic("part-1"), world.topic("out")
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    stream = builder.stream(re.compile(rf"{re.escape(world.name)}\.part-.*"))
    stream.map_values(value.upper() if native else str.upper).to(out)
    with running(world.app(builder)) as runner:
        eventually(lambda: runner.state == "RUNNING", "the start")
        world.send([Input(first, b"a", b"one", START)])
        eventually(lambda: world.last(out) == {b"a": (b"ONE", START)}, "the first result")
        second = world.topic("part-2")
        world.send([Input(second, b"b", b"two", START)])
        eventually(lambda: world.last(out) == {b"a": (b"ONE", START), b"b": (b"TWO", START)}, "the second result")
    world.has_read(second, 1)


def test_punctuators_of_the_wall_clock_run_without_new_records(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value("seen", TEXT, LONG))
    builder.stream(lines, CONSUMED).process(Ticking, stores=["seen"]).to(out, COUNTED)
    with running(world.app(builder)):
        world.send([Input(lines, b"k", b"x", START)])
        eventually(lambda: b"k" in world.last(out), "the tick")
