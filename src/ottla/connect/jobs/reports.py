"""What a task tells the driver: a few lines, never records, but for those that become dead letters of a sink."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.errors import ClientError, KafkaError
from ottla.client.transacting import Fenced
from ottla.connect.dead_letters import MOST_TRACE, Letter
from ottla.connect.providers import masked
from ottla.connect.spi import Observed
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition


class Failed(NamedTuple):
    """Why the task could not go on."""

    text: str
    trace: str
    code: int = 0
    """Of a broker's refusal: the driver finds out whether somebody else took over."""

    @classmethod
    def of(cls, error: BaseException, secrets: Sequence[str], before: str = "") -> Failed:
        """Without the secrets: the host logs it. What a broker answers, or the way to it, is told by its text: where we
        heard of it says nothing to anybody."""
        where = "" if isinstance(error, ClientError) else "".join(traceback.format_exception(error))
        trace = masked(where, secrets)[-MOST_TRACE:]
        text = masked(str(error), secrets) or type(error).__name__
        return cls(f"{before}{text}", trace, _code(error))

    def masked(self, secrets: Sequence[str]) -> Failed:
        return self._replace(text=masked(self.text, secrets), trace=masked(self.trace, secrets))


def _code(error: BaseException) -> int:
    if isinstance(error, KafkaError):
        return int(error.error)
    if isinstance(error, Fenced):
        return int(Errors.PRODUCER_FENCED)
    return int(Errors.NETWORK_EXCEPTION) if isinstance(error, ClientError) else 0


class Counts(NamedTuple):
    """Of one task in one micro-batch."""

    read: int = 0
    written: int = 0
    skipped: int = 0
    """By a filter."""
    failed: int = 0
    """Records that were no good."""
    retries: int = 0
    letters: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*(mine + others for mine, others in zip(self, other, strict=True)))


class Calls(NamedTuple):
    """Of a connector's `read` or `write`."""

    times: int = 0
    total_ms: float = 0.0
    most_ms: float = 0.0

    def plus(self, ms: float) -> Calls:
        return Calls(self.times + 1, self.total_ms + ms, max(self.most_ms, ms))


class SourceReport(NamedTuple):
    task: int
    counts: Counts
    ends: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = ()
    """By source partition: where the next read begins."""
    written: Mapping[TopicPartition, int] = {}
    topics: Sequence[str] = ()
    full: bool = False
    """A read gave as many records as it was asked for: there is more."""
    letters: Sequence[Letter] = ()
    """For the log; they are written already."""
    observed: Sequence[Observed] = ()
    """Metrics of the connector's own."""
    failed: Failed | None = None
    calls: Calls = Calls()


class SinkReport(NamedTuple):
    task: int
    counts: Counts
    letters: Sequence[Letter] = ()
    failed: Failed | None = None
    calls: Calls = Calls()
