"""How Spark plans the micro-batches of a source, and what its tasks do: a data source whose rows are reports.

Spark's offset only numbers batches; where the source stands is in a small file that the driver writes after each commit
(`standing`). Whether there is something to read is found out here, in the one process that a query has for planning, by
reading a little: what was read goes along to the task, so nothing is asked of the outside twice, and an idle source
costs no batch. While there is more than that, tasks read for themselves.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.connect.jobs.reports import Counts, Failed, SourceReport
from ottla.connect.jobs.retrying import Retrying
from ottla.connect.jobs.sink_reader import REPORTS, report_row
from ottla.connect.jobs.source_task import LIMIT, PEEK, Part, SourceTask, partition_text
from ottla.connect.jobs.spec import JobSpec, opened_source
from ottla.connect.jobs.standing import Standing, Stands
from ottla.connect.jobs.workers import forget, kept
from ottla.connect.spi import Partition, Read, Source
from ottla.pipelines.sink.writer import Errand, connected
from ottla.pipelines.workers import settle_worker

ERRANDS: Final = "ottla.connect.errands"
"""A local property of the driver's thread, which tasks can read: by number of the task, what its transaction is."""
BATCH: Final = "batch"
PARTITIONS_AGE_S: Final = 10.0
"""How late a new source partition may be noticed."""


class Share(InputPartition):
    """What one task reads."""

    def __init__(self, task: int, parts: Sequence[Part]) -> None:
        super().__init__(task)
        self.task = task
        self.parts = parts


class _Watched(NamedTuple):
    source: Source[Any]
    partition: Partition


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance in a process of its own plans; tasks have copies."""

    def __init__(self, spec: JobSpec, standing: Standing) -> None:
        self._spec = spec
        self._standing = standing
        self._watched: dict[str, _Watched] = {}
        self._listed_at = float("-inf")
        self._next_look: dict[str, float] = {}
        self._peeked: dict[str, Read] = {}

    def initialOffset(self) -> dict[str, Any]:
        return {BATCH: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there when it is looked at counts."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        stands = self._standing.read()
        self._peeked.clear()
        self._list()
        if stands.full or self._peek(stands):
            return {BATCH: int(start[BATCH]) + 1}
        return start

    def _list(self) -> None:
        """Which partitions there are."""
        now = time.monotonic()
        if now - self._listed_at < PARTITIONS_AGE_S:
            return
        self._listed_at = now
        asked = opened_source(self._spec)
        try:
            partitions = asked.partitions()
        finally:
            asked.close()
        names = {partition_text(each): each for each in partitions}
        for gone in [name for name in self._watched if name not in names]:
            self._watched.pop(gone).source.close()
        for name, partition in names.items():
            if name not in self._watched:
                self._watched[name] = _Watched(opened_source(self._spec, partition), partition)

    def _peek(self, stands: Stands) -> bool:
        """Whether some partition has something."""
        now = time.monotonic()
        for name, watched in self._watched.items():
            if self._next_look.get(name, 0.0) > now and not self._spec.once:
                continue
            start = stands.start(watched.partition)
            if watched.source.is_done(start):
                continue
            read = Retrying(self._spec.policy).run(lambda: watched.source.read(start, PEEK))  # noqa: B023
            if len(_rows(read)) or (read.end is not None and read.end != start):
                self._peeked[name] = read
            if not read.has_more(PEEK):
                self._next_look[name] = now + watched.source.poll_interval_ms() / 1000
        return bool(self._peeked)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        stands = self._standing.read()
        self._list()
        named = [
            (name, watched.partition)
            for name, watched in self._watched.items()
            if not self._peeked or name in self._peeked
        ]
        tasks = max(1, min(self._spec.tasks, len(named)))
        shares: list[list[Part]] = [[] for _ in range(tasks)]
        for nth, (name, partition) in enumerate(named):
            part = Part(partition, stands.start(partition), stands.key(partition), self._peeked.get(name))
            shares[nth % tasks].append(part)
        return [Share(number, share) for number, share in enumerate(shares) if share]

    def commit(self, end: dict[str, Any]) -> None:
        """The batch before is out: those who need an acknowledgement get it."""
        stands = self._standing.read()
        for watched in self._watched.values():
            at = stands.start(watched.partition)
            if at is not None:
                watched.source.written(at)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Share):
            return
        settle_worker()
        errand = _errand(partition.task)
        cluster = connected(errand.bootstrap_servers, errand.timeout_s)
        try:
            task = kept(SourceTask, self._spec)
        except Exception as error:  # noqa: BLE001  a connector may raise anything when it is opened
            yield report_row(SourceReport(partition.task, Counts(), failed=Failed.of(error)))
            return
        report = task.run(partition.task, partition.parts, LIMIT, cluster, errand)
        if report.failed is not None:
            forget(self._spec)
        yield report_row(report)

    def stop(self) -> None:
        for watched in self._watched.values():
            watched.source.close()
        self._watched.clear()


def _rows(read: Read) -> Any:
    return read.rows.values if hasattr(read.rows, "values") else read.rows


def errands_text(errands: dict[int, Errand]) -> str:
    return base64.b64encode(pickle.dumps(errands)).decode()


def _errand(task: int) -> Errand:
    context = TaskContext.get()
    assert context is not None, "this runs inside a task"
    text = context.getLocalProperty(ERRANDS)
    assert text is not None, "a batch of a source is run by its query alone"
    found: Errand = pickle.loads(base64.b64decode(text))[task]
    return found


def source_source(spec: JobSpec, standing: Standing) -> type[DataSource]:
    """A data source of this job alone; see `sink_reader.sink_source`."""

    class ConnectSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ottla-connect-source"

        def schema(self) -> StructType:
            return REPORTS

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return SourceReader(spec, standing)

    return ConnectSource
