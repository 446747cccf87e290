"""What both directions of ProtobufConverter agree on: its settings, names, and which messages stand for what."""

from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

from ottla.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from ottla.connect.data.schema import Schema
from ottla.connect.data.types import Type

PACKAGE: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{PACKAGE}.Tag"
"""The parameter that keeps a field's number."""
KIND: Final = f"{PACKAGE}.Type"
"""The parameter that keeps a scalar's own type: uint32, sfixed64, ..."""
UNION_PREFIX: Final = f"{PACKAGE}.Union."
ENUM: Final = f"{PACKAGE}.Enum"
GENERAL_ENUM: Final = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION: Final = "org.apache.kafka.connect.data.Union"
DEFAULT_NAME: Final = "ConnectDefault"
ENTRY: Final = "Entry"
PRECISION: Final = "connect.decimal.precision"
CONNECT_TYPE: Final = "connect.type"

MESSAGE_OF: Final = {
    DECIMAL_NAME: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE_NAME: ("google.type.Date", "google/type/date.proto"),
    TIME_NAME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP_NAME: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
"""What logical types are, and where it is declared."""
LOGICAL_OF: Final = {message: name for name, (message, _) in MESSAGE_OF.items()}

WRAPPERS_PATH: Final = "google/protobuf/wrappers.proto"
SCALAR_OF_WRAPPER: Final = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}


@dataclass(frozen=True, slots=True)
class Mapping:
    """Confluent's settings, by what they say."""

    full_names: bool = False
    """enhanced.protobuf.schema.support: names keep their package."""
    scrub: bool = False
    union_index: bool = True
    """generate.index.for.unions: a oneof is the field `name_0`, not `name`."""
    enum_numbers: bool = False
    optional_keyword: bool = False
    """optional.for.nullables: fields are optional that say so, and no others."""
    proto2_optional: bool = True
    wrappers: bool = False
    """wrapper.for.nullables: scalars that may be null are wrapped in messages."""
    raw_wrappers: bool = True
    """wrapper.for.raw.primitives: a record that is a wrapper is its value."""
    structs_for_nulls: bool = False
    flat_unions: bool = False
    general_sums: bool = False

    @property
    def enum_parameter(self) -> str:
        return GENERAL_ENUM if self.general_sums else ENUM


def is_union(schema: Schema) -> bool:
    if schema.type is not Type.STRUCT:
        return False
    return (schema.name or "").startswith(UNION_PREFIX) or GENERAL_UNION in (schema.parameters or {})


def enum_symbols(schema: Schema) -> tuple[str, dict[str, int]] | None:
    """Name and numbers of an enum's values; None: it is none."""
    parameters = schema.parameters or {}
    for parameter in (ENUM, GENERAL_ENUM):
        if parameter in parameters and schema.type in (Type.STRING, Type.INT32):
            prefix = f"{parameter}."
            numbers = {
                key.removeprefix(prefix): int(value) for key, value in parameters.items() if key.startswith(prefix)
            }
            return parameters[parameter], numbers
    return None


def optional_fields(message: Descriptor) -> frozenset[str]:
    """Fields of proto3 that say `optional`: oneofs of their own, as far as descriptors go."""
    proto = DescriptorProto()
    message.CopyToProto(proto)
    return frozenset(field.name for field in proto.field if field.proto3_optional)


def inner_message(field: FieldDescriptor) -> Descriptor:
    assert field.message_type is not None, field.full_name
    return field.message_type


def is_map(field: FieldDescriptor, params: dict[str, str]) -> bool:
    """A map of Protobuf's; or what Connect's maps become that Protobuf has not: a list of entries."""
    message = field.message_type
    if message is None or not field.is_repeated:
        return False
    if message.GetOptions().map_entry:
        return True
    if [each.name for each in message.fields] != ["key", "value"] or message.fields[0].is_repeated:
        return False
    return params.get(CONNECT_TYPE) == "map" or (message.name.endswith(ENTRY) and not message.fields[1].is_repeated)
