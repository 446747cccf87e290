"""Whether a value is of a schema, said in Java's words."""

from decimal import Decimal
from typing import Any, Final

from ottla.connect.data.errors import DataException, SchemaBuilderException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import BITS, Float32, Instant, Int8, Int16, Int32, Type

_INTS: Final = frozenset((int, Int8, Int16, Int32))
_PLAIN: Final[dict[Type, tuple[type, ...]]] = {
    Type.FLOAT32: (float, Float32),
    Type.FLOAT64: (float, Float32),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: (dict,),
    Type.STRUCT: (Struct,),
}
_LOGICAL: Final[dict[str, type]] = {
    DECIMAL_NAME: Decimal,
    DATE_NAME: Instant,
    TIME_NAME: Instant,
    TIMESTAMP_NAME: Instant,
}


def validate_value(schema: Schema, value: Any, field: str | None = None) -> None:
    """Raises DataException."""
    if value is None and schema.optional:
        return
    _validate(schema, value, "value" if field is None else f'field: "{field}"')


def validate_struct(row: Struct) -> None:
    """Every field; null is fine where there is a default. Raises DataException."""
    for field, value in zip(row.schema.fields, row.values, strict=True):
        if value is not None or not (field.schema.optional or field.schema.default is not None):
            validate_value(field.schema, value, field.name)


def with_default(schema: Schema, default: Any) -> Schema:
    """The schema, with a default that is of it. Raises SchemaBuilderException."""
    try:
        if schema.type is Type.STRUCT and isinstance(default, Struct):
            # A default cannot have the schema that it is part of: all of it but the default must be alike.
            if default.schema.but(default=None) != schema.but(default=None):
                raise DataException("Struct schemas do not match.")
            validate_struct(default)
        else:
            validate_value(schema, default)
    except DataException as error:
        raise SchemaBuilderException("Invalid default value") from error
    return schema.but(default=default)


def fits(schema: Schema, value: Any) -> bool:
    """Whether the value is of the class that the schema asks for; what is inside is not looked at."""
    kind = type(value)
    if schema.name is not None:
        logical = _LOGICAL.get(schema.name)
        if logical is not None:
            return kind is logical
    bits = BITS.get(schema.type)
    if bits is None:
        return kind in _PLAIN[schema.type]
    return kind in _INTS and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _validate(schema: Schema, value: Any, where: str) -> None:
    if value is None:
        if not schema.optional:
            raise DataException(f"Invalid value: null used for required {where}, schema type: {schema.type}")
        return
    if not fits(schema, value):
        named = "" if schema.name is None else f' "{schema.name}"'
        found = java_class_name(value)
        raise DataException(f"Invalid Java object for schema{named} with type {schema.type}: class {found} for {where}")
    if schema.type is Type.STRUCT:
        if value.schema != schema:
            raise DataException("Struct schemas do not match.")
        validate_struct(value)
    elif schema.type is Type.ARRAY:
        inner = _known(schema.value_schema, element := f"element of array {where}")
        for each in value:
            _validate(inner, each, element)
    elif schema.type is Type.MAP:
        keys = _known(schema.key_schema, key_where := f"key of map {where}")
        values = _known(schema.value_schema, value_where := f"value of map {where}")
        for key, each in value.items():
            _validate(keys, key, key_where)
            _validate(values, each, value_where)


def _known(schema: Schema | None, where: str) -> Schema:
    if schema is None:
        raise DataException(f"No schema defined for {where}")
    return schema
