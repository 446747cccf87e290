"""The versions of one key of a versioned store, laid out and changed as Kafka's RocksDBVersionedStore does.

The version that is valid now lies by itself. Each older one lies in the segment of the time at which it ended, together
with when the last of that segment ended; a deletion is a version without a value. Whole segments expire. Kafka's rules
show at the edges: a deletion at the very time of the latest version leaves no trace unless an older version ends there.
Such things are followed here, since a changelog has to mean the same in both.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.streams.tasks.stores.cells import Entry
from ottla.streams.tasks.stores.codec import LONG
from ottla.streams.topology.stores import IS_LATEST

_LAST: Final = 0x7FFF_FFFF_FFFF_FFFF
"""As segment: the latest version. As time within a segment: when its last version ended."""
_GONE: Final = b"\x00"


class Version(NamedTuple):
    data: bytes
    valid_from: int
    valid_to: int | None
    """None for the latest."""


class History:
    """`entries` are changed in place. `entered` are segments that have this key since the last look."""

    __slots__ = ("_first_alive", "_segment_ms", "entered", "entries")

    def __init__(self, entries: list[Entry], segment_ms: int, first_alive: int) -> None:
        """In segments before `first_alive` nobody may look: what belongs there is left out."""
        self.entries = entries
        self.entered: list[int] = []
        self._segment_ms = segment_ms
        self._first_alive = first_alive

    # ---- looking

    def latest(self) -> Version | None:
        entries = self.entries
        if entries and entries[-1][0] == _LAST:
            _, valid_from, packed = entries[-1]
            return Version(packed[1:], valid_from, None)
        return None

    def at(self, timestamp: int) -> Version | None:
        """What was valid then."""
        latest = self.latest()
        if latest is not None and latest.valid_from <= timestamp:
            return latest
        entries = self.entries
        for segment, begin, end in self._segments(timestamp // self._segment_ms):
            if self._ends(end) <= timestamp:
                return None
            if entries[begin][1] > timestamp:
                continue
            return self._version(bisect_left(entries, (segment, timestamp + 1)) - 1, end)
        return None

    def between(self, first: int, last: int) -> list[Version]:
        """All that were valid at some moment of that time, the oldest first."""
        found: list[Version] = []
        latest = self.latest()
        if latest is not None and latest.valid_from <= last:
            found.append(latest)
        for _, begin, end in self._segments(first // self._segment_ms):
            for at in range(end - 2, begin - 1, -1):
                version = self._version(at, end)
                if version is not None and version.valid_from <= last and (version.valid_to or 0) > first:
                    found.append(version)
        return found[::-1]

    # ---- changing

    def put(self, data: bytes | None, timestamp: int) -> int:
        """Gives until when the version is valid: IS_LATEST, or the time of the next one."""
        packed = _GONE if data is None else b"\x01" + data
        entries = self.entries
        following: int | None = None
        if entries and entries[-1][0] == _LAST:
            _, valid_from, before = entries[-1]
            if timestamp >= valid_from:
                entries.pop()
                if timestamp > valid_from:
                    self._append(timestamp // self._segment_ms, valid_from, timestamp, before)
                if data is not None:
                    entries.append((_LAST, timestamp, packed))
                return IS_LATEST
            following = valid_from
        for segment, begin, end in self._segments(timestamp // self._segment_ms):
            if self._ends(end) <= timestamp:
                break
            if entries[begin][1] <= timestamp:
                return self._insert(segment, end, timestamp, packed)
            following = entries[begin][1]
        if following is None:
            return self._put_last(timestamp, packed)
        self._put_before(following, timestamp, packed)
        return following

    def expire(self, segment: int) -> None:
        begin, end = self._bounds(segment)
        del self.entries[begin:end]

    def _put_last(self, timestamp: int, packed: bytes) -> int:
        """Nothing later is known. A deletion lies in the segment of its own time, as a version that ends at once."""
        if packed != _GONE:
            self.entries.append((_LAST, timestamp, packed))
            return IS_LATEST
        segment = timestamp // self._segment_ms
        begin, end = self._bounds(segment)
        if begin == end:
            self._begin(begin, segment, timestamp, timestamp, _GONE)
        elif (ends := self._ends(end)) != timestamp:
            self._append(segment, ends, timestamp, _GONE)
        return IS_LATEST

    def _put_before(self, following: int, timestamp: int, packed: bytes) -> None:
        """The first or the last of the segment in which the following version begins."""
        segment = following // self._segment_ms
        begin, end = self._bounds(segment)
        if begin == end:
            self._begin(begin, segment, timestamp, following, packed)
        elif (ends := self._ends(end)) <= timestamp:
            self._append(segment, timestamp, following, packed)
        else:
            only_a_deletion = self.entries[begin][1] == ends
            self.entries[begin : begin + only_a_deletion] = [(segment, timestamp, packed)]

    def _insert(self, segment: int, end: int, timestamp: int, packed: bytes) -> int:
        """Into a segment that has versions before and after this time."""
        entries = self.entries
        at = bisect_left(entries, (segment, timestamp + 1)) - 1
        valid_to = entries[at + 1][1] if at + 1 < end - 1 else self._ends(end)
        _, valid_from, before = entries[at]
        if valid_from == timestamp:
            entries[at] = (segment, timestamp, packed)
        elif timestamp // self._segment_ms == segment:
            entries.insert(at + 1, (segment, timestamp, packed))
        else:
            # The one before it ends earlier by this, in an older segment.
            entries[at] = (segment, timestamp, packed)
            self._append(timestamp // self._segment_ms, valid_from, timestamp, before)
        return valid_to

    def _append(self, segment: int, valid_from: int, valid_to: int, packed: bytes) -> None:
        """As the last of its segment. A gap before it was a deletion."""
        if segment < self._first_alive:
            return
        begin, end = self._bounds(segment)
        if begin == end:
            self._begin(begin, segment, valid_from, valid_to, packed)
            return
        entries = self.entries
        ends = self._ends(end)
        assert valid_from >= ends, f"a version from {valid_from} does not follow one that ends at {ends}"
        kept = [] if entries[begin][1] == ends else entries[begin : end - 1]
        if valid_from > ends:
            kept.append((segment, ends, _GONE))
        entries[begin:end] = [*kept, (segment, valid_from, packed), _mark(segment, valid_to)]

    def _begin(self, at: int, segment: int, valid_from: int, valid_to: int, packed: bytes) -> None:
        self.entries[at:at] = [(segment, valid_from, packed), _mark(segment, valid_to)]
        self.entered.append(segment)

    # ---- where things are

    def _segments(self, first: int) -> Iterator[tuple[int, int, int]]:
        """(segment, where its entries begin and end), the newest first. The last entry is the mark of its end."""
        entries = self.entries
        end = len(entries)
        if end and entries[-1][0] == _LAST:
            end -= 1
        while end and entries[end - 1][0] >= first:
            segment = entries[end - 1][0]
            begin = bisect_left(entries, (segment,))
            yield segment, begin, end
            end = begin

    def _bounds(self, segment: int) -> tuple[int, int]:
        return bisect_left(self.entries, (segment,)), bisect_left(self.entries, (segment + 1,))

    def _ends(self, end: int) -> int:
        ends: int = LONG.unpack(self.entries[end - 1][2])[0]
        return ends

    def _version(self, at: int, end: int) -> Version | None:
        _, valid_from, packed = self.entries[at]
        if packed == _GONE:
            return None
        return Version(packed[1:], valid_from, self.entries[at + 1][1] if at + 1 < end - 1 else self._ends(end))


def _mark(segment: int, valid_to: int) -> Entry:
    return segment, _LAST, LONG.pack(valid_to)
