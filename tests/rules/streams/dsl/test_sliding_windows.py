"""Sliding windows: one for each set of records that are within the time difference of each other (KIP-450)."""

from collections.abc import Callable

import pytest

from ottla.streams import Emit, Materialized, Serdes, SlidingWindows, StreamsBuilder, TopologyError, UnlimitedWindows
from ottla.streams.plan.planner import plan
from tests.rules.streams.driving import Input, driver_of, run

STRINGS = Materialized(key_serde=Serdes.string, value_serde=Serdes.string)


def joined_up(
    windows: SlidingWindows | UnlimitedWindows, emit: Emit = Emit.ON_UPDATE
) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(windows).emit_strategy(emit)
        windowed.aggregate(str, lambda key, value, so_far: so_far + value, STRINGS).to_stream().to("out")

    return build


def at(*times: int) -> list[Input]:
    return [("in", "k", chr(ord("a") + number), time) for number, time in enumerate(times)]


def test_a_record_ends_one_window_and_begins_another_for_the_record_before_it() -> None:
    assert run(joined_up(SlidingWindows.of(10, grace_ms=50)), at(20, 25)) == [
        ("[k@10/20]", "a", 20),
        ("[k@21/31]", "b", 25),
        ("[k@15/25]", "ab", 25),
    ]


def test_a_record_out_of_order_gets_a_right_window_of_what_came_later() -> None:
    assert run(joined_up(SlidingWindows.of(10, grace_ms=50)), at(20, 15)) == [
        ("[k@10/20]", "a", 20),
        ("[k@10/20]", "ab", 20),
        ("[k@5/15]", "b", 15),
        ("[k@16/26]", "a", 20),
    ]


def test_early_records_share_the_window_that_begins_at_zero() -> None:
    assert run(joined_up(SlidingWindows.of(10, grace_ms=50)), at(3, 7)) == [
        ("[k@0/10]", "a", 3),
        ("[k@4/14]", "b", 7),
        ("[k@0/10]", "ab", 7),
    ]


def test_a_record_past_the_grace_is_dropped_and_counted() -> None:
    with driver_of(joined_up(SlidingWindows.of(10, grace_ms=5))) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_many([("k", "a", 100), ("k", "b", 85), ("k", "c", 84)])
        assert driver.dropped_records == {"late-record": 2}  # the left window of b had closed too


def test_on_close_each_window_goes_out_once() -> None:
    found = run(joined_up(SlidingWindows.of(10, grace_ms=0), Emit.ON_CLOSE), at(20, 25, 40))
    assert found == [("[k@10/20]", "a", 20), ("[k@15/25]", "ab", 25), ("[k@21/31]", "b", 25)]


def test_the_store_keeps_twice_the_difference() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(SlidingWindows.of(10, grace_ms=5))
    with pytest.raises(TopologyError, match=r"twice the time difference and grace, 20 \+ 5 ms: retention_ms=24"):
        grouped.count(Materialized("w", retention_ms=24))


def test_the_unlimited_window_holds_all_from_its_start_on() -> None:
    assert run(joined_up(UnlimitedWindows.of(start_ms=5)), at(7, 4, 1_000_000, 6)) == [
        ("[k@5/9223372036854775807]", "a", 7),
        ("[k@5/9223372036854775807]", "ac", 1_000_000),
        ("[k@5/9223372036854775807]", "acd", 1_000_000),
    ]


def test_an_unlimited_window_cannot_be_waited_for() -> None:
    windowed = StreamsBuilder().stream("in").group_by_key().windowed_by(UnlimitedWindows.of())
    with pytest.raises(TopologyError, match="an unlimited window never closes"):
        windowed.emit_strategy(Emit.ON_CLOSE)


@pytest.mark.parametrize("windows", [SlidingWindows.of(10, grace_ms=0), UnlimitedWindows.of()])
def test_spark_counts_neither_by_itself(windows: SlidingWindows | UnlimitedWindows) -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    builder.stream("in").group_by_key().windowed_by(windows).count().to_stream().to("out")
    (query,) = plan(builder.build().with_default_serdes().sub_topologies()).queries
    assert {node.mode.value for node in query.nodes} == {"T"}
