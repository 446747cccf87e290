"""What a registry counts, and its page for Prometheus: Confluent's metrics under the names that the JMX exporter gives
them with Confluent's own rules (`kafka.schema.registry:type=jersey-metrics` and the like).

A request is counted when its answer begins; rates and times are those of the last minute, found out when somebody asks.
"""

import time
from collections.abc import Iterator
from typing import Final

from ottla.metrics.histogram import Histogram, quantile_us
from ottla.metrics.text import COUNTER, GAUGE, Family, labels, one, some
from ottla.metrics.window import Window
from ottla.registry.languages import LANGUAGES
from ottla.registry.machine.state import State
from ottla.registry.runner import Runner

_NAME: Final = "kafka_schema_registry_"
_JERSEY: Final = f"{_NAME}jersey_metrics_"
LEADS: Final = Family(f"{_NAME}master_slave_role", GAUGE, "1 if this registry is the one that writes.")
REGISTERED: Final = Family(f"{_NAME}registered_count", GAUGE, "Versions of schemas that there are, deleted ones not.")
DELETED: Final = Family(f"{_NAME}deleted_count", GAUGE, "Versions that are deleted softly.")
SUCCESSES: Final = Family(f"{_NAME}api_success_count", COUNTER, "Requests that were answered with what they wanted.")
FAILURES: Final = Family(f"{_NAME}api_failure_count", COUNTER, "Requests that were refused, or failed.")
REQUESTS: Final = Family(f"{_JERSEY}request_total", COUNTER, "Requests.")
ERRORS: Final = Family(f"{_JERSEY}request_error_total", COUNTER, "Answers by the class of their status.")
REQUEST_RATE: Final = Family(f"{_JERSEY}request_rate", GAUGE, "Requests a second, of late.")
ERROR_RATE: Final = Family(f"{_JERSEY}request_error_rate", GAUGE, "Requests a second that failed, of late.")
LATENCY: Final = Family(f"{_JERSEY}request_latency_avg", GAUGE, "Milliseconds until an answer began, of late.")
LATENCY_95: Final = Family(f"{_JERSEY}request_latency_95", GAUGE, "Milliseconds in which 95 of 100 answers began.")
LATENCY_99: Final = Family(f"{_JERSEY}request_latency_99", GAUGE, "Milliseconds in which 99 of 100 answers began.")
RESPONSE_BYTES: Final = Family(f"{_JERSEY}response_byte_rate", GAUGE, "Bytes of answers a second, of late.")
_CLASSES: Final = range(1, 6)


class RequestCounts:
    """All listeners of one registry count here."""

    __slots__ = ("by_class", "response_bytes", "times")

    def __init__(self) -> None:
        self.by_class = [0] * (_CLASSES.stop)
        """Answers, by the first digit of their status."""
        self.times = Histogram()
        self.response_bytes = 0

    def answered(self, status: int, us: int) -> None:
        self.by_class[status // 100] += 1
        self.times.observe(us)

    @property
    def failed(self) -> int:
        return self.by_class[4] + self.by_class[5]


class Page:
    def __init__(self, counts: RequestCounts, runner: Runner) -> None:
        self._counts = counts
        self._runner = runner
        self._window = Window(_now_ms(), self._totals())

    def text(self) -> str:
        return "".join(self._pieces())

    def _totals(self) -> list[int]:
        counts = self._counts
        return [sum(counts.by_class), counts.failed, counts.response_bytes, counts.times.sum_us, *counts.times.buckets]

    def _pieces(self) -> Iterator[str]:
        counts = self._counts
        requests = sum(counts.by_class)
        yield one(LEADS, int(self._runner.leads))
        yield from _schemas(self._runner.machine.state)
        yield one(SUCCESSES, requests - counts.failed)
        yield one(FAILURES, counts.failed)
        yield one(REQUESTS, requests)
        yield some(ERRORS, [(labels(http_status_code=f"{each}xx"), counts.by_class[each]) for each in _CLASSES])
        passed = self._window.look(_now_ms(), self._totals())
        buckets = passed.amounts[4:]
        yield one(REQUEST_RATE, passed.per_second(0))
        yield one(ERROR_RATE, passed.per_second(1))
        yield one(RESPONSE_BYTES, passed.per_second(2))
        yield one(LATENCY, passed.share(3, 0) / 1000)
        yield one(LATENCY_95, quantile_us(buckets, 0.95) / 1000)
        yield one(LATENCY_99, quantile_us(buckets, 0.99) / 1000)


def _schemas(state: State) -> Iterator[str]:
    live = dict.fromkeys(LANGUAGES, 0)
    gone = dict.fromkeys(LANGUAGES, 0)
    for subject in state.subjects.values():
        for version in subject.versions.values():
            which = gone if version.deleted else live
            which[version.schema_type] = which.get(version.schema_type, 0) + 1
    yield one(REGISTERED, sum(live.values()))
    yield one(DELETED, sum(gone.values()))
    for what, found, help in (("created", live, "that there are"), ("deleted", gone, "that are deleted softly")):
        for kind, number in found.items():
            yield one(Family(f"{_NAME}{kind.lower()}_schemas_{what}", GAUGE, f"Versions in {kind} {help}."), number)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
