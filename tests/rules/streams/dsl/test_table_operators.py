"""Tables: tombstones, old values, groups of rows, final results of windows."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Grouped, Materialized, Produced, Suppressed
from ottla.streams.errors import StreamsError
from ottla.streams.serdes import Serdes
from ottla.streams.topology.errors import TopologyError
from ottla.streams.windows import SessionWindows, TimeWindows
from tests.rules.streams.driving import driver_of, feed, results, run

STRINGS: Any = Grouped(Serdes.string, Serdes.string)


def test_a_table_keeps_the_last_record_by_offset_and_none_deletes() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in", materialized=Materialized("kept")).to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, [("in", "a", "1", 10), ("in", "a", "2", 5), ("in", "b", "3", 6), ("in", "b", None, 7)])
        assert results(driver) == [("a", "1", 10), ("a", "2", 5), ("b", "3", 6), ("b", None, 7)]
        assert list(driver.get_timestamped_key_value_store("kept").all()) == [("a", ("2", 5))]


def test_a_table_drops_records_without_a_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in").to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, [("in", None, "1", 1)])
        assert results(driver) == []
        assert driver.dropped_records == {"null-key": 1}


ROWS = [("in", "a", "no", 1), ("in", "a", "yes", 2), ("in", "a", "no", 3), ("in", "a", None, 4), ("in", "b", None, 5)]


def test_a_filter_sends_tombstones_for_all_when_it_cannot_know_better() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in").filter(lambda key, value: value == "yes").to_stream().to("out")

    assert run(build, ROWS) == [("a", None, 1), ("a", "yes", 2), ("a", None, 3), ("a", None, 4), ("b", None, 5)]


def test_a_filter_of_a_stored_table_sends_tombstones_only_for_rows_it_had() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("in", materialized=Materialized("kept"))
        table.filter(lambda key, value: value == "yes").to_stream().to("out")

    assert run(build, ROWS) == [("a", "yes", 2), ("a", None, 3)]


def test_map_values_keeps_none_as_none_and_its_own_store() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("in").map_values(lambda value: value.upper(), Materialized("upper"))
        table.to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, ROWS[:2] + ROWS[4:])
        assert results(driver) == [("a", "NO", 1), ("a", "YES", 2), ("b", None, 5)]
        assert list(driver.get_key_value_store("upper").all()) == [("a", "YES")]


def regions(builder: StreamsBuilder) -> None:
    """Rows `region size`: how large each region is."""
    rows = builder.table("in").group_by(lambda key, value: (value.split()[0], value.split()[1]), STRINGS)
    kept: Materialized[str, int] = Materialized("sizes", Serdes.string, Serdes.long)
    rows.aggregate(
        int, lambda _, size, total: total + int(size), lambda _, size, total: total - int(size), kept
    ).to_stream().to("out", Produced(Serdes.string, Serdes.long))


def test_a_row_is_taken_from_its_old_group_before_it_is_added_to_the_new_one() -> None:
    inputs = [("in", "alice", "asia 5", 1), ("in", "bob", "asia 3", 2), ("in", "alice", "europe 6", 3)]
    assert run(regions, inputs) == [("asia", 5, 1), ("asia", 8, 2), ("asia", 3, 3), ("europe", 6, 3)]


def test_a_row_that_stays_in_its_group_is_one_record_on_the_wire() -> None:
    with driver_of(regions) as driver:
        feed(driver, [("in", "alice", "asia 5", 1), ("in", "alice", "asia 7", 2), ("in", "alice", None, 3)])
        assert results(driver) == [("asia", 5, 1), ("asia", 7, 2), ("asia", 0, 3)]
        assert [raw.value for raw in driver.output("app-sizes-repartition")] == [b"5\x01", b"\x0275\x02", b"7\x00"]


def test_a_count_of_a_table_goes_down_too() -> None:
    def build(builder: StreamsBuilder) -> None:
        grouped = builder.table("in").group_by(lambda key, value: (value, key), STRINGS)
        grouped.count().to_stream().to("out", Produced(Serdes.string, Serdes.long))

    inputs = [("in", "a", "x", 1), ("in", "b", "x", 5), ("in", "a", "y", 3), ("in", "b", None, 6)]
    assert run(build, inputs) == [("x", 1, 1), ("x", 2, 5), ("x", 1, 5), ("y", 1, 3), ("x", 0, 6)]


def counting(windows: Any, suppressed: Suppressed) -> Any:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(windows)
        windowed.count(Materialized("kept")).suppress(suppressed).to_stream().to("out")

    return build


FINAL = Suppressed.until_window_closes(name="final")


def test_suppress_sends_the_last_result_of_a_window_when_its_grace_is_over() -> None:
    inputs = [("in", "k", "v", at) for at in (1, 3, 2, 14)] + [("in", "other", "v", 15), ("in", "k", "v", 30)]
    assert run(counting(TimeWindows.of(10, grace_ms=5), FINAL), inputs) == [
        ("[k@0/10]", 3, 3),
        ("[k@10/20]", 1, 14),
        ("[other@10/20]", 1, 15),
    ]


def test_suppress_keeps_the_headers_of_the_record_that_gave_the_result() -> None:
    with driver_of(counting(TimeWindows.of(10, grace_ms=0), FINAL)) as driver:
        records = driver.create_input_topic("in", Serdes.string, Serdes.string)
        records.pipe_input("k", "v", 1, {"trace": b"1"})
        records.pipe_input("k", "v", 2, {"trace": b"2"})
        records.pipe_input("k", "v", 10, {"trace": b"3"})
        assert driver.create_output_topic("out").read_record().headers == (("trace", b"2"),)


def test_suppress_of_sessions_sends_no_tombstone_for_what_nobody_saw() -> None:
    inputs = [("in", "k", "v", 1), ("in", "k", "v", 5), ("in", "k", "v", 40), ("in", "k", "v", 80)]
    windows = SessionWindows.of(10, grace_ms=0)
    assert run(counting(windows, FINAL), inputs) == [("[k@1/5]", 2, 5), ("[k@40/40]", 1, 40)]


def test_a_buffer_that_is_full_ends_the_application() -> None:
    small = Suppressed.until_window_closes(max_records=1)
    with (
        driver_of(counting(TimeWindows.of(10, grace_ms=5), small)) as driver,
        pytest.raises(StreamsError, match="is full: 2 records"),
    ):
        feed(driver, [("in", "a", "v", 1), ("in", "b", "v", 2)])


def test_the_changelog_of_suppress_gets_the_state_at_each_commit_and_a_tombstone_at_the_end() -> None:
    with driver_of(counting(TimeWindows.of(10, grace_ms=0), FINAL)) as driver:
        feed(driver, [("in", "k", "v", 1)])
        (first,) = driver.output("app-final-store-changelog")
        assert first.key == b"k" + bytes(8)
        assert first.headers == (("v", b"\x03"),)
        context = (1).to_bytes(8, "big") + bytes(8) + (2).to_bytes(4, "big") + b"in" + bytes(4) + bytes(4)
        zero, one = bytes(8), (1).to_bytes(8, "big")
        lengths = (8).to_bytes(4, "big"), (-2).to_bytes(4, "big", signed=True)
        assert first.value == context + lengths[0] + zero + lengths[1] + lengths[0] + one + (10).to_bytes(8, "big")
        driver.output("app-final-store-changelog").clear()
        feed(driver, [("in", "other", "v", 10)])
        assert (b"k" + bytes(8), None) in [(raw.key, raw.value) for raw in driver.output("app-final-store-changelog")]


def held_for(limit_ms: int, **bounds: Any) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("in", materialized="rows")
        table.suppress(Suppressed.until_time_limit(limit_ms, **bounds)).to_stream().to("out")

    return build


def test_suppress_by_time_hands_on_the_last_change_once_time_is_past_the_first() -> None:
    inputs = [
        ("in", "a", "1", 1),
        ("in", "a", "2", 8),
        ("in", "b", "3", 10),
        ("in", "b", "4", 11),
        ("in", "c", "5", 21),
    ]
    assert run(held_for(10), inputs) == [("a", "2", 8), ("b", "4", 11)]


def test_suppress_by_time_hands_on_deletions_too() -> None:
    inputs = [("in", "a", "1", 1), ("in", "a", None, 2), ("in", "b", "3", 50)]
    assert run(held_for(10), inputs) == [("a", None, 2)]


def test_a_full_buffer_hands_on_the_oldest_early() -> None:
    inputs = [("in", "a", "1", 5), ("in", "b", "2", 4), ("in", "a", "3", 6), ("in", "c", "4", 7)]
    assert run(held_for(1000, max_records=2), inputs) == [("b", "2", 4)]


def test_a_full_buffer_ends_the_application_if_it_is_told_to() -> None:
    with pytest.raises(StreamsError, match=r"is full: 2 records \(at most 1\)"):
        run(held_for(1000, max_records=1, shut_down_when_full=True), [("in", "a", "1", 5), ("in", "b", "2", 4)])


@pytest.mark.parametrize("bounds", [{"max_records": -1}, {"max_bytes": -1}, {"limit_ms": -1}])
def test_a_buffer_has_no_negative_bounds(bounds: dict[str, Any]) -> None:
    with pytest.raises(TopologyError, match="must not be negative: -1"):
        Suppressed.until_time_limit(**{"limit_ms": 1, **bounds})
