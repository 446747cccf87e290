"""Aggregates over tumbling and hopping windows: lateness, order, emission on update and on close."""

from typing import Any

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized
from ottla.streams.expressions import avg, value
from ottla.streams.serdes import Serdes
from ottla.streams.windows import Emit, TimeWindows, Window, Windowed
from tests.rules.streams.driving import driver_of, feed, results, run, shown

TUMBLING = TimeWindows.of(10, grace_ms=5)
REFERENCE = [("in", "k", "v", at) for at in (1, 5, 14, 40, 22, 2, 60)]


def counting(windows: TimeWindows, emit: Emit = Emit.ON_UPDATE) -> Any:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(windows)
        windowed.emit_strategy(emit).count(Materialized("kept")).to_stream().to("out")

    return build


def test_a_window_takes_records_until_stream_time_passes_its_end_by_the_grace() -> None:
    with driver_of(counting(TUMBLING)) as driver:
        feed(driver, REFERENCE)
        assert results(driver) == [
            ("[k@0/10]", 1, 1),
            ("[k@0/10]", 2, 5),
            ("[k@10/20]", 1, 14),
            ("[k@40/50]", 1, 40),
            ("[k@60/70]", 1, 60),
        ]
        assert driver.dropped_records == {"late-record": 2}


def test_a_window_is_closed_when_its_end_equals_stream_time_minus_grace() -> None:
    inputs = [("in", "k", "v", 9), ("in", "k", "v", 14), ("in", "k", "v", 8), ("in", "k", "v", 15), ("in", "k", "v", 7)]
    assert [row[:2] for row in run(counting(TUMBLING), inputs)] == [
        ("[k@0/10]", 1),
        ("[k@10/20]", 1),
        ("[k@0/10]", 2),
        ("[k@10/20]", 2),
    ]


def test_each_hop_that_has_closed_is_dropped_on_its_own() -> None:
    hopping = TimeWindows.of(10, advance_ms=5, grace_ms=0)
    with driver_of(counting(hopping)) as driver:
        feed(driver, [("in", "k", "v", 12), ("in", "k", "v", 7)])
        assert results(driver) == [("[k@5/15]", 1, 12), ("[k@10/20]", 1, 12), ("[k@5/15]", 2, 12)]
        assert driver.dropped_records == {"late-record": 1}


def test_lateness_is_decided_by_the_time_of_all_keys() -> None:
    inputs = [("in", "a", "v", 100), ("in", "b", "v", 50)]
    assert run(counting(TUMBLING), inputs) == [("[a@100/110]", 1, 100)]


def test_a_record_without_key_is_dropped_one_without_value_counts() -> None:
    with driver_of(counting(TUMBLING)) as driver:
        feed(driver, [("in", None, "v", 1), ("in", "k", None, 2)])
        assert results(driver) == [("[k@0/10]", 1, 2)]
        assert driver.dropped_records == {"null-key": 1}


def test_on_close_gives_each_window_once_when_it_has_closed() -> None:
    inputs = [("in", "b", "v", 1), ("in", "a", "v", 2), ("in", "a", "v", 3), ("in", "a", "v", 12), ("in", "a", "v", 15)]
    assert run(counting(TUMBLING, Emit.ON_CLOSE), inputs) == [("[a@0/10]", 2, 3), ("[b@0/10]", 1, 1)]


def test_on_close_does_not_give_what_is_past_retention_already() -> None:
    """Kafka looks into a store that stream time has made forget the window."""
    inputs = [("in", "a", "v", 1), ("in", "a", "v", 16), ("in", "a", "v", 100), ("in", "a", "v", 200)]
    assert run(counting(TUMBLING, Emit.ON_CLOSE), inputs) == [("[a@0/10]", 1, 1)]


def test_each_on_close_gives_every_window_however_far_time_goes_on() -> None:
    inputs = [("in", "a", "v", 1), ("in", "a", "v", 100), ("in", "b", "v", 200)]
    expected = [("[a@0/10]", 1, 1), ("[a@100/110]", 1, 100)]
    assert run(counting(TUMBLING, Emit.EACH_ON_CLOSE), inputs) == expected
    assert run(counting(TUMBLING, Emit.ON_CLOSE), inputs) == []


def test_the_store_has_the_windows_of_the_retention_time() -> None:
    with driver_of(counting(TUMBLING)) as driver:
        feed(driver, REFERENCE[:3])
        store = driver.get_window_store("kept")
        assert store.fetch("k", 0) == 2
        assert list(store.fetch_range("k", 0, 100)) == [(0, 2), (10, 1)]
        assert list(store.all()) == [(Windowed("k", Window(0, 10)), 2), (Windowed("k", Window(10, 20)), 1)]
        feed(driver, [("in", "k", "v", 25)])
        assert [shown(key) for key, _ in store.all()] == ["[k@10/20]", "[k@20/30]"]
        assert store.fetch("k", 0) is None


def test_the_changelog_has_key_start_and_a_sequence_of_zero() -> None:
    with driver_of(counting(TUMBLING)) as driver:
        feed(driver, [("in", "k", "v", 14)])
        (change,) = driver.output("app-kept-changelog")
        assert change.key == b"k" + (10).to_bytes(8, "big") + bytes(4)
        assert (change.value, change.timestamp) == ((1).to_bytes(8, "big"), 14)


def test_a_native_average_over_windows() -> None:
    def build(builder: StreamsBuilder) -> None:
        numbers = builder.stream("in", Consumed(Serdes.string, Serdes.json("n LONG")))
        windowed = numbers.group_by_key(Grouped(Serdes.string, Serdes.json("n LONG"))).windowed_by(TUMBLING)
        windowed.aggregate(
            avg(value["n"]), materialized=Materialized("kept", Serdes.string, Serdes.double)
        ).to_stream().to("out")

    inputs = [("in", "k", '{"n": 1}', 1), ("in", "k", '{"n": 2}', 2), ("in", "k", '{"n": 5}', 11)]
    assert run(build, inputs) == [("[k@0/10]", 1.0, 1), ("[k@0/10]", 1.5, 2), ("[k@10/20]", 5.0, 11)]
