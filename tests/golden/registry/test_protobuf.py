"""Canonical and normalised texts, GUIDs and descriptors as Confluent's own server made them."""

import json
from base64 import b64decode
from hashlib import md5
from pathlib import Path
from uuid import UUID

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget
from ottla.registry.schemas.protobuf import Protobuf, ProtobufSchema

EXAMPLES = json.loads((Path(__file__).parent / "protobuf.json").read_text())["examples"]


def parsed(text: str) -> ProtobufSchema:
    return Protobuf().parse(text, [], Budget(DEFAULT_STEPS), new=True)


def guid(text: str) -> str:
    return str(UUID(bytes=md5(text.encode(), usedforsecurity=False).digest()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["input"][:60])
def test_texts_and_guids_are_confluents(example: dict[str, str]) -> None:
    schema = parsed(example["input"])
    assert (schema.text, schema.normalized().text) == (example["stored"], example["normalized"])
    assert guid(schema.text) == example["stored_guid"]
    assert guid(schema.normalized().text) == example["normalized_guid"]


def meaning(serialized: str) -> FileDescriptorProto:
    """Without what Confluent's server writes down though it says nothing, and without what it loses."""
    descriptor = FileDescriptorProto.FromString(b64decode(serialized))
    for message in descriptor.message_type:
        groups = [field for field in message.field if field.type == field.TYPE_GROUP]
        for group in groups:
            message.nested_type.remove(next(each for each in message.nested_type if each.name == group.type_name))
            message.field.remove(group)
        for oneof in message.oneof_decl:
            oneof.ClearField("options")
        for each in message.extension_range:
            each.ClearField("options")
        for nested in message.nested_type:
            nested.name = nested.name.capitalize()
        for field in message.field:
            field.options.DiscardUnknownFields()
            if not field.options.ListFields():
                field.ClearField("options")
            if field.type_name.endswith("Entry"):
                field.type_name = field.type_name.capitalize()
                field.ClearField("type")
    for service in descriptor.service:
        for rpc in service.method:
            rpc.client_streaming, rpc.server_streaming = rpc.client_streaming, rpc.server_streaming
    return descriptor


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["input"][:60])
def test_descriptors_mean_what_confluents_mean(example: dict[str, str]) -> None:
    assert meaning(parsed(example["input"]).formatted("serialized")) == meaning(example["serialized"])
