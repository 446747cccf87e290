"""What would be accepted instead, in our words, after Confluent's have said what is wrong."""

from collections.abc import Sequence
from typing import Final

from ottla.registry.schemas.avro.json_text import quoted
from ottla.registry.schemas.avro.tree import Array, Enum, Field, Fixed, Map, Named, Node, Primitive, Record, Union

_EXAMPLES: Final = {
    "null": "null",
    "boolean": "false",
    "int": "0",
    "long": "0",
    "float": "0.0",
    "double": "0.0",
    "bytes": '""',
    "string": '""',
    "array": "[]",
    "map": "{}",
}
_SHOWN_BRANCHES: Final = 10


def missing_default(field: Field, record: Record) -> str:
    example = _example(field.type)
    ways = f'give it one, such as "default": {example}' if example else "give it one"
    if not (isinstance(field.type, Union) and any(branch.kind == "null" for branch in field.type.branches)):
        ways += ', or make it optional: a union with "null" first and "default": null'
    renamed = "; if it is an old field under a new name, give it the old one as an alias"
    return f"field {field.name} of record {record.name.full} has to be filled where data lacks it: {ways}{renamed}"


def _example(node: Node) -> str | None:
    match node:
        case Union():
            return _example(node.branches[0]) if node.branches else None
        case Enum():
            return quoted(node.symbols[0]) if node.symbols else None
        case _:
            return _EXAMPLES.get(node.kind)


def renamed(reader: Named, writer: Named) -> str:
    return (
        f"{reader.kind} {reader.name.full} reads {writer.name.full} if it is called so,"
        f' or has it as an alias: "aliases": [{quoted(writer.name.full)}]'
    )


def missing_symbols(reader: Enum, missing: Sequence[str]) -> str:
    return (
        f"keep {', '.join(missing)} in enum {reader.name.full}, or give the enum a default"
        " (beside its symbols, not of a field) that stands for symbols it does not know"
    )


def other_size(reader: Fixed, writer: Fixed) -> str:
    return (
        f"fixed {reader.name.full} has {reader.size} bytes and reads only as many; data of {writer.size} bytes needs"
        f' "size": {writer.size}, or a new field with default'
    )


_READ_BY: Final = {
    "int": "long, float and double",
    "long": "float and double",
    "float": "double",
    "string": "bytes",
    "bytes": "string",
}


def other_type(reader: Node, writer: Node) -> str:
    if writer.kind == "null":
        return f'data may hold null: make the type a union with it, ["null", {_shown(reader)}]'
    others = _READ_BY.get(writer.kind)
    widened = f"{writer.kind} is read by itself, {others}" if others else f"only {writer.kind} reads {writer.kind}"
    return f"{widened}, or by a union with such a branch: [{_shown(writer)}, {_shown(reader)}]"


def missing_branch(reader: Union, writer: str) -> str:
    names = [_shown(branch) for branch in reader.branches[:_SHOWN_BRANCHES]]
    more = ", ..." if len(reader.branches) > _SHOWN_BRANCHES else ""
    return f"no branch of [{', '.join(names)}{more}] reads {writer} as it was written: keep such a branch in the union"


def ambiguous_alias(field: Field, names: Sequence[str]) -> str:
    return f"field {field.name} goes by {' and '.join(names)}, and data has both: take all but one out of its aliases"


def _shown(node: Node) -> str:
    match node:
        case Primitive() | Array() | Map() | Union():
            return quoted(node.kind)
        case _:
            return quoted(node.name.full)
