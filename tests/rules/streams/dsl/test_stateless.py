"""What operators without state do, as Kafka Streams does it."""

from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Produced
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import key, lit, struct, timestamp, topic, value
from ottla.streams.serdes import Serdes
from tests.rules.streams.driving import driver_of, feed, results, run

THREE = [("in", "a", "one", 1), ("in", "b", "two", 2), ("in", None, "three", 3)]


def test_filter_keeps_what_the_predicate_holds_for() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").filter(lambda key, value: "o" in value).to("out")

    assert run(build, THREE) == [("a", "one", 1), ("b", "two", 2)]


def test_filter_not_keeps_the_others() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").filter_not(lambda key, value: "o" in value).to("out")

    assert run(build, THREE) == [(None, "three", 3)]


def test_a_condition_that_is_null_is_neither_true_nor_false() -> None:
    def kept(builder: StreamsBuilder) -> None:
        builder.stream("in").filter(key == "a").to("out")

    def not_kept(builder: StreamsBuilder) -> None:
        builder.stream("in").filter_not(key == "a").to("out")

    assert run(kept, THREE) == [("a", "one", 1)]
    assert run(not_kept, THREE) == [("b", "two", 2)]


def test_map_values_leaves_key_time_and_headers() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(lambda value: value.upper()).to("out")

    with driver_of(build) as driver:
        driver.create_input_topic("in").pipe_input("a", "one", 7, {"trace": b"1"})
        assert driver.create_output_topic("out").read_record() == ("a", "ONE", 7, (("trace", b"1"),))


def test_an_expression_sees_time_and_topic_of_the_record() -> None:
    def build(builder: StreamsBuilder) -> None:
        mapped = builder.stream("in").map_values(struct(at=timestamp, of=topic, text=value.upper()))
        mapped.to("out", Produced(value_serde=Serdes.json))

    assert run(build, [("in", "a", "one", 5)]) == [("a", {"at": 5, "of": "in", "text": "ONE"}, 5)]


def test_flat_map_gives_pairs_in_their_order() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").flat_map(lambda key, value: [(part, key) for part in value.split()]).to("out")

    assert run(build, [("in", "k", "x y", 1), ("in", "k", "", 2)]) == [("x", "k", 1), ("y", "k", 1)]


def test_flat_map_values_by_expression_takes_null_as_no_values() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").flat_map_values(value.split(" ")).to("out")

    assert run(build, [("in", "k", "x y", 1), ("in", "k", None, 2)]) == [("k", "x", 1), ("k", "y", 1)]


def test_a_record_goes_to_the_first_branch_that_takes_it() -> None:
    def build(builder: StreamsBuilder) -> None:
        branches = (
            builder.stream("in")
            .split(name="b-")
            .branch(lambda key, value: value.startswith("o"))
            .branch(lambda key, value: "o" in value)
            .default_branch()
        )
        for name, branch in branches.items():
            branch.to(name)

    with driver_of(build) as driver:
        feed(driver, THREE)
        assert [results(driver, name) for name in ("b-1", "b-2", "b-0")] == [
            [("a", "one", 1)],
            [("b", "two", 2)],
            [(None, "three", 3)],
        ]


def test_children_get_a_record_in_the_order_they_were_added_each_with_all_below_it() -> None:
    seen: list[str] = []

    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("in")
        first = stream.peek(lambda key, value: seen.append("first"))
        stream.peek(lambda key, value: seen.append("second"))
        first.peek(lambda key, value: seen.append("below first"))

    with driver_of(build) as driver:
        feed(driver, THREE[:1])
    assert seen == ["first", "below first", "second"]


def test_a_topic_may_be_chosen_for_each_record() -> None:
    def by_function(builder: StreamsBuilder) -> None:
        builder.stream("in").to(lambda key, value, metadata: f"{metadata.topic}-{value}")

    def by_expression(builder: StreamsBuilder) -> None:
        builder.stream("in").to(lit("to-") + value)

    with driver_of(by_function) as driver:
        feed(driver, THREE)
        assert results(driver, "in-two") == [(b"b", b"two", 2)]
    with driver_of(by_expression) as driver:
        feed(driver, THREE)
        assert results(driver, "to-two") == [(b"b", b"two", 2)]


def test_null_keys_fall_out_before_a_repartition_and_are_counted() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").select_key(lambda key, value: key).group_by_key().count().to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, THREE)
        assert results(driver) == [("a", 1, 1), ("b", 1, 2)]
        assert driver.dropped_records == {"null-key-before-repartition": 1}


def test_none_from_a_function_that_should_give_pairs_is_an_error_that_names_the_node() -> None:
    def build(builder: StreamsBuilder) -> None:
        nothing: Any = lambda key, value: None  # noqa: E731
        builder.stream("in").map(nothing, name="my-map").to("out")

    with (
        driver_of(build) as driver,
        pytest.raises(
            StreamsError, match=r"at in-0 offset 0, node my-map, task 0_0: TypeError: the function of map gave"
        ),
    ):
        feed(driver, THREE)


def test_a_value_that_the_serde_cannot_write_is_an_error() -> None:
    def build(builder: StreamsBuilder) -> None:
        wrong: Any = Produced(Serdes.string, Serdes.string)
        builder.stream("in").map_values(len).to("out", wrong)

    with driver_of(build) as driver, pytest.raises(StreamsError, match="a record for out could not be written"):
        feed(driver, THREE)
