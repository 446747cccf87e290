"""ValueToKey: a key made of fields of the value."""

from typing import Final

from ottla.connect.data.errors import DataException
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.definitions import HIGH, LIST, REQUIRED, ConfigDef, ConfigKey, SomeOf, Texts
from ottla.connect.transforms.base import REPLACE_NULL, Remembered, Transform, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_struct

_PURPOSE: Final = "copying fields from value to key"


class ValueToKey(Transform):
    CONFIG = ConfigDef(
        ConfigKey("fields", LIST, REQUIRED, HIGH, "The fields that make the key.", SomeOf(empty_allowed=False)),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._fields = self.config.get_list("fields")
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._plan = Remembered(self._planned)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.value_schema is None:
            value = require_map(record.value, _PURPOSE)
            return record.with_key(None, {name: value.get(name) for name in self._fields})
        row = require_struct(record.value, _PURPOSE)
        schema, places = self._plan(row.schema)
        values = field_values(row, self._replace_null)
        made = record.with_key(schema, row_of(schema, [values[place] for place in places]))
        return made if row.schema is record.value_schema else made.with_value(row.schema, row)

    def _planned(self, schema: Schema) -> tuple[Schema, list[int]]:
        found = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataException(f"Field does not exist: {name}")
            found.append(field)
        return struct_schema([(field.name, field.schema) for field in found]), [field.index for field in found]
