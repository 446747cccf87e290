"""Dates, times and timestamps, all in UTC. Patterns are those of Java's DateTimeFormatter."""

from collections.abc import Callable
from typing import Final

from ottla.sql.functions.declare import Scalar
from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression

_UNITS: Final = "MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS"


def _moved(name: str, build: Callable[..., Expression], kind: str, about: str) -> Scalar:
    return scalar(name, build, f"STRING, INT, {kind} -> {kind}", about=f"{about} by {_UNITS}.", unit_first=True)


def _unix_date(given: Expression | None = None) -> Expression:
    return e.unix_date(e.from_unixtime(e.now()).cast("date") if given is None else given)


def _unix_timestamp(given: Expression | None = None) -> Expression:
    return e.now() if given is None else e.unix_timestamp(given)


def _date_to_string(days: Expression, pattern: Expression) -> Expression:
    return e.format_date(e.from_days(days), pattern)


def _string_to_date(given: Expression, pattern: Expression) -> Expression:
    return e.unix_date(e.parse_date(given, pattern))


def _timestamp_to_string(ms: Expression, pattern: Expression, *zone: Expression) -> Expression:
    return e.format_timestamp(e.from_unixtime(ms), pattern, *zone)


def _string_to_timestamp(given: Expression, pattern: Expression, *zone: Expression) -> Expression:
    return e.unix_timestamp(e.parse_timestamp(given, pattern, *zone))


FUNCTIONS: Final = table(
    scalar(
        "CONVERT_TZ",
        e.convert_tz,
        "TIMESTAMP, STRING, STRING -> TIMESTAMP",
        about="From the clocks of one zone to those of another.",
    ),
    _moved("DATEADD", e.dateadd, "DATE", "Later"),
    _moved("DATESUB", e.datesub, "DATE", "Earlier"),
    _moved("TIMEADD", e.timeadd, "TIME", "Later, beginning anew at midnight,"),
    _moved("TIMESUB", e.timesub, "TIME", "Earlier, before midnight it is evening,"),
    _moved("TIMESTAMPADD", e.timestampadd, "TIMESTAMP", "Later"),
    _moved("TIMESTAMPSUB", e.timestampsub, "TIMESTAMP", "Earlier"),
    scalar("FORMAT_DATE", e.format_date, "DATE, STRING -> STRING", about="As text, by a pattern."),
    scalar("FORMAT_TIME", e.format_time, "TIME, STRING -> STRING", about="As text, by a pattern."),
    scalar(
        "FORMAT_TIMESTAMP",
        e.format_timestamp,
        "TIMESTAMP, STRING[, STRING] -> STRING",
        about="As text, by a pattern, in a zone.",
    ),
    scalar("PARSE_DATE", e.parse_date, "STRING, STRING -> DATE", about="By a pattern; 30 February is 2 March."),
    scalar("PARSE_TIME", e.parse_time, "STRING, STRING -> TIME", about="By a pattern; parts that are missing are 0."),
    scalar(
        "PARSE_TIMESTAMP",
        e.parse_timestamp,
        "STRING, STRING[, STRING] -> TIMESTAMP",
        about="By a pattern, in a zone unless the text says one.",
    ),
    scalar("FROM_DAYS", e.from_days, "INT -> DATE", about="So many days after 1970-01-01."),
    scalar("FROM_UNIXTIME", e.from_unixtime, "BIGINT -> TIMESTAMP", about="So many milliseconds after 1970."),
    scalar("UNIX_DATE", _unix_date, " -> INT", "DATE -> INT", about="Days since 1970-01-01, of today or a date."),
    scalar(
        "UNIX_TIMESTAMP",
        _unix_timestamp,
        " -> BIGINT",
        "TIMESTAMP -> BIGINT",
        about="Milliseconds since 1970, of now or a timestamp.",
    ),
    scalar("DATETOSTRING", _date_to_string, "INT, STRING -> STRING", about="Days since 1970 as text, by a pattern."),
    scalar("STRINGTODATE", _string_to_date, "STRING, STRING -> INT", about="A text as days since 1970, by a pattern."),
    scalar(
        "TIMESTAMPTOSTRING",
        _timestamp_to_string,
        "BIGINT, STRING[, STRING] -> STRING",
        about="Milliseconds since 1970 as text, by a pattern, in a zone.",
    ),
    scalar(
        "STRINGTOTIMESTAMP",
        _string_to_timestamp,
        "STRING, STRING[, STRING] -> BIGINT",
        about="A text as milliseconds since 1970, by a pattern, in a zone.",
    ),
)
