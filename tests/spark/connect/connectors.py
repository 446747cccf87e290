"""Connectors for the tests, started in the test's own session, and deliveries that die where they are told to."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.connect.jobs.looking import Pause
from ottla.connect.jobs.query import ConnectorWork
from ottla.connect.jobs.reports import SourceReport
from ottla.connect.jobs.sink_query import SinkDelivery
from ottla.connect.jobs.source_query import SourceDelivery
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.start import delivery
from tests.spark.applications import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
JSON: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}

PLANNED: Final = "when the batch is planned"
WRITTEN: Final = "when all is written, before our commit"
COMMITTED: Final = "after our commit, before Spark's"
POINTS: Final = (PLANNED, WRITTEN, COMMITTED)


class Died(Exception):
    """Stands for a process that is gone: nothing is cleaned up on the way."""


def spec_of(world: World, name: str, config: Mapping[str, str], *, tasks: int = 1, once: bool = True) -> JobSpec:
    return JobSpec(
        name=f"{world.name}-{name}",
        config=dict(config),
        bootstrap=world.bootstrap,
        group_id="connect-tests",
        offsets_topic=f"{world.name}.offsets",
        directory=str(world.directory / name),
        defaults=TEXTS,
        tasks=tasks,
        once=once,
    )


def run(spark: "SparkSession", spec: JobSpec) -> Mapping[str, Any]:
    """Until all is done. Raises ConnectorStopped."""
    work = ConnectorWork(spark.newSession(), spec, delivery(spec))
    work.run()
    return work.progress()


def run_and_die(spark: "SparkSession", spec: JobSpec, point: str, batch: int) -> Mapping[str, Any]:
    """As `run`, but for that one step."""
    kind = MortalSource if isinstance(delivery(spec), SourceDelivery) else MortalSink
    work = ConnectorWork(spark.newSession(), spec, kind(spec, point, batch))
    work.run()
    return work.progress()


class MortalSource(SourceDelivery):
    def __init__(self, spec: JobSpec, point: str, batch: int) -> None:
        super().__init__(spec)
        self._dies = (point, batch)
        self._batch = -1

    def look(self, pause: Pause) -> Sequence[Any]:
        portions = super().look(pause)
        if portions:
            self._batch += 1
            self._reached(PLANNED)
        return portions

    def _commit(self, report: SourceReport) -> None:
        self._reached(WRITTEN)
        super()._commit(report)
        self._reached(COMMITTED)

    def _reached(self, point: str) -> None:
        if self._dies == (point, self._batch):
            raise Died(point)

    def _abort(self, reports: Sequence[SourceReport]) -> None:
        """The dead do not abort."""


class MortalSink(SinkDelivery):
    def __init__(self, spec: JobSpec, point: str, batch: int) -> None:
        super().__init__(spec)
        self._dies = (point, batch)
        self._batch = -1

    def look(self, pause: Pause) -> Sequence[Any]:
        portions = super().look(pause)
        if portions:
            self._batch += 1
            self._reached(PLANNED)
        return portions

    def _commit(self, ends: Any, letters: Any) -> None:
        self._reached(WRITTEN)
        super()._commit(ends, letters)
        self._reached(COMMITTED)

    def _reached(self, point: str) -> None:
        if self._dies == (point, self._batch):
            raise Died(point)


Check = Callable[[], None]
