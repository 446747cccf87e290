"""From fetched record batches to Arrow columns, without a Python object per record.

A record says how long it is, so where the next one begins is known only when this one's first bytes were read: that
walk is the one loop over records here, and it does nothing else. Everything after it runs on all records of a chunk at
once: numpy decodes their integers, Arrow copies keys and values out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.client.errors import CorruptAnswer
from ottla.protocol import batch as b
from ottla.protocol import compression
from ottla.protocol.varint import Truncated, read_signed

Integers = NDArray[np.int64]
Batch = tuple[b.BatchHeader, memoryview]

CHUNK_BYTES: Final = 4 << 20
"""Batches are decoded together until their unfolded bytes reach this: a bound on memory, not on a batch's size."""
LARGEST_TIMESTAMP_MS: Final = (1 << 63) // 1000 - 1
"""Spark counts microseconds."""
HEADERS_TYPE: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)

MOST_HEADERS: Final = 32
"""Records with more are read alone: a step for all records at once costs the same however few have so many."""

_PADDING: Final = bytes(64)
"""More than the varints of one record: a corrupt record's last integers are read as zeros, and refused afterwards."""
_LONGEST_VARINT: Final = 10


class Columns(NamedTuple):
    """Records of one partition in order of offset."""

    keys: pa.BinaryArray
    values: pa.BinaryArray
    offsets: Integers
    timestamps: Integers
    """Milliseconds since the epoch."""
    timestamp_types: NDArray[np.int32]
    """0: by the producer (CreateTime), 1: by the broker (LogAppendTime)."""
    headers: pa.ListArray | None
    have_headers: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.offsets)


class _Corrupt(ValueError):
    """What is wrong, and with which record of the chunk."""

    def __init__(self, record: int, reason: str) -> None:
        self.record = record
        super().__init__(reason)


class _Chunk:
    """The unfolded bytes of some batches on end, and where each batch's records lie in them."""

    __slots__ = ("arena", "counts", "headers", "starts", "view")

    def __init__(self, headers: list[b.BatchHeader], bodies: list[b.Buffer], place: str) -> None:
        self.headers = headers
        self.arena = b"".join([*bodies, _PADDING])
        self.view = np.frombuffer(self.arena, np.uint8)
        starts: list[int] = []
        pos = 0
        for header, body in zip(headers, bodies, strict=True):
            end = pos + len(body)
            try:
                reached = _walk(self.arena, pos, header.record_count, starts)
            except (Truncated, IndexError):
                reached = -1
            if reached != end:
                raise CorruptAnswer(
                    f"the batch at offset {header.base_offset} of {place} cannot be read: "
                    f"its {header.record_count} records do not fill its {len(body)} bytes"
                )
            pos = end
        self.counts = np.array([max(header.record_count, 0) for header in headers], np.int64)
        self.starts: Integers = np.array([*starts, pos], np.int64)
        """Where each record begins, and where the last one ends."""

    def per_record(self, values: Sequence[int], kind: Any = np.int64) -> NDArray[Any]:
        """A number of each batch, given to each of its records."""
        return np.repeat(np.array(values, kind), self.counts)


def read_columns(
    place: str,
    batches: Sequence[Batch],
    low: int,
    high: int,
    *,
    with_headers: bool = False,
    omitted: frozenset[str] = frozenset(),
    bounds: compression.Bounds = compression.DEFAULT_BOUNDS,
) -> Iterator[Columns]:
    """The records of whole, checked batches with offsets in [low, high), some megabytes at a time; columns that are
    `omitted` hold nulls. Raises CorruptAnswer with `place` and the offset in its text."""
    for chunk in _chunks(place, batches, bounds):
        columns = _read(place, chunk, low, high, with_headers, omitted)
        if len(columns):
            yield columns


def _chunks(place: str, batches: Sequence[Batch], bounds: compression.Bounds) -> Iterator[_Chunk]:
    headers: list[b.BatchHeader] = []
    bodies: list[b.Buffer] = []
    size = 0
    for header, batch in batches:
        body: b.Buffer = batch[b.HEADER_SIZE :]
        if header.codec:
            try:
                body = compression.decompress(header.codec, body, bounds)
            except compression.DecompressionError as error:
                raise CorruptAnswer(
                    f"the batch at offset {header.base_offset} of {place} cannot be read: {error}"
                ) from error
        headers.append(header)
        bodies.append(body)
        size += len(body)
        if size >= CHUNK_BYTES:
            yield _Chunk(headers, bodies, place)
            headers, bodies, size = [], [], 0
    if headers:
        yield _Chunk(headers, bodies, place)


def _walk(body: bytes, pos: int, count: int, starts: list[int]) -> int:
    """Appends where each of `count` records begins; returns where the last one ends. Lengths of one and two bytes,
    which nearly all records have, are read in place."""
    append = starts.append
    for _ in range(count):
        append(pos)
        low = body[pos]
        if low < 0x80:
            pos += (low >> 1) + 1
        elif (high := body[pos + 1]) < 0x80:
            pos += (low >> 1) + (high << 6) - 62  # (low - 128) / 2 + 64 * high, and the two bytes themselves
        else:
            length, pos = read_signed(body, pos)
            if length < 0:  # would go back, for ever
                raise Truncated(f"a record claims {length} bytes")
            pos += length
    return pos


def _read(place: str, chunk: _Chunk, low: int, high: int, with_headers: bool, omitted: frozenset[str]) -> Columns:
    try:
        return _decode(chunk, low, high, with_headers, omitted)
    except _Corrupt as error:
        batch = int(np.searchsorted(np.cumsum(chunk.counts), error.record, side="right"))
        header = chunk.headers[batch]
        nth = error.record - int(chunk.counts[:batch].sum())
        raise CorruptAnswer(
            f"the batch at offset {header.base_offset} of {place} cannot be read: record {nth} of it {error}"
        ) from error


def _decode(chunk: _Chunk, low: int, high: int, with_headers: bool, omitted: frozenset[str]) -> Columns:
    data, ends = chunk.view, chunk.starts[1:]
    lengths, pos = _varints(data, chunk.starts[:-1])
    _require((lengths >= 0) & (pos + lengths == ends), "has a length that is no length")
    time_deltas, pos = _varints(data, pos + 1)  # after the attributes, of which v2 has none
    offset_deltas, pos = _varints(data, pos)
    key_lengths, key_starts = _field(data, pos, ends)
    key_ends = key_starts + np.maximum(key_lengths, 0)
    value_lengths, value_starts = _field(data, key_ends, ends)
    value_ends = value_starts + np.maximum(value_lengths, 0)
    header_counts, pos = _varints(data, value_ends)
    left = ends - pos
    _require((header_counts >= 0) & (header_counts <= left) & ((left == 0) | (header_counts > 0)), "does not end well")

    offsets = chunk.per_record([h.base_offset for h in chunk.headers]) + offset_deltas
    timestamps, types = _times(chunk, time_deltas)
    wanted = _wanted(offsets, low, high)
    pieces = _pieces(chunk.arena, (key_starts, key_ends, value_starts, value_ends))
    headers = None
    if with_headers:
        headers = _headers(chunk, pos, header_counts, ends, wanted)
    have_headers = header_counts > 0
    if wanted is not None:
        offsets, timestamps, types = offsets[wanted], timestamps[wanted], types[wanted]
        have_headers = have_headers[wanted]
    nothing = pa.nulls(len(offsets), pa.binary()) if omitted else None
    keys = nothing if "key" in omitted else pieces.take(_places(0, key_lengths, wanted))
    values = nothing if "value" in omitted else pieces.take(_places(2, value_lengths, wanted))
    return Columns(keys, values, offsets, timestamps, types, headers, have_headers)


def _varints(data: NDArray[np.uint8], at: Integers) -> tuple[Integers, Integers]:
    """The zigzag varint at each place, and where what follows it begins."""
    first = data[at]
    value = first.astype(np.uint64)
    after = at + 1
    longer = np.flatnonzero(first >= 0x80)
    shift = 7
    if longer.size:
        value[longer] &= np.uint64(0x7F)
    while longer.size:
        if shift >= 7 * _LONGEST_VARINT:
            raise _Corrupt(int(longer[0]), "has an integer longer than 10 bytes")
        byte = data[after[longer]]
        value[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64), after


def _field(data: NDArray[np.uint8], at: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Length of each key or value, below 0 for none, and where its bytes begin."""
    lengths, starts = _varints(data, at)
    _require(lengths <= ends - starts, "has a field that is longer than itself")
    return lengths, starts


def _require(good: NDArray[np.bool_], reason: str) -> None:
    if not good.all():
        raise _Corrupt(int(np.argmin(good)), reason)


def _times(chunk: _Chunk, deltas: Integers) -> tuple[Integers, NDArray[np.int32]]:
    """With log-append time all records of a batch have its largest timestamp."""
    appended = [header.attributes & b.LOG_APPEND_TIME for header in chunk.headers]
    types = chunk.per_record([1 if by_broker else 0 for by_broker in appended], np.int32)
    if any(appended):
        base = chunk.per_record(
            [
                h.max_timestamp if by_broker else h.base_timestamp
                for h, by_broker in zip(chunk.headers, appended, strict=True)
            ]
        )
        timestamps = base + np.where(types == 1, 0, deltas)
    else:
        timestamps = chunk.per_record([header.base_timestamp for header in chunk.headers]) + deltas
    countable = (timestamps >= -LARGEST_TIMESTAMP_MS) & (timestamps <= LARGEST_TIMESTAMP_MS)
    _require(countable, "has a timestamp that Spark cannot hold")
    return timestamps, types


def _wanted(offsets: Integers, low: int, high: int) -> Integers | None:
    """Which records lie in [low, high); None for all."""
    inside = (offsets >= low) & (offsets < high)
    return None if inside.all() else np.flatnonzero(inside)


def _pieces(arena: bytes, bounds: Sequence[Integers]) -> pa.BinaryArray:
    """The chunk as one array of pieces that lie on end: key, gap, value, gap, key, ... No byte is copied."""
    cuts = np.empty(4 * len(bounds[0]) + 1, np.int32)
    for nth, bound in enumerate(bounds):
        cuts[nth:-1:4] = bound
    cuts[-1] = bounds[3][-1] if len(bounds[3]) else 0
    return pa.Array.from_buffers(pa.binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(arena)])


def _places(first: int, lengths: Integers, wanted: Integers | None) -> pa.Array:
    """Which of `_pieces` are the keys (from 0 on) or the values (from 2 on) of the wanted records."""
    records = np.arange(len(lengths)) if wanted is None else wanted
    chosen = lengths if wanted is None else lengths[wanted]
    missing = chosen < 0
    return pa.array(records * 4 + first, mask=missing if missing.any() else None)


def _headers(
    chunk: _Chunk, starts: Integers, counts: Integers, ends: Integers, wanted: Integers | None
) -> pa.ListArray:
    if wanted is not None:
        starts, counts, ends = starts[wanted], counts[wanted], ends[wanted]
    try:
        pairs = _headers_at_once(chunk, starts, counts, ends)
    except (_Corrupt, pa.ArrowInvalid):  # which one it is, and what is in the others, is found by the plain way
        pairs = _headers_one_by_one(chunk.arena, starts, counts, ends, wanted)
    cuts = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=cuts[1:])
    # Spark's own source shows null, not an empty list, where a record has no headers.
    return pa.ListArray.from_arrays(pa.array(cuts), pairs, type=HEADERS_TYPE, mask=pa.array(counts == 0))


def _headers_at_once(chunk: _Chunk, starts: Integers, counts: Integers, ends: Integers) -> pa.StructArray:
    """The first header of all records, then the second of those that have two, ... Raises _Corrupt, not about the right
    record, and ArrowInvalid for names that are no UTF-8."""
    _require(counts <= MOST_HEADERS, "has very many headers")
    firsts = np.cumsum(counts) - counts
    bounds = tuple(np.zeros(int(counts.sum()), np.int64) for _ in range(4))  # as `_pieces` takes them
    lengths = np.zeros_like(bounds[0])
    records, nth = np.flatnonzero(counts), 0
    pos = starts[records]
    while records.size:
        places, limit = firsts[records] + nth, ends[records]
        name_lengths, name_starts = _field(chunk.view, pos, limit)
        _require(name_lengths >= 0, "has a header without a key")
        name_ends = name_starts + name_lengths
        lengths[places], value_starts = _field(chunk.view, name_ends, limit)
        pos = value_starts + np.maximum(lengths[places], 0)
        for bound, found in zip(bounds, (name_starts, name_ends, value_starts, pos), strict=True):
            bound[places] = found
        nth += 1
        more = counts[records] > nth
        _require(more | (pos == limit), "goes on after its headers")
        records, pos = records[more], pos[more]
    pieces = _pieces(chunk.arena, bounds)
    names = pieces.take(_places(0, np.zeros_like(lengths), None)).cast(pa.string())
    return _header_pairs(names, pieces.take(_places(2, lengths, None)))


def _header_pairs(names: pa.StringArray, contents: pa.BinaryArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([names, contents], fields=list(HEADERS_TYPE.value_type))


def _headers_one_by_one(
    arena: bytes, starts: Integers, counts: Integers, ends: Integers, wanted: Integers | None
) -> pa.StructArray:
    """Raises _Corrupt, and has a replacement for what is no text."""
    names: list[str] = []
    contents: list[bytes | None] = []
    for record in np.flatnonzero(counts).tolist():
        pos, end = int(starts[record]), int(ends[record])
        try:
            for _ in range(int(counts[record])):
                name, pos = _read_bytes(arena, pos, end)
                content, pos = _read_bytes(arena, pos, end)
                if name is None:
                    raise Truncated("without a key")
                names.append(name.decode(errors="replace"))
                contents.append(content)
        except Truncated as error:
            raise _Corrupt(record if wanted is None else int(wanted[record]), f"has a header {error}") from error
        if pos != end:
            raise _Corrupt(record if wanted is None else int(wanted[record]), "goes on after its headers")
    return _header_pairs(pa.array(names, pa.string()), pa.array(contents, pa.binary()))


def _read_bytes(arena: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = read_signed(arena, pos)
    if length < 0:
        return None, pos
    if length > end - pos:
        raise Truncated(f"that claims {length} bytes where {end - pos} are left")
    return arena[pos : pos + length], pos + length


NOTHING_YET: Final = -1
"""Stream time before the first record: what Kafka Streams starts with."""


def running_maximum(timestamps: NDArray[np.int64], carried: int) -> NDArray[np.int64]:
    """Stream time at each record, that record included; `carried` is the largest timestamp before them all."""
    maximum: NDArray[np.int64] = np.maximum.accumulate(timestamps)
    return np.maximum(maximum, carried, out=maximum)
