"""Java's SimpleDateFormat in UTC and English: patterns of users' files mean here what they mean there.

Formatting knows every letter but the week-year ones that need a locale; parsing is lenient as Java's: numbers may be
shorter or longer than their letters say unless another number follows on end, fields that are too big carry over, and
what stands behind the match does not matter.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final, NamedTuple

from ottla.connect.data.dates import MILLIS_PER_DAY, Moment, millis_of, moment, weekday

_LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS: Final = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
_NUMERIC: Final = frozenset("yYwWDdFuHkKhmsS")
_OFFSET: Final = re.compile(r"([+-])(\d\d?):?(\d\d)?")
_ZONES: Final = ("UTC", "GMT", "Z")
_CENTURY_WINDOW: Final = 80
"""A year of two digits lies within eighty years before and twenty after the time at hand."""


class Piece(NamedTuple):
    """A letter and how many times it stands there, or a text (0 times)."""

    text: str
    times: int


class DateFormat:
    """A pattern, compiled. Raises ValueError for one that Java refuses."""

    __slots__ = ("_century", "_pieces", "pattern")

    def __init__(self, pattern: str, *, this_year: int = 2026) -> None:
        """`this_year` is where years of two digits are counted from."""
        self.pattern = pattern
        self._pieces = _compiled(pattern)
        self._century = this_year - _CENTURY_WINDOW

    def format(self, millis: int) -> str:
        at = moment(millis)
        return "".join(
            piece.text if piece.times == 0 else _FORMATS[piece.text](at, millis, piece.times) for piece in self._pieces
        )

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970; None if the text does not begin as the pattern says."""
        found = _Found()
        place: int | None = 0
        for index, piece in enumerate(self._pieces):
            assert place is not None
            if piece.times == 0:
                if not text.startswith(piece.text, place):
                    return None
                place += len(piece.text)
                continue
            on_end = index + 1 < len(self._pieces) and (
                self._pieces[index + 1].times > 0 and self._pieces[index + 1].text in _NUMERIC
            )
            place = found.take(piece, text, place, on_end, self._century)
            if place is None:
                return None
        return found.millis()


def _compiled(pattern: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "'":
            text, place = _quoted(pattern, place)
            pieces.append(Piece(text, 0))
        elif letter.isascii() and letter.isalpha():
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            end = place
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            if letter == "X" and end - place > 3:
                raise ValueError(f"invalid ISO 8601 format: length={end - place}")
            pieces.append(Piece(letter, end - place))
            place = end
        else:
            pieces.append(Piece(letter, 0))
            place += 1
    return tuple(pieces)


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """The text between quotes, two of which are one, and the place behind it."""
    if pattern.startswith("''", start):
        return "'", start + 2
    text = ""
    place = start + 1
    while place < len(pattern):
        if pattern[place] != "'":
            text += pattern[place]
            place += 1
        elif pattern.startswith("''", place):
            text += "'"
            place += 2
        else:
            return text, place + 1
    raise ValueError("Unterminated quote")


def _year(at: Moment, _: int, count: int) -> str:
    year = at.year if at.year > 0 else 1 - at.year
    return f"{year % 100:02}" if count == 2 else f"{year:0{count}}"


def _month(at: Moment, _: int, count: int) -> str:
    name = _MONTHS[at.month - 1]
    return name if count >= 4 else name[:3] if count == 3 else f"{at.month:0{count}}"


def _day_of_year(at: Moment, millis: int, count: int) -> str:
    first = millis_of(Moment(at.year, 1, 1, 0, 0, 0, 0))
    return f"{(millis - first) // MILLIS_PER_DAY + 1:0{count}}"


def _week_of_year(at: Moment, millis: int, count: int) -> str:
    """American: weeks begin on Sunday, and the first is the one with 1 January."""
    first = millis_of(Moment(at.year, 1, 1, 0, 0, 0, 0))
    offset = (weekday(first) + 4) % 7  # how far into its week the year begins
    week = ((millis - first) // MILLIS_PER_DAY + offset) // 7 + 1
    following = millis_of(Moment(at.year + 1, 1, 1, 0, 0, 0, 0))
    if (following - millis - 1) // MILLIS_PER_DAY < (weekday(following) + 4) % 7:
        week = 1
    return f"{week:0{count}}"


def _week_year(at: Moment, millis: int, count: int) -> str:
    following = millis_of(Moment(at.year + 1, 1, 1, 0, 0, 0, 0))
    ahead = (following - millis - 1) // MILLIS_PER_DAY < (weekday(following) + 4) % 7
    return _year(at._replace(year=at.year + ahead), millis, count)


def _week_of_month(at: Moment, millis: int, count: int) -> str:
    first = millis - (at.day - 1) * MILLIS_PER_DAY
    return f"{(at.day - 1 + (weekday(first) + 4) % 7) // 7 + 1:0{count}}"


def _weekday_name(_: Moment, millis: int, count: int) -> str:
    name = _WEEKDAYS[weekday(millis)]
    return name if count >= 4 else name[:3]


_FORMATS: Final[dict[str, Callable[[Moment, int, int], str]]] = {
    "G": lambda at, _, count: "AD" if at.year > 0 else "BC",
    "y": _year,
    "Y": _week_year,
    "M": _month,
    "L": _month,
    "w": _week_of_year,
    "W": _week_of_month,
    "D": _day_of_year,
    "d": lambda at, _, count: f"{at.day:0{count}}",
    "F": lambda at, _, count: f"{(at.day - 1) // 7 + 1:0{count}}",
    "E": _weekday_name,
    "u": lambda at, millis, count: f"{(weekday(millis) + 3) % 7 + 1:0{count}}",
    "a": lambda at, _, count: "AM" if at.hour < 12 else "PM",
    "H": lambda at, _, count: f"{at.hour:0{count}}",
    "k": lambda at, _, count: f"{at.hour or 24:0{count}}",
    "K": lambda at, _, count: f"{at.hour % 12:0{count}}",
    "h": lambda at, _, count: f"{at.hour % 12 or 12:0{count}}",
    "m": lambda at, _, count: f"{at.minute:0{count}}",
    "s": lambda at, _, count: f"{at.second:0{count}}",
    "S": lambda at, _, count: f"{at.millis:0{count}}",
    "z": lambda at, _, count: "Coordinated Universal Time" if count >= 4 else "UTC",
    "Z": lambda at, _, count: "+0000",
    "X": lambda at, _, count: "Z",
}


class _Found:
    """The fields of a text, as far as it has been read."""

    def __init__(self) -> None:
        self.year: int | None = None
        self.month = self.day = 1
        self.day_of_year: int | None = None
        self.hour = self.minute = self.second = self.milli = 0
        self.half_hour: int | None = None
        self.afternoon = self.before_christ = False
        self.offset = timedelta()

    def take(self, piece: Piece, text: str, place: int, on_end: bool, century: int) -> int | None:
        """The place behind the piece."""
        while place < len(text) and text[place] in " \t":
            place += 1
        if piece.text in ("M", "L") and piece.times >= 3:
            return self._name(text, place, _MONTHS, self._set_month)
        match piece.text:
            case "E":
                return self._name(text, place, _WEEKDAYS, lambda index: None)
            case "a":
                return self._name(text, place, ("AM", "PM"), self._set_afternoon)
            case "G":
                return self._name(text, place, ("BC", "AD"), self._set_era)
            case "z" | "Z" | "X":
                return self._zone(piece, text, place)
        end = place + (text[place : place + 1] == "-")
        most = place + piece.times if on_end else len(text)
        while end < most and text[end].isdigit():
            end += 1
        try:
            number = int(text[place:end])
        except ValueError:
            return None
        self._set(piece, number, end - place, century)
        return end

    def _set(self, piece: Piece, number: int, digits: int, century: int) -> None:
        match piece.text:
            case "y" | "Y":
                if piece.times <= 2 and digits == 2 and number >= 0:
                    number += century - century % 100 + (100 if number < century % 100 else 0)
                self.year = number
            case "M" | "L":
                self.month = number
            case "d":
                self.day = number
            case "D":
                self.day_of_year = number
            case "H":
                self.hour = number
            case "k":
                self.hour = 0 if number == 24 else number
            case "K":
                self.half_hour = number
            case "h":
                self.half_hour = 0 if number == 12 else number
            case "m":
                self.minute = number
            case "s":
                self.second = number
            case "S":
                self.milli = number

    def _name(self, text: str, place: int, names: tuple[str, ...], keep: Callable[[int], None]) -> int | None:
        """Whole names before their first three letters; case does not matter."""
        rest = text[place:].lower()
        for length in (None, 3):
            for index, name in enumerate(names):
                if rest.startswith(name[:length].lower()):
                    keep(index)
                    return place + len(name[:length])
        return None

    def _set_month(self, index: int) -> None:
        self.month = index + 1

    def _set_afternoon(self, index: int) -> None:
        self.afternoon = index == 1

    def _set_era(self, index: int) -> None:
        self.before_christ = index == 0

    def _zone(self, piece: Piece, text: str, place: int) -> int | None:
        name = next((each for each in _ZONES if text.startswith(each, place)), None)
        if name is not None and (name == "Z") == (piece.text == "X"):
            place += len(name)
            if piece.text == "X" or text[place : place + 1] not in ("+", "-"):
                return place
        matched = _OFFSET.match(text, place)
        if matched is None:
            return None
        sign, hours, minutes = matched.groups()
        if piece.text == "X" and piece.times == 1:
            minutes, end = None, matched.end(2)
        else:
            end = matched.end()
        by = timedelta(hours=int(hours), minutes=int(minutes or 0))
        self.offset = by if sign == "+" else -by
        return end

    def millis(self) -> int:
        year = 1970 if self.year is None else self.year
        if self.before_christ:
            year = 1 - year
        hour = self.hour
        if self.half_hour is not None:
            hour = self.half_hour + (12 if self.afternoon else 0)
        month, day = (self.month, self.day) if self.day_of_year is None else (1, self.day_of_year)
        at = Moment(year, month, day, hour, self.minute, self.second, self.milli)
        return millis_of(at) - self.offset // timedelta(milliseconds=1)
