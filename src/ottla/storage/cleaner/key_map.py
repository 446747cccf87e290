"""Which record of the uncleaned part of a log is the latest of its key: a hash table with a bound on its memory.

A dict is fast and takes up to two hundred bytes a key, so it serves while keys are few. Beyond that a key is kept as
its MD5, as Kafka keeps it: sixteen bytes whatever its length. Three flat arrays make twenty bytes a slot; double
hashing keeps searches short when they are full.
"""

from array import array
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

try:  # three times as fast as the one in hashlib, which asks OpenSSL for each digest
    from _md5 import md5  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from hashlib import md5

DROP: Final = 0
"""The flags of records: what becomes of them."""
KEEP: Final = 1
TOMBSTONE: Final = 2
"""Kept, and without a value."""
UNMAPPED: Final = 3
"""Kept, because the key map was full before it."""
CLEANED_BEFORE: Final = 4
"""Below the first dirty offset in a batch that reaches beyond it: judged by its key."""
_NOT_BY_KEY: Final = bytes(flag if flag in (UNMAPPED, CLEANED_BEFORE) else DROP for flag in range(256))
"""What becomes of a flag when its record is not the latest of its key."""

SLOT_BYTES: Final = 20
MAX_KEYS: Final = (1 << 32) - 2
_FIRST_SLOTS: Final = 1 << 12
_GROW_AT: Final = 0.6

ENTRY_BYTES: Final = 200
"""Of a dict, with its key and its number, and also while it grows."""
_DICT_SHARE: Final = 4
"""One part in four of the memory may be a dict: the table that it is moved to has room beside it."""
SHORT: Final = 32
"""A key of so many bytes at most is its own name; no digest is made."""
_LONG: Final = bytes(SHORT + 1 - 16)
"""Behind the digest of a longer key, so that its name is none that a key could have."""

_halves = Struct("QQ").unpack


def name_of(key: bytes) -> bytes:
    """What a key is known by here."""
    return key if len(key) <= SHORT else md5(key).digest() + _LONG


def _digest(name: bytes) -> bytes:
    return md5(name).digest() if len(name) <= SHORT else name[:16]


class KeyMap:
    """Name of a key -> place of its latest record, within `memory` bytes."""

    __slots__ = ("_few", "_many", "_max_few")

    def __init__(self, memory: int, load: float = 0.9) -> None:
        self._few: dict[bytes | None, int] | None = {}
        self._max_few = memory // _DICT_SHARE // ENTRY_BYTES
        self._many = Table(memory, load)

    def learn(self, names: Sequence[bytes | None], flags: bytearray, first: int) -> None:
        """Records that are later than all before: theirs are the flags from `first` on, DROP where there is no name.

        `settle` tells which are the latest of their keys. The caller has made sure of room.
        """
        few = self._few
        if few is not None:
            if len(few) + len(names) <= self._max_few:
                few.update(zip(names, range(first, first + len(names)), strict=True))
                return
            self._settle(few, flags, first)
            self._many.take_over(few)
            self._few = None
        self._many.learn(names, flags, first)

    def settle(self, flags: bytearray) -> None:
        """The flags of records that are not the latest of their keys become 0."""
        if self._few is not None:
            self._settle(self._few, flags, len(flags))

    @staticmethod
    def _settle(few: dict[bytes | None, int], flags: bytearray, end: int) -> None:
        """In one go: a flag is looked at when its key is known for good, not with every record."""
        few.pop(None, None)
        latest = flags[:end].translate(_NOT_BY_KEY)
        for place in few.values():
            latest[place] = flags[place]
        flags[:end] = latest

    def forget_known(self, names: Sequence[bytes | None], flags: bytearray) -> None:
        """Older records: the flags of those that have a later record here become 0."""
        few = self._few
        if few is None:
            self._many.forget_known(names, flags)
            return
        for place, name in enumerate(names):
            if name is not None and name in few:
                flags[place] = 0

    @property
    def count(self) -> int:
        return self._many.count if self._few is None else len(self._few) - (None in self._few)

    @property
    def limit(self) -> int:
        """How many keys it takes: beyond it searches get slow."""
        return self._many.limit

    @property
    def room(self) -> int:
        """How many keys it takes for certain."""
        return self.limit - self.count

    @property
    def memory(self) -> int:
        return self._many.memory + (0 if self._few is None else len(self._few) * ENTRY_BYTES)


class Table:
    """Digest -> place of the latest record. Doubles as it fills, within `memory` bytes also while it copies itself."""

    __slots__ = ("_grow_at", "_highs", "_lows", "_marks", "_mask", "_max_slots", "count", "limit")

    def __init__(self, memory: int, load: float) -> None:
        # While the table doubles, the old one and the new one are there together.
        fitting = max(2, memory * 2 // 3 // SLOT_BYTES)
        self._max_slots = 1 << fitting.bit_length() - 1
        self.limit = min(max(1, int(self._max_slots * min(load, 0.95))), MAX_KEYS)
        self.count = 0
        self._allocate(0)

    def _allocate(self, slots: int) -> None:
        self._mask = slots - 1
        self._highs = array("Q", [0]) * slots
        self._lows = array("Q", [0]) * slots
        self._marks = array("I", [0]) * slots
        """One more than the place of the record, 0 in a free slot."""
        self._grow_at = int(slots * _GROW_AT) if slots < self._max_slots else self.limit

    def take_over(self, few: dict[bytes | None, int]) -> None:
        """Into the empty table."""
        self._make_room(len(few))
        self._fill((*_halves(_digest(name)), place + 1) for name, place in few.items() if name is not None)
        self.count = len(few)

    def _make_room(self, number: int) -> None:
        while self.count + number > self._grow_at and self._mask + 1 < self._max_slots:
            highs, lows, marks = self._highs, self._lows, self._marks
            self._allocate(min(max(len(marks) * 2, _FIRST_SLOTS), self._max_slots))
            self._fill(zip(highs, lows, marks, strict=True))

    def _fill(self, entries: Iterable[tuple[int, int, int]]) -> None:
        """With digests it does not hold yet."""
        highs, lows, marks, mask = self._highs, self._lows, self._marks, self._mask
        for high, low, mark in entries:
            if mark:
                slot = high & mask
                while marks[slot]:
                    slot = (slot + (low | 1)) & mask
                highs[slot] = high
                lows[slot] = low
                marks[slot] = mark

    def learn(self, names: Sequence[bytes | None], flags: bytearray, first: int) -> None:
        self._make_room(len(names))
        highs, lows, marks, mask = self._highs, self._lows, self._marks, self._mask
        count = self.count
        for mark, name in enumerate(names, first + 1):
            if name is None:
                continue
            high, low = _halves(_digest(name))
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

    def forget_known(self, names: Sequence[bytes | None], flags: bytearray) -> None:
        highs, lows, marks, mask = self._highs, self._lows, self._marks, self._mask
        for place, name in enumerate(names):
            if name is None:
                continue
            high, low = _halves(_digest(name))
            slot = high & mask
            while marks[slot]:
                if highs[slot] == high and lows[slot] == low:
                    flags[place] = 0
                    break
                slot = (slot + (low | 1)) & mask

    @property
    def memory(self) -> int:
        return (self._mask + 1) * SLOT_BYTES
