"""Which Spark operator a node becomes."""

from typing import Any

import pytest

from ottla.serdes.base import Serde
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced, StreamJoined
from ottla.streams.expressions import (
    avg,
    count,
    header,
    initcap,
    json_array_length,
    key,
    like,
    spark,
    sum_,
    upper,
    value,
)
from ottla.streams.plan.columns import unread_fields
from ottla.streams.plan.plan import Mode, Plan, QueryPlan, in_order
from ottla.streams.plan.planner import plan
from ottla.streams.record import Record
from ottla.streams.serdes import Serdes
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import InvalidTimestamp, TimestampExtractor
from ottla.streams.topology.processor import Processor
from ottla.streams.windows import Emit, JoinWindows, SessionWindows, TimeWindows

TEXT = Serdes.string
CONSUMED: Consumed[str, str] = Consumed(key_serde=TEXT, value_serde=TEXT)
PRODUCED: Produced[str, str] = Produced(key_serde=TEXT, value_serde=TEXT)
COUNTED: Produced[str, int] = Produced(key_serde=TEXT, value_serde=Serdes.long)
GROUPED: Grouped[str, str] = Grouped(key_serde=TEXT, value_serde=TEXT)
COUNTS: Materialized[Any, Any] = Materialized("counts", key_serde=TEXT)


def planned(builder: StreamsBuilder, python: str | None = None) -> Plan:
    return plan(builder.build().with_default_serdes().sub_topologies(), python)


def only(found: Plan) -> QueryPlan:
    (query,) = found.queries
    return query


def modes(query: QueryPlan) -> dict[str, str]:
    return {node.name: node.mode.value for node in query.nodes}


def reason(query: QueryPlan, name: str) -> str:
    (node,) = [node for node in query.nodes if node.name == name]
    return node.reason


class Own(Serde[str]):
    """A serde that Spark knows nothing of."""

    def encode(self, value: str) -> bytes:
        return value.encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


def test_expressions_become_columns() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).filter(value.length() > 3).map_values(value.upper()).to("out", PRODUCED)
    query = only(planned(builder))
    assert query.first.mode is Mode.NATIVE
    assert set(modes(query).values()) == {"N"}
    assert query.aggregate is None


def test_an_expression_that_spark_cannot_compute_alike_is_pythons() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).map_values(upper(initcap(value))).to("out", PRODUCED)
    query = only(planned(builder))
    assert query.first.mode is Mode.PYTHON
    assert reason(query, "KSTREAM-MAPVALUES-0000000001") == "Spark has no column that does what initcap does"


def test_whether_there_is_a_column_may_depend_on_the_arguments() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).filter(like(value, "a%")).to("out", PRODUCED)
    assert only(planned(builder)).first.mode is Mode.NATIVE
    builder.stream("other", CONSUMED).filter(like(value, key)).to("out", PRODUCED)
    assert [query.first.mode for query in planned(builder).queries] == [Mode.NATIVE, Mode.PYTHON]


def test_an_aggregate_of_what_spark_cannot_compute_alike_is_a_tasks() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", CONSUMED).group_by_key(GROUPED)
    grouped.aggregate(sum_(json_array_length(value)), materialized=COUNTS).to_stream().to("out", COUNTED)
    assert only(planned(builder)).first.mode is Mode.TASK


def test_a_function_of_sparks_columns_next_to_a_python_function_is_refused() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", CONSUMED).map_values(spark(lambda column: column))
    stream.to("out", PRODUCED)
    assert only(planned(builder)).first.mode is Mode.NATIVE
    stream.filter(lambda key, value: True).to("other", PRODUCED)
    with pytest.raises(TopologyError, match=r"KSTREAM-MAPVALUES-0000000001 uses spark.*FILTER"):
        planned(builder)


def test_what_reads_headers_behind_an_aggregate_is_not_native() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in", CONSUMED).group_by_key(GROUPED).count(COUNTS).to_stream()
    counts.filter(header("h").is_not_null()).to("out", COUNTED)
    assert only(planned(builder)).first.mode is Mode.TASK


def test_one_python_function_makes_a_python_stage_of_the_whole_and_is_named_as_the_reason() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).filter(value.length() > 3).map_values(str.upper).to("out", PRODUCED)
    query = only(planned(builder))
    assert query.first.mode is Mode.PYTHON
    assert reason(query, "KSTREAM-MAPVALUES-0000000002") == "it calls a Python function"
    assert reason(query, "KSTREAM-FILTER-0000000001") == "in one stage with KSTREAM-MAPVALUES-0000000002"


def test_a_serde_of_the_users_own_is_python() -> None:
    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=TEXT, value_serde=Own())).to("out", PRODUCED)
    query = only(planned(builder))
    assert query.first.mode is Mode.PYTHON
    assert reason(query, "KSTREAM-SOURCE-0000000000") == "the serde of its values is Python code"


def test_an_expression_on_a_type_that_it_does_not_fit_is_left_to_python() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).map_values(value.length()).to("out", PRODUCED)
    query = only(planned(builder))
    assert reason(query, "KSTREAM-SINK-0000000002") == "a value of type int is to be written as string"


def test_a_native_count_behind_a_repartition_takes_the_sub_topology_in_front_of_it_into_its_query() -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).flat_map_values(value.split(" ")).group_by(value, GROUPED)
    words.count(COUNTS).to_stream().to("out", COUNTED)
    found = planned(builder)
    query = only(found)
    assert query.members == (0, 1)
    assert (query.number, query.first.mode) == (0, Mode.NATIVE)
    assert found.unneeded_topics == frozenset({"counts-repartition"})
    assert query.tail is not None and query.tail.mode is Mode.NATIVE


def test_an_aggregate_whose_state_comes_from_its_changelog_is_a_task_behind_its_repartition_topic() -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).group_by(value, GROUPED)
    words.count(COUNTS)
    found = plan(builder.build().with_default_serdes().sub_topologies(), restored=frozenset({"counts"}))
    assert [query.first.mode for query in found.queries] == [Mode.NATIVE, Mode.TASK]
    assert found.unneeded_topics == frozenset()
    assert "its state came from the changelog" in found.text()


def test_python_functions_around_a_native_count_stay_python() -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).flat_map_values(str.split).group_by(lambda _, word: word, GROUPED)
    words.count(COUNTS).to_stream().map_values(lambda number: number * 2).to("out", COUNTED)
    query = only(planned(builder))
    assert query.first.mode is Mode.PYTHON
    assert query.aggregate is not None and query.aggregate.repartitioned == "counts-repartition"
    assert query.tail is not None and query.tail.mode is Mode.PYTHON
    assert modes(query)["KSTREAM-AGGREGATE-0000000003"] == "N"


def test_a_repartition_is_not_fused_when_its_sub_topology_writes_elsewhere_too() -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).flat_map_values(value.split(" "))
    words.to("words", PRODUCED)
    words.group_by(value, GROUPED).count(COUNTS).to_stream().to("out", COUNTED)
    found = planned(builder)
    assert [query.members for query in found.queries] == [(0,), (1,)]
    assert found.unneeded_topics == frozenset()


def test_a_count_behind_a_python_function_needs_no_values_but_an_average_does() -> None:
    def average_or_count(builder: StreamsBuilder, *, count: bool) -> QueryPlan:
        numbers: Any = builder.stream("in", CONSUMED).map_values(len).group_by_key()
        if count:
            numbers.count(COUNTS)
        else:
            numbers.aggregate(
                avg(value["n"]), materialized=Materialized("mean", key_serde=TEXT, value_serde=Serdes.double)
            )
        return only(planned(builder))

    counting = average_or_count(StreamsBuilder(), count=True)
    assert counting.aggregate is not None and counting.first.mode is Mode.PYTHON
    assert average_or_count(StreamsBuilder(), count=False).first.mode is Mode.TASK


def test_tumbling_and_hopping_windows_are_native_and_sessions_and_final_results_are_not() -> None:
    hopping = TimeWindows.of(1000, advance_ms=100, grace_ms=10)
    sessions = SessionWindows.of(1000, grace_ms=10)

    def mode_of(windows: TimeWindows | SessionWindows, emit: Emit) -> Mode:
        builder = StreamsBuilder()
        grouped = builder.stream("in", CONSUMED).group_by_key(GROUPED)
        windowed: Any = grouped.windowed_by(windows)
        windowed = windowed.emit_strategy(emit)
        windowed.count(COUNTS)
        query = only(planned(builder))
        return Mode.TASK if query.aggregate is None else Mode.NATIVE

    assert mode_of(hopping, Emit.ON_UPDATE) is Mode.NATIVE
    assert mode_of(hopping, Emit.ON_CLOSE) is Mode.TASK
    assert mode_of(hopping, Emit.EACH_ON_CLOSE) is Mode.TASK
    assert mode_of(sessions, Emit.ON_UPDATE) is Mode.TASK


def test_reduce_joins_and_processors_are_tasks() -> None:
    class Nothing(Processor):
        def process(self, record: Record) -> None: ...

    builder = StreamsBuilder()
    stream = builder.stream("in", CONSUMED)
    stream.group_by_key(GROUPED).reduce(max, Materialized("most", key_serde=TEXT, value_serde=TEXT))
    builder.stream("other", CONSUMED).process(Nothing)
    one, two = builder.stream("left", CONSUMED), builder.stream("right", CONSUMED)
    options = StreamJoined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT)
    one.join(two, lambda left, right: left + right, JoinWindows.of(5, grace_ms=0), options)
    assert [query.first.mode for query in planned(builder).queries] == [Mode.TASK] * 3


def test_a_reason_to_read_in_python_holds_for_what_comes_from_outside() -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).flat_map_values(value.split(" ")).group_by(value, GROUPED)
    words.count(COUNTS)
    query = only(planned(builder, "a function decides"))
    assert query.first.mode is Mode.PYTHON
    assert reason(query, "KSTREAM-SOURCE-0000000000") == "a function decides"
    assert query.aggregate is not None


def test_queries_are_ordered_by_the_topics_between_them() -> None:
    builder = StreamsBuilder()
    table = builder.table("table", CONSUMED, Materialized("table", key_serde=TEXT, value_serde=TEXT))
    rekeyed = builder.stream("in", CONSUMED).select_key(lambda _, text: text)
    options: Joined[str, str, Any] = Joined(key_serde=TEXT, value_serde=TEXT)
    rekeyed.join(table, lambda left, right: left + right, joined=options).to("out", PRODUCED)
    found = planned(builder).queries
    assert [query.number for query in found] == [0, 1]
    assert [[query.number for query in group] for group in in_order(found)] == [[1], [0]]


def test_both_sides_of_a_join_by_foreign_key_are_tasks_that_feed_each_other() -> None:
    builder = StreamsBuilder()
    kept: Materialized[Any, Any] = Materialized("orders", key_serde=TEXT, value_serde=TEXT)
    orders = builder.stream("orders", CONSUMED).select_key(lambda _, text: text).to_table(kept)
    result: Materialized[Any, Any] = Materialized(key_serde=TEXT, value_serde=TEXT)
    customers = builder.table("customers", CONSUMED)
    joined = orders.join(customers, lambda left, right: left + right, result, foreign_key=value.upper(), name="fk")
    joined.group_by(lambda key, both: (both, both), GROUPED).count(COUNTS)
    found = planned(builder).queries
    assert [query.first.mode for query in found] == [Mode.PYTHON, Mode.TASK, Mode.TASK, Mode.TASK]
    assert [[query.number for query in group] for group in in_order(found)] == [[0], [1, 2], [3]]
    why = "the table has to be read as of the record that asks"
    assert reason(found[1], "fk-subscription-response-resolver") == why


def test_a_count_behind_a_repartition_of_values_that_spark_cannot_read_is_native_all_the_same() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(key_serde=TEXT, value_serde=Own())).select_key(lambda _, text: text)
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=Own())).count(COUNTS)
    query = only(planned(builder))
    assert (query.members, query.first.mode) == ((0, 1), Mode.PYTHON)
    assert query.aggregate is not None and query.aggregate.source is not None
    assert query.aggregate.source.value_serde == Serdes.bytes


def test_windowed_keys_that_are_only_passed_on_need_a_partitioner() -> None:
    windowed = Serdes.time_windowed(TEXT, 10)
    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=windowed, value_serde=TEXT)).to(
        "out", Produced(key_serde=windowed, value_serde=TEXT)
    )
    query = only(planned(builder))
    assert query.first.mode is Mode.PYTHON
    assert "partition of the key inside" in reason(query, "KSTREAM-SINK-0000000001")


def test_the_text_names_every_node_with_its_operator_and_reason() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).filter(lambda _, text: bool(text)).to("out", PRODUCED)
    assert planned(builder).text() == (
        "Query 0 (sub-topology 0)\n"
        "  P KSTREAM-SOURCE-0000000000  source, then a Python stage: in one stage with KSTREAM-FILTER-0000000001\n"
        "  P KSTREAM-FILTER-0000000001  a Python stage: it calls a Python function\n"
        "  P KSTREAM-SINK-0000000002    a Python stage, then the transactional sink: "
        "in one stage with KSTREAM-FILTER-0000000001"
    )


# ---- what the source may leave out

MINUTE = TimeWindows.of(60_000, grace_ms=0)


def unread(builder: StreamsBuilder) -> list[str]:
    query = only(planned(builder))
    assert query.first.mode is Mode.NATIVE and query.aggregate is not None
    return unread_fields(query.first.sub.nodes, query.aggregate)


def test_windows_that_only_count_need_no_values() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).group_by_key(GROUPED).windowed_by(MINUTE).count(COUNTS)
    assert unread(builder) == ["value"]


def test_a_null_value_does_not_count_without_windows_so_values_are_read() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).group_by_key(GROUPED).count(COUNTS)
    assert unread(builder) == []


def test_a_key_that_gets_replaced_is_not_needed_unless_somebody_looks_at_it_first() -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).flat_map_values(value.split(" "))
    words.group_by(value, GROUPED).count(COUNTS)
    assert unread(builder) == ["key"]
    builder = StreamsBuilder()
    words = builder.stream("in", CONSUMED).filter(key.length() > 1).flat_map_values(value.split(" "))
    words.group_by(value, GROUPED).count(COUNTS)
    assert unread(builder) == []


def test_what_an_aggregate_looks_at_is_read() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", CONSUMED).group_by_key(GROUPED).windowed_by(MINUTE)
    grouped.aggregate(count(value), materialized=Materialized("some", key_serde=TEXT))
    assert unread(builder) == []


def test_what_might_be_unreadable_is_looked_at_though_nobody_needs_it() -> None:
    builder = StreamsBuilder()
    numbers: Consumed[str, int] = Consumed(key_serde=TEXT, value_serde=Serdes.long)
    by_key: Grouped[str, int] = Grouped(key_serde=TEXT, value_serde=Serdes.long)
    builder.stream("in", numbers).group_by_key(by_key).windowed_by(MINUTE).count(COUNTS)
    assert unread(builder) == []


def test_windows_are_tasks_where_there_are_no_files() -> None:
    builder = StreamsBuilder()
    builder.stream("in", CONSUMED).group_by_key(GROUPED).windowed_by(MINUTE).count(COUNTS)
    query = only(plan(builder.build().with_default_serdes().sub_topologies(), None, "state.dir is a URL"))
    assert (query.first.mode, query.aggregate) == (Mode.TASK, None)


# ---- timestamps that depend on records before


def timed(extractor: TimestampExtractor) -> StreamsBuilder:
    builder = StreamsBuilder()
    lines = builder.stream("in", Consumed(TEXT, TEXT, timestamp_extractor=extractor), name="lines")
    lines.filter(value != "").to("out", PRODUCED)
    return builder


def fourth(_key: str, _value: str, _timestamp: int, partition_time: int) -> int:
    return max(partition_time, 0)


class Clock:
    def __call__(self, _key: str, _value: str, timestamp: int, _partition_time: int) -> int:
        return timestamp


@pytest.mark.parametrize(
    "extractor",
    [
        TimestampExtractor(on_invalid=InvalidTimestamp.PARTITION_TIME),
        TimestampExtractor(value.cast("long"), InvalidTimestamp.PARTITION_TIME),
        TimestampExtractor(fourth),
        TimestampExtractor(lambda *given: given[2]),
        TimestampExtractor(lambda key, value, timestamp, time: next(time for _ in range(3))),
        TimestampExtractor(Clock()),
    ],
    ids=["own", "expression", "function", "any arguments", "inner function", "object"],
)
def test_what_may_take_the_partitions_time_is_a_task_which_keeps_it_from_batch_to_batch(
    extractor: TimestampExtractor,
) -> None:
    query = only(planned(timed(extractor)))
    assert query.first.mode is Mode.TASK
    assert reason(query, "lines") == "its timestamps depend on those of records before, which a task keeps"


def test_a_function_that_never_looks_at_the_partitions_time_needs_no_task() -> None:
    extractor = TimestampExtractor(lambda key, value, timestamp, partition_time: len(value) + timestamp)
    assert only(planned(timed(extractor))).first.mode is Mode.PYTHON
    assert only(planned(timed(TimestampExtractor(value.cast("long"))))).first.mode is Mode.PYTHON


def test_an_aggregate_behind_partition_time_is_not_native_unless_a_topic_is_in_between() -> None:
    by_partition = Consumed(
        TEXT, TEXT, timestamp_extractor=TimestampExtractor(on_invalid=InvalidTimestamp.PARTITION_TIME)
    )
    builder = StreamsBuilder()
    builder.stream("in", by_partition).group_by_key(GROUPED).count(COUNTS).to_stream().to("out", COUNTED)
    assert only(planned(builder)).first.mode is Mode.TASK
    builder = StreamsBuilder()
    builder.stream("in", by_partition).group_by(value, GROUPED).count(COUNTS).to_stream().to("out", COUNTED)
    first, second = planned(builder).queries
    assert (first.first.mode, first.written_internally) == (Mode.TASK, ("counts-repartition",))
    assert second.aggregate is not None and second.aggregate.repartitioned is None
