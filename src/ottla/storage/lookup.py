"""Finding offsets in a list of segments: which segment, where in its file, up to where. Reads, and changes nothing."""

from collections.abc import Sequence
from typing import TypeAlias

from ottla.storage.segment import Segment

Segments: TypeAlias = Sequence[Segment]
"""In order, at least one."""


def segment_index(segments: Segments, offset: int) -> int:
    """Which segment `offset` belongs to; the first one if it lies below all of them."""
    if offset >= segments[-1].base_offset:
        return len(segments) - 1
    low, high = 0, len(segments) - 1
    while low < high:
        middle = (low + high) // 2
        if segments[middle + 1].base_offset <= offset:
            low = middle + 1
        else:
            high = middle
    return low


def find(segments: Segments, offset: int) -> tuple[Segment, int, int, int] | None:
    """The first batch whose last offset is >= `offset`; compaction and retention leave gaps between segments."""
    index = segment_index(segments, offset)
    while index < len(segments):
        segment = segments[index]
        segment.hot = True
        if segment.size:
            found = segment.find(offset)
            if found is not None:
                return segment, index, *found
        index += 1
    return None


def end_position(segments: Segments, index: int, upper_bound: int, log_end_offset: int) -> int:
    """Where in its file the last batch below `upper_bound` ends, in the segment at `index`."""
    segment = segments[index]
    next_base = segments[index + 1].base_offset if index + 1 < len(segments) else log_end_offset
    if upper_bound >= next_base:
        return segment.size
    found = segment.find(upper_bound)
    return segment.size if found is None else found[0]
