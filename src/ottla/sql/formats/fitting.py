"""Values that a schema of others gave, as the columns want them, and the other way round.

Fields are found by their exact name, else by any that is the same in capital letters; what is missing is null. Numbers
become wider, a list of entries becomes a map, Protobuf's messages for decimals, dates and times become these.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from ottla.serdes import dates, decimals
from ottla.serdes.types import Type
from ottla.sql.types import sql_text

Fit = Callable[[Any], Any]


class Unfit(ValueError):
    """A value that cannot stand in its column."""


@lru_cache(1024)
def fitted(kind: Type) -> Fit:
    """To a value of the type, of one that is alike. Raises Unfit."""
    fit = _fit(kind)
    return lambda given: None if given is None else fit(given)


def _fit(kind: Type) -> Fit:
    match kind.name:
        case "struct":
            return _struct(kind)
        case "array":
            assert kind.element is not None
            return _array(fitted(kind.element))
        case "map":
            assert kind.element is not None
            return _map(fitted(kind.element))
        case "any":
            return lambda given: given
    return lambda given: _scalar(given, kind)


def _struct(kind: Type) -> Fit:
    parts = [(name, name.upper(), fitted(part)) for name, part in kind.fields]

    def fit(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise Unfit(f"{sql_text(kind)} expected, not {type(given).__name__}")
        capital = {name.upper(): each for name, each in given.items()}
        made = {}
        for name, upper, part in parts:
            try:
                made[name] = part(given[name] if name in given else capital.get(upper))
            except Unfit as error:
                raise Unfit(f"{name}: {error}") from None
        return made

    return fit


def _array(part: Fit) -> Fit:
    def fit(given: Any) -> Any:
        if not isinstance(given, list):
            raise Unfit(f"an ARRAY expected, not {type(given).__name__}")
        return [part(each) for each in given]

    return fit


def _map(part: Fit) -> Fit:
    def fit(given: Any) -> Any:
        if isinstance(given, list):
            given = {each["key"]: each["value"] for each in given}
        if not isinstance(given, Mapping):
            raise Unfit(f"a MAP expected, not {type(given).__name__}")
        return {str(name): part(each) for name, each in given.items()}

    return fit


def _scalar(given: Any, kind: Type) -> Any:
    if isinstance(given, Mapping):
        given = _message(given, kind)
    if isinstance(given, bool) != (kind.name == "boolean") and kind.name != "string":
        raise Unfit(f"{sql_text(kind)} expected, not {given!r}")
    made = _SCALARS[kind.name](given, kind)
    if made is None:
        raise Unfit(f"{sql_text(kind)} expected, not {given!r}")
    return made


def _integer(bits: int) -> Callable[[Any, Type], Any]:
    high = 1 << (bits - 1)
    return lambda given, _: (
        int(given) if isinstance(given, (int, Decimal)) and given == int(given) and -high <= given < high else None
    )


def _decimal(given: Any, kind: Type) -> Any:
    return decimals.fit_exactly(Decimal(given), kind) if isinstance(given, (int, Decimal)) else None


def _text(given: Any, _: Type) -> Any:
    if isinstance(given, bool):
        return "true" if given else "false"
    return given if isinstance(given, str) else str(given) if isinstance(given, (int, float, Decimal)) else None


def _date(given: Any, _: Type) -> Any:
    if isinstance(given, datetime):
        return given.date()
    return given if isinstance(given, date) else dates.date_of(given) if isinstance(given, int) else None


def _time(given: Any, _: Type) -> Any:
    return given if isinstance(given, time) else dates.time_of(given) if isinstance(given, int) else None


def _timestamp(given: Any, _: Type) -> Any:
    return given if isinstance(given, datetime) else dates.timestamp_of(given) if isinstance(given, int) else None


_SCALARS: Final[dict[str, Callable[[Any, Type], Any]]] = {
    "boolean": lambda given, _: given if isinstance(given, bool) else None,
    "int": _integer(32),
    "long": _integer(64),
    "double": lambda given, _: float(given) if isinstance(given, (int, float, Decimal)) else None,
    "decimal": _decimal,
    "string": _text,
    "binary": lambda given, _: given if isinstance(given, bytes) else None,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
}


# ---- Protobuf's messages


def _message(given: Mapping[str, Any], kind: Type) -> Any:
    """What a message stands for: confluent.type.Decimal, google.type.Date, google.type.TimeOfDay."""
    match kind.name:
        case "decimal":
            number = int.from_bytes(given.get("value") or b"", "big", signed=True)
            return Decimal(number).scaleb(-int(given.get("scale") or 0))
        case "date":
            return date(given["year"] or 1, given["month"] or 1, given["day"] or 1)
        case "time":
            ms = (given.get("nanos") or 0) // 1000
            return time(given["hours"] or 0, given["minutes"] or 0, given["seconds"] or 0, ms)
    raise Unfit(f"{sql_text(kind)} expected, not a message")


@lru_cache(1024)
def as_message(kind: Type) -> Fit:
    """The other way round: what a message of Protobuf is filled with."""
    match kind.name:
        case "struct":
            parts = [(name, as_message(part)) for name, part in kind.fields]
            return lambda given: None if given is None else {name: part(given.get(name)) for name, part in parts}
        case "array" | "map":
            assert kind.element is not None
            return _all(as_message(kind.element), kind.name == "map")
        case "decimal":
            return lambda given: None if given is None else _decimal_message(given, kind)
        case "date":
            return lambda given: None if given is None else {"year": given.year, "month": given.month, "day": given.day}
        case "time":
            return lambda given: None if given is None else _time_message(given)
    return lambda given: given


def _all(part: Fit, of_map: bool) -> Fit:
    def fill(given: Any) -> Any:
        if given is None:
            return None
        # A repeated field has no nulls.
        if of_map:
            return {name: made for name, each in given.items() if (made := part(each)) is not None}
        return [made for each in given if (made := part(each)) is not None]

    return fill


def _decimal_message(given: Decimal, kind: Type) -> dict[str, Any]:
    number = int(given.scaleb(kind.scale))
    size = number.bit_length() // 8 + 1
    return {"value": number.to_bytes(size, "big", signed=True), "precision": kind.precision, "scale": kind.scale}


def _time_message(given: time) -> dict[str, int]:
    return {
        "hours": given.hour,
        "minutes": given.minute,
        "seconds": given.second,
        "nanos": given.microsecond * 1000,
    }
