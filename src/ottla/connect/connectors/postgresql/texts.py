"""Texts of values that have parts, as the server writes them: arrays, hstore, intervals."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

Array: TypeAlias = "list[str | Array | None]"
MOST_DEPTH: Final = 6
"""Dimensions that an array can have."""
_BOUNDS: Final = re.compile(r"(?:\[[-+]?\d+:[-+]?\d+\])+=")
_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"\\\s](?:[^,{}"\\]|\\.)*)', re.S)
_ESCAPED: Final = re.compile(r"\\(.)", re.S)
_PAIR: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|(NULL))(?:,\s*|$)', re.S)
_INTERVAL: Final = re.compile(
    r"(?:([-+]?\d+) years? ?)?(?:([-+]?\d+) mons? ?)?(?:([-+]?\d+) days? ?)?(?:([-+]?)(\d+):(\d+):(\d+(?:\.\d+)?))?"
)


def array_of(text: str) -> Array:
    """`{1,NULL,"a b"}`; a list in lists if it has several dimensions. Raises ValueError."""
    bounds = _BOUNDS.match(text)
    found, end = _array(text, 0 if bounds is None else bounds.end(), 0)
    if end != len(text):
        raise ValueError("something stands behind an array")
    return found


def _array(text: str, at: int, depth: int) -> tuple[Array, int]:
    if text[at : at + 1] != "{" or depth >= MOST_DEPTH:
        raise ValueError("that is no array")
    found: Array = []
    at += 1
    while text[at : at + 1] != "}":
        if text[at : at + 1] == "{":
            inner, at = _array(text, at, depth + 1)
            found.append(inner)
        else:
            part = _PART.match(text, at)
            if part is None:
                raise ValueError("that is no array")
            at = part.end()
            if part[1] is not None:
                found.append(_unescaped(part[1]))
            else:
                found.append(None if part[2] == "NULL" else _unescaped(part[2]))
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "}":
            raise ValueError("an array is cut off")
    return found, at + 1


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def hstore_of(text: str) -> dict[str, str | None]:
    """`"a"=>"1", "b"=>NULL`. Raises ValueError."""
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise ValueError("that is no hstore")
        found[_unescaped(pair[1])] = None if pair[3] else _unescaped(pair[2])
        at = pair.end()
    return found


class Interval(NamedTuple):
    years: int
    months: int
    days: int
    hours: int
    minutes: int
    seconds: Decimal
    """With the sign of the hours and minutes."""

    def iso_text(self) -> str:
        seconds = format(self.seconds.normalize(), "f") if self.seconds else "0"
        date = f"P{self.years}Y{self.months}M{self.days}D"
        return f"{date}T{self.hours}H{self.minutes}M{seconds}S"

    def micros(self, days_per_month: float) -> int:
        """With months of an average length, in Debezium's steps and so with its rounding."""
        days = (self.years * 12 + self.months) * days_per_month + self.days
        seconds = ((days * 24 + self.hours) * 60 + self.minutes) * 60 + float(self.seconds)
        return int(seconds * 1e6)


def interval_of(text: str) -> Interval:
    """`1 year 2 mons -3 days 04:05:06.7`, as intervalstyle=postgres has it. Raises ValueError."""
    found = _INTERVAL.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"{text!r} is no interval")
    years, months, days, minus, hours, minutes, seconds = found.groups()
    sign = -1 if minus == "-" else 1
    return Interval(
        int(years or 0),
        int(months or 0),
        int(days or 0),
        sign * int(hours or 0),
        sign * int(minutes or 0),
        sign * Decimal(seconds or 0),
    )
