"""Options as bytes: what stands in a tree as text gets the types that descriptor.proto or an extension says.

An option that nobody knows is left out, as Confluent's server does and as protoc's own have come and gone; one that is
known and has a value of another type is an error in a new schema, and left out of one that was taken long ago.
"""

from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.protobuf.from_descriptor import is_map, is_repeated
from ottla.registry.schemas.protobuf.names import Names
from ottla.registry.schemas.protobuf.parser import integer
from ottla.registry.schemas.protobuf.tree import Aggregate, NamePart, Number, Option, Options, Value, Values, Word

_FLOATS: Final = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


@dataclass(frozen=True, slots=True)
class Extended:
    """Where extensions are found: their names, and a pool that has all of them and descriptor.proto."""

    names: Names
    pool: DescriptorPool

    def find(self, name: str, scope: str) -> FieldDescriptor | None:
        found = self.names.find_extension(name, scope)
        if found is None:
            return None
        try:
            return self.pool.FindExtensionByName(found.full_name)
        except KeyError:
            return None


@dataclass(frozen=True, slots=True)
class OptionTypes:
    extended: Extended | None = None
    """None: custom options are left out."""
    strict: bool = False

    def new(self, kind: str) -> Proto:
        if self.extended is not None:
            try:
                return GetMessageClass(self.extended.pool.FindMessageTypeByName(f"google.protobuf.{kind}"))()
            except KeyError:  # nothing extends options here
                pass
        plain: Proto = getattr(descriptor_pb2, kind)()
        return plain

    def read(self, kind: str, serialized: bytes) -> Proto:
        """Of an OptionReader."""
        options = self.new(kind)
        options.ParseFromString(serialized)
        return options

    def serialized(self, kind: str, options: Options, scope: str) -> bytes:
        """Options that are already there come before these."""
        into = self.new(kind)
        for option in options:
            if option.custom and self.extended is None:
                continue
            try:
                self._set(into, option.parts, option.value, scope)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                if self.strict:
                    raise InvalidSchema(f"the option {_name_of(option)} cannot have this value: {error}") from None
        return into.SerializePartialToString(deterministic=True)

    def _set(self, into: Proto, parts: tuple[NamePart, ...], value: Value, scope: str) -> None:
        field = self._field(into, parts[0], scope)
        if field is None:
            return
        if len(parts) == 1:
            self._assign(into, field, value, scope)
            return
        if field.message_type is None or is_repeated(field):
            raise ValueError(f"{parts[0].name} has no fields that could be set")
        inner = _get(into, field)
        inner.SetInParent()
        self._set(inner, parts[1:], value, scope)

    def _field(self, of: Proto, part: NamePart, scope: str) -> FieldDescriptor | None:
        if not part.custom:
            plain: FieldDescriptor | None = of.DESCRIPTOR.fields_by_name.get(part.name)  # type: ignore[assignment]
            return plain
        found = None if self.extended is None else self.extended.find(part.name, scope)
        return found if found is not None and found.containing_type == of.DESCRIPTOR else None

    def _assign(self, into: Proto, field: FieldDescriptor, value: Value, scope: str) -> None:
        if is_repeated(field):
            for item in value.items if isinstance(value, Values) else (value,):
                self._add(_get(into, field), field, item, scope)
        elif field.message_type is not None:
            inner = _get(into, field)
            inner.SetInParent()
            self._fill(inner, value, scope)
        elif field.is_extension:
            _extensions(into)[field] = _scalar(field, value)
        else:
            setattr(into, field.name, _scalar(field, value))

    def _add(self, into: Any, field: FieldDescriptor, value: Value, scope: str) -> None:
        if field.message_type is None:
            assert isinstance(into, MutableSequence)
            into.append(_scalar(field, value))
        elif is_map(field):
            entry: Any = GetMessageClass(field.message_type)()
            self._fill(entry, value, scope)
            if field.message_type.fields_by_name["value"].message_type is None:
                into[entry.key] = entry.value
            else:
                into[entry.key].CopyFrom(entry.value)
        else:
            self._fill(into.add(), value, scope)

    def _fill(self, into: Proto, value: Value, scope: str) -> None:
        if not isinstance(value, Aggregate):
            raise ValueError("a message is written in braces")
        for key, each in value.entries:
            custom = key.startswith("[")
            part = NamePart(key[1:-1] if custom else key, custom)
            field = self._field(into, part, scope)
            if field is None:
                raise ValueError(f"{into.DESCRIPTOR.full_name} has no field {key}")
            self._assign(into, field, each, scope)


def _name_of(option: Option) -> str:
    return ".".join(f"({part.name})" if part.custom else part.name for part in option.parts)


def _extensions(of: Proto) -> Any:
    return of.Extensions


def _get(message: Proto, field: FieldDescriptor) -> Any:
    return _extensions(message)[field] if field.is_extension else getattr(message, field.name)


def _scalar(field: FieldDescriptor, value: Value) -> object:
    """Raises ValueError, KeyError or TypeError if it is no value of this field's type."""
    kind = field.cpp_type
    match value:
        case Word(text) if field.enum_type is not None:
            return field.enum_type.values_by_name[text].number
        case Word("true" | "false") if kind == FieldDescriptor.CPPTYPE_BOOL:
            return value.text == "true"
        case Word("inf" | "nan") if kind in _FLOATS:
            return float(value.text)
        case Number(text) if kind in _FLOATS:
            return float(integer(text)) if text.removeprefix("-").isalnum() and "x" in text.lower() else float(text)
        case Number(text) if field.enum_type is not None or kind not in {
            FieldDescriptor.CPPTYPE_STRING,
            FieldDescriptor.CPPTYPE_BOOL,
        }:
            return integer(text)
        case bytes() if kind == FieldDescriptor.CPPTYPE_STRING:
            return value if field.type == FieldDescriptor.TYPE_BYTES else value.decode("utf-8")
        case _:
            raise ValueError(f"{field.name} takes another type")
