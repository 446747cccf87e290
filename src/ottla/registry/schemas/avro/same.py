"""Whether two types say the same of data: Java's `Schema.equals`, to which docs and aliases do not matter."""

from ottla.registry.schemas.avro.tree import Array, Enum, Field, Fixed, Json, Map, Node, Primitive, Record, Union
from ottla.registry.schemas.base import Budget


def same(one: Node, other: Node, budget: Budget) -> bool:
    """A pair that is met again on the way is taken as equal: a difference would be found elsewhere."""
    left = [(one, other)]
    seen = set()
    while left:
        a, b = left.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        budget.spend()
        inner = _inner_pairs(a, b)
        if inner is None:
            return False
        left += inner
    return True


def _inner_pairs(a: Node, b: Node) -> list[tuple[Node, Node]] | None:
    """What is left to compare if the two agree so far; None if they do not."""
    match a, b:
        case Primitive(), Primitive():
            return [] if (a.kind, a.props) == (b.kind, b.props) else None
        case Array(), Array():
            return [(a.items, b.items)] if a.props == b.props else None
        case Map(), Map():
            return [(a.values, b.values)] if a.props == b.props else None
        case Union(), Union():
            return list(zip(a.branches, b.branches, strict=True)) if len(a.branches) == len(b.branches) else None
        case Enum(), Enum():
            return [] if (a.name, a.symbols, a.props) == (b.name, b.symbols, b.props) else None
        case Fixed(), Fixed():
            return [] if (a.name, a.size, a.props) == (b.name, b.size, b.props) else None
        case Record(), Record():
            if (a.name, a.props) != (b.name, b.props) or list(map(_facts, a.fields)) != list(map(_facts, b.fields)):
                return None
            return [(x.type, y.type) for x, y in zip(a.fields, b.fields, strict=True)]
        case _:
            return None


def _facts(field: Field) -> tuple[str, Json, bool, str, dict[str, Json]]:
    return field.name, field.default, field.has_default, field.order, field.props
