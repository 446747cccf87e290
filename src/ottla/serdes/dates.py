"""Dates, times and timestamps: as Python has them, as numbers, and as ISO text. All in UTC, to the millisecond.

A timestamp is a datetime in UTC; one without a zone is taken for UTC, one with another zone is converted. There is no
local time anywhere, so no hour is there twice. Days go from 0001-01-01 to 9999-12-31, which is what Python has.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

DAY_MS: Final = 86_400_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
FIRST_MS, LAST_MS = FIRST_DAY * DAY_MS, (LAST_DAY + 1) * DAY_MS - 1

DATE_TEXT: Final = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
TIME_TEXT: Final = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
ZONE_TEXT: Final = r"(Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"
TIMESTAMP_TEXT: Final = f"{DATE_TEXT}(?:[T ]{TIME_TEXT}{ZONE_TEXT}?)?"
"""What is read, in Python and in Java. Digits of a second behind the third are cut off."""
NUMBER_TEXT: Final = r"-?[0-9]{1,18}"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MIDNIGHT: Final = time()
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(DATE_TEXT)
_TIME: Final = re.compile(TIME_TEXT)
_TIMESTAMP: Final = re.compile(TIMESTAMP_TEXT)
_NUMBER: Final = re.compile(NUMBER_TEXT)


# ---- numbers


def days_of(value: date) -> int:
    """Since 1970-01-01."""
    return value.toordinal() - _EPOCH_DAY


def date_of(days: int) -> date | None:
    return date.fromordinal(days + _EPOCH_DAY) if FIRST_DAY <= days <= LAST_DAY else None


def ms_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_of(ms: int) -> time | None:
    if not 0 <= ms < DAY_MS:
        return None
    seconds, rest = divmod(ms, 1000)
    minutes, second = divmod(seconds, 60)
    return time(minutes // 60, minutes % 60, second, rest * 1000)


def ms_of(value: datetime) -> int:
    """Since 1970 in UTC."""
    return ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def timestamp_of(ms: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=ms) if FIRST_MS <= ms <= LAST_MS else None


def in_utc(value: datetime) -> datetime | None:
    """The one form of a timestamp: in UTC, to the millisecond. None where that is no year of ours any more."""
    return timestamp_of(ms_of(value))


def to_ms(value: time) -> time:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def midnight(value: date) -> datetime:
    return datetime.combine(value, _MIDNIGHT, UTC)


# ---- text


def parse_date(text: str) -> date | None:
    found = _DATE.fullmatch(text)
    try:
        return None if found is None else date(*map(int, found.groups()))
    except ValueError:
        return None


def parse_time(text: str) -> time | None:
    found = _TIME.fullmatch(text)
    try:
        return None if found is None else _time(*found.groups())
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, *clock, zone = found.groups()
    try:
        local = datetime.combine(date(int(year), int(month), int(day)), _time(*clock), UTC)
        return local - _offset(zone)
    except (ValueError, OverflowError):
        return None


def _time(hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> time:
    microsecond = int((fraction or "")[:3].ljust(3, "0")) * 1000
    return time(int(hour or 0), int(minute or 0), int(second or 0), microsecond)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta()
    size = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -size if zone[0] == "-" else size


def date_text(value: date) -> str:
    return value.isoformat()


def time_text(value: time) -> str:
    return value.isoformat(timespec="milliseconds")


def timestamp_text(value: datetime) -> str:
    """Without the zone, which is always UTC."""
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds")


# ---- from JSON: a number, or a text that is a number or ISO's


def read_date(found: Any) -> date | None:
    number = _number(found)
    return date_of(number) if number is not None else parse_date(found) if isinstance(found, str) else None


def read_time(found: Any) -> time | None:
    number = _number(found)
    return time_of(number) if number is not None else parse_time(found) if isinstance(found, str) else None


def read_timestamp(found: Any) -> datetime | None:
    number = _number(found)
    return timestamp_of(number) if number is not None else parse_timestamp(found) if isinstance(found, str) else None


def _number(found: Any) -> int | None:
    if isinstance(found, str):
        return int(found) if _NUMBER.fullmatch(found) else None
    return found if type(found) is int else None
