"""ExtractField: one field in place of all of it."""

from typing import Any, Final

from ottla.connect.data.errors import IllegalArgumentException
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import MEDIUM, REQUIRED, STRING, ConfigDef, ConfigKey, Texts
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform
from ottla.connect.transforms.fields import SYNTAX_VERSION, FieldPath, require_map, require_struct

_PURPOSE: Final = "field extraction"


class ExtractField(PartTransform):
    """Null stays null."""

    CONFIG = ConfigDef(
        ConfigKey("field", STRING, REQUIRED, MEDIUM, "The field to take out."), REPLACE_NULL, SYNTAX_VERSION
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._text = self.config.get_str("field")
        self._path = FieldPath(self._text, self.config)
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any]:
        if schema is None:
            return None, None if value is None else self._path.value_from_map(require_map(value, _PURPOSE))
        row = None if value is None else require_struct(value, _PURPOSE)
        field = self._path.field_from(schema)
        if field is None:
            raise IllegalArgumentException(f"Unknown field: {self._text}")
        if row is None:
            return field.schema, None
        return field.schema, self._path.value_from_struct(row, replace_null=self._replace_null)


class ExtractFieldKey(ExtractField):
    part = "key"


class ExtractFieldValue(ExtractField):
    part = "value"
