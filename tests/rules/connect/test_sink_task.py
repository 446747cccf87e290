"""A target that is away for a moment is waited for, whatever it was about to be asked."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ottla.connect import spi
from ottla.connect.jobs.sink_task import MOST_TOLERATED, SHORT_TRACE, WHOLE_TRACES, SinkTask
from ottla.connect.jobs.spec import JobSpec


class Away(spi.Sink[spi.Config]):
    """For the first time that each of its functions is called."""

    def __init__(self) -> None:
        super().__init__(spi.Config(), "away")
        self.called: list[str] = []

    def _call(self, what: str) -> None:
        self.called.append(what)
        if self.called.count(what) == 1:
            raise spi.TryAgain("the target restarts")

    def begin(self, spans: Sequence[spi.Span]) -> None:
        self._call("begin")

    def end(self) -> spi.Verdicts:
        self._call("end")
        return ()


def test_what_begins_and_ends_a_batch_is_tried_again_as_what_writes_it() -> None:
    config = {"connector.class": "FileStreamSink", "errors.retry.delay.max.ms": "1"}
    spec = JobSpec(
        "away",
        config,
        "",
        "",
        "",
        "",
        {
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        },
    )
    sink = Away()
    report = SinkTask(spec, sink).run(0, [spi.Span("t", 0, 0, 1)], iter(()))
    assert report.failed is None
    assert sink.called == ["begin", "begin", "end", "end"]
    assert report.counts.retries == 2


class Hesitant(spi.Sink[spi.Config]):
    """Yields its verdicts, and its target is away when it is asked for the first time."""

    def __init__(self) -> None:
        super().__init__(spi.Config(), "hesitant")
        self.asked = 0

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        yield spi.Refused(0, "the first is no good")
        self.asked += 1
        if self.asked == 1:
            raise spi.TryAgain("the target restarts")


def test_one_that_yields_its_verdicts_is_tried_again_as_well() -> None:
    text = "org.apache.kafka.connect.storage.StringConverter"
    config = {"connector.class": "FileStreamSink", "errors.tolerance": "all", "errors.retry.delay.max.ms": "1"}
    config |= {"key.converter": text, "value.converter": text}
    sink = Hesitant()
    columns = spi.Columns("t", 0, pa.nulls(2, pa.binary()), pa.array([b"v"] * 2), np.arange(2), np.zeros(2, np.int64))
    report = SinkTask(JobSpec("hesitant", config, "", "", "", ""), sink).run(
        0, [spi.Span("t", 0, 0, 2)], iter((columns,))
    )
    assert (report.failed, sink.asked, report.counts.retries) == (None, 2, 1)
    assert [letter.offset for letter in report.letters] == [0]


class Picky(spi.Sink[spi.Config]):
    """Takes nothing."""

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        return [spi.Refused(at, "-" * 5_000) for at in range(len(batch.records))]


def test_however_many_are_refused_they_become_letters_and_traces_are_told_in_few() -> None:
    text = "org.apache.kafka.connect.storage.StringConverter"
    config = {"connector.class": "FileStreamSink", "errors.tolerance": "all", "value.converter": text}
    task = SinkTask(JobSpec("picky", {**config, "key.converter": text}, "", "", "", ""), Picky(spi.Config(), "picky"))
    count = 100_100
    columns = spi.Columns(
        "t", 0, pa.nulls(count, pa.binary()), pa.array([b"v"] * count), np.arange(count), np.zeros(count, np.int64)
    )
    report = task.run(0, [spi.Span("t", 0, 0, count)], iter((columns,)))
    assert (report.failed, len(report.letters), report.counts.failed) == (None, count, count)
    traces = [len(letter.failure.trace) for letter in report.letters]
    assert traces == [5_000] * WHOLE_TRACES + [SHORT_TRACE] * (count - WHOLE_TRACES)
    assert task.most_records == MOST_TOLERATED
