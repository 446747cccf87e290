"""HoistField: all of it as the one field of a struct or map."""

from typing import Any

from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.definitions import MEDIUM, REQUIRED, STRING, ConfigDef, ConfigKey, Texts
from ottla.connect.transforms.base import PartTransform, Remembered


class HoistField(PartTransform):
    CONFIG = ConfigDef(ConfigKey("field", STRING, REQUIRED, MEDIUM, "The name of the field that is made."))

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._name = self.config.get_str("field")
        self._schema = Remembered(lambda schema: struct_schema([(self._name, schema)]))

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any]:
        if schema is None:
            return None, {self._name: value}
        updated = self._schema(schema)
        return updated, Struct(updated).put(self._name, value)


class HoistFieldKey(HoistField):
    part = "key"


class HoistFieldValue(HoistField):
    part = "value"
