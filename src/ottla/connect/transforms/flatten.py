"""Flatten: fields of fields side by side, under the names of the way to them."""

from typing import Any, Final

from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.data.struct import Struct, with_default
from ottla.connect.data.types import Type
from ottla.connect.definitions import MEDIUM, STRING, ConfigDef, ConfigKey, Texts
from ottla.connect.transforms.base import PartTransform, Remembered, basics, row_of
from ottla.connect.transforms.cast import CLASSES
from ottla.connect.transforms.fields import require_map, require_struct

_PURPOSE: Final = "flattening"


class Flatten(PartTransform):
    """Arrays stay as they are. Maps inside of structs are refused, as in Java."""

    CONFIG = ConfigDef(
        ConfigKey("delimiter", STRING, ".", MEDIUM, "What stands between the names of a field and of one inside it.")
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._delimiter = self.config.get_str("delimiter")
        self._schema = Remembered(self._changed_schema)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any] | None:
        if value is None:
            return None
        if schema is None:
            flat: dict[str, Any] = {}
            self._flatten_map(require_map(value, _PURPOSE), "", flat)
            return None, flat
        row = require_struct(value, _PURPOSE)
        updated = self._schema(schema)
        by_name: dict[str, Any] = {}
        self._flatten_struct(row, "", by_name)
        return updated, row_of(updated, [by_name.get(field.name) for field in updated.fields])

    def _name(self, prefix: str, name: str) -> str:
        return prefix + self._delimiter + name if prefix else name

    def _flatten_map(self, value: dict[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for key, each in value.items():
            name = self._name(prefix, key)
            found = Type.STRING if each is None else CLASSES.get(type(each))
            if found is None:
                raise DataException(
                    f"Flatten transformation was passed a value of type class {java_class_name(each)} which is not "
                    "supported by Connect's data API"
                )
            if found is Type.MAP:
                self._flatten_map(each, name, flat)
            elif found is Type.STRUCT:
                raise DataException(
                    f"Flatten transformation does not support class {java_class_name(each)} for record without schemas "
                    f"(for field {name})."
                )
            else:
                flat[name] = each

    def _flatten_struct(self, row: Struct, prefix: str, by_name: dict[str, Any]) -> None:
        for field, value in zip(row.schema.fields, row.values, strict=True):
            name = self._name(prefix, field.name)
            if field.schema.type is Type.STRUCT:
                # Java reads this one without its default, and so do we.
                if value is not None:
                    self._flatten_struct(value, name, by_name)
            else:
                by_name[name] = field.schema.default if value is None else value

    def _changed_schema(self, schema: Schema) -> Schema:
        fields: list[tuple[str, Schema]] = []
        self._collect(schema, "", fields, schema.optional, schema.default)
        return struct_schema(fields, **basics(schema))

    def _collect(
        self, schema: Schema, prefix: str, fields: list[tuple[str, Schema]], optional: bool, default: Struct | None
    ) -> None:
        for field in schema.struct_fields():
            name = self._name(prefix, field.name)
            own = field.schema.default
            if own is None and default is not None:
                own = default.get(field.name)
            may_miss = optional or field.schema.optional
            if field.schema.type is Type.STRUCT:
                self._collect(field.schema, name, fields, may_miss, own)
                continue
            if field.schema.type is Type.MAP:
                raise DataException(
                    f"Flatten transformation does not support {field.schema.type} for record with schemas (for field "
                    f"{name})."
                )
            made = field.schema.but(optional=may_miss, default=None)
            fields.append((name, made if own is None else with_default(made, own)))


class FlattenKey(Flatten):
    part = "key"


class FlattenValue(Flatten):
    part = "value"
