"""What the tests of Protobuf schemas have in common."""

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Reference, Resolved
from ottla.registry.schemas.protobuf import Protobuf, ProtobufSchema


def parsed(text: str, *resolved: Resolved, new: bool = True) -> ProtobufSchema:
    return Protobuf().parse(text, resolved, Budget(DEFAULT_STEPS), new=new)


def proto3(body: str) -> ProtobufSchema:
    return parsed(f'syntax = "proto3"; {body}')


def proto2(body: str) -> ProtobufSchema:
    return parsed(f'syntax = "proto2"; {body}')


def message(members: str) -> ProtobufSchema:
    return proto3(
        f"message M {{ {members} }} message N {{ int32 x = 1; }} message O {{ int32 x = 1; }} enum E {{ Z = 0; }}"
    )


def reference(path: str, text: str, version: int = 1) -> Resolved:
    return Resolved(Reference(path, path, version), parsed(text).text)


def found(reader: ProtobufSchema, writer: ProtobufSchema) -> list[tuple[str, str]]:
    """What a reader of one schema cannot read of what was written with the other."""
    return [(each.code, each.path) for each in reader.reading(writer, "STRICT", Budget(DEFAULT_STEPS))]
