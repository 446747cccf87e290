"""The beginning of a log: records are deleted there, by wish, by age or by size, a whole segment at a time.

Which of the oldest segments have to go is a plan over facts; what is given up gets another name, and the runner removes
it later.
"""

from collections.abc import Sequence

from ottla.model.errors import Errors
from ottla.storage.answers import Deletion
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.segment import Segment


def delete_records_before(log: Log, offset: int, high_watermark: int | None = None) -> Errors:
    """Moves the log start. Segments below it go with the next retention run."""
    limit = log.log_end_offset if high_watermark is None else high_watermark
    if offset < 0 or offset > limit:
        return Errors.OFFSET_OUT_OF_RANGE
    log.latch.check()
    if offset > log.log_start_offset:
        log.guarded(lambda: log.raise_start(offset), "cannot move the log start")
    return Errors.NONE


def apply_retention(log: Log, now: int, high_watermark: int | None = None) -> Deletion | None:
    """Renames what the plan gives up, moves the log start over it and returns the files to remove later."""
    log.latch.check()
    count = plan(
        log.segments,
        log.config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.log_end_offset if high_watermark is None else high_watermark,
        log_end_offset=log.log_end_offset,
        now=now,
    )
    if count == 0:
        return None
    return log.guarded(lambda: _delete_oldest(log, count, now), "cannot delete old segments")


def _delete_oldest(log: Log, count: int, now: int) -> Deletion:
    if count == len(log.segments):
        log.roll_to(now, log.log_end_offset)
    # The log start moves first: a crash in between leaves files below it, never a hole above it.
    start = log.segments[count].base_offset
    if start > log.log_start_offset:
        log.raise_start(start)
    return log.deletion(log.chain.drop_oldest(count))


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
