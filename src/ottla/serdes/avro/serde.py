"""Records as Avro, with the id of their schema in a registry: `Serdes.avro`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ottla.registry.lookup import Registry
from ottla.registry.schemas.avro import Avro, AvroSchema
from ottla.registry.schemas.avro.tree import full_name
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Resolved
from ottla.serdes.avro.binary import FAULTS, Binary
from ottla.serdes.avro.reading import Form, conversion
from ottla.serdes.avro.types import avro_of, type_of
from ottla.serdes.avro.writing import writing
from ottla.serdes.registered import Decode, Encode, RegisteredSerde
from ottla.serdes.schema_ids import SchemaId
from ottla.serdes.types import ANY, Type, parse_type_or_schema

AvroSchemaText: TypeAlias = str | Mapping[str, Any] | Sequence[Any] | Type
"""Avro's JSON, as text or as what the text would be read as; or our types, as `Type` or as fields in DDL."""


class AvroSerde(RegisteredSerde[AvroSchema]):
    """Avro, with the schema's id in front of the payload or its GUID in a header; both are read.

    Serdes.avro(registry, schema)             this schema, in Avro's JSON or as fields: "ticker STRING, price DOUBLE"
    Serdes.avro(registry, subject="orders")   the latest schema of the subject, asked for now
    Serdes.avro(registry)                     reads whatever schema records have; the value has no type

    What others wrote with another schema is read into this one by Avro's rules of evolution. To be written the schema
    is registered, or with `register=False` has to be there. Other options are those of `RegisteredSerde`.
    """

    name = "avro"
    language = "AVRO"
    faults = FAULTS

    def __init__(
        self, registry: Registry, schema: AvroSchemaText | None = None, *, record: str = "Record", **options: Any
    ) -> None:
        """`record`: how the record of a schema of fields is called."""
        super().__init__(registry, None if schema is None else _text_of(schema, record), **options)

    def parse(self, text: str, resolved: Sequence[Resolved]) -> AvroSchema:
        return Avro().parse(text, resolved, Budget(DEFAULT_STEPS), new=False)

    def type_of(self, schema: AvroSchema) -> Type:
        return type_of(schema.root)

    def record_name(self, schema: AvroSchema) -> str:
        return full_name(schema.root)

    def decoding(self, writer: AvroSchema, found: SchemaId, *, for_columns: bool) -> Decode:
        binary = Binary(writer.root)
        reader = self.own_schema() or writer
        form = Form(for_columns=for_columns, members=self.type != ANY)
        convert = conversion(writer.root, reader.root, form, named=binary.named)
        read = binary.read
        return read if convert is None else lambda data, start: convert(read(data, start))

    def encoding(self, schema: AvroSchema) -> Encode:
        write, convert = Binary(schema.root).write, writing(schema.root, members=self.type != ANY)
        return lambda value: write(convert(value))


def _text_of(schema: AvroSchemaText, record: str) -> str:
    if isinstance(schema, Type):
        return json.dumps(avro_of(schema, record))
    if not isinstance(schema, str):
        return json.dumps(schema)
    if schema.lstrip()[:1] in ("{", "[", '"'):
        return schema
    return json.dumps(avro_of(parse_type_or_schema(schema), record))
