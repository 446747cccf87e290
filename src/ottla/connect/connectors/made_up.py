"""Values by a schema of Avro, with hints as Confluent's generator has them: `arg.properties` with `options`, `range`,
`iteration`, `length` and `regex`. All that is random comes from the dice that are passed in.
"""

from __future__ import annotations

import re
import re._parser as patterns  # type: ignore[import-not-found]  # it has no public name
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    Schema,
    array_schema,
    map_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct

Make = Callable[[Random, int], Any]
"""Given dice and the number of the record."""

DEEPEST: Final = 32
MOST_REPEATS: Final = 20
"""Where a pattern sets no bound."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_PRINTABLE: Final = [chr(code) for code in range(32, 127)]


class BadSchema(ValueError):
    """The text says what is wrong."""


class MadeUp(NamedTuple):
    schema: Schema
    make: Make

    def value(self, dice: Random, number: int) -> Struct:
        found: Struct = self.make(dice, number)
        return found


def made_up(schema: Any) -> MadeUp:
    """Raises BadSchema."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BadSchema("a schema of the type record is expected")
    return MadeUp(*_of(schema, {}, 0))


def _of(schema: Any, hints: Mapping[str, Any], deep: int) -> tuple[Schema, Make]:
    if deep > DEEPEST:
        raise BadSchema(f"a schema nests deeper than {DEEPEST}")
    if isinstance(schema, list):
        return _union(schema, hints, deep)
    if isinstance(schema, dict):
        hints = {**hints, **_hints(schema)}
        kind = schema.get("type")
        if isinstance(kind, dict | list):
            return _of(kind, hints, deep + 1)
    else:
        kind, schema = schema, {}
    if not isinstance(kind, str):
        raise BadSchema(f"{kind!r} is no type")
    if kind in _COMPLEX:
        return _COMPLEX[kind](schema, hints, deep)
    if kind not in _PLAIN:
        raise BadSchema(f"there is no type {kind!r}: {', '.join((*_PLAIN, *_COMPLEX))} are known")
    connect, usual = _PLAIN[kind]
    return connect, _hinted(kind, hints) or usual


def _hints(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("arg.properties", {})
    if not isinstance(found, dict):
        raise BadSchema("arg.properties has to be an object")
    return found


def _hinted(kind: str, hints: Mapping[str, Any]) -> Make | None:
    if "options" in hints:
        options = hints["options"]
        if not isinstance(options, list) or not options:
            raise BadSchema("options have to be a list with something in it")
        return lambda dice, _: dice.choice(options)
    if "iteration" in hints:
        first, step = hints["iteration"].get("start", 0), hints["iteration"].get("step", 1)
        return (lambda _, number: str(first + number * step)) if kind == "string" else lambda _, n: first + n * step
    if "range" in hints:
        low, high = hints["range"].get("min", 0), hints["range"].get("max", 1 << 31)
        if not low < high:
            raise BadSchema(f"the range from {low} to {high} is empty")
        if kind in ("int", "long"):
            return lambda dice, _: dice.randrange(int(low), int(high))
        return lambda dice, _: round(dice.uniform(low, high), 6)
    if "regex" in hints:
        try:
            parsed = list(patterns.parse(str(hints["regex"])))
        except re.error as error:
            raise BadSchema(f"{hints['regex']} is no regular expression: {error}") from error
        return lambda dice, _: "".join(_matching(parsed, dice))
    if "length" in hints and kind == "string":
        length = hints["length"]
        low, high = (length, length + 1) if isinstance(length, int) else (length.get("min", 0), length.get("max", 16))
        return lambda dice, _: "".join(dice.choices(_LETTERS, k=dice.randrange(low, high)))
    return None


def _matching(parsed: Any, dice: Random) -> list[str]:
    """A text that the pattern matches."""
    out: list[str] = []
    for name, given in parsed:
        match str(name):
            case "LITERAL":
                out.append(chr(given))
            case "NOT_LITERAL":
                out.append(dice.choice([each for each in _PRINTABLE if each != chr(given)]))
            case "ANY":
                out.append(dice.choice(_PRINTABLE))
            case "IN":
                out.append(dice.choice(_members(given)))
            case "MAX_REPEAT" | "MIN_REPEAT":
                low, high, inner = given
                for _ in range(dice.randint(low, max(low, min(int(high), low + MOST_REPEATS)))):
                    out += _matching(inner, dice)
            case "SUBPATTERN":
                out += _matching(given[3], dice)
            case "BRANCH":
                out += _matching(dice.choice(given[1]), dice)
            case "AT":
                pass
            case other:
                raise BadSchema(f"a regular expression has {other}, which cannot be made up")
    return out


def _members(given: Any) -> list[str]:
    found: list[str] = []
    negated = False
    for name, each in given:
        match str(name):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found.append(chr(each))
            case "RANGE":
                found += [chr(code) for code in range(each[0], min(each[1], each[0] + 512) + 1)]
            case "CATEGORY":
                word = str(each)
                found += [c for c in _PRINTABLE if (c.isdigit() if "DIGIT" in word else c.isalnum() or c == "_")]
    return [each for each in _PRINTABLE if each not in found] if negated else found


def _record(schema: Any, hints: Mapping[str, Any], deep: int) -> tuple[Schema, Make]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not fields:
        raise BadSchema("a record needs fields")
    made: list[tuple[str, Schema, Make]] = []
    for field in fields:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise BadSchema(f"{field!r} is no field: a name and a type are needed")
        made.append((field["name"], *_of(field["type"], _hints(field), deep + 1)))
    whole = struct_schema([(name, inner) for name, inner, _ in made], name=schema.get("name"))
    makers = [make for _, _, make in made]
    return whole, lambda dice, number: Struct.of(whole, [make(dice, number) for make in makers])


def _enum(schema: Any, hints: Mapping[str, Any], deep: int) -> tuple[Schema, Make]:
    symbols = schema.get("symbols") or []
    if not symbols:
        raise BadSchema("an enum needs symbols")
    return STRING, lambda dice, _: dice.choice(symbols)


def _array(schema: Any, hints: Mapping[str, Any], deep: int) -> tuple[Schema, Make]:
    inner, make = _of(schema.get("items"), {}, deep + 1)
    low, high = _length(hints)
    return array_schema(inner), lambda dice, n: [make(dice, n) for _ in range(dice.randint(low, high))]


def _map(schema: Any, hints: Mapping[str, Any], deep: int) -> tuple[Schema, Make]:
    inner, make = _of(schema.get("values"), {}, deep + 1)
    low, high = _length(hints)
    return map_schema(STRING, inner), lambda dice, n: {
        "".join(dice.choices(_LETTERS, k=6)): make(dice, n) for _ in range(dice.randint(low, high))
    }


def _length(hints: Mapping[str, Any]) -> tuple[int, int]:
    length = hints.get("length", {"min": 1, "max": 3})
    low, high = (length, length) if isinstance(length, int) else (length.get("min", 1), length.get("max", 3))
    if not 0 <= low <= high <= 10_000:
        raise BadSchema(f"a length from {low} to {high} cannot be")
    return low, high


def _union(schema: list[Any], hints: Mapping[str, Any], deep: int) -> tuple[Schema, Make]:
    """Null and one other."""
    others = [each for each in schema if each != "null"]
    if len(others) != 1:
        raise BadSchema("a union is of null and one other type")
    inner, make = _of(others[0], hints, deep + 1)
    return inner.but(optional=True), lambda dice, n: None if dice.random() < 0.1 else make(dice, n)


def _text(dice: Random, _: int) -> str:
    return "".join(dice.choices(_LETTERS, k=dice.randrange(3, 12)))


_PLAIN: Final[dict[str, tuple[Schema, Make]]] = {
    "string": (STRING, _text),
    "int": (INT32, lambda dice, _: dice.randrange(-(1 << 31), 1 << 31)),
    "long": (INT64, lambda dice, _: dice.randrange(-(1 << 63), 1 << 63)),
    "float": (FLOAT32, lambda dice, _: dice.randrange(1 << 20) / 1024),
    "double": (FLOAT64, lambda dice, _: dice.random()),
    "boolean": (BOOLEAN, lambda dice, _: dice.random() < 0.5),
    "bytes": (BYTES, lambda dice, _: dice.randbytes(8)),
}
_COMPLEX: Final = {"record": _record, "enum": _enum, "array": _array, "map": _map}
