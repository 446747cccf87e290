"""What there is to do for a sink, and what its tasks do.

The planning is that of `pipelines.source`: offsets by wire, a backlog in portions of about two seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.connect.jobs.feed import Work
from ottla.connect.jobs.gathering import Gathering
from ottla.connect.jobs.reports import Counts, Failed, SinkReport
from ottla.connect.jobs.sink_task import SinkTask, spi_columns
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.workers import forget, kept
from ottla.connect.spi import Columns
from ottla.connect.spi import Span as SpiSpan
from ottla.model.ids import TopicPartition, uuid_text
from ottla.pipelines.sink.encoding import Sender
from ottla.pipelines.source.batch_size import BatchSize
from ottla.pipelines.source.data_source import OttlaStreamReader, Span, columns_of
from ottla.pipelines.source.offsets import from_json, to_json
from ottla.pipelines.source.options import SourceOptions

TARGET_S: Final = 2.0
"""A batch of a backlog takes about so long. What Spark does between two takes 0.1 s."""


class Portion(NamedTuple):
    """What one task writes."""

    task: int
    spans: Sequence[Span]
    topic_ids: Mapping[str, bytes]
    """Of all topics that are read."""
    sender: Sender | None = None
    """Under which it will be committed; None: by anybody."""


class SinkPlanner:
    """Where a sink stands in its topics. Asked by one thread."""

    def __init__(self, spec: JobSpec, options: SourceOptions, first_records: int, gathering: Gathering) -> None:
        self._tasks = spec.tasks
        self._reader = OttlaStreamReader(options)
        self._size = BatchSize(TARGET_S, first_records)
        self._gathering = gathering
        self._at = self._end = self._reader.initialOffset()
        if spec.once:
            self._reader.prepareForTriggerAvailableNow()

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """Of all partitions, also of those in which there was nothing new."""
        return from_json(self._end)

    def look(self) -> list[Portion]:
        """What lies behind where the last look's portions ended: they are written by now."""
        self._at = self._end
        begin, now = from_json(self._at), time.monotonic()
        latest = from_json(self._reader.latestOffset(self._at, ReadAllAvailable()))
        self._end = to_json(self._gathering.end(begin, latest, self._size.next(begin, now), now))
        spans = [each for each in self._reader.partitions(self._at, self._end) if isinstance(each, Span)]
        return portions_of(spans, self._tasks, dict(self._reader.topic_ids))

    @property
    def has_moved(self) -> bool:
        """Perhaps without a record: a partition that is new and empty is one to remember."""
        return from_json(self._at) != from_json(self._end)

    def close(self) -> None:
        self._reader.stop()


def portions_of(spans: Sequence[Span], tasks: int, topic_ids: Mapping[str, bytes]) -> list[Portion]:
    """The largest first, each to whoever has least."""
    shares: list[list[Span]] = [[] for _ in range(max(1, min(tasks, len(spans))))]
    for span in sorted(spans, key=lambda each: each.start - each.end):
        min(shares, key=lambda share: sum(each.end - each.start for each in share)).append(span)
    return [
        Portion(number, sorted(share, key=lambda span: span.place), topic_ids)
        for number, share in enumerate(shares)
        if share
    ]


def sink_work(spec: JobSpec, options: SourceOptions) -> Work:
    """In Spark's workers."""

    def work(portion: Any) -> SinkReport:
        assert isinstance(portion, Portion)
        try:
            task = kept(SinkTask, spec)
        except Exception as error:  # noqa: BLE001  a connector may raise anything when it is opened
            return SinkReport(portion.task, Counts(), (), Failed.of(error, spec.secrets))
        task.belongs_to(portion.sender)
        report = task.run(portion.task, told_spans(portion), columns_in(options, portion.spans))
        if report.failed is not None:
            forget(spec)
        return report

    return work


def told_spans(portion: Portion) -> list[SpiSpan]:
    """In the connector's terms."""
    named = {topic: uuid_text(each) for topic, each in portion.topic_ids.items() if any(each)}
    return [SpiSpan(*span.place, span.start, span.end, named.get(span.place.topic, "")) for span in portion.spans]


def columns_in(options: SourceOptions, spans: Sequence[Span]) -> Iterator[Columns]:
    for span in spans:
        for found in columns_of(options, span):
            yield spi_columns(*span.place, found)
