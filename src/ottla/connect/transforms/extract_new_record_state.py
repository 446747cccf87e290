"""Debezium's ExtractNewRecordState: the row itself in place of the envelope that tells of a change.

Debezium passes on records without schemas unchanged. Here an envelope is one without a schema too, known by its fields:
`schemas.enable=false` is the most used setting there is.
"""

from typing import Any, Final, NamedTuple

from ottla.connect.data.errors import ClassCastException, DataException, NullPointerException
from ottla.connect.data.record import ConnectRecord, Header
from ottla.connect.data.schema import STRING as STRING_SCHEMA
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.data.struct import Struct, validate_value
from ottla.connect.data.types import Type
from ottla.connect.definitions import (
    BOOLEAN,
    LIST,
    LOW,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigKey,
    OneOfIgnoringCase,
    Texts,
    Width,
)
from ottla.connect.transforms.base import Remembered, Transform, basics
from ottla.connect.transforms.envelopes import is_envelope, is_schemaless_envelope
from ottla.connect.transforms.fields import require_struct
from ottla.connect.transforms.insert_field import InsertFieldValue
from ottla.connect.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue

_PURPOSE: Final = "source field insertion"
_MODE: Final = "delete.tombstone.handling.mode"
_MODES: Final = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_OF_TRANSACTION: Final = ("id", "data_collection_order", "total_order")
_OF_ENVELOPE: Final = ("op", "ts_ms", "ts_us", "ts_ns")


class Reference(NamedTuple):
    """A field of the envelope that is to be kept: where it is, and what it is to be called."""

    struct: str | None
    field: str
    new_name: str

    @classmethod
    def of(cls, prefix: str, text: str) -> "Reference":
        path, *renamed = text.split(":")
        if len(renamed) > 1:
            raise ConfigError(f"Unexpected field name: {text}")
        first, *rest = path.split(".")
        field = rest[0] if rest else first
        struct = first if rest else _struct_of(field)
        if renamed:
            return cls(struct, field, prefix + renamed[0])
        return cls(struct, field, prefix + (f"{struct}_{field}" if rest else field))

    def schema_in(self, schema: Schema) -> Schema | None:
        found = None
        if self.struct is not None:
            parent = schema.field(self.struct)
            if parent is None:
                raise NullPointerException(f"The envelope has no field {self.struct}")
            found = parent.schema.field(self.field)
        found = found or schema.field(self.field)
        return None if found is None else found.schema.but(optional=True, default=None)

    def value_in(self, row: Struct) -> Any:
        parent = row if self.struct is None else row.get_without_default(self.struct)
        if parent is None:
            return None
        inside = parent.schema.field(self.field) is not None
        return (parent if inside else row).get_without_default(self.field)

    def found_in(self, value: dict[str, Any]) -> tuple[bool, Any]:
        parent = value if self.struct is None else value.get(self.struct)
        if isinstance(parent, dict) and self.field in parent:
            return True, parent[self.field]
        return self.field in value, value.get(self.field)


def _struct_of(field: str) -> str | None:
    if field in _OF_TRANSACTION:
        return "transaction"
    return None if field in _OF_ENVELOPE else "source"


def _key(name: str, kind: Any, default: Any, doc: str, display: str) -> ConfigKey:
    return ConfigKey(name, kind, default, LOW, doc, width=Width.SHORT, display_name=display)


class ExtractNewRecordState(Transform):
    CONFIG = ConfigDef(
        ConfigKey(
            _MODE,
            STRING,
            "tombstone",
            MEDIUM,
            "What becomes of deletes and of the tombstones behind them. drop: both are dropped. tombstone: a delete is "
            "a tombstone, the one behind it is dropped. rewrite: a delete is the old row with __deleted=true, the "
            "tombstone is dropped. rewrite-with-tombstone: the same, and the tombstone stays. delete-to-tombstone: a "
            "delete is a tombstone without a schema, the one behind it is dropped.",
            OneOfIgnoringCase(_MODES),
            width=Width.MEDIUM,
            display_name="Handle delete and tombstone records",
        ),
        _key("route.by.field", STRING, "", "The column whose value is the topic.", "Route by field name"),
        _key("add.fields.prefix", STRING, "__", "What stands before the names of added fields.", "Prefix of fields"),
        _key(
            "add.fields",
            LIST,
            (),
            "Fields of the envelope that the row is given: op, table, source.ts_ms, or op:OPERATION for another name.",
            "Fields to add",
        ),
        _key("add.headers.prefix", STRING, "__", "What stands before the names of added headers.", "Prefix of headers"),
        _key("add.headers", LIST, (), "Fields of the envelope that become headers.", "Headers to add"),
        _key(
            "replace.null.with.default",
            BOOLEAN,
            True,
            "Whether null counts as the default of its column when a row is rewritten.",
            "Replace null with default",
        ),
        _key(
            "drop.fields.header.name", STRING, None, "A header that lists fields to leave out.", "Header of left fields"
        ),
        _key("drop.fields.from.key", BOOLEAN, False, "Whether those leave the key too.", "Leave out of keys"),
        _key(
            "drop.fields.keep.schema.compatible",
            BOOLEAN,
            True,
            "Whether only optional fields may be left out, so that schemas stay compatible.",
            "Keep schemas compatible",
        ),
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._mode = self.config.get_str(_MODE).lower()
        self._route_by = self.config.get_str("route.by.field")
        self._fields = self._references("add.fields")
        self._headers = self._references("add.headers")
        self._rewrites = self._mode.startswith("rewrite")
        null = "true" if self.config.get_bool("replace.null.with.default") else "false"
        self._deleted, self._alive = (
            InsertFieldValue({"static.field": "__deleted", "static.value": text, "replace.null.with.default": null})
            for text in ("true", "false")
        )
        self._added: dict[Schema, Remembered[Schema]] = {}

    def _references(self, key: str) -> list[Reference]:
        prefix = self.config.get_str(f"{key}.prefix")
        return [Reference.of(prefix, text) for text in self.config.get_list(key)]

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.value is None:
            if self._mode != "rewrite-with-tombstone":
                return None
            return record.with_headers((*record.headers, *self._tombstone_headers()))
        if is_envelope(record.value_schema):
            return self._by_schema(record, require_struct(record.value, _PURPOSE))
        if is_schemaless_envelope(record):
            return self._schemaless(record, record.value)
        return record

    def _tombstone_headers(self) -> list[Header]:
        return [Header(each.new_name, STRING_SCHEMA, "d") for each in self._headers if each.field == "op"]

    # ---- with a schema

    def _by_schema(self, record: ConnectRecord, row: Struct) -> ConnectRecord | None:
        record = record.with_headers((*record.headers, *self._headers_of(row)))
        after = row.found("after")
        before = row.schema.field("before")
        now, was = row.get("after"), None if before is None else row.get("before")
        if now is None and was is None:
            return None  # a truncate
        if now is not None:
            made = record.with_value(after.schema, now)
            if self._rewrites:
                made = self._alive.apply(made) or made
            return self._dropped(self._with_fields(self._routed(made, now), row))
        made_or_none = self._delete(record, after.schema, was)
        if made_or_none is None:
            return None
        made = self._dropped(self._routed(made_or_none, was))
        return made if made.value is None else self._with_fields(made, row)

    def _delete(self, record: ConnectRecord, after: Schema, was: Any) -> ConnectRecord | None:
        if self._mode == "drop":
            return None
        if self._mode == "tombstone":
            return record.with_value(after, None)
        if self._mode == "delete-to-tombstone":
            return record.with_value(None, None)
        return self._deleted.apply(record.with_value(was.schema, was))

    def _headers_of(self, row: Struct) -> list[Header]:
        made = []
        for each in self._headers:
            schema = each.schema_in(row.schema)
            if schema is not None:
                made.append(Header(each.new_name, schema, each.value_in(row)))
        return made

    def _routed(self, record: ConnectRecord, row: Any) -> ConnectRecord:
        if not self._route_by:
            return record
        if row.found(self._route_by).schema.type is not Type.STRING:
            raise DataException(f"Field '{self._route_by}' is not of type STRING")
        topic = row.get_without_default(self._route_by)
        return record.with_topic(topic) if isinstance(topic, str) and topic.strip() else record

    def _with_fields(self, record: ConnectRecord, envelope: Struct) -> ConnectRecord:
        row = require_struct(record.value, _PURPOSE)
        make = self._added.get(envelope.schema)
        if make is None:
            make = self._added[envelope.schema] = Remembered(lambda schema: self._extended(schema, envelope.schema))
        schema = make(row.schema)
        values = row.values.copy()
        for each in self._fields:
            found = each.schema_in(envelope.schema)
            if found is not None:
                values.append(each.value_in(envelope))
                validate_value(found, values[-1], each.new_name)
        return record.with_value(schema, Struct.of(schema, values))

    def _extended(self, schema: Schema, envelope: Schema) -> Schema:
        fields = [(field.name, field.schema) for field in schema.fields]
        for each in self._fields:
            found = each.schema_in(envelope)
            if found is not None:
                fields.append((each.new_name, found))
        return struct_schema(fields, **basics(schema))

    def _dropped(self, record: ConnectRecord) -> ConnectRecord:
        """Without the fields that a header of the record names."""
        wanted = self.config.find_str("drop.fields.header.name")
        header = next((each for each in record.headers if wanted and each.key == wanted), None)
        if header is None or not header.value:
            return record
        if not isinstance(header.value, list):
            raise ClassCastException(f"the header {header.key} is no list of fields")
        if self.config.get_bool("drop.fields.from.key") and record.key_schema is not None and record.key is not None:
            names = self._droppable(record.key_schema, header.value)
            record = ReplaceFieldKey({"exclude": ",".join(names)}).apply(record) or record
        if record.value_schema is not None:
            names = self._droppable(record.value_schema, header.value)
            record = ReplaceFieldValue({"exclude": ",".join(names)}).apply(record) or record
        return record

    def _droppable(self, schema: Schema, names: list[str]) -> list[str]:
        if not self.config.get_bool("drop.fields.keep.schema.compatible"):
            return list(dict.fromkeys(names))
        return [field.name for field in schema.struct_fields() if field.schema.optional and field.name in names]

    # ---- without

    def _schemaless(self, record: ConnectRecord, envelope: dict[str, Any]) -> ConnectRecord | None:
        found = [(each.new_name, *each.found_in(envelope)) for each in self._headers]
        added = [Header(name, None, value) for name, there, value in found if there]
        record = record.with_headers((*record.headers, *added))
        now, was = envelope.get("after"), envelope.get("before")
        row: dict[str, Any] | None = was if now is None else now
        if row is None or (now is None and self._mode == "drop"):
            return None
        if now is None and not self._rewrites:
            return self._routed_map(record.with_value(None, None), row)
        row = dict(row)
        if self._rewrites:
            row["__deleted"] = "true" if now is None else "false"
        routed = self._routed_map(record, row)
        for each in self._fields:
            there, value = each.found_in(envelope)
            if there:
                row[each.new_name] = value
        return routed.with_value(None, row)

    def _routed_map(self, record: ConnectRecord, row: dict[str, Any]) -> ConnectRecord:
        topic = row.get(self._route_by) if self._route_by else None
        return record.with_topic(topic) if isinstance(topic, str) and topic.strip() else record
