"""The examples, in the test driver: what goes in, what comes out."""

from pathlib import Path
from typing import Any

import pytest

from ottla.streams import Serdes, TopologyTestDriver, Window, Windowed
from ottla.streams.app import StreamsApp
from ottla.streams.app_file import load

EXAMPLES = Path(__file__).parents[3] / "examples" / "streams"


def example(name: str) -> StreamsApp:
    app, _ = load(str(EXAMPLES / f"{name}.py"))
    return app


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr("sys.path", __import__("sys").path[:])


def test_word_count_tells_each_word_with_its_count_so_far() -> None:
    with TopologyTestDriver(example("word_count").topology) as driver:
        lines = driver.create_input_topic("streams-plaintext-input", Serdes.string, Serdes.string)
        counts = driver.create_output_topic("streams-wordcount-output", Serdes.string, Serdes.bytes)
        lines.pipe_input(None, "All streams lead to Kafka")
        lines.pipe_input(None, "hello, kafka STREAMS")
        assert counts.read_key_values() == [
            (word, number.to_bytes(8, "big"))
            for word, number in [
                ("all", 1), ("streams", 1), ("lead", 1), ("to", 1), ("kafka", 1),
                ("hello", 1), ("kafka", 2), ("streams", 2),
            ]
        ]  # fmt: skip


def test_stock_statistics_put_a_trade_into_five_windows_and_leave_out_late_ones() -> None:
    with TopologyTestDriver(example("stock_statistics").topology) as driver:
        trades = driver.create_input_topic("stock-trades", Serdes.string, Serdes.json)
        key = Serdes.time_windowed(Serdes.string, 5_000)
        statistics = driver.create_output_topic("stock-statistics", key, Serdes.json)
        trades.pipe_input("ACME", {"price": 10.0, "size": 1}, timestamp=10_500)
        windows = [Windowed("ACME", Window(start, start + 5_000)) for start in range(6_000, 11_000, 1_000)]
        assert statistics.read_key_values() == [
            (window, {"minimum": 10.0, "trades": 1, "average": 10.0}) for window in windows
        ]
        trades.pipe_input("ACME", {"price": 0.0, "size": 1}, timestamp=10_600)
        assert statistics.is_empty()
        trades.pipe_input("ACME", {"price": 4.0, "size": 1}, timestamp=14_600)
        assert statistics.read_key_value() == (windows[-1], {"minimum": 4.0, "trades": 2, "average": 7.0})
        statistics.read_all()
        # Stream time is 14.6 s and the grace one second: windows that ended by 13.6 s have closed.
        trades.pipe_input("ACME", {"price": 1.0, "size": 1}, timestamp=8_500)
        assert statistics.is_empty()


def test_click_enrichment_joins_profile_and_search_and_tells_what_was_not_found() -> None:
    with TopologyTestDriver(example("click_enrichment").topology) as driver:
        profiles, views, searches = (
            driver.create_input_topic(topic, Serdes.string, Serdes.json)
            for topic in ("user-profiles", "page-views", "searches")
        )
        activity = driver.create_output_topic("user-activity", Serdes.string, Serdes.json)
        profiles.pipe_input("anna", {"name": "Anna", "interest": "bikes"}, timestamp=0)
        views.pipe_input("anna", {"page": "/bikes"}, timestamp=1_000)
        searches.pipe_input("anna", {"terms": "wheels"}, timestamp=1_900)
        known = {"page": "/bikes", "name": "Anna", "interest": "bikes", "terms": "wheels"}
        assert activity.read_key_values() == [("anna", known)]
        views.pipe_input("bert", {"page": "/cars"}, timestamp=5_000)
        assert activity.is_empty()
        views.pipe_input("anna", {"page": "/home"}, timestamp=9_000)
        unknown = {"page": "/cars", "name": None, "interest": None, "terms": None}
        assert activity.read_key_values() == [("bert", unknown)]


@pytest.mark.parametrize(("version", "counted"), [(1, 2), (2, 1)])
def test_the_second_version_leaves_robots_out(version: int, counted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERSION", str(version))
    app = example("reprocessing")
    assert app.application_id == f"page-counts-v{version}"
    with TopologyTestDriver(app.topology) as driver:
        visits = driver.create_input_topic("visits", Serdes.string, Serdes.json)
        counts = driver.create_output_topic(f"page-counts-v{version}", Serdes.string, Serdes.long)
        visits.pipe_input("/home", {"agent": "firefox"})
        visits.pipe_input("/home", {"agent": "A Robot"})
        assert counts.read_to_dict() == {"/home": counted}


def test_fraud_alerts_come_when_the_minute_has_passed_and_counting_begins_anew() -> None:
    with TopologyTestDriver(example("fraud_alerts").topology) as driver:
        payments = driver.create_input_topic("payments", Serdes.string, Serdes.json)
        alerts = driver.create_output_topic("fraud-alerts", Serdes.string, Serdes.json)
        start = 600_000
        payments.pipe_input("first", {"amount": 1}, timestamp=start)
        spent: list[tuple[str, Any]] = [("often", 1)] * 4 + [("much", 1_001), ("little", 5)]
        for card, amount in spent:
            payments.pipe_input(card, {"amount": amount}, timestamp=start + 1_000)
        assert alerts.is_empty()
        payments.pipe_input("next", {"amount": 1}, timestamp=start + 60_000)
        assert alerts.read_key_values() == [
            ("much", {"payments": 1, "sum": 1_001}),
            ("often", {"payments": 4, "sum": 4}),
        ]
        payments.pipe_input("next", {"amount": 1}, timestamp=start + 120_000)
        assert alerts.is_empty()
