"""The rate of something over the last samples, as Kafka's `Rate` over `WindowedSum` has it.

A sample begins with the first event that finds the one before complete, and is forgotten when its last event is a whole
window old. The rate is taken over the time since the oldest sample began, but never over less than all samples but one:
a client that has just come may use many seconds' worth at once, and is then held until the rate is right.

On the way of every request that a quota applies to: the sum runs along, and the sample that is being filled lies in
plain attributes, which cost an addition when they are compiled. Only a sample's beginning or end looks at all of them.
"""

from math import floor
from typing import Final

from ottla.model.ids import Millis

MAX_THROTTLE: Final = (1 << 31) - 1
"""What an answer can say, in milliseconds."""
_NEVER: Final = -(1 << 60)
"""Longer ago than any sample lasts."""


class Rate:
    """Amounts per second. Times must not go back."""

    __slots__ = (
        "_current",
        "_expiry_ms",
        "_last",
        "_lasts",
        "_least_ms",
        "_look_at",
        "_oldest",
        "_sample_ms",
        "_start",
        "_starts",
        "_sum",
        "_sums",
        "total",
    )

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._sample_ms = sample_ms
        self._expiry_ms = samples * sample_ms
        self._least_ms = (samples - 1) * sample_ms
        self._starts: list[int] = []
        self._lasts: list[int] = []
        self._sums: list[float] = []
        self._current = 0
        """Which of them is being filled: what they say of that one is older than these three."""
        self._start = _NEVER
        self._last = 0
        self._sum = 0.0
        self._oldest = 0
        """When the oldest sample began."""
        self._look_at = 0
        """No sample can have expired before."""
        self.total = 0.0

    def record(self, amount: float, now: Millis) -> None:
        """A negative amount takes back what turned out not to be used."""
        if now - self._start >= self._sample_ms:
            self._begin(now)
        self._sum += amount
        self._last = now
        self.total += amount

    def window_ms(self, now: Millis) -> int:
        """The time that the rate is taken over."""
        if now >= self._look_at:
            self._forget(now)
        if not self._starts:
            self._append(now)
        elapsed = now - self._oldest
        missing = self._least_ms - elapsed // self._sample_ms * self._sample_ms
        if missing > 0:
            elapsed += missing
        return elapsed if elapsed > 1 else 1

    def per_second(self, now: Millis) -> float:
        window = self.window_ms(now)
        return self.total / (window / 1000)

    def throttle_ms(self, bound: float, now: Millis) -> int:
        """How long to use nothing until the rate is `bound` again; 0 if it is not above."""
        window = self.window_ms(now)
        rate = self.total / (window / 1000)
        if rate <= bound:
            return 0
        return floor(min(MAX_THROTTLE, (rate - bound) / bound * window + 0.5))

    def _append(self, now: Millis) -> None:
        if not self._starts:
            self._oldest = now
            self._look_at = now + self._expiry_ms
        self._starts.append(now)
        self._lasts.append(now)
        self._sums.append(0.0)
        self._take(len(self._starts) - 1)

    def _put(self) -> None:
        """What is being filled, to where all are."""
        at = self._current
        self._starts[at], self._lasts[at], self._sums[at] = self._start, self._last, self._sum

    def _take(self, at: int) -> None:
        self._current = at
        self._start, self._last, self._sum = self._starts[at], self._lasts[at], self._sums[at]

    def _begin(self, now: Millis) -> None:
        """The next sample: one more than are kept, so that what overlaps the window is not lost."""
        if not self._starts:
            self._append(now)
            return
        self._put()
        at = self._current + 1
        if at * self._sample_ms > self._expiry_ms:
            at = 0
        if at == len(self._starts):
            self._append(now)
            return
        self._clear(at, now)
        self._take(at)
        self._oldest = min(self._starts)

    def _forget(self, now: Millis) -> None:
        if not self._starts:
            return
        self._put()
        expired = now - self._expiry_ms
        for at, last in enumerate(self._lasts):
            if last <= expired:
                self._clear(at, now)
        self._take(self._current)
        self._oldest = min(self._starts)
        self._look_at = min(self._lasts) + self._expiry_ms
        self.total = sum(self._sums)  # anew, so that fractions do not add up to anything

    def _clear(self, at: int, now: Millis) -> None:
        self.total -= self._sums[at]
        self._sums[at] = 0.0
        self._starts[at] = self._lasts[at] = now
