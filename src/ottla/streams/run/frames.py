"""From the plan of one query to its data frame: what is read, what happens to it, rows for the sink."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.model.ids import TopicPartition
from ottla.pipelines.rows import INPUT_COLUMNS, OUTPUT_TYPE, without_null_headers
from ottla.pipelines.source.data_source import OttlaDataSource
from ottla.pipelines.source.offsets import to_json
from ottla.pipelines.source.options import Topics
from ottla.pipelines.source.planned import stream_of
from ottla.streams.errors import AGGREGATE_RESULT
from ottla.streams.expressions.bound import Bound
from ottla.streams.expressions.parts import RECORDS, with_leaves
from ottla.streams.plan.columns import types_behind, unread_fields, uses_headers
from ottla.streams.plan.in_source import last_of
from ottla.streams.plan.plan import Mode, NativeAggregate, QueryPlan
from ottla.streams.run import native, native_aggregates, reading_stages
from ottla.streams.run.changelogs import Restore
from ottla.streams.run.config import CONTINUE, Config
from ottla.streams.run.parsed_records import ParsedRecords, parsed_parts
from ottla.streams.run.source_aggregates import ByKey, ByRepartitionedWindow, Reducer, SourceAggregate, WholeWindows
from ottla.streams.run.stages import COUNTED, CountingStage, PythonStage, StageSpec, TailStage, Waits, for_python
from ottla.streams.run.stateful import TaskStage
from ottla.streams.run.topics import Inputs, own_topics
from ottla.streams.run.type_columns import spark_type
from ottla.streams.run.vectors import VectorChain
from ottla.streams.tasks.idling import NEVER_WAITS
from ottla.streams.tasks.operators.base import NO_KEY_FOR_REPARTITION
from ottla.streams.topology.graph import (
    Graph,
    InvalidTimestamp,
    Node,
    ProcessorNode,
    SourceNode,
    SubTopology,
    changelog_topic,
    decorated,
)
from ottla.streams.topology.operations import DropNullKeys, PassThrough

WINDOW_RETENTION_MS: Final = 86_400_000
"""How much longer than their grace Spark keeps windows. Its watermark follows the partition that is furthest ahead, so
this is how far partitions may be apart in event time before one that is behind loses records."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all queries of an application share."""

    application_id: str
    config: Config
    inputs: Inputs
    graph: Graph
    spark: SparkSession
    clock: Callable[[], int] | None = None
    """Instead of the machine's, in tests."""

    def decorate(self, topic: str) -> str:
        return decorated(self.application_id, topic)

    def real_topics(self, source: SourceNode) -> dict[str, int]:
        """What a source reads, under the names that brokers know, with the number of partitions."""
        return {
            (self.decorate(topic) if topic in self.inputs.internal else topic): self.inputs.partitions[topic]
            for topic in self.inputs.of(source)
        }

    def subscription(self, sources: Sequence[SourceNode]) -> Topics:
        """A pattern goes to the source as it is, which finds the topics that come to match it while it runs."""
        patterns = [source.pattern for source in sources if source.pattern is not None]
        if not patterns:
            return Topics(names=tuple(topic for source in sources for topic in self.real_topics(source)))
        named = [topic for source in sources if source.pattern is None for topic in self.real_topics(source)]
        others = f"(?!{own_topics(self.application_id)})(?:{'|'.join(f'(?:{pattern})' for pattern in patterns)})"
        return Topics(pattern="|".join([*map(re.escape, named), others]))

    def all_partitions(self) -> dict[str, int]:
        """Of every topic, under the names that brokers know."""
        return {
            (self.decorate(topic) if topic in self.inputs.internal else topic): number
            for topic, number in self.inputs.partitions.items()
        }

    @property
    def dead_letters(self) -> str | None:
        found: str | None = self.config["errors.dead.letter.queue.topic.name"]
        return found

    def unreadable(self) -> native.Unreadable:
        goes_on = self.config["deserialization.exception.handler"] == CONTINUE
        return native.Unreadable(fail=not goes_on, dead_letters=self.dead_letters if goes_on else None)


WAIT_MS: Final = 1000
"""How long a source waits for records at a time; who stops a query waits for the rest of it."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query that is ready to start."""

    plan: QueryPlan
    rows: DataFrame
    output_mode: str
    shuffle_partitions: int
    runs_without_data: bool = False
    """Whether batches run when nothing was read: for punctuators of the wall clock only."""
    by_record: bool = True
    """Whether Spark itself looks at each record, or is given what reading tasks have made of them: parts of aggregates,
    cells for tasks, chunks for the sink."""


class QueryBuilder:
    """Makes the data frame of one query."""

    def __init__(
        self,
        around: RunContext,
        plan: QueryPlan,
        *,
        starting: Mapping[TopicPartition, int],
        initial_offsets: str | None,
        stream_time: str,
        dropped: Any = None,
        restore: Restore | None = None,
        times: Any = None,
        idle_ms: int = 0,
        origin_base: int = 0,
    ) -> None:
        self._around = around
        self._plan = plan
        self._starting = starting
        self._initial_offsets = initial_offsets
        self._stream_time = stream_time
        self._dropped = dropped
        self._restore = restore
        self._times = times
        self._idle_ms = idle_ms
        self._origin_base = origin_base

    def build(self) -> Query:
        plan = self._plan
        if plan.first.mode is Mode.TASK:
            return self._task()
        if plan.aggregate is None:
            if plan.first.mode is Mode.NATIVE:
                return Query(plan, self._native_rows(), "append", 1)
            return Query(plan, self._python_rows(plan.first.sub), "append", 1, by_record=False)
        return self._aggregated()

    # ---- reading

    def _source(self, *, headers: bool, origin: bool = False, without: Sequence[str] = ()) -> DataFrame:
        options = self._source_options(headers=headers, origin=origin, without=without)
        return stream_of(self._around.spark, OttlaDataSource, options)

    def _parsed(self, *, headers: bool, origin: bool = False, without: Sequence[str] = ()) -> DataFrame:
        """For columns of Spark: keys and values are parsed where they are read, if that is the shorter way."""
        (source,) = self._plan.sources
        parts = parsed_parts(source)
        if not parts:
            return self._source(headers=headers, origin=origin, without=without)
        stage = ParsedRecords(parts, headers, origin, bytes_too=self._around.unreadable().dead_letters is not None)
        options = self._source_options(headers=headers, without=without)
        pickled = reading_stages.pickled(stage)
        return reading_stages.records(self._around.spark, options, pickled, stage.columns())

    def _source_options(self, *, headers: bool, origin: bool = False, without: Sequence[str] = ()) -> dict[str, str]:
        config, reach = self._around.config, self._around.config.reach("main.consumer")
        options = {
            "kafka.bootstrap.servers": reach.servers,
            "clientSettingsFile": reach.settings_file,
            **self._subscription(),
            "startingOffsets": json.dumps(to_json(dict(self._starting))),
            "includeHeaders": str(headers).lower(),
            "includeOrigin": str(origin).lower(),
            "originBase": str(self._origin_base),
            "omit": ",".join(without),
            "targetMillisPerTrigger": str(config["batch.target.ms"]),
            "brokerTimeoutMillis": str(max(1, config["task.timeout.ms"])),
            "waitMillis": str(WAIT_MS),
        }
        if self._initial_offsets is not None:
            options["initialOffsetsFile"] = self._initial_offsets
        most = config["max.records.per.batch"]
        return options if most is None else {**options, "maxOffsetsPerTrigger": str(most)}

    def _subscription(self) -> dict[str, str]:
        wanted = self._around.subscription(self._plan.sources)
        if wanted.pattern is None:
            return {"subscribe": ",".join(wanted.names)}
        return {"subscribePattern": wanted.pattern}

    def _records(self, *, origin: bool = False) -> DataFrame:
        """As Python stages take them."""
        columns = [*INPUT_COLUMNS, "origin"] if origin else INPUT_COLUMNS
        records = self._source(headers=True, origin=origin)
        timed = records.withColumn("timestamp", F.unix_millis("timestamp"))
        return timed.withColumn("headers", without_null_headers(F.col("headers"))).select(*columns)

    # ---- without state

    def _native_rows(self) -> DataFrame:
        (source,) = self._plan.sources
        flow = native.read(self._parsed(headers=True), source, self._around.unreadable())
        return native.sink_rows(self._plan.first.sub, flow, source.name, self._target())

    def _target(self, hash_column: str | None = None) -> native.Target:
        around = self._around
        return native.Target(around.decorate, around.inputs.number, hash_column)

    def _python_rows(self, sub: SubTopology) -> DataFrame:
        stage = PythonStage(self._spec(sub))
        where_it_reads = self._pickled(stage)
        if where_it_reads is None:
            return self._records().mapInArrow(stage, OUTPUT_TYPE)
        return reading_stages.packed(self._around.spark, self._source_options(headers=True), where_it_reads)

    def _pickled(self, stage: PythonStage) -> str | None:
        """For the tasks that read. None if it has to stand behind them: it is large, or has replicas of global tables,
        which count what they leave out by themselves and outlive a batch."""
        if self._around.graph.global_tables:
            return None
        found = reading_stages.pickled(stage.with_counter(None))
        return None if reading_stages.is_large(found) else found

    def _spec(self, sub: SubTopology) -> StageSpec:
        around = self._around
        own, graph = for_python(sub, around.graph)
        return StageSpec(
            own,
            graph,
            around.application_id,
            dict(around.config),
            around.all_partitions(),
            self._dropped,
            around.clock,
            self._restore,
            self._times,
            self._waits(sub),
        )

    def _waits(self, sub: SubTopology) -> Waits | None:
        """Of tasks with several inputs, or with a pattern that may come to match some; None if they never wait."""
        if self._plan.first.mode is not Mode.TASK or sub is not self._plan.first.sub or self._idle_ms == NEVER_WAITS:
            return None
        topics: dict[str, int] = {}
        for source in self._plan.sources:
            topics |= self._around.real_topics(source)
        several = len(topics) > 1 or any(source.pattern is not None for source in self._plan.sources)
        return Waits(topics, self._idle_ms) if several else None

    # ---- aggregates

    def _aggregated(self) -> Query:
        plan, around = self._plan, self._around
        aggregate = plan.aggregate
        assert aggregate is not None
        tasks = self.tasks()
        result, dead_letters = self._results(aggregate)
        more = []
        if aggregate.store.logged:
            topic = changelog_topic(around.application_id, aggregate.store.name)
            more.append(native_aggregates.changelog_row(aggregate, topic))
        name = aggregate.node.name
        if plan.tail is None:
            rows = native.sink_rows(SubTopology(0, (), ()), result.flow, name, self._target(), more)
        elif plan.tail.mode is Mode.NATIVE:
            rows = native.sink_rows(plan.tail.sub, result.flow, name, self._target(result.target_hash), more)
        else:
            more.append(native_aggregates.result_row(aggregate))
            both = native.sink_rows(SubTopology(0, (), ()), result.flow, name, self._target(), more)
            both = both.withColumn("headers", without_null_headers(F.col("headers")))
            rows = both.mapInArrow(TailStage(self._spec(plan.tail.sub), AGGREGATE_RESULT), OUTPUT_TYPE)
        if dead_letters is not None:
            # An aggregate lets nothing pass beside it: what cannot be read is found by a second look at the input.
            rows = rows.unionByName(dead_letters)
        partitions = max(1, min(tasks, around.spark.sparkContext.defaultParallelism))
        return Query(plan, rows, "update", partitions, by_record=not aggregate.in_source)

    def _results(self, aggregate: NativeAggregate) -> tuple[native_aggregates.Aggregated, DataFrame | None]:
        """Of the aggregate, and rows of dead letters if there may be some."""
        timing = native_aggregates.Timing(self._stream_time, self.tasks(), WINDOW_RETENTION_MS, self._dropped)
        if aggregate.in_source:
            return self._begun_in_source(aggregate, timing), None
        counts = self._counted_in_python()
        if counts is not None:
            count = aggregate.aggregate.bind({})
            by_parts = replace(aggregate, parts=(RECORDS,))
            return native_aggregates.merged(self._unshuffled(counts), by_parts, count), None
        flow, dead_letters = self._aggregate_input()
        first = self._plan.first
        drops = first.mode is Mode.NATIVE and any(map(_drops_null_keys, first.sub.nodes))
        null_key = NO_KEY_FOR_REPARTITION if drops else None
        return native_aggregates.aggregate(flow, aggregate, timing, null_key), dead_letters

    def _unshuffled(self, frame: DataFrame) -> DataFrame:
        """What one task reads and one task aggregates need not pass a shuffle, which costs more than a small batch."""
        read = sum(sum(self._around.real_topics(source).values()) for source in self._plan.sources)
        return frame.coalesce(1) if read == 1 and self.tasks() == 1 else frame

    def tasks(self) -> int:
        aggregate = self._plan.aggregate
        if aggregate is not None and aggregate.repartitioned is not None:
            return self._around.inputs.partitions[aggregate.repartitioned]
        return self._around.inputs.tasks(self._plan.first.sub)

    def _begun_in_source(
        self, aggregate: NativeAggregate, timing: native_aggregates.Timing
    ) -> native_aggregates.Aggregated:
        nodes = self._plan.first.sub.nodes
        key, value = types_behind(nodes)[last_of(nodes).name]
        arguments: dict[str, Bound] = {}
        bound = with_leaves(aggregate.aggregate.bind({"key": key, "value": value}), arguments)
        reducer = self._reducer(aggregate)
        stage = SourceAggregate(self._chain(aggregate, arguments), reducer)
        options = self._source_options(headers=False, without=unread_fields(nodes, aggregate))
        spark = self._around.spark
        parts = reading_stages.partial(spark, options, reading_stages.pickled(stage), reducer.columns())
        if aggregate.kept_in_source:
            return native_aggregates.whole_windows(parts, aggregate, bound)
        unshuffled = self._unshuffled(parts)
        if aggregate.windowed:
            return native_aggregates.merged_windows(unshuffled, aggregate, timing, bound)
        return native_aggregates.merged(unshuffled, aggregate, bound)

    def _chain(self, aggregate: NativeAggregate, arguments: Mapping[str, Bound]) -> VectorChain:
        (source,) = self._plan.sources
        key_serde = aggregate.store.key_serde
        assert key_serde is not None
        return VectorChain(
            source,
            tuple(node for node in self._plan.first.sub.nodes if isinstance(node, ProcessorNode)),
            key_serde,
            arguments,
            windowed=aggregate.windowed,
            fails=self._around.unreadable().fail,
            skips_untimed=source.extractor.on_invalid is InvalidTimestamp.SKIP,
        )

    def _reducer(self, aggregate: NativeAggregate) -> Reducer:
        if not aggregate.windowed:
            return ByKey(aggregate.parts, by_partition=aggregate.repartitioned is None)
        windows = native_aggregates.windows_of(aggregate)
        if aggregate.kept_in_source:
            return WholeWindows(self._stream_time, windows, aggregate.parts)
        return ByRepartitionedWindow(self._stream_time, self.tasks(), windows, aggregate.parts)

    def _counted_in_python(self) -> DataFrame | None:
        """A plain count behind a Python stage begins inside it, unless dead letters have to leave it too."""
        plan, around = self._plan, self._around
        aggregate = plan.aggregate
        if plan.first.mode is not Mode.PYTHON or aggregate is None or aggregate.windowed or around.dead_letters:
            return None
        source, counting = aggregate.source, aggregate.aggregate
        same_keys = source is not None and source.key_serde == aggregate.store.key_serde
        if source is None or not same_keys or not counting.counts_records:
            return None
        repartitioned = aggregate.repartitioned is not None
        topic = around.decorate(source.topics[0]) if repartitioned else source.topics[0]
        stage = CountingStage(self._spec(plan.first.sub), topic, by_partition=not repartitioned)
        where_it_reads = self._pickled(stage)
        columns = COUNTED.columns()
        if where_it_reads is None:
            types = ", ".join(f"{name} {spark_type(kind)}" for name, kind in columns.items())
            return self._records(origin=True).mapInArrow(stage, types)
        return reading_stages.partial(around.spark, self._source_options(headers=True), where_it_reads, columns)

    def _aggregate_input(self) -> tuple[native.Flow, DataFrame | None]:
        """The records for the aggregate, and rows of dead letters if there may be some."""
        plan, around = self._plan, self._around
        aggregate = plan.aggregate
        assert aggregate is not None
        if plan.first.mode is Mode.PYTHON:
            assert aggregate.source is not None
            spec = self._spec(plan.first.sub)
            records = self._unshuffled(self._records(origin=True))
            rows = records.mapInArrow(PythonStage(spec), OUTPUT_TYPE)
            input_topic = aggregate.source.topics[0]
            wanted = around.decorate(input_topic) if aggregate.repartitioned is not None else input_topic
            is_record = F.col("topic") == wanted
            flow = native.from_output(rows.where(is_record), aggregate.source)
            if around.dead_letters is None:
                return flow, None
            # The second look at the input counts nothing: what was left out has been counted by the first.
            again = records.mapInArrow(PythonStage(replace(spec, dropped=None)), OUTPUT_TYPE)
            return flow, again.where(~is_record)
        (source,) = plan.sources
        nodes = plan.first.sub.nodes
        without = unread_fields(nodes, aggregate)
        errors = around.unreadable()
        headers = uses_headers(nodes) or errors.dead_letters is not None  # those of dead letters stay with them
        records = self._parsed(headers=headers, origin=True, without=without)
        flow = native.read(self._unshuffled(records), source, errors)
        # The aggregate counts and leaves out what has no key: one look at each record is enough.
        flow, _ = native.trunk([_letting_null_keys_pass(node) for node in nodes], source.name, flow)
        if flow.dead_letters is None:
            return flow, None
        return native.readable(flow), native.dead_letter_rows(flow)

    # ---- tasks

    def _task(self) -> Query:
        tasks = self.tasks()
        spec = self._spec(self._plan.first.sub)
        stage = TaskStage(spec, tasks)
        together = str(spec.waits is not None).lower()
        options = {**self._source_options(headers=True), "together": together}
        if stage.by_wall_clock:  # its batches are due whether or not there are records
            del options["waitMillis"]
        rows = stage.rows(self._around.spark, options)
        return Query(self._plan, rows, "append", stage.shuffle_partitions, stage.by_wall_clock, by_record=False)


def _drops_null_keys(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and isinstance(node.operation, DropNullKeys)


def _letting_null_keys_pass(node: Node) -> Node:
    if isinstance(node, ProcessorNode) and _drops_null_keys(node):
        return replace(node, operation=PassThrough())
    return node
