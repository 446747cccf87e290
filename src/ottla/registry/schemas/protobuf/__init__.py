"""Protobuf: proto2, proto3 and editions, as text or as the base64 of a FileDescriptorProto.

Theory of operation. `parser` makes a tree of a text (`tree`), `printer` the canonical text of a tree, as Square's Wire
prints it for Confluent's server; `normal` sorts one. `names` knows what a name means, with the files that a schema
refers to and those that everybody has (`known`). Descriptors are made of trees (`to_descriptor`, `option_values`) and
trees of descriptors (`from_descriptor`); the runtime's descriptor pool (`pools`) is asked whether a new schema makes
sense (`validity`), and never sees a descriptor that somebody sent. `compatibility` compares trees, not descriptors:
whether a label was written down matters to Confluent's rules.
"""

from ottla.registry.schemas.protobuf.schema import Protobuf, ProtobufSchema

__all__ = ["Protobuf", "ProtobufSchema"]
