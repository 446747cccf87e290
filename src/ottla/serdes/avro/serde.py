"""Records as Avro, with the id of their schema in a registry: `Serdes.avro`."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from ottla.registry.lookup import Registered, Registry, UnknownSchema
from ottla.registry.schemas.avro import Avro, AvroSchema
from ottla.registry.schemas.avro.tree import full_name
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, Reference, Resolved, TooComplex
from ottla.serdes.avro.binary import FAULTS, Binary
from ottla.serdes.avro.reading import Form, conversion
from ottla.serdes.avro.types import avro_of, type_of
from ottla.serdes.avro.writing import Write, writing
from ottla.serdes.base import ColumnSerde, SerdeError, shown, shown_value
from ottla.serdes.schema_ids import HEADER_OF, ID_BYTES, Headers, Part, SchemaId, framed, guid_header, schema_of
from ottla.serdes.types import ANY, Type, parse_type_or_schema

Naming: TypeAlias = Literal["topic", "record", "topic_record"]
"""Which subject a schema belongs to: `<topic>-value`, the record's full name, or `<topic>-<record>`."""
Ids: TypeAlias = Literal["payload", "header"]
AvroSchemaText: TypeAlias = str | Mapping[str, Any] | Sequence[Any] | Type
"""Avro's JSON, as text or as what the text would be read as; or our types, as `Type` or as fields in DDL."""

Decode: TypeAlias = Callable[[bytes, int], Any]
_CHANGELOG: Final = "-changelog"


class AvroSerde(ColumnSerde[Any]):
    """Avro, with the schema's id in front of the payload or its GUID in a header; both are read.

    Serdes.avro(registry, schema)             this schema, in Avro's JSON or as fields: "ticker STRING, price DOUBLE"
    Serdes.avro(registry, subject="orders")   the latest schema of the subject, asked for now
    Serdes.avro(registry)                     reads whatever schema records have; the value has no type

    What others wrote with another schema is read into this one by Avro's rules of evolution. To be written the schema
    is registered, or with `register=False` has to be there.
    """

    name = "avro"

    def __init__(
        self,
        registry: Registry,
        schema: AvroSchemaText | None = None,
        *,
        subject: str | None = None,
        part: Part = "value",
        ids: Ids = "payload",
        naming: Naming = "topic",
        register: bool = True,
        record: str = "Record",
        references: Sequence[Reference] = (),
    ) -> None:
        """`subject`: where the schema is kept; else `naming` says so. `record`: how the record of a schema of fields is
        called. `references`: what a schema in Avro's JSON refers to."""
        for what, given, known in (("part", part, Part), ("ids", ids, Ids), ("naming", naming, Naming)):
            if given not in get_args(known):
                raise ValueError(f"{what} is one of {', '.join(get_args(known))}, not {given!r}")
        self.registry = registry
        self.part = part
        self.ids = ids
        self.naming = naming
        self.subject = subject
        self.register = register
        self.references = tuple(references)
        self.text: str | None = None
        self.resolved: tuple[Resolved, ...] = ()
        if schema is not None:
            self.text = _text_of(schema, record)
            self.resolved = registry.resolve(references) if references else ()
        elif subject is not None:
            self._take(registry.latest(subject), subject)
        self._memo = _Memo()
        own = self._schema()
        self.type = ANY if own is None else type_of(own.root)

    def _take(self, latest: Registered, subject: str) -> None:
        if latest.language != "AVRO":
            raise ValueError(f"subject {subject} has schemas of {latest.language}, not of AVRO")
        self.text, self.references, self.resolved = latest.text, latest.references, latest.resolved

    def __repr__(self) -> str:
        own = self._schema()
        return "Serdes.avro" if own is None else f"Serdes.avro({full_name(own.root)})"

    @property
    def has_columns(self) -> bool:
        return not self.type.has("any", "null") and self.ids == "payload"

    # ---- reading

    def decode_from(self, data: bytes, topic: str, headers: Headers) -> Any:
        return self.read(data, headers, for_columns=False)

    def read(self, data: bytes, headers: Headers, *, for_columns: bool) -> Any:
        prefix = data[:ID_BYTES]
        decode = None if headers else self._memo.by_prefix.get((prefix, for_columns))
        try:
            if decode is not None:
                return decode(data, ID_BYTES)
            found, start = schema_of(data, headers, self.part)
            decode = self._memo.decoders.get((found, for_columns)) or self._decoder(found, for_columns)
            if start == ID_BYTES:  # nearly always: then it is known by its bytes from now on
                self._memo.by_prefix[prefix, for_columns] = decode
            return decode(data, start)
        except SerdeError as error:
            raise SerdeError(f"{self!r}: {error}") from error.__cause__
        except FAULTS as error:
            found, _ = schema_of(data, headers, self.part)
            why = str(error) or type(error).__name__
            raise SerdeError(f"{self!r}: Avro of schema {found} expected, found {shown(data)}: {why}") from error

    def _decoder(self, found: SchemaId, for_columns: bool) -> Decode:
        writer = self._writer(found)
        reader = self._schema() or writer
        binary = Binary(writer.root)
        form = Form(for_columns=for_columns, members=self.type != ANY)
        convert = conversion(writer.root, reader.root, form, named=binary.named)
        read = binary.read
        decode: Decode = read if convert is None else lambda data, start: convert(read(data, start))
        self._memo.decoders[found, for_columns] = decode
        return decode

    def _writer(self, found: SchemaId) -> AvroSchema:
        try:
            by_guid, by_id = found.guid, found.id or 0
            registered = self.registry.by_id(by_id) if by_guid is None else self.registry.by_guid(by_guid)
        except UnknownSchema as error:
            raise SerdeError(f"schema {found} is not known: {error}") from error
        if registered.language != "AVRO":
            raise SerdeError(f"schema {found} is of {registered.language}, not of AVRO")
        return _parsed(registered)

    # ---- writing

    def encode_for(self, value: Any, topic: str, headers: list[tuple[str, bytes | None]]) -> bytes:
        registered, binary, convert = self._memo.written.get(topic) or self._written(topic)
        try:
            payload = binary.write(convert(value))
        except FAULTS as error:
            raise SerdeError(f"{self!r}: {error}; the value is {shown_value(value)}") from error
        if headers:  # those of the record that this one was made of speak of other bytes
            headers[:] = [each for each in headers if each[0] != HEADER_OF[self.part]]
        # A changelog keeps no headers of what a store holds.
        if self.ids == "header" and not topic.endswith(_CHANGELOG):
            headers.append((HEADER_OF[self.part], guid_header(registered.guid)))
            return payload
        return framed(registered.id, payload)

    def _written(self, topic: str) -> "_Written":
        try:
            registered = self._registered(topic)
            root = _parsed(registered).root
        except (UnknownSchema, SerdeError) as error:
            raise SerdeError(f"{self!r}: nothing can be written to topic {topic!r}: {error}") from error
        made = _Written(registered, Binary(root), writing(root, members=self.type != ANY))
        self._memo.written[topic] = made
        return made

    def _registered(self, topic: str) -> Registered:
        own = self._schema()
        subject = self._subject(topic, own)
        if own is None:
            registered = self.registry.latest(subject)
        else:
            ask = self.registry.register if self.register else self.registry.find
            registered = ask(subject, "AVRO", own.text, self.references)
        if registered.language != "AVRO":
            raise SerdeError(f"subject {subject} has schemas of {registered.language}, not of AVRO")
        if self.ids == "header" and not registered.guid:
            raise SerdeError("this registry gives no GUIDs that could be put into headers: use ids='payload'")
        return registered

    def _subject(self, topic: str, own: AvroSchema | None) -> str:
        if self.subject is not None:
            return self.subject
        if own is not None and self.naming == "record":
            return full_name(own.root)
        if not topic:
            raise SerdeError("its schema is kept by topic, and here is none: name a subject")
        return f"{topic}-{self.part}" if own is None or self.naming == "topic" else f"{topic}-{full_name(own.root)}"

    def _schema(self) -> AvroSchema | None:
        if self.text is not None and self._memo.schema is None:
            try:
                self._memo.schema = Avro().parse(self.text, self.resolved, Budget(DEFAULT_STEPS), new=False)
            except (InvalidSchema, TooComplex) as error:
                raise ValueError(f"the schema of a serde is none: {error}") from error
        return self._memo.schema


class _Written(NamedTuple):
    """How records of a topic are written."""

    registered: Registered
    binary: Binary
    convert: Write


class _Memo:
    """What a serde has made of schemas so far. It does not travel, and serdes are equal whatever they have met."""

    def __init__(self) -> None:
        self.schema: AvroSchema | None = None
        self.decoders: dict[tuple[SchemaId, bool], Decode] = {}
        self.by_prefix: dict[tuple[bytes, bool], Decode] = {}
        self.written: dict[str, _Written] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Memo)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> "tuple[type[_Memo], tuple[()]]":
        return _Memo, ()


def _text_of(schema: AvroSchemaText, record: str) -> str:
    if isinstance(schema, Type):
        return json.dumps(avro_of(schema, record))
    if not isinstance(schema, str):
        return json.dumps(schema)
    if schema.lstrip()[:1] in ("{", "[", '"'):
        return schema
    return json.dumps(avro_of(parse_type_or_schema(schema), record))


def _parsed(registered: Registered) -> AvroSchema:
    try:
        return Avro().parse(registered.text, registered.resolved, Budget(DEFAULT_STEPS), new=False)
    except (InvalidSchema, TooComplex) as error:
        raise SerdeError(f"schema {registered.id} is none: {error}") from error
