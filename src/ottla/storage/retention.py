"""Which of the oldest segments have to go: a plan over facts, applied by the log."""

from collections.abc import Sequence

from ottla.storage.config import LogConfig
from ottla.storage.segment import Segment


def plan(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now: int,
) -> int:
    """How many segments, counted from the oldest, may be deleted.

    Kafka's order: what lies below the log start, then what exceeds the size, then what is too old. Nothing at or above
    the high watermark goes, and never an empty active segment.
    """
    deletable = _deletable(segments, high_watermark, log_end_offset)
    count = _below_start(segments, deletable, log_start_offset)
    if config.delete:
        count = _beyond_size(segments, deletable, count, config.retention_bytes)
        count = _too_old(segments, deletable, count, config.retention_ms, now)
    return count


def _deletable(segments: Sequence[Segment], high_watermark: int, log_end_offset: int) -> int:
    count = 0
    for index, segment in enumerate(segments):
        last = index + 1 == len(segments)
        end = log_end_offset if last else segments[index + 1].base_offset
        if high_watermark < end or (last and segment.size == 0):
            break
        count += 1
    return count


def _below_start(segments: Sequence[Segment], deletable: int, log_start_offset: int) -> int:
    count = 0
    while count < min(deletable, len(segments) - 1) and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    return count


def _beyond_size(segments: Sequence[Segment], deletable: int, count: int, retention_bytes: int) -> int:
    if retention_bytes < 0:
        return count
    excess = sum(segment.size for segment in segments[count:]) - retention_bytes
    while count < deletable and excess - segments[count].size >= 0:
        excess -= segments[count].size
        count += 1
    return count


def _too_old(segments: Sequence[Segment], deletable: int, count: int, retention_ms: int, now: int) -> int:
    if retention_ms < 0:
        return count
    while count < deletable and now - segments[count].largest_timestamp() > retention_ms:
        count += 1
    return count
