"""Functions that Arrow has as well: over a whole column at once, with the same results as their Python bodies.

Only what stands here can be computed where records are read (`run.vectors`). A form may pass: `None` means that these
values are none that Arrow treats as we do (letters beyond ASCII, NaN, a text that is no plain number), and the column
is then computed by the function's body. So does an error of Arrow's, as a sum that does not fit. Arrow is handed in:
this room needs nothing but Python.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Final, TypeAlias

from ottla.serdes.types import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING, Type, array_of
from ottla.streams.expressions.bound import Bound

Form: TypeAlias = Callable[[Any, Bound, list[Any]], Any]
"""Of the module pyarrow.compute, the call and its arguments: arrays, or scalars for literals."""

LEAVES: Final = frozenset(("key", "value", "timestamp", "partition", "offset", "topic", "left", "right"))
PLAIN_TYPES: Final = frozenset((STRING, BINARY, INT, LONG, DOUBLE, BOOLEAN))


@dataclass(frozen=True, slots=True)
class Vector:
    form: Form
    takes: Callable[[Bound], bool]
    """Which calls."""


def why_no_vector(node: Bound) -> str | None:
    """What of it Arrow cannot compute; None: all of it can."""
    match node.function:
        case "leaf":
            return None if node.options[0] in LEAVES and node.type in PLAIN_TYPES else f"it reads {node.options[0]}"
        case "lit":
            return None if node.type in PLAIN_TYPES else f"it has a literal of type {node.type}"
    found = VECTORS.get(node.function)
    if found is None or not found.takes(node):
        return f"Arrow has no {node.function} that does the same"
    return next((reason for part in node.args if (reason := why_no_vector(part)) is not None), None)


# ---- which calls


def _plain(node: Bound) -> bool:
    return all(each.type in PLAIN_TYPES for each in (node, *node.args))


def _numbers(node: Bound) -> bool:
    return node.type in (INT, LONG, DOUBLE)


def _texts(node: Bound) -> bool:
    return all(each.type == STRING for each in node.args)


def _part_is_literal(node: Bound) -> bool:
    return _texts(node) and node.args[1].function == "lit" and node.args[1].options[0] is not None


def _simple_pattern(node: Bound) -> bool:
    return _as_re2(node.options[0].pattern) is not None


def _delimiter_is_literal(node: Bound) -> bool:
    return node.type == array_of(STRING) and _part_is_literal(node) and bool(node.args[1].options[0])


def _castable(node: Bound) -> bool:
    return (node.args[0].type, node.type) in _CASTS


# ---- patterns

_TOKEN: Final = re.compile(
    r"(\\[wWdDsS]|\[\^?(?:\\[wd]|[A-Za-z0-9_ ,;:/=#'\"!]|(?<=\w)-(?=\w))+\]|[A-Za-z0-9_ ,;:/=#'\"!-])(\+?)"
)
_BLANKS: Final = {r"\s": "[\t-\r ]", r"\S": "[^\t-\r ]"}
"""Which characters they are to us, and to Java; to Arrow's RE2 one of them is none."""


@lru_cache(1024)
def _as_re2(pattern: str) -> str | None:
    r"""Letters, digits, a few marks, classes of them and of \w, \d, \s, each perhaps with a plus: what is found is the
    same for all engines. None for anything else."""
    made, at = "", 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            return None
        made += _BLANKS.get(found[1], found[1]) + found[2]
        at = found.end()
    return made or None


# ---- forms


def _by_name(name: str) -> Form:
    return lambda pc, _, args: getattr(pc, name)(*args)


def _compared(name: str) -> Form:
    def form(pc: Any, node: Bound, args: list[Any]) -> Any:
        return None if _has_nan(pc, node, args) else getattr(pc, name)(*args)

    return form


def _has_nan(pc: Any, node: Bound, args: list[Any]) -> bool:
    return node.args[0].type == DOUBLE and any(pc.any(pc.is_nan(each)).as_py() for each in args)


def _one_of(pc: Any, node: Bound, args: list[Any]) -> Any:
    subject, *choices = args
    if _has_nan(pc, node, args):
        return None
    return reduce(pc.or_kleene, [pc.equal(subject, choice) for choice in choices])


def _calculated(name: str) -> Form:
    """Of integers an error where the result does not fit."""
    return lambda pc, node, args: getattr(pc, name if node.type == DOUBLE else f"{name}_checked")(*args)


def _if_ascii(name: str) -> Form:
    def form(pc: Any, _: Bound, args: list[Any]) -> Any:
        return getattr(pc, name)(args[0]) if pc.all(pc.string_is_ascii(args[0])).as_py() in (True, None) else None

    return form


def _with_part(name: str) -> Form:
    return lambda pc, node, args: getattr(pc, name)(args[0], pattern=node.args[1].options[0])


def _split(pc: Any, node: Bound, args: list[Any]) -> Any:
    pattern = node.options[0].pattern
    plain = not set(pattern) & set("\\[+")
    return (pc.split_pattern if plain else pc.split_pattern_regex)(args[0], pattern=_as_re2(pattern))


def _found(pc: Any, node: Bound, args: list[Any]) -> Any:
    return pc.match_substring_regex(args[0], pattern=_as_re2(node.options[0].pattern))


def _joined(pc: Any, _: Bound, args: list[Any]) -> Any:
    return pc.binary_join_element_wise(*args, "")


def _chosen(pc: Any, _: Bound, args: list[Any]) -> Any:
    pairs = list(zip(args[:-1:2], args[1:-1:2], strict=True))
    return reduce(lambda rest, pair: pc.if_else(pc.fill_null(pair[0], False), pair[1], rest), pairs[::-1], args[-1])


def _as_double(pc: Any, _: Bound, args: list[Any]) -> Any:
    return pc.cast(args[0], "double", safe=False)  # rounds, as Python does


def _widened(pc: Any, _: Bound, args: list[Any]) -> Any:
    return pc.cast(args[0], "int64")


def _written(pc: Any, _: Bound, args: list[Any]) -> Any:
    return pc.cast(args[0], "string")


def _read(pattern: str, kind: str) -> Form:
    """Of texts that are nothing but plain digits."""

    def form(pc: Any, _: Bound, args: list[Any]) -> Any:
        plain = pc.all(pc.match_substring_regex(args[0], pattern)).as_py() in (True, None)
        return pc.cast(args[0], kind) if plain else None

    return form


_CASTS: Final[dict[tuple[Type, Type], Form]] = {
    (INT, LONG): _widened,
    (INT, DOUBLE): _as_double,
    (LONG, DOUBLE): _as_double,
    (INT, STRING): _written,
    (LONG, STRING): _written,
    (STRING, INT): _read(r"\A-?[0-9]{1,9}\z", "int32"),
    (STRING, LONG): _read(r"\A-?[0-9]{1,18}\z", "int64"),
    (STRING, DOUBLE): _read(r"\A-?[0-9]{1,15}(\.[0-9]{1,15})?\z", "double"),
}


def _cast(pc: Any, node: Bound, args: list[Any]) -> Any:
    return _CASTS[node.args[0].type, node.type](pc, node, args)


VECTORS: Final[dict[str, Vector]] = {
    "eq": Vector(_compared("equal"), _plain),
    "ne": Vector(_compared("not_equal"), _plain),
    "lt": Vector(_compared("less"), _plain),
    "gt": Vector(_compared("greater"), _plain),
    "le": Vector(_compared("less_equal"), _plain),
    "ge": Vector(_compared("greater_equal"), _plain),
    "isin": Vector(_one_of, _plain),
    "is_null": Vector(_by_name("is_null"), _plain),
    "is_not_null": Vector(_by_name("is_valid"), _plain),
    "and": Vector(_by_name("and_kleene"), _plain),
    "or": Vector(_by_name("or_kleene"), _plain),
    "not": Vector(_by_name("invert"), _plain),
    "add": Vector(_calculated("add"), _numbers),
    "sub": Vector(_calculated("subtract"), _numbers),
    "mul": Vector(_calculated("multiply"), _numbers),
    "coalesce": Vector(_by_name("coalesce"), _plain),
    "case": Vector(_chosen, _plain),
    "cast": Vector(_cast, _castable),
    "lower": Vector(_if_ascii("ascii_lower"), _texts),
    "upper": Vector(_if_ascii("ascii_upper"), _texts),
    "trim": Vector(lambda pc, _, args: pc.utf8_trim(args[0], characters=" "), _texts),
    "length": Vector(_by_name("utf8_length"), _texts),
    "contains": Vector(_with_part("match_substring"), _part_is_literal),
    "startswith": Vector(_with_part("starts_with"), _part_is_literal),
    "endswith": Vector(_with_part("ends_with"), _part_is_literal),
    "concat": Vector(_joined, _texts),
    "split": Vector(_split, _simple_pattern),
    "rlike": Vector(_found, _simple_pattern),
    "split_text": Vector(_with_part("split_pattern"), _delimiter_is_literal),
}
