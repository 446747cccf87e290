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
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import batches_of, keep_offsets, kept_offsets, offsets_of_batch
from ottla.pipelines.failures import Restarts, quieten, told, told_by_us, was_fenced
from ottla.pipelines.job import CannotStart
from ottla.pipelines.progress import Progress, new_counter
from ottla.pipelines.session import new_session, with_settings
from ottla.pipelines.settings import LOCAL_CHECKPOINT, LOG_LEVEL, POOL, is_local
from ottla.pipelines.sink.sink import TransactionalSink, packed
from ottla.pipelines.sink.transaction import Transaction
from ottla.pipelines.source.connector import FASTER
from ottla.pipelines.source.data_source import FORMAT
from ottla.pipelines.source.origins import Origins
from ottla.streams.plan.plan import Plan, QueryPlan, in_order
from ottla.streams.plan.planner import plan
from ottla.streams.run import topics
from ottla.streams.run.changelogs import Note, Restore
from ottla.streams.run.cluster_check import check_workers
from ottla.streams.run.config import SPARK_PREFIX, TOPIC_PREFIX, patience_s
from ottla.streams.run.frames import QueryBuilder, RunContext
from ottla.streams.run.instances import About, Instance, await_nobody
from ottla.streams.run.kept_shape import require_fit, shape_of
from ottla.streams.run.life import PENDING_SHUTDOWN, REBALANCING, RUNNING, Life, StreamThreadExceptionResponse
from ottla.streams.run.metrics import metrics_of
from ottla.streams.run.reaching import Reaching
from ottla.streams.run.recovery import Recovery, restored_stores
from ottla.streams.run.restore_listener import RestoreLines, RestoreWatch
from ottla.streams.run.running import Metric
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.graph import SourceNode, SubTopology, TimestampExtractor

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp
    from ottla.streams.topology.topology import Topology

logger = logging.getLogger(__name__)

POLL_S: Final = 0.4
"""How often a running application looks whether it should stop, or has failed."""
TELL_S: Final = 2.0
"""How often it tells what it does."""

AVAILABLE_NOW: Final = "availableNow"
CLOCK_INTERVAL_MS: Final = 1000
"""How often a batch runs that has to run without data, unless commit.interval.ms says it."""
PURGE_PATIENCE_S: Final = 5.0
COMMIT_PATIENCE_S: Final = 5.0


class StreamsFailed(Exception):
    """A query failed. The text says where: which node, which record."""


class StreamsFenced(StreamsFailed, CannotStart):
    """The application runs elsewhere under the same id: this run must not come back by itself."""


class _Stopping(Exception):
    """Raised in place of a further batch; its offsets are in Spark's log, and it runs at the next start."""


def resolved(app: StreamsApp) -> Topology:
    """The topology with the application's defaults filled in: serdes, timestamp extractor. Raises TopologyError."""
    config = app.config
    topology = app.topology if config["statestore.cache.max.bytes"] else app.topology.without_caches()
    topology = topology.with_default_serdes(config["default.key.serde"], config["default.value.serde"])
    extractor = config["default.timestamp.extractor"]
    if extractor is None:
        return topology
    chosen = extractor if isinstance(extractor, TimestampExtractor) else TimestampExtractor(extractor)
    graph = topology.graph
    for name, node in graph.nodes.items():
        # Records between sub-topologies have their timestamps already.
        external = isinstance(node, SourceNode) and not any(topic in graph.repartition_topics for topic in node.topics)
        if isinstance(node, SourceNode) and external and node.extractor.is_plain:
            graph.nodes[name] = replace(node, extractor=chosen)
    return topology


def plan_of(app: StreamsApp) -> Plan:
    return _planned(app, resolved(app).sub_topologies(), restored_stores(StateDirectory.of(app)))


def _planned(app: StreamsApp, subs: Sequence[SubTopology], restored: frozenset[str] = frozenset()) -> Plan:
    by_function = callable(app.config["deserialization.exception.handler"])
    return plan(
        subs,
        "a Python function decides about records that cannot be read" if by_function else None,
        None
        if StateDirectory.of(app).is_local
        else "stream time in front of Spark's own is kept in files of state.dir, "
        "which has to be a folder for that, not a URL",
        restored,
    )


def explain(app: StreamsApp) -> str:
    """Which Spark operator each node becomes, and why; and what reads its input."""
    return f"{plan_of(app).text()}\nInput is read by the data source {FORMAT}: {FASTER}"


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
        self._restored = restored_stores(self._directory)
        self._plan = _planned(app, self._subs, self._restored)
        self._stop = threading.Event()
        self._running: list[_RunningQuery] = []
        self._life = Life(app.hooks)
        self._phase = "Spark to start"
        self._telling = _Telling(self._directory, self.status)
        self._notes: Mapping[str, Note] = {}
        self._watch: RestoreWatch | None = None

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
        return [metric for query in self._running for metric in metrics_of(self._app.application_id, query.progress)]

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
        self._phase = f"an answer of the brokers at {config['bootstrap.servers']}"
        servers = parse_bootstrap(config["bootstrap.servers"])
        with (
            Cluster(servers, client_id=self._client_id(), timeout_s=patience_s(config)) as cluster,
            self._among_instances() as instance,
        ):
            inputs = topics.find_inputs(cluster, self._app.application_id, self._topology.graph, self._subs)
            dead_letters = config["errors.dead.letter.queue.topic.name"]
            topics.require_outputs(cluster, self._topology.graph, dead_letters, inputs)
            self._require_state_fits(inputs)
            made = self._make_changelogs(cluster, inputs)
            if self._once:
                await_nobody(cluster, self._app.application_id)
            self._phase = "Spark to start"
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

    def _require_state_fits(self, inputs: topics.Inputs) -> None:
        if self._directory.is_local:
            shape = shape_of(self._plan.queries, lambda query: _tasks_of(query, inputs))
            require_fit(self._directory.path, shape)

    def _client_id(self) -> str:
        return self._app.config["client.id"] or self._app.application_id

    def _session(self, given: SparkSession | None) -> SparkSession:
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
        return frozenset(topics.ensure(cluster, wanted, config["replication.factor"]))

    def _make_repartition_topics(self, cluster: Cluster, inputs: topics.Inputs) -> None:
        config, name = self._app.config, self._app.application_id
        settings, unneeded = config.below(TOPIC_PREFIX), self._plan.unneeded_topics
        wanted = topics.repartition_topics(name, self._topology.graph, inputs, unneeded, settings)
        topics.ensure(cluster, wanted, config["replication.factor"])

    def _recover(self, cluster: Cluster, inputs: topics.Inputs, made: frozenset[str]) -> None:
        """Finds out what there is of each query's state, and plans anew where Spark's own operators cannot take it."""
        name, config = self._app.application_id, self._app.config
        # First of all: offsets that an open transaction of a former run holds cannot be known before it has ended.
        for sub in self._subs:
            Transaction(cluster, f"{name}-{sub.number}", timeout_ms=config["transaction.timeout.ms"]).initialise()
        self._notes = Recovery(cluster, name, self._directory, inputs, self._subs).notes(self._plan, made)
        restored = frozenset(store for note in self._notes.values() for store in note.stores)
        if restored != self._restored:
            self._plan = _planned(self._app, self._subs, restored)
            self._require_state_fits(inputs)
        self._watch = RestoreWatch(self._directory.restoring, self._app.hooks.on_restore or RestoreLines())
        self._watch.forget()
        for note in self._notes.values():
            self._watch.expect(note)

    def _among_instances(self) -> AbstractContextManager[Instance | None]:
        """A run that ends when all is read does not take turns with others."""
        if self._once:
            return nullcontext()
        return Instance(self._app.config["bootstrap.servers"], self._app.application_id)

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
            started: list[_RunningQuery] = []
            for each in group:
                started.append(self._start(cluster, around, each, {AVAILABLE_NOW: True}))
                self._wait_for(started[-1])
                if self._stop.is_set():
                    return
            # Those that feed each other go on by turns, until nobody has anything left.
            while len(started) > 1 and any([self._goes_on(cluster, query) for query in started]):
                pass

    def _goes_on(self, cluster: Cluster, query: _RunningQuery) -> bool:
        if not query.start_again(cluster):
            return False
        self._wait_for(query)
        return True

    def _wait_for(self, query: _RunningQuery) -> None:
        while True:
            while query.active and not self._stop.wait(POLL_S / 4):
                self._telling.tick()
                self._look()
            self._check()  # may start it again
            if self._stop.is_set() or not query.active:
                return

    def _start(self, cluster: Cluster, around: RunContext, each: QueryPlan, trigger: dict[str, Any]) -> _RunningQuery:
        self._phase = f"Spark to plan query {each.name}"
        running = _RunningQuery(self._app, each, self._directory, around, self._stop, self._note_for(each))
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


class _RunningQuery:
    """A Spark query, its sink and its folders."""

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
        self._plan = each
        self._directory = directory
        self._around = around
        self._stop = stop
        self._sink = TransactionalSink(
            bootstrap_servers=app.config["bootstrap.servers"],
            transactional_id=f"{app.application_id}-{each.name}",
            group_id=app.application_id,
            marker_topic=app.marker_topic,
            transaction_timeout_ms=app.config["transaction.timeout.ms"],
            timeout_s=patience_s(app.config),
            patient=True,
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
        self._starting: Mapping[TopicPartition, int] = {}
        self._trigger: dict[str, Any] = {}
        self._restarts = Restarts(patience_s(app.config))
        self._purge = _Purge(app, sorted({place.topic for place in self._own_input()}))
        self.progress = Progress(each.name, self._dropped)

    @property
    def _checkpoint(self) -> str:
        return self._directory.checkpoint(self._plan.name)

    @property
    def _initial_offsets(self) -> str:
        return f"{self._checkpoint}.initial-offsets"

    def _topics(self) -> list[str]:
        return self._builder({}).topics()

    def _own_topics(self) -> frozenset[str]:
        return frozenset(self._around.decorate(topic) for topic in self._around.inputs.internal)

    def _own_input(self) -> list[TopicPartition]:
        """Partitions of repartition topics that it reads."""
        counts = self._around.all_partitions()
        own = [topic for topic in self._topics() if topic in self._own_topics()]
        return [TopicPartition(topic, partition) for topic in own for partition in range(counts[topic])]

    def _builder(self, starting: Mapping[TopicPartition, int]) -> QueryBuilder:
        return QueryBuilder(
            self._around,
            self._plan,
            starting=starting,
            initial_offsets=self._initial_offsets if self._directory.is_local else None,
            stream_time=self._directory.stream_time(self._plan.name),
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
        config, folder = self._app.config, self._directory.restoring if self._directory.is_local else None
        return Restore(self._note, config["bootstrap.servers"], patience_s(config), folder)

    def start(self, cluster: Cluster, trigger: dict[str, Any]) -> None:
        if AVAILABLE_NOW in trigger:
            # What is there now includes all that queries in front of this one have just written.
            topics.await_decided(cluster, self._own_input())
        self._trigger = trigger
        self._reaching.learn(cluster, self._app.application_id, self._inputs())
        self._starting = self._first_offsets(cluster)
        self.begin()
        self._open()

    def start_again(self, cluster: Cluster) -> bool:
        """After it has ended, if something came for it meanwhile from queries beside it."""
        if self._stop.is_set() or not topics.unread(cluster, self._app.application_id, self._own_input()):
            return False
        self.begin()
        return True

    def begin(self) -> None:
        built = self._builder(self._starting).build()
        spark = self._around.spark
        # Spark keeps the number in the checkpoint: it holds from the first start on.
        spark.conf.set("spark.sql.shuffle.partitions", str(built.shuffle_partitions))
        # Old windows go with the next data; a batch only for that would follow nearly every other one. And what is to
        # end when all is read must not wait for the clock.
        by_clock = built.runs_without_data and AVAILABLE_NOW not in self._trigger
        spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", str(by_clock).lower())
        for name, value in self._checkpoint_settings().items():
            spark.conf.set(name, value)
        writer = (
            packed(built.rows)
            .writeStream.outputMode(built.output_mode)
            .queryName(f"{self._app.application_id}-{self._plan.name}")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(self._write)
            .trigger(**self._trigger_for(by_clock))
        )
        spark.sparkContext.setLocalProperty(POOL, f"{self._app.application_id}-{self._plan.name}")
        self._query = writer.start()
        self._started.set()
        self.progress.watch(self._query)

    def _checkpoint_settings(self) -> Mapping[str, str]:
        """But for those that the user has chosen, which the session has already."""
        if not self._directory.is_local:
            return {}
        given = self._app.config.below(SPARK_PREFIX)
        return {name: value for name, value in LOCAL_CHECKPOINT.items() if name not in given}

    def _trigger_for(self, by_clock: bool) -> dict[str, Any]:
        if not by_clock or "commit.interval.ms" in self._app.config.given:
            return self._trigger
        # With punctuators of the wall clock every trigger is a batch, with or without data.
        return {"processingTime": f"{CLOCK_INTERVAL_MS} milliseconds"}

    def _inputs(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic, number)
            for source in self._plan.sources
            for topic, count in self._around.real_topics(source).items()
            for number in range(count)
        ]

    def _first_offsets(self, cluster: Cluster) -> dict[TopicPartition, int]:
        sources = [(source, self._around.real_topics(source)) for source in self._plan.sources]
        default = self._app.config["auto.offset.reset"]
        found = topics.starting_offsets(cluster, self._app.application_id, sources, default)
        return found if self._directory.is_local else self._kept(cluster, found)

    def _kept(self, cluster: Cluster, starting: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where the first batch began, if there was one: the source keeps that in a file by itself, but knows local
        ones only."""
        try:
            return {**starting, **kept_offsets(self._initial_offsets)}
        except FileNotFoundError:
            exact = topics.exact_offsets(cluster, starting)
            keep_offsets(self._initial_offsets, exact)
            return exact

    def _open(self) -> None:
        """Fences a former run, also when there is nothing to write yet: its open transaction would hold up readers."""
        with self._opening:
            if not self._sink.is_open and self._query is not None:
                self._sink.open(str(self._query.id), f"{self._app.application_id}-{self._plan.name}")

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
        offsets = offsets_of_batch(self._checkpoint, batch_id)
        written = self._sink.write(rows, batch_id, offsets, self._origins(batch_id, offsets))
        self._restarts.succeeded()
        self.progress.wrote(written, time.monotonic() - began)
        self._purge.after(offsets)

    def _origins(self, batch_id: int, ends: Mapping[TopicPartition, int]) -> Origins | None:
        """Results of a native aggregate have the headers of a record of this batch."""
        if self._plan.aggregate is None:
            return None
        if batch_id:
            return Origins.between(offsets_of_batch(self._checkpoint, batch_id - 1), ends)
        return Origins.between(kept_offsets(self._initial_offsets), ends)

    def _wait_for_query(self) -> None:
        """The first batch may begin before `start` has returned."""
        self._started.wait()

    def status(self) -> Mapping[str, Any]:
        return {**self.progress.status(), "sub-topologies": list(self._plan.members)}

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
        logger.error("%s, query %s: %s", self._app.application_id, self._plan.name, error)
        kind = StreamsFenced if was_fenced(error) else StreamsFailed
        raise kind(_told(error, self._app.application_id, self._plan)) from None

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
            done = batches_of(self._checkpoint).done
            if self.progress.batch <= (-1 if done is None else done):
                return
            time.sleep(POLL_S / 10)


class _Purge:
    """Deletes the records of repartition topics that have been used."""

    def __init__(self, app: StreamsApp, names: Sequence[str]) -> None:
        self._servers = app.config["bootstrap.servers"]
        self._interval_s = app.config["repartition.purge.interval.ms"] / 1000
        self._names = frozenset(names)
        self._last = time.monotonic()

    def after(self, offsets: Mapping[TopicPartition, int]) -> None:
        used = {place: offset for place, offset in offsets.items() if place.topic in self._names and offset > 0}
        if not used or time.monotonic() - self._last < self._interval_s:
            return
        self._last = time.monotonic()
        with Cluster(parse_bootstrap(self._servers), timeout_s=PURGE_PATIENCE_S) as cluster:
            try:
                admin.delete_records(cluster, used)
            except ClientError as error:
                logger.info("used repartition records stay until the next time: %s", error)


# ---- failures


def _is_stopping(error: StreamingQueryException) -> bool:
    return _Stopping.__name__ in str(error)


def _told(error: StreamingQueryException, application_id: str, each: QueryPlan) -> str:
    ours = told_by_us(error)
    return f"{application_id}: {ours}" if ours else f"{application_id}, query {each.name}: {told(error)}"
