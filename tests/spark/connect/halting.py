"""Connectors that halt at a step of their first batch, in a Spark host: whoever waits for them kills something then."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.connect.jobs.feed import Work
from ottla.connect.jobs.looking import Pause
from ottla.connect.jobs.query import ConnectorWork, Delivering
from ottla.connect.jobs.reports import SinkReport, SourceReport
from ottla.connect.jobs.sink_planning import Portion, columns_in
from ottla.connect.jobs.sink_query import SinkDelivery
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.source_planning import Share
from ottla.connect.jobs.source_query import SourceDelivery
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.workers import kept
from ottla.connect.plugins import PluginType
from ottla.connect.spi import Columns
from ottla.connect.spi import Span as SpiSpan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRY: Final = "tests.spark.connect.halting:start"
PLANNED: Final = "when the batch is planned"
IN_TASK: Final = "in the task, with all of it written and nothing told"
WRITTEN: Final = "when all is written, before our commit"
COMMITTED: Final = "after our commit, before Spark's"
STEPS: Final = (PLANNED, IN_TASK, WRITTEN, COMMITTED)
NOWHERE: Final = ""


class Halt(NamedTuple):
    """`folder` has a file for each connector that has come to the step, and one that lets all of them go on."""

    folder: str
    name: str
    step: str

    def at(self, step: str) -> None:
        mark = Path(self.folder, f"{self.name}.reached")
        if step != self.step or mark.exists():
            return
        mark.touch()
        while not Path(self.folder, "go").exists():
            time.sleep(0.02)


def start(spark: "SparkSession", arguments: Mapping[str, Any]) -> ConnectorWork:
    spec = JobSpec.of(arguments["spec"])
    halt = Halt(arguments["folder"], spec.name, arguments["step"])
    is_source = spec.plugin().PLUGIN_TYPE is PluginType.SOURCE
    delivering: Delivering = HaltingSource(spec, halt) if is_source else HaltingSink(spec, halt)
    return ConnectorWork(spark, spec, delivering)


class HaltingSource(SourceDelivery):
    def __init__(self, spec: JobSpec, halt: Halt) -> None:
        super().__init__(spec)
        self._halt = halt

    def open(self) -> Work:
        work, halt = super().open(), self._halt

        def halting(share: Share) -> object:
            report = work(share)
            halt.at(IN_TASK)
            return report

        return halting

    def look(self, pause: Pause) -> Sequence[Any]:
        portions = super().look(pause)
        if portions:
            self._halt.at(PLANNED)
        return portions

    def _commit(self, report: SourceReport) -> None:
        self._halt.at(WRITTEN)
        super()._commit(report)
        self._halt.at(COMMITTED)


class HaltingSink(SinkDelivery):
    def __init__(self, spec: JobSpec, halt: Halt) -> None:
        super().__init__(spec)
        self._halt = halt

    def open(self) -> Work:
        super().open()
        spec, options, halt = self._spec, self._options(), self._halt

        def all_of(portion: Portion) -> Iterator[Columns]:
            yield from columns_in(options, portion.spans)
            halt.at(IN_TASK)

        def halting(portion: Portion) -> SinkReport:
            spans = [SpiSpan(*span.place, span.start, span.end) for span in portion.spans]
            return kept(SinkTask, spec).run(portion.task, spans, all_of(portion))

        return halting

    def look(self, pause: Pause) -> Sequence[Any]:
        portions = super().look(pause)
        if portions:
            self._halt.at(PLANNED)
        return portions

    def _commit(self, ends: Any, letters: Any) -> None:
        self._halt.at(WRITTEN)
        super()._commit(ends, letters)
        self._halt.at(COMMITTED)
