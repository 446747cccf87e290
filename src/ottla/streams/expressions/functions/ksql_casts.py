"""ksqlDB's conversions of text and its equality, where they are others than those of expressions.

A date may be cut short at its end (`2026`, `2026-11`, `2026-11-18T05`), a time loses its milliseconds as text, lists,
maps and structs have the text that Java gives them, and they are equal if all that is in them is.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from ottla.serdes import dates, decimals
from ottla.serdes import values as v
from ottla.serdes.types import BOOLEAN, DATE, STRING, TIME, TIMESTAMP, array_of
from ottla.streams.expressions.bound import Bound, Refused
from ottla.streams.expressions.functions.declare import anything, family, some_list, takes, text, unified

__all__ = ["ksql_cube", "ksql_equal", "ksql_nullif", "ksql_text", "ksql_to_date", "ksql_to_time", "ksql_to_timestamp"]
declare: Final = family("ksql_casts")


# ---- to text


def as_java(given: Any) -> str:
    """What `toString` gives in Java."""
    match given:
        case None:
            return "null"
        case bool():
            return "true" if given else "false"
        case float():
            return v.double_text(given)
        case Decimal():
            return decimals.plain(given)
        case datetime():
            return dates.timestamp_text(given)
        case date():
            return dates.date_text(given)
        case time():
            return _time_text(given)
    return str(given)


def _time_text(given: time) -> str:
    return given.strftime("%H:%M:%S" if given.second else "%H:%M")


def _container_text(given: Any, kind: Any) -> str:
    if given is None:
        return "null"
    match kind.name:
        case "array":
            return "[" + ", ".join(_container_text(each, kind.element) for each in given) + "]"
        case "map":
            return "{" + ", ".join(f"{key}={_container_text(given[key], kind.element)}" for key in sorted(given)) + "}"
        case "struct":
            parts = [(name, given.get(name), part) for name, part in kind.fields]
            return (
                "Struct{"
                + ",".join(f"{name}={_container_text(each, part)}" for name, each, part in parts if each is not None)
                + "}"
            )
    return as_java(given)


def _text_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, STRING, (anything(args[0]),), options)


def _build_text(node: Bound, args: list[Any]) -> Any:
    kind, subject = node.args[0].type, args[0]

    def evaluate(inputs: Any) -> Any:
        given = subject(inputs)
        return None if given is None else _container_text(given, kind)

    return evaluate


ksql_text: Final = declare(
    "ksql_text",
    "subject",
    _text_rule,
    build=_build_text,
    about="CAST to STRING as Java writes it: `[1, null]`, `{a=1}`, `Struct{A=1}`, a time without milliseconds.",
)


# ---- from text

_PARTIAL: Final = re.compile(
    r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?"
    r"(?:T(\d{1,2})?(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
)
_TIME: Final = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")


def _ms(fraction: str | None) -> int:
    return int((fraction or "")[:3].ljust(3, "0")) * 1000


def to_timestamp(given: str) -> datetime:
    """Raises ValueError."""
    found = _PARTIAL.fullmatch(given.strip())
    if found is None:
        raise ValueError(f"{given!r} is no timestamp such as 2026-11-18T05:10:00.000")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    local = datetime(
        int(year),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        _ms(fraction),
        UTC,
    )
    return local - _offset(zone)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[0] == "-" else size


def to_date(given: str) -> date:
    found = _PARTIAL.fullmatch(given.strip())
    if found is None or any(found.groups()[3:]):
        raise ValueError(f"{given!r} is no date such as 2026-11-18")
    year, month, day = found.groups()[:3]
    return date(int(year), int(month or 1), int(day or 1))


def to_time(given: str) -> time:
    found = _TIME.fullmatch(given.strip())
    if found is None:
        raise ValueError(f"{given!r} is no time such as 05:10:00.000")
    hour, minute, second, fraction = found.groups()
    return time(int(hour), int(minute), int(second or 0), _ms(fraction))


ksql_to_timestamp: Final = declare(
    "ksql_to_timestamp",
    "text",
    takes(text, gives=TIMESTAMP),
    to_timestamp,
    fails=True,
    about="CAST of a text to TIMESTAMP; what is missing at its end is that of the first moment of the year.",
)
ksql_to_date: Final = declare(
    "ksql_to_date",
    "text",
    takes(text, gives=DATE),
    to_date,
    fails=True,
    about="CAST of a text to DATE; what is missing at its end is 01.",
)
ksql_to_time: Final = declare(
    "ksql_to_time",
    "text",
    takes(text, gives=TIME),
    to_time,
    fails=True,
    about="CAST of a text to TIME.",
)


# ---- equality


def _equal_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = unified(args)
    if nodes[0].type.has("any", "windowed"):
        raise Refused(f"{nodes[0].type} cannot be compared; cast it")
    return Bound(name, BOOLEAN, tuple(nodes), options)


def equal(left: Any, right: Any) -> bool:
    """By value; NaN equals itself, null equals null within lists, maps and structs."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)
    if isinstance(left, float) and isinstance(right, float):
        return v.equal_doubles(left, right)
    return bool(left == right)


ksql_equal: Final = declare(
    "ksql_equal",
    "left, right",
    _equal_rule,
    equal,
    column=lambda F, left, right: F.when(left.isNotNull() & right.isNotNull(), left.eqNullSafe(right)),
    no_column=lambda node: "Spark compares no maps" if node.args[0].type.has("map") else None,
    about="Whether two values are equal, lists, maps and structs too.",
)


def _nullif_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = _equal_rule(name, args, options).args
    return Bound(name, nodes[0].type, nodes, options)


ksql_nullif: Final = declare(
    "ksql_nullif",
    "subject, unwanted",
    _nullif_rule,
    lambda given, unwanted: None if equal(given, unwanted) else given,
    column=lambda F, given, unwanted: F.when(given.eqNullSafe(unwanted), None).otherwise(given),
    no_column=lambda node: "Spark compares no maps" if node.type.has("map") else None,
    nulls="the subject",
    about="The subject, or null if the two are equal, lists, maps and structs too.",
)


# ---- cubes

MOST_CUBED: Final = 16
"""Items of an array of which all subsets are made: 65,536 of them."""


def _cube_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, array_of(some_list(args[0]).type), (some_list(args[0]),), options)


def _cube(items: list[Any]) -> list[list[Any]]:
    """All ways to keep an item or have null in its place, in the order of binary numbers; null stays as it is."""
    if len(items) > MOST_CUBED:
        raise ValueError(f"an array of {len(items)} items has too many subsets")
    if not items:
        return []
    made: list[list[Any]] = [[]]
    for item in items:
        made = [[*each, choice] for each in made for choice in ([None] if item is None else [None, item])]
    return made


ksql_cube: Final = declare(
    "ksql_cube",
    "items",
    _cube_rule,
    _cube,
    fails=True,
    about=f"All ways to have some items replaced by null; of at most {MOST_CUBED} items. ksqlDB's CUBE_EXPLODE.",
)
