"""Finding records by their timestamps: the time index says where to begin, the records themselves decide.

A batch was taken without a look inside. If its records cannot be read its header answers, so that one bad batch does
not close a whole log to those who search it by time: with the batch's first offset for a search, which misses nothing,
and with its last for the greatest timestamp, as Kafka where it does not unpack a batch either.
"""

from collections.abc import Sequence

from ottla.protocol.batch import BatchHeader
from ottla.protocol.compression import Bounds
from ottla.protocol.records import CorruptBatch, read_records
from ottla.storage.answers import FoundOffset
from ottla.storage.segment import Segment


def first_at_or_after(
    segments: Sequence[Segment], timestamp: int, log_start_offset: int, bounds: Bounds
) -> FoundOffset | None:
    """The first record at or after the log start whose timestamp is >= `timestamp`."""
    for segment in segments:
        if segment.size and segment.largest_timestamp() >= timestamp:
            return _search(segment, timestamp, log_start_offset, bounds)
    return None


def _search(segment: Segment, timestamp: int, log_start_offset: int, bounds: Bounds) -> FoundOffset | None:
    offsets, times = segment.offsets, segment.times
    if offsets is None or times is None:
        offsets, times = segment.load_indexes()
    start = max(times.lookup(timestamp), log_start_offset)
    for position, header in segment.headers(offsets.lookup(start)):
        if header.max_timestamp >= timestamp and header.last_offset >= log_start_offset:
            try:
                for record in read_records(_batch_at(segment, position, header), bounds):
                    if record.timestamp >= timestamp and record.offset >= log_start_offset:
                        return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
            except CorruptBatch as error:
                first = max(header.base_offset, log_start_offset)
                return FoundOffset(header.max_timestamp, first, header.leader_epoch, str(error))
    return None


def greatest(segments: Sequence[Segment], bounds: Bounds) -> FoundOffset | None:
    """The first record that bears the greatest timestamp of all."""
    best = max(
        (segment for segment in segments if segment.size),
        key=lambda segment: segment.largest_timestamp(),
        default=None,
    )
    if best is None or best.max_timestamp < 0:
        return None
    offsets = best.offsets or best.load_indexes()[0]
    for position, header in best.headers(offsets.lookup(best.max_timestamp_offset)):
        if header.max_timestamp == best.max_timestamp:
            try:
                for record in read_records(_batch_at(best, position, header), bounds):
                    if record.timestamp == header.max_timestamp:
                        return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
            except CorruptBatch as error:
                return FoundOffset(header.max_timestamp, header.last_offset, header.leader_epoch, str(error))
    return None


def _batch_at(segment: Segment, position: int, header: BatchHeader) -> bytes:
    return (segment.file or segment.files.open(segment)).pread(header.size, position)
