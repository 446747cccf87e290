"""AvroConverter: Avro by schemas of a registry, in the mapping that Confluent's AvroData made a standard.

What Connect has and Avro has not stands in properties that begin with `connect.`: a schema comes back as it was.
"""

import json
from typing import Any

from ottla.connect.converters.avro_reading import connect_schema, reader
from ottla.connect.converters.avro_writing import avro_schema, fitted, writer
from ottla.connect.converters.base import Role
from ottla.connect.converters.registered import (
    REGISTRY_KEYS,
    Encoding,
    Reading,
    RegisteredConverter,
    Rendered,
)
from ottla.connect.data.inference import inferred_schema
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import BOOLEAN, LOW, ConfigDef, ConfigKey, Texts
from ottla.registry.lookup import Registered, Registry
from ottla.registry.schemas.avro import Avro
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.serdes.avro.binary import FAULTS, Binary
from ottla.serdes.schema_ids import SchemaId


class AvroConverter(RegisteredConverter):
    CONFIG = ConfigDef(
        *REGISTRY_KEYS,
        ConfigKey(
            "connect.meta.data",
            BOOLEAN,
            True,
            LOW,
            "Whether what Avro has no words for is kept in properties of the schema.",
        ),
        ConfigKey(
            "enhanced.avro.schema.support",
            BOOLEAN,
            False,
            LOW,
            "Whether enums stay enums and packages of names stay what they are when a schema is written again.",
        ),
    )
    language = "AVRO"
    faults = FAULTS

    def __init__(self, given: Texts, role: Role, registry: Registry | None = None) -> None:
        super().__init__(given, role, registry)
        self._meta = self.config.get_bool("connect.meta.data")
        self._enhanced = self.config.get_bool("enhanced.avro.schema.support")

    def reading(self, registered: Registered, found: SchemaId) -> Reading:
        root = Avro().parse(registered.text, registered.resolved, Budget(DEFAULT_STEPS), new=False).root
        binary = Binary(root)
        schema = connect_schema(root)
        convert, read = reader(root, schema), binary.read
        return Reading(schema, lambda data, start: convert(read(data, start)))

    def rendered(self, schema: Schema | None, sample: Any) -> Rendered:
        of = inferred_schema(sample) if schema is None else schema
        tree = avro_schema(of, meta=self._meta, enums=self._enhanced)
        name = tree.get("name") if isinstance(tree, dict) else None
        space = tree.get("namespace") if isinstance(tree, dict) else None
        full = f"{space}.{name}" if space and name else name
        return Rendered(json.dumps(tree, separators=(",", ":"), ensure_ascii=False), full)

    def encoding(self, registered: Registered, schema: Schema | None, sample: Any) -> Encoding:
        of = inferred_schema(sample) if schema is None else schema
        root = Avro().parse(registered.text, registered.resolved, Budget(DEFAULT_STEPS), new=False).root
        write, convert = Binary(root).write, writer(of, schemaless=schema is None, enums=self._enhanced)
        if not self.config.get_bool("use.latest.version"):
            return Encoding(lambda value: write(convert(value)))
        fit = fitted(root)
        return Encoding(lambda value: write(fit(convert(value))))
