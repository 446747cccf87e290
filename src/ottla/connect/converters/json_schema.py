"""JsonSchemaConverter: JSON by schemas of a registry, in the mapping of Confluent's JsonSchemaData."""

from typing import Any

from ottla.connect.converters.base import Role
from ottla.connect.converters.json_reading import needs_exact_numbers
from ottla.connect.converters.json_schema_reading import Schemas, reader
from ottla.connect.converters.json_schema_writing import Rendering, SchemaWriters, text_of
from ottla.connect.converters.json_texts import parsed
from ottla.connect.converters.json_writing import schemaless_text
from ottla.connect.converters.registered import (
    REGISTRY_KEYS,
    Encoding,
    Reading,
    RegisteredConverter,
    Rendered,
)
from ottla.connect.data.inference import inferred_schema
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import BOOLEAN, LOW, MEDIUM, STRING, ConfigDef, ConfigKey, OneOfIgnoringCase, Texts
from ottla.registry.lookup import Registered, Registry
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.json_schema import JSON_SCHEMA, JsonSchema, validator
from ottla.serdes.base import SerdeError
from ottla.serdes.schema_ids import SchemaId


class JsonSchemaConverter(RegisteredConverter):
    CONFIG = ConfigDef(
        *REGISTRY_KEYS,
        ConfigKey(
            "object.additional.properties",
            BOOLEAN,
            True,
            MEDIUM,
            "Whether objects may have members that the schema does not name.",
        ),
        ConfigKey(
            "use.optional.for.nonrequired",
            BOOLEAN,
            False,
            MEDIUM,
            "Whether properties that are not required may be null, and those that may not be null are required.",
        ),
        ConfigKey(
            "decimal.format",
            STRING,
            "BASE64",
            LOW,
            "How decimals are written: BASE64 (their bytes) or NUMERIC (a JSON number). Both are read. The schema says "
            "number for either, as Confluent's does: whoever checks values against schemas wants NUMERIC.",
            OneOfIgnoringCase(("BASE64", "NUMERIC")),
        ),
        ConfigKey(
            "generalized.sum.type.support",
            BOOLEAN,
            False,
            LOW,
            "Whether enums and unions are described as in the other converters.",
        ),
        ConfigKey(
            "ignore.default.for.nullables",
            BOOLEAN,
            False,
            LOW,
            "Whether null stays null where the schema has a default.",
        ),
        ConfigKey(
            "json.fail.invalid.schema",
            BOOLEAN,
            False,
            MEDIUM,
            "Whether what is read and written is checked against the schema.",
        ),
    )
    language = "JSON"
    faults = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)

    def __init__(self, given: Texts, role: Role, registry: Registry | None = None) -> None:
        super().__init__(given, role, registry)
        on = self.config.get_bool
        self._replace_null = not on("ignore.default.for.nullables")
        self._checks = on("json.fail.invalid.schema")
        self._writers = SchemaWriters(
            decimals_as_numbers=self.config.get_str("decimal.format").upper() == "NUMERIC",
            replace_null=self._replace_null,
            cache_size=self.config.get_int("schemas.cache.config"),
        )
        self._rendering = Rendering(
            self._writers, additional=on("object.additional.properties"), required=on("use.optional.for.nonrequired")
        )

    def reading(self, registered: Registered, found: SchemaId) -> Reading:
        described = _parsed(registered)
        schema = Schemas(
            optional_unless_required=self.config.get_bool("use.optional.for.nonrequired"),
            general_sums=self.config.get_bool("generalized.sum.type.support"),
        ).of(described)
        exact, read = needs_exact_numbers(schema), reader(schema, replace_null=self._replace_null)
        check = validator(described) if self._checks else None

        def read_from(data: bytes, start: int) -> Any:
            payload = data[start:]
            if check is not None and (fault := check(payload)) is not None:
                raise SerdeError(fault)
            return read(parsed(payload, exact=exact))

        return Reading(schema, read_from)

    def rendered(self, schema: Schema | None, sample: Any) -> Rendered:
        of = inferred_schema(sample) if schema is None else schema
        return Rendered(text_of(self._rendering.of(of)), of.name)

    def encoding(self, registered: Registered, schema: Schema | None, sample: Any) -> Encoding:
        write = schemaless_text if schema is None else self._writers.of(schema)
        check = validator(_parsed(registered)) if self._checks else None

        def encoded(value: Any) -> bytes:
            payload = write(value).encode("utf-8", "replace")
            if check is not None and (fault := check(payload)) is not None:
                raise SerdeError(fault)
            return payload

        return Encoding(encoded)


def _parsed(registered: Registered) -> JsonSchema:
    return JSON_SCHEMA.parse(registered.text, registered.resolved, Budget(DEFAULT_STEPS), new=False)
