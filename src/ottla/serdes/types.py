"""The types that expressions and serdes speak of: small enough to mean the same in Python and in Spark.

A value of type `any` is JSON whose shape nobody declared. Where an operation needs a type, an `any` beside it is turned
into that type, or into null if it cannot be; a number without a declared type counts as a double.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """Of a column, and of the Python values that stand for its cells."""

    name: str
    element: "Type | None" = None
    """Of an array, or the key of a windowed key."""
    fields: tuple[tuple[str, "Type"], ...] = ()

    def __str__(self) -> str:
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


STRING: Final = Type("string")
BINARY: Final = Type("binary")
INT: Final = Type("int")
LONG: Final = Type("long")
DOUBLE: Final = Type("double")
BOOLEAN: Final = Type("boolean")
ANY: Final = Type("any")
NULL: Final = Type("null")
"""Of the literal None, which goes with every other type."""

_NUMBERS: Final = {"int": 0, "long": 1, "double": 2}

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


def wider(left: Type, right: Type) -> Type:
    """Of two numbers, the type that holds both."""
    return left if _NUMBERS[left.name] >= _NUMBERS[right.name] else right


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
    return None


def parse_type(text: str) -> Type:
    """`long`, `array<string>`, `struct<name: string, price: double>`; SQL's names (bigint, ...) as well."""
    reader = _Reader(text)
    parsed = reader.type()
    reader.end()
    return parsed


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
        if name not in _NAMES:
            raise self._wrong(f"{name!r} is none of {', '.join(sorted(_NAMES))}, array<...>, struct<...>")
        return _NAMES[name]

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
