"""Cast: fields, or the whole of it, as another type."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

from ottla.connect.data.errors import DataException, NumberFormatException
from ottla.connect.data.java_text import java_class_name, java_text
from ottla.connect.data.logical import (
    DATE_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_to_days,
    time_to_millis,
    timestamp_to_millis,
)
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.data.struct import Struct, with_default
from ottla.connect.data.types import BITS, NARROW, Float32, Instant, Int8, Int16, Int32, Type
from ottla.connect.data.values import date_format_for, is_number, number_to_float, number_to_int
from ottla.connect.definitions import HIGH, LIST, REQUIRED, ConfigDef, ConfigError, ConfigKey, Texts, Value
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, Remembered, basics, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_struct
from ottla.connect.transforms.java_numbers import parse_double, parse_whole

_PURPOSE: Final = "cast types"
_OUTPUTS: Final = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
    Type.BOOLEAN,
    Type.STRING,
)
_INPUTS: Final = (*_OUTPUTS, Type.BYTES)
CLASSES: Final[dict[type, Type]] = {
    Int8: Type.INT8,
    Int16: Type.INT16,
    Int32: Type.INT32,
    int: Type.INT64,
    Float32: Type.FLOAT32,
    float: Type.FLOAT64,
    bool: Type.BOOLEAN,
    str: Type.STRING,
    bytes: Type.BYTES,
    bytearray: Type.BYTES,
    memoryview: Type.BYTES,
    list: Type.ARRAY,
    tuple: Type.ARRAY,
    dict: Type.MAP,
    Struct: Type.STRUCT,
}


def parse_spec(spec: Sequence[str]) -> dict[str | None, Type]:
    """Types by field; None is the whole. Raises ConfigError."""
    casts: dict[str | None, Type] = {}
    for mapping in spec:
        parts = mapping.split(":")
        while len(parts) > 1 and not parts[-1]:  # Java's split drops what is empty at the end
            parts.pop()
        if len(parts) > 2:
            raise ConfigError.of("renames", f"[{', '.join(spec)}]", f"Invalid rename mapping: {mapping}")
        named = parts[-1].strip()
        if named.upper() not in Type.__members__:
            raise ConfigError(f"Invalid type found in casting spec: {named}")
        found = Type[named.upper()]
        if found not in _OUTPUTS:
            raise ConfigError(f"Cast transformation does not support casting to {found}; {_supported(_OUTPUTS)}")
        casts[parts[0].strip() if len(parts) == 2 else None] = found
    if None in casts and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in "
            "their spec"
        )
    return casts


def _supported(types: Sequence[Type]) -> str:
    return f"supported types are [{', '.join(map(str, types))}]"


def _valid_spec(name: str, value: Value) -> None:
    if not isinstance(value, tuple) or not value:
        raise ConfigError("Must specify at least one field to cast.")
    parse_spec(value)


class Cast(PartTransform):
    """Java's rules: numbers are cut to their new size, texts parsed, bytes become base64."""

    CONFIG = ConfigDef(
        ConfigKey(
            "spec",
            LIST,
            REQUIRED,
            HIGH,
            "The fields and their new types, field1:type,field2:type; or one type, for all of the key or value. Types: "
            "int8, int16, int32, int64, float32, float64, boolean and string. Bytes can only become a string.",
            _valid_spec,
        ),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        casts = parse_spec(self.config.get_list("spec"))
        self._whole = casts.pop(None, None)
        self._casts = {name: found for name, found in casts.items() if name is not None}
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._schema = Remembered(self._changed_schema)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any] | None:
        if value is None:
            return None
        if schema is None:
            return None, self._schemaless(value)
        updated = self._schema(schema)
        if self._whole is not None:
            return updated, cast_value(schema, value, self._whole)
        row = require_struct(value, _PURPOSE)
        values = field_values(row, self._replace_null)
        for index, field in enumerate(row.schema.fields):
            target = self._casts.get(field.name)
            if target is not None:
                values[index] = cast_value(field.schema, values[index], target)
        return updated, row_of(updated, values)

    def _schemaless(self, value: Any) -> Any:
        if self._whole is not None:
            return cast_value(None, value, self._whole)
        updated = dict(require_map(value, _PURPOSE))
        for name, target in self._casts.items():
            updated[name] = cast_value(None, updated.get(name), target)
        return updated

    def _changed_schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            made = Schema(self._whole, optional=schema.optional, **basics(schema))
        else:
            fields = [(field.name, self._field_schema(field.name, field.schema)) for field in schema.struct_fields()]
            made = struct_schema(fields, optional=schema.optional, **basics(schema))
        if schema.default is None:
            return made
        return with_default(made, cast_value(schema, schema.default, made.type))

    def _field_schema(self, name: str, schema: Schema) -> Schema:
        target = self._casts.get(name)
        if target is None:
            return schema
        made = Schema(target, optional=schema.optional)
        return made if schema.default is None else with_default(made, cast_value(schema, schema.default, target))


def cast_value(schema: Schema | None, value: Any, target: Type) -> Any:
    """Without a schema the result remembers how wide it is."""
    if value is None:
        return None
    found = CLASSES.get(type(value)) if schema is None else schema.type
    if found is None:
        raise DataException(
            f"Cast transformation was passed a value of type class {java_class_name(value)} which is not supported by "
            "Connect's data API"
        )
    if found not in _INPUTS:
        raise DataException(f"Cast transformation does not support casting from {found}; {_supported(_INPUTS)}")
    if target is Type.STRING:
        return _to_string(value, found)
    if schema is not None and schema.name is not None:
        value = _encoded(schema, value)
    try:
        made = _to_boolean(value) if target is Type.BOOLEAN else _to_number(value, target)
    except NumberFormatException as error:
        raise DataException(f"Value ({java_text(value)}) was out of range for requested data type") from error
    return NARROW[target](made) if schema is None and target in NARROW else made


def _encoded(schema: Schema, value: Any) -> Any:
    if schema.name == DATE_NAME:
        return date_to_days(schema, value)
    if schema.name == TIME_NAME:
        return time_to_millis(schema, value)
    if schema.name == TIMESTAMP_NAME:
        return timestamp_to_millis(schema, value)
    return value


def _to_string(value: Any, found: Type) -> str:
    if type(value) is Instant:
        return date_format_for(value).format(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(bytes(value)).decode()
    return java_text(value, found)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if is_number(value):
        return number_to_int(value, 64) != 0
    if isinstance(value, str):
        return value.lower() == "true"
    raise _unexpected(value)


def _to_number(value: Any, target: Type) -> int | float:
    bits = BITS.get(target)
    if isinstance(value, bool):
        return int(value) if bits is not None else float(value)
    if is_number(value):
        if bits is not None:
            return number_to_int(value, bits)
        return number_to_float(value, single=target is Type.FLOAT32)
    if isinstance(value, str):
        if bits is not None:
            return parse_whole(value, bits)
        return number_to_float(parse_double(value), single=target is Type.FLOAT32)
    raise _unexpected(value)


def _unexpected(value: Any) -> DataException:
    return DataException(f"Unexpected type in Cast transformation: class {java_class_name(value)}")


class CastKey(Cast):
    part = "key"


class CastValue(Cast):
    part = "value"
