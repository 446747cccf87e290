"""Avro's types and ours.

A union with null is the other type, which may be null anyway; one of numbers is the widest of them; any other union is
a struct of `member0`, `member1`, ... of which one is there, as Spark's own Avro has it. Logical types are types of ours
where there is one: date, time, timestamp (millis, micros), decimal of up to 38 digits; others are what they lie in.
"""

from typing import Any, Final

from ottla.registry.schemas.avro.normal import logical_type
from ottla.registry.schemas.avro.tree import Array, Enum, Fixed, Map, Node, Primitive, Record, Union
from ottla.registry.schemas.base import Budget, TooComplex
from ottla.serdes.types import (
    ANY,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    MAX_PRECISION,
    MOST_PARTS,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Type,
    array_of,
    decimal_of,
    map_of,
    struct_of,
)

_PRIMITIVES: Final = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": DOUBLE,
    "double": DOUBLE,
    "bytes": BINARY,
    "string": STRING,
}
_LOGICAL: Final = {
    "date": DATE,
    "time-millis": TIME,
    "time-micros": TIME,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
}
_WHOLE: Final = frozenset(("int", "long"))
_FRACTIONS: Final = frozenset(("float", "double"))


def type_of(node: Node) -> Type:
    """`any` for a schema that contains itself, which a column cannot, or too much."""
    try:
        return _typed(node, (), Budget(MOST_PARTS))
    except (_Recursive, TooComplex):
        return ANY


class _Recursive(Exception):
    """A record was met inside of itself."""


def _typed(node: Node, inside: tuple[int, ...], budget: Budget) -> Type:
    budget.spend()
    match node:
        case Primitive():
            return logical_kind(node) or _PRIMITIVES[node.kind]
        case Fixed():
            return logical_kind(node) or BINARY
        case Enum():
            return STRING
        case Array():
            return array_of(_typed(node.items, inside, budget))
        case Map():
            return map_of(_typed(node.values, inside, budget))
        case Record():
            if id(node) in inside:
                raise _Recursive
            return struct_of({each.name: _typed(each.type, (*inside, id(node)), budget) for each in node.fields})
        case Union():
            members = members_of(node)
            if members:
                return struct_of({name: _typed(branch, inside, budget) for name, branch in members})
            wide = widest(node)
            return NULL if wide is None else _typed(wide, inside, budget)


def logical_kind(node: Primitive | Fixed) -> Type | None:
    """The type that a logical type stands for, if it is one of ours."""
    found = logical_type(node)
    name = found.get("logicalType")
    if name == "decimal":
        precision, scale = found["precision"], found.get("scale", 0)
        assert isinstance(precision, int) and isinstance(scale, int)
        return decimal_of(precision, scale) if precision <= MAX_PRECISION else None
    return _LOGICAL.get(name) if isinstance(name, str) else None


def not_null(union: Union) -> list[Node]:
    return [branch for branch in union.branches if branch.kind != "null"]


def members_of(union: Union) -> list[tuple[str, Node]]:
    """The fields of a union that is a struct; none for one that is a single type."""
    branches = not_null(union)
    if len(branches) < 2 or widest(union) is not None:
        return []
    return [(f"member{index}", branch) for index, branch in enumerate(branches)]


def widest(union: Union) -> Node | None:
    """The branch that stands for all others but null, if there is one."""
    branches = not_null(union)
    if len(branches) == 1:
        return branches[0]
    kinds = {branch.kind for branch in branches}
    if kinds not in (_WHOLE, _FRACTIONS) or any(isinstance(each, Primitive) and each.props for each in branches):
        return None
    return next(branch for branch in branches if branch.kind in ("long", "double"))


# ---- the other way


_NAMES: Final[dict[str, Any]] = {
    "null": "null",
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "double": "double",
    "binary": "bytes",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
}


def avro_of(kind: Type, name: str) -> Any:
    """A schema for values of a type, as JSON. Everything inside may be null; records are called after their place."""
    element = kind.element
    match kind.name:
        case "struct":
            fields = [
                {"name": each, "type": _optional(part, f"{name}_{each}"), "default": None} for each, part in kind.fields
            ]
            return {"type": "record", "name": name, "fields": fields}
        case "array" if element is not None:
            return {"type": "array", "items": _optional(element, f"{name}_item")}
        case "map" if element is not None:
            return {"type": "map", "values": _optional(element, f"{name}_value")}
        case "decimal":
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if kind.name not in _NAMES:
        raise ValueError(f"there is no Avro schema for {kind}: name one")
    return _NAMES[kind.name]


def _optional(kind: Type, name: str) -> Any:
    found = avro_of(kind, name)
    return found if found == "null" else ["null", found]
