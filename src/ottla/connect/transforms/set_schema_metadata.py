"""SetSchemaMetadata: another name or version of the schema."""

from typing import Any

from ottla.connect.data.errors import DataException
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct
from ottla.connect.definitions import HIGH, INT, STRING, ConfigDef, ConfigError, ConfigKey, Texts
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, Remembered, field_values, row_of


class SetSchemaMetadata(PartTransform):
    CONFIG = ConfigDef(
        ConfigKey("schema.name", STRING, None, HIGH, "The name that the schema gets."),
        ConfigKey("schema.version", INT, None, HIGH, "The version that the schema gets."),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._name = self.config.find_str("schema.name")
        self._version = self.config.find_int("schema.version")
        if self._name is None and self._version is None:
            raise ConfigError("Neither schema name nor version configured")
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._schema = Remembered(self._changed_schema)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any] | None:
        if schema is None:
            if value is None:
                return None
            raise DataException("Schema required for [updating schema metadata]")
        updated = self._schema(schema)
        if type(value) is not Struct:
            return updated, value
        return updated, row_of(updated, field_values(value, self._replace_null))

    def _changed_schema(self, schema: Schema) -> Schema:
        schema.struct_fields()  # Java asks for the fields of any schema, and so refuses all but structs
        return schema.but(
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )


class SetSchemaMetadataKey(SetSchemaMetadata):
    part = "key"


class SetSchemaMetadataValue(SetSchemaMetadata):
    part = "value"
