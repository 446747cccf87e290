"""Python at work inside Spark: the test driver's own record-by-record cores over Arrow batches.

A stage is a function for `mapInArrow`. Columns become Python values a whole column at a time; what comes out goes back
the same way. Everything a stage needs travels with it to the workers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.partitioner import partition_of_key
from ottla.model.ids import TopicPartition
from ottla.pipelines.rows import have_no_headers, headers_of
from ottla.pipelines.source.columns import HEADERS_TYPE
from ottla.pipelines.workers import settle_worker
from ottla.serdes.base import Serde, Where, placed
from ottla.streams.expressions.parts import RECORDS
from ottla.streams.record import Headers, Raw
from ottla.streams.run.partials import Partials
from ottla.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.tasks.chains import Chain, SinkColumns, chain_of, is_text
from ottla.streams.tasks.current import new
from ottla.streams.tasks.offset_metadata import PartitionTimes
from ottla.streams.tasks.operators.base import NULL_KEY_OR_VALUE
from ottla.streams.tasks.task import Task
from ottla.streams.topology.graph import Graph, Node, SinkNode, SubTopology

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from ottla.streams.run.changelogs import Restore
    from ottla.streams.run.reading_stages import ReadingTask
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


class Reached(NamedTuple):
    """How far a task has come with an input partition."""

    times: PartitionTimes
    waiting: int | None = None
    """The first offset that was read and waits to be processed."""


class Waits(NamedTuple):
    """What tasks know of their inputs as a whole."""

    partitions: Mapping[str, int]
    """Of each input topic, how many; of those that come to match a pattern later tasks hear by themselves."""
    idle_ms: int

    def places(self, task: int) -> list[tuple[str, int]]:
        return [(topic, task) for topic, number in self.partitions.items() if task < number]


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
    restore: Restore | None = None
    """Where a task finds its state that has none in Spark's."""
    times: Accumulator[dict[TopicPartition, Reached]] | None = field(default=None, compare=False)
    """Told how far tasks have come, which is committed for each input partition."""
    waits: Waits | None = None
    """None: a task takes what it is given, whatever else there is."""

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

    def tell_times(self, task: Task, left: Sequence[Raw]) -> None:
        if self.times is None:
            return
        firsts: dict[tuple[str, int], int] = {}
        for raw in left:
            firsts.setdefault((raw.topic, raw.partition), raw.offset)
        self.times.add(
            {TopicPartition(*place): Reached(each, firsts.get(place)) for place, each in task.times().items()}
        )

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
        self._where = Where()
        self._serialize = placed(serde, self._where).serialize

    def __call__(self, topic: str, key: Any, _value: Any, partitions: int) -> int | None:
        self._where.topic, self._where.headers = topic, []
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
    them, in the place of offsets.

    They run as a chain where that is possible, a whole batch at once, and as a task where it is not.
    """

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec
        self._tasks: dict[int, Task] = {}
        self._compiled: list[Chain | None] = []
        """None or one: made where the stage runs."""

    def with_counter(self, dropped: Any) -> Self:
        """The same, with something else that is told of dropped records."""
        made = copy(self)
        made._spec = replace(self._spec, dropped=dropped)
        return made

    def rows(self, batches: Iterator[pa.RecordBatch], task: ReadingTask) -> Iterator[pa.RecordBatch]:
        """In a task that reads."""
        return self.with_counter(task.seen)(batches)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chain = self._begin()
        for batch in batches:
            if not batch.num_rows:
                continue
            at_once = None if chain is None else chained(chain, batch)
            if at_once is None:
                yield self._one_by_one(batch)
                continue
            yield from output_columns(at_once)
            self._drop(at_once.dropped)
        self._close()

    def _begin(self) -> Chain | None:
        settle_worker()
        self._tasks = {}
        if not self._compiled:
            spec = self._spec
            plain = spec.config.get("default.timestamp.extractor") is None
            self._compiled.append(chain_of(spec.sub, spec.graph, spec.application_id) if plain else None)
        return self._compiled[0]

    def _one_by_one(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        out: list[Raw] = []
        places: list[int] = []
        for partition, place, some in _pieces(batch):
            made = self._task(partition).process(some)
            out += made
            places += [place] * len(made)
        return output_batch(out, batch.column("partition")[0].as_py(), places)

    def _task(self, partition: int) -> Task:
        task = self._tasks.get(partition)
        if task is None:
            task = self._tasks[partition] = self._spec.task(partition, _no_stores, self._spec.now())
        return task

    def _drop(self, dropped: Dropped) -> None:
        found = {reason: number for reason, number in dropped.items() if number}
        if found and self._spec.dropped is not None:
            self._spec.dropped.add(found)

    def _close(self) -> None:
        for task in self._tasks.values():
            task.close()
            self._spec.count_dropped(task)


COUNTED: Final = Partials(("kb", "task"), (RECORDS,))
"""What a CountingStage gives."""


class CountingStage(PythonStage):
    """In front of a native count: what the nodes write to `topic` is counted by key here already, and few rows leave.

    Rows for other topics are dead letters, which whoever wants them finds by a `PythonStage`.
    """

    def __init__(self, spec: StageSpec, topic: str, *, by_partition: bool) -> None:
        super().__init__(spec)
        self._topic = topic
        self._by_partition = by_partition

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chain = self._begin()
        tallies: dict[int, _Tally] = {}
        nothing = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            at_once = None if chain is None else chained(chain, batch)
            if at_once is None:
                nothing += self._count_one_by_one(batch, tallies)
                continue
            (made,) = at_once.sinks
            tally = tallies.setdefault(at_once.partition if self._by_partition else 0, _Tally())
            nothing += tally.add_all(made, at_once.place << 1)
            self._drop(at_once.dropped)
        self._close()
        self._drop({NULL_KEY_OR_VALUE: nothing})
        for place, tally in tallies.items():
            yield tally.rows(place)

    def _count_one_by_one(self, batch: pa.RecordBatch, tallies: dict[int, _Tally]) -> int:
        """Gives how many had no key or no value."""
        nothing, topic = 0, self._topic
        for partition, number, some in _pieces(batch):
            tally = tallies.setdefault(partition if self._by_partition else 0, _Tally())
            for written, _, _, key, value, timestamp, headers in self._task(partition).process(some):
                if written != topic:
                    continue
                if key is None or value is None:
                    nothing += 1
                else:
                    tally.add(key, timestamp, number << 1 | bool(headers))
        return nothing


class _Tally:
    """How often each key came, the latest time of its records and the number of the last one."""

    __slots__ = ("_counts", "_lasts", "_times")

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._times: dict[bytes, int] = {}
        self._lasts: dict[bytes, int] = {}

    def add(self, key: bytes, timestamp: int, number: int) -> None:
        self._counts[key] += 1
        self._lasts[key] = number
        if timestamp > self._times.get(key, -1):
            self._times[key] = timestamp

    def add_all(self, made: EncodedColumns, number: int) -> int:
        """Gives how many had no key or no value."""
        keys, times = made.keys, made.times
        missing = keys.null_count + made.values.null_count
        if missing:
            there = pc.and_(keys.is_valid(), made.values.is_valid())
            keys, times = keys.filter(there), times.filter(there)
        counted = pa.table({"key": keys, "t": times}).group_by("key").aggregate([([], "count_all"), ("t", "max")])
        names = counted.column("key").to_pylist()
        self._counts.update(dict(zip(names, counted.column("count_all").to_pylist(), strict=True)))
        self._lasts.update(dict.fromkeys(names, number))
        known = self._times
        for name, time_ms in zip(names, counted.column("t_max").to_pylist(), strict=True):
            if time_ms > known.get(name, -1):
                known[name] = time_ms
        return len(made.keys) - len(keys)

    def rows(self, place: int) -> pa.RecordBatch:
        counts, names = self._counts, list(self._counts)
        columns = (
            names,
            [place] * len(names),
            [self._times[name] for name in names],
            [self._lasts[name] for name in names],
            [counts[name] for name in names],
        )
        schema = COUNTED.schema()
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class TailStage(PythonStage):
    """Behind a native aggregate: takes rows for the sink, of which those of one topic are records for its nodes."""

    def __init__(self, spec: StageSpec, topic: str) -> None:
        super().__init__(spec)
        self._topic = topic

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            own = pc.equal(batch.column("topic"), self._topic)
            # Its headers cannot be null, those of what the nodes make can: to Arrow that is another schema.
            yield batch.filter(pc.invert(own)).cast(OUTPUT)
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
    names = ("topic", "partition", "offset", "key", "value", "timestamp")
    columns = [batch.column(name).to_pylist() for name in names]
    return list(map(new, repeat(Raw), zip(*columns, headers_of(batch.column("headers")), strict=True)))


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


class EncodedColumns(NamedTuple):
    """What came out for one topic, as it lies there."""

    topic: str
    keys: pa.Array
    values: pa.Array
    times: pa.Array
    headers: pa.Array


class AtOnce(NamedTuple):
    """What a chain made of a batch."""

    partition: int
    place: int
    """The first record's offset, or its number if there are numbers."""
    sinks: list[EncodedColumns]
    dropped: Dropped


def chained(chain: Chain, batch: pa.RecordBatch) -> AtOnce | None:
    """None where records have to go one by one: an error, or origins of headers."""
    partition = batch.column("partition")
    times, headers = batch.column("timestamp"), batch.column("headers")
    numbered = "origin" in batch.schema.names
    no_headers = have_no_headers(headers)
    if len(pc.unique(partition)) > 1 or pc.min(times).as_py() < 0 or (numbered and not no_headers):
        return None
    source = chain.source
    try:
        made, dropped = chain.run(
            _decoded(source.key_serde, batch.column("key")),
            _decoded(source.value_serde, batch.column("value")),
            times.to_pylist(),
            None if no_headers else headers_of(headers),
        )
        sinks = [_encoded(sink, each) for sink, each in zip(chain.sinks, made, strict=True)]
    except Exception:  # noqa: BLE001  the task finds out what it is about
        return None
    first = batch.column("origin")[0].as_py() >> 1 if numbered else batch.column("offset")[0].as_py()
    return AtOnce(partition[0].as_py(), first, sinks, dropped)


def _decoded(serde: Serde[Any] | None, column: pa.Array) -> list[Any]:
    if serde is None:
        return column.to_pylist()  # type: ignore[no-any-return]
    if is_text(serde):
        try:
            return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
        except pa.ArrowInvalid:
            pass  # no UTF-8: the serde has a replacement for what cannot be read
    decode = serde.decode
    return [None if data is None else decode(data) for data in column.to_pylist()]


def _encoded(sink: SinkNode, made: SinkColumns) -> EncodedColumns:
    """Raises whatever a serde would raise, though not always with its words."""
    return EncodedColumns(
        made.topic,
        _bytes_of(sink.key_serde, made.keys),
        _bytes_of(sink.value_serde, made.values),
        pa.array(made.times, pa.int64()),
        header_column(made.headers) if made.headers else pa.nulls(len(made.times), HEADERS_TYPE),
    )


def _bytes_of(serde: Serde[Any] | None, column: list[Any]) -> pa.Array:
    if not is_text(serde):
        return pa.array(column, pa.binary())
    strangers = frozenset(map(type, column)) - {str, type(None)}
    if strangers:
        raise TypeError(f"{strangers} instead of str")  # Arrow would take bytes
    return pa.array(column, pa.string()).cast(pa.binary())


def output_columns(made: AtOnce, first: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows for the sink, a batch for each topic. `first` is the number of the first one."""
    for topic, keys, values, times, headers in made.sinks:
        count = len(times)
        columns = [
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.nulls(count, pa.int32()),
            keys,
            values,
            headers,
            times,
            pa.repeat(pa.scalar(made.partition, pa.int32()), count),
            pa.repeat(pa.scalar(made.place, pa.int64()), count),
            pa.array(np.arange(first, first + count, dtype=np.int32)),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=OUTPUT)


def output_batch(
    records: Sequence[Raw], src_partition: int, src_offset: int | Sequence[int], first: int = 0
) -> pa.RecordBatch:
    """Rows for the sink that keep the order of `records`. They come of one offset, or of one each. `first` is the
    number of the first one."""
    count = len(records)
    topics, partitions, _, keys, values, times, headers = zip(*records, strict=True) if records else ((),) * 7
    return pa.RecordBatch.from_arrays(
        [
            pa.array(topics, pa.string()),
            pa.array([None if partition < 0 else partition for partition in partitions], pa.int32()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            header_column(headers),
            pa.array(times, pa.int64()),
            pa.array(np.full(count, src_partition, np.int32)),
            pa.array(np.full(count, src_offset) if isinstance(src_offset, int) else src_offset, pa.int64()),
            pa.array(np.arange(first, first + count, dtype=np.int32)),
        ],
        schema=OUTPUT,
    )


def header_column(headers: Sequence[Headers]) -> pa.Array:
    if not any(headers):
        return pa.nulls(len(headers), HEADERS_TYPE)
    return pa.array(
        [[{"key": key, "value": value} for key, value in each] if each else None for each in headers], HEADERS_TYPE
    )
