"""What the queries of sources and sinks share on the driver's side: how one is started, watched and ended."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.connect.jobs.account import Account, Outcome
from ottla.connect.jobs.feed import Feed, Work, reports_of
from ottla.connect.jobs.looking import Looking, Looks
from ottla.connect.jobs.reports import Failed
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused, Observed
from ottla.pipelines.failures import WORKER_ENDED, before_query, told, told_by_us, was_fenced
from ottla.pipelines.job import CannotStart
from ottla.pipelines.settings import LOCAL_CHECKPOINT, POOL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger(__name__)

POLL_MS: Final = 200
"""How often Spark looks into the feed."""
GLANCE_S: Final = 2.0
"""How often it is asked whether the query still runs: all but what Spark itself fails at is known without."""
STOP_S: Final = 15
"""A query whose connector does not return is left behind after this: whatever it still writes is fenced off."""


class Delivering(Looks, Protocol):
    """One kind of connector, on the driver."""

    def open(self) -> Work:
        """Asks Kafka where the connector stands, fences whoever ran it before, and tells what tasks do."""

    def settle(self, reports: Sequence[Any]) -> Outcome:
        """Of all portions that `look` gave: commits them. Raises BatchFailed, ClientError."""

    def observed(self) -> Sequence[Observed]:
        """Metrics that have nothing to do with a batch, as they are now."""

    def alerts(self) -> Sequence[str]:
        """What somebody should look at, though it goes on."""

    def close(self) -> None: ...


class ConnectorStopped(Exception):
    """It failed, and may come back: whoever started it decides when."""


class BatchFailed(Exception):
    """A task has told why."""

    def __init__(self, failed: Failed) -> None:
        self.failed = failed
        super().__init__(f"[ottla] {failed.text} [end]")


class ConnectorWork:
    """A connector as a job of the host: one query, from its start to its end."""

    def __init__(self, spark: SparkSession, spec: JobSpec, delivering: Delivering) -> None:
        self._spark = spark
        self._spec = spec
        self._delivering = delivering
        self._feed = Feed(spark)
        self._ended = threading.Event()
        """By `stop`, by a failure, or as there is nothing left to do."""
        self._looking = Looking(delivering, self._feed.put, self._ended, once=spec.once)
        self._stopped = False
        self._error: BaseException | None = None
        self._begun = False
        """Its query runs: what could be refused at once was not."""
        self._account = Account(spec.name, spec.policy, spec.secrets)

    def run(self) -> None:
        """Raises ConnectorStopped, and CannotStart where to try again would not help."""
        try:
            work = self._delivering.open()
            self._looking.start()  # what it finds meanwhile is there when Spark first asks
            query = self._begin(work)
            self._begun = True
            self._watch(query)
        except ConfigRefused as error:
            raise CannotStart(_text(Failed.of(error, self._spec.secrets))) from error
        except (ConnectorStopped, CannotStart):
            raise
        except BaseException as error:  # a connector may raise anything at all
            raise stopped(error, self._spec.secrets) from error
        finally:
            self._close()

    def stop(self) -> None:
        self._stopped = True
        self._ended.set()

    def progress(self) -> Mapping[str, Any]:
        self._account.observe(self._delivering.observed())
        self._account.alert(self._delivering.alerts())
        return {"begun": self._begun, "epoch": self._spec.epoch, **self._account.told()}

    # The query.

    @property
    def _checkpoint(self) -> str:
        return str(Path(self._spec.directory, "checkpoint"))

    def _begin(self, work: Work) -> StreamingQuery:
        # Where it stands is told by Kafka: a checkpoint of a former life would only say what may be out of date.
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        Path(self._checkpoint).mkdir(parents=True)
        spark = self._spark
        for name, value in LOCAL_CHECKPOINT.items():
            spark.conf.set(name, value)
        spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        spark.conf.set("spark.sql.streaming.stopTimeout", f"{STOP_S}s")
        if not self._spec.once:
            spark.conf.set("spark.sql.streaming.pollingDelay", str(POLL_MS))
        spark.sparkContext.setLocalProperty(POOL, self._spec.name)
        return (
            self._feed.reports(work)
            .writeStream.queryName(self._spec.name)
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(self._write)
            .trigger(processingTime="0 seconds")
            .start()
        )

    def _write(self, rows: DataFrame, batch_id: int) -> None:
        """In Spark's thread."""
        try:
            reports = self._looking.gather(reports_of(rows))
            if reports:
                began_s = time.monotonic()
                outcome = self._delivering.settle(reports)
                self._account.take(outcome, reports, (time.monotonic() - began_s) * 1000)
        except BaseException as error:
            self._error = error
            self._looking.given_up()
            raise
        if reports:
            self._looking.settled()

    def _watch(self, query: StreamingQuery) -> None:
        while not self._ended.wait(GLANCE_S) and query.isActive:
            pass
        deadline = time.monotonic() + self._spec.last_batch_s
        while query.isActive and (left_s := deadline - time.monotonic()) > 0:
            if self._looking.is_settled_within(min(GLANCE_S, left_s)):
                break
        try:
            query.stop()
        except Exception as late:  # noqa: BLE001  Spark's own, of many kinds
            logger.warning("%s does not end, and is left behind: %s", self._spec.name, str(late).partition("\n")[0])
            return
        failed = self._error or self._looking.error or query.exception()
        if failed is not None and not self._stopped:
            raise failed

    def _close(self) -> None:
        self._ended.set()
        if self._looking.has_begun and not self._looking.join(self._spec.last_batch_s):
            logger.warning("%s does not return from its connector, and is left behind", self._spec.name)
            return
        self._delivering.close()


def stopped(error: BaseException, secrets: Sequence[str]) -> Exception:
    """As it may be logged. Who was fenced would drive away the one that came after."""
    kind = CannotStart if was_fenced(error) else ConnectorStopped
    return kind(_text(_failed(error, secrets)))


def _text(failed: Failed) -> str:
    """What happened, then where."""
    return f"[ottla] {failed.text}\n{failed.trace} [end]" if failed.trace.strip() else f"[ottla] {failed.text} [end]"


def _failed(error: BaseException, secrets: Sequence[str]) -> Failed:
    if isinstance(error, BatchFailed):
        return error.failed.masked(secrets)
    return _foreign(error).masked(secrets) if _is_sparks(error) else Failed.of(error, secrets)


def _is_sparks(error: BaseException) -> bool:
    from py4j.protocol import Py4JError  # noqa: PLC0415  the driver's alone
    from pyspark.errors import PySparkException  # noqa: PLC0415

    return isinstance(error, Py4JError | PySparkException)


def _foreign(error: BaseException) -> Failed:
    """Of Spark."""
    if was_fenced(error):
        return Failed("another worker runs this connector now: this one was fenced and stops", "")
    text = before_query(error)
    if WORKER_ENDED in text:
        return Failed(
            "the process that ran a task of this connector has ended: a native library in it crashed, or the system "
            "ended it as memory ran out (its log tells)",
            "",
        )
    return Failed(told(error), "" if told_by_us(error) else text)
