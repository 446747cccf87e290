"""Record batch v2: the 61-byte header over any buffer. Records stay opaque here; `records` looks inside.

The broker's whole business with a batch is in this file: read the header once, check the CRC once, patch twelve bytes
(base offset and leader epoch, which the CRC does not cover) and pass the rest on untouched.
"""

from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

Buffer = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Base offset and batch length: what must be read to know where a batch ends."""
MAGIC_OFFSET: Final = 16
CRC_START: Final = 21
"""The CRC-32C covers everything from the attributes on."""
MAGIC_V2: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_new_tuple: Final = tuple.__new__
_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET = Struct(">q")
_LENGTH = Struct(">i")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMPS = Struct(">qq")
_FRAME = Struct(">qi")


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    """Bytes that follow this field: the whole batch is 12 longer, see `size`."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """With the DELETE_HORIZON attribute this is the delete horizon (KIP-534)."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        return -1 if self.base_sequence < 0 else (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The caller has made sure that HEADER_SIZE bytes are there."""
    return _new_tuple(BatchHeader, _HEADER.unpack_from(buf, pos))  # what _make does, without its call


def read_frame(buf: Buffer, pos: int = 0) -> tuple[int, int]:
    """Base offset and size in bytes of the whole batch, from its first LOG_OVERHEAD bytes."""
    base_offset, batch_length = _FRAME.unpack_from(buf, pos)
    return base_offset, batch_length + LOG_OVERHEAD


def computed_crc(batch: Buffer) -> int:
    """Over exactly one batch: `batch` must end where it ends."""
    return crc32c(memoryview(batch)[CRC_START:])


def assign(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """The twelve bytes a leader patches; neither is covered by the CRC."""
    _BASE_OFFSET.pack_into(batch, 0, base_offset)
    _LEADER_EPOCH.pack_into(batch, LOG_OVERHEAD, leader_epoch)


def stamp_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """message.timestamp.type=LogAppendTime: the one case in which a leader has to recompute the CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CRC_START)
    _ATTRIBUTES.pack_into(batch, CRC_START, attributes | LOG_APPEND_TIME)
    _BASE_OFFSET.pack_into(batch, 35, now_ms)  # max timestamp
    _CRC.pack_into(batch, 17, computed_crc(batch))


def clear_append_time(batch: bytearray | memoryview) -> None:
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CRC_START)
    _ATTRIBUTES.pack_into(batch, CRC_START, attributes & ~LOG_APPEND_TIME)
    _CRC.pack_into(batch, 17, computed_crc(batch))


def put_kept(batch: bytearray, max_timestamp: int, record_count: int) -> None:
    """What compaction changes in a header, beside length and CRC, which `seal` writes."""
    _BASE_OFFSET.pack_into(batch, 35, max_timestamp)
    _LENGTH.pack_into(batch, 57, record_count)


def put_delete_horizon(batch: bytearray, attributes: int, horizon: int) -> None:
    """KIP-534: tombstones and markers of this batch may go at `horizon`, which takes the base timestamp's place."""
    _ATTRIBUTES.pack_into(batch, CRC_START, attributes | DELETE_HORIZON)
    _BASE_OFFSET.pack_into(batch, 27, horizon)


def build_header(header: BatchHeader) -> bytes:
    return _HEADER.pack(*header)


def plain_batch(body: bytes | bytearray, count: int, timestamp: int, codec: int = 0) -> bytearray:
    """A sealed batch of records that all bear one timestamp and have no producer. `body` is compressed already."""
    batch = bytearray(
        _HEADER.pack(
            0,
            HEADER_SIZE - LOG_OVERHEAD + len(body),
            -1,
            MAGIC_V2,
            0,
            codec,
            count - 1,
            timestamp,
            timestamp,
            -1,
            -1,
            -1,
            count,
        )
    )
    batch += body
    _CRC.pack_into(batch, 17, crc32c(memoryview(batch)[CRC_START:]))
    return batch


def seal(batch: bytearray) -> None:
    """Writes length and CRC into a finished batch."""
    _LENGTH.pack_into(batch, 8, len(batch) - LOG_OVERHEAD)
    _CRC.pack_into(batch, 17, computed_crc(batch))
