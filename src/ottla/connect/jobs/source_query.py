"""A source on the driver's side: hands out transactions to tasks, and ends them.

Each task has a transaction of its own, as in Kafka: id `<group>-<connector>-<task>`. It holds the records, the dead
letters and the source offsets of what the task has read, so each of them is whole whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.producing import CODECS
from ottla.client.reach import Reach
from ottla.connect.jobs.account import Outcome
from ottla.connect.jobs.boundary import Boundary
from ottla.connect.jobs.feed import Work
from ottla.connect.jobs.internal_topics import ensure_letters, ensure_offsets
from ottla.connect.jobs.looking import Pause
from ottla.connect.jobs.query import BatchFailed
from ottla.connect.jobs.reports import Counts, Failed, SourceReport
from ottla.connect.jobs.source_planning import Share, SourcePlanner, source_work
from ottla.connect.jobs.spec import JobSpec, opened_source
from ottla.connect.jobs.standing import Stands, read_positions
from ottla.connect.spi import ConfigRefused, Observed
from ottla.model.errors import Errors
from ottla.pipelines.sink.transaction import FENCING, Sequences, Transaction
from ottla.pipelines.sink.writer import Errand

TIMEOUT_S: Final = 60.0
TRANSACTION_TIMEOUT_MS: Final = 5 * 60_000


class _Task:
    """The transaction of one task."""

    __slots__ = ("reach", "sequences", "transaction")

    def __init__(self, cluster: Cluster, reach: Reach, name: str) -> None:
        self.reach = reach
        self.transaction = Transaction(cluster, name, timeout_ms=TRANSACTION_TIMEOUT_MS)
        self.sequences = Sequences()

    def errand(self, spec: JobSpec) -> Errand:
        sender = self.transaction.sender
        return Errand(
            reach=self.reach,
            transactional_id=self.transaction.name,
            sender=sender,
            second=self.transaction.second,
            sequences=dict(self.sequences.of(sender)),
            timeout_s=TIMEOUT_S,
            codec=codec_of(spec),
        )


def codec_of(spec: JobSpec) -> int:
    """Raises ConfigRefused."""
    said = (spec.client_settings("producer").get("compression.type") or "none").strip().lower()
    if said not in CODECS:
        raise ConfigRefused("producer.override.compression.type", f"{said} is none of {', '.join(CODECS)}")
    return CODECS[said]


class SourceDelivery:
    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self.gather_ms = Boundary.of(spec.config).gather_ms
        self._spec = spec
        codec_of(spec)
        opened_source(spec).close()
        self._cluster, reach = spec.cluster("producer", TIMEOUT_S), spec.reach("producer")
        count = max(spec.tasks, 1)
        self._tasks = [_Task(self._cluster, reach, spec.transactional_id(number)) for number in range(count)]
        self._planner = SourcePlanner(spec)
        self._stands = Stands(spec.name, {})

    def open(self) -> Work:
        with self._spec.cluster("admin", TIMEOUT_S) as cluster:
            ensure_offsets(cluster, self._spec.offsets_topic)
            ensure_letters(cluster, self._spec.policy)
        # In this order: positions count only when everything that was ever written before is decided.
        for task in self._tasks:
            task.transaction.initialise()
        with self._spec.cluster("consumer", TIMEOUT_S) as cluster:
            self._stands = read_positions(cluster, self._spec.offsets_topic, self._spec.name)
        return source_work(self._spec)

    def close(self) -> None:
        self._planner.close()
        self._cluster.close()

    def look(self, pause: Pause) -> Sequence[Share]:
        errands = {number: task.errand(self._spec) for number, task in enumerate(self._tasks)}
        return self._planner.look(self._stands, errands, pause)

    def rest_s(self) -> float:
        return self._planner.rest_s()

    def observed(self) -> Sequence[Observed]:
        return self._planner.observed

    def alerts(self) -> Sequence[str]:
        return self._planner.alerts

    def settle(self, reports: Sequence[SourceReport]) -> Outcome:
        failed = next((report for report in reports if report.failed is not None), None)
        if failed is not None:
            self._abort(reports)
            raise self._failure(failed)
        for report in reports:
            self._commit(report)
        counts = Counts()
        for report in reports:
            counts = counts.plus(report.counts)
        self._moved(reports)
        topics = dict.fromkeys(topic for report in reports for topic in report.topics)
        letters = [letter for report in reports for letter in report.letters]
        return Outcome(counts, topics, letters, [each for report in reports for each in report.observed])

    def _commit(self, report: SourceReport) -> None:
        if not report.written:
            return
        task = self._tasks[report.task]
        sender = task.transaction.sender
        for place, records in report.written.items():
            task.sequences.wrote(sender, place, records)
        task.transaction.commit()

    def _abort(self, reports: Sequence[SourceReport]) -> None:
        """The query stops: whoever starts next would do it as well, but readers need not wait for that."""
        for report in reports:
            self._tasks[report.task].transaction.abort()

    def _failure(self, report: SourceReport) -> ClientError | BatchFailed:
        assert report.failed is not None
        if report.failed.code and Errors(report.failed.code) in FENCING:
            refusal = self._tasks[report.task].transaction.refused()
            return BatchFailed(Failed(str(refusal), ""))
        return BatchFailed(report.failed)

    def _moved(self, reports: Sequence[SourceReport]) -> None:
        """For the next batch."""
        ends = [end for report in reports for end in report.ends]
        self._stands = self._stands.moved(ends, full=any(report.full for report in reports))
