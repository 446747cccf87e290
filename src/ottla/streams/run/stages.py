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
from ottla.pipelines.source.columns import HEADERS_TYPE
from ottla.pipelines.workers import settle_worker
from ottla.serdes.base import Serde
from ottla.streams.record import Headers, Raw
from ottla.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.tasks.operators.base import NULL_KEY_OR_VALUE
from ottla.streams.tasks.task import Task
from ottla.streams.topology.graph import Graph, Node, SinkNode, SubTopology

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from ottla.streams.topology.stores import StoreBackend

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
    clock: Callable[[], int] | None = None
    """Instead of the machine's, in tests. Punctuators of the wall clock then look at it when a batch has data."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000 if self.clock is None else self.clock()

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
    from ottla.streams.run.replicas import replica_of  # noqa: PLC0415  few topologies have any

    replica = replica_of(spec.graph, spec.config, spec.application_id)
    dropped = replica.take_dropped()
    if spec.dropped is not None and dropped:
        spec.dropped.add(dropped)
    return replica.tables.stores


class PythonStage:
    """For mapInArrow: nodes without state. Where records come with numbers (`origins`), so do the rows that are made of
    them, in the place of offsets."""

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        tasks: dict[int, Task] = {}
        for batch in batches:
            if not batch.num_rows:
                continue
            out: list[Raw] = []
            places: list[int] = []
            for partition, place, some in _pieces(batch):
                made = self._task(tasks, partition).process(some)
                out += made
                places += [place] * len(made)
            yield output_batch(out, batch.column("partition")[0].as_py(), places)
        self._close(tasks)

    def _task(self, tasks: dict[int, Task], partition: int) -> Task:
        task = tasks.get(partition)
        if task is None:
            task = tasks[partition] = self._spec.task(partition, _no_stores, self._spec.now())
        return task

    def _close(self, tasks: dict[int, Task]) -> None:
        for task in tasks.values():
            task.close()
            self._spec.count_dropped(task)


COUNTED_TYPE: Final = "kb binary, task int, ts bigint, origin bigint, n bigint"
_COUNTED: Final = pa.schema(
    [("kb", pa.binary()), ("task", pa.int32()), ("ts", pa.int64()), ("origin", pa.int64()), ("n", pa.int64())]
)


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
        lasts: dict[tuple[bytes | None, int], int] = {}
        topic = self._topic
        nothing = 0
        for batch in batches:
            for partition, number, some in _pieces(batch) if batch.num_rows else ():
                place = partition if self._by_partition else 0
                for written, _, _, key, value, timestamp, headers in self._task(tasks, partition).process(some):
                    if written != topic:
                        continue
                    if key is None or value is None:
                        nothing += 1
                        continue
                    name = (key, place)
                    counts[name] = counts.get(name, 0) + 1
                    lasts[name] = number << 1 | bool(headers)
                    if timestamp > times.get(name, -1):
                        times[name] = timestamp
        self._close(tasks)
        if nothing and self._spec.dropped is not None:
            self._spec.dropped.add({NULL_KEY_OR_VALUE: nothing})
        keys, places = zip(*counts, strict=True) if counts else ((), ())
        columns = (keys, places, times.values(), lasts.values(), counts.values())
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


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[int, int, list[Raw]]]:
    """Records that go through a task together: the partition, the first one's offset (its number, if there are numbers)
    and the records. One with headers goes alone, if there are numbers: what is made of it leads back to it."""
    numbers = batch.column("origin") if "origin" in batch.schema.names else None
    records = records_of(batch)
    if numbers is None or not any(record[6] for record in records):
        for partition, start, some in _by_partition(records):
            yield partition, some[0][2] if numbers is None else numbers[start].as_py() >> 1, some
        return
    alone = False
    piece: list[int] = []
    for place, record in enumerate(records):
        if piece and (alone or record[6] or record[1] != records[piece[0]][1]):
            yield _piece(records, piece, numbers)
            piece = []
        alone = bool(record[6])
        piece.append(place)
    yield _piece(records, piece, numbers)


def _piece(records: list[Raw], places: list[int], numbers: pa.Array) -> tuple[int, int, list[Raw]]:
    first = places[0]
    return records[first][1], numbers[first].as_py() >> 1, [records[place] for place in places]


def _by_partition(records: list[Raw]) -> Iterator[tuple[int, int, list[Raw]]]:
    """With the place of the first one. Nearly always all are of one partition: a Spark partition reads only one."""
    first = records[0].partition
    if all(record[1] == first for record in records):
        yield first, 0, records
        return
    found: dict[int, list[Raw]] = {}
    starts: dict[int, int] = {}
    for place, record in enumerate(records):
        found.setdefault(record[1], []).append(record)
        starts.setdefault(record[1], place)
    for partition, some in found.items():
        yield partition, starts[partition], some


def output_batch(records: Sequence[Raw], src_partition: int, src_offset: int | Sequence[int]) -> pa.RecordBatch:
    """Rows for the sink that keep the order of `records`. They come of one offset, or of one each."""
    count = len(records)
    offsets = [src_offset] * count if isinstance(src_offset, int) else src_offset
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
            pa.array(offsets, pa.int64()),
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
