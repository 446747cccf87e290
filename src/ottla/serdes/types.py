"""The types that expressions and serdes speak of: small enough to mean the same in Python and in Spark.

| type | Python | Spark | JSON |
|---|---|---|---|
| string, boolean, double | str, bool, float | the same | the same; NaN and Infinity as text |
| int, long | int | int, bigint | a whole number |
| decimal(p, s) | Decimal with s digits behind the point | decimal(p, s) | a number with s such digits; or a text |
| date | date | date | days since 1970-01-01; or 2026-12-31 |
| time | time, milliseconds, no zone | int, milliseconds of the day | the same; or 23:59:59.999 |
| timestamp | datetime in UTC, milliseconds | timestamp_ntz, in UTC | milliseconds since 1970; or 2026-12-31T23:59:59Z |
| binary | bytes | binary | base64 |
| array<t>, struct<name: t> | list, dict | the same | array, object |
| map<string, t> | dict | map | an object, sorted by key |
| any | what JSON gives | variant | anything |

`any` is JSON whose shape nobody declared. Where an operation needs a type, an `any` beside it is turned into that type,
or into null if it cannot be; a number without a declared type counts as a double. A serde says by its `type` what it
reads and writes, and that is all that expressions, state and Spark's columns are told of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Final
from zlib import crc32

MAX_PRECISION: Final = 38
"""Of a decimal: what Spark and Arrow have room for."""
MOST_PARTS: Final = 10_000
"""Of a type that is made of a schema: references may lead to one part by very many ways."""


@dataclass(frozen=True, slots=True)
class Type:
    """Of a column, and of the Python values that stand for its cells."""

    name: str
    element: "Type | None" = None
    """Of an array; of the values of a map, whose keys are strings; or the key of a windowed key."""
    fields: tuple[tuple[str, "Type"], ...] = ()
    precision: int = 0
    """Of a decimal: how many digits there may be, and how many of them stand behind the point."""
    scale: int = 0
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    """Computed once: types are looked up for each record. The same in every process, as they travel to workers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", crc32(str(self).encode()))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self.name == "map":
            return f"map<string, {self.element}>"
        if self.name == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        if self.element is not None:
            return f"{self.name}<{self.element}>"
        if self.name == "struct":
            return "struct<" + ", ".join(f"{name}: {kind}" for name, kind in self.fields) + ">"
        return self.name

    def field(self, name: str) -> "Type | None":
        return dict(self.fields).get(name)

    @property
    def is_number(self) -> bool:
        return self.name in _NUMBERS

    @property
    def is_integer(self) -> bool:
        return self.name in {"int", "long"}

    def parts(self) -> "tuple[Type, ...]":
        """Those that it is directly made of."""
        own = () if self.element is None else (self.element,)
        return (*own, *(kind for _, kind in self.fields))

    def has(self, *names: str) -> bool:
        """Whether it, or something in it, is one of these."""
        return self.name in names or any(part.has(*names) for part in self.parts())


STRING: Final = Type("string")
BINARY: Final = Type("binary")
INT: Final = Type("int")
LONG: Final = Type("long")
DOUBLE: Final = Type("double")
BOOLEAN: Final = Type("boolean")
DATE: Final = Type("date")
TIME: Final = Type("time")
TIMESTAMP: Final = Type("timestamp")
ANY: Final = Type("any")
NULL: Final = Type("null")
"""Of the literal None, which goes with every other type."""

_NUMBERS: Final = {"int": 0, "long": 1, "decimal": 2, "double": 3}
_WHOLE_DIGITS: Final = {"int": 10, "long": 19}

_NAMES: Final = {
    "string": STRING,
    "varchar": STRING,
    "text": STRING,
    "binary": BINARY,
    "bytes": BINARY,
    "int": INT,
    "integer": INT,
    "long": LONG,
    "bigint": LONG,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "bool": BOOLEAN,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "any": ANY,
    "variant": ANY,
}


def array_of(element: Type) -> Type:
    return Type("array", element)


def struct_of(fields: Mapping[str, Type]) -> Type:
    return Type("struct", fields=tuple(fields.items()))


def windowed(key: Type) -> Type:
    """The key of a windowed aggregate; `key["key"]`, `key["start"]` and `key["end"]` take it apart."""
    return Type("windowed", key)


def map_of(element: Type) -> Type:
    """From strings."""
    return Type("map", element)


def decimal_of(precision: int, scale: int = 0) -> Type:
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise ValueError(
            f"decimal({precision}, {scale}) is no type: it may have 1 to {MAX_PRECISION} digits, and of these "
            "as many as there are behind the point"
        )
    return Type("decimal", precision=precision, scale=scale)


def as_decimal(kind: Type) -> Type:
    """The decimal that holds all values of an integer type; a decimal stays what it is."""
    return kind if kind.name == "decimal" else decimal_of(_WHOLE_DIGITS[kind.name])


def wider(left: Type, right: Type) -> Type | None:
    """Of two numbers, the type that holds both. None for decimals that would need more digits than there can be."""
    first, second = sorted((left, right), key=lambda kind: _NUMBERS[kind.name])
    if second.name != "decimal":
        return second
    first = as_decimal(first)
    scale = max(first.scale, second.scale)
    precision = max(first.precision - first.scale, second.precision - second.scale) + scale
    return decimal_of(precision, scale) if precision <= MAX_PRECISION else None


def common(left: Type, right: Type) -> Type | None:
    """The type in which both can stand in one column, or None."""
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if ANY in (left, right):
        other = right if left == ANY else left
        return DOUBLE if other.is_number else other
    if left.is_number and right.is_number:
        return wider(left, right)
    if left.name == right.name == "struct":
        return _united(left, right)
    if left.name == right.name and left.name in {"array", "map"} and left.element and right.element:
        element = common(left.element, right.element)
        return None if element is None else Type(left.name, element)
    return None


def _united(left: Type, right: Type) -> Type | None:
    """A struct with the fields of both."""
    fields = dict(left.fields)
    for name, kind in right.fields:
        both = common(fields.get(name, NULL), kind)
        if both is None:
            return None
        fields[name] = both
    return struct_of(fields)


def literal_type(constant: object) -> Type | None:
    """Of a value of Python's that can stand in an expression, or None."""
    match constant:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int() if -(1 << 31) <= constant < 1 << 31:
            return INT
        case int() if -(1 << 63) <= constant < 1 << 63:
            return LONG
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BINARY
        case Decimal() if constant.is_finite():
            return _decimal_of_digits(constant)
        case datetime():
            return TIMESTAMP
        case date():
            return DATE
        case time() if constant.tzinfo is None:
            return TIME
    return None


def _decimal_of_digits(constant: Decimal) -> Type | None:
    """With just the digits written: 1.50 is a decimal(3, 2)."""
    _, digits, exponent = constant.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale, 1)
    return decimal_of(precision, scale) if precision <= MAX_PRECISION else None


def parse_type(text: str) -> Type:
    """`long`, `decimal(10, 2)`, `array<string>`, `map<string, date>`, `struct<name: string, price: double>`; SQL's
    names (bigint, ...) as well."""
    reader = _Reader(text)
    parsed = reader.type()
    reader.end()
    return parsed


def parse_type_or_schema(text: str) -> Type:
    """What is no type is the list of a struct's fields."""
    try:
        return parse_type(text)
    except ValueError:
        return parse_schema(text)


def parse_schema(schema: "str | Mapping[str, object]") -> Type:
    """A struct from DDL text (`ticker STRING, price DOUBLE`) or from a dict of names to types, nested as needed.

    A dict stands for a struct and a list of one for an array: {"ticker": "string", "prices": ["double"]}.
    """
    if isinstance(schema, str):
        reader = _Reader(schema)
        fields = reader.fields(closing="")
        reader.end()
        return Type("struct", fields=fields)
    return struct_of({name: _declared(name, kind) for name, kind in schema.items()})


def _declared(name: str, kind: object) -> Type:
    match kind:
        case Type():
            return kind
        case str():
            return parse_type(kind)
        case Mapping():
            return parse_schema(kind)
        case [element]:
            return array_of(_declared(name, element))
    raise ValueError(f"the type of {name!r} is neither a name, a dict nor a list of one type: {kind!r}")


class _Reader:
    """Reads the text of a type from left to right."""

    _TOKEN: Final = re.compile(r"\s*(`[^`]*`|[\w-]+|[<>,:()])")

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._place = 0

    def _split(self) -> list[str]:
        tokens, at, text = [], 0, self._text.rstrip()
        while at < len(text):
            match = self._TOKEN.match(text, at)
            if match is None:
                raise self._wrong(f"cannot read {text[at:].strip()!r}")
            tokens.append(match[1])
            at = match.end()
        return tokens

    def _wrong(self, reason: str) -> ValueError:
        return ValueError(f"{self._text!r} is no type: {reason}")

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _next(self, expected: str = "") -> str:
        token = self._peek()
        if not token or (expected and token != expected):
            raise self._wrong(f"{expected or 'more'} expected, {token or 'the end'} found")
        self._place += 1
        return token

    def type(self) -> Type:
        name = self._next().lower()
        if name == "array":
            self._next("<")
            element = self.type()
            self._next(">")
            return array_of(element)
        if name == "struct":
            self._next("<")
            fields = self.fields(closing=">")
            self._next(">")
            return Type("struct", fields=fields)
        if name == "map":
            return self._map()
        if name in {"decimal", "numeric"}:
            return self._decimal()
        if name not in _NAMES:
            known = f"{', '.join(sorted(_NAMES))}, decimal(p, s), array<...>, map<string, ...>, struct<...>"
            raise self._wrong(f"{name!r} is none of {known}")
        return _NAMES[name]

    def _map(self) -> Type:
        self._next("<")
        if self.type() != STRING:
            raise self._wrong("the keys of a map are strings")
        self._next(",")
        element = self.type()
        self._next(">")
        return map_of(element)

    def _decimal(self) -> Type:
        if self._peek() != "(":
            raise self._wrong("say how many digits a decimal has, and how many behind the point: decimal(10, 2)")
        self._next("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._next()
            scale = self._number()
        self._next(")")
        try:
            return decimal_of(precision, scale)
        except ValueError as error:
            raise self._wrong(str(error)) from None

    def _number(self) -> int:
        token = self._next()
        if not re.fullmatch("[0-9]{1,4}", token):
            raise self._wrong(f"a number expected, {token} found")
        return int(token)

    def fields(self, closing: str) -> tuple[tuple[str, Type], ...]:
        fields: dict[str, Type] = {}
        while self._peek() != closing:
            name = self._next().strip("`")
            if self._peek() == ":":
                self._next()
            if name in fields:
                raise self._wrong(f"field {name!r} is there twice")
            fields[name] = self.type()
            if self._peek() != ",":
                break
            self._next()
        if not fields:
            raise self._wrong("it has no fields")
        return tuple(fields.items())

    def end(self) -> None:
        if self._peek():
            raise self._wrong(f"{self._peek()!r} is left over")
