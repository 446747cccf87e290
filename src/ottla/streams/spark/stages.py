"""Python at work inside Spark: the test driver's own record-by-record cores over Arrow batches.

A stage is a function for `mapInArrow`. Columns become Python values a whole column at a time; what comes out goes back
the same way. Everything a stage needs travels with it to the workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ottla.client.partitioner import partition_of_key
from ottla.streams.graph import Graph, Node, SinkNode, SubTopology
from ottla.streams.record import Headers, Raw
from ottla.streams.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.spark.columns import HEADERS_TYPE
from ottla.streams.spark.workers import settle_worker
from ottla.streams.task import Task

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from ottla.streams.stores import StoreBackend

OUTPUT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS_TYPE),
        ("timestamp", pa.int64()),
        ("src_partition", pa.int32()),
        ("src_offset", pa.int64()),
        ("seq", pa.int32()),
    ]
)

Dropped = dict[str, int]


@dataclass(frozen=True, slots=True)
class StageSpec:
    """What a stage needs to make tasks, on whatever machine it runs."""

    sub: SubTopology
    graph: Graph
    application_id: str
    config: Mapping[str, Any]
    partitions: Mapping[str, int]
    """Of the topics that are there, for partitioners."""
    dropped: Accumulator[Dropped] | None = field(default=None, compare=False)

    def task(self, partition: int, stores: Callable[[str], StoreBackend], now: int) -> Task:
        return Task(
            self.sub,
            self.graph,
            self.application_id,
            partition,
            stores,
            self.config,
            global_stores=global_stores(self),
            partition_count=self.partition_count,
            now=now,
        )

    def partition_count(self, topic: str) -> int:
        count = self.partitions.get(topic)
        if count is None:
            raise ValueError(f"topic {topic}, for which a partition is to be chosen, does not exist: create it")
        return count

    def count_dropped(self, task: Task) -> None:
        if self.dropped is not None and task.dropped:
            self.dropped.add(task.dropped)


def for_python(sub: SubTopology, graph: Graph) -> tuple[SubTopology, Graph]:
    """The nodes as a task needs them, with a graph of their own: synthetic ones are not in the topology's."""
    nodes = tuple(_with_partitioner(node) for node in sub.nodes)
    own = Graph(
        nodes={node.name: node for node in nodes},
        stores={store.name: store for store in sub.stores},
        repartition_topics=dict(graph.repartition_topics),
        global_tables=dict(graph.global_tables),
    )
    return replace(sub, nodes=nodes), own


def _with_partitioner(node: Node) -> Node:
    """A windowed key goes to the partition of the key inside it, as Kafka Streams has it."""
    if not isinstance(node, SinkNode) or node.partitioner is not None:
        return node
    if not isinstance(node.key_serde, (TimeWindowedSerde, SessionWindowedSerde)):
        return node
    return replace(node, partitioner=ByInnerKey(node.key_serde.inner))


class ByInnerKey:
    """A partitioner."""

    def __init__(self, serde: Serde[Any]) -> None:
        self._serialize = serde.serialize

    def __call__(self, _topic: str, key: Any, _value: Any, partitions: int) -> int | None:
        inner = self._serialize(key.key)
        return None if inner is None else partition_of_key(inner, partitions)


def global_stores(spec: StageSpec) -> Mapping[str, Any]:
    """Replicas of the global tables, as they are now."""
    if not spec.graph.global_tables:
        return {}
    from ottla.streams.spark.replicas import replicas  # noqa: PLC0415  few topologies have any

    return replicas(spec.graph, spec.config, spec.application_id)


class PythonStage:
    """For mapInArrow: nodes without state."""

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        tasks: dict[int, Task] = {}
        for batch in batches:
            if not batch.num_rows:
                continue
            records = records_of(batch)
            out: list[Raw] = []
            for partition, some in _by_partition(records):
                task = tasks.get(partition)
                if task is None:
                    task = tasks[partition] = self._spec.task(partition, _no_stores, _now())
                out += task.process(some)
            first = records[0]
            yield output_batch(out, first.partition, first.offset)
        for task in tasks.values():
            task.close()
            self._spec.count_dropped(task)


COUNTED_TYPE: Final = "kb binary, task int, ts bigint, n bigint"
_COUNTED: Final = pa.schema([("kb", pa.binary()), ("task", pa.int32()), ("ts", pa.int64()), ("n", pa.int64())])


class CountingStage(PythonStage):
    """In front of a native count: what the nodes write to `topic` is counted by key here already, and few rows leave.

    Rows for other topics are dead letters, which whoever wants them finds by a `PythonStage`.
    """

    def __init__(self, spec: StageSpec, topic: str, *, by_partition: bool) -> None:
        super().__init__(spec)
        self._topic = topic
        self._by_partition = by_partition

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        tasks: dict[int, Task] = {}
        counts: dict[tuple[bytes | None, int], int] = {}
        times: dict[tuple[bytes | None, int], int] = {}
        topic = self._topic
        for batch in batches:
            for partition, some in _by_partition(records_of(batch)) if batch.num_rows else ():
                task = tasks.get(partition)
                if task is None:
                    task = tasks[partition] = self._spec.task(partition, _no_stores, _now())
                place = partition if self._by_partition else 0
                for written, _, _, key, value, timestamp, _ in task.process(some):
                    if value is None or written != topic:
                        continue
                    name = (key, place)
                    counts[name] = counts.get(name, 0) + 1
                    if timestamp > times.get(name, -1):
                        times[name] = timestamp
        for task in tasks.values():
            task.close()
            self._spec.count_dropped(task)
        keys, places = zip(*counts, strict=True) if counts else ((), ())
        columns = (keys, places, times.values(), counts.values())
        arrays = [pa.array(list(column), kind.type) for column, kind in zip(columns, _COUNTED, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_COUNTED)


class TailStage(PythonStage):
    """Behind a native aggregate: takes rows for the sink, of which those of one topic are records for its nodes."""

    def __init__(self, spec: StageSpec, topic: str) -> None:
        super().__init__(spec)
        self._topic = topic

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc  # noqa: PLC0415  slow to import, and only tails need it

        for batch in batches:
            own = pc.equal(batch.column("topic"), self._topic)
            yield batch.filter(pc.invert(own))
            yield from super().__call__(iter([_as_input(batch.filter(own))]))


def _as_input(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = {"src_offset": "offset"}
    wanted = ("key", "value", "topic", "partition", "src_offset", "timestamp", "headers")
    columns = [batch.column(name) for name in wanted]
    return pa.RecordBatch.from_arrays(columns, [names.get(name, name) for name in wanted])


def _no_stores(name: str) -> StoreBackend:
    raise KeyError(f"a stage without state was asked for the store {name}")


def _now() -> int:
    return time.time_ns() // 1_000_000


# ---- rows and records


def records_of(batch: pa.RecordBatch) -> list[Raw]:
    """In the order of rows."""
    return list(
        map(
            Raw,
            batch.column("topic").to_pylist(),
            batch.column("partition").to_pylist(),
            batch.column("offset").to_pylist(),
            batch.column("key").to_pylist(),
            batch.column("value").to_pylist(),
            batch.column("timestamp").to_pylist(),
            _headers_of(batch.column("headers")),
        )
    )


def _headers_of(column: pa.Array) -> Sequence[Headers]:
    if column.null_count == len(column):
        return [()] * len(column)
    return [
        tuple((header["key"], header["value"]) for header in headers) if headers else ()
        for headers in column.to_pylist()
    ]


def _by_partition(records: list[Raw]) -> Iterator[tuple[int, list[Raw]]]:
    """Nearly always all are of one: a Spark partition reads one topic partition."""
    first = records[0].partition
    if all(record[1] == first for record in records):
        yield first, records
        return
    found: dict[int, list[Raw]] = {}
    for record in records:
        found.setdefault(record[1], []).append(record)
    yield from found.items()


def output_batch(records: Sequence[Raw], src_partition: int, src_offset: int) -> pa.RecordBatch:
    """Rows for the sink that keep the order of `records`."""
    count = len(records)
    topics, partitions, _, keys, values, times, headers = zip(*records, strict=True) if records else ((),) * 7
    return pa.RecordBatch.from_arrays(
        [
            pa.array(topics, pa.string()),
            pa.array([None if partition < 0 else partition for partition in partitions], pa.int32()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            _header_column(headers),
            pa.array(times, pa.int64()),
            pa.array([src_partition] * count, pa.int32()),
            pa.array([src_offset] * count, pa.int64()),
            pa.array(range(count), pa.int32()),
        ],
        schema=OUTPUT,
    )


def _header_column(headers: Sequence[Headers]) -> pa.Array:
    if not any(headers):
        return pa.nulls(len(headers), HEADERS_TYPE)
    return pa.array(
        [[{"key": key, "value": value} for key, value in each] if each else None for each in headers], HEADERS_TYPE
    )
