"""Looking inside a batch: for the command line, the metadata log, look-ups and the cleaner; never on the hot path."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.protocol import batch as b
from ottla.protocol import compression
from ottla.protocol.varint import Truncated, read_signed, write_signed

Header = tuple[str, bytes | None]


class CorruptBatch(ValueError):
    """A batch whose bytes contradict its header."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def read_records(batch: b.Buffer, bounds: compression.Bounds = compression.DEFAULT_BOUNDS) -> Iterator[Record]:
    """The records of one whole batch (header included), decompressed within `bounds`."""
    if len(batch) < b.HEADER_SIZE:
        raise CorruptBatch(f"{len(batch)} bytes are less than the header of a batch")
    header = b.read_header(batch)
    if not b.HEADER_SIZE <= header.size <= len(batch):
        raise CorruptBatch(f"a batch claims {header.size} bytes where {len(batch)} are there")
    body = _body(header, memoryview(batch)[b.HEADER_SIZE : header.size], bounds)
    append_time = header.max_timestamp if header.attributes & b.LOG_APPEND_TIME else None
    pos = 0
    for _ in range(header.record_count):
        record, pos = _read_record(body, pos, header, append_time)
        yield record
    if pos != len(body):
        raise CorruptBatch(f"{len(body) - pos} bytes follow the {header.record_count} records of the batch")


def _body(header: b.BatchHeader, view: memoryview, bounds: compression.Bounds) -> b.Buffer:
    if not header.codec:
        return view
    try:
        return compression.decompress(header.codec, view, bounds)
    except compression.DecompressionError as error:
        raise CorruptBatch(str(error)) from error


def _read_record(body: b.Buffer, pos: int, header: b.BatchHeader, append_time: int | None) -> tuple[Record, int]:
    try:
        length, pos = read_signed(body, pos)
        end = pos + length
        if length < 0 or end > len(body):
            raise CorruptBatch(f"a record claims {length} bytes where {len(body) - pos} are left")
        timestamp_delta, pos = read_signed(body, pos + 1)
        offset_delta, pos = read_signed(body, pos)
        key, pos = _read_bytes(body, pos, end)
        value, pos = _read_bytes(body, pos, end)
        headers, pos = _read_headers(body, pos, end)
    except Truncated as error:
        raise CorruptBatch(str(error)) from error
    if pos != end:
        raise CorruptBatch("a record's length does not match its content")
    timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), end


def _read_bytes(body: b.Buffer, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = read_signed(body, pos)
    if length < 0:
        return None, pos
    if pos + length > end:
        raise CorruptBatch(f"a field claims {length} bytes where {end - pos} are left")
    return bytes(body[pos : pos + length]), pos + length


def _read_headers(body: b.Buffer, pos: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, pos = read_signed(body, pos)
    if count < 0 or count > end - pos:
        raise CorruptBatch(f"a record claims {count} headers in {end - pos} bytes")
    headers: list[Header] = []
    for _ in range(count):
        key, pos = _read_bytes(body, pos, end)
        if key is None:
            raise CorruptBatch("a header has no key")
        value, pos = _read_bytes(body, pos, end)
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), pos


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[Header] = ()


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: int = 0,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """One sealed batch of `records` at consecutive offsets."""
    assert records, "a batch holds at least one record"
    base_timestamp = records[0].timestamp
    body = bytearray()
    for delta, record in enumerate(records):
        write_record(body, record, delta, record.timestamp - base_timestamp)
    batch = bytearray(
        b.build_header(
            b.BatchHeader(
                base_offset=base_offset,
                batch_length=0,
                leader_epoch=leader_epoch,
                magic=b.MAGIC_V2,
                crc=0,
                attributes=attributes | codec,
                last_offset_delta=len(records) - 1,
                base_timestamp=base_timestamp,
                max_timestamp=max(r.timestamp for r in records),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                record_count=len(records),
            )
        )
    )
    batch += compression.compress(codec, body) if codec else body
    b.seal(batch)
    return batch


def write_record(body: bytearray, record: NewRecord, offset_delta: int, timestamp_delta: int) -> None:
    """Adds it to those of a batch."""
    out = bytearray(b"\0")  # attributes: unused in v2
    write_signed(out, timestamp_delta)
    write_signed(out, offset_delta)
    _write_bytes(out, record.key)
    _write_bytes(out, record.value)
    write_signed(out, len(record.headers))
    for key, value in record.headers:
        _write_bytes(out, key.encode())
        _write_bytes(out, value)
    write_signed(body, len(out))
    body += out


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_signed(out, -1)
    else:
        write_signed(out, len(value))
        out += value
