"""Messages of Protobuf as Connect's schemas, and what was read of them as Connect's values."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor

from ottla.connect.converters.protobuf_mapping import (
    CONNECT_TYPE,
    ENTRY,
    GENERAL_UNION,
    KIND,
    LOGICAL_OF,
    PRECISION,
    SCALAR_OF_WRAPPER,
    TAG,
    UNION_PREFIX,
    Mapping,
    inner_message,
    is_map,
    optional_fields,
)
from ottla.connect.data.dates import MILLIS_PER_DAY, Moment, millis_of, moment
from ottla.connect.data.errors import DataException
from ottla.connect.data.logical import (
    DATE,
    DATE_NAME,
    DECIMAL_NAME,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    decimal_of,
    decimal_schema,
)
from ottla.connect.data.schema import Schema, array_schema, map_schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import BITS, Instant, Type, wrapped
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget

Read: TypeAlias = Callable[[Any], Any]
Params: TypeAlias = dict[str, dict[str, str]]

_SCALARS: Final = {
    FieldDescriptor.TYPE_INT32: (Type.INT32, None),
    FieldDescriptor.TYPE_SINT32: (Type.INT32, "sint32"),
    FieldDescriptor.TYPE_SFIXED32: (Type.INT32, "sfixed32"),
    FieldDescriptor.TYPE_UINT32: (Type.INT64, "uint32"),
    FieldDescriptor.TYPE_FIXED32: (Type.INT64, "fixed32"),
    FieldDescriptor.TYPE_INT64: (Type.INT64, None),
    FieldDescriptor.TYPE_UINT64: (Type.INT64, "uint64"),
    FieldDescriptor.TYPE_SINT64: (Type.INT64, "sint64"),
    FieldDescriptor.TYPE_FIXED64: (Type.INT64, "fixed64"),
    FieldDescriptor.TYPE_SFIXED64: (Type.INT64, "sfixed64"),
    FieldDescriptor.TYPE_FLOAT: (Type.FLOAT32, None),
    FieldDescriptor.TYPE_DOUBLE: (Type.FLOAT64, None),
    FieldDescriptor.TYPE_BOOL: (Type.BOOLEAN, None),
    FieldDescriptor.TYPE_STRING: (Type.STRING, None),
    FieldDescriptor.TYPE_BYTES: (Type.BYTES, None),
}
_NARROW: Final = {"int8": Type.INT8, "int16": Type.INT16}
_LOGICAL: Final = {DATE_NAME: DATE, TIME_NAME: TIME, TIMESTAMP_NAME: TIMESTAMP}
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_NANOS_PER_MILLI: Final = 1_000_000


# ---- schemas


class Schemas:
    """Of one schema of the registry. `params`: of its fields, by full name."""

    __slots__ = ("_budget", "_inside", "_mapping", "_params")

    def __init__(self, mapping: Mapping, params: Params) -> None:
        self._mapping = mapping
        self._params = params
        self._inside: list[str] = []
        self._budget = Budget(DEFAULT_STEPS)

    def of_record(self, message: Descriptor) -> Schema:
        """Raises DataException for a message that contains itself: Connect has no such."""
        scalar = SCALAR_OF_WRAPPER.get(message.full_name) if self._mapping.raw_wrappers else None
        return self._struct(message) if scalar is None else Schema(scalar)

    def params_of(self, field: FieldDescriptor) -> dict[str, str]:
        return self._params.get(field.full_name, {})

    def _struct(self, message: Descriptor) -> Schema:
        self._budget.spend()
        if message.full_name in self._inside:
            raise DataException(f"The message {message.full_name} contains itself, which Connect's schemas cannot")
        self._inside.append(message.full_name)
        fields = [(name, self._member(member)) for name, member in members(message, self._mapping)]
        self._inside.pop()
        return struct_schema(fields, name=message.full_name if self._mapping.full_names else message.name)

    def _member(self, member: FieldDescriptor | OneofDescriptor) -> Schema:
        if isinstance(member, FieldDescriptor):
            return self._field(member)
        fields = [(field.name, self._field(field)) for field in member.fields]
        if self._mapping.general_sums:
            return struct_schema(fields, name=member.name, parameters={GENERAL_UNION: member.name}, optional=True)
        name = member.full_name if self._mapping.full_names else member.name
        return struct_schema(fields, name=f"{UNION_PREFIX}{name}", optional=True)

    def _field(self, field: FieldDescriptor) -> Schema:
        mapping = self._mapping
        always = field.is_repeated or field.enum_type is not None or field.message_type is not None
        optional = always or (_says_optional(field) if mapping.optional_keyword else not mapping.wrappers)
        if is_map(field, self.params_of(field)):
            schema = self._map(inner_message(field))
        else:
            schema = self._single(field)
            if field.is_repeated:
                schema = array_schema(schema.but(optional=True))
        return schema.but(optional=optional, parameters={**(schema.parameters or {}), TAG: str(field.number)})

    def _map(self, entry: Descriptor) -> Schema:
        name = entry.full_name if self._mapping.full_names else entry.name
        key, value = entry.fields
        return map_schema(self._field(key), self._field(value), name=_map_name(name))

    def _single(self, field: FieldDescriptor) -> Schema:
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        if field.message_type is not None:
            return self._message(field, field.message_type)
        kind, own = _SCALARS[field.type]
        narrow = _NARROW.get(self.params_of(field).get(CONNECT_TYPE, "")) if kind is Type.INT32 else None
        if narrow is not None:
            return Schema(narrow)
        return Schema(kind) if own is None else Schema(kind, parameters={KIND: own})

    def _enum(self, enum: EnumDescriptor) -> Schema:
        parameter = self._mapping.enum_parameter
        symbols = {f"{parameter}.{value.name}": str(value.number) for value in enum.values}
        return Schema(
            Type.INT32 if self._mapping.enum_numbers else Type.STRING,
            name=enum.full_name if self._mapping.full_names else enum.name,
            parameters={parameter: enum.name, **symbols},
        )

    def _message(self, field: FieldDescriptor, message: Descriptor) -> Schema:
        logical = LOGICAL_OF.get(message.full_name)
        if logical == DECIMAL_NAME:
            return _decimal(self.params_of(field))
        if logical is not None:
            return _LOGICAL[logical]
        scalar = SCALAR_OF_WRAPPER.get(message.full_name) if self._mapping.wrappers else None
        if scalar is Type.INT32:
            return Schema(_NARROW.get(self.params_of(field).get(CONNECT_TYPE, ""), scalar))
        return self._struct(message) if scalar is None else Schema(scalar)


def members(message: Descriptor, mapping: Mapping) -> list[tuple[str, FieldDescriptor | OneofDescriptor]]:
    """Oneofs first, each one field of the struct, unless they are flat."""
    said = optional_fields(message)
    unions = []
    for index, oneof in enumerate(message.oneofs):
        if not mapping.flat_unions and oneof.fields[0].name not in said:
            unions.append((f"{oneof.name}_{index}" if mapping.union_index else oneof.name, oneof))
    inside = {field.name for _, oneof in unions for field in oneof.fields}
    return [*unions, *((field.name, field) for field in message.fields if field.name not in inside)]


def _says_optional(field: FieldDescriptor) -> bool:
    """As proto3 may and proto2 does of everything that is not required."""
    if field.containing_oneof is not None:
        assert field.containing_type is not None, field.full_name
        return field.name in optional_fields(field.containing_type)
    return field.has_presence and not field.is_required


def _decimal(params: dict[str, str]) -> Schema:
    scale, precision = params.get("scale", "0"), params.get("precision")
    schema = decimal_schema(int(scale) if scale.lstrip("-").isdecimal() else 0)
    if precision is None or not precision.isdecimal():
        return schema
    return schema.but(parameters={**(schema.parameters or {}), PRECISION: precision})


def _map_name(entry: str) -> str:
    space, dot, simple = entry.rpartition(".")
    return space + dot + _CAPITAL.sub("_", simple.removesuffix(ENTRY)).lower()


# ---- values


def record_reader(message: Descriptor, schema: Schema, schemas: Schemas, mapping: Mapping) -> Read:
    """Of messages that were parsed."""
    if schema.type is not Type.STRUCT:
        return _wrapped_reader(schema)
    return _struct_reader(message, schema, schemas, mapping)


def _struct_reader(message: Descriptor, schema: Schema, schemas: Schemas, mapping: Mapping) -> Read:
    said = optional_fields(message)
    reads: list[Read] = []
    for (_, member), field in zip(members(message, mapping), schema.fields, strict=True):
        if isinstance(member, FieldDescriptor):
            read = _field_reader(member, field.schema, schemas, mapping)
            reads.append(_present(member.name, read) if _may_lack(member, said, mapping) else _got(member.name, read))
        else:
            reads.append(_union_reader(member, field.schema, schemas, mapping))
    return lambda found: Struct.of(schema, [read(found) for read in reads])


def _may_lack(field: FieldDescriptor, said: frozenset[str], mapping: Mapping) -> bool:
    """Whether it is null when it is not there; else it is its default."""
    if field.is_repeated:
        return False
    if field.message_type is not None:
        return not mapping.structs_for_nulls or field.containing_oneof is not None
    if field.containing_oneof is not None:
        return True
    return field.name in said or (mapping.proto2_optional and field.has_presence and not field.is_required)


def _got(name: str, read: Read) -> Read:
    return lambda found: read(getattr(found, name))


def _present(name: str, read: Read) -> Read:
    return lambda found: read(getattr(found, name)) if found.HasField(name) else None


def _union_reader(oneof: OneofDescriptor, schema: Schema, schemas: Schemas, mapping: Mapping) -> Read:
    name, count = oneof.name, len(oneof.fields)
    by_name = {
        field.name: (place, _field_reader(field, schema.fields[place].schema, schemas, mapping))
        for place, field in enumerate(oneof.fields)
    }

    def read(found: Any) -> Struct | None:
        which = found.WhichOneof(name)
        if which is None:
            return None
        place, read_one = by_name[which]
        values: list[Any] = [None] * count
        values[place] = read_one(getattr(found, which))
        return Struct.of(schema, values)

    return read


def _field_reader(field: FieldDescriptor, schema: Schema, schemas: Schemas, mapping: Mapping) -> Read:
    if schema.type is Type.MAP:
        return _map_reader(inner_message(field), schema, schemas, mapping)
    if field.is_repeated:
        assert schema.value_schema is not None
        items = _single_reader(field, schema.value_schema, schemas, mapping)
        return lambda found: [items(each) for each in found]
    return _single_reader(field, schema, schemas, mapping)


def _map_reader(entry: Descriptor, schema: Schema, schemas: Schemas, mapping: Mapping) -> Read:
    assert schema.key_schema is not None and schema.value_schema is not None
    key_field, value_field = entry.fields
    keys = _single_reader(key_field, schema.key_schema, schemas, mapping)
    values = _field_reader(value_field, schema.value_schema, schemas, mapping)
    if entry.GetOptions().map_entry:
        return lambda found: {keys(key): values(each) for key, each in found.items()}
    if _may_lack(value_field, optional_fields(entry), mapping):
        value_of = _present("value", values)
    else:
        value_of = _got("value", values)
    return lambda found: {keys(each.key): value_of(each) for each in found}


def _single_reader(field: FieldDescriptor, schema: Schema, schemas: Schemas, mapping: Mapping) -> Read:
    if field.enum_type is not None:
        return _as_it_is if schema.type is Type.INT32 else _symbols(field.enum_type)
    message = field.message_type
    if message is None:
        return _number(schema.type) if field.type in _UNSIGNED or schema.type in _NARROW.values() else _as_it_is
    logical = LOGICAL_OF.get(message.full_name)
    if logical is not None:
        return _LOGICAL_READERS[logical]
    if schema.type is not Type.STRUCT:
        return _wrapped_reader(schema)
    return _struct_reader(message, schema, schemas, mapping)


_UNSIGNED: Final = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
"""What is too big for a long is negative, as in Java; written again it is what it was."""


def _as_it_is(found: Any) -> Any:
    return found


def _number(type: Type) -> Read:
    bits = BITS[type]
    return lambda found: wrapped(found, bits)


def _wrapped_reader(schema: Schema) -> Read:
    if schema.type in BITS:
        number = _number(schema.type)
        return lambda found: number(found.value)
    return lambda found: found.value


def _symbols(enum: EnumDescriptor) -> Read:
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda found: names.get(found) or f"UNKNOWN_ENUM_VALUE_{enum.name}_{found}"


def _read_decimal(found: Any) -> Any:
    if not found.value:
        raise DataException("Invalid bytes for Decimal field")
    return decimal_of(int.from_bytes(found.value, "big", signed=True), found.scale)


def _read_date(found: Any) -> Instant:
    day = Moment(found.year, found.month, found.day, 0, 0, 0, 0)
    millis = millis_of(day) if found.year > 0 else 0
    if moment(millis) != day:
        raise DataException(f"Invalid Date: {found.year}-{found.month}-{found.day}")
    return Instant(millis)


def _read_time(found: Any) -> Instant:
    seconds = (found.hours * 60 + found.minutes) * 60 + found.seconds
    millis = seconds * 1000 + found.nanos // _NANOS_PER_MILLI
    if not (0 <= found.minutes < 60 and 0 <= found.seconds < 60 and 0 <= millis < MILLIS_PER_DAY):
        raise DataException(f"Invalid Time: {found.hours}:{found.minutes}:{found.seconds} and {found.nanos} ns")
    return Instant(millis)


def _read_timestamp(found: Any) -> Instant:
    return Instant(found.seconds * 1000 + found.nanos // _NANOS_PER_MILLI)


_LOGICAL_READERS: Final[dict[str, Read]] = {
    DECIMAL_NAME: _read_decimal,
    DATE_NAME: _read_date,
    TIME_NAME: _read_time,
    TIMESTAMP_NAME: _read_timestamp,
}
