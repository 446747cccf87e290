"""From a FileDescriptorProto to the tree that it would have been parsed from.

A descriptor has no groups or optional fields of proto3 in one place: they are a nested type and a field, or a field and
a oneof, and are put together again here. Maps are not: the type of their entries stays a nested message with the option
`map_entry`, as with Confluent's server, because it counts in the indexes that records carry.
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final, Protocol

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message as Proto

from ottla.registry.schemas.protobuf.tokens import unquoted
from ottla.registry.schemas.protobuf.tree import (
    MAX_ENUM_NUMBER,
    MAX_FIELD_NUMBER,
    SCALARS,
    Aggregate,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    ImportKind,
    Label,
    Message,
    NamePart,
    Number,
    OneOf,
    Option,
    Options,
    Range,
    Reserved,
    Rpc,
    Scalar,
    Service,
    Value,
    Values,
    Word,
)

_LABELS: Final[Mapping[int, Label]] = {1: "optional", 2: "required", 3: "repeated"}
_GROUP: Final = FieldDescriptorProto.TYPE_GROUP


class OptionReader(Protocol):
    def __call__(self, kind: str, serialized: bytes) -> Proto:
        """Options with whatever extensions are known: of FileOptions, FieldOptions, ..."""


def plain_options(kind: str, serialized: bytes) -> Proto:
    """Without any extension, as it would depend on what else this process has imported."""
    found: Proto = getattr(descriptor_pb2, kind).FromString(serialized)
    return found


def tree_of(descriptor: FileDescriptorProto, read: OptionReader = plain_options) -> File:
    return _Reader(descriptor, read).file()


def has_broken_text(message: Proto) -> bool:
    """The runtime gives bytes for a string of proto2, descriptor.proto's among them, that is not UTF-8."""
    for field, value in message.ListFields():
        values = value if is_repeated(field) else (value,)
        if field.type == FieldDescriptor.TYPE_STRING and not all(isinstance(each, str) for each in values):
            return True
        if field.message_type is not None and not is_map(field) and any(map(has_broken_text, values)):
            return True
    return False


class _Reader:
    __slots__ = ("_descriptor", "_edition", "_proto3", "_read")

    def __init__(self, descriptor: FileDescriptorProto, read: OptionReader) -> None:
        self._descriptor = descriptor
        self._read = read
        self._proto3 = descriptor.syntax == "proto3"
        self._edition = descriptor.syntax == "editions"

    def file(self) -> File:
        of = self._descriptor
        edition = descriptor_pb2.Edition.Name(of.edition).removeprefix("EDITION_") if self._edition else None
        return File(
            syntax=of.syntax if of.syntax and not self._edition else None,
            edition=edition,
            package=of.package or None,
            imports=tuple(Import(path, self._import_kind(n)) for n, path in enumerate(of.dependency)),
            options=self._options("FileOptions", of),
            messages=tuple(self._message(each) for each in of.message_type),
            enums=tuple(self._enum(each) for each in of.enum_type),
            extends=self._extends(of.extension, {}),
            services=tuple(self._service(each) for each in of.service),
        )

    def _import_kind(self, index: int) -> ImportKind:
        if index in self._descriptor.public_dependency:
            return "public"
        return "weak" if index in self._descriptor.weak_dependency else ""

    def _message(self, of: DescriptorProto) -> Message:
        groups = {_last(each.type_name) for each in (*of.field, *of.extension) if each.type == _GROUP}
        bodies = {each.name: self._message(each) for each in of.nested_type}
        fields = [each for each in of.field if each.type != _GROUP]
        return Message(
            name=of.name,
            reserved=_reserved(
                [Range(each.start, each.end - 1) for each in of.reserved_range], of.reserved_name, MAX_FIELD_NUMBER
            ),
            options=self._options("MessageOptions", of),
            fields=tuple(self._field(each) for each in fields if not _in_oneof(each)),
            oneofs=tuple(self._oneof(of, n, bodies) for n in range(len(of.oneof_decl)) if _real(of, n)),
            groups=tuple(self._group(each, bodies) for each in of.field if each.type == _GROUP and not _in_oneof(each)),
            extensions=tuple(
                Extensions((_range(each.start, each.end - 1),), self._options("ExtensionRangeOptions", each))
                for each in of.extension_range
            ),
            extends=self._extends(of.extension, bodies),
            messages=tuple(body for name, body in bodies.items() if name not in groups),
            enums=tuple(self._enum(each) for each in of.enum_type),
        )

    def _oneof(self, of: DescriptorProto, index: int, bodies: Mapping[str, Message]) -> OneOf:
        members = [each for each in of.field if _in_oneof(each) and each.oneof_index == index]
        return OneOf(
            of.oneof_decl[index].name,
            self._options("OneofOptions", of.oneof_decl[index]),
            tuple(self._field(each, member=True) for each in members if each.type != _GROUP),
            tuple(self._group(each, bodies, member=True) for each in members if each.type == _GROUP),
        )

    def _extends(self, of: Iterable[FieldDescriptorProto], bodies: Mapping[str, Message]) -> tuple[Extend, ...]:
        found: dict[str, tuple[list[Field], list[Group]]] = {}
        for each in of:
            fields, groups = found.setdefault(each.extendee, ([], []))
            if each.type == _GROUP and _last(each.type_name) in bodies:
                groups.append(self._group(each, bodies))
            else:
                fields.append(self._field(each))
        return tuple(Extend(name, tuple(fields), tuple(groups)) for name, (fields, groups) in found.items())

    def _label(self, of: FieldDescriptorProto, *, member: bool) -> Label | None:
        label = _LABELS[of.label]
        if member:
            return None
        if label == "optional" and (self._edition or (self._proto3 and not of.proto3_optional)):
            return None
        return label

    def _field(self, of: FieldDescriptorProto, *, member: bool = False) -> Field:
        json_name = of.json_name if of.HasField("json_name") and of.json_name != json_name_of(of.name) else None
        return Field(
            self._label(of, member=member),
            of.type_name or SCALARS[of.type - 1],
            of.name,
            of.number,
            self._options("FieldOptions", of),
            _default(of) if of.HasField("default_value") else None,
            None if json_name is None else json_name.encode(),
        )

    def _group(self, of: FieldDescriptorProto, bodies: Mapping[str, Message], *, member: bool = False) -> Group:
        name = _last(of.type_name)
        body = bodies.get(name) or Message(name)
        return Group(self._label(of, member=member), of.number, body, self._options("FieldOptions", of))

    def _enum(self, of: EnumDescriptorProto) -> Enum:
        constants = (Constant(each.name, each.number, self._options("EnumValueOptions", each)) for each in of.value)
        ranges = [Range(each.start, each.end) for each in of.reserved_range]
        return Enum(
            of.name,
            _reserved(ranges, of.reserved_name, MAX_ENUM_NUMBER),
            self._options("EnumOptions", of),
            tuple(constants),
        )

    def _service(self, of: ServiceDescriptorProto) -> Service:
        rpcs = (
            Rpc(
                each.name,
                each.input_type,
                each.output_type,
                each.client_streaming,
                each.server_streaming,
                self._options("MethodOptions", each),
            )
            for each in of.method
        )
        return Service(of.name, self._options("ServiceOptions", of), tuple(rpcs))

    def _options(self, kind: str, of: Proto) -> Options:
        if not of.HasField("options"):
            return ()
        options = self._read(kind, of.options.SerializeToString())  # type: ignore[attr-defined]
        return tuple(found for field, value in options.ListFields() for found in _option(field, value))


def json_name_of(name: str) -> str:
    """What protoc makes of a field's name: lowerCamelCase."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _in_oneof(of: FieldDescriptorProto) -> bool:
    return of.HasField("oneof_index") and not of.proto3_optional


def _real(of: DescriptorProto, index: int) -> bool:
    """Not the one that stands for proto3's `optional`."""
    members = [each for each in of.field if each.HasField("oneof_index") and each.oneof_index == index]
    return not any(each.proto3_optional for each in members)


def _default(of: FieldDescriptorProto) -> Scalar:
    text = of.default_value
    match SCALARS[of.type - 1] if of.HasField("type") else "enum":
        case "string":
            return text.encode()
        case "bytes":
            try:
                return unquoted(f'"{text}"')
            except (ValueError, OverflowError):
                return text.encode()
        case "enum" | "bool":
            return Word(text)
        case _:
            return Number(text) if text not in {"inf", "nan"} else Word(text)


def _range(first: int, last: int) -> Range:
    return Range(first) if first == last else Range(first, last)


def _reserved(ranges: list[Range], names: Iterable[str], maximum: int) -> tuple[Reserved, ...]:
    numbers = tuple(_range(each.first, min(each.end, maximum)) for each in ranges)
    return tuple(Reserved(values) for values in (numbers, tuple(names)) if values)


# --- options ---


def _option(field: FieldDescriptor, value: object) -> Iterable[Option]:
    if field.name == "uninterpreted_option" and not field.is_extension:
        return
    part = NamePart(field.full_name, custom=True) if field.is_extension else NamePart(field.name)
    if is_repeated(field) and not is_map(field):
        assert isinstance(value, Iterable)
        for item in value:
            yield Option((part,), _value(field, item))
    elif not field.is_extension and field.message_type is not None:
        assert isinstance(value, Proto)
        for inner, item in value.ListFields():  # features.field_presence = ...
            for each in _option(inner, item):
                yield Option((part, *each.parts), each.value)
    else:
        yield Option((part,), _value(field, value))


def _value(field: FieldDescriptor, value: object) -> Value:
    if isinstance(value, Proto):
        return Aggregate(tuple((_key(inner), _inner(inner, item)) for inner, item in value.ListFields()))
    if field.enum_type is not None:
        assert isinstance(value, int)
        named = field.enum_type.values_by_number.get(value)
        return Word(named.name) if named is not None else Number(str(value))
    match value:
        case bool():
            return Word("true" if value else "false")
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            return Number(repr(value)) if isfinite(value) else _endless(value)
        case _:
            return Number(str(value))


def _endless(value: float) -> Scalar:
    return Number(repr(value)) if value < 0 else Word(repr(value))


def _inner(field: FieldDescriptor, value: object) -> Value:
    if is_map(field):
        assert isinstance(value, Mapping) and field.message_type is not None
        kinds = field.message_type.fields_by_name
        return Values(
            tuple(
                Aggregate((("key", _value(kinds["key"], key)), ("value", _value(kinds["value"], value[key]))))
                for key in sorted(value)
            )
        )
    if is_repeated(field):
        assert isinstance(value, Iterable)
        return Values(tuple(_value(field, item) for item in value))
    return _value(field, value)


def _key(field: FieldDescriptor) -> str:
    return f"[{field.full_name}]" if field.is_extension else field.name


def is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
