"""JSON as Confluent's registry reads and writes it: no white space, members in their order, numbers as they were spelt.

Whole numbers become `int`, all others `Decimal`, which writes itself as Java's BigDecimal does (`1.0`, `1E+3`). Of
members with one name the last counts, at the place of the first. Nesting is bounded, and nothing here recurses.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NoReturn, TypeAlias

from ottla.registry.schemas.base import InvalidSchema

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | Decimal | bool | None"

MAX_DEPTH: Final = 250
"""Levels of nesting in a schema that is registered. Confluent's server ends at 1,000, the library that checks
instances a little above this; real schemas end at about 30."""

MAX_NUMBER_LENGTH: Final = 1000
"""Characters of one number: Jackson's limit, and below the one from which Python refuses to read an int."""

MAX_EXPONENT: Final = 1 << 31
"""Java keeps it in 32 bits."""

_ESCAPES: Final = str.maketrans(
    {chr(code): f"\\u{code:04X}" for code in range(0x20)}
    | {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
)


def read(text: str) -> Json:
    """Raises InvalidSchema, which names the place."""
    try:
        tree: Json = json.loads(text, parse_int=_whole, parse_float=_fraction, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InvalidSchema(too_deep()) from None
    try:
        text.encode()
        # An escape may write half of a pair that the text itself, being UTF-8, cannot hold.
        if "\\u" in text:
            written(tree).encode()
    except UnicodeEncodeError as error:
        raise InvalidSchema(f"half of a surrogate pair (U+{ord(str(error.object)[error.start]):04X})") from None
    return tree


def too_deep() -> str:
    return f"nested more than {MAX_DEPTH} levels deep"


def depth(tree: Json) -> int:
    """How many objects and arrays stand inside each other."""
    levels, level = 0, [tree]
    while level := [value for value in level if isinstance(value, dict | list)]:
        levels += 1
        level = [inner for value in level for inner in (value.values() if isinstance(value, dict) else value)]
    return levels


def written(tree: Json, *, ordered: bool = False) -> str:
    """`ordered`: members of objects by name, as Java orders strings; arrays stay."""
    out: list[str] = []
    open_containers: list[tuple[Iterator[tuple[str, Json]], str]] = [(iter((("", tree),)), "")]
    while open_containers:
        members, end = open_containers[-1]
        for before, value in members:
            out.append(before)
            if isinstance(value, dict):
                out.append("{")
                open_containers.append((_members(value, ordered), "}"))
                break
            if isinstance(value, list):
                out.append("[")
                open_containers.append((_elements(value), "]"))
                break
            out.append(_scalar(value))
        else:
            out.append(end)
            open_containers.pop()
    return "".join(out)


def java_order(name: str) -> bytes:
    """Java compares strings by UTF-16 units, Python by code points."""
    return name.encode("utf-16-be", "surrogatepass")


def _members(value: dict[str, Json], ordered: bool) -> Iterator[tuple[str, Json]]:
    before = ""
    for name in sorted(value, key=java_order) if ordered else value:
        yield f'{before}"{name.translate(_ESCAPES)}":', value[name]
        before = ","


def _elements(value: list[Json]) -> Iterator[tuple[str, Json]]:
    before = ""
    for element in value:
        yield before, element
        before = ","


def _scalar(value: str | int | Decimal | bool | None) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _whole(digits: str) -> int:
    if len(digits) > MAX_NUMBER_LENGTH:
        raise InvalidSchema(f"a number of more than {MAX_NUMBER_LENGTH} digits")
    return int(digits)


def _fraction(spelt: str) -> Decimal:
    if len(spelt) > MAX_NUMBER_LENGTH:
        raise InvalidSchema(f"a number of more than {MAX_NUMBER_LENGTH} digits")
    mantissa, _, exponent = spelt.lower().partition("e")
    if exponent and abs(int(exponent)) + len(mantissa) >= MAX_EXPONENT:
        raise InvalidSchema(f"the exponent of {spelt} is out of range")
    number = Decimal(spelt)
    return number.copy_abs() if number.is_zero() else number  # Java has no -0.0


def _no_constant(name: str) -> NoReturn:
    raise InvalidSchema(f"no JSON: {name} is no number of it")
