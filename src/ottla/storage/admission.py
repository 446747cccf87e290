"""Why a batch is not taken: what its header, its size, its place or the topic's configuration says against it.

The log asks here only when something is out of the ordinary; the ordinary batch passes `Log.admit` and never comes by.
"""

from typing import Final

from crc32c import crc32c

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.storage import validate
from ottla.storage.answers import CLIENT, Origin, Rejected
from ottla.storage.config import NEVER, LogConfig

_ZSTD: Final = 4


def misfit(claimed: int, size: int, magic: int, origin: Origin) -> Rejected | None:
    if magic != b.MAGIC_V2:
        # As Kafka: an old format is a client's fault, an unknown one is taken for damage.
        error = Errors.INVALID_RECORD if magic in (0, 1) else Errors.CORRUPT_MESSAGE
        return Rejected(error, f"record batches of magic {magic} are not taken, only 2")
    if claimed < b.HEADER_SIZE:
        return Rejected(Errors.CORRUPT_MESSAGE, f"a batch claims {claimed} bytes, less than its header")
    if claimed > size:
        return Rejected(Errors.INVALID_RECORD, f"a batch claims {claimed} bytes where {size} are sent")
    if origin == CLIENT:
        return Rejected(Errors.INVALID_RECORD, "a produce request holds exactly one batch for each partition")
    return None


def too_large(size: int, limit: int) -> Rejected:
    return Rejected(Errors.MESSAGE_TOO_LARGE, f"a batch of {size} bytes exceeds max.message.bytes, which is {limit}")


def unusual(attributes: int, base_offset: int, producer_id: int) -> Rejected | None:
    if base_offset:
        return Rejected(Errors.INVALID_RECORD, f"the base offset of a new batch is 0, not {base_offset}")
    if attributes & b.CONTROL:
        return Rejected(Errors.INVALID_RECORD, "clients may not write control records")
    if attributes & b.LOG_APPEND_TIME:
        return Rejected(Errors.INVALID_TIMESTAMP, "a producer may not set the timestamp type LogAppendTime")
    if attributes & b.DELETE_HORIZON:
        return Rejected(Errors.INVALID_RECORD, "a producer may not set a delete horizon")
    if attributes & b.CODEC_MASK > _ZSTD:
        return Rejected(Errors.INVALID_RECORD, f"unknown compression codec {attributes & b.CODEC_MASK}")
    if attributes & b.TRANSACTIONAL and producer_id < 0:
        return Rejected(Errors.INVALID_RECORD, "a transactional batch needs a producer id")
    return None


def look_closer(
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
                    Errors.INVALID_RECORD, f"{len(keyless)} records without a key on a compacted topic", keyless
                )
        codec = config.forced_codec
        if codec is None or codec == attributes & b.CODEC_MASK:
            return batch
        fresh = memoryview(validate.recompress(batch, codec, config.unpacking))
    except validate.Undecodable as error:
        return Rejected(Errors.INVALID_RECORD, str(error))
    return fresh if len(fresh) <= config.max_message_bytes else too_large(len(fresh), config.max_message_bytes)


def misreplicated(header: b.BatchHeader, batch: memoryview, last: int) -> Rejected | None:
    if header.magic != b.MAGIC_V2 or header.size < b.HEADER_SIZE or len(batch) < header.size:
        return Rejected(Errors.CORRUPT_MESSAGE, "the leader sent a batch that is not whole")
    if header.crc != crc32c(batch[b.CRC_START :]):
        return Rejected(Errors.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} fails its CRC")
    if header.base_offset <= last:
        return Rejected(Errors.OFFSET_OUT_OF_RANGE, f"offset {header.base_offset} follows {last}")
    return None
