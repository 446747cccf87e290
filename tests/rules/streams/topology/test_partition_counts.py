"""How many partitions repartition topics get, and which topics do not fit."""

import re
from typing import Any

import pytest

from ottla.streams import (
    Grouped,
    JoinWindows,
    PartitionsError,
    Repartitioned,
    Serdes,
    StreamsBuilder,
    TopologyError,
)

WITHIN = JoinWindows.of(1000, grace_ms=0)


def text_builder() -> StreamsBuilder:
    return StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)


def second(_first: Any, value: Any) -> Any:
    return value


def problems(builder: StreamsBuilder, partitions: dict[str, int]) -> tuple[str, ...]:
    with pytest.raises(PartitionsError) as caught:
        builder.build().partition_counts(partitions)
    return caught.value.problems


def test_a_repartition_topic_is_as_wide_as_the_widest_source_that_feeds_it() -> None:
    builder = text_builder()
    builder.stream(["a", "b"]).group_by(second, Grouped(name="by")).count()
    assert builder.build().partition_counts({"a": 3, "b": 7}) == {"by-repartition": 7}


def test_width_passes_from_hop_to_hop() -> None:
    builder = text_builder()
    first = builder.stream("a").repartition(Repartitioned("one"))
    first.select_key(second).repartition(Repartitioned("two")).to("out")
    assert builder.build().partition_counts({"a": 5}) == {"one-repartition": 5, "two-repartition": 5}


def test_a_number_that_was_asked_for_is_taken() -> None:
    builder = text_builder()
    first = builder.stream("a").repartition(Repartitioned("one", partitions=2))
    first.select_key(second).repartition(Repartitioned("two")).to("out")
    assert builder.build().partition_counts({"a": 5}) == {"one-repartition": 2, "two-repartition": 2}


def test_beside_a_topic_a_repartition_topic_takes_its_width() -> None:
    builder = text_builder()
    builder.stream("s", name="src").select_key(second, name="keyed").join(builder.table("t"), second).to("out")
    assert builder.build().partition_counts({"s": 8, "t": 3}) == {"keyed-repartition": 3}


def test_two_repartition_topics_that_are_joined_take_the_greater_width() -> None:
    builder = text_builder()
    left = builder.stream("l").select_key(second, name="left")
    right = builder.stream("r").select_key(second, name="right")
    left.join(right, second, WITHIN).to("out")
    expected = {"left-repartition": 6, "right-repartition": 6}
    assert builder.build().partition_counts({"l": 2, "r": 6}) == expected


def test_one_number_asked_for_decides_for_its_partner() -> None:
    builder = text_builder()
    left = builder.stream("l").repartition(Repartitioned("left", partitions=4))
    right = builder.stream("r").select_key(second, name="right")
    left.join(right, second, WITHIN).to("out")
    assert builder.build().partition_counts({"l": 2, "r": 6}) == {"left-repartition": 4, "right-repartition": 4}


def test_joined_topics_of_different_width_are_refused() -> None:
    builder = text_builder()
    builder.stream("s").join(builder.table("t"), second).to("out")
    (problem,) = problems(builder, {"s": 4, "t": 3})
    assert problem.startswith("topics that are joined must have equally many partitions, but: s has 4, t has 3.")


def test_joins_that_share_a_topic_tie_all_their_topics() -> None:
    builder = text_builder()
    middle = builder.stream("m")
    middle.join(builder.table("a"), second).to("o1")
    middle.join(builder.table("b"), second).to("o2")
    (problem,) = problems(builder, {"m": 4, "a": 4, "b": 3})
    assert "a has 4, b has 3, m has 4" in problem


def test_a_second_stream_of_the_same_topic_is_tied_as_well() -> None:
    builder = text_builder()
    builder.stream("a").to("o1")
    builder.stream("a").join(builder.table("t"), second).to("o2")
    assert problems(builder, {"a": 2, "t": 3})


def test_a_number_asked_for_that_does_not_fit_a_joined_topic_is_refused() -> None:
    builder = text_builder()
    four = builder.stream("s").repartition(Repartitioned("four", partitions=4))
    four.join(builder.table("t"), second).to("out")
    assert problems(builder, {"s": 2, "t": 3}) == (
        "repartition topic four-repartition is asked to have 4 partitions, but it is joined with t has 3",
    )


def test_two_numbers_asked_for_that_differ_are_refused_by_build() -> None:
    builder = text_builder()
    left = builder.stream("l").repartition(Repartitioned("left", partitions=2))
    right = builder.stream("r").repartition(Repartitioned("right", partitions=3))
    left.join(right, second, WITHIN).to("out")
    with pytest.raises(TopologyError, match="left-repartition has 2, right-repartition has 3"):
        builder.build()


def test_a_global_table_may_have_any_width() -> None:
    builder = text_builder()
    builder.stream("s").join(builder.global_table("g"), second, key_mapper=second).to("out")
    assert builder.build().partition_counts({"s": 4, "g": 1}) == {}


def test_all_missing_topics_are_named_at_once() -> None:
    builder = text_builder()
    builder.stream(["a", "b"], name="src").to("out")
    builder.stream(re.compile("x.*"), name="xs").to("out")
    builder.global_table("g")
    assert problems(builder, {"b": 1}) == (
        "source topic a (read by src) does not exist: create it",
        "no topic matches the pattern x.* of source xs",
        "topic g of global table g-STATE-STORE-0000000004 does not exist: create it",
    )


def test_a_pattern_is_as_wide_as_what_it_matches() -> None:
    builder = text_builder()
    builder.stream(re.compile("x[0-9]")).repartition(Repartitioned("again")).to("out")
    assert builder.build().partition_counts({"x1": 2, "x2": 5, "x33": 9}) == {"again-repartition": 5}


@pytest.mark.parametrize(("existing", "word"), [(3, "fewer"), (9, "more")])
def test_a_repartition_topic_of_another_width_is_refused(existing: int, word: str) -> None:
    builder = text_builder()
    builder.stream("a").group_by(second, Grouped(name="by")).count()
    (problem,) = problems(builder, {"a": 4, "by-repartition": existing})
    assert problem.startswith(
        f"repartition topic by-repartition exists with {existing} partitions, {word} than the 4 needed"
    )
