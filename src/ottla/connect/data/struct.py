"""Connect's Struct, a row of a struct schema; and whether a value is of a schema, said in Java's words."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

from ottla.connect.data.errors import DataException, SchemaBuilderException
from ottla.connect.data.java_text import java_class_name, java_text
from ottla.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from ottla.connect.data.schema import Field, Schema
from ottla.connect.data.types import BITS, Float32, Instant, Int8, Int16, Int32, Type


class Struct:
    """Values by the places of their fields. `put` checks each; `of` takes a row that is known to fit."""

    __slots__ = ("schema", "values")

    java_class: ClassVar[str] = "org.apache.kafka.connect.data.Struct"

    def __init__(self, schema: Schema, values: Mapping[str, Any] | None = None) -> None:
        if schema.type is not Type.STRUCT:
            raise DataException(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values: list[Any] = [None] * len(schema.fields)
        if values is not None:
            for name, value in values.items():
                self.put(name, value)

    @classmethod
    def of(cls, schema: Schema, values: list[Any]) -> "Struct":
        made = cls.__new__(cls)
        made.schema = schema
        made.values = values
        return made

    def get(self, name: str) -> Any:
        """Null is the field's default, if it has one."""
        field = self.found(name)
        value = self.values[field.index]
        return field.schema.default if value is None else value

    __getitem__ = get

    def get_without_default(self, name: str) -> Any:
        return self.values[self.found(name).index]

    def put(self, name: str, value: Any) -> "Struct":
        field = self.found(name)
        validate_value(field.schema, value, field.name)
        self.values[field.index] = value
        return self

    def found(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise DataException(f"{name} is not a valid field name")
        return field

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={_shown(value, field.schema)}"
            for field, value in zip(self.schema.fields, self.values, strict=True)
            if value is not None
        )
        return "Struct{" + ",".join(shown) + "}"


def _shown(value: Any, schema: Schema) -> str:
    """Floats of four bytes are found inside lists and maps too."""
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        inner = schema.value_schema
        return "[" + ", ".join(_shown(each, inner) for each in value) + "]"
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        keys, inner = schema.key_schema, schema.value_schema
        return "{" + ", ".join(f"{_shown(k, keys)}={_shown(v, inner)}" for k, v in value.items()) + "}"
    return java_text(value, schema.type)


# ---- whether a value is of a schema

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
