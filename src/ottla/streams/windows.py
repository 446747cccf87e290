"""Windows over event time: which one a record falls into, and when it has closed. All times are milliseconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

LONGEST_MS = 0x7FFF_FFFF_FFFF_FFFF
_DAY_MS = 86_400_000


class Window(NamedTuple):
    """A time window is [start, end); a session is [start, end], both inclusive."""

    start: int
    end: int


class Windowed(NamedTuple):
    """The key of a windowed aggregate."""

    key: Any
    window: Window


def _check_whole(**times: object) -> None:
    """Windows are compared to the millisecond: 0.5 would make keys that no other program has."""
    for name, time in times.items():
        if not isinstance(time, int) or isinstance(time, bool):
            raise ValueError(f"{name} is a whole number of milliseconds, not {time!r}")


class Emit(Enum):
    """When a windowed aggregate hands on its result."""

    ON_UPDATE = "on_window_update"
    ON_CLOSE = "on_window_close"
    EACH_ON_CLOSE = "each_on_window_close"
    """As ON_CLOSE, but before the record that moves time is taken in. Kafka looks for closed windows when that record
    has made their store forget them, and they never come out if time has gone on by more than a window."""

    @property
    def waits(self) -> bool:
        return self is not Emit.ON_UPDATE


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Tumbling windows, or hopping ones when `advance_ms` is less than the size. Aligned to the epoch."""

    size_ms: int
    advance_ms: int
    grace_ms: int

    @classmethod
    def of(cls, size_ms: int, *, grace_ms: int, advance_ms: int | None = None) -> "TimeWindows":
        """`grace_ms` says how late a record may be; there is no default, since no default is right."""
        advance = size_ms if advance_ms is None else advance_ms
        _check_whole(size_ms=size_ms, advance_ms=advance, grace_ms=grace_ms)
        if size_ms <= 0:
            raise ValueError(f"a window of {size_ms} ms holds nothing: size_ms must be positive")
        if not 0 < advance <= size_ms:
            raise ValueError(f"advance_ms must be between 1 and the size of {size_ms} ms, not {advance}")
        if grace_ms < 0:
            raise ValueError(f"grace_ms must not be negative: {grace_ms}")
        return cls(size_ms, advance, grace_ms)

    def windows_for(self, timestamp: int) -> Iterator[Window]:
        """Those that hold the timestamp, the oldest first."""
        first = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        for start in range(first, timestamp + 1, self.advance_ms):
            yield Window(start, start + self.size_ms)


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window that begins at `start_ms` and never ends. What is earlier falls into none."""

    start_ms: int

    @classmethod
    def of(cls, *, start_ms: int = 0) -> "UnlimitedWindows":
        _check_whole(start_ms=start_ms)
        if start_ms < 0:
            raise ValueError(f"start_ms must not be negative: {start_ms}")
        return cls(start_ms)

    @property
    def size_ms(self) -> int:
        """Up to the last moment there is."""
        return LONGEST_MS - self.start_ms

    @property
    def advance_ms(self) -> int:
        return LONGEST_MS

    @property
    def grace_ms(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows [start, end], both inclusive, that end or begin at records: two records are together in one if their
    times differ by at most `difference_ms`. Unlike hopping windows there is one for each set of records only."""

    difference_ms: int
    grace_ms: int

    @classmethod
    def of(cls, difference_ms: int, *, grace_ms: int) -> "SlidingWindows":
        _check_whole(difference_ms=difference_ms, grace_ms=grace_ms)
        if difference_ms < 0:
            raise ValueError(f"difference_ms must not be negative: {difference_ms}")
        if grace_ms < 0:
            raise ValueError(f"grace_ms must not be negative: {grace_ms}")
        return cls(difference_ms, grace_ms)

    @property
    def size_ms(self) -> int:
        return self.difference_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows that grow with activity and end after a pause of more than `gap_ms`."""

    gap_ms: int
    grace_ms: int

    @classmethod
    def of(cls, gap_ms: int, *, grace_ms: int) -> "SessionWindows":
        _check_whole(gap_ms=gap_ms, grace_ms=grace_ms)
        if gap_ms <= 0:
            raise ValueError(f"gap_ms must be positive: {gap_ms}")
        if grace_ms < 0:
            raise ValueError(f"grace_ms must not be negative: {grace_ms}")
        return cls(gap_ms, grace_ms)


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """Two records join when the right one's time is within [left - before, left + after]."""

    before_ms: int
    after_ms: int
    grace_ms: int
    is_eager: bool = False
    """What Kafka's deprecated `JoinWindows.of` means by left and outer joins: a record without a match comes out at
    once, and again with its matches if some come later."""

    @classmethod
    def of(cls, difference_ms: int, *, grace_ms: int) -> "JoinWindows":
        return cls(difference_ms, difference_ms, grace_ms).checked()

    @classmethod
    def eager(cls, *, before_ms: int, after_ms: int, grace_ms: int | None = None) -> "JoinWindows":
        """Without a grace, a day less the size, as it was in Kafka before 3.0."""
        grace = max(_DAY_MS - before_ms - after_ms, 0) if grace_ms is None else grace_ms
        return cls(before_ms, after_ms, grace, True).checked()

    @classmethod
    def between(cls, *, before_ms: int, after_ms: int, grace_ms: int) -> "JoinWindows":
        return cls(before_ms, after_ms, grace_ms).checked()

    def checked(self) -> "JoinWindows":
        _check_whole(before_ms=self.before_ms, after_ms=self.after_ms, grace_ms=self.grace_ms)
        if self.before_ms + self.after_ms < 0:
            raise ValueError(f"the join window ends before it begins: -{self.before_ms} to +{self.after_ms} ms")
        if self.grace_ms < 0:
            raise ValueError(f"grace_ms must not be negative: {self.grace_ms}")
        return self

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms
