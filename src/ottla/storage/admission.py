"""Whether a batch is taken: what its header, its size, its place or the topic's configuration says against it.

The ordinary batch of a client passes `ordinary.admit` and never comes by.
"""

from typing import Final

from crc32c import crc32c

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.storage import validate
from ottla.storage.answers import CLIENT, RAFT, SIEVED, Origin, Rejected
from ottla.storage.config import NEVER, LogConfig

_ZSTD: Final = 4
_LEAST_LENGTH: Final = 14
"""Of a record of magic 0, the shortest there is."""


def holds_several(batches: memoryview) -> bool:
    """More follows the first batch: coordinators and Raft write runs of them."""
    if len(batches) < b.HEADER_SIZE:
        return False
    header = b.read_header(batches)
    return header.magic == b.MAGIC_V2 and b.HEADER_SIZE <= header.size < len(batches)


def examine(batch: memoryview, config: LogConfig, origin: Origin, now: int) -> memoryview | Rejected:
    """Gives what is to be appended: the batch itself, or what the topic's configuration makes of it."""
    if _is_damaged(batch):
        return Rejected(Errors.CORRUPT_MESSAGE, "what was sent is no record batch")
    if len(batch) < b.HEADER_SIZE:
        return Rejected(Errors.INVALID_RECORD, f"{len(batch)} bytes are too few for a record batch")
    header = b.read_header(batch)
    refused = _misshapen(batch, header)
    if refused is not None:
        return refused
    if len(batch) > config.max_message_bytes and origin != RAFT:
        return _too_large(len(batch), config.max_message_bytes)
    if header.crc != crc32c(batch[b.CRC_START :]):
        return Rejected(Errors.CORRUPT_MESSAGE, "the batch fails its CRC")
    if origin != SIEVED and (header.record_count != header.last_offset_delta + 1 or header.record_count <= 0):
        return Rejected(
            Errors.INVALID_RECORD,
            f"a batch claims {header.record_count} records over {header.last_offset_delta + 1} offsets",
        )
    if origin in (CLIENT, SIEVED):
        inside = _forbidden(header, config) or _look_closer(batch, header.attributes, header.max_timestamp, config, now)
        if isinstance(inside, Rejected):
            return inside
        batch = inside
        if header.attributes & b.LOG_APPEND_TIME:
            # As Kafka: a copy of what another log has stamped is as good as any, and the records keep their own time.
            b.clear_append_time(batch)
    if config.log_append_time and origin != RAFT:
        b.stamp_append_time(batch, now)
    if len(batch) > config.segment_bytes:
        return Rejected(Errors.RECORD_LIST_TOO_LARGE, f"a batch of {len(batch)} bytes exceeds segment.bytes")
    return batch


def _is_damaged(data: memoryview) -> bool:
    """As Kafka tells damage, which a client may send again, from what is no batch for produce: a length that no format
    has, or a format that nobody knows."""
    if len(data) >= b.LOG_OVERHEAD and _claimed(data) < _LEAST_LENGTH:
        return True
    return len(data) > b.MAGIC_OFFSET and data[b.MAGIC_OFFSET] > b.MAGIC_V2


def _claimed(data: memoryview) -> int:
    return int.from_bytes(data[8 : b.LOG_OVERHEAD], "big", signed=True)


def _misshapen(batch: memoryview, header: b.BatchHeader) -> Rejected | None:
    if header.magic != b.MAGIC_V2:
        return Rejected(Errors.INVALID_RECORD, f"record batches of magic {header.magic} are not taken, only 2")
    if header.size < b.HEADER_SIZE:
        return Rejected(Errors.CORRUPT_MESSAGE, f"a batch claims {header.size} bytes, less than its header")
    if header.size > len(batch):
        return Rejected(Errors.INVALID_RECORD, f"a batch claims {header.size} bytes where {len(batch)} are sent")
    if header.size == len(batch):
        return None
    rest = batch[header.size :]
    if _is_damaged(rest) or len(rest) <= b.MAGIC_OFFSET or _claimed(rest) + b.LOG_OVERHEAD > len(rest):
        return Rejected(Errors.CORRUPT_MESSAGE, f"{len(rest)} bytes follow the batch that are no batch")
    return Rejected(Errors.INVALID_RECORD, "a produce request holds exactly one batch for each partition")


def _too_large(size: int, limit: int) -> Rejected:
    return Rejected(Errors.MESSAGE_TOO_LARGE, f"a batch of {size} bytes exceeds max.message.bytes, which is {limit}")


def _forbidden(header: b.BatchHeader, config: LogConfig) -> Rejected | None:
    """What a client may not write."""
    attributes, producer_id = header.attributes, header.producer_id
    if header.base_offset:
        return Rejected(Errors.INVALID_RECORD, f"the base offset of a new batch is 0, not {header.base_offset}")
    if attributes & b.CONTROL:
        return Rejected(Errors.INVALID_RECORD, "clients may not write control records")
    if attributes & b.LOG_APPEND_TIME and config.log_append_time:
        return Rejected(Errors.INVALID_TIMESTAMP, "a producer may not set the timestamp type LogAppendTime")
    if attributes & b.DELETE_HORIZON:  # which Kafka takes: the cleaner would let go of tombstones nobody has read yet
        return Rejected(Errors.INVALID_RECORD, "a producer may not set a delete horizon")
    if header.codec > _ZSTD:
        return Rejected(Errors.INVALID_RECORD, f"unknown compression codec {header.codec}")
    if attributes & b.TRANSACTIONAL and producer_id < 0:
        return Rejected(Errors.INVALID_RECORD, "a transactional batch needs a producer id")
    # Kafka takes an epoch below 0, and can then fence nobody.
    if producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        return Rejected(
            Errors.INVALID_RECORD,
            f"producer {producer_id} sent epoch {header.producer_epoch}, sequence {header.base_sequence}",
        )
    return None


def _look_closer(
    batch: memoryview, attributes: int, max_timestamp: int, config: LogConfig, now: int
) -> memoryview | Rejected:
    """What the header alone cannot answer, where the topic asks for it. Gives the batch to append."""
    # The header knows the latest timestamp; the oldest is known only to the records.
    too_late = max_timestamp - now > config.message_timestamp_after_max_ms
    if (too_late or config.message_timestamp_before_max_ms != NEVER) and not config.log_append_time:
        refused = _untimely(batch, config, now)
        if refused is not None:
            return refused
    if config.forced_codec is None and not config.compact:
        return batch
    return _look_inside(batch, attributes, config)


def _untimely(batch: memoryview, config: LogConfig, now: int) -> Rejected | None:
    earliest, latest = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    try:
        errors = validate.untimely_records(batch, earliest, latest, config.unpacking)
    except validate.Undecodable as error:
        return Rejected(Errors.INVALID_RECORD, str(error))
    if not errors:
        return None
    return Rejected(Errors.INVALID_TIMESTAMP, f"a timestamp is outside [{earliest}, {latest}]", errors)


def _look_inside(batch: memoryview, attributes: int, config: LogConfig) -> memoryview | Rejected:
    try:
        if config.compact:
            keyless = validate.keyless_records(batch, config.unpacking)
            if keyless:
                return Rejected(
                    Errors.INVALID_RECORD, f"{_records(len(keyless))} without a key on a compacted topic", keyless
                )
        codec = config.forced_codec
        if codec is None or codec == attributes & b.CODEC_MASK:
            return batch
        fresh = memoryview(validate.recompress(batch, codec, config.unpacking))
    except validate.Undecodable as error:
        return Rejected(Errors.INVALID_RECORD, str(error))
    return fresh if len(fresh) <= config.max_message_bytes else _too_large(len(fresh), config.max_message_bytes)


def misreplicated(header: b.BatchHeader, batch: memoryview, last: int) -> Rejected | None:
    if header.magic != b.MAGIC_V2 or header.size < b.HEADER_SIZE or len(batch) < header.size:
        return Rejected(Errors.CORRUPT_MESSAGE, "the leader sent a batch that is not whole")
    if header.crc != crc32c(batch[b.CRC_START :]):
        return Rejected(Errors.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} fails its CRC")
    if header.base_offset <= last:
        return Rejected(Errors.OFFSET_OUT_OF_RANGE, f"offset {header.base_offset} follows {last}")
    return None


def _records(count: int) -> str:
    return "a record" if count == 1 else f"{count} records"
