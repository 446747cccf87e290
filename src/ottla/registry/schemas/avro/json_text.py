"""JSON as Java Avro reads and writes it: Jackson's parser with comments, Jackson's spelling of strings and numbers.

The canonical text of a schema is hashed, so every character counts. Depth is looked at before anything is parsed: what
comes after may be recursive without a thought for its stack.
"""

import json
import math
import re
import struct
from typing import Final

from ottla.registry.schemas.avro.tree import Json
from ottla.registry.schemas.base import InvalidSchema

MAX_NESTING: Final = 200
"""Levels of objects and arrays in a schema. Jackson takes 1,000; no schema that people wrote came near 100."""
_LONG: Final = range(-(1 << 63), 1 << 63)
_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def read(text: str) -> Json:
    """Raises InvalidSchema for what is no JSON, or too deep."""
    plain = _without_comments(text) if "/*" in text or "//" in text else text
    if plain.count("{") + plain.count("[") > MAX_NESTING:
        _check_nesting(plain)
    try:
        found: Json = json.loads(plain, parse_constant=_refused_constant)
    except ValueError as wrong:  # also a number of thousands of digits
        raise InvalidSchema(f"the schema is no JSON: {wrong}") from wrong
    if "\\u" in plain and _SURROGATE.search(json.dumps(found, ensure_ascii=False)):
        raise InvalidSchema("the schema has half of a surrogate pair in a string, which cannot be written as UTF-8")
    return found


def _without_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)


def _check_nesting(text: str) -> None:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        token = found[0]
        if token in "[{":
            depth += 1
            if depth > MAX_NESTING:
                raise InvalidSchema(f"the schema is nested more than {MAX_NESTING} levels deep")
        elif token in "]}":
            depth -= 1


def _refused_constant(word: str) -> Json:
    raise InvalidSchema(f"the schema is no JSON: {word} is no number in JSON")


def write(value: Json) -> str:
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int():
            return str(value)
        case float():
            return java_double(value)
        case list():
            return f"[{','.join(map(write, value))}]"
        case dict():
            return f"{{{','.join(f'{quoted(key)}:{write(each)}' for key, each in value.items())}}}"


def quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"' if _ESCAPED.search(text) else f'"{text}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"


def java_double(value: float) -> str:
    """As Double.toString; what is no number goes as a string, which Jackson reads back."""
    if math.isfinite(value):
        return _java_notation(repr(value))
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def java_float(value: float) -> float:
    """The double whose digits are those that Float.toString gives to the nearest float."""
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    if not math.isfinite(single):
        return float(single)
    return next(
        found
        for digits in range(1, 10)
        if struct.unpack("f", struct.pack("f", found := float(f"{single:.{digits}g}")))[0] == single
    )


def _java_notation(python: str) -> str:
    """The shortest digits are the same in both; the point and the exponent are put elsewhere."""
    sign = "-" if python.startswith("-") else ""
    mantissa, _, exponent = python.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits.strip("0"):
        return f"{sign}0.0"
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))  # of digits stand before it
    digits = digits.rstrip("0")
    if -3 < point <= 7:
        padded = digits.ljust(max(point, 0), "0")
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def is_long(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _LONG


def has_larger_integer(value: Json) -> bool:
    """Whether there is an integer in it that no long holds: Java has no place for one in a property."""
    match value:
        case bool():
            return False
        case int():
            return value not in _LONG
        case list():
            return any(map(has_larger_integer, value))
        case dict():
            return any(map(has_larger_integer, value.values()))
        case _:
            return False
