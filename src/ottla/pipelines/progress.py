"""What a query did: batches, records read, written and left out, and how long it took."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.accumulators import Accumulator, AccumulatorParam

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ottla.pipelines.sink.sink import Written

OBSERVED_DROPS: Final = "ottla-dropped"
"""Names of what Spark observes begin with it, where a plan leaves out records: a column for each reason, or one
of them all."""
OBSERVED_ENTRIES: Final = "entries"
"""A column of reasons and numbers in pairs: what each task has counted."""
SENSOR: Final = "sensor:"
"""Counts of tasks that begin so are the user's own, no dropped records: sensor:<scope>/<entity>/<operation>."""
OBSERVED_READ: Final = "ottla-read"
"""Where rows of the source are no records: the column `records` tells how many there were, OBSERVED_ENTRIES what was
left out of them."""
WINDOW_S: Final = 30.0
"""Rates are taken over the last so many seconds, as Kafka's are."""
TAKE_EVERY: Final = 25
"""Batches after which Spark's reports are looked at, though nobody asks: it keeps a hundred."""


Counts = dict[str, int]


class _Adding(AccumulatorParam[Counts]):
    """Counts by reason, added up over all tasks."""

    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:
        for reason, number in value2.items():
            value1[reason] = value1.get(reason, 0) + number
        return value1


def new_counter(spark: SparkSession) -> Accumulator[Counts]:
    """Of dropped records. A batch that runs twice counts twice: it is for people to look at."""
    return spark.sparkContext.accumulator({}, _Adding())


class _Latest(AccumulatorParam[dict[Any, Any]]):
    """What was said last under each name."""

    def zero(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {}

    def addInPlace(self, value1: dict[Any, Any], value2: dict[Any, Any]) -> dict[Any, Any]:
        value1.update(value2)
        return value1


def new_latest(spark: SparkSession) -> Accumulator[dict[Any, Any]]:
    """What tasks tell the driver by name: the last word counts, so a batch that runs twice changes nothing."""
    return spark.sparkContext.accumulator({}, _Latest())


class Figures(NamedTuple):
    """At one moment."""

    totals: Mapping[str, int]
    """By name: batches, written, read, dropped."""
    batch_seconds: Sequence[float]
    """How long each of the last WINDOW_S took to be written."""
    read_per_second: float
    sst_bytes: int
    """Of the files that RocksDB keeps state in."""
    sensors: Mapping[str, tuple[int, float]]
    """By scope/entity/operation: how much altogether, and per second of the last WINDOW_S."""


class Progress:
    """Counters of one query. Batches are counted in Spark's thread, and asked for from others."""

    def __init__(self, name: str, dropped: Accumulator[Counts]) -> None:
        self.name = name
        self._dropped = dropped
        self._lock = threading.Lock()
        self._batches: list[tuple[float, int, float, int]] = []
        self._batch = -1
        self._totals = {"batches": 0, "written": 0, "read": 0, "dropped": 0}
        self._left_out: Counts = {}
        self._query: StreamingQuery | None = None
        self._seen = ""
        self._final: Mapping[str, Any] = {}
        self._looks: list[tuple[float, Counts]] = []

    @property
    def batches(self) -> int:
        return self._totals["batches"]

    @property
    def batch(self) -> int:
        """The last one that was written here, -1 for none."""
        return self._batch

    def watch(self, query: StreamingQuery) -> None:
        self._query = query

    def wrote(self, written: Written, seconds: float) -> None:
        with self._lock:
            self._batch = written.batch_id
            self._totals["batches"] += 1
            self._totals["written"] += written.records
            self._batches.append((time.monotonic(), written.records, seconds, written.batch_id))
            horizon = time.monotonic() - WINDOW_S
            self._batches = [each for each in self._batches if each[0] >= horizon]
            due = not self._totals["batches"] % TAKE_EVERY
        if due and self._query is not None:
            self.take(self._query)

    def last(self, query: StreamingQuery | None) -> None:
        """Takes what Spark tells before the query is gone."""
        if query is not None:
            self.take(query)
        self._query = None

    def take(self, query: StreamingQuery) -> None:
        """What Spark told since the last time. It keeps a hundred reports: who asks less often misses some."""
        with self._lock:
            for told in _newer(query, self._seen):
                self._seen = told["timestamp"]
                self._final = told
                self._count(told)

    def _count(self, told: Mapping[str, Any]) -> None:
        self._totals["read"] += _read(told)
        for name, counts in _observed(told).items():
            if name.startswith(OBSERVED_DROPS):
                _add_observed(self._left_out, counts)
            elif entries := counts.get(OBSERVED_ENTRIES):
                _add_observed(self._left_out, {OBSERVED_ENTRIES: entries})
        for state in told.get("stateOperators", []):
            self._totals["dropped"] += state.get("numRowsDroppedByWatermark", 0)

    def _fresh(self) -> Mapping[str, Any]:
        if self._query is not None:
            self.take(self._query)
        return self._final

    def figures(self) -> Figures:
        told = self._fresh()
        with self._lock:
            seconds = tuple(each[2] for each in self._batches)
            rate = _processed_rate(told) or 0.0
            return Figures(self._all_totals(), seconds, rate, sst_bytes(told), self._sensors(time.monotonic()))

    def _sensors(self, now: float) -> dict[str, tuple[int, float]]:
        counts = {name.removeprefix(SENSOR): n for name, n in self._counted().items() if name.startswith(SENSOR)}
        self._looks = [*(look for look in self._looks if look[0] >= now - WINDOW_S), (now, counts)]
        since, before = self._looks[0]
        passed = max(now - since, 1e-9)
        return {name: (number, (number - before.get(name, 0)) / passed) for name, number in counts.items()}

    def _all_totals(self) -> dict[str, int]:
        return {**self._totals, "dropped": self._totals["dropped"] + sum(self._by_reason().values())}

    def _by_reason(self) -> Counts:
        return {name: number for name, number in self._counted().items() if not name.startswith(SENSOR)}

    def _counted(self) -> Counts:
        return _Adding().addInPlace(dict(self._dropped.value), self._left_out)

    def status(self) -> Mapping[str, Any]:
        told = self._fresh()
        with self._lock:
            totals = self._all_totals()
        return {
            "query": self.name,
            "batch": self._batch,
            **totals,
            "input-rows-per-second": told.get("inputRowsPerSecond"),
            "processed-rows-per-second": _processed_rate(told),
            "lag": lag(told),
            "state-bytes": state_bytes(told),
            "duration-ms": told.get("durationMs"),
            "dropped-by-reason": self._by_reason(),
            "offsets": [source.get("endOffset") for source in told.get("sources", [])],
        }


def _newer(query: StreamingQuery, than: str) -> list[dict[str, Any]]:
    """Reports of triggers that began later, in order. By time, as a trigger without data reports the number of the
    batch that is still to come. Only these are turned into JSON: of a hundred there is mostly one."""
    recent: Any = query._jsq.recentProgress()
    found: list[dict[str, Any]] = []
    for place in range(len(recent) - 1, -1, -1):
        if recent[place].timestamp() <= than:
            break
        found.append(json.loads(recent[place].json()))
    return found[::-1]


def lag(told: Mapping[str, Any]) -> int | None:
    """Records that were there and not read when the report was made; None before the first."""
    behind = None
    for source in told.get("sources", []):
        ends, latest = _places(source.get("endOffset")), _places(source.get("latestOffset"))
        missing = sum(max(offset - ends.get(place, 0), 0) for place, offset in latest.items())
        behind = (behind or 0) + missing
    return behind


def _places(offsets: Any) -> dict[tuple[str, str], int]:
    document = json.loads(offsets) if isinstance(offsets, str) else offsets
    if not isinstance(document, dict):
        return {}
    return {(topic, number): at for topic, parts in document.items() for number, at in parts.items()}


def state_bytes(told: Mapping[str, Any]) -> int:
    """Of Spark's state, on disk and in memory."""
    return sst_bytes(told) + sum(int(each.get("memoryUsedBytes", 0)) for each in told.get("stateOperators", []))


def sst_bytes(told: Mapping[str, Any]) -> int:
    found = (each.get("customMetrics", {}) for each in told.get("stateOperators", []))
    return sum(int(custom.get("rocksdbSstFileSize", 0)) for custom in found)


def _add_observed(left_out: Counts, observed: Mapping[str, Any]) -> None:
    for name, told in observed.items():
        pairs = [(each["key"], each["value"]) for each in told] if name == OBSERVED_ENTRIES else [(name, told)]
        for reason, number in pairs:
            if number:
                left_out[reason] = left_out.get(reason, 0) + number


def _observed(told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = told.get("observedMetrics", {})
    return {name: dict(row) for name, row in found.items()}


def _read(told: Mapping[str, Any]) -> int:
    found: int = _observed(told).get(OBSERVED_READ, {}).get("records", told.get("numInputRows", 0))
    return found


def _processed_rate(told: Mapping[str, Any]) -> float | None:
    milliseconds = told.get("durationMs", {}).get("triggerExecution")
    return 1000 * _read(told) / milliseconds if milliseconds else None
