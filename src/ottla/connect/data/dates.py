"""Dates of any year by Java's calendar: Gregorian, and Julian before 15 October 1582, as java.util.Date has it."""

from typing import Final, NamedTuple

MILLIS_PER_DAY: Final = 86_400_000
_GREGORIAN_FROM: Final = -141_427
"""The day, since 1970, from which dates are Gregorian: 1582-10-15."""
_DAYS: Final = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Moment(NamedTuple):
    """`year` counts 0 and below for years before Christ: 0 is 1 BC."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    millis: int


def moment(millis: int) -> Moment:
    """Of milliseconds since 1970, in UTC."""
    days, rest = divmod(millis, MILLIS_PER_DAY)
    seconds, millis = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return Moment(*_civil(days), hour, minute, second, millis)


def millis_of(when: Moment) -> int:
    """The inverse. Fields that are too big or too small carry over, as Java's lenient calendar lets them."""
    year, month = when.year + (when.month - 1) // 12, (when.month - 1) % 12 + 1
    days = _days(year, month, 1) + when.day - 1
    return days * MILLIS_PER_DAY + ((when.hour * 60 + when.minute) * 60 + when.second) * 1000 + when.millis


def weekday(millis: int) -> int:
    """0: Thursday, which 1970 began with."""
    return millis // MILLIS_PER_DAY % 7


def java_date_text(millis: int) -> str:
    """java.util.Date's toString, in UTC."""
    at = moment(millis)
    clock = f"{at.hour:02}:{at.minute:02}:{at.second:02}"
    year = at.year if at.year > 0 else 1 - at.year
    return f"{_DAYS[weekday(millis)]} {_MONTHS[at.month - 1]} {at.day:02} {clock} UTC {year:04}"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month, day; years counted from March make February the last month."""
    if days >= _GREGORIAN_FROM:
        era, of_era = divmod(days + 719_468, 146_097)
        year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        year += era * 400
    else:
        era, of_era = divmod(days + 719_470, 1461)
        year = min(of_era // 365, 3)
        of_year = of_era - 365 * year
        year += era * 4
    of_march = (5 * of_year + 2) // 153
    day = of_year - (153 * of_march + 2) // 5 + 1
    month = of_march + 3 if of_march < 10 else of_march - 9
    return (year + (month <= 2), month, day)


def _days(year: int, month: int, day: int) -> int:
    since = year - (month <= 2)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = since * 365 + since // 4 - since // 100 + since // 400 + of_year - 719_468
    return days if days >= _GREGORIAN_FROM else since * 365 + since // 4 + of_year - 719_470
