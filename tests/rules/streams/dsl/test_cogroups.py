"""cogroup: several grouped streams, one aggregate."""

from typing import Any

import pytest

from ottla.streams import Grouped, Materialized, Serdes, SessionWindows, StreamsBuilder, TimeWindows, TopologyError
from tests.rules.streams.driving import driver_of, feed, results, run

STRINGS = Materialized(key_serde=Serdes.string, value_serde=Serdes.string)


def added(_key: Any, value: str, so_far: str) -> str:
    return f"{so_far}+{value}"


def taken(_key: Any, value: str, so_far: str) -> str:
    return f"{so_far}-{value}"


def cogrouped(builder: StreamsBuilder) -> Any:
    first, second = (builder.stream(topic).group_by_key() for topic in ("adds", "takes"))
    return first.cogroup(added).cogroup(second, taken)


INPUTS = [("adds", "k", "1", 1), ("takes", "k", "2", 12), ("adds", "l", "3", 3), ("takes", None, "4", 4)]


def test_each_stream_has_its_own_function_and_all_one_aggregate() -> None:
    found = run(lambda builder: cogrouped(builder).aggregate(str, STRINGS).to_stream().to("out"), INPUTS)
    assert found == [("k", "+1", 1), ("k", "+1-2", 12), ("l", "+3", 3)]


def test_over_windows_each_stream_has_its_own_time() -> None:
    def build(builder: StreamsBuilder) -> None:
        windowed = cogrouped(builder).windowed_by(TimeWindows.of(10, grace_ms=0))
        windowed.aggregate(str, STRINGS).to_stream().to("out")

    # What came by `takes` does not make a record of `adds` late.
    assert run(build, INPUTS) == [("[k@0/10]", "+1", 1), ("[k@10/20]", "-2", 12), ("[l@0/10]", "+3", 3)]


def test_sessions_of_several_streams_merge() -> None:
    def build(builder: StreamsBuilder) -> None:
        windowed = cogrouped(builder).windowed_by(SessionWindows.of(20, grace_ms=0))
        windowed.aggregate(str, lambda key, a, b: a + b, STRINGS).to_stream().to("out")

    assert run(build, INPUTS[:2]) == [("[k@1/1]", "+1", 1), ("[k@1/1]", None, 1), ("[k@1/12]", "+1-2", 12)]


def test_a_stream_under_a_new_key_goes_over_a_topic_and_is_copartitioned_with_the_others() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    plain = builder.stream("a").group_by_key()
    moved = builder.stream("b").select_key(lambda key, value: value).group_by_key(Grouped(name="moved"))
    plain.cogroup(added).cogroup(moved, taken).aggregate(str)
    topology = builder.build()
    assert topology.partition_counts({"a": 3, "b": 5}) == {"moved-repartition": 3}


def test_a_group_that_is_given_twice_counts_once_with_the_last_function() -> None:
    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        grouped.cogroup(added).cogroup(grouped, taken).aggregate(str, STRINGS).to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, [("in", "k", "1", 1)])
        assert results(driver) == [("k", "-1", 1)]


def test_groups_of_different_builders_do_not_go_together() -> None:
    other = StreamsBuilder().stream("in").group_by_key()
    with pytest.raises(TopologyError, match="a grouped stream of the same builder"):
        StreamsBuilder().stream("in").group_by_key().cogroup(added).cogroup(other, added)
