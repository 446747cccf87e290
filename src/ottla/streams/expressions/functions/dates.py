"""Dates, times and timestamps. All in UTC; patterns are those of Java's DateTimeFormatter, with English names.

What only counts is a column of Spark; patterns and zones are Python's, since Java's own data may be of another year.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final

from ottla.serdes import dates
from ottla.serdes.types import DATE, INT, LONG, STRING, TIME, TIMESTAMP, Type
from ottla.streams.expressions import time_patterns as patterns
from ottla.streams.expressions.bound import Bound, Refused, Rule, Spark
from ottla.streams.expressions.expression import Function
from ottla.streams.expressions.functions.declare import (
    coerced,
    family,
    long,
    not_literal,
    takes,
    text,
    whole,
)

__all__ = [
    "convert_tz",
    "dateadd",
    "datesub",
    "format_date",
    "format_time",
    "format_timestamp",
    "from_days",
    "from_unixtime",
    "now",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "timeadd",
    "timestampadd",
    "timestampsub",
    "timesub",
    "unix_date",
    "unix_timestamp",
]
declare: Final = family("dates")


def _of(wanted: Type) -> Callable[[Bound], Bound]:
    def kind(node: Bound) -> Bound:
        if node.type != wanted and node.type.name not in {"null", "any"}:
            raise Refused(f"a {wanted} is needed, not {node.type}; use .cast('{wanted}')")
        return coerced(node, wanted)

    return kind


_date, _time, _timestamp = _of(DATE), _of(TIME), _of(TIMESTAMP)


# ---- numbers


def _as_number(name: str, parameter: str, given: Any, source: Type, wanted: Type, body: Any, about: str) -> Function:
    return declare(
        name,
        parameter,
        takes(given, gives=wanted),
        body,
        typed_column=lambda spark, node, args: spark.cast(args[0], source, wanted),
        about=about,
    )


from_days: Final = _as_number(
    "from_days", "days", whole, INT, DATE, dates.date_of, "The date so many days after 1970-01-01."
)
unix_date: Final = _as_number("unix_date", "date", _date, DATE, INT, dates.days_of, "Days since 1970-01-01.")
from_unixtime: Final = _as_number(
    "from_unixtime", "ms", long, LONG, TIMESTAMP, dates.timestamp_of, "The timestamp so many milliseconds after 1970."
)
unix_timestamp: Final = _as_number(
    "unix_timestamp", "timestamp", _timestamp, TIMESTAMP, LONG, dates.ms_of, "Milliseconds since 1970."
)


def _told(inputs: Any) -> int:
    now = inputs.now
    assert isinstance(now, int), "whoever runs an expression that asks for the time has to tell it"
    return now


now: Final = declare(
    "now",
    "",
    takes(long, gives=LONG),
    build=lambda node, args: _told,
    column=lambda F: F.unix_millis(F.current_timestamp()),
    nulls="never null",
    about="Milliseconds since 1970. On Spark that of the batch, which is the same when it runs again.",
)


# ---- sums

_UNITS_MS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": dates.DAY_MS,
}


def _unit_ms(name: str) -> int:
    return _UNITS_MS[name.upper().removesuffix("S")]


def _whole_days(count: int, unit: str) -> int:
    """Towards zero: 36 hours are a day."""
    ms = count * _unit_ms(unit)
    return abs(ms) // dates.DAY_MS * (1 if ms >= 0 else -1)


def _date_plus(sign: int) -> Callable[[str, int, date], date | None]:
    return lambda unit, count, given: dates.date_of(dates.days_of(given) + sign * _whole_days(count, unit))


def _time_plus(sign: int) -> Callable[[str, int, time], time | None]:
    return lambda unit, count, given: dates.time_of(
        (dates.ms_of_day(given) + sign * count * _unit_ms(unit)) % dates.DAY_MS
    )


def _timestamp_plus(sign: int) -> Callable[[str, int, datetime], datetime | None]:
    return lambda unit, count, given: dates.timestamp_of(dates.ms_of(given) + sign * count * _unit_ms(unit))


def _known_unit(node: Bound) -> str | None:
    reason = not_literal(0, "the unit")(node)
    if reason is None and str(node.args[0].options[0]).upper().removesuffix("S") not in _UNITS_MS:
        return f"{node.args[0].options[0]!r} is no unit of time"
    return reason


def _ms_column(spark: Spark, node: Bound, count: Any, sign: int) -> Any:
    """An int times a unit fits a long."""
    return count.cast("bigint") * spark.F.lit(sign * _unit_ms(node.args[0].options[0])).cast("bigint")


def _date_plus_column(sign: int) -> Callable[[Spark, Bound, list[Any]], Any]:
    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (_, count, given) = spark.F, args
        ms = _ms_column(spark, node, count, sign)
        days = F.signum(ms) * F.floor(F.abs(ms) / F.lit(dates.DAY_MS))
        whole_days = spark.cast(given, DATE, INT).cast("bigint") + days.cast("bigint")
        return spark.cast(whole_days.try_cast("int"), INT, DATE)

    return column


def _time_plus_column(sign: int) -> Callable[[Spark, Bound, list[Any]], Any]:
    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (_, count, given) = spark.F, args
        ms = spark.cast(given, TIME, INT).cast("bigint") + _ms_column(spark, node, count, sign)
        return spark.cast(F.pmod(ms, F.lit(dates.DAY_MS).cast("bigint")).cast("int"), INT, TIME)

    return column


def _timestamp_plus_column(sign: int) -> Callable[[Spark, Bound, list[Any]], Any]:
    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        ms = spark.cast(args[2], TIMESTAMP, LONG) + _ms_column(spark, node, args[1], sign)
        return spark.cast(ms, LONG, TIMESTAMP)

    return column


def _sum(name: str, kind: Type, body: Any, column: Any, about: str) -> Function:
    return declare(
        name,
        f"unit, count, {kind}",
        takes(text, whole, _of(kind), gives=kind),
        body,
        typed_column=column,
        no_column=_known_unit,
        fails=True,
        about=about,
    )


_UNITS: Final = "Units: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS."
dateadd: Final = _sum(
    "dateadd", DATE, _date_plus(1), _date_plus_column(1), f"Later; what is below a day is dropped. {_UNITS}"
)
datesub: Final = _sum(
    "datesub", DATE, _date_plus(-1), _date_plus_column(-1), "Earlier; what is below a day is dropped."
)
timeadd: Final = _sum(
    "timeadd", TIME, _time_plus(1), _time_plus_column(1), "Later; after midnight the day begins anew."
)
timesub: Final = _sum("timesub", TIME, _time_plus(-1), _time_plus_column(-1), "Earlier; before midnight it is evening.")
timestampadd: Final = _sum("timestampadd", TIMESTAMP, _timestamp_plus(1), _timestamp_plus_column(1), "Later.")
timestampsub: Final = _sum("timestampsub", TIMESTAMP, _timestamp_plus(-1), _timestamp_plus_column(-1), "Earlier.")


# ---- text


def _format_timestamp(given: datetime, pattern: str, zone: str) -> str:
    return patterns.written(given.astimezone(patterns.zone(zone)), pattern)


def _parse_timestamp(given: str, pattern: str, zone: str) -> datetime | None:
    found = patterns.read(given, pattern)
    local = datetime.combine(patterns.date_in(found), patterns.time_in(found))
    return dates.in_utc(local.replace(tzinfo=patterns.zone_in(found) or patterns.zone(zone)))


def _check_of_date(pattern: str) -> None:
    patterns.check_readable(pattern)
    if any(part.count > 0 and part.letter in "HkKhmsSAna" for part in patterns.parts_of(pattern)):
        raise ValueError(f"the pattern {pattern!r} of a date has parts of a time")


def _by_pattern(check: Callable[[str], object], rule: Rule) -> Rule:
    """A pattern that is the same for all records is looked at before the first of them."""

    def checked(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
        bound = rule(name, args, options)
        pattern = bound.args[1] if len(bound.args) > 1 else None
        if pattern is not None and pattern.function == "lit" and isinstance(pattern.options[0], str):
            try:
                check(pattern.options[0])
            except ValueError as error:
                raise Refused(str(error)) from None
        return bound

    return checked


def _parse_date(given: str, pattern: str) -> date:
    _check_of_date(pattern)
    return patterns.date_in(patterns.read(given, pattern, lenient=True), lenient=True)


format_date: Final = declare(
    "format_date",
    "date, pattern",
    _by_pattern(patterns.parts_of, takes(_date, text, gives=STRING)),
    lambda given, pattern: patterns.written(datetime.combine(given, time(), UTC), pattern),
    fails=True,
    about="A date as text, by a pattern.",
)
format_time: Final = declare(
    "format_time",
    "time, pattern",
    _by_pattern(patterns.parts_of, takes(_time, text, gives=STRING)),
    lambda given, pattern: patterns.written(datetime.combine(date(1970, 1, 1), given, UTC), pattern),
    fails=True,
    about="A time as text, by a pattern.",
)
format_timestamp: Final = declare(
    "format_timestamp",
    "timestamp, pattern, zone='UTC'",
    _by_pattern(patterns.parts_of, takes(_timestamp, text, gives=STRING)),
    _format_timestamp,
    fails=True,
    about="A timestamp as text, by a pattern, as the clocks of a zone show it.",
)
parse_date: Final = declare(
    "parse_date",
    "text, pattern",
    _by_pattern(_check_of_date, takes(text, gives=DATE)),
    _parse_date,
    fails=True,
    about="A date by a pattern; lenient: 30 February is 2 March.",
)
parse_time: Final = declare(
    "parse_time",
    "text, pattern",
    _by_pattern(patterns.check_readable, takes(text, gives=TIME)),
    lambda given, pattern: patterns.time_in(patterns.read(given, pattern)),
    fails=True,
    about="A time by a pattern; parts that are missing are 0.",
)
parse_timestamp: Final = declare(
    "parse_timestamp",
    "text, pattern, zone='UTC'",
    _by_pattern(patterns.check_readable, takes(text, gives=TIMESTAMP)),
    _parse_timestamp,
    fails=True,
    about="A timestamp by a pattern, in a zone unless the text says one; missing parts are those of 1970-01-01T00:00.",
)


def _converted(given: datetime, source: str, wanted: str) -> datetime | None:
    there = given.replace(tzinfo=patterns.zone(source)).astimezone(patterns.zone(wanted))
    return dates.in_utc(there.replace(tzinfo=UTC))


convert_tz: Final = declare(
    "convert_tz",
    "timestamp, from_zone, to_zone",
    takes(_timestamp, text, gives=TIMESTAMP),
    _converted,
    fails=True,
    about="What the clocks of one zone show when those of another show the timestamp.",
)
