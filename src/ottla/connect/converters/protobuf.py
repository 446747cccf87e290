"""ProtobufConverter: Protobuf by schemas of a registry, in the mapping of Confluent's ProtobufData.

A field's number is kept in a parameter of its schema, so that a schema that was read is written again as it was.
Without further settings a null is what Protobuf has for it: nothing, which scalars read as zero.
`optional.for.nullables` or `wrapper.for.nullables` tell the two apart.
"""

from typing import Any, Final

from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ottla.connect.converters.base import Role
from ottla.connect.converters.protobuf_mapping import Mapping
from ottla.connect.converters.protobuf_reading import Read, Schemas, record_reader
from ottla.connect.converters.protobuf_rendering import rendered
from ottla.connect.converters.protobuf_writing import record_filler
from ottla.connect.converters.registered import (
    REGISTRY_KEYS,
    Encoding,
    Reading,
    RegisteredConverter,
    Rendered,
)
from ottla.connect.data.errors import DataException
from ottla.connect.data.inference import inferred_schema
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import Schema
from ottla.connect.definitions import BOOLEAN, LOW, MEDIUM, ConfigDef, ConfigKey, Texts
from ottla.registry.lookup import Registered, Registry
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.protobuf import Protobuf, ProtobufSchema
from ottla.registry.schemas.protobuf.field_params import field_params
from ottla.serdes.schema_ids import SchemaId, read_indexes, write_indexes

_SETTINGS: Final = {
    "enhanced.protobuf.schema.support": (False, "Whether names of structs keep the package of their message."),
    "scrub.invalid.names": (False, "Whether names that Protobuf does not take are made ones that it does."),
    "generate.index.for.unions": (True, "Whether the field of a oneof is called after its index too: name_0."),
    "int.for.enums": (False, "Whether an enum is the number of its value, not the name."),
    "optional.for.nullables": (
        False,
        "Whether what may be null says `optional`, and reads as null when it is not set.",
    ),
    "optional.for.proto2": (True, "Whether fields of proto2 that are optional and not set read as null."),
    "wrapper.for.nullables": (False, "Whether scalars that may be null are google.protobuf's wrappers."),
    "wrapper.for.raw.primitives": (True, "Whether a record that is a wrapper reads as the value in it."),
    "generate.struct.for.nulls": (
        False,
        "Whether a message that is not set reads as a struct of defaults, not as null.",
    ),
    "flatten.unions": (False, "Whether the fields of a oneof are fields beside the others."),
    "generalized.sum.type.support": (False, "Whether enums and unions are described as in the other converters."),
}


class ProtobufConverter(RegisteredConverter):
    CONFIG = ConfigDef(
        *REGISTRY_KEYS,
        *(
            ConfigKey(name, BOOLEAN, default, MEDIUM if name.startswith(("enh", "scrub")) else LOW, doc)
            for name, (default, doc) in _SETTINGS.items()
        ),
    )
    language = "PROTOBUF"
    faults = (DecodeError, EncodeError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError)

    def __init__(self, given: Texts, role: Role, registry: Registry | None = None) -> None:
        super().__init__(given, role, registry)
        on = self.config.get_bool
        self._mapping = Mapping(
            full_names=on("enhanced.protobuf.schema.support"),
            scrub=on("scrub.invalid.names"),
            union_index=on("generate.index.for.unions"),
            enum_numbers=on("int.for.enums"),
            optional_keyword=on("optional.for.nullables"),
            proto2_optional=on("optional.for.proto2"),
            wrappers=on("wrapper.for.nullables"),
            raw_wrappers=on("wrapper.for.raw.primitives"),
            structs_for_nulls=on("generate.struct.for.nulls"),
            flat_unions=on("flatten.unions"),
            general_sums=on("generalized.sum.type.support"),
        )

    def reading(self, registered: Registered, found: SchemaId) -> Reading:
        return _Messages(_parsed(registered), self._mapping).reading(found)

    def rendered(self, schema: Schema | None, sample: Any) -> Rendered:
        text, name = rendered(inferred_schema(sample) if schema is None else schema, self._mapping)
        # What a registry would refuse is said here, whoever's registry it is.
        return Rendered(Protobuf().parse(text, (), Budget(DEFAULT_STEPS), new=True).text, name)

    def encoding(self, registered: Registered, schema: Schema | None, sample: Any) -> Encoding:
        of = inferred_schema(sample) if schema is None else schema
        parsed = _parsed(registered)
        name = self._message_name(parsed, rendered(of, self._mapping)[1])
        descriptor = parsed.pool().FindMessageTypeByName(name)
        fill = record_filler(of, descriptor, self._mapping, schemaless=schema is None)
        made = GetMessageClass(descriptor)

        def write(value: Any) -> bytes:
            if value is None:
                value = of.default
            if value is None:
                raise DataException(f"Found null value for non-optional schema {of}")
            message = made()
            fill(message, value)
            return message.SerializeToString(deterministic=True)

        return Encoding(write, write_indexes(parsed.message_indexes(name)))

    def _message_name(self, parsed: ProtobufSchema, own: str) -> str:
        """The record's own message, or the schema's first if somebody else's is written with."""
        try:
            parsed.message_indexes(own)
        except LookupError:
            if not self.config.get_bool("use.latest.version"):
                raise
            return parsed.message_name((0,))
        return own


class _Messages:
    """How records of one schema are read, each by the message it says it is."""

    __slots__ = ("_made", "_mapping", "_params", "_pool", "_schema")

    def __init__(self, schema: ProtobufSchema, mapping: Mapping) -> None:
        self._schema = schema
        self._mapping = mapping
        self._params = field_params(schema.file)
        self._pool = schema.pool()
        self._made: dict[tuple[int, ...], tuple[Schema, type[Message], Read]] = {}

    def reading(self, found: SchemaId) -> Reading:
        if found.indexes is not None:
            schema, made, read = self._of(read_indexes(found.indexes, 0)[0] if found.indexes else (0,))
            return Reading(schema, lambda data, start: read(made.FromString(data[start:])))

        def of_any(data: bytes, start: int) -> SchemaAndValue:
            indexes, place = read_indexes(data, start)
            schema, made, read = self._made.get(indexes) or self._of(indexes)
            return SchemaAndValue(schema, read(made.FromString(data[place:])))

        return Reading(None, of_any)

    def _of(self, indexes: tuple[int, ...]) -> tuple[Schema, type[Message], Read]:
        descriptor = self._pool.FindMessageTypeByName(self._schema.message_name(indexes))
        schemas = Schemas(self._mapping, self._params)
        schema = schemas.of_record(descriptor)
        read = record_reader(descriptor, schema, schemas, self._mapping)
        made = self._made[indexes] = schema, GetMessageClass(descriptor), read
        return made


def _parsed(registered: Registered) -> ProtobufSchema:
    return Protobuf().parse(registered.text, registered.resolved, Budget(DEFAULT_STEPS), new=False)
