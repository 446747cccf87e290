"""Records as Protobuf messages of a schema of a registry: `Serdes.protobuf`.

A message is a struct of its fields by number, an enum the name of its value (a number that has none is its digits), a
map from strings a map and one from others an array of structs of key and value, uint32 a long and uint64 a decimal(20,
0). Timestamps and the wrappers of google.protobuf are what they stand for. A field with presence that is not set is
null; one without is never null, as its default is not told from nothing. Bytes are read with the serde's own message
whatever message wrote them: fields are known by their numbers, and those that it has not are passed over.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ottla.registry.lookup import Registry
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Resolved, TooComplex
from ottla.registry.schemas.protobuf import Protobuf, ProtobufSchema
from ottla.serdes import dates
from ottla.serdes.arrow import to_column
from ottla.serdes.base import shown_value
from ottla.serdes.registered import Decode, Encode, RegisteredSerde
from ottla.serdes.schema_ids import SchemaId, read_indexes, write_indexes
from ottla.serdes.types import (
    ANY,
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    MOST_PARTS,
    STRING,
    TIMESTAMP,
    Type,
    array_of,
    decimal_of,
    map_of,
    struct_of,
)

Read: TypeAlias = Callable[[Any], Any]
Fill: TypeAlias = Callable[[Message, Any], None]
Put: TypeAlias = Callable[[Message, str, Any], None]

_KINDS: Final = {
    FieldDescriptor.CPPTYPE_INT32: INT,
    FieldDescriptor.CPPTYPE_INT64: LONG,
    FieldDescriptor.CPPTYPE_UINT32: LONG,
    FieldDescriptor.CPPTYPE_UINT64: decimal_of(20),
    FieldDescriptor.CPPTYPE_FLOAT: DOUBLE,
    FieldDescriptor.CPPTYPE_DOUBLE: DOUBLE,
    FieldDescriptor.CPPTYPE_BOOL: BOOLEAN,
}
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class ProtobufSerde(RegisteredSerde[ProtobufSchema]):
    """Protobuf, with the schema's id and the message's place in front of the payload or in a header; both are read.

    Serdes.protobuf(registry, text, message="shop.Order")   a message of this .proto file; by default its first
    Serdes.protobuf(registry, subject="orders-value")       of the latest schema of the subject, asked for now
    Serdes.protobuf(registry)                               reads whatever messages there are; the value has no type

    Other options are those of `RegisteredSerde`.
    """

    name = "protobuf"
    language = "PROTOBUF"
    faults = (DecodeError, EncodeError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError)

    def __init__(
        self, registry: Registry, schema: str | None = None, *, message: str | None = None, **options: Any
    ) -> None:
        self.message = message
        super().__init__(registry, schema, **options)

    def parse(self, text: str, resolved: Sequence[Resolved]) -> ProtobufSchema:
        return Protobuf().parse(text, resolved, Budget(DEFAULT_STEPS), new=False)

    def type_of(self, schema: ProtobufSchema) -> Type:
        try:
            return _type_of(self._own(schema), (), Budget(MOST_PARTS))
        except (_Recursive, TooComplex):
            return ANY

    def record_name(self, schema: ProtobufSchema) -> str:
        return self._message_name(schema)

    def indexes(self, schema: ProtobufSchema) -> bytes:
        return write_indexes(schema.message_indexes(self._message_name(schema)))

    def decoding(self, writer: ProtobufSchema, found: SchemaId, *, for_columns: bool) -> Decode:
        own = self.own_schema()
        if own is None:
            return self._decoding_any(writer, found)
        read, made = reading(self._own(own)), GetMessageClass(self._own(own))
        convert = to_column(self.type) if for_columns else None

        def decode(data: bytes, start: int) -> Any:
            place = start if found.indexes is not None else read_indexes(data, start)[1]
            value = read(made.FromString(data[place:]))
            return value if convert is None else convert(value)

        return decode

    def _decoding_any(self, writer: ProtobufSchema, found: SchemaId) -> Decode:
        """With the writer's own messages, of which each record says which it is."""
        known: dict[tuple[int, ...], tuple[type[Message], Read]] = {}
        pool = writer.pool()

        def decode(data: bytes, start: int) -> Any:
            indexes, place = read_indexes(data, start) if found.indexes is None else read_indexes(found.indexes, 0)
            if indexes not in known:
                descriptor = pool.FindMessageTypeByName(writer.message_name(indexes))
                known[indexes] = GetMessageClass(descriptor), reading(descriptor)
            made, read = known[indexes]
            return read(made.FromString(data[place if found.indexes is None else start :]))

        return decode

    def encoding(self, schema: ProtobufSchema) -> Encode:
        descriptor = self._own(schema)
        made, fill = GetMessageClass(descriptor), filling(descriptor)

        def encode(value: Any) -> bytes:
            message = made()
            fill(message, value)
            return message.SerializeToString(deterministic=True)

        return encode

    def _own(self, schema: ProtobufSchema) -> Descriptor:
        return schema.pool().FindMessageTypeByName(self._message_name(schema))

    def _message_name(self, schema: ProtobufSchema) -> str:
        if self.message is None:
            return schema.message_name((0,))
        try:
            schema.message_indexes(self.message)
        except LookupError:
            raise ValueError(f"the schema has no message {self.message}") from None
        return self.message


# ---- types


class _Recursive(Exception):
    """A message was met inside of itself."""


def _type_of(message: Descriptor, inside: tuple[str, ...], budget: Budget) -> Type:
    budget.spend(1 + len(message.fields))
    if message.full_name == _TIMESTAMP:
        return TIMESTAMP
    if message.full_name in _WRAPPERS:
        return _single(message.fields_by_name["value"], inside, budget)
    if message.full_name in inside:
        raise _Recursive
    if not message.fields:
        return ANY  # a struct without fields is none
    around = (*inside, message.full_name)
    return struct_of({field.name: _field_type(field, around, budget) for field in _fields(message)})


def _fields(message: Descriptor) -> list[FieldDescriptor]:
    """By number: in the text that a registry keeps, those of a oneof stand elsewhere than in the text that was sent."""
    return sorted(message.fields, key=lambda field: field.number)


def _field_type(field: FieldDescriptor, inside: tuple[str, ...], budget: Budget) -> Type:
    if _is_map(field):
        key, value = _entry(field)
        kind = _single(value, inside, budget)
        if key.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return map_of(kind)
        return array_of(struct_of({"key": _single(key, inside, budget), "value": kind}))
    kind = _single(field, inside, budget)
    return array_of(kind) if field.is_repeated else kind


def _single(field: FieldDescriptor, inside: tuple[str, ...], budget: Budget) -> Type:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _type_of(_message(field), inside, budget)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return STRING
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return BINARY if field.type == FieldDescriptor.TYPE_BYTES else STRING
    return _KINDS[field.cpp_type]


def _message(field: FieldDescriptor) -> Descriptor:
    assert field.message_type is not None, field.full_name
    return field.message_type


def _enum(field: FieldDescriptor) -> EnumDescriptor:
    assert field.enum_type is not None, field.full_name
    return field.enum_type


def _entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Key and value of a map."""
    key, value = _message(field).fields
    return key, value


def _is_map(field: FieldDescriptor) -> bool:
    message = field.message_type
    return bool(field.is_repeated and message is not None and message.GetOptions().map_entry)


# ---- reading


def reading(message: Descriptor) -> Read:
    """From a message to a value."""
    return _Readings().of_message(message)


class _Readings:
    def __init__(self) -> None:
        self._made: dict[str, Read] = {}

    def of_message(self, message: Descriptor) -> Read:
        if message.full_name == _TIMESTAMP:
            return _read_timestamp
        if message.full_name in _WRAPPERS:
            inner = self._single(message.fields_by_name["value"])
            return lambda found: inner(found.value)
        known = self._made.get(message.full_name)
        if known is not None:
            return known
        steps: list[tuple[str, bool, Read]] = []

        def read(found: Any) -> Any:
            return {
                name: None if optional and not found.HasField(name) else convert(getattr(found, name))
                for name, optional, convert in steps
            }

        self._made[message.full_name] = read
        for field in _fields(message):
            steps.append((field.name, field.has_presence, self._field(field)))
        return read

    def _field(self, field: FieldDescriptor) -> Read:
        if _is_map(field):
            key, value = (self._single(each) for each in _entry(field))
            if _entry(field)[0].cpp_type == FieldDescriptor.CPPTYPE_STRING:
                return lambda found: {name: value(each) for name, each in sorted(found.items())}
            return lambda found: [{"key": key(name), "value": value(each)} for name, each in sorted(found.items())]
        single = self._single(field)
        return (lambda found: [single(each) for each in found]) if field.is_repeated else single

    def _single(self, field: FieldDescriptor) -> Read:
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_MESSAGE:
                return self.of_message(_message(field))
            case FieldDescriptor.CPPTYPE_ENUM:
                names = {number: value.name for number, value in _enum(field).values_by_number.items()}
                return lambda number: names.get(number) or str(number)
            case FieldDescriptor.CPPTYPE_UINT64:
                return Decimal
        return _as_it_is


def _as_it_is(found: Any) -> Any:
    return found


def _read_timestamp(found: Any) -> datetime:
    moment = dates.timestamp_of(found.seconds * 1000 + found.nanos // 1_000_000)
    if moment is None:
        raise ValueError(f"{found.seconds} seconds is no timestamp between the years 1 and 9999")
    return moment


# ---- writing


def filling(message: Descriptor) -> Fill:
    """From a value into a message."""
    return _Fillings().of_message(message)


class _Fillings:
    def __init__(self) -> None:
        self._made: dict[str, Fill] = {}

    def of_message(self, message: Descriptor) -> Fill:
        if message.full_name == _TIMESTAMP:
            return _fill_timestamp
        if message.full_name in _WRAPPERS:
            put = self._put(message.fields_by_name["value"])
            return lambda into, value: put(into, "value", value)
        known = self._made.get(message.full_name)
        if known is not None:
            return known
        puts: dict[str, Put] = {}

        def fill(into: Message, value: Any) -> None:
            if not isinstance(value, dict):
                raise TypeError(f"a dict expected, not {type(value).__name__} {shown_value(value)}")
            into.SetInParent()
            for name, each in value.items():
                if name not in puts:
                    raise ValueError(f"{message.full_name} has no field {name}")
                if each is not None:
                    try:
                        puts[name](into, name, each)
                    except (TypeError, ValueError) as error:
                        raise type(error)(f"{name}: {error}") from None

        self._made[message.full_name] = fill
        for field in message.fields:
            puts[field.name] = self._put(field)
        return fill

    def _put(self, field: FieldDescriptor) -> Put:
        if _is_map(field):
            return self._map(field)
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            fill = self.of_message(_message(field))
            if field.is_repeated:
                return _filling_each(fill)
            return lambda into, name, value: fill(getattr(into, name), value)
        raw = _raw(field)
        if field.is_repeated:
            return lambda into, name, value: getattr(into, name).extend(map(raw, value))
        return lambda into, name, value: setattr(into, name, raw(value))

    def _map(self, field: FieldDescriptor) -> Put:
        key, value = _entry(field)
        raw_key = _raw(key)
        fill = self.of_message(value.message_type) if value.message_type is not None else None
        raw_value = _as_it_is if fill is not None else _raw(value)

        def put(into: Message, name: str, given: Any) -> None:
            entries = given if isinstance(given, Mapping) else {each["key"]: each["value"] for each in given}
            held = getattr(into, name)
            for each, inner in entries.items():
                if fill is not None:
                    fill(held[raw_key(each)], inner)
                else:
                    held[raw_key(each)] = raw_value(inner)

        return put


def _filling_each(fill: Fill) -> Put:
    def put(into: Message, name: str, given: Any) -> None:
        for each in given:
            fill(getattr(into, name).add(), each)

    return put


def _raw(field: FieldDescriptor) -> Read:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_ENUM:
            numbers = {name: value.number for name, value in _enum(field).values_by_name.items()}
            return lambda name: _number_of(name, numbers)
        case FieldDescriptor.CPPTYPE_UINT64:
            return int
    return _as_it_is


def _number_of(name: Any, numbers: Mapping[str, int]) -> int:
    if name in numbers:
        return numbers[name]
    if isinstance(name, str) and name.lstrip("-").isdecimal():
        return int(name)
    raise ValueError(f"one of {', '.join(numbers)} expected, not {shown_value(name)}")


def _fill_timestamp(into: Any, value: Any) -> None:
    if not isinstance(value, datetime):
        raise TypeError(f"a datetime expected, not {type(value).__name__} {shown_value(value)}")
    into.seconds, rest = divmod(dates.ms_of(value), 1000)
    into.nanos = rest * 1_000_000
    into.SetInParent()
