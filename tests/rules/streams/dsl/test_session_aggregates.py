"""Sessions: growing, merging, tombstones for what was sent before."""

from typing import Any

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized
from ottla.streams.expressions import avg, value
from ottla.streams.serdes import Serdes
from ottla.streams.windows import Emit, SessionWindows
from tests.rules.streams.driving import driver_of, feed, results, run, shown

SESSIONS = SessionWindows.of(10, grace_ms=5)


def counting(emit: Emit = Emit.ON_UPDATE) -> Any:
    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(SESSIONS)
        windowed.emit_strategy(emit).count(Materialized("kept")).to_stream().to("out")

    return build


def at(*times: int, key: str = "k") -> list[tuple[str, str, str, int]]:
    return [("in", key, "v", time) for time in times]


def test_a_session_that_grows_is_taken_back_before_the_merged_one_is_sent() -> None:
    with driver_of(counting()) as driver:
        feed(driver, at(1, 5, 14, 40, 22, 2, 60))
        assert results(driver) == [
            ("[k@1/1]", 1, 1),
            ("[k@1/1]", None, 1),
            ("[k@1/5]", 2, 5),
            ("[k@1/5]", None, 5),
            ("[k@1/14]", 3, 14),
            ("[k@40/40]", 1, 40),
            ("[k@60/60]", 1, 60),
        ]
        assert driver.dropped_records == {"late-record": 2}


def test_a_record_may_join_two_sessions() -> None:
    assert run(counting(), at(1, 15, 8))[2:] == [
        ("[k@1/1]", None, 1),
        ("[k@15/15]", None, 15),
        ("[k@1/15]", 3, 15),
    ]


def test_the_gap_is_inclusive() -> None:
    assert [row[0] for row in run(counting(), at(0, 10, 21))] == ["[k@0/0]", "[k@0/0]", "[k@0/10]", "[k@21/21]"]


def test_a_record_inside_its_session_takes_it_back_too() -> None:
    assert run(counting(), at(1, 9, 5))[3:] == [("[k@1/9]", None, 9), ("[k@1/9]", 3, 9)]


def test_lateness_is_decided_on_the_merged_session() -> None:
    """29 alone would be too late (29 < 45 - 5 - 10 = 30), but merged with the session at 35 it ends at 35."""
    assert run(counting(), at(35, 45, 29))[3:] == [("[k@35/45]", None, 45), ("[k@29/45]", 3, 45)]
    assert [row[0] for row in run(counting(), [*at(35), *at(45, key="other"), *at(29)])] == [
        "[k@35/35]",
        "[other@45/45]",
        "[k@35/35]",
        "[k@29/35]",
    ]


def test_on_close_gives_sessions_by_their_end() -> None:
    inputs = [*at(1, 5), *at(3, key="a"), *at(21), *at(22)]
    assert run(counting(Emit.ON_CLOSE), inputs) == [("[a@3/3]", 1, 3), ("[k@1/5]", 2, 5)]


def test_the_changelog_has_key_end_and_start() -> None:
    with driver_of(counting()) as driver:
        feed(driver, at(1, 5))
        changes = [(raw.key, raw.value, raw.timestamp) for raw in driver.output("app-kept-changelog")]
        assert changes == [
            (b"k" + (1).to_bytes(8, "big") + (1).to_bytes(8, "big"), (1).to_bytes(8, "big"), 1),
            (b"k" + (1).to_bytes(8, "big") + (1).to_bytes(8, "big"), None, 5),
            (b"k" + (5).to_bytes(8, "big") + (1).to_bytes(8, "big"), (2).to_bytes(8, "big"), 5),
        ]


def test_the_store_has_the_sessions_of_the_retention_time() -> None:
    with driver_of(counting()) as driver:
        feed(driver, [*at(1, 5), *at(14, key="a")])
        store = driver.get_session_store("kept")
        assert [(shown(key), value) for key, value in store.fetch("k")] == [("[k@1/5]", 2)]
        assert [(shown(key), value) for key, value in store.all()] == [("[a@14/14]", 1), ("[k@1/5]", 2)]
        assert store.fetch_session("k", 1, 5) == 2
        assert store.fetch_session("k", 1, 4) is None
        feed(driver, at(20))
        assert [shown(key) for key, _ in store.all()] == ["[a@14/14]", "[k@20/20]"]


def test_a_native_average_over_sessions() -> None:
    def build(builder: StreamsBuilder) -> None:
        numbers = builder.stream("in", Consumed(Serdes.string, Serdes.json("n LONG")))
        windowed = numbers.group_by_key(Grouped(Serdes.string, Serdes.json("n LONG"))).windowed_by(SESSIONS)
        windowed.aggregate(
            avg(value["n"]), materialized=Materialized("kept", Serdes.string, Serdes.double)
        ).to_stream().to("out")

    inputs = [("in", "k", '{"n": 1}', 1), ("in", "k", '{"n": 2}', 15), ("in", "k", '{"n": 6}', 8)]
    assert [row[:2] for row in run(build, inputs)][-1] == ("[k@1/15]", 3.0)
