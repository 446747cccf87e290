"""What the DSL makes of what is said: operations, stores, serdes, old values; and what it refuses."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

from ottla.streams import (
    Branched,
    Consumed,
    Emit,
    Grouped,
    InvalidTimestamp,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Produced,
    Record,
    Repartitioned,
    Reset,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimestampExtractor,
    TimeWindows,
    Topology,
    TopologyError,
)
from ottla.streams import expressions as e
from ottla.streams.topology.graph import Form, ProcessorNode, SinkNode, SourceNode
from ottla.streams.topology.operations import (
    Branch,
    BufferSide,
    DropNullKeys,
    Filter,
    Fold,
    MapPairs,
    MapValues,
    Operation,
    PassThrough,
    SelectKey,
    SessionAggregate,
    StreamAggregate,
    StreamGlobalJoin,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableSource,
    TableToStream,
    UserProcessor,
    WindowAggregate,
)
from ottla.streams.topology.stores import StoreKind, StoreSpec

WITHIN = JoinWindows.of(1000, grace_ms=500)
TUMBLING = TimeWindows.of(1000, grace_ms=200)
SESSIONS = SessionWindows.of(100, grace_ms=20)


class Nothing(Processor):
    def process(self, record: Record) -> None:
        pass


def same(value: Any) -> Any:
    return value


def second(_first: Any, value: Any) -> Any:
    return value


def third(_key: Any, _first: Any, value: Any) -> Any:
    return value


def first(value: Any, _second: Any) -> Any:
    return value


def swapped(key: Any, value: Any) -> tuple[Any, Any]:
    return value, key


def last(_key: Any, _value: Any, aggregate: Any) -> Any:
    return aggregate


def text_builder() -> StreamsBuilder:
    return StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)


def operations(topology: Topology) -> dict[str, Operation]:
    nodes = topology.graph.nodes.values()
    return {node.name: node.operation for node in nodes if isinstance(node, ProcessorNode)}


def the_only(topology: Topology, kind: type[Operation]) -> Any:
    (found,) = [operation for operation in operations(topology).values() if isinstance(operation, kind)]
    return found


def sink(topology: Topology, topic: str | None) -> SinkNode:
    (found,) = [node for node in topology.graph.nodes.values() if isinstance(node, SinkNode) and node.topic == topic]
    return found


# ---- operations


def test_each_operation_keeps_its_function_and_how_it_is_called() -> None:
    builder = text_builder()
    stream = builder.stream("in")
    stream.filter_not(second).map_values(second, with_key=True).select_key(second).map(swapped).to("out")
    assert list(operations(builder.build()).values()) == [
        Filter(second, negated=True),
        MapValues(second, with_key=True),
        SelectKey(second),
        MapPairs(swapped),
    ]


def test_map_takes_one_expression_for_the_key_and_one_for_the_value() -> None:
    builder = text_builder()
    builder.stream("in").map(key=e.value, value=e.key).to("out")
    operation = the_only(builder.build(), MapPairs)
    assert (operation.function, repr(operation.key), repr(operation.value)) == (None, repr(e.value), repr(e.key))


def test_a_branch_names_its_children_in_order() -> None:
    builder = text_builder()
    builder.stream("in").split(name="s-").branch(second, Branched("a")).branch(first).default_branch()
    assert the_only(builder.build(), Branch) == Branch((second, first), ("s-a", "s-2"), "s-0")


def test_a_branch_that_its_chain_ends_is_not_given_back() -> None:
    builder = text_builder()
    split = builder.stream("in").split(name="s-")
    split.branch(second, Branched("ends", lambda stream: stream.to("out")))
    split.branch(second, Branched("goes-on", lambda stream: stream.map_values(same)))
    branches = split.no_default_branch()
    assert {name: stream.name for name, stream in branches.items()} == {"s-goes-on": "KSTREAM-MAPVALUES-0000000005"}


def test_a_processor_may_bring_its_store() -> None:
    builder = text_builder()
    own = Stores.key_value("own", Serdes.string, Serdes.long)
    builder.stream("in").process(Nothing, stores=[own], name="p").to("out")
    topology = builder.build()
    node = topology.graph.nodes["p"]
    assert isinstance(node, ProcessorNode)
    assert (node.stores, node.operation) == (("own",), UserProcessor(Nothing))
    assert topology.graph.stores == {"own": own}


def test_process_values_keeps_the_key_and_process_does_not() -> None:
    builder = text_builder()
    stream = builder.stream("in")
    stream.process_values(Nothing).group_by_key().count("kept")
    stream.process(Nothing).group_by_key().count("changed")
    assert list(builder.build().graph.repartition_topics) == ["changed-repartition"]


# ---- aggregates and their stores


def test_a_count_has_a_timestamped_store_of_longs() -> None:
    builder = text_builder()
    builder.stream("in").group_by_key().count("counts")
    topology = builder.build()
    assert the_only(topology, StreamAggregate) == StreamAggregate("counts", Fold("count"))
    spec = StoreSpec("counts", StoreKind.KEY_VALUE, Serdes.string, Serdes.long, timestamped=True, caching=True)
    assert topology.graph.stores == {"counts": spec}


def test_a_window_store_keeps_windows_for_size_and_grace() -> None:
    builder = text_builder()
    grouped = builder.stream("in").group_by_key().windowed_by(TUMBLING).emit_strategy(Emit.ON_CLOSE)
    table = grouped.reduce(second, Materialized("w", logging={"retention.ms": "5"}))
    topology = builder.build()
    operation = the_only(topology, WindowAggregate)
    assert (operation.windows, operation.emit, operation.fold) == (
        TUMBLING,
        Emit.ON_CLOSE,
        Fold("reduce", None, second),
    )
    assert topology.graph.stores["w"] == StoreSpec(
        "w",
        StoreKind.WINDOW,
        Serdes.string,
        Serdes.string,
        changelog_config={"retention.ms": "5"},
        window_size_ms=1000,
        retention_ms=1200,
        caching=True,
    )
    assert table.queryable_store_name == "w"


def test_a_session_store_has_no_timestamps_and_keeps_gap_and_grace() -> None:
    builder = text_builder()
    table = builder.stream("in").group_by_key().windowed_by(SESSIONS).aggregate(int, last, last)
    topology = builder.build()
    assert the_only(topology, SessionAggregate).fold == Fold("aggregate", int, last, last)
    (store,) = topology.graph.stores.values()
    assert (store.kind, store.timestamped, store.retention_ms) == (StoreKind.SESSION, False, 120)
    assert table.queryable_store_name is None


def test_a_retention_shorter_than_the_windows_is_refused() -> None:
    grouped = text_builder().stream("in").group_by_key()
    with pytest.raises(TopologyError, match="retention_ms=1199 is too short"):
        grouped.windowed_by(TUMBLING).count(Materialized("w", retention_ms=1199))
    with pytest.raises(TopologyError, match="retention_ms=119 is too short"):
        grouped.windowed_by(SESSIONS).count(Materialized("s", retention_ms=119))


def test_an_aggregate_expression_is_native() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.json("price DOUBLE")))
    aggregate = e.aggregates(low=e.min_(e.value["price"]))
    stream.group_by_key().aggregate(aggregate, materialized="stats")
    topology = builder.build().with_default_serdes()
    assert the_only(topology, StreamAggregate).fold.native is aggregate
    assert repr(topology.graph.stores["stats"].value_serde) == "Serdes.json('struct<low: double>')"


def test_logging_can_be_off() -> None:
    builder = text_builder()
    builder.table("t", materialized=Materialized("ts", logging=False))
    assert not builder.build().graph.stores["ts"].logged


# ---- tables: stores only where needed, old values only where wanted


def test_a_table_that_nobody_looks_at_has_no_store() -> None:
    builder = text_builder()
    table = builder.table("t")
    table.filter(second).to_stream().to("out")
    topology = builder.build()
    assert topology.graph.stores == {}
    assert list(operations(topology).values()) == [TableSource(None), TableFilter(second), TableToStream()]
    assert table.queryable_store_name is None


def test_a_filter_behind_a_store_gets_old_values() -> None:
    """So it sends no tombstones for rows that never passed."""
    builder = text_builder()
    builder.table("t", materialized="ts").filter(second).to_stream().to("out")
    assert list(operations(builder.build()).values())[:2] == [
        TableSource("ts", send_old=True),
        TableFilter(second, send_old=True),
    ]


def test_grouping_a_table_forces_a_store_and_old_values_all_the_way_up() -> None:
    builder = text_builder()
    builder.table("t").map_values(same).filter(second).group_by(swapped, Grouped(name="by")).count("n")
    topology = builder.build()
    assert list(operations(topology).values())[:4] == [
        TableSource("t-STATE-STORE-0000000000", send_old=True),
        TableMapValues(same, send_old=True),
        TableFilter(second, send_old=True),
        TableRepartitionMap(swapped),
    ]
    counting = the_only(topology, TableAggregate)
    assert (counting.store, counting.kind) == ("n", "count")


def test_a_store_in_between_is_the_source_of_old_values() -> None:
    builder = text_builder()
    builder.table("t").map_values(same, "mapped").group_by(swapped).count()
    assert list(operations(builder.build()).values())[:2] == [
        TableSource(None),
        TableMapValues(same, store="mapped", send_old=True),
    ]


def test_the_repartition_of_a_grouped_table_carries_changes() -> None:
    builder = text_builder()
    builder.table("t").group_by(swapped, Grouped(name="by")).count()
    topology = builder.build()
    assert sink(topology, "by-repartition").form is Form.CHANGE
    (source,) = [
        node
        for node in topology.graph.nodes.values()
        if isinstance(node, SourceNode) and node.topics == ("by-repartition",)
    ]
    assert source.form is Form.CHANGE
    assert DropNullKeys() not in operations(topology).values()


def test_suppress_waits_for_the_grace_of_the_windows_above() -> None:
    builder = text_builder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(TUMBLING).count().filter(second).suppress(Suppressed.until_window_closes(name="a"))
    grouped.windowed_by(SESSIONS).count().suppress(Suppressed.until_window_closes(name="b", max_records=5))
    topology = builder.build()
    found = operations(topology)
    assert found["a"] == Suppress("a-store", 200)
    assert found["b"] == Suppress("b-store", 120, max_records=5)
    assert all(operation.send_old for operation in found.values() if isinstance(operation, WindowAggregate))


def test_suppress_needs_windows() -> None:
    with pytest.raises(TopologyError, match="only windows close, but KTABLE-SOURCE-0000000002 is no"):
        text_builder().table("t").suppress(Suppressed.until_window_closes())


# ---- joins


def test_a_join_looks_through_tables_without_a_store() -> None:
    builder = text_builder()
    table = builder.table("t").filter(second).map_values(same)
    builder.stream("s").left_join(table, second, name="j").to("out")
    topology = builder.build()
    view = (TableFilter(second), TableMapValues(same))
    assert operations(topology)["j"] == StreamTableJoin("t-STATE-STORE-0000000000", second, True, view=view)
    node = topology.graph.nodes["j"]
    assert isinstance(node, ProcessorNode)
    assert node.stores == ("t-STATE-STORE-0000000000",)


def test_a_join_stops_at_the_nearest_store() -> None:
    builder = text_builder()
    table = builder.table("t").filter(second, "kept").map_values(same)
    builder.stream("s").join(table, third, name="j", with_key=True).to("out")
    expected = StreamTableJoin("kept", third, False, with_key=True, view=(TableMapValues(same),))
    assert operations(builder.build())["j"] == expected


def test_a_join_with_a_suppressed_table_sees_its_buffer() -> None:
    builder = text_builder()
    counted = builder.stream("in").group_by_key().windowed_by(TUMBLING).count("w")
    table: Any = counted.suppress(Suppressed.until_window_closes(name="held"))
    builder.stream("s").join(table, second, name="j").to("out")
    topology = builder.build()
    assert operations(topology)["j"] == StreamTableJoin("w", second, False, view=(Suppress("held-store", 200),))
    node = topology.graph.nodes["j"]
    assert isinstance(node, ProcessorNode)
    assert node.stores == ("held-store", "w")


def test_both_directions_of_a_stream_join_share_what_waits() -> None:
    builder = text_builder()
    builder.stream("l").left_join(builder.stream("r"), second, WITHIN, StreamJoined(name="j", store_name="st")).to(
        "out"
    )
    topology = builder.build()
    found = operations(topology)
    waiting = "st-left-shared-join-store"
    assert found == {
        "j-this-windowed": BufferSide("st-this-join-store"),
        "j-other-windowed": BufferSide("st-outer-other-join-store"),
        "j-this-join": StreamStreamJoin("st-outer-other-join-store", second, WITHIN, True, True, waiting),
        "j-outer-other-join": StreamStreamJoin("st-this-join-store", second, WITHIN, False, False, waiting),
        "j-merge": PassThrough(),
    }
    buffer = topology.graph.stores["st-this-join-store"]
    assert (buffer.window_size_ms, buffer.retention_ms, buffer.retain_duplicates) == (2000, 2500, True)
    assert (buffer.timestamped, buffer.changelog_config) == (False, {"cleanup.policy": "delete"})


def test_an_inner_join_keeps_nothing_waiting() -> None:
    builder = text_builder()
    builder.stream("l").join(builder.stream("r"), second, WITHIN).to("out")
    topology = builder.build()
    assert len(topology.graph.stores) == 2
    assert {operation.outer_store for operation in _stream_joins(topology)} == {None}


def _stream_joins(topology: Topology) -> list[StreamStreamJoin]:
    return [operation for operation in operations(topology).values() if isinstance(operation, StreamStreamJoin)]


def test_null_keys_fall_out_before_an_inner_join_and_not_before_a_left_one() -> None:
    """KIP-962: a left join hands on what has no key."""
    builder = text_builder()
    table = builder.table("t")
    stream = builder.stream("s").select_key(second)
    stream.join(table, second, joined=Joined(name="inner")).to("o1")
    stream.left_join(table, second, joined=Joined(name="left")).to("o2")
    found = operations(builder.build())
    assert found["inner-repartition-filter"] == DropNullKeys()
    assert found["left-repartition-filter"] == PassThrough()


def test_a_global_join_needs_no_repartition_and_no_copartitioning() -> None:
    builder = text_builder()
    table = builder.global_table("g", materialized="gs")
    builder.stream("s").select_key(second).join(table, second, key_mapper=second, name="j").to("out")
    topology = builder.build()
    assert operations(topology)["j"] == StreamGlobalJoin("gs", second, second, False)
    assert topology.graph.repartition_topics == {}
    assert topology.graph.copartitioned == []
    assert [sub.number for sub in topology.sub_topologies()] == [1]
    assert topology.graph.global_tables["gs"].store.source_topic == "g"


def test_topics_that_are_joined_are_copartitioned() -> None:
    builder = text_builder()
    stream = builder.stream(["a", "b"])
    stream.join(builder.table("t"), second).to("o1")
    stream.select_key(second, name="k").join(builder.stream("r"), second, WITHIN).to("o2")
    assert builder.build().graph.copartitioned == [("a", "b", "t"), ("k-repartition", "r")]


# ---- sub-topologies


def test_sub_topologies_are_cut_at_repartition_topics_and_joined_by_stores() -> None:
    builder = text_builder()
    builder.add_state_store(Stores.key_value("shared", Serdes.string, Serdes.string))
    builder.stream("a", name="a").process(Nothing, stores=["shared"], name="pa")
    builder.stream("b", name="b").process(Nothing, stores=["shared"], name="pb")
    builder.stream("c", name="c").repartition(Repartitioned("again")).to("out", Produced(name="written"))
    subs = builder.build().sub_topologies()
    assert [(sub.number, [node.name for node in sub.nodes], [store.name for store in sub.stores]) for sub in subs] == [
        (0, ["a", "pa", "b", "pb"], ["shared"]),
        (1, ["c", "again-repartition-filter", "again-repartition-sink"], []),
        (2, ["again-repartition-source", "written"], []),
    ]


# ---- options


def test_consumed_says_how_a_topic_is_read() -> None:
    builder = StreamsBuilder()
    extractor = TimestampExtractor(second, InvalidTimestamp.SKIP)
    builder.stream("in", Consumed(Serdes.string, Serdes.long, extractor, "latest", "src"))
    builder.stream("in2", Consumed(timestamp_extractor=second))
    first, other = (node for node in builder.build().graph.nodes.values() if isinstance(node, SourceNode))
    assert first == SourceNode("src", ("in",), None, Serdes.string, Serdes.long, extractor, Reset.LATEST)
    assert other.extractor == TimestampExtractor(second)


def test_a_windowed_key_goes_where_its_key_alone_would_go() -> None:
    builder = text_builder()
    counted = builder.stream("in").group_by_key().windowed_by(TUMBLING).count().to_stream()
    counted.to("out")
    counted.select_key(second).to("other")
    topology = builder.build()
    assert sink(topology, "out").key_serde == Serdes.time_windowed(Serdes.string, 1000)
    assert sink(topology, "out").partitions_by_inner_key
    assert not sink(topology, "other").partitions_by_inner_key


# ---- serdes


def test_without_any_serde_bytes_pass_through() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(second).to("out")
    written = sink(builder.build().with_default_serdes(), "out")
    assert (written.key_serde, written.value_serde) == (Serdes.bytes, Serdes.bytes)


def test_a_serde_goes_with_the_stream_until_the_type_may_change() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.long))
    stream.filter(second).peek(second).to("same")
    stream.map_values(same).to("changed")
    topology = builder.build()
    assert sink(topology, "same").value_serde == Serdes.long
    assert sink(topology, "changed").key_serde == Serdes.string
    assert sink(topology, "changed").value_serde is None


def test_what_a_function_makes_has_no_serde_and_the_error_says_what_to_do() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(same).to("out")
    builder.stream("in").group_by(second, Grouped(name="by")).reduce(second, "red")
    with pytest.raises(TopologyError) as caught:
        builder.build().with_default_serdes()
    assert str(caught.value).split("; ") == [
        "no value serde for topic out, written by KSTREAM-SINK-0000000002: give Produced or add_sink a "
        "value_serde, or StreamsBuilder a default_value_serde",
        "no key serde for repartition topic by-repartition, written by by-repartition-sink: give Grouped, Joined or "
        "Repartitioned a key_serde, or StreamsBuilder a default_key_serde",
        "no key serde for store red: give Materialized or StreamJoined a key_serde, or StreamsBuilder a "
        "default_key_serde",
    ]


def test_an_expression_says_its_type_and_so_its_serde() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.json("name STRING, price DOUBLE")))
    stream.select_key(e.value["name"]).map_values(e.value["price"] * 2).group_by_key(Grouped(name="by")).count("n")
    graph = builder.build().with_default_serdes().graph
    (hop,) = [node for node in graph.nodes.values() if isinstance(node, SinkNode)]
    assert (hop.key_serde, hop.value_serde) == (Serdes.string, Serdes.double)
    source = graph.nodes["by-repartition-source"]
    assert isinstance(source, SourceNode)
    assert (source.key_serde, source.value_serde) == (Serdes.string, Serdes.double)
    assert graph.stores["n"].key_serde == Serdes.string


def test_a_default_that_cannot_write_the_known_type_is_not_taken() -> None:
    builder = text_builder()
    builder.stream("in").map_values(e.value.length()).to("lengths")
    assert sink(builder.build(), "lengths").value_serde == Serdes.int


def test_defaults_of_the_builder_go_before_those_of_the_application() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string)
    builder.stream("in").map(swapped).to("out")
    written = sink(builder.build().with_default_serdes(Serdes.long, Serdes.double), "out")
    assert (written.key_serde, written.value_serde) == (Serdes.string, Serdes.double)


def test_the_default_serde_of_a_windowed_key_is_wrapped() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(second)
    grouped.windowed_by(TUMBLING).count("w").to_stream().to("times")
    grouped.windowed_by(SESSIONS).count("s").suppress(Suppressed.until_window_closes()).to_stream().to("sessions")
    topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
    assert sink(topology, "times").key_serde == Serdes.time_windowed(Serdes.string, 1000)
    assert sink(topology, "sessions").key_serde == Serdes.session_windowed(Serdes.string)
    assert topology.graph.stores["w"].key_serde == Serdes.string


def test_stream_join_buffers_take_the_serdes_of_their_streams() -> None:
    builder = StreamsBuilder()
    left = builder.stream("l", Consumed(Serdes.string, Serdes.long))
    right = builder.stream("r", Consumed(Serdes.string, Serdes.double))
    left.outer_join(right, second, WITHIN, StreamJoined(store_name="st")).to("out", Produced(value_serde=Serdes.json))
    stores = builder.build().with_default_serdes().graph.stores
    assert stores["st-outer-this-join-store"].value_serde == Serdes.long
    assert stores["st-outer-other-join-store"].value_serde == Serdes.double
    assert stores["st-outer-shared-join-store"].key_serde == Serdes.string


# ---- the Processor API


def test_a_topology_goes_on_growing_after_build() -> None:
    builder = text_builder()
    builder.stream("in", name="src").to("out")
    topology = builder.build()
    assert len(topology.graph.nodes) == 2
    topology.add_processor("more", Nothing, "src", stores=[Stores.key_value("s", Serdes.string, Serdes.string)])
    assert list(topology.graph.nodes)[2:] == ["more"]
    assert list(topology.graph.stores) == ["s"]


def test_what_a_processor_makes_needs_serdes_as_well() -> None:
    topology = Topology().add_source("s", "in").add_processor("p", Nothing, "s")
    topology.add_sink("k", "out", "p", key_serde=Serdes.string)
    with pytest.raises(TopologyError, match="no value serde for topic out, written by k: give Produced or add_sink a"):
        topology.with_default_serdes()
    assert sink(topology.with_default_serdes(None, Serdes.json), "out").value_serde == Serdes.json


def test_a_graph_can_be_sent_to_another_process() -> None:
    builder = text_builder()
    table = builder.table("t").filter(second).group_by(swapped).count()
    stream = builder.stream("s").select_key(second)
    stream.left_join(table, second).outer_join(builder.stream("o"), second, WITHIN).to("out")
    stream.split().branch(second).default_branch()
    stream.group_by_key().windowed_by(TUMBLING).count().suppress(Suppressed.until_window_closes())
    graph = builder.build().graph
    assert pickle.loads(pickle.dumps(graph)) == graph


# ---- what is refused


def test_a_store_that_was_not_added_is_named() -> None:
    builder = text_builder()
    builder.add_state_store(Stores.key_value("there", Serdes.string, Serdes.string))
    builder.stream("in").process(Nothing, stores=["absent"], name="p")
    with pytest.raises(TopologyError, match=r"p uses store absent, which has not been added \(stores: there\)"):
        builder.build()


def test_a_global_store_is_not_connected() -> None:
    builder = text_builder()
    builder.global_table("g", materialized="gs")
    builder.stream("in").process(Nothing, stores=["gs"])
    with pytest.raises(TopologyError, match="every processor may use it without being connected"):
        builder.build()


def test_two_stores_of_one_name_are_refused() -> None:
    builder = text_builder()
    builder.stream("a").group_by_key().count("counts")
    builder.stream("b").group_by_key().count("counts")
    with pytest.raises(TopologyError, match="another store with the name counts"):
        builder.build()


def test_two_nodes_of_one_name_are_refused() -> None:
    builder = text_builder()
    builder.stream("a").filter(second, name="x").to("out", Produced(name="x"))
    with pytest.raises(TopologyError, match="another node with the name x"):
        builder.build()


def test_one_topic_is_a_stream_or_a_table() -> None:
    builder = text_builder()
    builder.stream("a").to("out")
    builder.table("a")
    with pytest.raises(TopologyError, match="topic a is read by KSTREAM-SOURCE-0000000000 already"):
        builder.build()


def test_streams_of_overlapping_topics_are_refused() -> None:
    builder = text_builder()
    builder.stream("a")
    builder.stream(["a", "b"])
    with pytest.raises(TopologyError, match="overlapping topics"):
        builder.build()


def test_one_topic_has_one_place_to_begin() -> None:
    builder = text_builder()
    builder.stream("a", Consumed(reset="earliest"))
    builder.stream("a", Consumed(reset="latest"))
    with pytest.raises(TopologyError, match="different places to begin"):
        builder.build()


def test_a_pattern_must_not_match_a_topic_read_elsewhere() -> None:
    topology = Topology().add_source("one", "topic-1")
    with pytest.raises(TopologyError, match=r"pattern topic-\.\* matches topic topic-1, which one reads already"):
        topology.add_source("all", pattern="topic-.*")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250])
def test_names_are_names_of_topics(name: str) -> None:
    with pytest.raises(TopologyError):
        Materialized(name)
    with pytest.raises(TopologyError):
        text_builder().stream("in").filter(second, name=name)


def test_a_processor_in_place_of_its_class_is_refused() -> None:
    with pytest.raises(TopologyError, match="every task needs its own: pass the class"):
        text_builder().stream("in").process(Nothing())  # type: ignore[arg-type]


def test_what_is_no_function_is_refused_where_it_is_said() -> None:
    stream = text_builder().stream("in")
    with pytest.raises(TopologyError, match="the predicate of filter is True: a function or a column expression"):
        stream.filter(True)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="the function of peek is an expression, but here a function is expected"):
        stream.peek(e.value)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="map takes expressions by name"):
        stream.map(e.value)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match="map takes a function"):
        stream.map()


def test_joins_are_given_what_belongs_to_them() -> None:
    builder = text_builder()
    stream = builder.stream("s")
    other = builder.stream("o")
    table = builder.table("t")
    with pytest.raises(TopologyError, match="join of two streams needs JoinWindows"):
        stream.join(other, second)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match="left_join with a table has no windows"):
        stream.left_join(table, second, WITHIN)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match="outer_join with KTable: there is no such join"):
        stream.outer_join(table, second, None)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="the key_mapper of a join with a global table is None"):
        stream.join(builder.global_table("g"), second)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match="takes StreamJoined, not Joined"):
        stream.join(other, second, WITHIN, Joined())  # type: ignore[call-overload]


def test_parents_come_before_children_and_sinks_have_none() -> None:
    topology = Topology().add_source("s", "in").add_sink("k", "out", "s")
    with pytest.raises(TopologyError, match="p has the parent absent, which has not been added"):
        topology.add_processor("p", Nothing, "absent")
    with pytest.raises(TopologyError, match="nothing comes out of a sink"):
        topology.add_processor("p", Nothing, "k")
    with pytest.raises(TopologyError, match="p has no parent"):
        topology.add_processor("p", Nothing)
    with pytest.raises(TopologyError, match="k is no processor"):
        topology.add_state_store(Stores.key_value("x", Serdes.string, Serdes.string), "k")


# ---- cost


def test_the_package_is_imported_without_spark_or_arrow() -> None:
    code = (
        "import sys, ottla.streams as s; s.StreamsBuilder, s.Topology, s.Serdes;"
        "print([m for m in ('pyspark', 'pyarrow', 'numpy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
