"""When a batch of a sink begins, and where it ends, if its records are to be gathered into large files.

They are gathered for a time, and not longer than until a partition has a file full: then its full files are written,
and what is behind them waits on. Whatever is more than a batch may hold is worked off at once, so nothing falls behind
because of the gathering.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.model.ids import TopicPartition
from ottla.pipelines.source.offsets import Offsets, share

MOST: Final = 200_000
"""Records of one batch that are gathered, at most: they are held until it ends."""
TIMES: Final = 5
"""So many times as much as a batch of a backlog, at most: that one is smaller the longer a record takes, so the larger
it is."""


class Gathering:
    """Time is in seconds, on any clock that only goes forward."""

    __slots__ = ("_every_s", "_full", "_most", "_since")

    def __init__(self, every_s: float, full: int, most: int | None = None) -> None:
        """`every_s`: 0 to gather nothing. `full`: records of a file; 0 if it is full only by time. `most`: of any
        batch."""
        self._every_s = every_s
        self._full = full
        self._most = most
        self._since: float | None = None
        """When something was first seen that is not written."""

    def end(self, begin: Mapping[TopicPartition, int], latest: Offsets, most: int, now: float) -> Offsets:
        """Of a batch from `begin` on, which is itself given if none is to begin yet. `most`: what a batch of a backlog
        holds."""
        most = most if self._most is None else min(most, self._most)
        if not self._every_s:
            return share(begin, latest, most)
        backlog = {place: count for place, end in latest.items() if (count := end - begin.get(place, 0)) > 0}
        if not backlog:
            self._since = None
            return latest
        if self._since is None:
            self._since = now
        limit = max(most, min(self._full or MOST, self._most or MOST, MOST, TIMES * most))
        is_due = now - self._since >= self._every_s
        full = {} if is_due else self._full_files(begin, backlog, limit)
        if full:
            return {**begin, **full}
        if not is_due and sum(backlog.values()) < limit:
            return dict(begin)
        end = share(begin, latest, limit)
        if end == latest:
            self._since = None
        return end

    def _full_files(
        self, begin: Mapping[TopicPartition, int], backlog: Mapping[TopicPartition, int], limit: int
    ) -> Offsets:
        """Of the partitions that have some, those that have most first."""
        found: Offsets = {}
        for place, count in sorted(backlog.items(), key=lambda each: -each[1]):
            files = min(count, limit) // self._full if self._full else 0
            if files:
                found[place] = begin.get(place, 0) + files * self._full
                limit -= files * self._full
        return found
