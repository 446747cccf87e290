"""Record batches out of Arrow columns, a whole column at a time: no Python object is made for a record.

Varints are computed in bulk with numpy; Arrow's own element-wise join then lays key, value and headers between them,
and the data buffer of its result is the batch's payload. `protocol.records` is the slow and plain reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.partitioner import murmur2
from ottla.protocol import batch as b
from ottla.protocol import compression

MAX_BATCH_BYTES: Final = 1_000_000
"""A little below the 1,048,588 bytes that a broker takes by default (message.max.bytes)."""
_LONG_KEY: Final = 512
"""From here on a key is hashed alone: a step of the bulk hash costs the same however few keys are that long."""

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


class Sender(NamedTuple):
    """Who writes: what a batch carries so that the broker can tell a repetition from news."""

    producer_id: int = -1
    epoch: int = -1
    transactional: bool = False


class Rows(NamedTuple):
    """Records of one partition, in order."""

    key: pa.Array
    value: pa.Array
    headers: pa.Array | None
    """As `encode_headers` makes them; None: nobody has any."""
    timestamp: Ints

    def slice(self, start: int, stop: int) -> Rows:
        length = stop - start
        return Rows(
            self.key.slice(start, length),
            self.value.slice(start, length),
            None if self.headers is None else self.headers.slice(start, length),
            self.timestamp[start:stop],
        )


class Encoded(NamedTuple):
    records: int
    data: bytearray


# ---- batches


def encode_batches(
    rows: Rows, sender: Sender, base_sequence: int, *, max_bytes: int = MAX_BATCH_BYTES, codec: int = compression.NONE
) -> Iterator[Encoded]:
    """As many batches as `max_bytes` (before compression) asks for; sequence numbers run on through them."""
    sizes = _sizes(rows)
    sequence = base_sequence
    for start, stop in _cuts(sizes, max_bytes - b.HEADER_SIZE):
        yield Encoded(stop - start, _batch(rows.slice(start, stop), sender, sequence, codec))
        if sequence >= 0:
            sequence = next_sequence(sequence, stop - start)


def next_sequence(sequence: int, records: int) -> int:
    """Sequence numbers are 31 bits wide; 0 follows the last one."""
    return (sequence + records) & 0x7FFFFFFF


def _sizes(rows: Rows) -> Ints:
    """An upper bound of each record's size in bytes, good enough to cut batches by."""
    content = _lengths(rows.key) + _lengths(rows.value)
    if rows.headers is not None:
        content = content + _lengths(rows.headers)
    span = int(rows.timestamp.max() - rows.timestamp.min()) if len(rows.timestamp) else 0
    # Length, attributes, time, offset, length of the key, of the value, number of headers.
    return content + (5 + 1 + _width(span) + 4 + 5 + 5 + 1)


def sizes_alone(rows: Rows) -> Ints:
    """Of each record as the only one of a batch, in bytes and before compression: what a topic has to take."""
    key_lengths, value_lengths = _lengths(rows.key), _lengths(rows.value)
    # Attributes, time and offset: each is 0, and takes a byte.
    content = key_lengths + value_lengths + (1 if rows.headers is None else _lengths(rows.headers)) + 3
    content += _widths(_zigzag(_length_fields(rows.key, key_lengths)))
    content += _widths(_zigzag(_length_fields(rows.value, value_lengths)))
    return content + _widths(_zigzag(content)) + b.HEADER_SIZE


def _cuts(sizes: Ints, limit: int) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(sizes)
    start, done = 0, 0
    while start < len(ends):
        # A record above the limit goes alone: the broker has the last word about it.
        stop = max(int(np.searchsorted(ends, done + limit, side="right")), start + 1)
        yield start, stop
        start, done = stop, int(ends[stop - 1])


def _batch(rows: Rows, sender: Sender, sequence: int, codec: int) -> bytearray:
    times = rows.timestamp
    payload: Any = memoryview(_payload(rows))
    if codec:
        payload = compression.compress(codec, payload)
    records = len(times)
    header = b.BatchHeader(
        base_offset=0,
        batch_length=0,
        leader_epoch=-1,
        magic=b.MAGIC_V2,
        crc=0,
        attributes=codec | (b.TRANSACTIONAL if sender.transactional else 0),
        last_offset_delta=records - 1,
        base_timestamp=int(times[0]),
        max_timestamp=int(times.max()),
        producer_id=sender.producer_id,
        producer_epoch=sender.epoch,
        base_sequence=sequence,
        record_count=records,
    )
    batch = bytearray(b.build_header(header))
    batch += payload
    b.seal(batch)
    return batch


def _payload(rows: Rows) -> pa.Buffer:
    count = len(rows.timestamp)
    key_lengths, value_lengths = _lengths(rows.key), _lengths(rows.value)
    stamp = _zigzag(rows.timestamp - rows.timestamp[0])
    delta = _zigzag(np.arange(count, dtype=np.int64))
    key_size = _zigzag(_length_fields(rows.key, key_lengths))
    value_size = _zigzag(_length_fields(rows.value, value_lengths))
    headers = _no_headers(count) if rows.headers is None else rows.headers
    length = 1 + _widths(stamp) + _widths(delta) + _widths(key_size) + _widths(value_size)
    length += key_lengths + value_lengths + _lengths(headers)
    attributes = np.zeros(count, dtype=np.uint64)
    start = _varints(_zigzag(length), attributes, stamp, delta, key_size)
    return _joined(start, rows.key, _varints(value_size), rows.value, headers)


def _no_headers(count: int) -> pa.Array:
    return _binary(np.arange(count + 1, dtype=np.int32), np.zeros(count, dtype=np.uint8))


def encode_headers(headers: pa.Array) -> pa.Array | None:
    """The column list<struct<key, value>> as each record's last field: their number, then each one's key and value.
    None when no record has any. Raises ValueError for a header without a key."""
    if isinstance(headers, pa.ChunkedArray):
        headers = headers.combine_chunks()
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not counts.any():
        return None
    entries = headers.flatten()
    names = binary(entries.field("key").cast(pa.binary()))
    values = binary(entries.field("value"))
    if names.null_count:
        raise ValueError("a record header has no key: Kafka's headers need one")
    name_sizes = _varints(_zigzag(_lengths(names)))
    value_sizes = _varints(_zigzag(_length_fields(values, _lengths(values))))
    flat = _joined_array(name_sizes, names, value_sizes, values)
    ends = np.concatenate(([0], np.cumsum(counts)))
    # The bytes of one record's headers lie together already: only the cuts between records change.
    per_record = _binary(_offsets(flat)[ends], _data(flat))
    return _joined_array(_varints(_zigzag(counts)), per_record)


# ---- columns of bytes


def binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of plain binary, whatever it came as."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _joined(*columns: pa.Array) -> pa.Buffer:
    return _data(_joined_array(*columns))


def _joined_array(*columns: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*columns, b"", null_handling="replace", null_replacement=b"")


def _data(array: pa.Array) -> pa.Buffer:
    """The bytes of all values on end: those of an array that may be a slice of a larger one."""
    content = array.buffers()[2]
    if content is None:
        return pa.py_buffer(b"")
    offsets = _offsets(array)
    return content.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(len(array) + 1, dtype=np.int32)
    return np.frombuffer(buffer, dtype=np.int32, count=len(array) + 1, offset=array.offset * 4)


def _lengths(array: pa.Array) -> Ints:
    """0 for null."""
    lengths = np.diff(_offsets(array)).astype(np.int64)
    if array.null_count:
        lengths[_nulls(array)] = 0
    return lengths


def _length_fields(array: pa.Array, lengths: Ints) -> Ints:
    """-1 for null."""
    if not array.null_count:
        return lengths
    fields = lengths.copy()
    fields[_nulls(array)] = -1
    return fields


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _binary(offsets: npt.NDArray[np.int32], data: Any) -> pa.Array:
    return pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)]
    )


# ---- varints


def _zigzag(values: Ints) -> npt.NDArray[np.uint64]:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _widths(zigzag: npt.NDArray[np.uint64]) -> Ints:
    """Bytes that each varint takes."""
    widths = np.ones(len(zigzag), dtype=np.int64)
    for length in range(1, _most(zigzag)):
        widths += zigzag >= np.uint64(1 << (7 * length))
    return widths


def _width(value: int) -> int:
    return max((2 * value).bit_length() + 6, 7) // 7


def _most(zigzag: npt.NDArray[np.uint64]) -> int:
    """Bytes of the longest varint."""
    return max((int(zigzag.max()).bit_length() + 6) // 7, 1) if len(zigzag) else 1


def _varints(*fields: npt.NDArray[np.uint64]) -> pa.Array:
    """For each row its fields as varints, one behind the other."""
    count = len(fields[0])
    table = np.empty((count, sum(_most(field) for field in fields)), dtype=np.uint8)
    used = np.ones(table.shape, dtype=np.bool_)
    ragged = False
    column = 0
    for field in fields:
        most = _most(field)
        left = field
        for place in range(most):
            rest = left >> np.uint64(7)
            more = rest != 0
            table[:, column] = (left & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << 7)
            column += 1
            if place + 1 < most:
                used[:, column] = more if place == 0 else more & used[:, column - 1]
                ragged = ragged or not bool(more.all())
            left = rest
    if not ragged:
        width = table.shape[1]
        return _binary(np.arange(0, count * width + 1, width, dtype=np.int32), table.reshape(-1))
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(used.sum(axis=1, dtype=np.int32), out=offsets[1:])
    return _binary(offsets, table[used])


# ---- partitions


def partitions_of_keys(keys: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Where Java's producers put each key; null counts as no bytes, which the caller treats on its own."""
    hashes = murmur2_of(keys)
    return ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)).astype(np.int32)


_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)


def murmur2_of(keys: pa.Array) -> Words:
    """`client.partitioner.murmur2` of every key at once."""
    lengths = _lengths(keys)
    starts = _offsets(keys)[:-1].astype(np.int64)
    content = keys.buffers()[2]
    raw = np.frombuffer(content, dtype=np.uint8) if content is not None else np.zeros(0, dtype=np.uint8)
    # Reading a word at any byte, also at the very end, must stay inside the buffer.
    padded = np.zeros(len(raw) + 4, dtype=np.uint8)
    padded[: len(raw)] = raw
    words: Words = np.ndarray((len(raw) + 1,), dtype="<u4", buffer=padded, strides=(1,))
    hashes = _hash_bulk(words, starts, np.minimum(lengths, _LONG_KEY), lengths)
    for index in np.flatnonzero(lengths > _LONG_KEY):
        start = int(starts[index])
        hashes[index] = murmur2(raw[start : start + int(lengths[index])].tobytes())
    return hashes


def _hash_bulk(words: Words, starts: Ints, within: Ints, lengths: Ints) -> Words:
    hashes: Words = _SEED ^ lengths.astype(np.uint32)
    whole = within >> 2
    for step in range(int(whole.max()) if len(whole) else 0):
        active = np.flatnonzero(whole > step)
        everybody = len(active) == len(whole)
        k = words[(starts if everybody else starts[active]) + 4 * step] * _M
        k = (k ^ (k >> np.uint32(24))) * _M
        if everybody:
            hashes = (hashes * _M) ^ k
        else:
            hashes[active] = (hashes[active] * _M) ^ k
    rest = within & 3
    tail = np.flatnonzero(rest)
    if len(tail):
        word = words[starts[tail] + 4 * whole[tail]]
        keep = (np.uint32(1) << (rest[tail] * 8).astype(np.uint32)) - np.uint32(1)
        hashes[tail] = (hashes[tail] ^ (word & keep)) * _M
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
    return hashes ^ (hashes >> np.uint32(15))


def concatenated(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    headers = None
    if any(part.headers is not None for part in parts):
        headers = pa.concat_arrays(
            [_no_headers(len(part.timestamp)) if part.headers is None else part.headers for part in parts]
        )
    return Rows(
        pa.concat_arrays([part.key for part in parts]),
        pa.concat_arrays([part.value for part in parts]),
        headers,
        np.concatenate([part.timestamp for part in parts]),
    )
