"""Types by their names, custom ones among them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ottla.serdes.types import STRING, Type, array_of, decimal_of, map_of
from ottla.sql import tree as t
from ottla.sql.analysis.refusals import meant, refuse
from ottla.sql.types import NAMES

MOST_PARTS: Final = 10_000
DEEPEST: Final = 100
"""Of a type with all that custom ones in it stand for: one of two of the one before doubles with each statement."""


def resolved(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    parts, depth = _extent(written, custom)
    if parts > MOST_PARTS:
        refuse(
            f"the type has {parts:,} parts with those of other types in it: at most {MOST_PARTS:,} are taken", written
        )
    if depth > DEEPEST:
        refuse(f"more than {DEEPEST} levels of types inside each other: take the type apart", written)
    return _resolved(written, custom)


def _extent(written: t.TypeName, custom: Mapping[str, Type]) -> tuple[int, int]:
    """How many parts there are, and how deep they lie in each other."""
    inside = [each for each in written.arguments if isinstance(each, t.TypeName)]
    inside += [each for _, each in written.fields]
    if not inside:
        known = custom.get(written.name) if written.quoted or written.name not in NAMES else None
        return (1, 1) if known is None else _extent_of(known)
    return _around([_extent(each, custom) for each in inside])


@lru_cache(maxsize=1024)
def _extent_of(kind: Type) -> tuple[int, int]:
    inside = [each for _, each in kind.fields] + ([] if kind.element is None else [kind.element])
    return _around([_extent_of(each) for each in inside])


def _around(inside: list[tuple[int, int]]) -> tuple[int, int]:
    return 1 + sum(parts for parts, _ in inside), 1 + max((depth for _, depth in inside), default=0)


def _resolved(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    if written.quoted:
        return _custom(written, custom)
    match written.name:
        case "ARRAY":
            return array_of(_resolved(_part(written, 0), custom))
        case "MAP":
            if len(written.arguments) != 2:
                refuse("a MAP has a type of keys and one of values: MAP<STRING, type>", written)
            if _resolved(_part(written, 0), custom) != STRING:
                refuse("the keys of a MAP are STRING", written)
            return map_of(_resolved(_part(written, 1), custom))
        case "STRUCT":
            return _struct(written, custom)
        case "DECIMAL":
            return _decimal(written)
    return NAMES.get(written.name) or _custom(written, custom)


def _part(written: t.TypeName, place: int) -> t.TypeName:
    part = written.arguments[place]
    assert isinstance(part, t.TypeName)
    return part


def _struct(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    fields = tuple((name, _resolved(kind, custom)) for name, kind in written.fields)
    names = [name for name, _ in fields]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        refuse(f"the STRUCT has the field {twice} twice", written)
    return Type("struct", fields=fields)


def _decimal(written: t.TypeName) -> Type:
    numbers = [each for each in written.arguments if isinstance(each, int)]
    if not 1 <= len(numbers) <= 2:
        refuse("say how many digits a DECIMAL has, and how many of them behind the point: DECIMAL(10, 2)", written)
    try:
        return decimal_of(*numbers)
    except ValueError as error:
        refuse(str(error), written)


def _custom(written: t.TypeName, custom: Mapping[str, Type]) -> Type:
    found = custom.get(written.name)
    if found is None:
        refuse(f"{written.name} is no type{meant(written.name, [*NAMES, *custom])}", written)
    return found
