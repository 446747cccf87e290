"""A position among numbers that only grow: the last one, and those shortly before it that were not there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

MOST_HOLES: Final = 200
"""Ranges that are remembered; beyond it the oldest are given up."""


class Holes(NamedTuple):
    """`ranges` are missing numbers, from and to inclusive, in order."""

    last: int | None = None
    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Holes:
        if not offset:
            return cls()
        found = offset.get("holes") or ()
        return cls(int(offset["incrementing"]), tuple((int(low), int(high)) for low, high in found))

    def offset(self) -> dict[str, Any]:
        made: dict[str, Any] = {"incrementing": self.last}
        if self.ranges:
            made["holes"] = [list(each) for each in self.ranges]
        return made

    def condition(self, column: str) -> str:
        """What has not been read."""
        if self.last is None:
            return f"{column} IS NOT NULL"
        if not self.ranges:
            return f"{column} > {self.last}"
        parts = [f"{column} > {self.last}", *(f"{column} BETWEEN {low} AND {high}" for low, high in self.ranges)]
        # The bound lets an index begin there, which it could not by the alternatives alone.
        return f"({column} >= {self.ranges[0][0]} AND ({' OR '.join(parts)}))"

    def after(self, found: Sequence[int], look_back: int) -> Holes:
        """With numbers that were read now, in order."""
        if not found:
            return self
        last = max(found[-1], found[-1] if self.last is None else self.last)
        floor = last - look_back
        ranges = list(self.ranges)
        before = found[0] - 1 if self.last is None else self.last
        for number in found:
            if number > before:
                if number > before + 1:
                    ranges.append((before + 1, number - 1))
                before = number
            else:
                _fill(ranges, number)
        kept = [(max(low, floor + 1), high) for low, high in ranges if high > floor]
        return Holes(last, tuple(kept[-MOST_HOLES:]))


def _fill(ranges: list[tuple[int, int]], number: int) -> None:
    at = bisect_left(ranges, (number + 1, 0)) - 1
    if at < 0 or not ranges[at][0] <= number <= ranges[at][1]:
        return
    low, high = ranges[at]
    left = [(low, number - 1)] if low < number else []
    right = [(number + 1, high)] if number < high else []
    ranges[at : at + 1] = left + right
