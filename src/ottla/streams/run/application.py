"""Runs an application: plans it, makes its internal topics, starts one Spark query for each part and watches them.

A query ends each micro-batch with one transaction of the sink. `stop` lets the running batch end; a query that fails
ends the application with an error that names the node and the record, not with Spark's trace.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.pipelines.failures import quieten
from ottla.pipelines.session import new_session, with_settings
from ottla.pipelines.settings import LOG_LEVEL, is_local
from ottla.pipelines.sink.transaction import Transaction
from ottla.streams.plan.plan import Plan, QueryPlan, in_order
from ottla.streams.run import topics
from ottla.streams.run.changelogs import Note
from ottla.streams.run.cluster_check import check_workers
from ottla.streams.run.config import SPARK_PREFIX, TOPIC_PREFIX, patience_s
from ottla.streams.run.failures import StreamsFailed, StreamsFenced
from ottla.streams.run.frames import RunContext
from ottla.streams.run.instances import About, Instance, await_nobody
from ottla.streams.run.kept_shape import Shape, keep, require_fit, shape_of
from ottla.streams.run.life import PENDING_SHUTDOWN, REBALANCING, RUNNING, Life, StreamThreadExceptionResponse
from ottla.streams.run.metrics import client_metrics, metrics_of
from ottla.streams.run.planning import planned, resolved
from ottla.streams.run.recovery import Recovery, restored_stores, seen_without_spark
from ottla.streams.run.restore_listener import RestoreLines, RestoreWatch
from ottla.streams.run.running import Metric
from ottla.streams.run.running_query import AVAILABLE_NOW, RunningQuery
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.graph import changelog_topic
from ottla.streams.topology.stores import StoreKind

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp

logger = logging.getLogger(__name__)

POLL_S: Final = 0.8
"""How often a running application looks whether it should stop, or has failed."""
TELL_S: Final = 2.0
"""How often it tells what it does."""


class Runner:
    """One run of an application."""

    def __init__(
        self,
        app: StreamsApp,
        *,
        once: bool = False,
        master: str = "local[*]",
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._clock = clock
        self._app = app
        self._once = once
        self._master = master
        self._topology = resolved(app)
        self._subs = self._topology.sub_topologies()
        self._directory = StateDirectory.of(app)
        self._restored = seen_without_spark(self._directory)
        self._plan = planned(app, self._subs, self._restored)
        self._stop = threading.Event()
        self._running: list[RunningQuery] = []
        self._life = Life(app.hooks)
        self._phase = "Spark to start"
        self._telling = _Telling(self._directory, self.status)
        self._notes: Mapping[str, Note] = {}
        self._watch: RestoreWatch | None = None
        self._failed = 0
        """How many queries have, those that were started again too."""

    # ---- what the outside asks

    @property
    def state(self) -> str:
        return self._life.state

    @property
    def plan(self) -> Plan:
        return self._plan

    def stop(self) -> None:
        self._life.to(PENDING_SHUTDOWN)
        self._stop.set()

    def metrics(self) -> Sequence[Metric]:
        restored, to_restore = (0, 0) if self._watch is None else self._watch.figures()
        whole = client_metrics(
            self._app.application_id,
            alive=sum(query.active for query in self._running),
            failed=self._failed,
            restored=restored,
            to_restore=to_restore,
        )
        queries = [metrics_of(self._app.application_id, query.progress) for query in self._running]
        return [*whole, *(metric for found in queries for metric in found)]

    def status(self) -> Mapping[str, Any]:
        return {
            "application.id": self._app.application_id,
            "state": self._life.state,
            "waits-for": self._waits_for(),
            "queries": [query.status() for query in self._running],
        }

    def _waits_for(self) -> str:
        if self._app.hooks.paused:
            return "resume()"
        return self._phase or next((each for query in self._running if (each := query.waits_for)), "records")

    @property
    def wrote(self) -> bool:
        """Whether a batch has come to its end."""
        return any(query.progress.batches for query in self._running)

    # ---- running

    def run(self, spark: SparkSession | None = None) -> None:
        """In a session of its own that a host gives, where settings of the SparkContext are the host's; else in the one
        of this process."""
        self._life.to(REBALANCING)
        try:
            self._run(spark)
        except BaseException as error:
            self._life.end(error)
            raise
        self._life.end(None)

    def _run(self, spark: SparkSession | None) -> None:
        config = self._app.config
        for name in config.without_effect:
            logger.warning("%s: %s has no meaning here and is ignored", self._app.application_id, name)
        self._phase = f"an answer of the brokers at {config['bootstrap.servers']}"
        with (
            config.reach("admin").cluster(client_id=self._client_id(), timeout_s=patience_s(config)) as cluster,
            self._among_instances() as instance,
        ):
            inputs = topics.find_inputs(cluster, self._app.application_id, self._topology.graph, self._subs)
            dead_letters = config["errors.dead.letter.queue.topic.name"]
            topics.require_outputs(cluster, self._topology.graph, dead_letters, inputs)
            # Spark knows how to reach what is not a folder; what is one is looked at before anybody waits for Spark.
            session = None
            if not self._directory.is_local:
                session = self._session(spark)
                self._plan_with(restored_stores(self._directory))
            require_fit(self._directory, self._shape(inputs))
            made = self._make_changelogs(cluster, inputs)
            if self._once:
                await_nobody(cluster, self._app.application_id)
            if session is None:
                session = self._session(spark)
            self._phase = "its turn, while another instance is active"
            if not self._is_its_turn(instance):
                return
            self._recover(cluster, inputs, made)
            self._make_repartition_topics(cluster, inputs)
            around = RunContext(
                self._app.application_id,
                config,
                inputs,
                self._topology.graph,
                session,
                self._clock,
            )
            started = in_order(self._plan.queries)
            try:
                if self._once:
                    self._run_once(cluster, around, started)
                else:
                    self._run_on(cluster, around, started, instance)
            finally:
                self._end_all()

    def _plan_with(self, restored: frozenset[str]) -> None:
        if restored != self._restored:
            self._restored = restored
            self._plan = planned(self._app, self._subs, restored)

    def _shape(self, inputs: topics.Inputs) -> Shape:
        return shape_of(self._plan.queries, lambda query: _tasks_of(query, inputs))

    def _client_id(self) -> str:
        return self._app.config["client.id"] or self._app.application_id

    def _session(self, given: SparkSession | None) -> SparkSession:
        self._phase = "Spark to start"
        settings = self._app.config.below(SPARK_PREFIX)
        if given is not None:
            spark = with_settings(given, settings)
        else:
            spark = new_session(self._app.application_id, self._master, **settings)
            if LOG_LEVEL not in settings:
                quieten(spark)
        if not is_local(str(spark.sparkContext.master)):
            check_workers(spark, self._directory.path if self._directory.is_local else None)
        return spark

    def _make_changelogs(self, cluster: Cluster, inputs: topics.Inputs) -> frozenset[str]:
        """Gives those that were missing."""
        config = self._app.config
        extra = config["windowstore.changelog.additional.retention.ms"]
        wanted = [
            topic
            for sub in self._subs
            for topic in topics.changelog_topics(
                self._app.application_id, sub, inputs, extra, config.below(TOPIC_PREFIX)
            )
        ]
        made = frozenset(topics.ensure(cluster, wanted, config["replication.factor"]))
        stores = [store for sub in self._subs for store in sub.stores if store.kind is StoreKind.OWN]
        own = {changelog_topic(self._app.application_id, store.name) for store in stores} - made
        topics.keep_whole(cluster, [topic for topic in wanted if topic.name in own])
        return made

    def _make_repartition_topics(self, cluster: Cluster, inputs: topics.Inputs) -> None:
        config, name = self._app.config, self._app.application_id
        settings, unneeded = config.below(TOPIC_PREFIX), self._plan.unneeded_topics
        wanted = topics.repartition_topics(name, self._topology.graph, inputs, unneeded, settings)
        topics.ensure(cluster, wanted, config["replication.factor"])

    def _recover(self, cluster: Cluster, inputs: topics.Inputs, made: frozenset[str]) -> None:
        """Finds out what there is of each query's state, and plans anew where Spark's own operators cannot take it."""
        name, config = self._app.application_id, self._app.config
        # First of all: offsets that an open transaction of a former run holds cannot be known before it has ended.
        with config.reach("producer").cluster(client_id=self._client_id(), timeout_s=patience_s(config)) as producing:
            for sub in self._subs:
                transactional_id, timeout_ms = f"{name}-{sub.number}", config["transaction.timeout.ms"]
                Transaction(producing, transactional_id, timeout_ms=timeout_ms).initialise()
        self._notes = Recovery(cluster, name, self._directory, inputs, self._subs).notes(self._plan, made)
        restored = frozenset(store for note in self._notes.values() for store in note.stores)
        self._plan_with(restored)
        # Another instance may have had its turn since the first look.
        require_fit(self._directory, self._shape(inputs))
        keep(self._directory, self._shape(inputs))
        self._watch = RestoreWatch(self._directory.restoring, self._app.hooks.on_restore or RestoreLines())
        self._watch.forget()
        for note in self._notes.values():
            self._watch.expect(note)

    def _among_instances(self) -> AbstractContextManager[Instance | None]:
        """A run that ends when all is read does not take turns with others."""
        if self._once:
            return nullcontext()
        return Instance(self._app.config.reach("main.consumer"), self._app.application_id)

    def _is_its_turn(self, instance: Instance | None) -> bool:
        """Returns when this is the active instance; false if it was stopped before. Spark is warm by then."""
        told: About | None = None
        try:
            while instance is not None and not instance.wait(POLL_S):
                if self._stop.is_set():
                    return False
                if instance.active not in (None, told):
                    told = instance.active
                    logger.warning(
                        "%s is active as %s; this instance stands by, and takes over when that one is gone",
                        self._app.application_id,
                        told,
                    )
        except ClientError as error:
            logger.warning("%s: instances do not know of each other: %s", self._app.application_id, error)
        if told is not None:
            logger.warning("%s: %s is gone; this instance takes over", self._app.application_id, told)
        return not self._stop.is_set()

    def _run_on(
        self,
        cluster: Cluster,
        around: RunContext,
        plans: Sequence[Sequence[QueryPlan]],
        instance: Instance | None,
    ) -> None:
        interval = self._app.config["commit.interval.ms"]
        for each in (each for group in plans for each in group):
            self._start(cluster, around, each, {"processingTime": f"{interval} milliseconds"})
        self._life.to(RUNNING)
        while not self._stop.wait(POLL_S):
            self._check()
            self._telling.tick()
            if instance is not None and instance.superseded:
                raise StreamsFenced(f"{self._app.application_id} is active as {instance.active}, which took over")

    def _run_once(self, cluster: Cluster, around: RunContext, plans: Sequence[Sequence[QueryPlan]]) -> None:
        """One after the other, so that each finds all that those in front of it wrote."""
        self._life.to(RUNNING)
        for group in plans:
            started: list[RunningQuery] = []
            for each in group:
                started.append(self._start(cluster, around, each, {AVAILABLE_NOW: True}))
                self._wait_for(started[-1])
                if self._stop.is_set():
                    return
            # Those that feed each other go on by turns, until nobody has anything left.
            while len(started) > 1 and any([self._goes_on(cluster, query) for query in started]):
                pass

    def _goes_on(self, cluster: Cluster, query: RunningQuery) -> bool:
        if not query.start_again(cluster):
            return False
        self._wait_for(query)
        return True

    def _wait_for(self, query: RunningQuery) -> None:
        while True:
            while query.active and not self._stop.wait(POLL_S / 8):
                self._telling.tick()
                self._look()
            self._check()  # may start it again
            if self._stop.is_set() or not query.active:
                return

    def _start(self, cluster: Cluster, around: RunContext, each: QueryPlan, trigger: dict[str, Any]) -> RunningQuery:
        self._phase = f"Spark to plan query {each.name}"
        running = RunningQuery(self._app, each, self._directory, around, self._stop, self._note_for(each))
        running.start(cluster, trigger)
        self._running.append(running)
        self._phase = ""
        return running

    def _note_for(self, query: QueryPlan) -> Note | None:
        """By its stores: the plan may have been another when the note was taken."""
        stores = {store.name for store in query.stores}
        return next((note for note in self._notes.values() if stores.intersection(note.stores)), None)

    def _check(self) -> None:
        self._look()
        for query in self._running:
            try:
                query.check()
            except StreamsFenced:
                raise
            except StreamsFailed as failed:
                self._failed += 1
                if self._answer(failed) is not StreamThreadExceptionResponse.REPLACE_THREAD:
                    raise
                self._life.to(REBALANCING)
                query.begin()
                self._life.to(RUNNING)

    def _answer(self, failed: StreamsFailed) -> StreamThreadExceptionResponse:
        handler = self._app.hooks.on_failure
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT if handler is None else handler(failed)

    def _look(self) -> None:
        if self._watch is not None:
            self._watch.look()

    def _end_all(self) -> None:
        self._stop.set()
        for query in self._running:
            query.end()
        self._look()


def _tasks_of(query: QueryPlan, inputs: topics.Inputs) -> int:
    repartitioned = None if query.aggregate is None else query.aggregate.repartitioned
    return inputs.tasks(query.first.sub) if repartitioned is None else inputs.partitions[repartitioned]


class _Telling:
    """Leaves in the application's folder what it does, for `ottla streams top`."""

    def __init__(self, directory: StateDirectory, status: Callable[[], Mapping[str, Any]]) -> None:
        self._directory = directory
        self._status = status
        self._next = time.monotonic()
        self._told: Mapping[str, Any] = {}

    def tick(self) -> None:
        if time.monotonic() < self._next or not self._directory.is_local:
            return
        self._next = time.monotonic() + TELL_S
        status = self._status()
        if status != self._told:
            self._directory.tell(status)
            self._told = status
