"""Rows on their way to the one task that writes their partition: gathered into chunks, so that Spark's shuffle moves a
few large rows instead of very many small ones.

`Packer` runs where rows are made: it chooses partitions and cuts columns by them. `unpack` runs where they are written:
chunks of one partition, merged where their order asks for it.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.errors import KafkaError
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.encoding import Ints, Rows, binary, concatenated, encode_headers, partitions_of_keys
from ottla.pipelines.sink.limits import UNKNOWN, Instead, Judge, Limit, as_refused, refused
from ottla.pipelines.source.columns import HEADERS_TYPE

CHUNK_BYTES: Final = 8 << 20
"""So much is gathered before it is cut by partition."""
RUN: Final = 1024
"""Records without a key go to one partition for so long, then to the next: batches stay large, no partition starves."""

ORDER: Final = ("src_partition", "src_offset", "seq")
"""The columns that order a partition's records; null comes first."""
CHUNK_TYPE: Final = (
    "writer int, topic string, partition int, src_partition int, src_offset bigint, seq int, task int, chunk int, "
    "rows binary"
)
CHUNK_ORDER: Final = ("topic", "partition", *ORDER, "task", "chunk")
CHUNK: Final = pa.schema(
    [
        ("writer", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("src_partition", pa.int32()),
        ("src_offset", pa.int64()),
        ("seq", pa.int32()),
        ("task", pa.int32()),
        ("chunk", pa.int32()),
        ("rows", pa.binary()),
    ]
)
_PACKED: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.binary()),
        ("timestamp", pa.int64()),
        ("src_partition", pa.int32()),
        ("src_offset", pa.int64()),
        ("seq", pa.int32()),
    ]
)
_INSTEAD: Final = pa.schema(
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
_FIRST: Final = -1
OVERFLOW: Final = -1
"""As a writer's number: not a chunk, see `overflow`."""

Numbers = npt.NDArray[Any]
Place = tuple[int, int, int]
"""Where a row stands: its values of ORDER."""


class Topics:
    """How many partitions each topic has and what it takes: told by the driver, asked for when a row names a topic it
    did not know."""

    __slots__ = ("_counts", "_limits")

    def __init__(self, counts: Mapping[str, int], limits: Mapping[str, Limit] | None = None) -> None:
        self._counts = dict(counts)
        self._limits = dict(limits or {})

    def limit(self, topic: str) -> Limit:
        if topic not in self._limits:
            self._limits[topic] = self.ask_limit(topic)
        return self._limits[topic]

    def ask_limit(self, topic: str) -> Limit:
        return UNKNOWN

    def count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = self.ask(topic)
        return self._counts[topic]

    def ask(self, topic: str) -> int:
        raise KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, topic)


class Packer:
    """Rows in, chunks out. `spread` differs from batch to batch: small ones shall not all go to the first partition.
    With a `judge` records that their topics do not take are found here; without one the broker refuses their batch."""

    __slots__ = ("_chunk", "_judge", "_spread", "_task", "_topics", "_writers")

    def __init__(self, topics: Topics, *, writers: int, task: int, spread: int, judge: Judge | None = None) -> None:
        self._topics = topics
        self._judge = judge
        self._writers = writers
        self._task = task
        self._spread = spread
        self._chunk = 0

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            gathered.append(batch)
            size += batch.nbytes
            if size >= CHUNK_BYTES:
                yield from self._cut(pa.Table.from_batches(gathered).combine_chunks(), self._judge)
                gathered, size = [], 0
        if gathered:
            yield from self._cut(pa.Table.from_batches(gathered).combine_chunks(), self._judge)

    def _cut(self, table: pa.Table, judge: Judge | None) -> Iterator[pa.RecordBatch]:
        if not table.num_rows:
            return
        columns = {name: _one(table.column(name)) for name in table.column_names}
        names, codes = _topic_codes(columns["topic"])
        packed = _packed(columns, table.num_rows)
        wrong = {} if judge is None else dict(refused(names, codes, self._topics.limit, _rows(packed)))
        if judge is not None and wrong:
            taken = np.ones(table.num_rows, np.bool_)
            taken[list(wrong)] = False
            instead = [_instead(table, row, judge(as_refused(table, row, error))) for row, error in wrong.items()]
            yield from self._cut(table.filter(pa.array(taken)), None)
            yield from self._cut(pa.concat_tables(instead).combine_chunks(), None)
            return
        yield self._placed(columns, names, codes, packed)

    def _placed(
        self, columns: Mapping[str, pa.Array], names: list[str], codes: Numbers, packed: pa.RecordBatch
    ) -> pa.RecordBatch:
        partitions = self._partitions(columns, names, codes)
        targets = codes.astype(np.int64) * (int(partitions.max()) + 1) + partitions
        order = _order(targets, packed)
        packed, targets = packed.take(pa.array(order)), targets[order]
        starts = np.flatnonzero(np.concatenate(([True], targets[1:] != targets[:-1])))
        stops = [*starts[1:].tolist(), len(targets)]
        return self._chunks(
            packed, names, codes[order], partitions[order], list(zip(starts.tolist(), stops, strict=True))
        )

    def _partitions(self, columns: Mapping[str, pa.Array], names: list[str], codes: Numbers) -> Ints:
        keys = binary(columns["key"])
        given = columns.get("partition")
        chosen = np.full(len(keys), -1, dtype=np.int64)
        if given is not None and given.null_count < len(given):
            chosen = pc.fill_null(given, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        for code, name in enumerate(names):
            count = self._topics.count(name)
            mine = codes == code
            wrong = chosen[mine & ((chosen < -1) | (chosen >= count))]
            if len(wrong):
                raise KafkaError(
                    Errors.UNKNOWN_TOPIC_OR_PARTITION,
                    f"{name}-{int(wrong[0])}",
                    f"a row asks for this partition, but the topic has {count}, numbered from 0 to {count - 1}",
                )
            self._choose(chosen, keys, mine, count)
        return chosen

    def _choose(self, chosen: Ints, keys: pa.Array, mine: npt.NDArray[np.bool_], count: int) -> None:
        free = np.flatnonzero(mine & (chosen < 0))
        if not len(free):
            return
        wanted = keys if len(free) == len(keys) else keys.take(pa.array(free))
        chosen[free] = partitions_of_keys(wanted, count)
        if wanted.null_count:
            keyless = free[wanted.is_null().to_numpy(zero_copy_only=False)]
            chosen[keyless] = (np.arange(len(keyless)) // RUN + self._spread + self._task + self._chunk) % count

    def _chunks(
        self,
        packed: pa.RecordBatch,
        names: list[str],
        codes: Numbers,
        partitions: Numbers,
        spans: Sequence[tuple[int, int]],
    ) -> pa.RecordBatch:
        rows: list[tuple[object, ...]] = []
        firsts = [packed.column(name).to_numpy() for name in ORDER]
        for start, stop in spans:
            name, partition = names[int(codes[start])], int(partitions[start])
            place = [int(first[start]) for first in firsts]
            content = packed.slice(start, stop - start).serialize().to_pybytes()
            rows.append(
                (writer_of(name, partition, self._writers), name, partition, *place, self._task, self._chunk, content)
            )
            self._chunk += 1
        return pa.RecordBatch.from_arrays(
            [pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), CHUNK, strict=True)],
            schema=CHUNK,
        )


def _instead(table: pa.Table, row: int, letters: Sequence[Instead]) -> pa.Table:
    """What is written in place of a row stands where it stood."""
    place = {name: table.column(name)[row].as_py() for name in ORDER if name in table.column_names}
    rows = [
        {**each._asdict(), "headers": [{"key": name, "value": value} for name, value in each.headers], **place}
        for each in letters
    ]
    return pa.Table.from_pylist(rows, schema=_INSTEAD)


def overflow() -> pa.RecordBatch:
    """In place of chunks that are too many to be given back."""
    row = {"writer": OVERFLOW, "topic": "", "partition": -1, "task": 0, "chunk": 0, "rows": b""}
    return pa.RecordBatch.from_pylist([{**row, **dict.fromkeys(ORDER, _FIRST)}], schema=CHUNK)


def writer_of(topic: str, partition: int, writers: int) -> int:
    """One writer for each partition; neighbours go to different ones."""
    return (zlib.crc32(topic.encode()) + partition) % writers


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _topic_codes(topics: pa.Array) -> tuple[list[str], Numbers]:
    if topics.null_count:
        raise ValueError("a row has no topic: the column `topic` is null")
    found = topics.dictionary_encode()
    return found.dictionary.to_pylist(), found.indices.to_numpy(zero_copy_only=False)


def _packed(columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
    headers = columns.get("headers")
    encoded = None if headers is None else encode_headers(headers)
    return pa.RecordBatch.from_arrays(
        [
            binary(columns["key"]),
            binary(columns["value"]),
            pa.nulls(count, pa.binary()) if encoded is None else encoded,
            _timestamps(columns.get("timestamp"), count),
            *(_ordinal(columns.get(name), count, _PACKED.field(name).type) for name in ORDER),
        ],
        schema=_PACKED,
    )


def _timestamps(column: pa.Array | None, count: int) -> pa.Array:
    """As producers do: a record without a time gets the present one."""
    if column is None:
        column = pa.nulls(count, pa.int64())
    if column.null_count:
        column = pc.fill_null(column, time.time_ns() // 1_000_000)
    earliest = pc.min(column).as_py()
    if earliest is not None and earliest < 0:
        raise ValueError(f"a row's timestamp is {earliest}: Kafka's records have none before 1970")
    return column.cast(pa.int64())


def _ordinal(column: pa.Array | None, count: int, kind: pa.DataType) -> pa.Array:
    if column is None or column.null_count == count:
        return pa.array(np.full(count, _FIRST), kind)
    return pc.fill_null(column, _FIRST).cast(kind)


def _order(targets: Ints, packed: pa.RecordBatch) -> Numbers:
    """By target, inside it by ORDER, inside that as they came."""
    ordinals = [packed.column(name).to_numpy() for name in ORDER]
    if _ascending(ordinals):
        few = int(targets.max()) < 1 << 15
        return np.argsort(targets.astype(np.int16) if few else targets, kind="stable")
    return np.lexsort((*reversed(ordinals), targets))


def _ascending(columns: Sequence[Numbers]) -> bool:
    """Rows mostly come in the order of their source."""
    tied: Any = True
    broken: Any = False
    for column in columns:
        step = np.diff(column)
        broken = broken | (tied & (step < 0))
        tied = tied & (step == 0)
    return not bool(np.any(broken))


# ---- the other end


class Chunk(NamedTuple):
    place: TopicPartition
    packed: pa.RecordBatch


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    for batch in batches:
        topics, partitions = batch.column("topic").to_pylist(), batch.column("partition").to_pylist()
        for topic, partition, rows in zip(topics, partitions, batch.column("rows"), strict=True):
            yield Chunk(TopicPartition(topic, partition), pa.ipc.read_record_batch(rows.as_buffer(), _PACKED))


def merged(chunks: Iterable[Chunk], enough: int) -> Iterator[Rows]:
    """Rows of one partition in portions of about `enough` bytes. Chunks come by their first row; where the next one
    begins before the last one ends, they are merged."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    last: Place | None = None
    tangled = False
    for _, packed in chunks:
        first = _place(packed, 0)
        overlaps = last is not None and first < last
        if waiting and size >= enough and not overlaps:
            yield _portion(waiting, tangled)
            waiting, size, tangled, last = [], 0, False, None
        waiting.append(packed)
        size += packed.nbytes
        tangled = tangled or overlaps
        end = _place(packed, packed.num_rows - 1)
        last = end if last is None else max(last, end)
    if waiting:
        yield _portion(waiting, tangled)


def _place(packed: pa.RecordBatch, row: int) -> Place:
    first, second, third = (packed.column(name)[row].as_py() for name in ORDER)
    return first, second, third


def _portion(waiting: Sequence[pa.RecordBatch], tangled: bool) -> Rows:
    if not tangled:
        return concatenated([_rows(packed) for packed in waiting])
    table = pa.Table.from_batches(waiting).combine_chunks()
    order = np.lexsort([_one(table.column(name)).to_numpy() for name in reversed(ORDER)])
    (batch,) = table.take(pa.array(order)).combine_chunks().to_batches()
    return _rows(batch)


def _rows(packed: pa.RecordBatch) -> Rows:
    headers = packed.column("headers")
    if headers.null_count:
        headers = None if headers.null_count == len(headers) else pc.fill_null(headers, b"\0")
    return Rows(packed.column("key"), packed.column("value"), headers, packed.column("timestamp").to_numpy())
