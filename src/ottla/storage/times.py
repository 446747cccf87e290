"""Finding records by their timestamps: the time index says where to begin, the records themselves decide."""

from collections.abc import Sequence

from ottla.protocol.batch import BatchHeader
from ottla.protocol.records import read_records
from ottla.storage.answers import FoundOffset
from ottla.storage.segment import Segment


def first_at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> FoundOffset | None:
    """The first record at or after the log start whose timestamp is >= `timestamp`."""
    for segment in segments:
        if segment.size and segment.largest_timestamp() >= timestamp:
            return _search(segment, timestamp, log_start_offset)
    return None


def _search(segment: Segment, timestamp: int, log_start_offset: int) -> FoundOffset | None:
    offsets, times = segment.offsets, segment.times
    if offsets is None or times is None:
        offsets, times = segment.load_indexes()
    start = max(times.lookup(timestamp), log_start_offset)
    for position, header in segment.headers(offsets.lookup(start)):
        if header.max_timestamp >= timestamp and header.last_offset >= log_start_offset:
            for record in read_records(_batch_at(segment, position, header)):
                if record.timestamp >= timestamp and record.offset >= log_start_offset:
                    return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def greatest(segments: Sequence[Segment]) -> FoundOffset | None:
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
            for record in read_records(_batch_at(best, position, header)):
                if record.timestamp == header.max_timestamp:
                    return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _batch_at(segment: Segment, position: int, header: BatchHeader) -> bytes:
    return (segment.file or segment.files.open(segment)).pread(header.size, position)
