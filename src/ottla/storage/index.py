"""The three indexes of a segment, in Kafka's bytes on disk and as flat arrays in memory.

Entries are added in memory and written by `pending`/`mark_written` when the segment is flushed, rolled or closed: an
index is always rebuilt for a segment at or above the recovery point, and it is made durable before that point moves, so
nothing is gained by a system call for every entry.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final, NamedTuple

OFFSET_ENTRY: Final = 8
TIME_ENTRY: Final = 12
TXN_ENTRY: Final = 34
NO_TIMESTAMP: Final = -1
MAX_RELATIVE: Final = (1 << 31) - 1

_TIME = Struct(">qi")
_TXN = Struct(">hqqqq")


class CorruptIndex(ValueError):
    """An index file that breaks Kafka's sanity rules: it is rebuilt from the log."""


class OffsetIndex:
    """Last offset of a batch (relative) -> position of that batch."""

    __slots__ = ("base_offset", "positions", "relative", "written")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        if len(data) % OFFSET_ENTRY:
            raise CorruptIndex(f"{len(data)} bytes are no multiple of {OFFSET_ENTRY}")
        entries = array("i", data)
        if sys.byteorder == "little":
            entries.byteswap()
        self.base_offset = base_offset
        self.relative = entries[::2]
        self.positions = entries[1::2]
        self.written = len(self.relative)

    def check(self, log_size: int) -> None:
        """Beyond Kafka's rule for the last offset: a preallocated, zero-filled tail after a crash is found too."""
        if not self.relative:
            return
        if self.relative[-1] < 0 or self.positions[-1] < 0:
            raise CorruptIndex("the last entry lies before the segment")
        if self.positions[-1] >= log_size:
            raise CorruptIndex("the last entry points past the end of the log file")
        if len(self.relative) > 1 and self.relative[-1] <= self.relative[-2]:
            raise CorruptIndex("the last offsets do not grow")

    @property
    def count(self) -> int:
        """Not `__len__`: an empty index must not be taken for a missing one."""
        return len(self.relative)

    def append(self, offset: int, position: int) -> None:
        self.relative.append(offset - self.base_offset)
        self.positions.append(position)

    def lookup(self, offset: int) -> int:
        """Position of a batch at or before the one that holds `offset`."""
        slot = bisect_right(self.relative, offset - self.base_offset)
        return self.positions[slot - 1] if slot else 0

    def boundary_before(self, position: int) -> int:
        """Greatest indexed batch start that is <= position, 0 if none."""
        slot = bisect_right(self.positions, position)
        return self.positions[slot - 1] if slot else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """Offset of the first entry at or beyond `position`: an upper bound for what lies before it."""
        slot = bisect_left(self.positions, position)
        return self.base_offset + self.relative[slot] if slot < len(self.positions) else None

    def truncate(self, offset: int) -> None:
        """Drops the entries at or above `offset`."""
        self._keep(bisect_left(self.relative, offset - self.base_offset))

    def clear(self) -> None:
        self._keep(0)

    def _keep(self, count: int) -> None:
        del self.relative[count:]
        del self.positions[count:]
        self.written = min(self.written, count)

    def pending(self) -> tuple[bytes, int]:
        """Entries not yet in the file and where they belong."""
        entries = array("i")
        for relative, position in zip(self.relative[self.written :], self.positions[self.written :], strict=True):
            entries.append(relative)
            entries.append(position)
        if sys.byteorder == "little":
            entries.byteswap()
        return entries.tobytes(), self.written * OFFSET_ENTRY

    def mark_written(self) -> None:
        self.written = len(self.relative)


class TimeIndex:
    """Greatest timestamp so far -> last offset of the batch that brought it. Timestamps grow strictly."""

    __slots__ = ("base_offset", "relative", "timestamps", "written")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        if len(data) % TIME_ENTRY:
            raise CorruptIndex(f"{len(data)} bytes are no multiple of {TIME_ENTRY}")
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative = array("i")
        for timestamp, relative in _TIME.iter_unpack(data):
            self.timestamps.append(timestamp)
            self.relative.append(relative)
        self.written = len(self.relative)

    def check(self) -> None:
        if not self.relative:
            return
        if self.relative[-1] < 0:
            raise CorruptIndex("the last entry lies before the segment")
        if self.timestamps[-1] < self.timestamps[0]:
            raise CorruptIndex("the last timestamp is less than the first")
        if len(self.timestamps) > 1 and self.timestamps[-1] <= self.timestamps[-2]:
            raise CorruptIndex("the last timestamps do not grow")

    @property
    def count(self) -> int:
        """Not `__len__`: an empty index must not be taken for a missing one."""
        return len(self.relative)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.relative.append(offset - self.base_offset)

    def last(self) -> tuple[int, int]:
        if not self.timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative[-1]

    def lookup(self, timestamp: int) -> int:
        """Offset of the last entry at or before `timestamp`, else the base offset."""
        slot = bisect_right(self.timestamps, timestamp)
        return self.base_offset + self.relative[slot - 1] if slot else self.base_offset

    def truncate(self, offset: int) -> None:
        self._keep(bisect_left(self.relative, offset - self.base_offset))

    def clear(self) -> None:
        self._keep(0)

    def _keep(self, count: int) -> None:
        del self.timestamps[count:]
        del self.relative[count:]
        self.written = min(self.written, count)

    def pending(self) -> tuple[bytes, int]:
        fresh = zip(self.timestamps[self.written :], self.relative[self.written :], strict=True)
        return b"".join(_TIME.pack(timestamp, relative) for timestamp, relative in fresh), self.written * TIME_ENTRY

    def mark_written(self) -> None:
        self.written = len(self.relative)


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def pack_aborted(txn: AbortedTxn) -> bytes:
    return _TXN.pack(0, *txn)


def read_aborted(data: bytes, base_offset: int) -> list[AbortedTxn]:
    """The whole transaction index. Unlike the other two it is tiny: one entry for each aborted transaction."""
    if len(data) % TXN_ENTRY:
        raise CorruptIndex(f"{len(data)} bytes are no multiple of {TXN_ENTRY}")
    aborted = []
    for version, *fields in _TXN.iter_unpack(data):
        txn = AbortedTxn(*fields)
        if version != 0:
            raise CorruptIndex(f"unknown version {version}")
        if txn.last_offset < base_offset:
            raise CorruptIndex(f"a transaction ends at {txn.last_offset}, before the segment")
        aborted.append(txn)
    return aborted
