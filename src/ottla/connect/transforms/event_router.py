"""Debezium's outbox EventRouter: rows that were put into an outbox table become messages of their own.

A row tells its topic (`aggregatetype`), key (`aggregateid`), id and payload. Deletes of rows are of no account, and
updates are a mistake of whoever writes to the table.
"""

from typing import Any, ClassVar, Final, NamedTuple

from ottla.connect.converters.json_texts import parsed
from ottla.connect.data.errors import ConnectException, DataException
from ottla.connect.data.java_text import java_text
from ottla.connect.data.record import ConnectRecord, Header
from ottla.connect.data.schema import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    Schema,
    array_schema,
    struct_schema,
)
from ottla.connect.data.schema import STRING as STRING_SCHEMA
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Type
from ottla.connect.definitions import (
    BOOLEAN,
    HIGH,
    LIST,
    LOW,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigKey,
    Importance,
    OneOfIgnoringCase,
    Texts,
    Validator,
    Value,
    Width,
)
from ottla.connect.transforms.base import Transform
from ottla.connect.transforms.envelopes import is_envelope, is_schemaless_envelope
from ottla.connect.transforms.fields import require_struct
from ottla.connect.transforms.patterns import valid_pattern
from ottla.connect.transforms.regex_router import RegexRouter

_PLACEMENTS: Final = ("header", "envelope", "partition")
_PER_MILLI: Final = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


class IllegalStateException(ConnectException):
    """An update of a row in the outbox."""

    java_class: ClassVar[str] = "java.lang.IllegalStateException"


class Additional(NamedTuple):
    """A column that goes somewhere of its own."""

    field: str
    placement: str
    alias: str


def parse_placements(given: tuple[str, ...]) -> list[Additional]:
    """Raises ConfigError."""
    found = []
    for text in given:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3) or parts[1].lower() not in _PLACEMENTS:
            problem = f"{text!r} is not field:placement or field:placement:alias with one of {', '.join(_PLACEMENTS)}"
            raise ConfigError.of("table.fields.additional.placement", ",".join(given), problem)
        found.append(Additional(parts[0], parts[1].lower(), parts[-1] if len(parts) == 3 else parts[0]))
    return found


def _valid_placements(name: str, value: Value) -> None:
    if isinstance(value, tuple):
        parse_placements(value)


def _key(
    name: str,
    doc: str,
    default: Value = None,
    *,
    kind: Any = STRING,
    importance: Importance = LOW,
    validator: Validator | None = None,
    group: str = "Table",
) -> ConfigKey:
    return ConfigKey(name, kind, default, importance, doc, validator, group=group, width=Width.MEDIUM)


class EventRouter(Transform):
    CONFIG = ConfigDef(
        _key("table.field.event.id", "The column with the event's id, which becomes the header `id`.", "id"),
        _key("table.field.event.key", "The column that becomes the message's key.", "aggregateid"),
        _key("table.field.event.type", "The column with the event's type.", "type"),
        _key("table.field.event.payload", "The column that becomes the message's value.", "payload"),
        _key(
            "table.field.event.timestamp",
            "The column with the message's time; without it, the time at which the change was seen.",
            importance=MEDIUM,
        ),
        _key(
            "table.fields.additional.placement",
            "Columns that go along: field:header, field:envelope or field:partition, with :alias for another name.",
            kind=LIST,
            importance=HIGH,
            validator=_valid_placements,
        ),
        _key(
            "table.fields.additional.error.on.missing",
            "Whether a column of those that is missing fails the record.",
            True,
            kind=BOOLEAN,
            importance=MEDIUM,
        ),
        _key("table.field.event.schema.version", "The column with the version of the payload's schema."),
        _key(
            "table.op.invalid.behavior",
            "What an update of a row does: warn and error drop it, fatal fails the record.",
            "warn",
            importance=MEDIUM,
            validator=OneOfIgnoringCase(("warn", "error", "fatal")),
        ),
        _key(
            "table.expand.json.payload",
            "Whether a payload that is a text with JSON becomes a struct; one that is none stays as it is.",
            False,
            kind=BOOLEAN,
            importance=MEDIUM,
        ),
        _key(
            "table.json.payload.null.behavior",
            "What null in such JSON becomes: ignore leaves the field out, optional_bytes keeps it.",
            "ignore",
            importance=MEDIUM,
            validator=OneOfIgnoringCase(("ignore", "optional_bytes")),
        ),
        _key(
            "route.by.field", "The column by which topics are chosen.", "aggregatetype", importance=HIGH, group="Router"
        ),
        _key(
            "route.topic.regex",
            "What the value of that column has to match.",
            "(?<routedByValue>.*)",
            validator=valid_pattern,
            group="Router",
        ),
        _key(
            "route.topic.replacement",
            "The topic, in which ${routedByValue} is the value of that column.",
            "outbox.event.${routedByValue}",
            importance=HIGH,
            group="Router",
        ),
        _key(
            "route.tombstone.on.empty.payload",
            "Whether an empty payload becomes a tombstone.",
            False,
            kind=BOOLEAN,
            importance=HIGH,
            group="Router",
        ),
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        placements = self.config["table.fields.additional.placement"]
        self._additional = parse_placements(placements) if isinstance(placements, tuple) else []
        self._enveloped = [each for each in self._additional if each.placement == "envelope"]
        self._strict = self.config.get_bool("table.fields.additional.error.on.missing")
        self._router = RegexRouter(
            {
                "regex": self.config.get_str("route.topic.regex"),
                "replacement": self.config.get_str("route.topic.replacement"),
            }
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.value is None:
            return None
        schemaless = is_schemaless_envelope(record)
        if not schemaless and not is_envelope(record.value_schema):
            return record
        envelope = record.value if schemaless else require_struct(record.value, "Detect Debezium Operation")
        op = envelope.get("op")
        if op == "d":
            return None
        if op == "u":
            if self.config.get_str("table.op.invalid.behavior").lower() == "fatal":
                raise IllegalStateException(f"Unexpected update message received {java_text(record.key)}, fail.")
            return None
        row = envelope.get("after")
        if schemaless:
            if type(row) is not dict:
                raise DataException(f"Only Map objects supported for [Read Outbox Event], found: {java_text(row)}")
            return self._router.apply(self._routed(record, _MapRow(row), envelope.get("ts_ms")))
        event = _StructRow(require_struct(row, "Read Outbox Event"))
        return self._router.apply(self._routed(record, event, envelope.get_without_default("ts_ms")))

    def _routed(self, record: ConnectRecord, event: "_StructRow | _MapRow", seen_ms: Any) -> ConnectRecord:
        payload_name = self.config.get_str("table.field.event.payload")
        id_name = self.config.get_str("table.field.event.id")
        if not event.has(payload_name):
            raise ConnectException(f"Unable to find payload field {payload_name} in event")
        if not event.has(id_name):
            raise DataException(f"{id_name} is not a valid field name")
        schema, payload = self._expanded(payload_name, event.schema_of(payload_name), event.get(payload_name))
        topic = event.get(self.config.get_str("route.by.field"))
        if not isinstance(topic, str):
            raise DataException(f"Field '{self.config.get_str('route.by.field')}' is not of type STRING")
        headers = [*record.headers, Header("id", event.schema_of(id_name), event.get(id_name))]
        headers += [
            Header(each.alias, event.schema_of(each.field), event.get(each.field))
            for each in self._placed("header", event)
        ]
        partitions = [event.get(each.field) for each in self._placed("partition", event)]
        key_name = self.config.get_str("table.field.event.key")
        key_schema = event.schema_of(key_name) if event.has(key_name) else event.text_schema
        made = record.with_topic(topic).with_partition(partitions[-1] if partitions else None)
        made = made.with_timestamp(self._time(event, seen_ms)).with_headers(tuple(headers))
        return made.with_key(key_schema, event.get(key_name)).with_value(*self._value(event, schema, payload, topic))

    def _placed(self, placement: str, event: "_StructRow | _MapRow") -> list[Additional]:
        placed = [each for each in self._additional if each.placement == placement]
        return [each for each in placed if self._strict or event.has(each.field)]

    def _value(
        self, event: "_StructRow | _MapRow", schema: Schema | None, payload: Any, topic: str
    ) -> tuple[Schema | None, Any]:
        empty = payload is None or not java_text(payload).strip()
        if empty and self.config.get_bool("route.tombstone.on.empty.payload"):
            return None, None
        if not self._enveloped:
            return schema, payload
        added = self._placed("envelope", event)
        values = {"payload": payload, **{each.alias: event.get(each.field) for each in added}}
        if schema is None:
            return None, values
        fields = [("payload", schema), *((each.alias, event.schema_of(each.field) or schema) for each in added)]
        versioned = self.config.find_str("table.field.event.schema.version")
        made = struct_schema(
            fields,
            name=_schema_name(event.name, topic),
            version=None if versioned is None else event.get(versioned),
        )
        return made, Struct(made, values)

    def _time(self, event: "_StructRow | _MapRow", seen_ms: Any) -> Any:
        name = self.config.find_str("table.field.event.timestamp")
        if name is None:
            return seen_ms
        if not event.has(name):
            raise ConnectException(f"Unable to find timestamp field {name} in event")
        found = event.get(name)
        if found is None:
            return seen_ms
        schema = event.schema_of(name)
        if schema is None:
            return found
        if schema.type is not Type.INT64:
            raise DataException(f"Field '{name}' is not of type INT64")
        if schema.name not in _PER_MILLI:
            shown = f"{schema.type} (without logical schema name)" if schema.name is None else schema.name
            raise ConnectException(f"Unsupported field type {shown} for event timestamp")
        by = _PER_MILLI[schema.name]
        return found // by if found >= 0 else -(-found // by)

    def _expanded(self, name: str, schema: Schema | None, payload: Any) -> tuple[Schema | None, Any]:
        if not self.config.get_bool("table.expand.json.payload") or not isinstance(payload, str):
            return schema, payload
        if not payload.startswith(("{", "[")):
            return schema, payload
        try:
            found = parsed(payload.encode())
            if schema is None:
                return None, found
            keep_null = self.config.get_str("table.json.payload.null.behavior").lower() == "optional_bytes"
            made = schema_of_json(name, found, keep_null)
            if made is None or made.type is not Type.STRUCT:
                return schema, payload
            return made, value_of_json(made, found)
        except ConnectException:
            return schema, payload


def _schema_name(original: str | None, topic: str) -> str:
    if original is None:
        return topic
    before, dot, last = original.rpartition(".")
    return f"{before}{dot}{topic}.{last}"


class _StructRow:
    """A row of the outbox with a schema."""

    __slots__ = ("_row", "name", "text_schema")

    def __init__(self, row: Struct) -> None:
        self._row = row
        self.name = row.schema.name
        self.text_schema: Schema | None = STRING_SCHEMA

    def has(self, field: str) -> bool:
        return self._row.schema.field(field) is not None

    def get(self, field: str) -> Any:
        return self._row.get(field)

    def schema_of(self, field: str) -> Schema | None:
        return self._row.found(field).schema


class _MapRow:
    """And without."""

    __slots__ = ("_row", "name", "text_schema")

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row
        self.name = None
        self.text_schema: Schema | None = None

    def has(self, field: str) -> bool:
        return field in self._row

    def get(self, field: str) -> Any:
        if field not in self._row:
            raise DataException(f"{field} is not a valid field name")
        return self._row[field]

    def schema_of(self, field: str) -> Schema | None:
        return None


# ---- JSON in a text as a struct


def schema_of_json(key: str, found: Any, keep_null: bool) -> Schema | None:
    """What Debezium infers; None where nothing can be said, as of null. Raises ConnectException."""
    if found is None:
        return OPTIONAL_BYTES if keep_null else None
    if isinstance(found, str):
        return OPTIONAL_STRING
    if isinstance(found, bool):
        return OPTIONAL_BOOLEAN
    if isinstance(found, int):
        narrow = -(1 << 31) <= found < 1 << 31
        wide = -(1 << 63) <= found < 1 << 63
        return OPTIONAL_INT32 if narrow else OPTIONAL_INT64 if wide else OPTIONAL_FLOAT64
    if isinstance(found, float):
        return OPTIONAL_FLOAT64
    if isinstance(found, list):
        return array_schema(_element_schema(key, found, keep_null), optional=True) if found else None
    fields = []
    for name, each in found.items():
        schema = schema_of_json(f"{key}.{name}" if key.strip() else name, each, keep_null)
        if schema is not None:
            fields.append((name, schema))
    return struct_schema(fields, name=key, optional=True)


def _element_schema(key: str, found: list[Any], keep_null: bool) -> Schema:
    known = [each for each in found if each is not None]
    if not known:
        if keep_null:
            return OPTIONAL_BYTES
        raise ConnectException("Array has unrecognized member schema.")
    if all(isinstance(each, dict) for each in known):
        merged: dict[str, Schema] = {}
        for each in known:
            schema = schema_of_json(key, each, keep_null)
            assert schema is not None
            for field in schema.fields:
                old = merged.get(field.name)
                if old is None or (old.type is Type.BYTES and field.schema.type is not Type.BYTES):
                    merged[field.name] = field.schema
        # As merging leaves it in Debezium: of one object the schema is optional, of several not.
        return struct_schema(merged, name=key, optional=len({repr(sorted(each)) for each in known}) == 1)
    schemas = [schema_of_json("", each, keep_null) for each in known]
    if schemas[0] is None or any(schema != schemas[0] for schema in schemas):
        raise ConnectException("Field is not a homogenous array.")
    return schemas[0]


def value_of_json(schema: Schema | None, found: Any) -> Any:
    if schema is None or found is None:
        return None
    if schema.type is Type.STRUCT:
        row = Struct(schema)
        for field in schema.fields:
            if field.name in found:
                row.put(field.name, value_of_json(field.schema, found[field.name]))
        return row
    if schema.type is Type.ARRAY:
        return [value_of_json(schema.value_schema, each) for each in found]
    return float(found) if schema.type is Type.FLOAT64 else found
