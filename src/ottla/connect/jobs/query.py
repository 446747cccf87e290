"""What the queries of sources and sinks share on the driver's side: how one is started, watched and ended."""

from __future__ import annotations

import logging
import pickle
import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.client.errors import ClientError
from ottla.connect.dead_letters import Letter
from ottla.connect.jobs.reports import Counts, Failed
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused, ConnectorFailed
from ottla.pipelines.failures import told, told_by_us, was_fenced
from ottla.pipelines.job import CannotStart
from ottla.pipelines.settings import LOCAL_CHECKPOINT, POOL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger(__name__)

TRIGGER_MS: Final = 500
"""How often a query looks whether there is something to do. A batch of a backlog takes longer than that."""
POLL_S: Final = 0.02
LAST_BATCH_S: Final = 10.0
"""A batch that takes longer than this after `stop` is cut off: it is done again at the next start."""
LOGGED_LETTERS: Final = 10
"""Of one batch."""


class Delivering(Protocol):
    """One kind of connector, on the driver."""

    gather_ms: int
    """How long records are gathered into a batch, at least."""

    def open(self) -> type[DataSource]:
        """Asks Kafka where the connector stands, fences whoever ran it before, and gives what plans its batches."""

    def write(self, rows: DataFrame, batch_id: int, checkpoint: str) -> Outcome:
        """Runs a batch to its end. Raises BatchFailed, ClientError."""

    def close(self) -> None: ...


class Outcome:
    """Of one batch."""

    __slots__ = ("counts", "letters", "topics")

    def __init__(self, counts: Counts, topics: Iterable[str], letters: Iterable[Letter] = ()) -> None:
        self.counts = counts
        self.topics = list(topics)
        self.letters = list(letters)


class BatchFailed(Exception):
    """A task has told why."""

    def __init__(self, failed: Failed) -> None:
        self.failed = failed
        super().__init__(f"[ottla] {failed.text} [end]")


def reports_of(rows: DataFrame) -> list[Any]:
    """Runs the batch: its one action."""
    return [pickle.loads(row[0]) for row in rows.collect()]


class ConnectorWork:
    """A connector as a job of the host: one query, from its start to its end."""

    def __init__(self, spark: SparkSession, spec: JobSpec, delivering: Delivering) -> None:
        self._spark = spark
        self._spec = spec
        self._delivering = delivering
        self._stop = threading.Event()
        self._failed: Failed | None = None
        self._counts = Counts()
        self._batches = 0
        self._begun = False
        """Its query runs: what could be refused at once was not."""
        self._topics: dict[str, None] = {}
        self._last_error_ms: int | None = None

    def run(self) -> None:
        """Raises CannotStart: whether it is started again is for the worker to decide."""
        try:
            query = self._begin()
            self._begun = True
            self._watch(query)
        except (ClientError, ConfigRefused, ConnectorFailed) as error:
            raise CannotStart(_text(Failed.of(error))) from error
        finally:
            self._delivering.close()

    def stop(self) -> None:
        self._stop.set()

    def progress(self) -> Mapping[str, Any]:
        return {
            "begun": self._begun,
            "epoch": self._spec.epoch,
            "counts": self._counts._asdict(),
            "batches": self._batches,
            "topics": list(self._topics),
            "last-error-timestamp": self._last_error_ms,
        }

    # The query.

    @property
    def _checkpoint(self) -> str:
        return str(Path(self._spec.directory, "checkpoint"))

    def _begin(self) -> StreamingQuery:
        source = self._delivering.open()
        # Where it stands is told by Kafka: a checkpoint of a former life would only say what may be out of date.
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        Path(self._checkpoint).mkdir(parents=True)
        spark = self._spark
        for name, value in LOCAL_CHECKPOINT.items():
            spark.conf.set(name, value)
        spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        spark.dataSource.register(source)
        spark.sparkContext.setLocalProperty(POOL, self._spec.name)
        interval_ms = max(TRIGGER_MS, self._delivering.gather_ms)
        trigger: dict[str, Any] = (
            {"availableNow": True} if self._spec.once else {"processingTime": f"{interval_ms} milliseconds"}
        )
        return (
            spark.readStream.format(source.name())
            .load()
            .writeStream.queryName(self._spec.name)
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(self._write)
            .trigger(**trigger)
            .start()
        )

    def _write(self, rows: DataFrame, batch_id: int) -> None:
        try:
            outcome = self._delivering.write(rows, batch_id, self._checkpoint)
        except BatchFailed as error:
            self._failed = error.failed
            raise
        except ClientError as error:
            self._failed = Failed.of(error)
            raise
        self._batches += 1
        self._counts = self._counts.plus(outcome.counts)
        self._topics.update(dict.fromkeys(outcome.topics))
        if outcome.counts.failed:
            self._last_error_ms = time.time_ns() // 1_000_000
        self._log(outcome.letters)

    def _log(self, letters: list[Letter]) -> None:
        policy = self._spec.policy
        if not policy.log:
            return
        for letter in letters[:LOGGED_LETTERS]:
            content = f": key {letter.key!r}, value {letter.value!r}" if policy.log_messages else ""
            failure = letter.failure
            logger.error(
                "%s: %s failed in %s (%s): %s%s",
                self._spec.name, letter.where, failure.stage, failure.class_name, failure.message, content,
            )  # fmt: skip
        if len(letters) > LOGGED_LETTERS:
            logger.error("%s: and %d more of this batch", self._spec.name, len(letters) - LOGGED_LETTERS)

    def _watch(self, query: StreamingQuery) -> None:
        while query.isActive and not self._stop.wait(POLL_S):
            pass
        deadline = time.monotonic() + LAST_BATCH_S
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(POLL_S)
        query.stop()
        error = query.exception()
        if error is not None and not self._stop.is_set():
            raise CannotStart(_text(self._failed or _foreign(error))) from error


def _text(failed: Failed) -> str:
    """What happened, then where."""
    return f"[ottla] {failed.text}\n{failed.trace} [end]" if failed.trace.strip() else f"[ottla] {failed.text} [end]"


def _foreign(error: BaseException) -> Failed:
    """Of Spark, or of whatever plans the batches."""
    if was_fenced(error):
        return Failed("another worker runs this connector now: this one was fenced and stops", "")
    return Failed(told(error), "" if told_by_us(error) else str(error).partition("=== Streaming Query ===")[0])
