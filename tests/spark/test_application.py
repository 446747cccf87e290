"""Applications on Spark: what comes out is what the test driver says, after restarts and bad input too."""

import random
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.client import admin, groups
from ottla.client.cluster import Cluster as Client
from ottla.client.connection import parse_bootstrap
from ottla.client.consumer import EARLIEST, LATEST, READ_COMMITTED, Consumer, Found, list_offsets
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record
from ottla.streams import StreamsApp, StreamsBuilder
from ottla.streams.expressions import value
from ottla.streams.options import Consumed, Grouped, Materialized, Produced, StreamJoined
from ottla.streams.partition_counts import PartitionsError
from ottla.streams.processor import Processor, ProcessorContext, PunctuationType
from ottla.streams.record import Record as StreamRecord
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology import Stores
from ottla.streams.windows import JoinWindows, SessionWindows, TimeWindows
from tests.support.patience import eventually

pytestmark = pytest.mark.usefixtures("spark")

TEXT, LONG = Serdes.string, Serdes.long
CONSUMED: Consumed[str, str] = Consumed(key_serde=TEXT, value_serde=TEXT)
GROUPED: Grouped[str, str] = Grouped(key_serde=TEXT, value_serde=TEXT)
COUNTS: Materialized[Any, Any] = Materialized("counts", key_serde=TEXT)
COUNTED: Produced[Any, Any] = Produced(key_serde=TEXT, value_serde=LONG)
PRODUCED: Produced[Any, Any] = Produced(key_serde=TEXT, value_serde=TEXT)
HOPPING = TimeWindows.of(1000, advance_ms=400, grace_ms=300)
START = 1_700_000_000_000
FOR_EVER = {"retention.ms": "-1"}
"""Records of that time are old."""


class Input(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int


class World:
    """A broker's topics with names of this test only."""

    def __init__(self, client: Client, bootstrap: str, name: str, directory: Path) -> None:
        self.client = client
        self.bootstrap = bootstrap
        self.name = name
        self.directory = directory

    def topic(self, short: str, partitions: int = 1) -> str:
        topic = f"{self.name}.{short}"
        outcome = admin.create_topics(self.client, [admin.NewTopic(topic, partitions, 1, FOR_EVER)])[topic]
        assert not isinstance(outcome, Exception), outcome
        return topic

    def app(self, builder: StreamsBuilder, **config: Any) -> StreamsApp:
        return StreamsApp(
            self.name,
            builder.build(),
            bootstrap_servers=self.bootstrap,
            state_dir=str(self.directory),
            **{"max.records.per.batch": 40, **config},
        )

    def send(self, records: list[Input]) -> None:
        producer = Producer(self.client)
        for each in records:
            producer.send(each.topic, each.value, key=each.key, partition=0, timestamp=each.timestamp)
        producer.flush()

    def read(self, topic: str) -> list[Record]:
        """All committed records."""
        places = [TopicPartition(topic, index) for index in self.client.partitions(topic)]
        starts = list_offsets(self.client, dict.fromkeys(places, EARLIEST))
        ends = list_offsets(self.client, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
        spans = {place: (_offset(starts[place]), _offset(ends[place])) for place in places}
        consumer = Consumer(self.client, spans, isolation=READ_COMMITTED)
        found: list[Record] = []
        while consumer.active:
            for fetched in consumer.poll(1.0):
                found += fetched.records
        return found

    def last(self, topic: str) -> dict[bytes | None, tuple[bytes | None, int]]:
        return {record.key: (record.value, record.timestamp) for record in self.read(topic)}


def _offset(found: object) -> int:
    assert isinstance(found, Found), found
    return found.offset


@pytest.fixture(scope="module")
def client(bootstrap: str) -> Iterator[Client]:
    with Client(parse_bootstrap(bootstrap)) as client:
        yield client


@pytest.fixture
def world(client: Client, bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(client, bootstrap, f"app-{zlib.crc32(request.node.name.encode()):08x}", tmp_path)


# ---- topologies, each given the names of two inputs and one output

Build = Callable[[StreamsBuilder, str, str, str], None]


def word_count(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    words = builder.stream(lines, CONSUMED).flat_map_values(value.lower().split(" ")).group_by(value, GROUPED)
    words.count(COUNTS).to_stream().to(out, COUNTED)


def word_count_in_python(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    words = builder.stream(lines, CONSUMED).flat_map_values(str.split).group_by(lambda _, word: word, GROUPED)
    words.count(COUNTS).to_stream().map_values(lambda number: number * 2).to(out, COUNTED)


def hopping_count(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    # A filter in front: the records it takes away must not move the windows' time.
    grouped = builder.stream(lines, CONSUMED).filter(value.length() > 6).group_by_key(GROUPED)
    counts = grouped.windowed_by(HOPPING).count(COUNTS)
    counts.to_stream().to(out, Produced(key_serde=Serdes.time_windowed(TEXT, 1000), value_serde=LONG))


def rekeyed_window_count(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    words = builder.stream(lines, CONSUMED).flat_map_values(value.split(" ")).group_by(value, GROUPED)
    counts = words.windowed_by(TimeWindows.of(1000, grace_ms=300)).count(COUNTS)
    counts.to_stream().to(out, Produced(key_serde=Serdes.time_windowed(TEXT, 1000), value_serde=LONG))


def two_hops(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    stored: Materialized[Any, Any] = Materialized("last", key_serde=TEXT, value_serde=TEXT)
    by_start = builder.stream(lines, CONSUMED).select_key(lambda _, line: line[:2]).group_by_key(GROUPED)
    lasts = by_start.reduce(lambda _, new: new, stored).to_stream()
    lasts.select_key(lambda _, line: line[-1:]).group_by_key(GROUPED).count(COUNTS).to_stream().to(out, COUNTED)


def session_count(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    sessions = builder.stream(lines, CONSUMED).group_by_key(GROUPED).windowed_by(SessionWindows.of(200, grace_ms=300))
    counts = sessions.count(COUNTS).to_stream()
    counts.to(out, Produced(key_serde=Serdes.session_windowed(TEXT), value_serde=LONG))


class Punctual(Processor):
    """Counts keys, and every half second of stream time tells what it has."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._store = context.state_store("seen")
        context.schedule(500, PunctuationType.STREAM_TIME, self._tell)

    def process(self, record: StreamRecord) -> None:
        self._store.put(record.key, (self._store.get(record.key) or 0) + 1)

    def _tell(self, now: int) -> None:
        for key, number in self._store.all():
            self._context.forward(StreamRecord(key, number, now))


def punctual(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    builder.add_state_store(Stores.key_value("seen", TEXT, LONG))
    builder.stream(lines, CONSUMED).process(Punctual, stores=["seen"]).to(out, COUNTED)


def joined(builder: StreamsBuilder, lines: str, others: str, out: str) -> None:
    left, right = builder.stream(lines, CONSUMED), builder.stream(others, CONSUMED)
    options = StreamJoined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT)
    within = JoinWindows.of(100, grace_ms=50)
    left.left_join(right, lambda one, other: f"{one}/{other}", within, options).to(out, PRODUCED)


NATIVE: Mapping[str, Build] = {
    "words": word_count,
    "words-in-python": word_count_in_python,
    "hopping": hopping_count,
    "rekeyed-windows": rekeyed_window_count,
}
TASKS: Mapping[str, Build] = {"sessions": session_count, "two-hops": two_hops}
SEQUENCES: Mapping[str, Build] = {"punctuator": punctual, "join": joined}


def lines_of(seed: int, topics: list[str], number: int = 150) -> list[Input]:
    """Out of order up to more than any grace."""
    dice = random.Random(seed)
    now = START
    found = []
    for _ in range(number):
        now += dice.randrange(60)
        words = " ".join(dice.choices(["alpha", "beta", "gamma", "delta"], k=dice.randrange(1, 4)))
        late = dice.choice([0, 0, 0, dice.randrange(1500)])
        found.append(Input(dice.choice(topics), dice.choice("abcdef").encode(), words.encode(), now - late))
    return found


def in_task_order(records: list[Input]) -> list[Input]:
    """Lowest head first, as a task takes records of several topics that are all there."""
    queues: dict[str, list[Input]] = defaultdict(list)
    for record in records:
        queues[record.topic].append(record)
    ordered = []
    while any(queues.values()):
        heads = [queue[0] for queue in queues.values() if queue]
        first = min(heads, key=lambda head: (head.timestamp, records.index(head)))
        ordered.append(queues[first.topic].pop(0))
    return ordered


class Told(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int


def driven(builder: StreamsBuilder, records: list[Input], topic: str) -> list[Told]:
    """What the test driver says."""
    with TopologyTestDriver(builder.build()) as driver:
        for record in records:
            driver.pipe_raw(record.topic, record.key, record.value, record.timestamp)
        return [Told(raw.key, raw.value, raw.timestamp) for raw in driver.output(topic)]


def lasts(told: list[Told]) -> dict[bytes | None, tuple[bytes | None, int]]:
    return {each.key: (each.value, each.timestamp) for each in told}


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
    committed = groups.committed(world.client, world.name)
    assert committed[TopicPartition(lines, 0)].offset == len(records)


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
        [Input(numbers, b"a", one, START), Input(numbers, b"b", b"poison", START), Input(numbers, b"c", one, START)]
    )
    config = {"deserialization.exception.handler": "continue", "errors.dead.letter.queue.topic.name": dead}
    world.app(builder, **config).run(once=True)
    assert world.last(out) == {b"a": (one, START), b"c": (one, START)}
    (letter,) = world.read(dead)
    assert (letter.key, letter.value) == (b"b", b"poison")
    headers = dict(letter.headers)
    assert [headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")] == [
        numbers.encode(),
        b"0",
        b"1",
    ]
    assert b"8 bytes expected" in (headers["__streams.errors.message"] or b"")


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
        names = {metric.name: metric.value for metric in runner.metrics()}
        eventually(lambda: {m.name: m.value for m in runner.metrics()}["process-total"] == 2.0, "two records")
        assert names["commit-total"] >= 2
    assert runner.state == "NOT_RUNNING"


def test_punctuators_of_the_wall_clock_run_without_new_records(world: World) -> None:
    lines, out = world.topic("lines"), world.topic("out")
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value("seen", TEXT, LONG))
    builder.stream(lines, CONSUMED).process(Ticking, stores=["seen"]).to(out, COUNTED)
    with running(world.app(builder)):
        world.send([Input(lines, b"k", b"x", START)])
        eventually(lambda: b"k" in world.last(out), "the tick")
