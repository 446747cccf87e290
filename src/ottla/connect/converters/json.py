"""JsonConverter: JSON with its schema in an envelope, or without."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ottla.connect.converters.base import TYPE, Converted, Converter, RawHeaders, Role
from ottla.connect.converters.json_reading import Read, needs_exact_numbers, quick_reader, reader_of
from ottla.connect.converters.json_schemas import known_value, schema_of, schema_text
from ottla.connect.converters.json_texts import MISSING, parsed
from ottla.connect.converters.json_writing import Writers, schemaless_bytes, schemaless_text
from ottla.connect.data.errors import ConnectException, DataException
from ottla.connect.data.record import NOTHING, SchemaAndValue
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import (
    BOOLEAN,
    HIGH,
    INT,
    LOW,
    STRING,
    ConfigDef,
    ConfigKey,
    OneOfIgnoringCase,
    Texts,
    Width,
)

if TYPE_CHECKING:
    import pyarrow as pa

_NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields.'
    " If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_SCHEMAS, _SERIALIZATION = "Schemas", "Serialization"


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """The two parts as they lie there, so that a schema that was met before is known by its bytes."""

    schema: msgspec.Raw
    payload: msgspec.Raw


class _Known(NamedTuple):
    schema: Schema | None
    read: Read | None
    exact: bool
    quick: Read | None = None


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)


class JsonConverter(Converter):
    """Java's, byte for byte; maps keep the order they were given, where Java's hash them."""

    CONFIG = ConfigDef(
        TYPE,
        ConfigKey(
            "schemas.enable",
            BOOLEAN,
            True,
            HIGH,
            "Whether each key and value lies in an envelope with its schema.",
            group=_SCHEMAS,
            order=0,
            width=Width.MEDIUM,
            display_name="Enable Schemas",
        ),
        ConfigKey(
            "schemas.cache.size",
            INT,
            1000,
            HIGH,
            "How many schemas the converter remembers at most.",
            group=_SCHEMAS,
            order=1,
            width=Width.MEDIUM,
            display_name="Schema Cache Size",
        ),
        ConfigKey(
            "schema.content",
            STRING,
            None,
            HIGH,
            "One schema for all that a sink reads, as an envelope would have it; what lies in the topic is the payload "
            "alone. Counts with schemas.enable only.",
            group=_SCHEMAS,
            order=2,
            width=Width.MEDIUM,
            display_name="Schema Content",
        ),
        ConfigKey(
            "decimal.format",
            STRING,
            "BASE64",
            LOW,
            "How decimals are written: BASE64 (their bytes) or NUMERIC (a JSON number). Both are read.",
            OneOfIgnoringCase(("BASE64", "NUMERIC")),
            group=_SERIALIZATION,
            order=0,
            width=Width.MEDIUM,
            display_name="Decimal Format",
        ),
        ConfigKey(
            "replace.null.with.default",
            BOOLEAN,
            True,
            LOW,
            "Whether null reads and is written as the default of its field, where there is one.",
            group=_SERIALIZATION,
            order=1,
            width=Width.MEDIUM,
            display_name="Replace null with default",
        ),
    )

    def __init__(self, given: Texts, role: Role) -> None:
        super().__init__(given, role)
        self._enveloped = self.config.get_bool("schemas.enable")
        self._replace_null = self.config.get_bool("replace.null.with.default")
        self._cache_size = self.config.get_int("schemas.cache.size")
        self._writers = Writers(
            decimals_as_numbers=self.config.get_str("decimal.format").upper() == "NUMERIC",
            replace_null=self._replace_null,
            cache_size=self._cache_size,
        )
        self._heads: dict[Schema, str] = {}
        self._known: dict[bytes, _Known] = {}
        content = self.config.find_str("schema.content")
        self._given = None if not content else self._knowledge(content.encode())

    @property
    def has_schemas(self) -> bool:
        return self._enveloped

    @property
    def is_usual(self) -> bool:
        """Whether decimals and nulls are written as without settings for them."""
        return self._replace_null and not self._writers.decimals_as_numbers

    # ---- reading

    def to_connect(
        self, topic: str, column: Sequence[bytes | None], headers: Sequence[RawHeaders] | None = None
    ) -> list[Converted]:
        if self._enveloped:
            return super().to_connect(topic, column, headers)
        out: list[Converted] = []
        for data in column:
            if data is None:
                out.append(NOTHING)
                continue
            try:
                out.append(SchemaAndValue(None, known_value(parsed(data))))
            except ConnectException as error:
                out.append(error)
        return out

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NOTHING
        if not self._enveloped:
            return SchemaAndValue(None, known_value(parsed(data)))
        if self._given is not None:
            return self._payload(self._given, data)
        try:
            envelope = _ENVELOPE.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._read_slowly(data)
        schema = bytes(envelope.schema)
        return self._payload(self._known.get(schema) or self._learnt(schema), envelope.payload)

    def _read_slowly(self, data: bytes) -> SchemaAndValue:
        """What is no envelope, or one with something behind it."""
        found = parsed(data)
        if not isinstance(found, dict) or found.keys() != {"schema", "payload"}:
            raise DataException(_NO_ENVELOPE)
        schema = schema_of(found["schema"], replace_null=self._replace_null)
        if schema is None:
            return SchemaAndValue(None, found["payload"])
        exact = parsed(data, exact=True) if needs_exact_numbers(schema) else found
        return SchemaAndValue(schema, reader_of(schema, self._replace_null)(exact["payload"]))

    def _payload(self, known: _Known, data: Any) -> SchemaAndValue:
        if known.quick is not None:
            try:
                return SchemaAndValue(known.schema, known.quick(data))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # Jackson may take it, or it is told what is wrong
        found = parsed(data, exact=known.exact)
        value = known_value(found)
        return SchemaAndValue(known.schema, value if known.read is None else known.read(value))

    def _learnt(self, text: bytes) -> _Known:
        while len(self._known) >= max(self._cache_size, 1):
            self._known.pop(next(iter(self._known)))
        known = self._known[text] = self._knowledge(text)
        return known

    def _knowledge(self, text: bytes) -> _Known:
        found = parsed(text, exact=True)
        schema = None if found is MISSING else schema_of(found, replace_null=self._replace_null)
        if schema is None:
            return _Known(None, None, False)
        return _Known(schema, reader_of(schema, self._replace_null), needs_exact_numbers(schema), quick_reader(schema))

    # ---- writing

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        schema, value = given
        if schema is None:
            if value is None:
                return None
            if not self._enveloped:
                return schemaless_bytes(value)
            return self._encoded('{"schema":null,"payload":', schemaless_text(value), "}")
        payload = self._writers.of(schema)(value)
        return self._encoded(self._head(schema), payload, "}") if self._enveloped else self._encoded(payload)

    def from_columns(self, topic: str, schema: Schema, table: "pa.Table") -> "pa.ChunkedArray | None":
        from ottla.connect.converters.json_columns import object_texts  # noqa: PLC0415  pyarrow

        if not self._enveloped:
            return object_texts(schema, table, self._writers)
        return object_texts(schema, table, self._writers, self._head(schema), "}")

    def _head(self, schema: Schema) -> str:
        head = self._heads.get(schema)
        if head is None:
            while len(self._heads) >= max(self._cache_size, 1):
                self._heads.pop(next(iter(self._heads)))
            head = self._heads[schema] = f'{{"schema":{schema_text(schema, self._writers)},"payload":'
        return head

    def _encoded(self, *parts: str) -> bytes:
        return "".join(parts).encode("utf-8", "replace")  # half of a surrogate pair is '?', as in Java
