"""How long things took: buckets that double in width, each a plain integer."""

from collections.abc import Sequence
from typing import Final

BUCKETS: Final = 32
"""Bucket n holds what needs n bits: 0, 1, 2–3, 4–7, … µs. The last one holds everything from 18 minutes on."""


class Histogram:
    __slots__ = ("buckets", "sum_us")

    def __init__(self) -> None:
        self.buckets: list[int] = [0] * BUCKETS
        self.sum_us = 0

    def observe(self, us: int, weight: int = 1) -> None:
        """One that stands for `weight` of its kind. A clock that went back counts as no time at all."""
        if us <= 0:
            self.buckets[0] += weight
            return
        at = us.bit_length()
        self.buckets[at if at < BUCKETS else BUCKETS - 1] += weight
        self.sum_us += us * weight

    @property
    def count(self) -> int:
        return sum(self.buckets)


def quantile_us(buckets: Sequence[int], share: float) -> float:
    """The time that `share` of the observations did not exceed; spread evenly within a bucket. 0 if there are none."""
    count = sum(buckets)
    if not count:
        return 0.0
    wanted, below = share * count, 0
    for bits, held in enumerate(buckets):
        if held and below + held >= wanted:
            low, high = (1 << bits) >> 1, 1 << bits
            return 0.0 if not bits else low + (high - low) * max(0.0, wanted - below) / held
        below += held
    return float(1 << (BUCKETS - 1))
