"""How much of a backlog one micro-batch takes: about what is done in a given time.

A batch costs some tenths of a second whatever is in it, so few large ones are faster; but what a batch writes is seen
when it ends, and a crash does it all again. How long a record takes differs by a factor of a hundred between a column
expression and a function of the user's with state: it is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.model.ids import TopicPartition

FIRST: Final = 200_000
"""Records of the first batch, before anything is known."""
LEAST: Final = 1_000
FULL: Final = 0.5
"""A batch that held less than this share of what it might have tells nothing: there was no backlog."""
GROWTH: Final = 4
"""At most, from one batch to the next."""


class BatchSize:
    """Told where each batch begins, gives its size. Time is in seconds, on any clock that only goes forward."""

    __slots__ = ("_begun", "_is_cold", "_most", "_start", "_target")

    def __init__(self, target_seconds: float, first: int = FIRST) -> None:
        self._target = target_seconds
        self._most = first
        self._start: Mapping[TopicPartition, int] | None = None
        self._begun = 0.0
        self._is_cold = True
        """The first batch is slow because everything is new to the JVM, and tells nothing about the next."""

    def next(self, start: Mapping[TopicPartition, int], now: float) -> int:
        """How many records the batch from `start` on takes. The batch before, if there was one, has ended by now."""
        if self._start is not None:
            done = sum(offset - self._start.get(place, offset) for place, offset in start.items())
            took = now - self._begun
            if done >= self._most * FULL and took > 0 and not self._is_cold:
                wanted = int(done / took * self._target)
                self._most = max(LEAST, min(wanted, self._most * GROWTH))
            self._is_cold &= not done
        self._start, self._begun = dict(start), now
        return self._most
