"""A parsed Avro schema: what its text says, with every name replaced by the type that it stands for.

Nodes are compared by identity: a recursive schema is a graph with cycles, and a named type is one node wherever it is
used, as in Java. They are made by `parse` alone and not changed after it.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
TYPE_NAMES: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    props: dict[str, Json]
    """Members that Avro gives no meaning, in the order in which they were written."""


@dataclass(slots=True, eq=False)
class Array:
    items: "Node"
    props: dict[str, Json]
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: "Node"
    props: dict[str, Json]
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: list["Node"]
    kind: str = "union"


@dataclass(frozen=True, slots=True)
class Name:
    simple: str
    space: str = ""

    @property
    def full(self) -> str:
        return f"{self.space}.{self.simple}" if self.space else self.simple

    def within(self, space: str) -> str:
        """How the name is written inside of a namespace: short in its own, unless a type of Avro is called so."""
        return self.simple if self.space == space and self.simple not in TYPE_NAMES else self.full


def named(text: str, space: str) -> Name:
    """A name as it is written: with dots it brings its namespace along, otherwise that of its place holds."""
    before, dot, simple = text.rpartition(".")
    return Name(simple, before if dot else space)


@dataclass(slots=True, eq=False)
class Fixed:
    name: Name
    size: int
    doc: str | None
    aliases: list[Name]
    props: dict[str, Json]
    kind: str = "fixed"


@dataclass(slots=True, eq=False)
class Enum:
    name: Name
    symbols: list[str]
    default: str | None
    doc: str | None
    aliases: list[Name]
    props: dict[str, Json]
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: "Node"
    doc: str | None
    default: Json
    has_default: bool
    order: str
    aliases: list[str]
    props: dict[str, Json]


@dataclass(slots=True, eq=False)
class Record:
    name: Name
    doc: str | None
    aliases: list[Name]
    props: dict[str, Json]
    is_error: bool = False
    fields: list[Field] = field(default_factory=list)
    by_name: dict[str, Field] = field(default_factory=dict)
    kind: str = "record"


Named: TypeAlias = Record | Enum | Fixed
Node: TypeAlias = Primitive | Array | Map | Union | Record | Enum | Fixed


def full_name(node: Node) -> str:
    """That of a named type; of others the name of their kind."""
    return node.name.full if isinstance(node, Record | Enum | Fixed) else node.kind


def inner(node: Node) -> list[Node]:
    """The types that a type is made of, in the order of the text."""
    match node:
        case Record():
            return [each.type for each in node.fields]
        case Union():
            return node.branches
        case Array():
            return [node.items]
        case Map():
            return [node.values]
        case _:
            return []
