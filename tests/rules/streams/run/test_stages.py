"""Stages without state: what a chain makes of a whole batch is what the task makes of its records one by one."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from ottla.pipelines.source.columns import HEADERS_TYPE
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Produced
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import key, timestamp, value
from ottla.streams.expressions.parts import RECORDS
from ottla.streams.record import Raw
from ottla.streams.run.stages import CountingStage, PythonStage, StageSpec, chained, for_python
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.chains import chain_of
from ottla.streams.topology.graph import TimestampExtractor

Build = Callable[[StreamsBuilder], None]


def words(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").flat_map_values(lambda line: line.split(" ") if line else [])
    stream.select_key(lambda _, word: word if word != "nobody" else None).repartition().to("out")


def by_callables(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").filter(lambda k, v: v is not None).filter_not(lambda k, v: v == "b")
    stream = stream.map_values(lambda v: v + "!").map_values(lambda k, v: f"{k}{v}", with_key=True)
    stream.map(lambda k, v: (v, k)).flat_map(lambda k, v: [(k, v), (v, k)]).to("out")


def by_expressions(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").filter(value.length() > 0).filter_not(key == "a")
    stream = stream.map_values(value.upper()).select_key(value.lower())
    stream.flat_map_values(value.split(" ")).to("out")


def several_ways(builder: StreamsBuilder) -> None:
    branches = (
        builder.stream("in").split().branch(lambda k, v: k == "a").branch(lambda k, v: v == "b c").default_branch()
    )
    first, second, rest = branches.values()
    first.to("first")
    second.merge(rest).map_values(lambda v: f"<{v}>").to("out")


def other_serdes(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", Consumed(Serdes.bytes, Serdes.string)).map_values(lambda v: {"is": v})
    stream.to("out", Produced(Serdes.bytes, Serdes.json))


CHAINS = (words, by_callables, by_expressions, several_ways, other_serdes)


def spec_of(build: Build, **config: Any) -> StageSpec:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    build(builder)
    topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
    sub, graph = for_python(topology.sub_topologies()[0], topology.graph)
    named = {name.replace("_", "."): each for name, each in config.items()}
    return StageSpec(sub, graph, "app", named, {}, clock=lambda: 0)


def batch_of(records: Sequence[Raw], **more: pa.Array) -> pa.RecordBatch:
    topics, partitions, offsets, keys, values, times, headers = zip(*records, strict=True)
    pairs = [[{"key": name, "value": data} for name, data in each] or None for each in headers]
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array(topics),
        "partition": pa.array(partitions, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array(times, pa.int64()),
        "headers": pa.array(pairs, HEADERS_TYPE),
        **more,
    }
    return pa.record_batch(columns)


def random_records(seed: int, *, headers: bool = False) -> list[Raw]:
    dice = random.Random(seed)
    texts = (None, b"", b"a", b"b", b"b c", b"nobody", b"d \xff e")
    return [
        Raw("in", 1, offset, dice.choice(texts), dice.choice(texts), dice.randrange(1000), _headers(dice, headers))
        for offset in range(dice.randrange(1, 60))
    ]


def _headers(dice: random.Random, wanted: bool) -> tuple[tuple[str, bytes], ...]:
    return (("h", b"%d" % dice.randrange(9)),) if wanted and dice.random() < 0.5 else ()


def rows_of(batches: Any) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in (row for batch in batches for row in batch.to_pylist()):
        assert row["partition"] is None and row["src_partition"] == 1
        headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
        found.setdefault(row["topic"], []).append((row["key"], row["value"], row["timestamp"], headers))
    return found


def by_task(spec: StageSpec, records: Sequence[Raw]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for raw in spec.task(1, dict.__getitem__, 0).process(records):  # type: ignore[arg-type]
        found.setdefault(raw.topic, []).append((raw.key, raw.value, raw.timestamp, raw.headers))
    return found


@pytest.mark.parametrize("build", CHAINS)
@pytest.mark.parametrize("headers", [False, True])
def test_a_chain_gives_what_the_task_gives(build: Build, headers: bool) -> None:
    spec = spec_of(build)
    chain = chain_of(spec.sub, spec.graph, "app")
    assert chain is not None
    at_once = 0
    for seed in range(40):
        records = random_records(seed, headers=headers)
        at_once += chained(chain, batch_of(records)) is not None
        assert rows_of(PythonStage(spec)(iter([batch_of(records)]))) == by_task(spec, records)
    assert at_once, "no batch went through the chain"


@pytest.mark.parametrize(
    "build",
    [
        lambda builder: builder.stream("in").peek(print).to("out"),
        lambda builder: builder.stream("in").map_values(value).filter(timestamp > 0).to(lambda k, v, c: "out"),
        lambda builder: builder.stream(
            "in", Consumed(Serdes.string, Serdes.string, timestamp_extractor=TimestampExtractor(lambda k, v, t, p: t))
        ).to("out"),
        lambda builder: (
            (stream := builder.stream("in")).merge(stream.map_values(lambda v: v)).to("out") or stream.to("out")
        ),
    ],
)
def test_what_shows_that_it_ran_or_needs_a_task_is_no_chain(build: Build) -> None:
    spec = spec_of(build)
    assert chain_of(spec.sub, spec.graph, "app") is None


def failing(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(lambda v: v[0] if v != "b" else 1 / 0).to("out")


def test_an_error_is_told_by_the_task_with_node_and_offset() -> None:
    records = [Raw("in", 1, 7, b"k", b"a", 5), Raw("in", 1, 8, b"k", b"b", 5)]
    with pytest.raises(StreamsError, match=r"offset 8, node KSTREAM-MAPVALUES-0000000001.*ZeroDivisionError"):
        list(PythonStage(spec_of(failing))(iter([batch_of(records)])))


def test_where_errors_are_survived_the_rest_of_the_batch_comes_out() -> None:
    spec = spec_of(failing, processing_exception_handler="continue")
    records = [Raw("in", 1, number, b"k", text, number) for number, text in enumerate((b"xy", b"b", b"zz"))]
    assert rows_of(PythonStage(spec)(iter([batch_of(records)]))) == {"out": [(b"k", b"x", 0, ()), (b"k", b"z", 2, ())]}


def test_a_value_that_the_sinks_serde_cannot_write_is_an_error_in_a_chain_too() -> None:
    spec = spec_of(lambda builder: builder.stream("in").map_values(lambda v: v.encode()).to("out"))
    with pytest.raises(StreamsError, match="a str expected, not bytes b'a'"):
        list(PythonStage(spec)(iter([batch_of([Raw("in", 1, 0, b"k", b"a", 5)])])))


@pytest.mark.parametrize("headers", [False, True])
def test_counting_in_the_stage_counts_what_the_task_writes(headers: bool) -> None:
    spec = spec_of(words)
    topic = next(iter(by_task(spec, [Raw("in", 1, 0, b"k", b"a", 5)])))
    for seed in range(20):
        records = random_records(seed, headers=headers)
        origin = pa.array([(100 + raw.offset) << 1 | bool(raw.headers) for raw in records], pa.int64())
        stage = CountingStage(spec, topic, by_partition=False)
        rows = [row for batch in stage(iter([batch_of(records, origin=origin)])) for row in batch.to_pylist()]
        written = by_task(spec, records).get(topic, [])
        assert {row["kb"]: row[RECORDS.name] for row in rows} == Counter(each[0] for each in written)
        latest: dict[Any, int] = {}
        for name, _, time_ms, _ in written:
            latest[name] = max(time_ms, latest.get(name, -1))
        assert {row["kb"]: row["ts"] for row in rows} == latest
