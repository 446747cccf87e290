"""Which record of the uncleaned part of a log is the latest of its key: a hash table with a bound on its memory.

A key is kept as its MD5, as Kafka keeps it: sixteen bytes whatever its length. Three flat arrays make twenty bytes a
slot, where an entry of a dict would take a hundred and fifty; double hashing keeps searches short when they are full.
"""

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Final

try:  # three times as fast as the one in hashlib, which asks OpenSSL for each digest
    from _md5 import md5  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from hashlib import md5

SLOT_BYTES: Final = 20
MAX_KEYS: Final = (1 << 32) - 2
_FIRST_SLOTS: Final = 1 << 16
_GROW_AT: Final = 0.6

_halves = Struct("QQ").unpack


class KeyMap:
    """Key -> place of its latest record. Doubles as it fills, within `memory` bytes also while it copies itself."""

    __slots__ = ("_grow_at", "_highs", "_lows", "_marks", "_mask", "_max_slots", "count", "limit")

    def __init__(self, memory: int, load: float = 0.9) -> None:
        # While the table doubles, the old one and the new one are there together.
        fitting = max(2, memory * 2 // 3 // SLOT_BYTES)
        self._max_slots = 1 << fitting.bit_length() - 1
        self.limit = min(max(1, int(self._max_slots * min(load, 0.95))), MAX_KEYS)
        """How many keys it takes: beyond it searches get slow."""
        self.count = 0
        self._allocate(min(_FIRST_SLOTS, self._max_slots))

    def _allocate(self, slots: int) -> None:
        self._mask = slots - 1
        self._highs = array("Q", [0]) * slots
        self._lows = array("Q", [0]) * slots
        self._marks = array("I", [0]) * slots
        """One more than the place of the record, 0 in a free slot."""
        self._grow_at = int(slots * _GROW_AT) if slots < self._max_slots else self.limit

    def learn(self, keys: Sequence[bytes | None], flags: bytearray, first: int) -> None:
        """Records of `keys` that are later than all before: theirs are the flags from `first` on.

        The flag of a record that is not the latest of its key any more becomes 0. The caller has made sure of room.
        """
        while self.count + len(keys) > self._grow_at and self._mask + 1 < self._max_slots:
            self._grow()
        highs, lows, marks, mask = self._highs, self._lows, self._marks, self._mask
        count = self.count
        for mark, key in enumerate(keys, first + 1):
            if key is None:
                continue
            high, low = _halves(md5(key).digest())
            slot = high & mask
            while known := marks[slot]:
                if highs[slot] == high and lows[slot] == low:
                    flags[known - 1] = 0
                    break
                slot = (slot + (low | 1)) & mask
            else:
                highs[slot] = high
                lows[slot] = low
                count += 1
            marks[slot] = mark
        self.count = count

    def forget_known(self, keys: Sequence[bytes | None], flags: bytearray) -> None:
        """Older records of `keys`: the flags of those that have a later record here become 0."""
        highs, lows, marks, mask = self._highs, self._lows, self._marks, self._mask
        for place, key in enumerate(keys):
            if key is None:
                continue
            high, low = _halves(md5(key).digest())
            slot = high & mask
            while marks[slot]:
                if highs[slot] == high and lows[slot] == low:
                    flags[place] = 0
                    break
                slot = (slot + (low | 1)) & mask

    def _grow(self) -> None:
        old_highs, old_lows, old_marks = self._highs, self._lows, self._marks
        self._allocate((self._mask + 1) * 2)
        highs, lows, marks, mask = self._highs, self._lows, self._marks, self._mask
        for high, low, mark in zip(old_highs, old_lows, old_marks, strict=True):
            if mark:
                slot = high & mask
                while marks[slot]:
                    slot = (slot + (low | 1)) & mask
                highs[slot] = high
                lows[slot] = low
                marks[slot] = mark

    @property
    def room(self) -> int:
        """How many keys it takes for certain."""
        return self.limit - self.count

    @property
    def memory(self) -> int:
        return (self._mask + 1) * SLOT_BYTES
