"""The metadata log's batches: metadata records inside record batches, and the control records of the quorum.

Whole batches are built and read in one pass: a restart with 10,000 partitions writes and reads 10,000 records here.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from ottla.metadata.records import record_version
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, Decoder, Message
from ottla.protocol.frames import METADATA_FRAME_VERSION, decode_metadata_record, encode_metadata_record
from ottla.protocol.records import NewRecord, build_batch, read_records
from ottla.protocol.varint import Truncated, read_unsigned, write_unsigned

MAX_BATCH_BYTES: Final = 8 << 20
MAX_BATCH_RECORDS: Final = 10_000

LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6
_CONTROL_CLASSES: Final = {
    LEADER_CHANGE: "LeaderChangeMessage",
    SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    KRAFT_VERSION: "KRaftVersionRecord",
    KRAFT_VOTERS: "VotersRecord",
}
_CONTROL_KEY: Final = Struct(">hh")
_NULL_KEY: Final = 1
"""-1 as a zigzag varint."""


class CorruptMetadata(ValueError):
    """Bytes of the metadata log or of a snapshot that make no record."""


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int
    records: list[Message]
    is_control: bool


def encode_value(record: Message, metadata_version: int) -> bytes:
    return encode_metadata_record(record, record_version(record, metadata_version))


def decode_value(value: bytes | memoryview) -> Message:
    try:
        return decode_metadata_record(value)[0]
    except DecodeError as error:
        raise CorruptMetadata(f"{error}. Was this log written by a Kafka newer than 4.3?") from error


def encode_batches(
    records: Sequence[Message],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    metadata_version: int,
    max_bytes: int = MAX_BATCH_BYTES,
    max_records: int = MAX_BATCH_RECORDS,
) -> list[bytearray]:
    """As few batches as the limits allow, at consecutive offsets from `base_offset`."""
    batches: list[bytearray] = []
    body = bytearray()
    count = 0
    for record in records:
        value = encode_value(record, metadata_version)
        if count and (count == max_records or b.HEADER_SIZE + len(body) + len(value) + 16 > max_bytes):
            batches.append(_sealed(body, count, base_offset, epoch, timestamp))
            base_offset += count
            body, count = bytearray(), 0
        _append(body, count, value)
        count += 1
    if count:
        batches.append(_sealed(body, count, base_offset, epoch, timestamp))
    return batches


def _append(body: bytearray, delta: int, value: bytes) -> None:
    """One record without key or headers, at the batch's own time."""
    head = bytearray(b"\0\0")  # attributes, timestamp delta
    write_unsigned(head, delta << 1)
    head.append(1)  # null key
    write_unsigned(head, len(value) << 1)
    write_unsigned(body, (len(head) + len(value) + 1) << 1)
    body += head
    body += value
    body.append(0)  # no headers


def _sealed(body: bytearray, count: int, base_offset: int, epoch: int, timestamp: int) -> bytearray:
    batch = bytearray(
        b.build_header(
            b.BatchHeader(
                base_offset=base_offset,
                batch_length=0,
                leader_epoch=epoch,
                magic=b.MAGIC_V2,
                crc=0,
                attributes=0,
                last_offset_delta=count - 1,
                base_timestamp=timestamp,
                max_timestamp=timestamp,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                record_count=count,
            )
        )
    )
    batch += body
    b.seal(batch)
    return batch


def encode_control_batch(
    records: Sequence[tuple[int, Message]], *, base_offset: int, epoch: int, timestamp: int
) -> bytearray:
    """`records` are pairs of control type and message; all of Kafka's are written at version 0."""
    return build_batch(
        [NewRecord(_CONTROL_KEY.pack(0, kind), message.encode(0), timestamp) for kind, message in records],
        base_offset=base_offset,
        leader_epoch=epoch,
        attributes=b.CONTROL,
    )


def decode_batch(data: b.Buffer) -> Batch:
    """One whole batch, checked. Raises CorruptMetadata."""
    header = b.read_header(data)
    if header.crc != b.computed_crc(memoryview(data)[: header.size]):
        raise CorruptMetadata(f"the batch at offset {header.base_offset} fails its CRC")
    if header.codec or header.is_control:
        records = [_decode(header, r.key, r.value) for r in read_records(data)]
    else:
        records = _decode_plain(bytes(memoryview(data)[: header.size]), header.record_count)
    return Batch(
        header.base_offset, header.last_offset, header.leader_epoch, header.max_timestamp, records, header.is_control
    )


def _decode(header: b.BatchHeader, key: bytes | None, value: bytes | None) -> Message:
    if value is None:
        raise CorruptMetadata(f"a record in the batch at offset {header.base_offset} has no value")
    return decode_control(key, value) if header.is_control else decode_value(value)


def _decode_plain(data: bytes, count: int) -> list[Message]:
    """The common case without a tuple and two copies for each record: metadata records have no key and no headers."""
    records: list[Message] = []
    pos = b.HEADER_SIZE
    try:
        for _ in range(count):
            length, pos = read_unsigned(data, pos)
            end = pos + (length >> 1)
            at = pos + 2 if data[pos + 1] < 0x80 else read_unsigned(data, pos + 1)[1]  # past the timestamp delta
            at = at + 1 if data[at] < 0x80 else read_unsigned(data, at)[1]  # past the offset delta
            size, value = read_unsigned(data, at + 1)
            if length & 1 or data[at] != _NULL_KEY or size & 1 or end > len(data) or value + (size >> 1) >= end:
                raise CorruptMetadata("a metadata record is not framed as one")
            records.append(_decode_at(data, value, value + (size >> 1)))
            pos = end
    except (Truncated, IndexError) as error:
        raise CorruptMetadata(f"a metadata batch ends early: {error}") from error
    if pos != len(data):
        raise CorruptMetadata(f"{len(data) - pos} bytes follow the last record of a metadata batch")
    return records


def _decode_at(data: bytes, start: int, end: int) -> Message:
    """Frame version, type and version are one byte each, and the same few triples come again and again."""
    decoder = _decoder(data[start : start + 3])
    if decoder is None:
        return decode_value(data[start:end])
    try:
        message, stop = decoder(data, start + 3)
    except DecodeError as error:
        raise CorruptMetadata(str(error)) from error
    if stop != end:
        raise CorruptMetadata(f"{type(message).__name__} ends at {stop} where its record ends at {end}")
    decoded: Message = message
    return decoded


@lru_cache(maxsize=128)
def _decoder(head: bytes) -> Decoder | None:
    """None where `decode_value` has to look, and most likely to complain."""
    if len(head) != 3 or head[0] != METADATA_FRAME_VERSION or head[1] not in messages.METADATA_RECORDS:
        return None
    return messages.METADATA_RECORDS[head[1]].DECODERS.get(head[2])


def decode_control(key: bytes | None, value: bytes) -> Message:
    if key is None or len(key) < _CONTROL_KEY.size:
        raise CorruptMetadata("a control record has no type")
    _, kind = _CONTROL_KEY.unpack_from(key)
    name = _CONTROL_CLASSES.get(kind)
    if name is None:
        raise CorruptMetadata(f"control record type {kind} has no place in the metadata log")
    cls = messages.named(name)
    (version,) = Struct(">h").unpack_from(value)
    try:
        return cls.decode(value, min(version, max(cls.DECODERS)))
    except DecodeError as error:
        raise CorruptMetadata(f"{name}: {error}") from error


def read_batches(data: b.Buffer) -> Iterator[Batch]:
    """All batches of a snapshot file or of any other run of whole batches."""
    view = memoryview(data)
    pos = 0
    while pos < len(view):
        if len(view) - pos < b.HEADER_SIZE:
            raise CorruptMetadata(f"{len(view) - pos} bytes at position {pos} are too few for a batch")
        _, size = b.read_frame(view, pos)
        if size < b.HEADER_SIZE or pos + size > len(view):
            raise CorruptMetadata(f"the batch at position {pos} claims {size} bytes where {len(view) - pos} are left")
        yield decode_batch(view[pos : pos + size])
        pos += size
