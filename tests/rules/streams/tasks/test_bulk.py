"""Records that go through a task together come out as if they had gone one by one."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Joined
from ottla.streams.expressions import coalesce, concat, key, left, right, value
from ottla.streams.record import Raw, Record
from ottla.streams.serdes import Serdes
from ottla.streams.tasks import bulk
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.store_maker import backend_names
from ottla.streams.tasks.task import Task
from ottla.streams.topology.processor import Processor, ProcessorContext, PunctuationType
from ottla.streams.topology.topology import Topology

Build = Callable[[StreamsBuilder], None]


def inner(builder: StreamsBuilder) -> None:
    builder.stream("in").join(builder.table("table"), lambda line, row: f"{line}|{row}").to("out")


def left_with_key(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").filter(lambda k, v: v != "b")
    stream.left_join(builder.table("table"), lambda k, line, row: f"{k}{line}{row}", with_key=True).to("out")


def by_expressions(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").filter(value != "b")
    joined = stream.left_join(builder.table("table"), concat(left, "|", coalesce(right, "-"), key))
    joined.flat_map_values(value.split(r"\|")).to("out")


def two_tables(builder: StreamsBuilder) -> None:
    table = builder.table("table")
    stream = builder.stream("in")
    stream.join(table, lambda line, row: line + row).left_join(table, lambda line, row: f"{line}+{row}").to("out")
    stream.to("copy")


def of_json(builder: StreamsBuilder) -> None:
    table = builder.table("table", Consumed(Serdes.string, Serdes.json))

    def add(line: str, row: Any) -> str:
        row["seen"] = row.get("seen", 0) + 1  # of a fresh one each time
        return f"{line}{row}"

    builder.stream("in").join(table, add, joined=Joined(Serdes.string, Serdes.string, Serdes.json)).to("out")


def raising(builder: StreamsBuilder) -> None:
    def join(line: str, row: str) -> str:
        return f"{line}|{row}" if row != "x" else str(1 / 0)

    builder.stream("in").join(builder.table("table"), join).to("out")


def alone(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(lambda v: f"<{v}>").to("out")
    builder.table("table")


def random_records(seed: int, *, rows: tuple[bytes | None, ...]) -> list[Raw]:
    dice = random.Random(seed)
    keys = (None, b"a", b"b", b"c")
    lines = (None, b"", b"a", b"b", b"c \xff")
    found = []
    for topic, values, count in (("in", lines, 150), ("table", rows, dice.choice((0, 5, 100)))):
        time = 0
        for offset in range(count):
            time = max(0, time + dice.choice((-3, -1, 0, 0, 1, 1, 2)))
            headers = (("h", b"1"),) if seed % 3 == 0 and dice.random() < 0.2 else ()
            found.append(Raw(topic, 0, offset, dice.choice(keys), dice.choice(values), time, headers))
    return found


def outcome(build: Build, records: list[Raw], **config: Any) -> tuple[list[Raw], dict[str, int], bytes]:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    build(builder)
    topology: Topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
    (sub,) = topology.sub_topologies() if build is not alone else topology.sub_topologies()[:1]
    backends = {name: MemoryBackend() for name in backend_names(sub)}
    named = {name.replace("_", "."): each for name, each in config.items()}
    task = Task(sub, topology.graph, "app", 0, backends, named)
    known = [raw for raw in records if task.reads(raw.topic)]
    out = task.process(known) + task.commit()
    return sorted(out, key=lambda raw: raw.topic), task.dropped, task.save()


@pytest.mark.parametrize("build", [inner, left_with_key, by_expressions, two_tables, alone])
def test_in_bulk_as_one_by_one(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[int] = []
    pass_on = bulk.Bulk.pass_on

    def counted(self: bulk.Bulk, queue: Any, run: bulk.Run, end: int) -> Any:
        passed.append(end - run.at)
        return pass_on(self, queue, run, end)

    for seed in range(30):
        records = random_records(seed, rows=(None, b"x", b"y", b"z"))
        monkeypatch.setattr(bulk, "FEWEST", 1)
        monkeypatch.setattr(bulk.Bulk, "pass_on", counted)
        together = outcome(build, records)
        monkeypatch.setattr(bulk, "FEWEST", 1_000_000)
        assert together == outcome(build, records)
    assert sum(passed) == 30 * 150


@pytest.mark.parametrize("handler", ["continue", "fail"])
def test_a_run_that_raises_is_gone_through_one_by_one(handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(1, rows=(b"y", b"z", b"x") if handler == "continue" else (b"y", b"z"))
    monkeypatch.setattr(bulk, "FEWEST", 1)
    together = outcome(raising, records, processing_exception_handler=handler)
    monkeypatch.setattr(bulk, "FEWEST", 1_000_000)
    assert together == outcome(raising, records, processing_exception_handler=handler)


def test_a_joiner_may_change_the_row_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(2, rows=(b'{"r": 1}', b'{"r": 2}'))
    monkeypatch.setattr(bulk, "FEWEST", 1)
    together = outcome(of_json, records)
    monkeypatch.setattr(bulk, "FEWEST", 1_000_000)
    assert together == outcome(of_json, records)


class Ticking(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context
        context.schedule(2, PunctuationType.STREAM_TIME, self._tick)

    def process(self, record: Record) -> None:
        self._context.forward(record)

    def _tick(self, now: int) -> None:
        self._context.forward(Record("tick", str(now), now))


def test_punctuators_come_between_any_two_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("table")
        table.to_stream().process(Ticking).to("ticks")
        builder.stream("in").join(table, lambda line, row: line + row).to("out")

    monkeypatch.setattr(bulk, "FEWEST", 1)
    records = random_records(3, rows=(b"x",))
    together = outcome(build, records)
    assert any(raw.topic == "ticks" for raw in together[0])
    monkeypatch.setattr(bulk, "FEWEST", 1_000_000)
    assert together == outcome(build, records)
