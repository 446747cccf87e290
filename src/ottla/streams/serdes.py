"""How keys and values lie in a topic. Byte for byte what Java's Serdes write; JSON in the one form Spark writes, too.

    Serdes.string, Serdes.bytes, Serdes.int, Serdes.long, Serdes.double, Serdes.boolean
    Serdes.json                                         any JSON
    Serdes.json("ticker STRING, price DOUBLE")          JSON objects with these fields
    Serdes.time_windowed(Serdes.string, size_ms=5000)   keys of windowed aggregates
    Serdes.session_windowed(Serdes.string)

None is no value at all: it has no bytes, and no bytes give None.
"""

import base64
import json
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NoReturn, TypeVar

from ottla.streams import values as v
from ottla.streams.types import (
    ANY,
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    Type,
    parse_schema,
    parse_type,
    windowed,
)
from ottla.streams.windows import LONGEST_MS, Window, Windowed

T = TypeVar("T")

_SHOWN_BYTES: Final = 40


class SerdeError(ValueError):
    """Bytes that are not what the serde reads, or a value that it cannot write."""


def _shown(data: bytes) -> str:
    more = f" ... ({len(data)} bytes)" if len(data) > _SHOWN_BYTES else ""
    return f"{bytes(data[:_SHOWN_BYTES])!r}{more}"


def _shown_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + " ..."


class Serde(ABC, Generic[T]):
    """Reads and writes one kind of value. Make your own by overriding `encode` and `decode`."""

    name: str = "serde"
    type: Type = ANY
    """Of the values, for expressions. `any` will do for a serde of your own."""

    def serialize(self, value: T | None) -> bytes | None:
        return None if value is None else self.encode(value)

    def deserialize(self, data: bytes | None) -> T | None:
        return None if data is None else self.decode(data)

    @abstractmethod
    def encode(self, value: T) -> bytes: ...

    @abstractmethod
    def decode(self, data: bytes) -> T | None: ...

    def __repr__(self) -> str:
        return f"Serdes.{self.name}"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name, self.type))

    def _not_read(self, expected: str, data: bytes) -> NoReturn:
        raise SerdeError(f"{self!r}: {expected} expected, found {_shown(data)}")

    def _not_written(self, expected: str, value: object) -> NoReturn:
        raise SerdeError(f"{self!r}: {expected} expected, not {type(value).__name__} {_shown_value(value)}")


class StringSerde(Serde[str]):
    """UTF-8. As in Java, bytes that are no UTF-8 are read as U+FFFD and are no error."""

    name = "string"
    type = STRING

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            self._not_written("a str", value)
        try:
            return value.encode()
        except UnicodeEncodeError:
            self._not_written("text without lone surrogates", value)

    def decode(self, data: bytes) -> str:
        return str(data, "utf-8", "replace")


class BytesSerde(Serde[bytes]):
    """As they are."""

    name = "bytes"
    type = BINARY

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            self._not_written("bytes", value)
        return bytes(value)

    def decode(self, data: bytes) -> bytes:
        return bytes(data)


class _IntegerSerde(Serde[int]):
    """Big-endian, of fixed width."""

    width: int

    def encode(self, value: int) -> bytes:
        if not isinstance(value, int) or isinstance(value, bool):
            self._not_written("an int", value)
        try:
            return value.to_bytes(self.width, "big", signed=True)
        except OverflowError:
            self._not_written(f"a number of at most {self.width} bytes", value)

    def decode(self, data: bytes) -> int:
        if len(data) != self.width:
            self._not_read(f"{self.width} bytes", data)
        return int.from_bytes(data, "big", signed=True)


class IntSerde(_IntegerSerde):
    name = "int"
    type = INT
    width = 4


class LongSerde(_IntegerSerde):
    name = "long"
    type = LONG
    width = 8


class DoubleSerde(Serde[float]):
    """IEEE 754, big-endian. Every NaN is written as Java's one."""

    name = "double"
    type = DOUBLE
    _LAYOUT: Final = struct.Struct(">d")
    _NAN: Final = bytes.fromhex("7ff8000000000000")

    def encode(self, value: float) -> bytes:
        if not isinstance(value, (float, int)) or isinstance(value, bool):
            self._not_written("a float", value)
        return self._NAN if math.isnan(value) else self._LAYOUT.pack(value)

    def decode(self, data: bytes) -> float:
        if len(data) != 8:
            self._not_read("8 bytes", data)
        number: float = self._LAYOUT.unpack(data)[0]
        return number


class BooleanSerde(Serde[bool]):
    """One byte, 0 or 1."""

    name = "boolean"
    type = BOOLEAN

    def encode(self, value: bool) -> bytes:
        if not isinstance(value, bool):
            self._not_written("a bool", value)
        return b"\1" if value else b"\0"

    def decode(self, data: bytes) -> bool:
        if data not in (b"\0", b"\1"):
            self._not_read("one byte, 0 or 1,", data)
        return bytes(data) == b"\1"


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
            raise SerdeError(f"{self!r}: {error}; the value is {_shown_value(value)}") from error

    def decode(self, data: bytes) -> Any:
        try:
            found = (_STRICT if self.type == ANY else _WITH_NAN).decode(str(data, "utf-8"))
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: JSON expected, found {_shown(data)}: {error}") from error
        if found is None or self.type == ANY:
            return found
        try:
            return json_reader(self.type)(found)
        except _Mismatch as mismatch:
            raise SerdeError(f"{self!r}: {mismatch}, found {_shown(data)}") from None


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
            raise TypeError(f"{expected} expected, not {type(value).__name__} {_shown_value(value)}")
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


# ---- keys of windows


class TimeWindowedSerde(Serde[Windowed]):
    """The key, then the window's start in 8 bytes. The end is not written: the size is known."""

    name = "time_windowed"

    def __init__(self, inner: Serde[Any], size_ms: int) -> None:
        self.inner = inner
        self.size_ms = size_ms
        self.type = windowed(inner.type)

    def __repr__(self) -> str:
        return f"Serdes.time_windowed({self.inner!r}, {self.size_ms})"

    def encode(self, value: Windowed) -> bytes:
        return _inner_bytes(self, value) + value.window.start.to_bytes(8, "big", signed=True)

    def decode(self, data: bytes) -> Windowed | None:
        if not data:
            return None
        if len(data) < 8:
            self._not_read("at least 8 bytes", data)
        start = int.from_bytes(data[-8:], "big", signed=True)
        end = min(start + self.size_ms, LONGEST_MS)
        return Windowed(self.inner.deserialize(bytes(data[:-8])), Window(start, end))


class SessionWindowedSerde(Serde[Windowed]):
    """The key, then the session's end and start in 8 bytes each."""

    name = "session_windowed"

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        self.type = windowed(inner.type)

    def __repr__(self) -> str:
        return f"Serdes.session_windowed({self.inner!r})"

    def encode(self, value: Windowed) -> bytes:
        return _inner_bytes(self, value) + struct.pack(">qq", value.window.end, value.window.start)

    def decode(self, data: bytes) -> Windowed | None:
        if not data:
            return None
        if len(data) < 16:
            self._not_read("at least 16 bytes", data)
        end, start = struct.unpack(">qq", data[-16:])
        return Windowed(self.inner.deserialize(bytes(data[:-16])), Window(start, end))


def _inner_bytes(serde: "TimeWindowedSerde | SessionWindowedSerde", value: Windowed) -> bytes:
    if not isinstance(value, Windowed):
        serde._not_written("a Windowed key", value)
    key = serde.inner.serialize(value.key)
    if key is None:
        serde._not_written("a key in the window", value)
    return key


class Serdes:
    """All there are, by name."""

    string: Final = StringSerde()
    bytes: Final = BytesSerde()
    int: Final = IntSerde()
    long: Final = LongSerde()
    double: Final = DoubleSerde()
    boolean: Final = BooleanSerde()
    json: Final = JsonSerde()
    time_windowed: Final = TimeWindowedSerde
    session_windowed: Final = SessionWindowedSerde


def serde_for(kind: Type) -> Serde[Any]:
    """The serde to take where the user named none and the type is known."""
    for serde in (Serdes.string, Serdes.bytes, Serdes.int, Serdes.long, Serdes.double, Serdes.boolean, Serdes.json):
        if serde.type == kind:
            return serde
    if kind.name in {"struct", "array"}:
        return JsonSerde(kind)
    raise ValueError(f"there is no serde for {kind}; name one, such as Serdes.time_windowed(...)")
