"""A .proto file as it was written: what the parser makes, the printer prints and the rules compare.

Not a descriptor: names stand as somebody wrote them, a label that was left out is absent, options have no types yet.
Kept in the order in which Wire's printer puts things, so that a tree and its canonical text say the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

MAX_FIELD_NUMBER: Final = (1 << 29) - 1
MAX_ENUM_NUMBER: Final = (1 << 31) - 1

Label = Literal["optional", "required", "repeated"]
ImportKind = Literal["", "public", "weak"]

SCALARS: Final = (
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string",
    "group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
)  # fmt: skip
"""By FieldDescriptorProto.Type, from 1 on; "group", "message" and "enum" are no names of scalars."""

SCALAR_NAMES: Final = frozenset(SCALARS) - {"group", "message", "enum"}


@dataclass(frozen=True, slots=True)
class Word:
    """An identifier as a value: true, INFO, inf."""

    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """As it was written: 0x10, 1e5, -3."""

    text: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """{ key: value ... }. A key is a field's name, or an extension's in brackets."""

    entries: tuple[tuple[str, "Value"], ...]


@dataclass(frozen=True, slots=True)
class Values:
    items: tuple["Value", ...]


Scalar = Word | Number | bytes
Value = Scalar | Aggregate | Values


@dataclass(frozen=True, slots=True)
class NamePart:
    """Of an option's name: (a.custom.one) or plain."""

    name: str
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    parts: tuple[NamePart, ...]
    value: Value

    @property
    def custom(self) -> bool:
        return self.parts[0].custom

    @property
    def name(self) -> str:
        """The extension's of a custom one, without what follows it; the whole name of any other."""
        return self.parts[0].name if self.custom else ".".join(part.name for part in self.parts)


def option(name: str, value: Value) -> Option:
    return Option(tuple(NamePart(part) for part in name.split(".")), value)


Options = tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Range:
    first: int
    last: int | None = None
    """Included. None: it was written as one number."""

    @property
    def end(self) -> int:
        return self.first if self.last is None else self.last


@dataclass(frozen=True, slots=True)
class Reserved:
    values: tuple[Range | str, ...]


@dataclass(frozen=True, slots=True)
class Extensions:
    ranges: tuple[Range, ...]
    options: Options = ()


@dataclass(frozen=True, slots=True)
class MapOf:
    key: str
    value: str


TypeName = str | MapOf


@dataclass(frozen=True, slots=True)
class Field:
    label: Label | None
    type: TypeName
    name: str
    number: int
    options: Options = ()
    default: Scalar | None = None
    json_name: bytes | None = None


@dataclass(frozen=True, slots=True)
class Group:
    label: Label | None
    number: int
    body: "Message"
    options: Options = ()

    @property
    def name(self) -> str:
        return self.body.name


Member = Field | Group


@dataclass(frozen=True, slots=True)
class OneOf:
    name: str
    options: Options = ()
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()

    def members(self) -> tuple[Member, ...]:
        return (*self.fields, *self.groups)


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    number: int
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    reserved: tuple[Reserved, ...] = ()
    options: Options = ()
    constants: tuple[Constant, ...] = ()


@dataclass(frozen=True, slots=True)
class Extend:
    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()

    def members(self) -> tuple[Member, ...]:
        return (*self.fields, *self.groups)


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    reserved: tuple[Reserved, ...] = ()
    options: Options = ()
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    groups: tuple[Group, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    extends: tuple[Extend, ...] = ()
    messages: tuple["Message", ...] = ()
    enums: tuple[Enum, ...] = ()

    def members(self) -> tuple[Member, ...]:
        """Outside of oneofs."""
        return (*self.fields, *self.groups)

    def all_groups(self) -> Iterator[Group]:
        yield from self.groups
        for oneof in self.oneofs:
            yield from oneof.groups
        for extend in self.extends:
            yield from extend.groups

    def map_entry(self) -> MapOf | None:
        """What it stands for if it is the type of a map's entries, spelled out as a descriptor does."""
        if not any(each.name == "map_entry" and each.value == Word("true") for each in self.options):
            return None
        types = {field.name: field.type for field in self.fields}
        key, value = types.get("key"), types.get("value")
        return MapOf(key, value) if isinstance(key, str) and isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Rpc:
    name: str
    request: str
    response: str
    request_stream: bool = False
    response_stream: bool = False
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    options: Options = ()
    rpcs: tuple[Rpc, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    path: str
    kind: ImportKind = ""


@dataclass(frozen=True, slots=True)
class File:
    syntax: str | None = None
    edition: str | None = None
    package: str | None = None
    imports: tuple[Import, ...] = ()
    options: Options = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[Service, ...] = ()

    @property
    def proto3(self) -> bool:
        return self.syntax == "proto3"
