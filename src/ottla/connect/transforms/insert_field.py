"""InsertField: topic, partition, offset, time or a fixed text as fields."""

from typing import Any, Final, NamedTuple

from ottla.connect.data.logical import OPTIONAL_TIMESTAMP, TIMESTAMP
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import (
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    Schema,
    struct_schema,
)
from ottla.connect.data.schema import STRING as STRING_SCHEMA
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Int32
from ottla.connect.definitions import MEDIUM, STRING, ConfigDef, ConfigError, ConfigKey, Texts
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, Remembered, basics, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_offset, require_struct

_PURPOSE: Final = "field insertion"
_REQUIRED: Final = " A ! behind the name makes the field required, a ? optional, which it is anyway."
_SCHEMAS: Final = {
    "topic.field": (STRING_SCHEMA, OPTIONAL_STRING),
    "partition.field": (INT32, OPTIONAL_INT32),
    "offset.field": (INT64, OPTIONAL_INT64),
    "timestamp.field": (TIMESTAMP, OPTIONAL_TIMESTAMP),
    "static.field": (STRING_SCHEMA, OPTIONAL_STRING),
}


class Inserted(NamedTuple):
    """One field: what it holds is told by the key that names it."""

    key: str
    name: str
    optional: bool


def _inserted(key: str, spec: str) -> Inserted:
    return Inserted(key, spec[:-1], spec[-1] == "?") if spec[-1:] in ("?", "!") else Inserted(key, spec, True)


class InsertField(PartTransform):
    """Fields come in the order topic, partition, offset, timestamp, fixed text."""

    CONFIG = ConfigDef(
        ConfigKey("topic.field", STRING, None, MEDIUM, "The field for the topic." + _REQUIRED),
        ConfigKey("partition.field", STRING, None, MEDIUM, "The field for the partition." + _REQUIRED),
        ConfigKey("offset.field", STRING, None, MEDIUM, "The field for the offset; in sinks only." + _REQUIRED),
        ConfigKey("timestamp.field", STRING, None, MEDIUM, "The field for the record's time." + _REQUIRED),
        ConfigKey("static.field", STRING, None, MEDIUM, "The field for a fixed text." + _REQUIRED),
        ConfigKey("static.value", STRING, None, MEDIUM, "The fixed text."),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        specs = ((key, self.config.find_str(key)) for key in _SCHEMAS)
        self._inserted = [_inserted(key, spec) for key, spec in specs if spec is not None]
        self._static = self.config.find_str("static.value")
        if not self._inserted:
            raise ConfigError("No field insertion configured")
        if self._static is None and self._inserted[-1].key == "static.field":
            name = self._inserted[-1].name
            raise ConfigError.of("static.value", None, f"No value specified for static field: {name}")
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._schema = Remembered(self._changed_schema)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any] | None:
        if value is None:
            return None
        if schema is None:
            updated = dict(require_map(value, _PURPOSE))
            for each in self._inserted:
                found = self._value(each.key, record)
                if found is not None or each.key in ("topic.field", "offset.field"):
                    updated[each.name] = Int32(found) if each.key == "partition.field" else found
            return None, updated
        row = require_struct(value, _PURPOSE)
        made = self._schema(row.schema)
        values = field_values(row, self._replace_null)
        row_of(row.schema, values)
        for each in self._inserted:
            found = self._value(each.key, record)
            values.append(Instant(found) if each.key == "timestamp.field" and found is not None else found)
        # What the record does not have is left out unseen, even where the field is required: so does Java.
        return made, Struct.of(made, values)

    def _value(self, key: str, record: ConnectRecord) -> Any:
        if key == "topic.field":
            return record.topic
        if key == "partition.field":
            return record.partition
        if key == "offset.field":
            return require_offset(record, _PURPOSE)
        return record.timestamp if key == "timestamp.field" else self._static

    def _changed_schema(self, schema: Schema) -> Schema:
        fields = [(field.name, field.schema) for field in schema.fields]
        fields += [(each.name, _SCHEMAS[each.key][each.optional]) for each in self._inserted]
        return struct_schema(fields, **basics(schema))


class InsertFieldKey(InsertField):
    part = "key"


class InsertFieldValue(InsertField):
    part = "value"
