"""How Spark plans the micro-batches of a sink, and what its tasks do: a data source whose rows are reports.

The planning is that of `pipelines.source`: offsets by wire, a backlog in portions of about a second.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.connect.jobs.reports import Counts, Failed, SinkReport
from ottla.connect.jobs.sink_task import SinkTask, spi_columns
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.workers import forget, kept
from ottla.connect.spi import Columns
from ottla.connect.spi import Span as SpiSpan
from ottla.pipelines.source.data_source import OttlaStreamReader, Span, columns_of
from ottla.pipelines.source.options import SourceOptions

REPORTS: Final = StructType([StructField("report", BinaryType())])
_ARROW: Final = pa.schema([("report", pa.binary())])


def report_row(report: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(report)], pa.binary())], schema=_ARROW)


class Portion(InputPartition):
    """What one task writes."""

    def __init__(self, task: int, spans: Sequence[Span]) -> None:
        super().__init__(task)
        self.task = task
        self.spans = spans


class SinkReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance in a process of its own plans; tasks have copies."""

    def __init__(self, spec: JobSpec, options: SourceOptions, first_records: int) -> None:
        self._spec = spec
        self._options = options
        self._planner = OttlaStreamReader(options, first_records)

    def initialOffset(self) -> dict[str, Any]:
        return self._planner.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        return self._planner.getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.prepareForTriggerAvailableNow()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._planner.latestOffset(start, limit)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._planner.reportLatestOffset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        spans = [each for each in self._planner.partitions(start, end) if isinstance(each, Span)]
        portions: list[list[Span]] = [[] for _ in range(max(1, min(self._spec.tasks, len(spans))))]
        # The largest first, each to whoever has least.
        for span in sorted(spans, key=lambda each: each.start - each.end):
            min(portions, key=lambda portion: sum(each.end - each.start for each in portion)).append(span)
        return [
            Portion(number, sorted(portion, key=lambda span: span.place))
            for number, portion in enumerate(portions)
            if portion
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Portion):
            return
        spans = [SpiSpan(*span.place, span.start, span.end) for span in partition.spans]
        try:
            task = kept(SinkTask, self._spec)
        except Exception as error:  # noqa: BLE001  a connector may raise anything when it is opened
            yield report_row(SinkReport(partition.task, Counts(), (), Failed.of(error)))
            return
        report = task.run(partition.task, spans, self._columns(partition.spans))
        if report.failed is not None:
            forget(self._spec)
        yield report_row(report)

    def _columns(self, spans: Sequence[Span]) -> Iterator[Columns]:
        for span in spans:
            for found in columns_of(self._options, span):
                yield spi_columns(*span.place, found)

    def stop(self) -> None:
        self._planner.stop()


def sink_source(spec: JobSpec, options: SourceOptions, first_records: int) -> type[DataSource]:
    """A data source of this job alone. Its config travels inside the class, which is sent to tasks as bytes: options of
    Spark's would be shown in plans and logs, and there are secrets among it."""

    class ConnectSink(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ottla-connect-sink"

        def schema(self) -> StructType:
            return REPORTS

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return SinkReader(spec, options, first_records)

    return ConnectSink
