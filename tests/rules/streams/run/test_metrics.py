"""Metrics under Kafka Streams' names: what becomes of the counts of a query."""

import re
from pathlib import Path
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.pipelines.progress import Figures
from ottla.streams.run.changelogs import Note, Span, progress_file
from ottla.streams.run.metrics import client_metrics, metrics_of
from ottla.streams.run.restore_listener import RestoreLines, RestoreWatch

GUIDE = Path(__file__).parents[4] / "docs" / "STREAMS.md"


class Told:
    name = "0"

    def __init__(self, **sensors: tuple[int, float]) -> None:
        self._sensors = {name.replace("_", "/"): each for name, each in sensors.items()}

    def figures(self) -> Figures:
        totals = dict.fromkeys(("read", "batches", "written", "dropped"), 0)
        return Figures(totals, (), 0.0, 0, self._sensors)


def named(progress: Any, *names: str) -> dict[str, tuple[str, float]]:
    return {each.name: (each.group, each.value) for each in metrics_of("app", progress) if each.name in names}


def told_in_the_guide() -> dict[str, set[str]]:
    """`process-total` `-rate` stands for two names."""
    found: dict[str, set[str]] = {}
    for group, names in re.findall(r"^\| `(stream-(?:[a-z]+-)?metrics)` \| (.*) \|$", GUIDE.read_text(), re.MULTILINE):
        for each in names.split(", "):
            first, *more = re.findall(r"`([a-z-]+)`", each)
            stem = first.rpartition("-")[0]
            found.setdefault(group, set()).update({first, *(f"{stem}{name}" for name in more)})
    return found


def test_an_application_has_the_metrics_that_the_guide_names() -> None:
    found: dict[str, set[str]] = {"stream-state-metrics": {"changelog-lag"}}  # of views, see test_stream_queries.py
    progress: Any = Told()
    for each in [*metrics_of("app", progress), *client_metrics("app", alive=1, failed=0, restored=0, to_restore=0)]:
        found.setdefault(each.group, set()).add(each.name)
    assert found == told_in_the_guide()


def test_punctuators_are_counted_for_the_thread() -> None:
    assert named(Told(punctuate=(6, 0.5)), "punctuate-total", "punctuate-rate") == {
        "punctuate-total": ("stream-thread-metrics", 6.0),
        "punctuate-rate": ("stream-thread-metrics", 0.5),
    }


def test_a_latency_is_the_mean_of_what_was_recorded_lately_or_ever() -> None:
    names = ("pay-total", "pay-latency-avg", "latency-total")
    lately = Told(shop_orders_pay=(10, 2.0), shop_orders_pay__latency=(90_000, 5000.0), shop_orders_latency=(1, 0.0))
    assert named(lately, *names) == {
        "pay-total": ("stream-shop-metrics", 10.0),
        "pay-latency-avg": ("stream-shop-metrics", 2.5),
        "latency-total": ("stream-shop-metrics", 1.0),
    }
    before = Told(shop_orders_pay=(10, 0.0), shop_orders_pay__latency=(90_000, 0.0))
    assert named(before, "pay-latency-avg") == {"pay-latency-avg": ("stream-shop-metrics", 9.0)}


def test_what_is_restored_and_what_is_left_to_restore_is_known(tmp_path: Path) -> None:
    topic = "app-s-changelog"
    spans = {TopicPartition(topic, 0): Span(0, 10), TopicPartition(topic, 1): Span(5, 10)}
    watch = RestoreWatch(str(tmp_path), RestoreLines())
    watch.expect(Note({"s": topic}, spans, {}))
    assert watch.figures() == (0, 15)
    progress_file(str(tmp_path), "s", 0).write_text("8 7")
    watch.look()
    assert watch.figures() == (7, 7)
