"""`describe` is byte for byte what Kafka Streams 4.3.1 says of the same topology (golden/streams/Describe.java)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import (
    Branched,
    Consumed,
    Emit,
    FixedKeyProcessor,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Produced,
    Record,
    Repartitioned,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from ottla.streams.topology.describe import hash_order
from ottla.streams.topology.stores import StoreSpec

GOLDEN = Path(__file__).parents[3] / "golden" / "streams" / "describe.txt"
WITHIN = JoinWindows.of(1000, grace_ms=0)
TUMBLING = TimeWindows.of(1000, grace_ms=0)
SESSIONS = SessionWindows.of(1000, grace_ms=0)


def golden() -> dict[str, str]:
    parts = GOLDEN.read_text().split("=== ")[1:]
    return {name: text[: text.rindex("<<<")] for name, _, text in (part.partition("\n") for part in parts)}


class Nothing(Processor):
    def process(self, record: Record) -> None:
        pass


class NothingNew(FixedKeyProcessor):
    def process(self, record: Record) -> None:
        pass


def same(value: Any) -> Any:
    return value


def second(_first: Any, value: Any) -> Any:
    return value


def swapped(key: Any, value: Any) -> tuple[Any, Any]:
    return value, key


def zero() -> int:
    return 0


def last(_key: Any, _value: Any, aggregate: Any) -> Any:
    return aggregate


def store(name: str) -> StoreSpec:
    return Stores.key_value(name, Serdes.string, Serdes.string)


def word_count(b: StreamsBuilder) -> None:
    b.stream("lines").flat_map_values(same).group_by(second).count("counts").to_stream().to("out")


def word_count_unnamed(b: StreamsBuilder) -> None:
    b.stream("lines").flat_map_values(same).group_by(second).count().to_stream().to("out")


def stateless(b: StreamsBuilder) -> None:
    stream = b.stream(["a", "b", "orders"])
    kept = stream.filter(second).filter_not(second, name="not-this").map(swapped).peek(second)
    kept.flat_map(swapped).select_key(second).map_values(same).foreach(second)
    stream.merge(b.stream("other")).to("out", Produced(name="written"))


def split(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    branches = (
        stream.split(name="kind-")
        .branch(second, Branched("big"))
        .branch(second)
        .branch(second, Branched(chain=lambda third: third.to("third")))
        .default_branch()
    )
    assert list(branches) == ["kind-big", "kind-2", "kind-0"]
    branches["kind-big"].to("big")
    branches["kind-2"].to("second")
    branches["kind-0"].to("rest")
    b.stream("in2").split().branch(second).no_default_branch()


def tables(b: StreamsBuilder) -> None:
    b.table("t").filter(second).map_values(same).to_stream().to("out")
    kept = b.table("u", materialized="us").filter_not(second, "kept")
    kept.map_values(same, Materialized()).to_stream(second).to("o2")
    b.stream("s").to_table().to_stream().to("o3")
    b.stream("s2").select_key(second).to_table("ts", name="tt").filter(second).to_stream().to("o4")
    b.stream("s3").select_key(second).to_table().to_stream().to("o5")


def stream_table_join(b: StreamsBuilder) -> None:
    table = b.table("t")
    stream = b.stream("s")
    stream.join(table, second).to("o1")
    keyed = stream.select_key(second)
    keyed.left_join(table.filter(second).map_values(same), second).to("o2")
    other_way = stream.map(swapped)
    other_way.join(table, second, joined=Joined(name="named-join")).to("o3")
    other_way.join(table, second).to("o4")
    other_way.left_join(table, second).to("o5")


def global_table(b: StreamsBuilder) -> None:
    b.stream("first").to("sink0")
    table = b.global_table("g")
    joined = b.stream("s").join(table, second, key_mapper=second)
    other = b.global_table("g2", materialized="gs")
    joined.left_join(other, second, key_mapper=second, name="enriched").to("out")
    b.stream("late").to("sink2")


def stream_join(b: StreamsBuilder) -> None:
    left = b.stream("l")
    right = b.stream("r")
    left.join(right, second, WITHIN).to("o1")
    left.left_join(right, second, WITHIN).to("o2")
    left.outer_join(right, second, WITHIN).to("o3")


def stream_join_named(b: StreamsBuilder) -> None:
    left = b.stream("l")
    right = b.stream("r").select_key(second)
    left.select_key(second).join(right, second, WITHIN, StreamJoined(store_name="st", name="jn")).to("o1")
    left.left_join(right, second, WITHIN, StreamJoined(store_name="st2")).to("o2")
    left.outer_join(right, second, WITHIN, StreamJoined(name="jo")).to("o3")


def self_join(b: StreamsBuilder) -> None:
    keyed = b.stream("l").select_key(second)
    keyed.join(keyed, second, WITHIN).to("o1")
    b.stream("l").filter(second).to("o2")


def aggregates(b: StreamsBuilder) -> None:
    by_key = b.stream("in").group_by_key()
    by_key.count().to_stream().to("c")
    by_key.count(Materialized()).to_stream().to("c2")
    by_key.reduce(second).to_stream().to("r")
    by_key.aggregate(zero, last, "store", name="agg").to_stream().to("ag")
    named = b.stream("in2").group_by(second, Grouped(name="by-v"))
    named.count().to_stream().to("d")
    named.reduce(second, "red").to_stream().to("d2")


def windows(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by(second)
    grouped.windowed_by(TUMBLING).count().to_stream().to("a")
    counted = grouped.windowed_by(TUMBLING).count(Materialized())
    counted.suppress(Suppressed.until_window_closes()).to_stream().to("b")
    grouped.windowed_by(SESSIONS).count().to_stream().to("c")
    closed = grouped.windowed_by(SESSIONS).emit_strategy(Emit.ON_CLOSE)
    final = closed.aggregate(zero, last, last, "sessions", name="sess").filter(second)
    final.suppress(Suppressed.until_window_closes(name="final")).map_values(same).to_stream().to("d")
    grouped.windowed_by(TUMBLING).reduce(second).to_stream().to("e")


def grouped_table(b: StreamsBuilder) -> None:
    grouped = b.table("t").filter(second).group_by(swapped)
    grouped.count().to_stream().to("a")
    grouped.reduce(second, second, "red").to_stream().to("b")
    grouped.aggregate(zero, last, last, "ag", name="named").to_stream().to("c")
    named = b.table("t2").group_by(swapped, Grouped(name="regroup"))
    named.count().to_stream().to("d")
    named.count("n2").to_stream().to("e")


def repartition(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.repartition().to("a")
    stream.repartition(Repartitioned("again")).group_by_key().count().to_stream().to("b")
    four = stream.select_key(second).repartition(Repartitioned(partitions=4))
    four.join(b.table("t"), second).to("c")


def process(b: StreamsBuilder) -> None:
    b.add_state_store(store("ks"))
    b.add_state_store(store("unused"))
    stream = b.stream("in")
    stream.process(Nothing, stores=["ks"]).group_by_key().count().to_stream().to("a")
    stream.process_values(NothingNew, stores=["ks"], name="pv").group_by_key().count().to_stream().to("b")
    stream.process(Nothing, name="pn").map_values(same).to("d")
    b.stream("x").process(Nothing).to("c")


def pattern(b: StreamsBuilder) -> None:
    b.stream(re.compile("topic-.*")).to("a")
    b.stream(re.compile("topic-.*")).map_values(same).to("b")
    b.stream(re.compile("x[0-9]+"), Consumed(name="xs")).to("c")


def merged_sources(b: StreamsBuilder) -> None:
    stream = b.stream("a")
    other = b.stream("b")
    again = b.stream("a")
    again.merge(other).join(stream, second, WITHIN).to("o")
    again.to("p")
    kept = stream.filter(second)
    kept.merge(again.map_values(same)).merge(kept).group_by_key().count().to_stream().to("q")


def named_tables(b: StreamsBuilder) -> None:
    b.table("t", Consumed(name="tab"), "ts").to_stream(name="str").to("o")
    b.global_table("g", name="glob")
    b.stream("s", name="src").to("o2")


def suppressed_join(b: StreamsBuilder) -> None:
    counted = b.stream("in").group_by_key().windowed_by(TUMBLING).count()
    table: Any = counted.suppress(Suppressed.until_window_closes()).filter(second)
    b.stream("w").join(table, second).to("o")


SAID: list[Callable[[StreamsBuilder], None]] = [
    word_count,
    word_count_unnamed,
    stateless,
    split,
    tables,
    stream_table_join,
    global_table,
    stream_join,
    stream_join_named,
    self_join,
    aggregates,
    windows,
    grouped_table,
    repartition,
    process,
    pattern,
    merged_sources,
    named_tables,
    suppressed_join,
]


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.__name__)
def test_the_dsl_gives_kafkas_text(said: Callable[[StreamsBuilder], None]) -> None:
    builder = StreamsBuilder()
    said(builder)
    assert builder.build().describe() == golden()[said.__name__]


def test_building_again_gives_the_same() -> None:
    builder = StreamsBuilder()
    merged_sources(builder)
    assert builder.build().describe() == builder.build().describe()


def test_the_processor_api_gives_kafkas_text() -> None:
    topology = Topology().add_source("Source", "in1", "in2").add_source("Other", pattern="p.*")
    topology.add_processor("P1", Nothing, "Source").add_processor("P2", Nothing, "Source", "Other")
    topology.add_state_store(store("kv"), "P1").add_state_store(store("zz"), "P1", "P2")
    topology.add_sink("Sink", "out", "P1", "P2")
    topology.add_source("Third", "in3").add_processor("P3", Nothing, "Third")
    topology.connect_processor_and_state_stores("P3", "kv")
    assert topology.describe() == golden()["processor_api"]


class Numbers:
    """The generator of Describe.java."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def __call__(self, bound: int) -> int:
        self._state = (self._state * 1103515245 + 12345) & 0x7FFF_FFFF
        return (self._state >> 8) % bound


def random_topology(seed: int) -> Topology:
    following = Numbers(seed)
    topology = Topology()
    parents: list[str] = []
    stores: list[str] = []
    for place in range(3 + following(40)):
        kind = following(8) if parents else 0
        if kind == 0:
            name = f"SOURCE-{following(1000)}-{place}"
            count = 1 + following(4)
            topology.add_source(name, *[f"topic-{following(10000)}-{place}-{topic}" for topic in range(count)])
            parents.append(name)
            continue
        above = list(dict.fromkeys([parents[following(len(parents))] for _ in range(1 + following(3))]))
        if kind == 1:
            topology.add_sink(f"SINK-{place}", f"out{following(50)}", *above)
            continue
        name = f"{'KSTREAM-' if following(2) == 0 else 'p'}{following(1000)}-{place}"
        topology.add_processor(name, Nothing, *above)
        parents.append(name)
        while following(5) == 0:
            if stores and following(3) == 0:
                topology.connect_processor_and_state_stores(name, stores[following(len(stores))])
            else:
                stores.append(f"store-{following(1000)}-{len(stores)}")
                topology.add_state_store(store(stores[-1]), name)
    return topology


@pytest.mark.parametrize("seed", range(1, 25))
def test_any_shape_gives_kafkas_text(seed: int) -> None:
    assert random_topology(seed).describe() == golden()[f"random{seed}"]


def test_a_set_made_of_a_collection_has_a_bigger_table_at_twelve() -> None:
    """Seen in Java 17: HashSet(Collection) takes 32 places for twelve strings, one that is filled by `add` 16."""
    added = [7919, 55433, 23757, 31676, 39595, 63352, 47514, 0, 71271, 87109, 79190, 15838]
    copied = [7919, 23757, 39595, 63352, 47514, 87109, 79190, 15838, 55433, 31676, 0, 71271]
    names = [f"store-{number * 7919}" for number in range(12)]
    assert hash_order(names) == [f"store-{number}" for number in added]
    assert hash_order(names, copied=True) == [f"store-{number}" for number in copied]


def chosen(_key: Any, value: Any, _metadata: Any) -> Any:
    return value


def test_a_dynamic_topic_shows_its_function() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to(chosen)
    assert "Sink: KSTREAM-SINK-0000000001 (extractor class: chosen)\n" in builder.build().describe()
