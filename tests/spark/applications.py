"""Applications for the tests on Spark: topologies, their input, and topics of a broker with names of their own."""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ottla.client import admin, groups
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.client.offsets import EARLIEST, READ_COMMITTED, Found, list_offsets
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record
from ottla.streams import StreamsApp, StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized, Produced, StreamJoined, Suppressed
from ottla.streams.expressions import value
from ottla.streams.record import Record as StreamRecord
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.processor import Processor, ProcessorContext, PunctuationType
from ottla.streams.topology.topology import Stores
from ottla.streams.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from tests.spark.decided import stable_ends
from tests.support.patience import eventually

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
    headers: tuple[tuple[str, bytes | None], ...] = ()


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
            producer.send(
                each.topic, each.value, key=each.key, partition=0, timestamp=each.timestamp, headers=each.headers
            )
        producer.flush()

    def read(self, topic: str) -> list[Record]:
        """All committed records, when every transaction has come to its end."""
        places = [TopicPartition(topic, index) for index in self.client.partitions(topic)]
        ends = stable_ends(self.client, places)
        starts = list_offsets(self.client, dict.fromkeys(places, EARLIEST))
        consumer = Consumer(
            self.client,
            {place: (_offset(starts[place]), ends[place]) for place in places},
            isolation=READ_COMMITTED,
        )
        found: list[Record] = []
        while consumer.active:
            for fetched in consumer.poll(1.0):
                found += fetched.records
        return found

    def last(self, topic: str) -> dict[bytes | None, tuple[bytes | None, int]]:
        return {record.key: (record.value, record.timestamp) for record in self.read(topic)}

    def has_read(self, topic: str, offset: int) -> None:
        """Waits for the group to be there: its markers come at another time than those of the output."""

        def there() -> bool:
            found = groups.committed(self.client, self.name).get(TopicPartition(topic, 0))
            return found is not None and found.offset == offset

        eventually(there, f"{self.name} at {offset} of {topic}")


def _offset(found: object) -> int:
    assert isinstance(found, Found), found
    return found.offset


# ---- topologies, each given the names of two inputs and one output

Build = Callable[[StreamsBuilder, str, str, str], None]


def shouted(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    builder.stream(lines, CONSUMED).filter(value.length() > 6).map_values(value.upper()).to(out, PRODUCED)


def word_count(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    words = builder.stream(lines, CONSUMED).flat_map_values(value.lower().split(" ")).group_by(value, GROUPED)
    words.count(COUNTS).to_stream().to(out, COUNTED)


def word_count_in_python(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    words = builder.stream(lines, CONSUMED).flat_map_values(str.split).group_by(lambda _, word: word, GROUPED)
    words.count(COUNTS).to_stream().map_values(lambda number: number * 2).to(out, COUNTED)


def hopping_count(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    # A filter in front, by columns of Spark: the records it takes away must not move the windows' time.
    grouped = builder.stream(lines, CONSUMED).filter(value.rlike(".{7}")).group_by_key(GROUPED)
    counts = grouped.windowed_by(HOPPING).count(COUNTS)
    counts.to_stream().to(out, Produced(key_serde=Serdes.time_windowed(TEXT, 1000), value_serde=LONG))


def windows_in_source(builder: StreamsBuilder, lines: str, _: str, out: str) -> None:
    # Nothing that Arrow has not: the reading tasks count and carry open windows themselves.
    counts = builder.stream(lines, CONSUMED).group_by_key(GROUPED).windowed_by(HOPPING).count(COUNTS)
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


def held_cogroup(builder: StreamsBuilder, lines: str, others: str, out: str) -> None:
    """Two streams in one table over sliding windows, with a record cache, and its changes held back for a while."""
    first, second = (builder.stream(topic, CONSUMED).group_by_key(GROUPED) for topic in (lines, others))
    both = first.cogroup(lambda _, line, count: count + 1).cogroup(second, lambda _, line, count: count + 100)
    counts = both.windowed_by(SlidingWindows.of(150, grace_ms=300)).aggregate(int, Materialized("counts", TEXT, LONG))
    held = counts.suppress(Suppressed.until_time_limit(100, max_records=40))
    held.to_stream().to(out, Produced(key_serde=Serdes.time_windowed(TEXT, 150), value_serde=LONG))


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


def foreign_keys(builder: StreamsBuilder, lines: str, others: str, out: str) -> None:
    """Rows, and how many there are of each kind: a count tells of every change that is lost or doubled."""
    texts: Materialized[Any, Any] = Materialized(key_serde=TEXT, value_serde=TEXT)
    left, right = builder.table(lines, CONSUMED), builder.table(others, CONSUMED)
    rows = left.left_join(
        right, lambda one, other: f"{one}/{other}", texts, foreign_key=lambda line: "abcdef"[len(line) % 6], name="fk"
    )
    rows.to_stream().to(out, PRODUCED)
    counts = rows.group_by(lambda _, row: (f"rows of {row[:2]}", row), GROUPED).count(
        Materialized("counts", TEXT, LONG)
    )
    counts.to_stream().map_values(str).to(out, PRODUCED)


NATIVE: Mapping[str, Build] = {
    "words": word_count,
    "words-in-python": word_count_in_python,
    "hopping": hopping_count,
    "windows-in-source": windows_in_source,
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
    """What the test driver says, every update of it."""
    with TopologyTestDriver(builder.build(), config={"statestore.cache.max.bytes": 0}) as driver:
        for record in records:
            driver.pipe_raw(record.topic, record.key, record.value, record.timestamp)
        return [Told(raw.key, raw.value, raw.timestamp) for raw in driver.output(topic)]


def lasts(told: list[Told]) -> dict[bytes | None, tuple[bytes | None, int]]:
    return {each.key: (each.value, each.timestamp) for each in told}
