"""Types as Spark columns: their names, constants, casts. Each cast gives what its twin in `serdes.casts` gives.

Null where Spark in ANSI mode would end the query. Timestamps are `timestamp_ntz` and stand for UTC: the session's zone
is UTC, so that a way over Spark's `timestamp` changes nothing. A time is a number of milliseconds, since Spark's own
type is not known to its JSON functions and state.
"""

from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.pipelines.type_names import named
from ottla.serdes import dates, decimals
from ottla.serdes.types import BOOLEAN, DOUBLE, INT, STRING, Type

_SIMPLE_TYPES: Final = {
    "string": "string",
    "binary": "binary",
    "int": "int",
    "long": "bigint",
    "double": "double",
    "boolean": "boolean",
    "date": "date",
    "time": "int",
    "timestamp": "timestamp_ntz",
    "any": "variant",
    "null": "string",
}
PLAIN_SCALE: Final = 6
"""Up to here Java writes a decimal without an exponent, however small it is."""
_DATE_LENGTH: Final = 10


def spark_type(kind: Type) -> str:
    """As DDL, for casts and schemas."""
    match kind:
        case Type(name="array", element=Type() as element):
            return f"array<{spark_type(element)}>"
        case Type(name="map", element=Type() as element):
            return f"map<string, {spark_type(element)}>"
        case Type(name="windowed", element=Type() as element):
            return f"struct<key: {spark_type(element)}, start: bigint, end: bigint>"
        case Type(name="struct"):
            return "struct<" + ", ".join(f"{_quoted(name)}: {spark_type(part)}" for name, part in kind.fields) + ">"
        case Type(name="decimal"):
            return f"decimal({kind.precision}, {kind.scale})"
    return _SIMPLE_TYPES[kind.name]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def null_of(kind: Type) -> Column:
    return F.lit(None).cast(named(spark_type(kind)))


def literal(constant: Any, kind: Type) -> Column:
    if constant is None:
        return null_of(kind)
    if kind in (BOOLEAN, DOUBLE, INT, STRING):
        return F.lit(constant)
    match kind.name:
        case "decimal":
            return F.lit(str(constant)).cast(spark_type(kind))
        case "date":
            return F.date_from_unix_date(F.lit(dates.days_of(constant)))
        case "time":
            return F.lit(dates.ms_of_day(constant))
        case "timestamp":
            return timestamp_of(F.lit(dates.ms_of(constant)))
    return F.lit(constant).cast(named(spark_type(kind)))


# ---- dates and times


def timestamp_of(ms: Column) -> Column:
    within = ms.between(F.lit(dates.FIRST_MS), F.lit(dates.LAST_MS))
    return F.when(within, F.timestamp_millis(ms.cast("bigint"))).cast("timestamp_ntz")


def ms_of(timestamp: Column) -> Column:
    return F.unix_millis(timestamp.cast("timestamp"))


def date_of(days: Column) -> Column:
    within = days.between(F.lit(dates.FIRST_DAY), F.lit(dates.LAST_DAY))
    return F.when(within, F.date_from_unix_date(days.cast("int")))


def time_of(ms: Column) -> Column:
    return F.when(ms.between(F.lit(0), F.lit(dates.DAY_MS - 1)), ms.cast("int"))


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})\\z"


def _parse_date(text: Column) -> Column:
    found = F.when(text.rlike(_whole(dates.DATE_TEXT)), text).try_cast("date")
    return date_of(F.unix_date(found))


def _parse_time(text: Column) -> Column:
    hour, minute, second = (_number(text, place) for place in (1, 2, 3))
    fraction = F.rpad(F.substring(F.regexp_extract(text, _whole(dates.TIME_TEXT), 4), 1, 3), 3, "0").cast("int")
    within = (hour < 24) & (minute < 60) & (second < 60)
    return F.when(text.rlike(_whole(dates.TIME_TEXT)) & within, ((hour * 60 + minute) * 60 + second) * 1000 + fraction)


def _number(text: Column, place: int) -> Column:
    """A part of a time; one that is not there is 0."""
    return F.coalesce(F.regexp_extract(text, _whole(dates.TIME_TEXT), place).try_cast("int"), F.lit(0))


def _parse_timestamp(text: Column) -> Column:
    """Spark reads the same, if it is given all of it: seconds, and the zone."""
    checked = F.when(text.rlike(_whole(dates.TIMESTAMP_TEXT)), text)
    timed = F.when(F.length(checked) == _DATE_LENGTH, F.concat(checked, F.lit("T00:00"))).otherwise(checked)
    full = F.regexp_replace(timed, r"^(.{10}[T ][0-9]{2}:[0-9]{2})(Z|[+-].*)?\z", "$1:00$2")
    zoned = F.when(full.rlike(rf"{dates.ZONE_TEXT}\z"), full).otherwise(F.concat(full, F.lit("Z")))
    return timestamp_of(F.unix_millis(zoned.try_cast("timestamp")))


def _time_text(ms: Column) -> Column:
    seconds = F.floor(ms / 1000)
    parts = [F.floor(seconds / 3600), F.floor(seconds / 60) % 60, seconds % 60, ms % 1000]
    figures = [F.lpad(part.cast("string"), width, "0") for part, width in zip(parts, (2, 2, 2, 3), strict=True)]
    return F.concat(figures[0], F.lit(":"), figures[1], F.lit(":"), figures[2], F.lit("."), figures[3])


def _timestamp_text(timestamp: Column) -> Column:
    ms = ms_of(timestamp)
    day = F.unix_date(timestamp.cast("date"))
    rest = ms - day.cast("bigint") * F.lit(dates.DAY_MS)
    return F.concat(F.date_from_unix_date(day).cast("string"), F.lit("T"), _time_text(rest))


# ---- decimals


def decimal_text(column: Column, kind: Type) -> Column:
    """All digits, no exponent."""
    text = column.cast("string")
    if kind.scale <= PLAIN_SCALE:
        return text
    sign = F.regexp_extract(text, "^-", 0)
    figures = F.replace(F.regexp_extract(text, "^-?([0-9.]+)E", 1), F.lit("."), F.lit(""))
    zeros = F.repeat(F.lit("0"), F.regexp_extract(text, "E-([0-9]+)$", 1).try_cast("int") - 1)
    return F.when(text.contains("E"), F.concat(sign, F.lit("0."), zeros, figures)).otherwise(text)


def _parse_decimal(text: Column, kind: Type) -> Column:
    spaced = rf"^[\x00-\x20]*{decimals.TEXT}[\x00-\x20]*\z"
    return F.when(text.rlike(spaced), text).try_cast(spark_type(kind))


def is_exact(text: Column, kind: Type) -> Column:
    """Whether the text of a decimal has no digit that the type would round away."""
    exponent = F.coalesce(F.regexp_extract(text, r"[eE]([+-]?[0-9]+)[\x00-\x20]*\z", 1).try_cast("int"), F.lit(0))
    fraction = F.regexp_extract(text, r"\.([0-9]*?)0*(?:[eE]|[\x00-\x20]*\z)", 1)
    zeros = F.length(F.regexp_extract(text, r"^[^1-9]*[0-9]*?(0*)(?:\.0*)?(?:[eE]|[\x00-\x20]*\z)", 1))
    needed = F.when(F.length(fraction) > 0, F.length(fraction)).otherwise(-zeros) - exponent
    nothing = ~text.rlike(r"^[^eE]*[1-9]")
    return nothing | (needed <= kind.scale)


# ---- casts


def cast_column(column: Column, source: Type, wanted: Type) -> Column:
    if source == wanted:
        return column
    if source.name == wanted.name and source.name in {"array", "map", "struct"}:
        return _part_by_part(column, source, wanted)
    if source.name == "null":
        return null_of(wanted)
    if source.name == "string" and wanted.name == "decimal":
        return _parse_decimal(column, wanted)
    if source.name == "decimal" and wanted.name == "string":
        return decimal_text(column, source)
    own = _CASTS.get((source.name, wanted.name))
    return column.try_cast(spark_type(wanted)) if own is None else own(column)


def _part_by_part(column: Column, source: Type, wanted: Type) -> Column:
    if source.name == "struct":
        parts = []
        for name, kind in wanted.fields:
            held = source.field(name)
            part = null_of(kind) if held is None else cast_column(column[name], held, kind)
            parts.append(part.alias(name))
        return F.when(column.isNotNull(), F.struct(*parts))
    before, after = source.element, wanted.element
    assert before is not None and after is not None
    if source.name == "array":
        return F.transform(column, lambda each: cast_column(each, before, after))
    return F.transform_values(column, lambda _, each: cast_column(each, before, after))


_CASTS: Final[dict[tuple[str, str], Callable[[Column], Column]]] = {
    # A string made of bytes that are no UTF-8 would be carried on as it is.
    ("binary", "string"): lambda column: F.try_validate_utf8(column.try_cast("string")),
    ("int", "date"): date_of,
    ("int", "time"): time_of,
    ("long", "timestamp"): timestamp_of,
    ("date", "int"): F.unix_date,
    ("date", "timestamp"): lambda column: column.cast("timestamp_ntz"),
    ("time", "int"): lambda column: column,
    ("time", "string"): _time_text,
    ("timestamp", "long"): ms_of,
    ("timestamp", "string"): _timestamp_text,
    ("timestamp", "date"): lambda column: column.cast("date"),
    ("timestamp", "time"): lambda column: F.pmod(ms_of(column), F.lit(dates.DAY_MS)).cast("int"),
    ("string", "date"): _parse_date,
    ("string", "time"): _parse_time,
    ("string", "timestamp"): _parse_timestamp,
}


# ---- from JSON: a number, or a text that is a number or ISO's


def read_text(text: Column, kind: Type) -> Column:
    """A JSON value, as text, as a value of a type that JSON has not: null if it is none."""
    if kind.name == "decimal":
        return F.when(is_exact(text, kind), _parse_decimal(text, kind))
    number = F.when(text.rlike(_whole(dates.NUMBER_TEXT)), text).try_cast("bigint")
    from_number, from_text = _READ[kind.name]
    return F.coalesce(from_number(number), from_text(text))


_READ: Final[dict[str, tuple[Callable[[Column], Column], Callable[[Column], Column]]]] = {
    "date": (date_of, _parse_date),
    "time": (time_of, _parse_time),
    "timestamp": (timestamp_of, _parse_timestamp),
}

READ_AS_TEXT: Final = ("decimal", *_READ)
"""Types that a JSON document has not: Spark would round, or read by rules of its own."""
