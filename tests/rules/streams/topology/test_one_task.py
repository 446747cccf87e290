"""Who has all records in one task needs no topics that bring equal keys together."""

from collections.abc import Callable

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Joined, Produced, StreamJoined
from ottla.streams.expressions import value
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.topology import Topology
from ottla.streams.windows import JoinWindows

TEXTS = Consumed(Serdes.string, Serdes.string)
LINES = [("k", "a"), (None, "b"), ("l", "a"), ("k", None), ("m", "c"), ("k", "a")]


def counted(builder: StreamsBuilder) -> None:
    """Twice behind each other."""
    stream = builder.stream("in", TEXTS).filter(value.is_not_null()).select_key(value)
    counts = stream.group_by_key(Grouped(Serdes.string, Serdes.string)).count()
    again = counts.to_stream().map(key=value.cast("string"), value=value.cast("string"))
    again.group_by_key(Grouped(Serdes.string, Serdes.string)).count().to_stream().to(
        "out", Produced(Serdes.string, Serdes.long)
    )


def joined(builder: StreamsBuilder) -> None:
    left = builder.stream("in", TEXTS).filter(value.is_not_null()).select_key(value)
    right = builder.stream("other", TEXTS).filter(value.is_not_null()).select_key(value)
    said = StreamJoined(Serdes.string, Serdes.string, Serdes.string)
    windows = JoinWindows.of(1000, grace_ms=0)
    left.join(right, lambda one, two: f"{one}{two}", windows, said).to("out", Produced(Serdes.string, Serdes.string))


def looked_up(builder: StreamsBuilder) -> None:
    table = builder.table("other", TEXTS)
    stream = builder.stream("in", TEXTS).filter(value.is_not_null()).select_key(value)
    said = Joined(Serdes.string, Serdes.string, Serdes.string)
    stream.left_join(table, lambda one, two: f"{one}{two}", None, said).to(
        "out", Produced(Serdes.string, Serdes.string)
    )


def built(told: Callable[[StreamsBuilder], None]) -> Topology:
    builder = StreamsBuilder()
    told(builder)
    return builder.build()


def written(topology: Topology) -> list[tuple[bytes | None, bytes | None, int]]:
    with TopologyTestDriver(topology, "app", {"statestore.cache.max.bytes": 0}) as driver:
        for at, (key, text) in enumerate(LINES):
            for topic in ("in", "other"):
                if any(topic in getattr(node, "topics", ()) for node in topology.graph.nodes.values()):
                    data = [None if each is None else each.encode() for each in (key, text)]
                    driver.pipe_raw(topic, data[0], data[1], at)
        return [(raw.key, raw.value, raw.timestamp) for raw in driver.output("out")]


@pytest.mark.parametrize("told", [counted, joined, looked_up])
def test_without_topics_between_the_same_comes_out(told: Callable[[StreamsBuilder], None]) -> None:
    topology = built(told)
    assert topology.graph.repartition_topics
    whole = topology.in_one_task()
    assert not whole.graph.repartition_topics
    assert written(whole) == written(topology) != []


def test_a_topic_with_a_tables_old_values_stays() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", TEXTS)
    grouped = table.group_by(lambda key, text: (text, text), Grouped(Serdes.string, Serdes.string))
    grouped.count().to_stream().to("out", Produced(Serdes.string, Serdes.long))
    topology = builder.build()
    whole = topology.in_one_task()
    assert list(whole.graph.repartition_topics) == list(topology.graph.repartition_topics) != []
    assert written(whole) == written(topology) != []
