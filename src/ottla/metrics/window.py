"""What has happened of late: differences of counters between two looks at them.

A window is looked at when somebody asks, so it spans from an earlier question to this one. Two who ask at different
times share it: it goes back to the latest look that is at least `span` old, or to the first one there is.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

SPAN_MS: Final = 60_000
_APART_MS: Final = 1_000
"""Looks that come faster are not kept: somebody who asks a thousand times a second must not fill the memory."""


class Passed(NamedTuple):
    """What happened between two looks."""

    ms: int
    amounts: tuple[int, ...]

    def per_second(self, at: int = 0) -> float:
        return self.amounts[at] * 1000 / self.ms if self.ms > 0 else 0.0

    def share(self, part: int, whole: int) -> float:
        """Of one amount in another, such as the average of a sum over its count. 0 if nothing happened."""
        return self.amounts[part] / self.amounts[whole] if self.amounts[whole] else 0.0


class Window:
    __slots__ = ("_looks", "_span_ms")

    def __init__(self, now: int, totals: Sequence[int], span_ms: int = SPAN_MS) -> None:
        """From `now` on, at which the counters stand at `totals`."""
        self._span_ms = span_ms
        self._looks: deque[tuple[int, tuple[int, ...]]] = deque([(now, tuple(totals))])

    def look(self, now: int, totals: Sequence[int]) -> Passed:
        looks = self._looks
        while len(looks) > 1 and now - looks[1][0] >= self._span_ms:
            looks.popleft()
        before, then = looks[0]
        if now - looks[-1][0] >= _APART_MS:
            looks.append((now, tuple(totals)))
        return Passed(now - before, tuple(total - was for total, was in zip(totals, then, strict=True)))
