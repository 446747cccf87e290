"""MaskField: 0, false, an empty text, or a text of one's own in place of what nobody should see."""

from decimal import Decimal
from typing import Any, Final

from ottla.connect.data.errors import DataException, NumberFormatException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import validate_value
from ottla.connect.data.types import NARROW, Float32, Instant, Int8, Int16, Int32, Type
from ottla.connect.data.values import big_decimal, convert_number
from ottla.connect.definitions import (
    HIGH,
    LIST,
    LOW,
    REQUIRED,
    STRING,
    ConfigDef,
    ConfigKey,
    NonEmpty,
    SomeOf,
    Texts,
)
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_struct

_PURPOSE: Final = "mask fields"
_NOTHING: Final[dict[type, Any]] = {
    bool: False,
    Int8: Int8(),
    Int16: Int16(),
    Int32: Int32(),
    int: 0,
    Float32: Float32(),
    float: 0.0,
    Decimal: Decimal(0),
    Instant: Instant(0),
    str: "",
}
_NUMBERS: Final[dict[type, Type]] = {
    Int8: Type.INT8,
    Int16: Type.INT16,
    Int32: Type.INT32,
    int: Type.INT64,
    Float32: Type.FLOAT32,
    float: Type.FLOAT64,
}


class MaskField(PartTransform):
    CONFIG = ConfigDef(
        ConfigKey("fields", LIST, REQUIRED, HIGH, "The fields to mask.", SomeOf(empty_allowed=False)),
        ConfigKey(
            "replacement",
            STRING,
            None,
            LOW,
            "What stands in place of numbers and texts; the same for all fields.",
            NonEmpty(),
        ),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._fields = dict.fromkeys(self.config.get_list("fields"))
        self._replacement = self.config.find_str("replacement")
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any]:
        if schema is None:
            updated = dict(require_map(value, _PURPOSE))
            for name in self._fields:
                updated[name] = self._masked(updated.get(name), None)
            return None, updated
        row = require_struct(value, _PURPOSE)
        values = field_values(row, self._replace_null)
        for index, field in enumerate(row.schema.fields):
            if field.name in self._fields:
                values[index] = self._masked(values[index], field.schema)
                validate_value(field.schema, values[index], field.name)
        return schema, row_of(row.schema, values)

    def _masked(self, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        kind = type(value)
        if schema is not None and schema.type in NARROW and kind in (int, float):
            kind = NARROW[schema.type]
        if self._replacement is not None:
            masked = _replaced(kind, self._replacement, value)
        elif kind in _NOTHING:
            masked = _NOTHING[kind]
        elif isinstance(value, list | tuple):
            masked = []
        elif kind is dict:
            masked = {}
        else:
            raise DataException(f"Cannot mask value of type: class {java_class_name(value)}")
        return masked


def _replaced(kind: type, replacement: str, value: Any) -> Any:
    if kind is str:
        return replacement
    number = _NUMBERS.get(kind)
    if number is not None:
        return kind(convert_number(replacement, number))
    if kind is Decimal:
        try:
            return big_decimal(replacement)
        except NumberFormatException as error:
            raise DataException(f"Unable to convert {replacement} (class java.lang.String) to number") from error
    of = java_class_name(value)
    raise DataException(f"Cannot mask value of type class {of} with custom replacement.")


class MaskFieldKey(MaskField):
    part = "key"


class MaskFieldValue(MaskField):
    part = "value"
