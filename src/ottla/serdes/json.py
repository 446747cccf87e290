"""JSON, in the one form that Spark writes too: equal values have equal bytes."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple, NoReturn

from ottla.serdes import dates, decimals
from ottla.serdes import values as v
from ottla.serdes.base import Serde, SerdeError, shown, shown_value
from ottla.serdes.types import ANY, MAX_PRECISION, Type, parse_schema, parse_type_or_schema


class JsonSerde(Serde[Any]):
    """JSON of any shape; called with a schema it gives a serde for objects of that shape, with a type for such values.

    Written without blanks; the fields of a schema in its order and with their nulls, those of other objects sorted by
    name, so that equal keys have equal bytes.
    """

    name = "json"

    def __init__(self, schema: "str | Mapping[str, object] | Type | None" = None) -> None:
        if schema is None:
            self.type = ANY
        elif isinstance(schema, Type):
            self.type = schema
        elif isinstance(schema, str):
            self.type = parse_type_or_schema(schema)
        else:
            self.type = parse_schema(schema)

    def __call__(self, schema: "str | Mapping[str, object] | Type | None" = None) -> "JsonSerde":
        return JsonSerde(schema)

    def __repr__(self) -> str:
        return "Serdes.json" if self.type == ANY else f"Serdes.json({str(self.type)!r})"

    def encode(self, value: Any) -> bytes:
        try:
            return json_writer(self.type)(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: {error}; the value is {shown_value(value)}") from error

    def decode(self, data: bytes) -> Any:
        reading = _readings.get(self.type) or _new_reading(self.type)
        try:
            found = reading.decoder.decode(str(data, "utf-8"))
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: JSON expected, found {shown(data)}: {error}") from error
        if found is None:
            return None
        try:
            return reading.read(found)
        except _Mismatch as mismatch:
            raise SerdeError(f"{self!r}: {mismatch}, found {shown(data)}") from None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Spark refuses a document that has a field twice, and so do we: no reader knows which one was meant."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is there twice")
    return fields


def _exact(text: str) -> Decimal:
    """A fraction by its digits, as Spark reads it: beyond 38 digits, or with an exponent, it is a double to it."""
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    if "e" in text or "E" in text or len(digits) > MAX_PRECISION or -int(exponent) > MAX_PRECISION:
        return Decimal(repr(float(text)))
    return number


class _Repeated(dict[str, Any]):
    """An object that has a key twice. As a map it has no meaning; of a struct's fields the last one counts."""


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else _Repeated(pairs)


class _Reading(NamedTuple):
    decoder: json.JSONDecoder
    read: Callable[[Any], Any]


_readings: dict[Type, _Reading] = {}


def _new_reading(kind: Type) -> _Reading:
    """How documents of a type are parsed, and what is made of them. Where doubles are declared Spark takes NaN and
    Infinity for them, in quotes or without."""
    if kind == ANY:
        decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unambiguous)
    else:
        decoder = json.JSONDecoder(
            parse_float=_exact if kind.has("decimal") else None, object_pairs_hook=_marked if kind.has("map") else None
        )
    reading = _readings[kind] = _Reading(decoder, json_reader(kind, exact=kind.has("decimal")))
    return reading


class _Mismatch(ValueError):
    """A piece of JSON that is not of the declared type; `path` grows on the way out."""

    def __init__(self, expected: str) -> None:
        self.expected = expected
        self.path = ""

    def __str__(self) -> str:
        return f"{self.expected} expected" + (f" at {self.path.removeprefix('.')}" if self.path else "")


def json_reader(kind: Type, exact: bool = False) -> Callable[[Any], Any]:
    """What Spark's from_json makes of parsed JSON: strict, but for a string, which takes everything as text. Exact:
    fractions were parsed as decimals."""
    reader = _readers.get((kind, exact))
    if reader is None:
        reader = _readers[kind, exact] = _new_reader(kind, exact)
    return reader


_readers: dict[tuple[Type, bool], Callable[[Any], Any]] = {}


def _new_reader(kind: Type, exact: bool) -> Callable[[Any], Any]:
    match kind.name:
        case "struct":
            return _struct_reader(kind, exact)
        case "array" if kind.element is not None:
            return _array_reader(json_reader(kind.element, exact))
        case "map" if kind.element is not None:
            return _map_reader(json_reader(kind.element, exact))
        case "any":
            return _without_decimals if exact else lambda found: found
        case "string":
            return (lambda found: v.json_to_string(_without_decimals(found))) if exact else v.json_to_string
        case "double":
            return _read_double
        case "decimal":
            return _decimal_reader(kind)
        case "date" | "time" | "timestamp":
            return _moment_reader(kind.name)
        case "binary":
            return _read_base64
        case "boolean":
            return _read_boolean
        case "int":
            return _integer_reader("int", v.INT_MIN, v.INT_MAX)
        case "long":
            return _integer_reader("long", v.LONG_MIN, v.LONG_MAX)
    raise TypeError(f"{kind} is nothing for JSON")


def _struct_reader(kind: Type, exact: bool) -> Callable[[Any], Any]:
    fields = [(name, json_reader(part, exact)) for name, part in kind.fields]

    def read(found: Any) -> Any:
        if found is None:
            return None
        if not isinstance(found, dict):
            raise _Mismatch("struct")
        result = {}
        for name, read_field in fields:
            try:
                result[name] = read_field(found.get(name))
            except _Mismatch as mismatch:
                mismatch.path = f".{name}{mismatch.path}"
                raise
        return result

    return read


def _array_reader(read_item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if found is None:
            return None
        if not isinstance(found, list):
            raise _Mismatch("array")
        result = []
        for item in found:
            try:
                result.append(read_item(item))
            except _Mismatch as mismatch:
                mismatch.path = f"[{len(result)}]{mismatch.path}"
                raise
        return result

    return read


def _map_reader(read_value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if found is None:
            return None
        if not isinstance(found, dict) or isinstance(found, _Repeated):
            raise _Mismatch("map")
        result = {}
        for key, value in found.items():
            try:
                result[key] = read_value(value)
            except _Mismatch as mismatch:
                mismatch.path = f".{key}{mismatch.path}"
                raise
        return result

    return read


def _decimal_reader(kind: Type) -> Callable[[Any], Any]:
    """A number, or a text of one, that fits as it is: what would have to be rounded is not what the schema says."""

    def read(found: Any) -> Any:
        if found is None:
            return None
        number = decimals.parsed(found) if isinstance(found, str) else found
        if type(number) is int:
            number = Decimal(number)
        fitting = None
        if isinstance(number, Decimal) and number.is_finite():
            fitting = decimals.fit_exactly(number, kind)
        if fitting is None:
            raise _Mismatch(str(kind))
        return fitting

    return read


def _moment_reader(name: str) -> Callable[[Any], Any]:
    parse: Callable[[Any], Any] = {
        "date": dates.read_date,
        "time": dates.read_time,
        "timestamp": dates.read_timestamp,
    }[name]

    def read(found: Any) -> Any:
        moment = None if found is None else parse(found)
        if moment is None and found is not None:
            raise _Mismatch(name)
        return moment

    return read


def _without_decimals(found: Any) -> Any:
    """What was read as decimals because the schema has one somewhere, where it says nothing of them."""
    match found:
        case Decimal():
            return float(found)
        case dict():
            return {name: _without_decimals(part) for name, part in found.items()}
        case list():
            return [_without_decimals(part) for part in found]
    return found


def _integer_reader(name: str, low: int, high: int) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if found is None or (type(found) is int and low <= found <= high):
            return found
        raise _Mismatch(name)

    return read


def _read_boolean(found: Any) -> Any:
    if found is None or isinstance(found, bool):
        return found
    raise _Mismatch("boolean")


_NOT_NUMBERS: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "+INF": math.inf,
    "-Infinity": -math.inf,
    "-INF": -math.inf,
}


def _read_double(found: Any) -> Any:
    if found is None or type(found) is float:
        return found
    if type(found) is int:
        return v.big_to_double(found)
    if isinstance(found, Decimal):
        return float(found)
    if isinstance(found, str) and found in _NOT_NUMBERS:
        return _NOT_NUMBERS[found]
    raise _Mismatch("double")


def _read_base64(found: Any) -> Any:
    if found is None:
        return None
    try:
        return base64.b64decode(found, validate=True)
    except (TypeError, ValueError):
        raise _Mismatch("base64") from None


# ---- writing JSON


def json_writer(kind: Type) -> Callable[[Any], str]:
    """A function that writes values of the type; fields in the order of the type."""
    writer = _writers.get(kind)
    if writer is None:
        writer = _writers[kind] = _new_writer(kind)
    return writer


_writers: dict[Type, Callable[[Any], str]] = {}


def _new_writer(kind: Type) -> Callable[[Any], str]:
    match kind.name:
        case "struct":
            return _struct_writer(kind)
        case "array" if kind.element is not None:
            write = json_writer(kind.element)
            return _nullable(lambda value: "[" + ",".join(map(write, value)) + "]", (list, tuple), "a list")
        case "map" if kind.element is not None:
            return _map_writer(json_writer(kind.element))
        case "any":
            return v.json_text
        case "decimal":
            return _nullable(lambda value: _decimal_text(value, kind), (Decimal, int), "a Decimal")
    if kind.name not in _SCALARS:
        raise TypeError(f"{kind} is nothing for JSON")
    return _nullable(*_SCALARS[kind.name])


def _integer(value: int, fitting: int | None) -> str:
    if fitting is None:
        raise ValueError(f"{value} does not fit")
    return str(value)


def _decimal_text(value: Decimal | int, kind: Type) -> str:
    number = Decimal(value)
    fitting = decimals.fit_exactly(number, kind) if number.is_finite() else None
    if fitting is None:
        raise ValueError(f"{value} does not fit {kind} without rounding")
    return decimals.plain(fitting)


def _date_text(value: date) -> str:
    if isinstance(value, datetime):
        raise TypeError(f"a date expected, not datetime {value}")
    return str(dates.days_of(value))


def _time_text(value: time) -> str:
    if value.tzinfo is not None:
        raise TypeError(f"a time without a zone expected, not {value}")
    return str(dates.ms_of_day(value))


_SCALARS: Final[dict[str, tuple[Callable[[Any], str], tuple[type, ...], str]]] = {
    "string": (v.json_quoted, (str,), "a str"),
    "boolean": (lambda value: "true" if value else "false", (bool,), "a bool"),
    "double": (lambda value: v.json_number(float(value)), (float, int), "a float"),
    "binary": (lambda value: f'"{base64.b64encode(value).decode()}"', (bytes, bytearray, memoryview), "bytes"),
    "int": (lambda value: _integer(value, v.fit_int(value)), (int,), "an int"),
    "long": (lambda value: _integer(value, v.fit_long(value)), (int,), "an int"),
    "date": (_date_text, (date,), "a date"),
    "time": (_time_text, (time,), "a time"),
    "timestamp": (lambda value: str(dates.ms_of(value)), (datetime,), "a datetime"),
}


def _nullable(write: Callable[[Any], str], accepted: tuple[type, ...], expected: str) -> Callable[[Any], str]:
    def checked(value: Any) -> str:
        if value is None:
            return "null"
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise TypeError(f"{expected} expected, not {type(value).__name__} {shown_value(value)}")
        return write(value)

    return checked


def _map_writer(write_value: Callable[[Any], str]) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        parts = []
        for key in sorted(value):
            if not isinstance(key, str):
                raise TypeError(f"a str expected as key of a map, not {type(key).__name__} {shown_value(key)}")
            try:
                parts.append(f"{v.json_quoted(key)}:{write_value(value[key])}")
            except (TypeError, ValueError) as error:
                raise type(error)(f"{key}: {error}") from None
        return "{" + ",".join(parts) + "}"

    return _nullable(write, (dict,), "a dict")


def _struct_writer(kind: Type) -> Callable[[Any], str]:
    fields = [(name, f"{v.json_quoted(name)}:", json_writer(part)) for name, part in kind.fields]
    known = {name for name, _ in kind.fields}

    def write(value: Any) -> str:
        if not value.keys() <= known:
            raise ValueError(f"the schema has no field {', '.join(sorted(map(str, value.keys() - known)))}")
        parts = []
        for name, prefix, write_field in fields:
            try:
                parts.append(prefix + write_field(value.get(name)))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}: {error}") from None
        return "{" + ",".join(parts) + "}"

    return _nullable(write, (dict,), "a dict")
