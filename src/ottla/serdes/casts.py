"""From a value of one type to a value of another, on plain Python values. Spark's twins are in `run.type_columns`.

What cannot be converted becomes None: a text that is no number, a number that does not fit. Lists, maps and structs are
converted part by part; a struct's fields by name, missing ones are None.
"""

from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final, TypeAlias

from ottla.serdes import dates, decimals
from ottla.serdes import values as v
from ottla.serdes.types import Type

Cast: TypeAlias = Callable[[Any], Any]
"""Is never given None."""


def caster(source: Type, wanted: Type) -> Cast | None:
    """None: there is no way from the one to the other."""
    if source == wanted:
        return _identity
    if source.name == wanted.name == "struct":
        return _struct_caster(source, wanted)
    if source.name == wanted.name and source.name in {"array", "map"} and source.element and wanted.element:
        part = _nullable(caster(source.element, wanted.element))
        if part is None:
            return None
        return _list_caster(part) if source.name == "array" else _map_caster(part)
    if wanted.name == "decimal":
        to_decimal = _TO_DECIMAL.get(source.name)
        return None if to_decimal is None else lambda given: to_decimal(given, wanted)
    return _CASTS.get((source.name, wanted.name))


def _nullable(cast: Cast | None) -> Cast | None:
    return None if cast is None else lambda given: None if given is None else cast(given)


def _list_caster(part: Cast) -> Cast:
    return lambda given: [part(each) for each in given]


def _map_caster(part: Cast) -> Cast:
    return lambda given: {key: part(each) for key, each in given.items()}


def _struct_caster(source: Type, wanted: Type) -> Cast | None:
    parts: list[tuple[str, Cast]] = []
    for name, kind in wanted.fields:
        held = source.field(name)
        part = (lambda _: None) if held is None else _nullable(caster(held, kind))
        if part is None:
            return None
        parts.append((name, part))
    return lambda given: {name: part(given.get(name)) for name, part in parts}


def _identity(given: Any) -> Any:
    return given


def _whole(given: Decimal, low: int, high: int) -> int | None:
    """Towards zero."""
    number = int(given.to_integral_value(ROUND_DOWN))
    return number if low <= number <= high else None


_TO_DECIMAL: Final[dict[str, Callable[[Any, Type], Decimal | None]]] = {
    "int": lambda given, kind: decimals.fit(Decimal(given), kind),
    "long": lambda given, kind: decimals.fit(Decimal(given), kind),
    "decimal": decimals.fit,
    "double": decimals.from_double,
    "string": decimals.from_text,
    "any": lambda given, kind: _text_to_decimal(v.json_to_string(given), kind),
}


def _text_to_decimal(text: str | None, kind: Type) -> Decimal | None:
    return None if text is None else decimals.from_text(text, kind)


_CASTS: Final[dict[tuple[str, str], Cast]] = {
    ("int", "long"): _identity,
    ("int", "double"): float,
    ("int", "string"): str,
    ("int", "boolean"): bool,
    ("int", "date"): dates.date_of,
    ("int", "time"): dates.time_of,
    ("long", "int"): v.fit_int,
    ("long", "double"): float,
    ("long", "string"): str,
    ("long", "boolean"): bool,
    ("long", "timestamp"): dates.timestamp_of,
    ("double", "int"): lambda given: v.double_to_integer(given, v.INT_MIN, v.INT_MAX),
    ("double", "long"): lambda given: v.double_to_integer(given, v.LONG_MIN, v.LONG_MAX),
    ("double", "string"): v.double_text,
    ("double", "boolean"): bool,
    ("decimal", "int"): lambda given: _whole(given, v.INT_MIN, v.INT_MAX),
    ("decimal", "long"): lambda given: _whole(given, v.LONG_MIN, v.LONG_MAX),
    ("decimal", "double"): float,
    ("decimal", "string"): decimals.plain,
    ("decimal", "boolean"): bool,
    ("boolean", "int"): int,
    ("boolean", "long"): int,
    ("boolean", "double"): float,
    ("boolean", "string"): lambda given: "true" if given else "false",
    ("string", "int"): lambda given: v.string_to_integer(given, v.INT_MIN, v.INT_MAX),
    ("string", "long"): lambda given: v.string_to_integer(given, v.LONG_MIN, v.LONG_MAX),
    ("string", "double"): v.string_to_double,
    ("string", "boolean"): v.string_to_boolean,
    ("string", "binary"): lambda given: given.encode(),
    ("string", "date"): dates.parse_date,
    ("string", "time"): dates.parse_time,
    ("string", "timestamp"): dates.parse_timestamp,
    ("binary", "string"): v.binary_to_string,
    ("date", "int"): dates.days_of,
    ("date", "string"): dates.date_text,
    ("date", "timestamp"): dates.midnight,
    ("time", "int"): dates.ms_of_day,
    ("time", "string"): dates.time_text,
    ("timestamp", "long"): dates.ms_of,
    ("timestamp", "string"): dates.timestamp_text,
    ("timestamp", "date"): lambda given: given.date(),
    ("timestamp", "time"): lambda given: given.time(),
    ("any", "int"): lambda given: v.json_to_integer(given, v.INT_MIN, v.INT_MAX),
    ("any", "long"): lambda given: v.json_to_integer(given, v.LONG_MIN, v.LONG_MAX),
    ("any", "double"): v.json_to_double,
    ("any", "boolean"): v.json_to_boolean,
    ("any", "string"): v.json_to_string,
    ("any", "date"): lambda given: dates.read_date(v.json_to_string(given)),
    ("any", "time"): lambda given: dates.read_time(v.json_to_string(given)),
    ("any", "timestamp"): lambda given: dates.read_timestamp(v.json_to_string(given)),
}
