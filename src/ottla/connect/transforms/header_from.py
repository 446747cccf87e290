"""HeaderFrom: fields as headers, copied or moved."""

from typing import Any

from ottla.connect.data.errors import DataException, NullPointerException
from ottla.connect.data.record import ConnectRecord, Header
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.definitions import (
    HIGH,
    LIST,
    REQUIRED,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigKey,
    NonEmptyList,
    OneOf,
    Texts,
)
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, Remembered, basics, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_struct


class HeaderFrom(PartTransform):
    CONFIG = ConfigDef(
        ConfigKey("fields", LIST, REQUIRED, HIGH, "The fields that become headers.", NonEmptyList()),
        ConfigKey("headers", LIST, REQUIRED, HIGH, "Names of the headers, one for each field.", NonEmptyList()),
        ConfigKey(
            "operation",
            STRING,
            REQUIRED,
            HIGH,
            "move: the fields are gone from the key or value afterwards; copy: they stay.",
            OneOf(("move", "copy")),
        ),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._fields = self.config.get_list("fields")
        self._headers = self.config.get_list("headers")
        if len(self._fields) != len(self._headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._operation = self.config.get_str("operation")
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._moved = Remembered(self._moved_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        is_value = self.part == "value"
        schema, value = (record.value_schema, record.value) if is_value else (record.key_schema, record.key)
        updated, added = self._schemaless(value) if schema is None else self._by_schema(schema, value)
        made = record.with_value(*updated) if is_value else record.with_key(*updated)
        return made.with_headers((*record.headers, *added))

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> None:
        raise AssertionError("apply does it, as headers change too")

    def _schemaless(self, value: Any) -> tuple[tuple[None, Any], list[Header]]:
        found = require_map(value, f"header {self._operation}")
        added = [Header(name, None, found.get(field)) for field, name in zip(self._fields, self._headers, strict=True)]
        if self._operation == "move":
            found = {key: each for key, each in found.items() if key not in self._fields}
        return (None, found), added

    def _by_schema(self, schema: Schema, value: Any) -> tuple[tuple[Schema, Any], list[Header]]:
        row = require_struct(value, f"header {self._operation}")
        values = field_values(row, self._replace_null)
        updated: tuple[Schema, Any] = (schema, row)
        if self._operation == "move":
            moved, kept = self._moved(schema)
            updated = moved, row_of(moved, [values[index] for index in kept])
        added = []
        for name, header in zip(self._fields, self._headers, strict=True):
            field = schema.field(name)
            if field is None:
                raise NullPointerException(f"Field does not exist: {name}")
            found = values[field.index]
            if found is None and not field.schema.optional:
                raise DataException(f"A null value requires an optional schema but was {field.schema}")
            added.append(Header(header, field.schema, found))
        return updated, added

    def _moved_schema(self, schema: Schema) -> tuple[Schema, list[int]]:
        kept = [field for field in schema.struct_fields() if field.name not in self._fields]
        made = struct_schema([(field.name, field.schema) for field in kept], **basics(schema))
        return made, [field.index for field in kept]


class HeaderFromKey(HeaderFrom):
    part = "key"


class HeaderFromValue(HeaderFrom):
    part = "value"
