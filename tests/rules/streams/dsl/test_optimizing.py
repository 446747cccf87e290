"""topology.optimization: Kafka's rules. What they make of a topology the oracle compares with Java."""

import pytest

from ottla.streams import (
    Consumed,
    JoinWindows,
    Serdes,
    StreamsApp,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from ottla.streams.run.config import ConfigError

TEXTS: Consumed[str, str] = Consumed(Serdes.string, Serdes.string)


def texts() -> StreamsBuilder:
    return StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)


def two_groups() -> StreamsBuilder:
    builder = texts()
    moved = builder.stream("in").select_key(lambda key, value: value)
    for number in (1, 2):
        moved.group_by_key().count(f"count-{number}").to_stream().to(f"out-{number}")
    return builder


def test_behind_a_new_key_one_repartition_topic_serves_all() -> None:
    builder = two_groups()
    assert list(builder.build().graph.repartition_topics) == ["count-1-repartition", "count-2-repartition"]
    merged = builder.build(topology_optimization="merge.repartition.topics")
    assert list(merged.graph.repartition_topics) == ["count-1-repartition"]


def test_a_builder_may_be_built_again_without_the_rules() -> None:
    builder = two_groups()
    plain = builder.build().describe()
    builder.build(topology_optimization="all")
    assert builder.build().describe() == plain


def test_a_topic_that_was_asked_for_stays() -> None:
    builder = texts()
    stream = builder.stream("in").select_key(lambda key, value: value).repartition(name="mine")
    stream.group_by_key().count("kept")
    assert list(builder.build(topology_optimization="all").graph.repartition_topics) == ["mine-repartition"]


def test_values_that_change_behind_the_key_keep_their_topic() -> None:
    builder = texts()
    moved = builder.stream("in").select_key(lambda key, value: value)
    moved.map_values(str.upper).group_by_key().count("upper")
    moved.map_values(str.lower).group_by_key().count("lower")
    topics = builder.build(topology_optimization="all").graph.repartition_topics
    assert list(topics) == ["upper-repartition", "lower-repartition"]


def test_the_topic_of_a_table_is_its_changelog() -> None:
    builder = texts()
    builder.table("in", materialized="rows")
    store = builder.build(topology_optimization="reuse.ktable.source.topics").graph.stores["rows"]
    assert (store.logged, store.source_topic) == (False, "in")


def test_a_stream_that_is_joined_with_itself_has_one_buffer_and_gives_the_same() -> None:
    builder = texts()
    stream = builder.stream("in")
    stream.join(stream, lambda left, right: left + right, JoinWindows.of(10, grace_ms=0)).to("out")

    def results(topology: Topology) -> list[object]:
        with TopologyTestDriver(topology) as driver:
            driver.create_input_topic("in").pipe_many([("k", "a", 1), ("k", "b", 5), ("l", "c", 6), ("k", "d", 30)])
            return list(driver.create_output_topic("out"))

    single = builder.build(topology_optimization="single.store.self.join")
    assert (len(builder.build().graph.stores), len(single.graph.stores)) == (2, 1)
    assert results(single) == results(builder.build())


def test_an_application_and_the_test_driver_optimize_by_their_settings() -> None:
    app = StreamsApp("app", two_groups().build(), topology_optimization="all")
    assert list(app.graph.repartition_topics) == ["count-1-repartition"]
    config = {"topology.optimization": "all"}
    with TopologyTestDriver(two_groups().build(), "app", config) as driver:
        driver.create_input_topic("in").pipe_input("k", "v", 1)
        repartitioned = {topic for topic in driver.produced_topic_names() if topic.endswith("-repartition")}
    assert repartitioned == {"app-count-1-repartition"}


def test_nodes_that_the_builder_does_not_know_are_not_lost() -> None:
    topology = two_groups().build()
    topology.add_source("more", "other").add_sink("there", "elsewhere", "more")
    with pytest.raises(TopologyError, match="would lose more, there, which came to the topology after build"):
        StreamsApp("app", topology, topology_optimization="all")


def test_what_is_no_rule_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"some of reuse.ktable.source.topics, .* are expected, not 'some'"):
        texts().build(topology_optimization="some")
    with pytest.raises(ConfigError, match="not 'none'"):
        StreamsApp("app", texts().build(), topology_optimization="none,all")
