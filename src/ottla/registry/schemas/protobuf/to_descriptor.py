"""From a tree to a FileDescriptorProto: what `format=serialized` gives and a descriptor pool takes.

Names stay as they were written, as in Confluent's; every pool resolves them. Unlike Confluent's, groups and custom
options are in it, and the type of a map's entries has the name that protoc gives it, which Go and C++ insist on.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message as Proto

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.protobuf.from_descriptor import json_name_of
from ottla.registry.schemas.protobuf.names import Names, within
from ottla.registry.schemas.protobuf.option_values import OptionTypes
from ottla.registry.schemas.protobuf.tokens import quoted
from ottla.registry.schemas.protobuf.tree import (
    SCALAR_NAMES,
    Enum,
    Extend,
    Field,
    File,
    Group,
    Label,
    MapOf,
    Message,
    OneOf,
    Options,
    Range,
    Reserved,
    Scalar,
    Service,
)

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

_LABELS: Final[Mapping[str, FieldDescriptorProto.Label.ValueType]] = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


def descriptor_of(file: File, names: Names, path: str, options: OptionTypes) -> FileDescriptorProto:
    """Raises InvalidSchema if a default or an option has a value that it cannot have, and `options` are strict."""
    return _Writer(file, names, options).file(path)


def map_entry_name(field: str) -> str:
    camel = json_name_of(field)
    return camel[:1].upper() + camel[1:] + "Entry"


class _Writer:
    __slots__ = ("_file", "_names", "_options")

    def __init__(self, file: File, names: Names, options: OptionTypes) -> None:
        self._file = file
        self._names = names
        self._options = options

    def file(self, path: str) -> FileDescriptorProto:
        of = self._file
        into = FileDescriptorProto(name=path)
        if of.package is not None:
            into.package = of.package
        for kind in ("", "weak", "public"):
            for each in of.imports:
                if each.kind != kind:
                    continue
                index = {"public": into.public_dependency, "weak": into.weak_dependency}.get(kind)
                if index is not None:
                    index.append(len(into.dependency))
                into.dependency.append(each.path)
        scope = of.package or ""
        for message in of.messages:
            self._message(into.message_type.add(), message, scope)
        for enum in of.enums:
            self._enum(into.enum_type.add(), enum, scope)
        for extend in of.extends:
            self._extend(into.extension, into.message_type, extend, scope)
        for service in of.services:
            self._service(into.service.add(), service, scope)
        self._set_options("FileOptions", into, of.options, scope)
        if of.syntax is not None:
            into.syntax = of.syntax
        if of.edition is not None:
            into.syntax = "editions"
            into.edition = descriptor_pb2.Edition.Value(f"EDITION_{of.edition}")
        return into

    def _message(self, into: DescriptorProto, of: Message, outer: str) -> None:
        scope = within(outer, of.name)
        into.name = of.name
        for message in of.messages:  # before the types of maps and groups, which then do not count in their indexes
            self._message(into.nested_type.add(), message, scope)
        for field in of.fields:
            if isinstance(field.type, MapOf):
                self._entry(into.nested_type.add(), field.type, map_entry_name(field.name), scope)
        for oneof in of.oneofs:
            self._oneof(into, oneof, scope)
        for field in of.fields:
            self._member(into, field, scope)
        for group in of.groups:
            self._group(into.field.add(), into.nested_type.add(), group, scope)
        for enum in of.enums:
            self._enum(into.enum_type.add(), enum, scope)
        for extend in of.extends:
            self._extend(into.extension, into.nested_type, extend, scope)
        for extensions in of.extensions:
            for each in extensions.ranges:
                target = into.extension_range.add(start=each.first, end=each.end + 1)
                self._set_options("ExtensionRangeOptions", target, extensions.options, scope)
        for value in _reserved_values(of.reserved):
            if isinstance(value, Range):
                into.reserved_range.add(start=value.first, end=value.end + 1)
            else:
                into.reserved_name.append(value)
        self._set_options("MessageOptions", into, of.options, scope)

    def _oneof(self, into: DescriptorProto, of: OneOf, scope: str) -> None:
        index = len(into.oneof_decl)
        self._set_options("OneofOptions", into.oneof_decl.add(name=of.name), of.options, scope)
        for field in of.fields:
            target = into.field.add()
            self._field(target, field, scope)
            target.label = FieldDescriptorProto.LABEL_OPTIONAL
            target.oneof_index = index
        for group in of.groups:
            target = into.field.add()
            self._group(target, into.nested_type.add(), group, scope)
            target.label = FieldDescriptorProto.LABEL_OPTIONAL
            target.oneof_index = index

    def _member(self, into: DescriptorProto, of: Field, scope: str) -> None:
        target = into.field.add()
        self._field(target, of, scope)
        if of.label == "optional" and self._file.proto3:
            target.proto3_optional = True
            target.oneof_index = len(into.oneof_decl)
            taken = {each.name for each in into.oneof_decl} | {each.name for each in into.field}
            name = f"_{of.name}"
            while name in taken:
                name = f"X{name}"
            into.oneof_decl.add(name=name)

    def _entry(self, into: DescriptorProto, of: MapOf, name: str, scope: str) -> None:
        into.name = name
        label: Label | None = None if self._file.proto3 or self._file.edition else "optional"
        for number, (member, kind) in enumerate((("key", of.key), ("value", of.value)), 1):
            self._field(into.field.add(), Field(label, kind, member, number), within(scope, name))
        into.options.map_entry = True

    def _field(self, into: FieldDescriptorProto, of: Field, scope: str) -> None:
        into.name, into.number = of.name, of.number
        if of.label is not None:
            into.label = _LABELS[of.label]
        if isinstance(of.type, MapOf):
            into.label = FieldDescriptorProto.LABEL_REPEATED
            into.type = FieldDescriptorProto.TYPE_MESSAGE
            into.type_name = map_entry_name(of.name)
        else:
            self._type(into, of.type, scope)
        if of.default is not None:
            self._default(into, of.default)
        if of.json_name is not None:
            into.json_name = of.json_name.decode("utf-8", "replace")
        self._set_options("FieldOptions", into, of.options, scope)

    def _type(self, into: FieldDescriptorProto, name: str, scope: str) -> None:
        if name in SCALAR_NAMES:
            into.type = FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
            return
        into.type_name = name
        found = self._names.find(name, scope)
        if found is not None:  # otherwise left to whoever resolves it
            enum = isinstance(found.element, Enum)
            into.type = FieldDescriptorProto.TYPE_ENUM if enum else FieldDescriptorProto.TYPE_MESSAGE

    def _default(self, into: FieldDescriptorProto, value: Scalar) -> None:
        wants_string = into.type in {FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES}
        if isinstance(value, bytes) != wants_string:
            if self._options.strict:
                raise InvalidSchema(f"the default of the field {into.name} does not fit its type")
        elif not isinstance(value, bytes):
            into.default_value = value.text
        elif into.type == FieldDescriptorProto.TYPE_BYTES:
            into.default_value = quoted(value)[1:-1]
        else:
            into.default_value = value.decode("utf-8", "replace")

    def _group(self, into: FieldDescriptorProto, body: DescriptorProto, of: Group, scope: str) -> None:
        into.name, into.number = of.name.lower(), of.number
        if of.label is not None:
            into.label = _LABELS[of.label]
        into.type = FieldDescriptorProto.TYPE_GROUP
        into.type_name = of.name
        self._set_options("FieldOptions", into, of.options, scope)
        self._message(body, of.body, scope)

    def _extend(
        self,
        fields: "RepeatedCompositeFieldContainer[FieldDescriptorProto]",
        bodies: "RepeatedCompositeFieldContainer[DescriptorProto]",
        of: Extend,
        scope: str,
    ) -> None:
        for field in of.fields:
            target = fields.add()
            self._field(target, field, scope)
            target.extendee = of.name
            if field.label == "optional" and self._file.proto3:
                target.proto3_optional = True
        for group in of.groups:
            target = fields.add()
            self._group(target, bodies.add(), group, scope)
            target.extendee = of.name

    def _enum(self, into: EnumDescriptorProto, of: Enum, outer: str) -> None:
        into.name = of.name
        for constant in of.constants:
            target = into.value.add(name=constant.name, number=constant.number)
            self._set_options("EnumValueOptions", target, constant.options, outer)
        for value in _reserved_values(of.reserved):
            if isinstance(value, Range):
                into.reserved_range.add(start=value.first, end=value.end)
            else:
                into.reserved_name.append(value)
        self._set_options("EnumOptions", into, of.options, within(outer, of.name))

    def _service(self, into: ServiceDescriptorProto, of: Service, scope: str) -> None:
        into.name = of.name
        for rpc in of.rpcs:
            target = into.method.add(name=rpc.name, input_type=rpc.request, output_type=rpc.response)
            if rpc.request_stream:
                target.client_streaming = True
            if rpc.response_stream:
                target.server_streaming = True
            self._set_options("MethodOptions", target, rpc.options, scope)
        self._set_options("ServiceOptions", into, of.options, scope)

    def _set_options(self, kind: str, into: Proto, options: Options, scope: str) -> None:
        if options and (serialized := self._options.serialized(kind, options, scope)):
            into.options.MergeFromString(serialized)  # type: ignore[attr-defined]


def _reserved_values(reserved: Iterable[Reserved]) -> Iterable[Range | str]:
    return (value for each in reserved for value in each.values)
