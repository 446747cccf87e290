"""Patterns of dates and times as Java's DateTimeFormatter has them (`yyyy-MM-dd HH:mm:ss.SSS`): written and read.

Letters: G y u Q q M L d D E H k K h m s S A a n X x Z O V z, text in single quotes, `[` and `]` around what may be
missing. Names are English. Letters of weeks (Y w W e c) are refused: where a week begins depends on the country.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS: Final = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_LONGEST: Final = 500
_DEEPEST: Final = 10
"""Characters of a pattern, and `[` inside each other."""
_TOKEN: Final = re.compile(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|[\[\]]|[{}#]|[^A-Za-z'\[\]{}#]+")
_NUMBERS: Final = {"M": 2, "L": 2, "d": 2, "D": 3, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2, "A": 8, "n": 9}
"""Letters that are numbers, with the most digits they have."""
_OFFSET: Final = re.compile(r"([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?")


@dataclass(frozen=True, slots=True)
class Part:
    """A letter and how often it stands there, a text between letters (count 0), or `[` or `]` (count -1)."""

    letter: str
    count: int = 0


_WEEKS: Final = "YwWec"
_BEGIN, _END = Part("[", -1), Part("]", -1)


@lru_cache(maxsize=512)
def parts_of(pattern: str) -> tuple[Part, ...]:
    """Raises ValueError for a pattern that is not understood."""
    return tuple(_parts(pattern))


def _parts(pattern: str) -> Iterator[Part]:
    if len(pattern) > _LONGEST:
        raise ValueError(f"a pattern has at most {_LONGEST} characters")
    at = depth = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise ValueError(f"the pattern {pattern!r} has a quote without another")
        at = found.end()
        if found[2] is not None:
            _check_letter(pattern, found[2])
            yield Part(found[2], len(found[0]))
        elif found[0] in "[]":
            depth += 1 if found[0] == "[" else -1
            if not 0 <= depth <= _DEEPEST:
                raise ValueError(f"the pattern {pattern!r} has [ and ] that do not belong to each other")
            yield _BEGIN if found[0] == "[" else _END
        elif found[0] in "{}#":
            raise ValueError(f"the pattern {pattern!r} has {found[0]}, which stands for itself in quotes only")
        else:
            yield Part("'" if found[0] == "''" else found[0] if found[1] is None else found[1].replace("''", "'"))
    if depth:
        raise ValueError(f"the pattern {pattern!r} has [ and ] that do not belong to each other")


def _check_letter(pattern: str, letter: str) -> None:
    if letter in _WEEKS:
        instead = "; y is the year" if letter == "Y" else ""
        raise ValueError(f"the pattern {pattern!r} has {letter}, which is of weeks as countries have them{instead}")
    if letter not in _WRITERS:
        raise ValueError(f"the pattern {pattern!r} has the letter {letter}, which is not understood")


# ---- written


def written(moment: datetime, pattern: str) -> str:
    return "".join(
        part.letter if part.count == 0 else _WRITERS[part.letter](moment, part.count)
        for part in parts_of(pattern)
        if part.count >= 0
    )


def _padded(number: int, count: int) -> str:
    return str(number).rjust(count, "0")


def _year(moment: datetime, count: int) -> str:
    if count == 2:
        return _padded(moment.year % 100, 2)
    return _padded(moment.year, count)


def _month(moment: datetime, count: int) -> str:
    name = _MONTHS[moment.month - 1]
    return _padded(moment.month, count) if count < 3 else name[:3] if count == 3 else name if count == 4 else name[:1]


def _era(_: datetime, count: int) -> str:
    """Dates begin with the year 1."""
    return "AD" if count < 4 else "Anno Domini" if count == 4 else "A"


def _quarter(moment: datetime, count: int) -> str:
    number = (moment.month + 2) // 3
    return (
        _padded(number, count)
        if count < 3
        else f"Q{number}"
        if count == 3
        else _QUARTERS[number - 1]
        if count == 4
        else str(number)
    )


def _day_name(moment: datetime, count: int) -> str:
    name = _DAYS[moment.weekday()]
    return name[:3] if count < 4 else name if count == 4 else name[:1]


def _fraction(moment: datetime, count: int) -> str:
    return f"{moment.microsecond:06d}000"[:count].ljust(count, "0")


def _offset_text(moment: datetime, count: int, zero: str) -> str:
    """As the letter X (or x) writes it: +01, +0130, +01:30 by how many there are."""
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    if seconds == 0 and zero:
        return zero
    minutes, _ = divmod(abs(seconds), 60)
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(minutes, 60)
    if count == 1:
        return f"{sign}{hours:02d}{rest:02d}" if rest else f"{sign}{hours:02d}"
    return f"{sign}{hours:02d}{':' if count in (3, 5) else ''}{rest:02d}"


def _zone_name(moment: datetime) -> str:
    name = getattr(moment.tzinfo, "key", None)
    return name if isinstance(name, str) else _offset_text(moment, 3, "Z")


def _localized(moment: datetime) -> str:
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    if seconds == 0:
        return "GMT"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"GMT{'-' if seconds < 0 else '+'}{hours}" + (f":{minutes:02d}" if minutes else "")


_WRITERS: Final[dict[str, Callable[[datetime, int], str]]] = {
    "G": _era,
    "Q": _quarter,
    "q": _quarter,
    "y": _year,
    "u": _year,
    "M": _month,
    "L": _month,
    "d": lambda moment, count: _padded(moment.day, count),
    "D": lambda moment, count: _padded(moment.timetuple().tm_yday, count),
    "E": _day_name,
    "H": lambda moment, count: _padded(moment.hour, count),
    "k": lambda moment, count: _padded(moment.hour or 24, count),
    "K": lambda moment, count: _padded(moment.hour % 12, count),
    "h": lambda moment, count: _padded(moment.hour % 12 or 12, count),
    "m": lambda moment, count: _padded(moment.minute, count),
    "s": lambda moment, count: _padded(moment.second, count),
    "S": _fraction,
    "A": lambda moment, count: _padded(
        (moment.hour * 3600 + moment.minute * 60 + moment.second) * 1000 + moment.microsecond // 1000, count
    ),
    "n": lambda moment, count: _padded(moment.microsecond * 1000, count),
    "a": lambda moment, _: "AM" if moment.hour < 12 else "PM",
    "X": lambda moment, count: _offset_text(moment, count, "Z"),
    "x": lambda moment, count: _offset_text(moment, count, ""),
    "Z": lambda moment, count: _localized(moment) if count == 4 else _offset_text(moment, 3 if count == 5 else 2, ""),
    "O": lambda moment, _: _localized(moment),
    "V": lambda moment, _: _zone_name(moment),
    "z": lambda moment, _: moment.tzname() or "",
}


# ---- read


def check_readable(pattern: str) -> None:
    """Raises ValueError for a pattern by which nothing can be read."""
    _reader(pattern, lenient=False)


def read(text: str, pattern: str, *, lenient: bool = False) -> dict[str, str]:
    """The texts of the letters. Raises ValueError where the text is not of that pattern."""
    found = _reader(pattern, lenient).fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not of the pattern {pattern!r}")
    texts: dict[str, str] = {}
    for name, each in found.groupdict().items():
        if each is not None and texts.setdefault(name[0], each) != each:
            raise ValueError(f"{text!r} has {name[0]} of {pattern!r} twice, and they differ")
    return texts


@lru_cache(maxsize=512)
def _reader(pattern: str, lenient: bool) -> "re.Pattern[str]":
    """What is in brackets is taken if it is there and never given back, as Java does: so many of them cannot be tried
    in all ways."""
    parts = parts_of(pattern)
    expression = ""
    seen: set[str] = set()
    depth = 0
    for place, part in enumerate(parts):
        if part.count == 0:
            expression += re.escape(part.letter)
        elif part.count < 0:
            depth += 1 if part is _BEGIN else -1
            expression += "(?>" if part is _BEGIN else ")?+"
        else:
            if part.letter in "Qq":
                raise ValueError(f"the pattern {pattern!r} has {part.letter}: a quarter is written, and not read")
            if part.letter in seen and depth == 0:
                raise ValueError(f"the pattern {pattern!r} has {part.letter} twice")
            seen.add(part.letter)
            follows = parts[place + 1] if place + 1 < len(parts) else None
            expression += f"(?P<{part.letter}_{place}>{_expected(part, _begins_with_digits(follows), lenient)})"
    return re.compile(expression, re.IGNORECASE | re.ASCII)


def _begins_with_digits(part: Part | None) -> bool:
    return part is not None and part.count > 0 and (part.letter in _NUMBERS or part.letter in "yuS")


def _expected(part: Part, next_to_digits: bool, lenient: bool) -> str:
    letter, count = part.letter, part.count
    if letter in "ML" and count > 2:
        return "|".join(name[:3] if count == 3 else name for name in _MONTHS)
    if letter == "G":
        return "AD|BC" if count < 4 else "Anno Domini|Before Christ" if count == 4 else "A|B"
    if letter == "E":
        return "|".join(name if count == 4 else name[:3] for name in _DAYS)
    if letter in "yu":
        return (
            r"\d{2}"
            if count == 2
            else rf"\d{{{count}}}"
            if next_to_digits and count > 1
            else rf"\d{{{min(count, 4)},4}}"
        )
    if letter == "S":
        return rf"\d{{{count}}}"
    if letter in _NUMBERS:
        if next_to_digits and count > 1:
            return rf"\d{{{count}}}"
        return r"\d{1,9}" if lenient else rf"\d{{1,{_NUMBERS[letter]}}}" if count == 1 else rf"\d{{{count}}}"
    if letter == "a":
        return "AM|PM"
    if letter in "XxZ":
        return r"Z|GMT|[+-]\d\d(?::?\d\d)?"
    return r"[A-Za-z0-9/_+:-]+"


def date_in(found: dict[str, str], *, lenient: bool = False) -> date:
    """Parts that are missing are those of 1970-01-01. A lenient one counts on: 30 February is 2 March."""
    text = found.get("y") or found.get("u") or "1970"
    year = int(text) + (2000 if len(text) == 2 else 0)
    if found.get("G", "A").upper().startswith("B"):
        raise ValueError("dates begin with the year 1")
    if "D" in found:
        return date(year, 1, 1) + timedelta(days=int(found["D"]) - 1)
    month, day = _month_in(found), int(found.get("d", "1"))
    if lenient:
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        return date(year, month, 1) + timedelta(days=day - 1)
    return date(year, month, day)


def _month_in(found: dict[str, str]) -> int:
    text = found.get("M") or found.get("L") or "1"
    if text.isdecimal():
        return int(text)
    return next(place for place, name in enumerate(_MONTHS, 1) if name.lower().startswith(text.lower()))


def time_in(found: dict[str, str]) -> time:
    """Parts that are missing are 0."""
    if "A" in found:
        seconds, ms = divmod(int(found["A"]), 1000)
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, ms * 1000)
    microsecond = int(found.get("S", "0").ljust(6, "0")[:3]) * 1000
    if "n" in found:
        microsecond = int(found["n"]) // 1_000_000 * 1000
    return time(_hour_in(found), int(found.get("m", "0")), int(found.get("s", "0")), microsecond)


def _hour_in(found: dict[str, str]) -> int:
    if "H" in found:
        return int(found["H"])
    if "k" in found:
        return int(found["k"]) % 24
    half = 12 if found.get("a", "AM").upper() == "PM" else 0
    if "h" in found or "K" in found:
        hour = int(found.get("h") or found.get("K") or "0")
        if hour > 12:
            raise ValueError(f"{hour} is no hour of half a day")
        return hour % 12 + half
    return half


def zone_in(found: dict[str, str]) -> tzinfo | None:
    text = next((found[letter] for letter in "XxZVzO" if letter in found), None)
    return None if text is None else zone(text)


@lru_cache(maxsize=512)
def zone(name: str) -> tzinfo:
    """Of a name (`Europe/Berlin`) or a distance (`+02:00`). Raises ValueError."""
    if name.upper() in {"Z", "UTC", "GMT"}:
        return UTC
    found = _OFFSET.fullmatch(name.upper().removeprefix("GMT").removeprefix("UTC"))
    if found is not None:
        size = timedelta(hours=int(found[2]), minutes=int(found[3] or 0), seconds=int(found[4] or 0))
        return timezone(-size if found[1] == "-" else size)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415  few need it

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone") from error
