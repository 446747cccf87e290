"""The judgement of a run: a benchmark that cannot fail is a defect, so each way to fail is stated here."""

from dataclasses import dataclass
from pathlib import Path

from bench.__main__ import exit_code
from bench.ledger import Entry, read, write
from bench.measures import Measure, Metric, ratio_at_least, ratio_at_most, value_at_most
from bench.report import published
from bench.rounds import interleaved, interleaved_when_warm
from bench.streams_runs import Progress, behind_the_start


@dataclass
class Stand:
    """All that the order of trials needs of a server."""

    name: str


def measured(target_metric: Metric, kafka: tuple[float, ...], ottla: tuple[float, ...]) -> Measure:
    return Measure("work", target_metric, kafka, ottla)


RATE = Metric("rate", "throughput", "MB/s", ratio_at_least(1.0))
CPU = Metric("cpu", "server CPU per GB", "s", ratio_at_most(0.7))
START = Metric("seconds", "start", "s", value_at_most(0.5))
SEEN = Metric("p50", "p50", "ms")


def test_a_ratio_is_taken_between_medians() -> None:
    assert measured(RATE, (90.0, 100.0, 900.0), (109.0, 110.0, 1.0)).ratio == 1.09


def test_a_throughput_below_kafkas_is_missed() -> None:
    assert measured(RATE, (100.0,), (100.0,)).reached is True
    assert measured(RATE, (100.0,), (99.9,)).reached is False


def test_cpu_above_its_share_of_kafkas_is_missed() -> None:
    assert measured(CPU, (4.0,), (2.8,)).reached is True
    assert measured(CPU, (4.0,), (2.81,)).reached is False


def test_an_absolute_target_does_not_look_at_kafka() -> None:
    assert measured(START, (), (0.5,)).reached is True
    assert measured(START, (3.0,), (0.51,)).reached is False


def test_a_percentile_of_zero_whole_milliseconds_is_still_compared() -> None:
    p50 = Metric("p50", "p50", "ms", ratio_at_most(1.0))
    assert measured(p50, (0.0,), (0.0,)).reached is True
    assert measured(p50, (0.0,), (1.0,)).reached is False


def test_a_target_that_was_not_measured_is_missed() -> None:
    assert measured(RATE, (100.0,), ()).reached is False
    assert measured(RATE, (), (100.0,)).reached is False


def test_a_measure_without_a_target_is_not_judged() -> None:
    assert measured(SEEN, (1.0,), (5.0,)).reached is None


def test_a_missed_target_fails_the_run() -> None:
    assert exit_code([measured(RATE, (100.0,), (120.0,))], []) == 0
    assert exit_code([measured(RATE, (100.0,), (120.0,)), measured(CPU, (4.0,), (3.0,))], []) == 1


def test_an_unfinished_workload_fails_the_run() -> None:
    assert exit_code([measured(RATE, (100.0,), (120.0,))], ["consume"]) == 1


def test_nothing_measured_fails_the_run() -> None:
    assert exit_code([], []) == 1


def test_servers_take_turns_and_warm_ups_are_dropped() -> None:
    asked: list[str] = []

    def trial(server: Stand) -> dict[str, float]:
        asked.append(server.name)
        return {"number": len(asked)}

    taken = interleaved([Stand("kafka"), Stand("ottla")], 2, trial, warmups=1)
    assert asked == ["kafka", "ottla"] * 3
    assert taken == [[{"number": 3}, {"number": 5}], [{"number": 4}, {"number": 6}]]


def test_a_cold_server_is_warmed_until_its_cpu_has_stopped_falling() -> None:
    falling = iter([14.0, 8.7, 5.6, 4.2, 4.1, 4.0, 4.1])

    def trial(server: Stand) -> dict[str, float]:
        return {"cpu": next(falling)}

    assert interleaved_when_warm([Stand("kafka")], 2, trial, range(1, 11)) == [[{"cpu": 4.0}, {"cpu": 4.1}]]


def test_a_server_that_never_gets_warm_is_measured_in_the_end() -> None:
    falling = iter([2.0**-number for number in range(100)])

    def trial(server: Stand) -> dict[str, float]:
        return {"cpu": next(falling)}

    assert interleaved_when_warm([Stand("kafka")], 1, trial, range(3, 6)) == [[{"cpu": 2.0**-5}]]


def entry(*measures: Measure, finished: bool = True) -> Entry:
    return Entry("2026-11-16", "abc1234", 0.02, 3, ("2 cores",), measures, finished)


def test_the_page_names_every_missed_target_and_every_unfinished_workload() -> None:
    seen = entry(measured(RATE, (100.0,), (120.0,)), measured(CPU, (4.0, 5.0, 3.0), (3.0, 3.2, 2.9)))
    methods = [("work", "How it is done."), ("consume", "How too."), ("restart", "Some time.")]
    page = published({"consume": entry(finished=False), "work": seen}, methods)
    assert "1 of 2 targets reached; missed: work (server CPU per GB); not finished: consume." in page
    assert "| work | server CPU per GB, s | 4 (3–5) | 3 (2.9–3.2) | 0.75 | ≤ 0.7 | **missed** |" in page
    assert "**work.** How it is done. (2026-11-16, abc1234, 3 rounds, 2% of the machine in use before it.)" in page
    assert "**restart.** Some time. (Not measured yet.)" in page


def test_what_was_measured_comes_back_from_the_ledger_in_the_order_of_the_page(tmp_path: Path) -> None:
    kept = {"b": entry(measured(RATE, (100.0,), (120.0,)), measured(SEEN, (), (1.5, 2.5))), "a": entry(finished=False)}
    write(tmp_path / "ledger.json", kept, ["a", "b"])
    assert list(read(tmp_path / "ledger.json").items()) == [("a", kept["a"]), ("b", kept["b"])]
    assert read(tmp_path / "none.json") == {}


def test_a_rate_behind_the_start_is_that_of_what_came_behind_the_first_third() -> None:
    seen = [Progress(0.0, 0, 0.0), Progress(9.0, 40, 5.0), Progress(10.0, 60, 5.5), Progress(12.0, 100, 6.5)]
    assert behind_the_start(seen, 100) == (20.0, 25_000.0)


def test_one_who_commits_nearly_all_at_once_is_measured_by_that() -> None:
    seen = [Progress(0.0, 0, 0.0), Progress(9.0, 10, 0.0), Progress(10.0, 100, 0.9)]
    assert behind_the_start(seen, 100) == (90.0, 10_000.0)
    assert behind_the_start([Progress(0.0, 0, 0.0), Progress(10.0, 100, 1.0)], 100) == (10.0, 10_000.0)
