"""Which keys a condition asks for, as bytes of the topic: a pull query looks there and nowhere else."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

from ottla.registry.lookup import Registry
from ottla.serdes.base import SerdeError
from ottla.sql import tree as t
from ottla.sql.formats import serde
from ottla.sql.model import DataSource
from ottla.sql.records import Formats

_MOST: Final = 10_000
"""Keys of one query. With more of them (IN over several columns) the table is read as a whole."""


class Asked(NamedTuple):
    keys: list[bytes]
    """Of a table with windows those before the window's bytes."""
    rest: t.Expr | None
    """What is left of the condition: the rows of these keys fulfil all else."""


def keys(query: t.Query, source: DataSource, registry: Registry | None) -> Asked | None:
    """None: the condition does not say which."""
    where = query.where
    if where is None or not source.keys:
        return None
    chosen: dict[str, list[Any]] = {}
    rest: list[t.Expr] = []
    names = dict(source.keys)
    for part in where.terms if isinstance(where, t.Chain) and where.operator == "AND" else (where,):
        name, constants = _constants(part, query.source.called)
        if name in names and name not in chosen and all(_is_of(each, names[name].name) for each in constants):
            chosen[name] = constants
        else:
            rest.append(part)
    if chosen.keys() != names.keys() or prod(map(len, chosen.values())) > _MOST:
        return None
    made = _in_bytes([chosen[name] for name in names], source, registry)
    return None if made is None else Asked(list(dict.fromkeys(made)), _all_of(rest, where))


def _in_bytes(chosen: Sequence[list[Any]], source: DataSource, registry: Registry | None) -> list[bytes] | None:
    """None if one of them is read as something else than it was written from, or cannot be a key: no row has it, or
    rows have it that are written in another way."""
    bare = serde(source.key_format, source.keys, "key", registry) if source.window else Formats(registry).key(source)
    names = [name for name, _ in source.keys]
    made: list[bytes] = []
    try:
        for values in product(*chosen):
            key = values[0] if len(names) == 1 else dict(zip(names, values, strict=True))
            written = bare.serialize(key)
            if written is None or bare.deserialize(written) != key:
                return None
            made.append(written)
    except SerdeError:
        return None
    return made


def _all_of(parts: list[t.Expr], where: t.Expr) -> t.Expr | None:
    if len(parts) > 1:
        return t.Chain("AND", tuple(parts), at=where.at)
    return parts[0] if parts else None


def _constants(part: t.Expr, called: str) -> tuple[str, list[Any]]:
    """A column, and what it has to be one of; no column if this is no such condition."""
    match part:
        case t.Binary(operator="=", left=t.Column() as column, right=t.Literal(value=value)):
            values = [value]
        case t.Binary(operator="=", left=t.Literal(value=value), right=t.Column() as column):
            values = [value]
        case t.In(operand=t.Column() as column, choices=choices, negated=False):
            values = [each.value for each in choices if isinstance(each, t.Literal)]
            if len(values) != len(choices):
                return "", []
        case _:
            return "", []
    return (column.name, values) if column.source in (None, called) else ("", [])


def _is_of(value: Any, name: str) -> bool:
    """Whether it is one of the type as it is, so that its bytes are those of equal keys."""
    match value:
        case bool():
            return name == "boolean"
        case int():
            return name in {"int", "long"}
        case str():
            return name == "string"
    return False
