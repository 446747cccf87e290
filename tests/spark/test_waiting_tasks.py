"""Tasks as Spark calls them, without Spark: what one batch leaves is taken up by the next."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from ottla.pipelines.sink.packing import CHUNK, Packer, Topics, chunks_of
from ottla.streams import StreamsBuilder
from ottla.streams.dsl.options import Materialized
from ottla.streams.record import Raw, Record
from ottla.streams.run.cells import packed
from ottla.streams.run.config import Config
from ottla.streams.run.stages import StageSpec, Waits, for_python
from ottla.streams.run.stateful import TaskProcessor
from ottla.streams.tasks.heap import Heap
from ottla.streams.topology.processor import Processor, ProcessorContext
from tests.spark.applications import CONSUMED, PRODUCED, START, TEXT

INPUTS = {"left": 1, "right": 1, "table": 1}


class Passing(Processor):
    """Makes a task of it."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        self._context.forward(record)


class Value:
    def __init__(self) -> None:
        self.content: Any = None

    def get(self) -> Any:
        return self.content

    def update(self, content: Any) -> None:
        self.content = content


class Entries:
    def __init__(self) -> None:
        self._entries: dict[Any, Any] = {}

    def getValue(self, name: Any) -> Any:
        return self._entries.get(name)

    def updateValue(self, name: Any, content: Any) -> None:
        self._entries[name] = content

    def removeKey(self, name: Any) -> None:
        self._entries.pop(name, None)

    def iterator(self) -> Iterator[Any]:
        return iter(list(self._entries.items()))


class Handle:
    """Spark's state of one task."""

    def __init__(self) -> None:
        self._states: dict[str, Any] = {}
        self.timers: list[int] = []

    def getValueState(self, name: str, _: Any) -> Value:
        found: Value = self._states.setdefault(name, Value())
        return found

    def getMapState(self, name: str, *_: Any) -> Entries:
        found: Entries = self._states.setdefault(name, Entries())
        return found

    def registerTimer(self, time: int) -> None:
        self.timers.append(time)


class Timers:
    def __init__(self, now: int) -> None:
        self._now = now

    def getCurrentProcessingTimeInMs(self) -> int:
        return self._now


class Batches:
    """A task over two streams and a table, made anew for each batch."""

    def __init__(self, idle_ms: int = 0, known: Mapping[str, int] = INPUTS) -> None:
        """`known`: the inputs that were there when it was planned."""
        builder = StreamsBuilder()
        kept: Materialized[str, str] = Materialized("kept", key_serde=TEXT, value_serde=TEXT, caching=False)
        every = builder.stream("left", CONSUMED).merge(builder.stream("right", CONSUMED))
        every = every.merge(builder.table("table", CONSUMED, kept).to_stream())
        every.process(Passing, stores=[]).to("out", PRODUCED)
        topology = builder.build()
        (sub,) = topology.sub_topologies()
        own, graph = for_python(sub, topology.graph)
        self._spec = StageSpec(own, graph, "app", dict(Config()), {"out": 1}, waits=Waits(known, idle_ms))
        self.handle = Handle()

    def run(self, read: dict[str, list[Raw]], more: dict[str, bool], now: int = 0) -> list[bytes]:
        rows = [
            Row(topic=topic, first=some[0].offset, task=0, records=packed(some), more=None)
            for topic, some in read.items()
            if some
        ]
        rows += [Row(topic=topic, first=1 << 40, task=0, records=None, more=int(told)) for topic, told in more.items()]
        return self._told("handleInputRows", iter(rows), now)

    def tick(self, now: int) -> list[bytes]:
        return self._told("handleExpiredTimer", Expired(now), now)

    def _told(self, call: str, given: Any, now: int) -> list[bytes]:
        packer = Packer(Topics({"out": 1, "app-kept-changelog": 1}), writers=1, task=0, spread=0)
        processor = TaskProcessor(self._spec, packer.pack)
        processor.init(self.handle)  # type: ignore[arg-type]
        timers = Timers(now)
        if call == "handleInputRows":
            results = list(processor.handleInputRows(None, given, timers))
        else:
            results = list(processor.handleExpiredTimer(None, timers, given))
        chunks = pa.RecordBatch.from_pylist([result.asDict() for result in results], schema=CHUNK)
        return [
            value
            for place, rows in chunks_of([chunks])
            if place.topic == "out"
            for value in rows.column("value").to_pylist()
        ]


class Expired:
    def __init__(self, time: int) -> None:
        self._time = time

    def getExpiryTimeInMs(self) -> int:
        return self._time


def raws(topic: str, times: list[int]) -> list[Raw]:
    return [Raw(topic, 0, offset, b"k", f"{topic}{time}".encode(), START + time) for offset, time in enumerate(times)]


def test_records_wait_over_batches_for_what_is_to_come_of_the_other_topic() -> None:
    batches = Batches()
    read = {"left": raws("left", [1, 30]), "right": raws("right", [2])}
    assert batches.run(read, {"left": False, "right": True}) == [b"left1", b"right2"]
    assert batches.run({"right": raws("right", [2, 10])[1:]}, {"right": True}) == [b"right10"]
    assert batches.run({"right": raws("right", [2, 10, 20])[2:]}, {"right": False}) == [b"right20", b"left30"]


@pytest.mark.parametrize("seed", range(20))
def test_where_a_backlog_is_cut_changes_nothing(seed: int) -> None:
    """Timestamps that several topics have are in it: which goes first is decided by what went before, as in Java."""
    dice = random.Random(seed)
    spread = dice.choice([1, 3, 20])
    backlog = {
        topic: raws(topic, [step + dice.randrange(spread) for step in range(30 - 10 * place)])
        for place, topic in enumerate(INPUTS)
    }
    whole = Batches().run(backlog, dict.fromkeys(INPUTS, False))
    assert whole == in_order(backlog)
    batches, out = Batches(), []
    while any(backlog.values()):
        cuts = {topic: dice.randrange(6) for topic in INPUTS if backlog[topic]}
        read = {topic: backlog[topic][:cut] for topic, cut in cuts.items()}
        backlog = {topic: some[cuts.get(topic, 0) :] for topic, some in backlog.items()}
        out += batches.run(read, {topic: bool(backlog[topic]) for topic in cuts})
    assert out == whole


def in_order(backlog: dict[str, list[Raw]]) -> list[bytes]:
    """Java's `PartitionGroup`: the oldest head goes first, and its partition is put in line again. The table stands in
    front in the beginning."""
    line: Heap[list[Raw]] = Heap()
    found: list[bytes] = []
    for some in (list(backlog[topic]) for topic in ("table", "left", "right")):
        line.add(some[0].timestamp, some)
    while len(line):
        _, some = line.take()
        found.append(some.pop(0).value or b"")
        if some:
            line.add(some[0].timestamp, some)
    return found


def test_an_idle_time_ends_by_a_timer() -> None:
    batches = Batches(idle_ms=500)
    assert batches.run({"left": raws("left", [1])}, {"left": False}, now=1000) == []
    assert batches.handle.timers == [1500]
    assert batches.tick(1400) == []
    assert batches.tick(1500) == [b"left1"]


def test_a_topic_that_came_later_is_waited_for_like_the_others() -> None:
    batches = Batches(known={"left": 1, "table": 1})
    read = {"left": raws("left", [1, 30]), "right": raws("right", [2])}
    assert batches.run(read, {"left": False, "right": True}) == [b"left1", b"right2"]
    assert batches.run({"right": raws("right", [2, 10])[1:]}, {"right": False}) == [b"right10", b"left30"]


def test_it_is_remembered_where_tasks_wait_for_what_may_come() -> None:
    batches = Batches(idle_ms=500, known={"left": 1})
    both = {"left": raws("left", [1]), "right": raws("right", [1])}
    assert batches.run(both, {"left": False, "right": False}, now=0) == [b"left1"]
    assert batches.run({"left": raws("left", [1, 3])[1:]}, {"left": False}, now=10) == [b"right1"]
    assert batches.tick(510) == [b"left3"]
