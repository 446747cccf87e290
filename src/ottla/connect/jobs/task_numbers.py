"""What one task has done, under the names of Connect's metrics. A core: time comes in with what is told.

A number that nobody knows yet is not there: an average of nothing would be a zero that looks like a fast one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.connect.jobs.reports import Counts, SinkReport, SourceReport
from ottla.connect.measures import Measures
from ottla.connect.spi import VALUE, Observed

_TIMES: Final = ("poll-batch", "put-batch", "offset-commit")
"""`put-batch-avg-time-ms`; sizes are `batch-size-avg`."""


class TaskNumbers:
    __slots__ = ("_commits", "_counts", "_is_source", "_last_error_ms", "_logged", "_measures")

    def __init__(self, *, is_source: bool) -> None:
        self._is_source = is_source
        self._counts = Counts()
        self._commits = 0
        self._logged = 0
        self._last_error_ms = 0
        self._measures = Measures()

    def take(self, report: SourceReport | SinkReport, commit_ms: float, now_ms: int, *, logs: bool) -> None:
        """Of one micro-batch that was committed."""
        counts = report.counts
        self._counts = self._counts.plus(counts)
        self._commits += 1
        if counts.failed:
            self._last_error_ms = now_ms
            self._logged += counts.failed if logs else 0
        seen = [_value("batch-size", counts.read), _value("offset-commit", commit_ms)]
        if report.calls.times:
            times, total_ms, most_ms = report.calls
            name = "poll-batch" if self._is_source else "put-batch"
            seen.append(Observed("", name, VALUE, (), total_ms, times, total_ms / times, most_ms, most_ms))
        if self._is_source:
            seen.append(_value("transaction-size", counts.written))
        self._measures.take(seen, now_ms)

    def told(self, now_ms: int) -> Mapping[str, float]:
        counts, failed = self._counts, self._counts.failed
        found: dict[str, float] = (
            {"source-record-poll-total": counts.read, "source-record-write-total": counts.written}
            if self._is_source
            else {
                "sink-record-read-total": counts.read,
                "sink-record-send-total": counts.written,
                "offset-commit-completion-total": self._commits,
                "offset-commit-seq-no": self._commits,
            }
        )
        found |= {
            "total-record-failures": failed,
            "total-record-errors": failed,
            "total-records-skipped": failed,
            "total-retries": counts.retries,
            "total-errors-logged": self._logged,
            "deadletterqueue-produce-requests": counts.letters,
            "deadletterqueue-produce-failures": 0,
            "last-error-timestamp": self._last_error_ms,
        }
        for sample in self._measures.samples(now_ms):
            base, _, part = sample.name.rpartition("-")
            if base in _TIMES and part in ("avg", "max"):
                found[f"{sample.name}-time-ms"] = sample.value
            elif base in ("batch-size", "transaction-size") and (part != "min" or base == "transaction-size"):
                found[sample.name] = sample.value
        return found


def _value(name: str, value: float) -> Observed:
    return Observed("", name, VALUE, (), value, 1, value, value, value)
