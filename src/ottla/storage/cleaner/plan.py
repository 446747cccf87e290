"""Which log to clean and how far: plain facts of a log weighed by Kafka's rules, on the thread of the node's loop."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.storage import names
from ottla.storage.cleaner.facts import Facts, Limits, Source
from ottla.storage.config import NEVER

if TYPE_CHECKING:  # a process that only cleans is smaller and starts sooner without them
    from ottla.storage.log import Log
    from ottla.storage.segment import Segment


class Candidate(NamedTuple):
    """A compacted log and the range [first_dirty, first_uncleanable) that a round would clean."""

    log: "Log"
    first_dirty: int
    first_uncleanable: int
    """Where a segment begins."""
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool
    """A record waits longer than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        return (self.overdue and self.cleanable_bytes > 0) or self.ratio > self.log.config.min_cleanable_dirty_ratio

    def facts(self, limits: Limits, *, now: int) -> Facts:
        log, segments = self.log, self.log.segments
        return Facts(
            self.first_dirty,
            self.first_uncleanable,
            log.config,
            tuple(
                Source(segment.base_offset, segments[index + 1].base_offset, segment.prefix, segment.size)
                for index, segment in enumerate(segments[:-1])
                if segment.base_offset < self.first_uncleanable
            ),
            tuple(log.active.aborted_txns()),
            tuple(segment.path(names.TXN_INDEX) for segment in segments[:-1]),
            limits,
            now,
        )


def weigh(log: "Log", cleaned_to: int | None, *, high_watermark: int, now: int) -> Candidate:
    """`cleaned_to` is the checkpoint of the last round."""
    first_dirty = _first_dirty(log, cleaned_to)
    segments = log.segments
    dirty = segments[_index_of(segments, first_dirty) : -1]
    bounds = [log.last_stable_offset(high_watermark), segments[-1].base_offset]
    lag = log.config.min_compaction_lag_ms
    if lag > 0:
        bounds += [segment.base_offset for segment in dirty if segment.largest_timestamp() > now - lag][:1]
    first_uncleanable = segments[_index_of(segments, max(first_dirty, min(bounds)))].base_offset
    cleanable = [segment for segment in dirty if segment.base_offset < first_uncleanable]
    return Candidate(
        log,
        first_dirty,
        first_uncleanable,
        sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        sum(segment.size for segment in cleanable),
        _is_overdue(dirty, log.config.max_compaction_lag_ms, now),
    )


def _first_dirty(log: "Log", cleaned_to: int | None) -> int:
    """A checkpoint outside the log means that the log lost what it was about: everything counts as dirty again."""
    if cleaned_to is None or not log.log_start_offset <= cleaned_to <= log.log_end_offset:
        return log.log_start_offset
    return cleaned_to


def _index_of(segments: Sequence["Segment"], offset: int) -> int:
    """Of the segment whose range holds `offset`."""
    for index in range(len(segments) - 1, 0, -1):
        if segments[index].base_offset <= offset:
            return index
    return 0


def _is_overdue(dirty: Sequence["Segment"], max_lag: int, now: int) -> bool:
    if max_lag >= NEVER:
        return False
    firsts = (segment.first_batch_timestamp() for segment in dirty if segment.size)
    return any(0 < timestamp < now - max_lag for timestamp in firsts)


def groups(sizes: Sequence["SegmentSizes"], end_offset: int, *, segment_bytes: int, index_bytes: int) -> list[range]:
    """Neighbours that fit into one segment together, so that cleaned segments do not get ever smaller."""
    found: list[range] = []
    start = 0
    while start < len(sizes):
        stop = start + 1
        log, offsets, times = sizes[start][1:]
        while stop < len(sizes):
            one = sizes[stop]
            last_offset = (sizes[stop + 1].base_offset if stop + 1 < len(sizes) else end_offset) - 1
            log, offsets, times = log + one.log, offsets + one.offsets, times + one.times
            fits = log <= segment_bytes and offsets <= index_bytes and times <= index_bytes
            # An empty one adds no entry to any index, however far its base offset lies.
            if not fits or (one.log and last_offset - sizes[start].base_offset > _MAX_RELATIVE):
                break
            stop += 1
        found.append(range(start, stop))
        start = stop
    return found


_MAX_RELATIVE = (1 << 31) - 1


class SegmentSizes(NamedTuple):
    """Bytes of a segment's files."""

    base_offset: int
    log: int
    offsets: int
    times: int
