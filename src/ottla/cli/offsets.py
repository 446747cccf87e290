"""Where to read from and where to stop, as one word: `start`, `-10`, `10:20`, `@-1h`, `@2026-11-01:2026-11-02`.

The notation is rpk's. Parsing needs no cluster; `OffsetRange.resolve` takes what the cluster knows and gives numbers.
"""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from collections.abc import Callable
from typing import Final, NamedTuple

START: Final = "start"
END: Final = "end"
EXACT: Final = "exact"
AFTER_START: Final = "after start"
BEFORE_END: Final = "before end"
TIME: Final = "time"

_FIXED: Final = {
    "start": START, "beginning": START, "earliest": START, "oldest": START,
    "end": END, "latest": END, "newest": END,
}  # fmt: skip
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_MS: Final = 2**63 - 1


class BadOffset(ValueError):
    """Not an offset or a range; the text says what is allowed."""


class Point(NamedTuple):
    """One end of a range: an offset once the partition is known. `number` is an offset, a count or a time in ms."""

    kind: str
    number: int = 0


class Bounds(NamedTuple):
    """What ListOffsets says about a partition."""

    start: int
    end: int


class Span(NamedTuple):
    """Offsets of one partition: from `first` on, up to but without `last`; None: for ever."""

    first: int
    last: int | None


class OffsetRange(NamedTuple):
    first: Point
    last: Point | None
    """None: follow the partition as it grows."""

    @property
    def times(self) -> tuple[int, ...]:
        """The points in time that have to be looked up before `resolve`."""
        points = (self.first, self.last)
        return tuple(point.number for point in points if point is not None and point.kind == TIME)

    def resolve(self, bounds: Bounds, at_time: Callable[[int], int]) -> Span:
        """`at_time` gives the first offset whose record is not older than a time, or the partition's end."""
        first = _clamp(_offset(self.first, bounds, at_time), bounds, self.first)
        if self.last is None:
            return Span(first, None)
        # A range never waits for records that are not there yet.
        last = min(_offset(self.last, bounds, at_time), bounds.end)
        return Span(first, max(last, first))

    def until_end(self) -> "OffsetRange":
        return self if self.last is not None else OffsetRange(self.first, Point(END))


def _offset(point: Point, bounds: Bounds, at_time: Callable[[int], int]) -> int:
    if point.kind == START:
        return bounds.start
    if point.kind == END:
        return bounds.end
    if point.kind == AFTER_START:
        return bounds.start + point.number
    if point.kind == BEFORE_END:
        return bounds.end - point.number
    if point.kind == TIME:
        return at_time(point.number)
    return point.number


def _clamp(offset: int, bounds: Bounds, point: Point) -> int:
    """`-10` of a partition with three records means all three. An exact offset beyond the end is kept: who follows from
    100 on waits for 100."""
    if point.kind == EXACT:
        return max(offset, bounds.start)
    return min(max(offset, bounds.start), bounds.end)


def parse_range(text: str, now_ms: int) -> OffsetRange:
    """`now_ms` is what `@-1h` counts back from."""
    if text.startswith("@"):
        return _time_range(text, now_ms)
    first, colon, last = text.partition(":")
    if not colon:
        return OffsetRange(_point(first, text), None)
    return OffsetRange(_point(first or START, text), _point(last or END, text))


def _point(text: str, whole: str) -> Point:
    kind = _FIXED.get(text)
    if kind is not None:
        return Point(kind)
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()):
        raise BadOffset(
            f"{whole!r} is not an offset: use start, end, 42, +5 (after the start), -10 (before the end), "
            "a range as 10:20 or :end, or a time as @-1h, @1700000000000, @2026-11-01T12:00:00Z, @T1:T2"
        )
    number = int(digits)
    if sign == "+":
        return Point(AFTER_START, number)
    return Point(BEFORE_END, number) if sign == "-" else Point(EXACT, number)


def _time_range(text: str, now_ms: int) -> OffsetRange:
    """A colon also stands inside ISO times, so each colon is tried as the one that separates two of them."""
    body = text[1:]
    alone = _moment(body, now_ms)
    if alone is not None:
        return OffsetRange(alone, None)
    for index, char in enumerate(body):
        if char != ":":
            continue
        first = _moment(body[:index] or START, now_ms)
        if first is None:
            continue
        last = _moment(body[index + 1 :] or END, now_ms, since=first)
        if last is not None:
            return OffsetRange(first, last)
    raise BadOffset(
        f"{text!r} is not a time or a range of times: use @1700000000000 (milliseconds), @1700000000 (seconds), "
        "@2026-11-01 or @2026-11-01T12:00:00Z (UTC unless it says otherwise), @-1h (ago; ms, s, m, h, d), "
        "or two of them as @T1:T2 (the second may be a length as 30m, or end)"
    )


def _moment(text: str, now_ms: int, since: Point | None = None) -> Point | None:
    if text in _FIXED:
        return Point(_FIXED[text])
    if text == "now":
        return Point(TIME, now_ms)
    if text.isascii() and text.isdigit():
        # rpk's rule: nine or ten digits are seconds, since as milliseconds they would all lie in 1970.
        number = int(text) * (1000 if len(text) in (9, 10) else 1)
        return Point(TIME, number) if number <= _MAX_MS else None
    if text.startswith("-"):
        ago = duration_ms(text[1:])
        return None if ago is None else Point(TIME, max(now_ms - ago, 0))
    length = duration_ms(text)
    if length is not None:
        return Point(TIME, since.number + length) if since is not None and since.kind == TIME else None
    return _calendar(text)


def duration_ms(text: str) -> int | None:
    """`90s`, `1h30m`, `2d`; None when it is something else."""
    total = 0
    digits = unit = ""
    for char in text + "0":  # the sentinel digit closes the last unit
        if char.isascii() and char.isdigit():
            if unit:
                if unit not in _UNITS_MS or not digits:
                    return None
                total += int(digits) * _UNITS_MS[unit]
                digits = unit = ""
            digits += char
        elif digits:
            unit += char
        else:
            return None
    return total if digits == "0" and total else None


def _calendar(text: str) -> Point | None:
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since_1970 = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return Point(TIME, max(since_1970 // timedelta(milliseconds=1), 0))


def parse_partitions(texts: list[str]) -> list[int]:
    """`0`, `0,2`, `4-7`, each once, in the order given."""
    chosen: dict[int, None] = {}
    for text in texts:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                raise BadOffset(f"{part!r} is not a partition: use 0, 0,2 or 4-7")
            low, high = int(first), int(last or first)
            if high < low or high - low > 100_000:
                raise BadOffset(f"{part!r} is not a range of partitions: the first comes before the last")
            chosen.update(dict.fromkeys(range(low, high + 1)))
    return list(chosen)
