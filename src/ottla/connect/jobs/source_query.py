"""A source on the driver's side: hands out transactions to tasks, and ends them.

Each task has a transaction of its own, as in Kafka: id `<group>-<connector>-<task>`. It holds the records, the dead
letters and the source offsets of what the task has read, so each of them is whole whatever becomes of the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.producing import CODECS
from ottla.connect.jobs.internal_topics import ensure_letters, ensure_offsets
from ottla.connect.jobs.query import BatchFailed, Outcome, reports_of
from ottla.connect.jobs.reports import Counts, Failed, SourceReport
from ottla.connect.jobs.source_reader import ERRANDS, errands_text, source_source
from ottla.connect.jobs.spec import JobSpec, opened_source
from ottla.connect.jobs.standing import Standing, Stands, read_positions
from ottla.model.errors import Errors
from ottla.pipelines.sink.transaction import FENCING, Sequences, Transaction
from ottla.pipelines.sink.writer import Errand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.datasource import DataSource

TIMEOUT_S: Final = 60.0
TRANSACTION_TIMEOUT_MS: Final = 5 * 60_000


class _Task:
    """The transaction of one task."""

    __slots__ = ("sequences", "transaction")

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.transaction = Transaction(cluster, name, timeout_ms=TRANSACTION_TIMEOUT_MS)
        self.sequences = Sequences()

    def errand(self, spec: JobSpec, batch_id: int) -> Errand:
        sender = self.transaction.sender
        return Errand(
            bootstrap_servers=spec.bootstrap,
            transactional_id=self.transaction.name,
            sender=sender,
            second=self.transaction.second,
            batch_id=batch_id,
            sequences=dict(self.sequences.of(sender)),
            timeout_s=TIMEOUT_S,
            codec=CODECS[(spec.config.get("producer.override.compression.type") or "none").strip().lower()],
        )


class SourceDelivery:
    gather_ms = 0

    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self._spec = spec
        opened_source(spec).close()
        self._cluster = Cluster(parse_bootstrap(spec.bootstrap), client_id=f"connect-{spec.name}", timeout_s=TIMEOUT_S)
        self._tasks = [_Task(self._cluster, spec.transactional_id(number)) for number in range(max(spec.tasks, 1))]
        self._standing = Standing(str(Path(spec.directory, "standing")))
        self._stands = Stands(spec.name, {})

    def open(self) -> type[DataSource]:
        ensure_offsets(self._cluster, self._spec.offsets_topic)
        ensure_letters(self._cluster, self._spec.policy)
        # In this order: positions count only when everything that was ever written before is decided.
        for task in self._tasks:
            task.transaction.initialise()
        self._stands = read_positions(self._cluster, self._spec.offsets_topic, self._spec.name)
        Path(self._spec.directory).mkdir(parents=True, exist_ok=True)
        self._standing.write(self._stands)
        return source_source(self._spec, self._standing)

    def close(self) -> None:
        self._cluster.close()

    def write(self, rows: DataFrame, batch_id: int, checkpoint: str) -> Outcome:
        errands = {number: task.errand(self._spec, batch_id) for number, task in enumerate(self._tasks)}
        rows.sparkSession.sparkContext.setLocalProperty(ERRANDS, errands_text(errands))
        reports: list[SourceReport] = reports_of(rows)
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
        return Outcome(counts, topics, [letter for report in reports for letter in report.letters])

    def _commit(self, report: SourceReport) -> None:
        if not report.written:
            return
        task = self._tasks[report.task]
        sender = task.transaction.sender
        for place, records in report.written.items():
            task.sequences.wrote(sender, place, records)
        task.transaction.commit()

    def _abort(self, reports: list[SourceReport]) -> None:
        """The query stops: whoever starts next would do it as well, but readers need not wait for that."""
        for report in reports:
            self._tasks[report.task].transaction.abort()

    def _failure(self, report: SourceReport) -> ClientError | BatchFailed:
        assert report.failed is not None
        if report.failed.code and Errors(report.failed.code) in FENCING:
            refusal = self._tasks[report.task].transaction.refused()
            return BatchFailed(Failed(str(refusal), ""))
        return BatchFailed(report.failed)

    def _moved(self, reports: list[SourceReport]) -> None:
        """For the next batch."""
        ends = [end for report in reports for end in report.ends]
        self._stands = self._stands.moved(ends, full=any(report.full for report in reports))
        self._standing.write(self._stands)
