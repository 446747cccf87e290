"""What a connector has done so far, for people and for metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.connect.dead_letters import Letter, LetterPolicy
from ottla.connect.jobs.reports import Counts, SinkReport, SourceReport
from ottla.connect.jobs.task_numbers import TaskNumbers
from ottla.connect.measures import Measures
from ottla.connect.providers import masked
from ottla.connect.spi import Observed

logger = logging.getLogger(__name__)

LOGGED_LETTERS: Final = 10
"""Of one batch."""


class Outcome(NamedTuple):
    """Of one batch."""

    counts: Counts
    topics: Iterable[str]
    letters: Sequence[Letter] = ()
    observed: Sequence[Observed] = ()


class Account:
    def __init__(self, name: str, policy: LetterPolicy, secrets: Sequence[str]) -> None:
        self._name = name
        self._policy = policy
        self._secrets = secrets
        self._counts = Counts()
        self._batches = 0
        self._tasks: dict[int, TaskNumbers] = {}
        self._topics: dict[str, None] = {}
        self._last_error_ms: int | None = None
        self._alerted: set[str] = set()
        """What was logged, by what stands before its colon, and still holds."""
        self._measures = Measures()

    def take(self, outcome: Outcome, reports: Sequence[SourceReport | SinkReport] = (), commit_ms: float = 0.0) -> None:
        """`reports`: what it is made of. `commit_ms`: how long it took to commit them."""
        now_ms = _now_ms()
        for report in reports:
            known = self._tasks.setdefault(report.task, TaskNumbers(is_source=isinstance(report, SourceReport)))
            counts = report.counts if self._policy.topic else report.counts._replace(letters=0)
            known.take(report._replace(counts=counts), commit_ms, now_ms, logs=self._policy.log)
        self._batches += 1
        self._counts = self._counts.plus(outcome.counts)
        self._topics.update(dict.fromkeys(outcome.topics))
        self.observe(outcome.observed)
        if outcome.counts.failed:
            self._last_error_ms = _now_ms()
        self._log(outcome.letters)

    def observe(self, observed: Sequence[Observed]) -> None:
        self._measures.take(observed, _now_ms())

    def alert(self, alerts: Sequence[str]) -> None:
        for each in alerts:
            if each.partition(":")[0] not in self._alerted:
                logger.warning("%s: %s", self._name, masked(each, self._secrets))
        self._alerted = {each.partition(":")[0] for each in alerts}

    def told(self) -> Mapping[str, Any]:
        return {
            "counts": self._counts._asdict(),
            "batches": self._batches,
            "topics": list(self._topics),
            "last-error-timestamp": self._last_error_ms,
            "tasks": {str(number): numbers.told(_now_ms()) for number, numbers in sorted(self._tasks.items())},
            "measures": self._measures.samples(_now_ms()),
        }

    def _log(self, letters: Sequence[Letter]) -> None:
        if not self._policy.log:
            return
        for letter in letters[:LOGGED_LETTERS]:
            content = f": key {letter.key!r}, value {letter.value!r}" if self._policy.log_messages else ""
            failure = letter.failure
            said = f"{letter.where} failed in {failure.stage} ({failure.class_name}): {failure.message}{content}"
            logger.error("%s: %s", self._name, masked(said, self._secrets))
        if len(letters) > LOGGED_LETTERS:
            logger.error("%s: and %d more of this batch", self._name, len(letters) - LOGGED_LETTERS)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
