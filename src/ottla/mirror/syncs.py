"""Pairs of offsets, there and here: when one is worth a record, which are kept, and what they translate.

Between two syncs nobody knows how many records were left out (compaction, aborted transactions), so an offset behind a
sync translates to one past it and no further: too early repeats records, too late would lose them.
"""

from dataclasses import dataclass, field
from typing import Final

from ottla.mirror.formats import OffsetSync

KEPT: Final = 64
"""Syncs kept of a partition, one for each bit of an offset: close together at the end, far apart in the past."""


@dataclass(slots=True)
class PartitionSyncs:
    """Which copies of one partition are worth a sync. A copy that is not is held back until the next commit, so that a
    quiet topic is exact at its end too."""

    max_offset_lag: int
    last_upstream: int = -1
    last_downstream: int = -1
    last_synced_downstream: int = -1

    def copied(self, upstream_offset: int, downstream_offset: int) -> bool:
        """Whether a sync is due with this record."""
        due = (
            self.last_synced_downstream == -1
            or downstream_offset - (self.last_synced_downstream + 1) >= self.max_offset_lag
            or upstream_offset - self.last_upstream != 1
            or downstream_offset < self.last_downstream
        )
        self.last_upstream, self.last_downstream = upstream_offset, downstream_offset
        if due:
            self.last_synced_downstream = downstream_offset
        return due

    def copied_span(self, upstream_offset: int, downstream_offset: int, count: int) -> list[tuple[int, int]]:
        """The same for `count` records that follow each other without a gap on both sides: the pairs that are due,
        without a look at each record."""
        assert count > 0
        due = []
        if self.copied(upstream_offset, downstream_offset):
            due.append((upstream_offset, downstream_offset))
        last = downstream_offset + count - 1
        while (following := self.last_synced_downstream + 1 + self.max_offset_lag) <= last:
            due.append((upstream_offset + following - downstream_offset, following))
            self.last_synced_downstream = following
        self.last_upstream, self.last_downstream = upstream_offset + count - 1, last
        return due


@dataclass(slots=True)
class SyncStore:
    """The syncs of all partitions, as they were read from their topic.

    Invariants of a partition's list, newest first (A: the first is the latest sync; B: the one at place j is at most
    2^j - 2^i older than that at i; C: neighbours that differ are at least 2^(i-2) apart). They are MirrorMaker's, so
    that both translate alike from one topic.
    """

    keeps_history: bool = False
    """Whether syncs older than the last may be used from the start: only where earlier checkpoints were read, which
    say how far groups were translated already. Otherwise translation could go backwards after a restart."""
    complete: bool = False
    """Whether the topic was read to its end once; nothing is translated before."""
    _syncs: dict[tuple[str, int], list[OffsetSync]] = field(default_factory=dict)

    def replay(self, sync: OffsetSync) -> None:
        place = (sync.topic, sync.partition)
        known = self._syncs.get(place)
        if known is None or self._forgets(known, sync):
            self._syncs[place] = [sync] * KEPT
        else:
            self._syncs[place] = _with(known, sync)

    def translate(self, topic: str, partition: int, upstream_offset: int) -> int | None:
        """The offset on the target, None where nothing is known, -1 for one older than the oldest sync."""
        known = self._syncs.get((topic, partition)) if self.complete else None
        if known is None:
            return None
        for sync in known:
            if sync.upstream_offset <= upstream_offset:
                return sync.downstream_offset + (upstream_offset != sync.upstream_offset)
        return -1

    def kept(self, topic: str, partition: int) -> list[OffsetSync]:
        """Those that differ, newest first."""
        return list(dict.fromkeys(self._syncs.get((topic, partition), ())))

    def _forgets(self, known: list[OffsetSync], sync: OffsetSync) -> bool:
        before_the_end = not self.complete and not self.keeps_history
        return before_the_end or sync.upstream_offset < known[0].upstream_offset


def _with(known: list[OffsetSync], sync: OffsetSync) -> list[OffsetSync]:
    """The list with a newer sync at its head, and the others moved back as far as the invariants ask."""
    syncs = [sync, *known[1:]]
    replacement = sync
    candidate = 0
    for current in range(1, KEPT):
        previous = current - 1
        while True:
            old = known[candidate]
            apart = _apart(syncs[previous], old, previous)
            apart_from_next = current + 1 >= KEPT or _apart(old, syncs[current + 1], current)
            promoted = _recent(syncs[previous], old, previous, current) and apart and apart_from_next
            if promoted:
                replacement = old
            twin = candidate + 1 < KEPT and old is known[candidate + 1]
            skipped = twin or not apart
            if promoted or skipped:
                candidate += 1
            if not skipped or candidate >= current:
                break
        assert _recent(syncs[previous], replacement, previous, current) and _apart(
            syncs[previous], replacement, previous
        )
        if _recent(syncs[previous], syncs[current], previous, current):
            break
        syncs[current] = replacement
    return syncs


def _recent(newer: OffsetSync, older: OffsetSync, i: int, j: int) -> bool:
    return newer is older or newer.upstream_offset <= older.upstream_offset + (1 << j) - (1 << i)


def _apart(newer: OffsetSync, older: OffsetSync, i: int) -> bool:
    return newer is older or newer.upstream_offset >= older.upstream_offset + (1 << max(i - 2, 0))
