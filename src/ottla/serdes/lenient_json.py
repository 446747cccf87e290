"""JSON as ksqlDB reads it: lenient about numbers and names, strict about shapes. One wrong field spoils the record.

A field is looked for under its exact name first, then under any that is the same in capital letters; unknown fields are
passed over, missing ones are null. Numbers may come as text and text as anything; of a fraction an integer takes the
whole part; a DECIMAL has to fit without rounding; BOOLEAN comes from booleans alone.
"""

import base64
import binascii
import json
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NoReturn

from ottla.serdes import dates, decimals
from ottla.serdes import values as v
from ottla.serdes.base import Serde, SerdeError, shown, shown_value
from ottla.serdes.json import json_writer
from ottla.serdes.types import Type, struct_of


class LenientJsonSerde(Serde[Any]):
    """Objects of the type's fields, or a bare value of it. All fields are written, in order, with their nulls.

    `single`: the value is a struct of this one field, and the bytes hold it without an object around it; a row in which
    it is null has no bytes."""

    name = "JSON"

    def __init__(self, content: Type, single: str | None = None) -> None:
        self.content = content
        self.single = single
        self.type = content if single is None else struct_of({single: content})

    def __repr__(self) -> str:
        return f"JSON({self.type})"

    def serialize(self, value: Any) -> bytes | None:
        return None if value is None or self._content(value) is None else self.encode(value)

    def encode(self, value: Any) -> bytes:
        try:
            return json_writer(self.content)(self._content(value)).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: {error}; the value is {shown_value(value)}") from error

    def decode(self, data: bytes) -> Any:
        content = read(data, self.content, self)
        return content if self.single is None else {self.single: content}

    def _content(self, value: Any) -> Any:
        return value if self.single is None else value.get(self.single)


def wrap(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


class Mismatch(ValueError):
    def __init__(self, expected: str, found: Any) -> None:
        super().__init__(f"{expected} expected, not {_shown(found)}")


def _shown(found: Any) -> str:
    text = str(found)
    return text if len(text) <= 40 else text[:40] + " ..."


def read(data: bytes, kind: Type, who: object) -> Any:
    """A document as a value of the type. Raises SerdeError, with the field that is wrong."""
    try:
        return reader(kind)(_DECODER.decode(str(data, "utf-8")))
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise SerdeError(f"{who!r}: {error}; found {shown(data)}") from error


@lru_cache(1024)
def reader(kind: Type) -> Callable[[Any], Any]:
    match kind.name:
        case "struct":
            return _struct(kind)
        case "array":
            assert kind.element is not None
            return _array(reader(kind.element))
        case "map":
            assert kind.element is not None
            return _map(reader(kind.element))
        case "decimal":
            return _decimal(kind)
    return _nullable(_READERS[kind.name])


def _nullable(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda found: None if found is None else read(found)


def _struct(kind: Type) -> Callable[[Any], Any]:
    fields = [(name, reader(part)) for name, part in kind.fields]
    wanted = frozenset(name for name, _ in fields)

    def read(found: Any) -> Any:
        if found is None:
            return None
        if not isinstance(found, dict):
            raise Mismatch("an object", found)
        if not wanted <= found.keys():
            capital = {name.upper(): each for name, each in found.items()}
            found = {**capital, **found}
        made = {}
        for name, part in fields:
            try:
                made[name] = part(found.get(name))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return made

    return read


def _array(part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if found is not None and not isinstance(found, list):
            raise Mismatch("an array", found)
        return None if found is None else [part(each) for each in found]

    return read


def _map(part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if found is not None and not isinstance(found, dict):
            raise Mismatch("an object", found)
        return None if found is None else {name: part(each) for name, each in found.items()}

    return read


def _decimal(kind: Type) -> Callable[[Any], Any]:
    expected = str(kind)

    def read(found: Any) -> Any:
        if found is None:
            return None
        number = _number(found, expected)
        fitted = decimals.fit_exactly(Decimal(number), kind)
        if fitted is None:
            raise Mismatch(f"{expected} (it would have to be rounded)", found)
        return fitted

    return read


def _number(found: Any, expected: str) -> Any:
    """An int or a Decimal, of a number or a text."""
    if isinstance(found, str):
        number = decimals.parsed(found)
        if number is None:
            raise Mismatch(expected, f"{found!r}")
        return number
    if isinstance(found, bool) or not isinstance(found, (int, Decimal)):
        raise Mismatch(expected, found)
    return found


def _integer(expected: str, low: int, high: int) -> Callable[[Any], int]:
    bits = high.bit_length() + 1

    def read(found: Any) -> int:
        if isinstance(found, str):
            number = v.string_to_integer(found, low, high)
            if number is None or found.strip() != found:
                raise Mismatch(expected, f"{found!r}")
            return number
        number = _number(found, expected)
        if isinstance(number, Decimal):  # as Java narrows a double
            return (
                max(low, min(high, int(number))) if abs(number) < Decimal(10) ** 30 else (high if number > 0 else low)
            )
        return wrap(number, bits)

    return read


def _boolean(found: Any) -> bool:
    if not isinstance(found, bool):
        raise Mismatch("BOOLEAN", found)
    return found


def _double(found: Any) -> float:
    if isinstance(found, str):
        number = v.string_to_double(found)
        if number is None:
            raise Mismatch("DOUBLE", f"{found!r}")
        return number
    number = _number(found, "DOUBLE")
    return v.big_to_double(number) if isinstance(number, int) else float(number)


def text_of(found: Any) -> str:
    """Anything as a text: an object as its JSON, an array as Java writes a list."""
    match found:
        case str():
            return found
        case None:
            return "null"
        case bool():
            return "true" if found else "false"
        case Decimal():
            return str(found) if found.adjusted() < 40 else repr(float(found))
        case list():
            return "[" + ", ".join(map(text_of, found)) + "]"
        case dict():
            return json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return str(found)


def _plain(given: Any) -> Any:
    return float(given)


def _base64(found: Any) -> bytes:
    if not isinstance(found, str):
        raise Mismatch("BYTES as base64", found)
    try:
        return base64.b64decode(found, validate=True)
    except binascii.Error:
        raise Mismatch("BYTES as base64", f"{found!r}") from None


def _moment(expected: str, convert: Callable[[int], Any]) -> Callable[[Any], Any]:
    whole = _integer(expected, v.LONG_MIN, v.LONG_MAX)

    def read(found: Any) -> Any:
        made = convert(whole(found))
        if made is None:
            raise Mismatch(expected, found)
        return made

    return read


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "boolean": _boolean,
    "int": _integer("INTEGER", v.INT_MIN, v.INT_MAX),
    "long": _integer("BIGINT", v.LONG_MIN, v.LONG_MAX),
    "double": _double,
    "string": text_of,
    "binary": _base64,
    "date": _moment("DATE as days since 1970", dates.date_of),
    "time": _moment("TIME as milliseconds of the day", dates.time_of),
    "timestamp": _moment("TIMESTAMP as milliseconds since 1970", dates.timestamp_of),
}
