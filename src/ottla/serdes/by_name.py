"""All serdes by name, and by the type that records are known to have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.model.extras import named
from ottla.serdes.base import Serde
from ottla.serdes.json import JsonSerde
from ottla.serdes.lists import ListSerde
from ottla.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UUIDSerde,
)
from ottla.serdes.types import Type

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry
    from ottla.serdes.avro.serde import AvroSchemaText, AvroSerde
    from ottla.serdes.json_schema import JsonSchemaSerde
    from ottla.serdes.protobuf import ProtobufSerde


class Serdes:
    """All that need to know nothing of windows."""

    string: Final = StringSerde()
    bytes: Final = BytesSerde()
    short: Final = ShortSerde()
    int: Final = IntSerde()
    long: Final = LongSerde()
    float: Final = FloatSerde()
    double: Final = DoubleSerde()
    boolean: Final = BooleanSerde()
    uuid: Final = UUIDSerde()
    list: Final = ListSerde
    json: Final = JsonSerde()

    @staticmethod
    def avro(registry: "Registry", schema: "AvroSchemaText | None" = None, **options: Any) -> "AvroSerde":
        """Avro by the schemas of a registry; what it takes, `serdes.avro.AvroSerde` tells."""
        from ottla.serdes.avro import AvroSerde  # noqa: PLC0415  few need it

        return AvroSerde(registry, schema, **options)

    @staticmethod
    def json_schema(
        registry: "Registry", schema: "str | bool | Mapping[str, Any] | None" = None, **options: Any
    ) -> "JsonSchemaSerde":
        """JSON by the schemas of a registry; what it takes, `serdes.json_schema.JsonSchemaSerde` tells."""
        with named():
            from ottla.serdes.json_schema import JsonSchemaSerde  # noqa: PLC0415  few need it

        return JsonSchemaSerde(registry, schema, **options)

    @staticmethod
    def protobuf(registry: "Registry", schema: str | None = None, **options: Any) -> "ProtobufSerde":
        """Protobuf by the schemas of a registry; what it takes, `serdes.protobuf.ProtobufSerde` tells."""
        with named():
            from ottla.serdes.protobuf import ProtobufSerde  # noqa: PLC0415  few need it

        return ProtobufSerde(registry, schema, **options)


def serde_for(kind: Type) -> Serde[Any]:
    """The serde to take where the user named none and the type is known."""
    for serde in (Serdes.string, Serdes.bytes, Serdes.int, Serdes.long, Serdes.double, Serdes.boolean, Serdes.json):
        if serde.type == kind:
            return serde
    if kind.name not in {"null", "windowed"}:
        return JsonSerde(kind)  # Kafka has none of its own for the others
    raise ValueError(f"there is no serde for {kind}; name one, such as Serdes.time_windowed(...)")
