"""What a query did: batches, records read, written and left out, and how long it took."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ottla.pipelines.sink.sink import Written

OBSERVED_DROPS: Final = "ottla-dropped"
"""Names of what Spark observes begin with it, where a native plan leaves out records: a column for each reason."""
OBSERVED_READ: Final = "ottla-read"
"""Where rows of the source are no records: the column `records` tells how many there were."""
WINDOW_S: Final = 30.0
"""Rates are taken over the last so many seconds, as Kafka's are."""


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


class Figures(NamedTuple):
    """At one moment."""

    totals: Mapping[str, int]
    """By name: batches, written, read, dropped."""
    batch_seconds: Sequence[float]
    """How long each of the last WINDOW_S took to be written."""
    read_per_second: float


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
        self._seen = -1
        self._final: Mapping[str, Any] | None = None

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

    def last(self, query: StreamingQuery | None) -> None:
        """Takes what Spark tells before the query is gone."""
        if query is not None:
            self._take(query)
        self._query = None

    def _take(self, query: StreamingQuery) -> None:
        for each in query.recentProgress:
            told = each if isinstance(each, dict) else json.loads(each.json)
            batch = told["batchId"]
            if batch <= self._seen:
                continue
            self._seen = batch
            self._final = told
            with self._lock:
                self._count(told)

    def _count(self, told: Mapping[str, Any]) -> None:
        self._totals["read"] += _read(told)
        for name, counts in _observed(told).items():
            if name.startswith(OBSERVED_DROPS):
                _Adding().addInPlace(self._left_out, {reason: number for reason, number in counts.items() if number})
        for state in told.get("stateOperators", []):
            self._totals["dropped"] += state.get("numRowsDroppedByWatermark", 0)

    def _fresh(self) -> Mapping[str, Any]:
        if self._query is not None:
            self._take(self._query)
        return self._final or {}

    def figures(self) -> Figures:
        self._fresh()
        with self._lock:
            seconds = tuple(each[2] for each in self._batches)
            return Figures(self._all_totals(), seconds, _processed_rate(self._final or {}) or 0.0)

    def _all_totals(self) -> dict[str, int]:
        return {**self._totals, "dropped": self._totals["dropped"] + sum(self._by_reason().values())}

    def _by_reason(self) -> Counts:
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
            "duration-ms": told.get("durationMs"),
            "dropped-by-reason": self._by_reason(),
            "offsets": [source.get("endOffset") for source in told.get("sources", [])],
        }


def _observed(told: Mapping[str, Any]) -> dict[str, Counts]:
    found = told.get("observedMetrics", {})
    return {name: row.asDict() if isinstance(row, Row) else dict(row) for name, row in found.items()}


def _read(told: Mapping[str, Any]) -> int:
    found: int = _observed(told).get(OBSERVED_READ, {}).get("records", told.get("numInputRows", 0))
    return found


def _processed_rate(told: Mapping[str, Any]) -> float | None:
    milliseconds = told.get("durationMs", {}).get("triggerExecution")
    return 1000 * _read(told) / milliseconds if milliseconds else None
