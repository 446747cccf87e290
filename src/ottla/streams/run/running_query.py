"""One Spark query of an application: starts it, writes its batches, watches it, ends it.

A batch ends with one transaction of the sink; a stop lets the batch end that is being written.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.blocking.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import batches_of
from ottla.pipelines.failures import Restarts, before_query, told, told_by_us, was_fenced
from ottla.pipelines.full_disks import full_disk
from ottla.pipelines.progress import Progress, new_counter
from ottla.pipelines.settings import COMPILED, LOCAL_CHECKPOINT, POOL
from ottla.pipelines.sink.sink import TransactionalSink, Unpacked, are_packed, kafka_rows
from ottla.pipelines.sink.writer import Pack
from ottla.streams.plan.plan import QueryPlan
from ottla.streams.run import topics
from ottla.streams.run.changelogs import Note, Restore
from ottla.streams.run.config import SPARK_PREFIX, patience_s
from ottla.streams.run.failures import StreamsFailed, StreamsFenced
from ottla.streams.run.frames import Query, QueryBuilder, RunContext
from ottla.streams.run.production import production_judge
from ottla.streams.run.purge import Purge
from ottla.streams.run.query_input import QueryInput
from ottla.streams.run.reaching import Reaching
from ottla.streams.run.state_directory import StateDirectory

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp

logger = logging.getLogger(__name__)

AVAILABLE_NOW: Final = "availableNow"
CLOCK_INTERVAL_MS: Final = 1000
"""How often a batch runs that has to run without data, unless commit.interval.ms says it."""
SPARK_LOCAL_DIR: Final = "spark.local.dir"
COMMIT_PATIENCE_S: Final = 5.0
_COMMIT_POLL_S: Final = 0.04


class _Stopping(Exception):
    """Raised in place of a further batch; its offsets are in Spark's log, and it runs at the next start."""


class RunningQuery:
    """Its sink, its folders, and what Spark says of it."""

    def __init__(
        self,
        app: StreamsApp,
        each: QueryPlan,
        directory: StateDirectory,
        around: RunContext,
        stop: threading.Event,
        note: Note | None = None,
    ) -> None:
        """`note`: what its state is restored from, if it is."""
        self._app = app
        self._input = QueryInput(app, each, directory, around)
        self._stop = stop
        self._sink = TransactionalSink(
            reach=app.config.reach("producer"),
            transactional_id=f"{app.application_id}-{each.name}",
            group_id=app.application_id,
            marker_topic=app.marker_topic,
            transaction_timeout_ms=app.config["transaction.timeout.ms"],
            timeout_s=patience_s(app.config),
            patient=True,
            judge=production_judge(app.application_id, around.graph, app.config),
        )
        self._note = note
        self._reaching = Reaching(around.spark)
        self._sink.commits = self._reaching.commits
        self._dropped = new_counter(around.spark)
        self._opening = threading.Lock()
        self._writing = threading.Lock()
        """Held while a batch is being written. None begins once a stop was asked for."""
        self._started = threading.Event()
        self._query: StreamingQuery | None = None
        self._pack: Pack | None = None
        self._starting: Mapping[TopicPartition, int] = {}
        self._trigger: dict[str, Any] = {}
        self._restarts = Restarts(patience_s(app.config))
        self._purge = Purge(app, sorted({place.topic for place in self._input.own_partitions()}))
        self.progress = Progress(each.name, self._dropped)

    def _builder(self, starting: Mapping[TopicPartition, int]) -> QueryBuilder:
        return QueryBuilder(
            self._input.around,
            self._input.plan,
            starting=starting,
            origin_base=self._input.left_behind,
            initial_offsets=self._input.initial_offsets if self._input.directory.is_local else None,
            stream_time=self._input.directory.stream_time(self._input.plan.name),
            dropped=self._dropped,
            restore=self._restore(),
            times=self._reaching.told,
            idle_ms=self._idle_ms(),
        )

    def _idle_ms(self) -> int:
        """A run that ends when all is read waits for nothing else."""
        idle: int = self._app.config["max.task.idle.ms"]
        return min(idle, 0) if AVAILABLE_NOW in self._trigger else idle

    def _restore(self) -> Restore | None:
        if self._note is None:
            return None
        config, folder = self._app.config, self._input.directory.restoring if self._input.directory.is_local else None
        return Restore(self._note, config.reach("restore.consumer"), patience_s(config), folder)

    def start(self, cluster: Cluster, trigger: dict[str, Any]) -> None:
        if AVAILABLE_NOW in trigger:
            # What is there now includes all that queries in front of this one have just written.
            topics.await_decided(cluster, self._input.own_partitions())
        self._trigger = trigger
        self._reaching.learn(cluster, self._app.application_id, self._input.partitions())
        self._starting = self._input.first_offsets(cluster)
        self.begin()
        self._open()

    def start_again(self, cluster: Cluster) -> bool:
        """After it has ended, if something came for it meanwhile from queries beside it."""
        if self._stop.is_set() or not topics.unread(cluster, self._app.application_id, self._input.own_partitions()):
            return False
        self.begin()
        return True

    def begin(self) -> None:
        built = self._builder(self._starting).build()
        spark = self._input.around.spark
        # Spark keeps the number in the checkpoint: it holds from the first start on.
        spark.conf.set("spark.sql.shuffle.partitions", str(built.shuffle_partitions))
        # Old windows go with the next data; a batch only for that would follow nearly every other one. And what is to
        # end when all is read must not wait for the clock.
        by_clock = built.runs_without_data and AVAILABLE_NOW not in self._trigger
        spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", str(by_clock).lower())
        for name, value in self._query_settings(built).items():
            spark.conf.set(name, value)
        # Who makes rows in Python has packed them. Others are packed when it is known how many there are.
        self._pack = None if are_packed(built.rows) else Pack(self._dropped.add)
        writer = (
            (built.rows if self._pack is None else kafka_rows(built.rows))
            .writeStream.outputMode(built.output_mode)
            .queryName(f"{self._app.application_id}-{self._input.plan.name}")
            .option("checkpointLocation", self._input.checkpoint)
            .foreachBatch(self._write)
            .trigger(**self._trigger_for(by_clock))
        )
        spark.sparkContext.setLocalProperty(POOL, f"{self._app.application_id}-{self._input.plan.name}")
        self._query = writer.start()
        self._started.set()
        self.progress.watch(self._query)

    def _query_settings(self, built: Query) -> Mapping[str, str]:
        """But for those that the user has chosen, which the session has already."""
        chosen = {
            **(LOCAL_CHECKPOINT if self._input.directory.is_local else {}),
            COMPILED: str(built.by_record).lower(),
        }
        given = self._app.config.below(SPARK_PREFIX)
        return {name: value for name, value in chosen.items() if name not in given}

    def _trigger_for(self, by_clock: bool) -> dict[str, Any]:
        if not by_clock or "commit.interval.ms" in self._app.config.given:
            return self._trigger
        # With punctuators of the wall clock every trigger is a batch, with or without data.
        return {"processingTime": f"{CLOCK_INTERVAL_MS} milliseconds"}

    def _open(self) -> None:
        """Fences a former run, also when there is nothing to write yet: its open transaction would hold up readers."""
        with self._opening:
            if not self._sink.is_open and self._query is not None:
                self._sink.open(str(self._query.id), f"{self._app.application_id}-{self._input.plan.name}")

    def _write(self, rows: DataFrame, batch_id: int) -> None:
        self._app.hooks.wait_while_paused(self._stop)
        self._wait_for_query()
        with self._writing:
            if self._stop.is_set():
                raise _Stopping
            self._write_batch(rows, batch_id)

    def _write_batch(self, rows: DataFrame, batch_id: int) -> None:
        self._open()
        began = time.monotonic()
        offsets = self._input.ends(batch_id)
        records = self._input.records(batch_id, offsets)
        if not self.progress.batches:
            self._sink.expect(records)
        batch = rows if self._pack is None else Unpacked(rows, records, self._pack)
        written = self._sink.write(batch, batch_id, offsets, self._input.origins(batch_id, offsets))
        self._restarts.succeeded()
        self.progress.wrote(written, time.monotonic() - began)
        self._purge.after(offsets)

    def _wait_for_query(self) -> None:
        """The first batch may begin before `start` has returned."""
        self._started.wait()

    def status(self) -> Mapping[str, Any]:
        return {**self.progress.status(), "sub-topologies": list(self._input.plan.members)}

    @property
    def waits_for(self) -> str | None:
        """None: for records."""
        if self.progress.batches or self._query is None:
            return None
        return "the first batch" if self._query.status["isDataAvailable"] else None

    @property
    def active(self) -> bool:
        return self._query is not None and bool(self._query.isActive)

    def check(self) -> None:
        """Raises StreamsFailed when the query has failed."""
        if self._query is None or self._query.isActive:
            return
        error = self._query.exception()
        if error is None or _is_stopping(error):
            return
        if self._restarts.may(error, time.monotonic()):
            logger.warning("%s: trying again: %s", self._app.application_id, told(error))
            self.begin()
            return
        logger.error("%s, query %s: %s", self._app.application_id, self._input.plan.name, error)
        kind = StreamsFenced if was_fenced(error) else StreamsFailed
        full = full_disk(before_query(error), self._folders())
        if full is not None:
            raise kind(
                f"{self._app.application_id}: {full}. A state.dir that has no state yet gets it from the changelogs; "
                "one that has some cannot be moved, since Spark keeps its path in it"
            ) from None
        raise kind(_told(error, self._app.application_id, self._input.plan)) from None

    def _folders(self) -> Mapping[str, str]:
        """On this machine. What tasks have not enough memory for, and the state while it is in use, is Spark's own."""
        directory, conf = self._input.directory, self._input.around.spark.sparkContext.getConf()
        scratch = os.environ.get("SPARK_LOCAL_DIRS") or conf.get(SPARK_LOCAL_DIR, tempfile.gettempdir()) or ""
        kept = {"state.dir": directory.path} if directory.is_local else {}
        return {**kept, SPARK_LOCAL_DIR: scratch.partition(",")[0]}

    def end(self) -> None:
        """Lets the running batch end; the next one does not begin."""
        query = self._query
        if query is not None:
            with self._writing:
                pass
            self._await_commit(query)
            query.stop()
        self.progress.last(query)
        self._sink.close()

    def _await_commit(self, query: StreamingQuery) -> None:
        """Spark's word that the last batch is done follows our own at once. Without it the batch would run again at the
        next start, though nothing of it would be written twice."""
        deadline = time.monotonic() + COMMIT_PATIENCE_S
        while query.isActive and time.monotonic() < deadline:
            done = batches_of(self._input.checkpoint).done
            if self.progress.batch <= (-1 if done is None else done):
                return
            time.sleep(_COMMIT_POLL_S)


def _is_stopping(error: StreamingQueryException) -> bool:
    return _Stopping.__name__ in str(error)


def _told(error: StreamingQueryException, application_id: str, each: QueryPlan) -> str:
    ours = told_by_us(error)
    return f"{application_id}: {ours}" if ours else f"{application_id}, query {each.name}: {told(error)}"
