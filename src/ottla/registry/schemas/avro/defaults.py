"""Whether the default of a field is a value of its type, by Java's rules: of a union, any branch will do."""

from ottla.registry.schemas.avro import json_text
from ottla.registry.schemas.avro.render import canonical_text
from ottla.registry.schemas.avro.tree import Array, Json, Map, Node, Record, Union
from ottla.registry.schemas.base import Budget, InvalidSchema

_INT = range(-(1 << 31), 1 << 31)


def check(record: Record, budget: Budget) -> None:
    for field in record.fields:
        if field.has_default and not is_valid(field.type, field.default, budget):
            shown = canonical_text(field.type, frozenset())
            raise InvalidSchema(
                f"Invalid default for field {field.name}: {json_text.write(field.default)} not a {shown}"
            )


def is_valid(node: Node, value: Json, budget: Budget, filled: frozenset[int] = frozenset()) -> bool:
    """`filled`: the records into which a default was put on the way here, which must not need themselves again."""
    budget.spend()
    match node:
        case Union():
            return any(is_valid(branch, value, budget, filled) for branch in node.branches)
        case Array():
            return isinstance(value, list) and all(is_valid(node.items, each, budget) for each in value)
        case Map():
            return isinstance(value, dict) and all(is_valid(node.values, each, budget) for each in value.values())
        case Record():
            return isinstance(value, dict) and _is_valid_record(node, value, budget, filled)
    match node.kind:
        case "string" | "bytes" | "enum" | "fixed":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "int":
            return json_text.is_long(value) and value in _INT
        case "long":
            return json_text.is_long(value)
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _is_valid_record(record: Record, value: dict[str, Json], budget: Budget, filled: frozenset[int]) -> bool:
    for field in record.fields:
        if field.name in value:
            valid = is_valid(field.type, value[field.name], budget)
        else:
            needs_itself = id(record) in filled
            inside = filled | {id(record)}
            valid = field.has_default and not needs_itself and is_valid(field.type, field.default, budget, inside)
        if not valid:
            return False
    return True
