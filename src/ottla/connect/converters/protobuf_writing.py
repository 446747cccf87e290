"""Connect's values as messages of a schema of the registry: fields are found by their names."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from ottla.connect.converters.protobuf_mapping import MESSAGE_OF, Mapping, enum_symbols, inner_message, is_union
from ottla.connect.converters.protobuf_rendering import Names
from ottla.connect.data.dates import MILLIS_PER_DAY, moment
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_to_days,
    scale_of,
    time_to_millis,
    timestamp_to_millis,
    unscaled_of,
)
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct, fits
from ottla.connect.data.types import Instant, Type

Fill: TypeAlias = Callable[[Any, Any], None]
"""Puts a value into a message."""
Put: TypeAlias = Callable[[Any, Any], None]
"""Puts a value that is not null into the field of a message."""
Raw: TypeAlias = Callable[[Any], Any]

_BITS: Final = {
    FieldDescriptor.TYPE_UINT32: 32,
    FieldDescriptor.TYPE_FIXED32: 32,
    FieldDescriptor.TYPE_UINT64: 64,
    FieldDescriptor.TYPE_FIXED64: 64,
}


def record_filler(schema: Schema, message: Descriptor, mapping: Mapping, *, schemaless: bool) -> Fill:
    """`schemaless`: rows are dicts, as no schema came with them."""
    if schema.type is Type.STRUCT:
        return _Fillers(mapping, schemaless).struct(schema, message)
    raw = _raw(schema, message.fields_by_name["value"])

    def fill(into: Any, value: Any) -> None:
        into.value = raw(value)

    return fill


class _Fillers:
    __slots__ = ("_names", "_schemaless")

    def __init__(self, mapping: Mapping, schemaless: bool) -> None:
        self._names = Names(mapping)
        self._schemaless = schemaless

    def struct(self, schema: Schema, message: Descriptor) -> Fill:
        puts = [(field.name, self._field(field.name, field.schema, message)) for field in schema.fields]
        schemaless = self._schemaless

        def fill(into: Any, value: Any) -> None:
            into.SetInParent()
            if schemaless:
                for name, put in puts:
                    put(into, value.get(name))
                return
            if type(value) is not Struct:
                raise DataException(f"Invalid type for STRUCT: class {java_class_name(value)}")
            if value.schema is not schema and not _alike(value.schema, schema):
                raise DataException("Mismatching struct schema")
            for (_, put), each in zip(puts, value.values, strict=True):
                put(into, each)

        return fill

    def _field(self, name: str, schema: Schema, message: Descriptor) -> Put:
        """Of values that may be null."""
        if is_union(schema):
            return self._union(schema, message)
        field = message.fields_by_name.get(self._names.plain(name))
        put = _lacking(name) if field is None else self._known_field(schema, field)
        default = schema.default

        def nullable(into: Any, value: Any) -> None:
            if value is None:
                value = default
            if value is not None:
                put(into, value)
            elif not schema.optional:
                raise DataException(f"Invalid value: null used for required field {name}")

        return nullable

    def _union(self, schema: Schema, message: Descriptor) -> Put:
        puts = [self._field(each.name, each.schema.but(optional=True), message) for each in schema.fields]

        def fill(into: Any, value: Any) -> None:
            if value is None:
                return
            for put, each in zip(puts, value.values, strict=True):
                if each is not None:
                    put(into, each)
                    return
            raise DataException("Cannot find non-null field")

        return fill

    def _known_field(self, schema: Schema, field: FieldDescriptor) -> Put:
        name = field.name
        if schema.type is Type.MAP:
            return self._map(schema, field)
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            return self._array(schema.value_schema, field)
        fill = self._filler(schema, field)
        if fill is not None:
            return lambda into, value: fill(getattr(into, name), value)
        raw = _raw(schema, field)
        return lambda into, value: setattr(into, name, raw(value))

    def _filler(self, schema: Schema, field: FieldDescriptor) -> Fill | None:
        """None: the field is no message."""
        if field.message_type is None:
            return None
        if schema.name in MESSAGE_OF:
            return _checked(schema, _LOGICAL[schema.name])
        if schema.type is Type.STRUCT:
            return self.struct(schema, field.message_type)
        raw = _raw(schema, inner_message(field).fields_by_name["value"])

        def wrap(into: Any, value: Any) -> None:
            into.value = raw(value)
            into.SetInParent()

        return wrap

    def _array(self, items: Schema, field: FieldDescriptor) -> Put:
        name, fill = field.name, self._filler(items, field)
        raw = None if fill is not None else _raw(items, field)

        def put(into: Any, value: Any) -> None:
            if not isinstance(value, list | tuple):
                raise DataException(f"Invalid type for ARRAY: class {java_class_name(value)}")
            if None in value:
                raise DataException(f"A list with null in it cannot be written: Protobuf has no such (field {name})")
            held = getattr(into, name)
            if raw is not None:
                held.extend(map(raw, value))
            elif fill is not None:
                for each in value:
                    fill(held.add(), each)

        return put

    def _map(self, schema: Schema, field: FieldDescriptor) -> Put:
        assert schema.key_schema is not None and schema.value_schema is not None
        entry = inner_message(field)
        if not entry.GetOptions().map_entry:
            return self._entries(schema, field)
        name = field.name
        key_field, value_field = entry.fields
        keys, fill = _raw(schema.key_schema, key_field), self._filler(schema.value_schema, value_field)
        raw = None if fill is not None else _raw(schema.value_schema, value_field)

        def put(into: Any, value: Any) -> None:
            held = getattr(into, name)
            for key, each in _items(value):
                if each is None:
                    raise DataException(f"A map with null in it cannot be written: Protobuf has no such (field {name})")
                if raw is not None:
                    held[keys(key)] = raw(each)
                elif fill is not None:
                    fill(held[keys(key)], each)

        return put

    def _entries(self, schema: Schema, field: FieldDescriptor) -> Put:
        """Of a map that Protobuf has not: a list of keys and values."""
        assert schema.key_schema is not None and schema.value_schema is not None
        name, entry = field.name, inner_message(field)
        keys = self._field("key", schema.key_schema, entry)
        values = self._field("value", schema.value_schema, entry)

        def put(into: Any, value: Any) -> None:
            held = getattr(into, name)
            for key, each in _items(value):
                added = held.add()
                keys(added, key)
                values(added, each)

        return put


def _items(value: Any) -> Any:
    if type(value) is not dict:
        raise DataException(f"Invalid type for MAP: class {java_class_name(value)}")
    return value.items()


def _alike(one: Schema, other: Schema) -> bool:
    """But for what its field says of it."""
    parts = {"optional": False, "default": None, "parameters": None}
    return one.but(**parts) == other.but(**parts)


def _lacking(name: str) -> Put:
    def put(into: Any, value: Any) -> None:
        raise DataException(f"Cannot find field with name {name}")

    return put


# ---- scalars


def _raw(schema: Schema, field: FieldDescriptor) -> Raw:
    if field.enum_type is not None:
        return _enum(schema, field)
    bits = _BITS.get(field.type)
    bare = Schema(schema.type)

    def raw(value: Any) -> Any:
        if not fits(bare, value):
            raise DataException(f"Invalid type for {schema.type}: class {java_class_name(value, schema.type)}")
        if bits is not None:
            return value & ((1 << bits) - 1)
        return bytes(value) if schema.type is Type.BYTES else value

    return raw


def _enum(schema: Schema, field: FieldDescriptor) -> Raw:
    assert field.enum_type is not None
    declared = enum_symbols(schema)
    numbers = {value.name: value.number for value in field.enum_type.values}
    if declared is not None:
        numbers = {**numbers, **declared[1]}

    def raw(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        if value not in numbers:
            raise DataException(f"One of {', '.join(numbers)} expected for the field {field.name}, not {value!r:.100}")
        return numbers[value]

    return raw


# ---- logical types


def _checked(schema: Schema, fill: Callable[[Schema, Any, Any], None]) -> Fill:
    kind = Decimal if schema.name == DECIMAL_NAME else Instant
    simple = (schema.name or "").rpartition(".")[2]

    def checked(into: Message, value: Any) -> None:
        if type(value) is not kind:
            raise DataException(f"Invalid type for {simple}: class {java_class_name(value, schema.type)}")
        fill(schema, into, value)
        into.SetInParent()

    return checked


def _fill_decimal(schema: Schema, into: Any, value: Any) -> None:
    unscaled = unscaled_of(value)
    into.value = unscaled.to_bytes((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True)
    into.precision = len(str(abs(unscaled)))
    into.scale = scale_of(value)


def _fill_date(schema: Schema, into: Any, value: Any) -> None:
    date_to_days(schema, value)  # says what is no day
    day = moment(value)
    if not 1 <= day.year <= 9999:
        raise DataException(f"The year {day.year} is no year of google.type.Date")
    into.year, into.month, into.day = day.year, day.month, day.day


def _fill_time(schema: Schema, into: Any, value: Any) -> None:
    seconds, millis = divmod(time_to_millis(schema, value) % MILLIS_PER_DAY, 1000)
    into.hours, rest = divmod(seconds, 3600)
    into.minutes, into.seconds = divmod(rest, 60)
    into.nanos = millis * 1_000_000


def _fill_timestamp(schema: Schema, into: Any, value: Any) -> None:
    into.seconds, millis = divmod(timestamp_to_millis(schema, value), 1000)
    into.nanos = millis * 1_000_000


_LOGICAL: Final = {
    DECIMAL_NAME: _fill_decimal,
    DATE_NAME: _fill_date,
    TIME_NAME: _fill_time,
    TIMESTAMP_NAME: _fill_timestamp,
}
