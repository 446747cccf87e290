"""Windowed joins of two streams: who matches whom, what waits, what comes out at once, in which order."""

from typing import Any

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.expressions import coalesce, left, right
from ottla.streams.windows import JoinWindows
from tests.rules.streams.driving import driver_of, feed, results, run

WINDOWS = JoinWindows.of(15, grace_ms=5)


def joining(how: str, windows: JoinWindows = WINDOWS) -> Any:
    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("left")
        joined = getattr(stream, how)(builder.stream("right"), lambda mine, other: f"{mine}/{other}", windows)
        joined.to("out")

    return build


def left_at(*times: int, key: str | None = "k") -> list[tuple[str, str | None, str, int]]:
    return [("left", key, f"L{time}", time) for time in times]


def right_at(*times: int, key: str | None = "k") -> list[tuple[str, str | None, str, int]]:
    return [("right", key, f"R{time}", time) for time in times]


def test_an_inner_join_gives_pairs_within_the_window_with_the_later_time() -> None:
    inputs = [*left_at(10), *right_at(26, 25, 1), *left_at(12)]
    assert run(joining("join"), inputs) == [
        ("k", "L10/R25", 25),
        ("k", "L10/R1", 10),
        ("k", "L12/R1", 12),
        ("k", "L12/R25", 25),
        ("k", "L12/R26", 26),
    ]


def test_several_records_of_one_key_and_time_all_match() -> None:
    inputs = [*left_at(10), ("left", "k", "again", 10), *right_at(10)]
    assert run(joining("join"), inputs) == [("k", "L10/R10", 10), ("k", "again/R10", 10)]


def test_before_and_after_count_from_the_left_side() -> None:
    windows = JoinWindows.between(before_ms=0, after_ms=5, grace_ms=0)
    inputs = [*left_at(10), *right_at(9, 10, 15, 16)]
    assert [value for _, value, _ in run(joining("join", windows), inputs)] == ["L10/R10", "L10/R15"]


def test_the_reference_sequence_of_a_left_join() -> None:
    inputs = [*left_at(1, 5, 14, 40, 22, 2, 60), *right_at(58), *left_at(100)]
    assert run(joining("left_join"), inputs) == [
        ("k", "L1/None", 1),
        ("k", "L5/None", 5),
        ("k", "L14/None", 14),
        ("k", "L22/None", 22),
        ("k", "L2/None", 2),
        ("k", "L60/R58", 60),
        ("k", "L40/None", 40),
    ]


def test_a_late_left_that_came_out_alone_can_still_match() -> None:
    inputs = [*left_at(40, 22, 25), *right_at(30)]
    assert run(joining("left_join"), inputs) == [
        ("k", "L22/None", 22),
        ("k", "L22/R30", 30),
        ("k", "L25/R30", 30),
        ("k", "L40/R30", 40),
    ]


def test_a_left_waits_until_stream_time_passes_its_window_and_the_grace() -> None:
    assert run(joining("left_join"), left_at(10, 30)) == []
    assert run(joining("left_join"), left_at(10, 31)) == [("k", "L10/None", 10)]


def test_a_match_takes_the_other_side_from_those_that_wait() -> None:
    assert run(joining("outer_join"), [*left_at(10), *right_at(12), *left_at(100)]) == [("k", "L10/R12", 12)]


def test_an_outer_join_gives_both_sides_by_time() -> None:
    inputs = [*right_at(11, key="b"), *left_at(10, key="a"), *right_at(10, key="c"), *left_at(100)]
    assert run(joining("outer_join"), inputs) == [
        ("c", "None/R10", 10),
        ("a", "L10/None", 10),
        ("b", "None/R11", 11),
    ]


def test_a_record_without_key_comes_out_alone_where_its_side_is_outer() -> None:
    inputs = [*left_at(1, key=None), *right_at(2, key=None)]
    with driver_of(joining("left_join")) as driver:
        feed(driver, inputs)
        assert results(driver) == [(None, "L1/None", 1)]
        assert driver.dropped_records == {"null-key-or-value": 1}
    assert run(joining("outer_join"), inputs) == [(None, "L1/None", 1), (None, "None/R2", 2)]


def test_a_record_without_value_is_dropped() -> None:
    with driver_of(joining("outer_join")) as driver:
        feed(driver, [("left", "k", None, 1), *right_at(2)])
        assert results(driver) == []
        assert driver.dropped_records == {"null-key-or-value": 1}


def test_a_side_forgets_what_is_past_size_and_grace() -> None:
    """Left 10 is found as long as no left record of 10 + 35 or more has come."""
    assert run(joining("join"), [*left_at(10, 44), *right_at(12)]) == [("k", "L10/R12", 12)]
    assert run(joining("join"), [*left_at(10, 45), *right_at(12)]) == []


def test_a_joiner_may_be_an_expression_over_left_and_right() -> None:
    def build(builder: StreamsBuilder) -> None:
        joiner = left + coalesce(right, "-")
        builder.stream("left").left_join(builder.stream("right"), joiner, WINDOWS).to("out")

    assert run(build, [*left_at(1), *right_at(2), *left_at(50, 100)]) == [("k", "L1R2", 2), ("k", "L50-", 50)]


def test_a_stream_joined_with_itself_does_not_meet_itself() -> None:
    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("left")
        stream.join(stream, lambda mine, other: f"{mine}/{other}", WINDOWS).to("out")

    assert [value for _, value, _ in run(build, left_at(1, 2))] == ["L1/L1", "L2/L1", "L1/L2", "L2/L2"]


def test_buffers_and_waiting_records_are_in_their_changelogs() -> None:
    with driver_of(joining("left_join")) as driver:
        feed(driver, [*left_at(1, 2), *right_at(3)])
        names = sorted(name for name in driver.produced_topic_names() if name.endswith("-changelog"))
        this, other, waiting = names
        assert "JOINTHIS" in this
        assert "OUTEROTHER" in other
        assert "OUTERSHARED" in waiting
        one, two = (1).to_bytes(8, "big"), (2).to_bytes(8, "big")
        first, second = (1).to_bytes(4, "big"), (2).to_bytes(4, "big")
        assert [(raw.key, raw.value, raw.timestamp) for raw in driver.output(this)] == [
            (b"k" + one + first, b"L1", 1),
            (b"k" + two + second, b"L2", 2),
        ]
        one_value = b"\x01" + first + (3).to_bytes(4, "big") + b"\x01"
        assert [(raw.key, raw.value, raw.timestamp) for raw in driver.output(waiting)] == [
            (one + b"\x01k", one_value + b"L1", 1),
            (two + b"\x01k", one_value + b"L2", 2),
            (one + b"\x01k", None, 3),
            (two + b"\x01k", None, 3),
        ]
