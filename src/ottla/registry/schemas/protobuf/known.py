"""The files that every schema may import without a reference: those that Confluent's server has built in.

Google's come out of the libraries that carry them, as descriptors; Confluent's are written down here.
"""

from functools import cache
from importlib import import_module
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.protobuf.from_descriptor import tree_of
from ottla.registry.schemas.protobuf.names import Imported
from ottla.registry.schemas.protobuf.parser import parse

META: Final = "confluent/meta.proto"
DESCRIPTOR: Final = "google/protobuf/descriptor.proto"

_GOOGLE_PROTOBUF: Final = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type",
    "wrappers",
)  # fmt: skip
_GOOGLE_TYPE: Final = (
    "calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng",
    "localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday",
)  # fmt: skip

_MODULES: Final = {f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _GOOGLE_PROTOBUF} | {
    f"google/type/{name}.proto": f"google.type.{name}_pb2" for name in _GOOGLE_TYPE
}

_META_OF: Final = {
    "FileOptions": "file_meta",
    "MessageOptions": "message_meta",
    "FieldOptions": "field_meta",
    "EnumOptions": "enum_meta",
    "EnumValueOptions": "enum_value_meta",
}

_TEXTS: Final = {
    META: 'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";'
    'option go_package = "../confluent";'
    "message Meta {"
    "  string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4;"
    "}"
    "message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }"
    + "".join(f"extend google.protobuf.{of} {{ Meta {name} = 1088; }}" for of, name in _META_OF.items()),
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;'
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
    "confluent/type/variant.proto": 'syntax = "proto3"; package confluent.type;'
    "message Variant { bytes metadata = 1; bytes value = 2; }",
}


def known(path: str) -> Imported | None:
    return _known(path) if path in _TEXTS or path in _MODULES else None  # what strangers import is not kept


@cache
def _known(path: str) -> Imported | None:
    if (text := _TEXTS.get(path)) is not None:
        return Imported(path, parse(text, Budget(DEFAULT_STEPS)))
    descriptor = known_descriptor(path)
    return None if descriptor is None else Imported(path, tree_of(descriptor))


def known_descriptor(path: str) -> FileDescriptorProto | None:
    """Of one of Google's."""
    return _descriptor(path) if path in _MODULES else None


@cache
def _descriptor(path: str) -> FileDescriptorProto | None:
    try:
        loaded = import_module(_MODULES[path])
    except ImportError:  # google.type is a distribution of its own
        return None
    return FileDescriptorProto.FromString(loaded.DESCRIPTOR.serialized_pb)
