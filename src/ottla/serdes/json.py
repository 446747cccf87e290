"""JSON, in the one form that Spark writes too: equal values have equal bytes."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from ottla.serdes import values as v
from ottla.serdes.base import Serde, SerdeError, shown, shown_value
from ottla.serdes.types import ANY, Type, parse_schema, parse_type


class JsonSerde(Serde[Any]):
    """JSON of any shape; called with a schema it gives a serde for objects of that shape.

    Written without blanks; the fields of a schema in its order and with their nulls, those of other objects sorted by
    name, so that equal keys have equal bytes.
    """

    name = "json"

    def __init__(self, schema: "str | Mapping[str, object] | Type | None" = None) -> None:
        if schema is None:
            self.type = ANY
        elif isinstance(schema, Type):
            self.type = schema
        elif isinstance(schema, str) and schema.lower().lstrip().startswith(("array<", "struct<")):
            self.type = parse_type(schema)
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
        try:
            found = (_STRICT if self.type == ANY else _WITH_NAN).decode(str(data, "utf-8"))
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: JSON expected, found {shown(data)}: {error}") from error
        if found is None or self.type == ANY:
            return found
        try:
            return json_reader(self.type)(found)
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


_STRICT: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unambiguous)
_WITH_NAN: Final = json.JSONDecoder()
"""Where doubles are declared Spark takes NaN and Infinity for them, in quotes or without."""


class _Mismatch(ValueError):
    """A piece of JSON that is not of the declared type; `path` grows on the way out."""

    def __init__(self, expected: str) -> None:
        self.expected = expected
        self.path = ""

    def __str__(self) -> str:
        return f"{self.expected} expected" + (f" at {self.path.removeprefix('.')}" if self.path else "")


def json_reader(kind: Type) -> Callable[[Any], Any]:
    """What Spark's from_json makes of parsed JSON: strict, but for a string, which takes everything as text."""
    reader = _readers.get(kind)
    if reader is None:
        reader = _readers[kind] = _new_reader(kind)
    return reader


_readers: dict[Type, Callable[[Any], Any]] = {}


def _new_reader(kind: Type) -> Callable[[Any], Any]:
    match kind.name:
        case "struct":
            return _struct_reader(kind)
        case "array" if kind.element is not None:
            return _array_reader(kind.element)
        case "any":
            return lambda found: found
        case "string":
            return v.json_to_string
        case "double":
            return _read_double
        case "binary":
            return _read_base64
        case "boolean":
            return _read_boolean
        case "int":
            return _integer_reader("int", v.INT_MIN, v.INT_MAX)
        case "long":
            return _integer_reader("long", v.LONG_MIN, v.LONG_MAX)
    raise TypeError(f"{kind} is nothing for JSON")


def _struct_reader(kind: Type) -> Callable[[Any], Any]:
    fields = [(name, json_reader(part)) for name, part in kind.fields]

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


def _array_reader(element: Type) -> Callable[[Any], Any]:
    read_item = json_reader(element)

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
        case "any":
            return v.json_text
        case "string":
            return _nullable(v.json_quoted, (str,), "a str")
        case "boolean":
            return _nullable(lambda value: "true" if value else "false", (bool,), "a bool")
        case "double":
            return _nullable(lambda value: v.json_number(float(value)), (float, int), "a float")
        case "binary":
            return _nullable(
                lambda value: f'"{base64.b64encode(value).decode()}"', (bytes, bytearray, memoryview), "bytes"
            )
        case "int":
            return _nullable(lambda value: _integer(value, v.fit_int(value)), (int,), "an int")
        case "long":
            return _nullable(lambda value: _integer(value, v.fit_long(value)), (int,), "an int")
    raise TypeError(f"{kind} is nothing for JSON")


def _integer(value: int, fitting: int | None) -> str:
    if fitting is None:
        raise ValueError(f"{value} does not fit")
    return str(value)


def _nullable(write: Callable[[Any], str], accepted: tuple[type, ...], expected: str) -> Callable[[Any], str]:
    def checked(value: Any) -> str:
        if value is None:
            return "null"
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise TypeError(f"{expected} expected, not {type(value).__name__} {shown_value(value)}")
        return write(value)

    return checked


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
