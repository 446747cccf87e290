"""Two tables joined by their keys, and tables whose values a transformer makes."""

from typing import Any

import pytest

from ottla.streams import (
    Consumed,
    JoinWindows,
    Materialized,
    PartitionsError,
    ProcessorContext,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    TopologyError,
    ValueTransformerWithKey,
)
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import left, right
from tests.rules.streams.driving import driver_of, feed, run


def pair(mine: Any, theirs: Any) -> str:
    return f"{mine}/{theirs}"


def joining(how: str, **options: Any) -> Any:
    def build(builder: StreamsBuilder) -> None:
        getattr(builder.table("left"), how)(builder.table("right"), pair, **options).to_stream().to("out")

    return build


STEPS = [
    ("left", "k", "a", 5),
    ("right", "k", "x", 3),
    ("left", "k", "b", 4),
    ("right", "k", None, 9),
    ("left", "k", None, 2),
    ("left", "k", None, 1),
]


def test_an_inner_join_has_the_rows_that_both_tables_have_as_young_as_the_younger() -> None:
    assert run(joining("join"), STEPS) == [("k", "a/x", 5), ("k", "b/x", 4), ("k", None, 9)]


def test_a_left_join_has_all_rows_of_the_left_table() -> None:
    assert run(joining("left_join"), STEPS) == [
        ("k", "a/None", 5),
        ("k", "a/x", 5),
        ("k", "b/x", 4),
        ("k", "b/None", 9),
        ("k", None, 2),
    ]


def test_an_outer_join_has_the_rows_of_both() -> None:
    steps = [("right", "k", "x", 1), ("left", "k", "a", 2), ("right", "k", None, 3), ("left", "k", None, 4)]
    assert run(joining("outer_join"), steps) == [
        ("k", "None/x", 1),
        ("k", "a/x", 2),
        ("k", "a/None", 3),
        ("k", None, 4),
    ]


def test_a_join_without_a_store_of_its_own_is_computed_when_it_is_looked_up() -> None:
    def build(builder: StreamsBuilder) -> None:
        both = builder.table("left").outer_join(builder.table("right"), left + "+" + right)
        builder.stream("in").left_join(both.map_values(lambda joined: joined.upper()), pair).to("out")

    steps = [("left", "k", "a", 1), ("in", "k", "1", 1), ("right", "k", "x", 2), ("in", "k", "2", 2)]
    assert run(build, steps) == [("k", "1/None", 1), ("k", "2/A+X", 2)]


def test_behind_a_join_old_rows_are_taken_back_from_their_group() -> None:
    def build(builder: StreamsBuilder) -> None:
        both = builder.table("left").join(builder.table("right"), pair)
        grouped = both.group_by(lambda key, joined: (joined, joined))
        grouped.count().to_stream().map_values(str).to("out")

    steps = [("left", "k", "a", 1), ("right", "k", "x", 2), ("left", "k", "b", 3)]
    assert run(build, steps) == [("a/x", "1", 2), ("a/x", "0", 3), ("b/x", "1", 3)]


def test_a_kept_join_can_be_queried() -> None:
    with driver_of(joining("join", materialized="kept")) as driver:
        feed(driver, [("left", "k", "a", 1), ("right", "k", "x", 2)])
        assert driver.get_key_value_store("kept").get("k") == "a/x"


def test_a_joined_table_names_the_store_that_can_be_asked() -> None:
    builder = StreamsBuilder()
    one, two = builder.table("left"), builder.table("right")
    assert one.join(two, pair).queryable_store_name is None
    assert one.join(two, pair, "kept").queryable_store_name == "kept"


def test_keys_of_different_types_are_refused_before_anything_runs() -> None:
    def build(builder: StreamsBuilder) -> None:
        numbers = builder.table("left", Consumed(Serdes.long, Serdes.string))
        numbers.join(builder.table("right"), pair).to_stream().to("out")

    with pytest.raises(TopologyError, match="joins keys of type long with keys of type string"):
        driver_of(build)


NUMBERS: Consumed[Any, Any] = Consumed(Serdes.long, Serdes.string)


@pytest.mark.parametrize("other", ["table", "stream"])
def test_streams_whose_keys_cannot_meet_are_refused_as_well(other: str) -> None:
    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("in", NUMBERS)
        if other == "table":
            stream.left_join(builder.table("right"), pair).to("out")
        else:
            stream.join(builder.stream("right"), pair, windows=JoinWindows.of(10, grace_ms=0)).to("out")

    with pytest.raises(TopologyError, match=r"joins keys of type (long|string) with keys of type (string|long)"):
        driver_of(build)


def test_tables_with_different_numbers_of_partitions_are_refused_before_anything_runs() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    builder.table("left").outer_join(builder.table("right"), pair)
    with pytest.raises(PartitionsError, match="equally many partitions, but: left has 3, right has 4"):
        builder.build().partition_counts({"left": 3, "right": 4})


def test_tables_are_joined_with_tables_only() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="join of a table with KStream: there is no such join"):
        builder.table("left").join(builder.stream("in"), pair)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="the joiner of join is None"):
        builder.table("left2").join(builder.table("right2"), None)  # type: ignore[arg-type]


class Versions(ValueTransformerWithKey):
    """How often a row has changed."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.state_store("seen")

    def transform(self, key: Any, value: Any) -> Any:
        count = (self.seen.get(key) or 0) + 1
        self.seen.put(key, count)
        if value == "forward":
            self.context.forward(Record(key, value, 0))
        return f"{value} {count}"


SEEN = Stores.key_value("seen", Serdes.string, Serdes.long)


def test_a_transformer_keeps_state_and_is_given_deleted_rows_too() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in").transform_values(Versions, stores=[SEEN]).to_stream().to("out")

    steps = [("in", "k", "a", 1), ("in", "k", None, 2), ("in", "k", "b", 3)]
    assert run(build, steps) == [("k", "a 1", 1), ("k", "None 2", 2), ("k", "b 3", 3)]


def test_a_transformer_returns_a_value_and_forwards_nothing() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in").transform_values(Versions, stores=[SEEN]).to_stream().to("out")

    with driver_of(build) as driver, pytest.raises(StreamsError, match="must not forward records"):
        feed(driver, [("in", "k", "forward", 1)])


def test_a_join_finds_the_values_of_a_transformer_only_in_a_store() -> None:
    builder = StreamsBuilder()
    table = builder.table("in").transform_values(Versions, stores=[SEEN])
    with pytest.raises(TopologyError, match="give the table a name"):
        table.join(builder.table("right"), pair)
    kept: Materialized[Any, Any] = Materialized("kept")
    builder.table("in2").transform_values(Versions, kept, stores=["seen"]).join(builder.table("right2"), pair)


def test_every_task_has_a_transformer_of_its_own() -> None:
    with pytest.raises(TopologyError, match="pass the class"):
        StreamsBuilder().table("in").transform_values(Versions())  # type: ignore[arg-type]
