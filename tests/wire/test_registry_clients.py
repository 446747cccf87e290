"""Registry clients of several languages: register, evolve, be refused, delete, refer; and each reads what the others
wrote, whatever names its schema."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from ottla.registry.languages import LANGUAGES
from ottla.registry.schemas.base import Reference
from ottla.testing import Cluster
from tests.support.clients.base import Refused
from tests.support.clients.registry import ALL, ConfluentJs, ConfluentPython, OrderSchema, Ours, Place, RegistryUser
from tests.support.registries import Registry

ORDER = {"id": "żółw", "cents": 1234567890123}


def kinds(*lacking: str) -> list[Any]:
    """All clients but those which lack something."""
    return [
        pytest.param(kind, marks=pytest.mark.matrix if kind is ConfluentJs else (), id=kind.name)
        for kind in ALL
        if not kind.lacks.intersection(lacking)
    ]


def avro(*more: dict[str, Any]) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}, *more]
    return json.dumps({"type": "record", "name": "AvroOrder", "namespace": "shop", "fields": fields})


def json_schema(**more: Any) -> str:
    properties = {"id": {"type": "string"}, "cents": {"type": "integer"}}
    return json.dumps({"type": "object", "title": "shop.JsonOrder", "properties": properties, **more})


def protobuf(fields: str) -> str:
    return f'syntax = "proto3"; package shop; message ProtobufOrder {{ {fields} }}'


def proto_file(name: str, *fields: Field, imports: tuple[str, ...] = ()) -> FileDescriptorProto:
    file = FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)
    file.message_type.add(name="ProtobufOrder", field=fields)
    return file


TEXT_ID = Field(name="id", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
CENTS = Field(name="cents", number=2, type=Field.TYPE_INT64, label=Field.LABEL_OPTIONAL)
SCHEMAS = {
    "AVRO": OrderSchema("AVRO", avro(), "shop.AvroOrder"),
    "JSON": OrderSchema("JSON", json_schema(), "shop.JsonOrder"),
    "PROTOBUF": OrderSchema(
        "PROTOBUF",
        protobuf("string id = 1; int64 cents = 2;"),
        "shop.ProtobufOrder",
        files=FileDescriptorSet(file=[proto_file("order.proto", TEXT_ID, CENTS)]),
    ),
}
WIDER = {
    "AVRO": avro({"name": "note", "type": "string", "default": ""}),
    "JSON": json_schema(description="what somebody wants"),
    "PROTOBUF": protobuf("string id = 1; int64 cents = 2; string note = 3;"),
}
OTHERS = {
    "AVRO": avro({"name": "extra", "type": "string"}),
    "JSON": json_schema(required=["id"]),
    "PROTOBUF": protobuf("string id = 1; string cents = 2;"),
}
"""What cannot read what was written before."""
TYPES = pytest.mark.parametrize("type", SCHEMAS)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with (
        Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as cluster,
        Registry(cluster.bootstrap_servers, languages=LANGUAGES) as started,
    ):
        yield started


class Users:
    """Those that were asked for so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._started: dict[Any, RegistryUser] = {}

    def __getitem__(self, kind: Any) -> RegistryUser:
        if kind not in self._started:
            self._started[kind] = kind(self.url)
        return self._started[kind]

    def close(self) -> None:
        for user in self._started.values():
            user.close()


@pytest.fixture(scope="module")
def users(registry: Registry) -> Iterator[Users]:
    started = Users(registry.url)
    yield started
    started.close()


def read(reader: RegistryUser, place: Place, schema: OrderSchema, data: Any) -> dict[str, Any]:
    order = reader.decode(place, schema, data)
    return {**order, "cents": int(order["cents"])}


@TYPES
@pytest.mark.parametrize("kind", kinds())
def test_a_client_registers_evolves_and_is_refused(kind: Any, type: str, users: Users, registry: Registry) -> None:
    client, subject = users[kind], f"life-{kind.name}-{type}-value"
    first = client.register(subject, type, SCHEMAS[type].text)
    assert client.register(subject, type, SCHEMAS[type].text) == first
    second = client.register(subject, type, WIDER[type])
    assert second > first
    with pytest.raises(Refused) as refused:
        client.register(subject, type, OTHERS[type])
    assert refused.value.code == 409
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1, 2])


@pytest.mark.parametrize("kind", kinds())
def test_a_client_finds_schemas_again(kind: Any, users: Users) -> None:
    client, subject = users[kind], f"found-{kind.name}"
    first = client.register(subject, "AVRO", SCHEMAS["AVRO"].text)
    second = client.register(subject, "AVRO", WIDER["AVRO"])
    assert client.lookup(subject, "AVRO", SCHEMAS["AVRO"].text) == first
    assert client.latest(subject) == second
    with pytest.raises(Refused):
        client.latest("nothing")


def ways(*users: Any) -> list[Place]:
    """Every subject that a schema may have, and both places of its name."""
    found = [Place(topic="t"), Place(topic="t", part="key")]
    found += [Place(topic="t", naming="record"), Place(topic="t", naming="topic_record")]
    if any("header" in user.lacks for user in users):
        return found
    return [*found, *(replace(each, ids="header") for each in found)]


@pytest.mark.parametrize(
    ("writer", "reader", "type"),
    [
        pytest.param(
            writer,
            reader,
            type,
            marks=pytest.mark.matrix if ConfluentJs in (writer, reader) else (),
            id=f"{writer.name}-{reader.name}-{type}",
        )
        for writer, reader, type in product(ALL, ALL, SCHEMAS)
        if f"write {type}" not in writer.lacks
    ],
)
def test_what_one_language_writes_another_reads(
    writer: Any, reader: Any, type: str, users: Users, registry: Registry
) -> None:
    """The record's own subject is one for all languages: they mean the same schema, and it has one version."""
    schema = SCHEMAS[type]
    for number, way in enumerate(ways(writer, reader)):
        place = replace(way, topic=f"{writer.name}-{reader.name}-{type}-{number}")
        data = users[writer].encode(place, schema, ORDER)
        subject = place.subject(schema.record)
        assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1]), place
        known = registry.ask("GET", f"/subjects/{subject}/versions/1")[1]
        if place.ids == "header":
            mark = bytes.fromhex("01" + known["guid"].replace("-", ""))
            assert [(name, (value or b"")[:17]) for name, value in data.headers] == [
                (f"__{place.part}_schema_id", mark)
            ]
        else:
            assert (data.payload[:5], data.headers) == (b"\0" + known["id"].to_bytes(4, "big"), [])
        assert read(users[reader], place, schema, data) == ORDER, place


@TYPES
@pytest.mark.parametrize("kind", kinds("delete"))
def test_a_client_deletes_a_version_and_a_subject_for_good(
    kind: Any, type: str, users: Users, registry: Registry
) -> None:
    client, subject = users[kind], f"gone-{kind.name}-{type}"
    client.register(subject, type, SCHEMAS[type].text)
    client.register(subject, type, WIDER[type])
    assert client.delete_version(subject, 1) == 1
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [2])
    assert client.delete(subject) == [1, 2]
    assert registry.ask("GET", f"/subjects/{subject}/versions?deleted=true")[0] == 404


def referring(type: str, subject: str) -> tuple[str, OrderSchema]:
    """A schema, and one that refers to it under this subject: `id` is one of a few kinds."""
    if type == "AVRO":
        kind = json.dumps({"type": "enum", "name": "Kind", "namespace": "shop", "symbols": ["PLUMS", "PEARS"]})
        text = avro().replace('"string"', '"shop.Kind"')
        return kind, OrderSchema("AVRO", text, "shop.AvroOrder", (Reference("shop.Kind", subject, 1),))
    if type == "JSON":
        kind = json.dumps({"$id": "kind.json", "type": "string", "enum": ["PLUMS", "PEARS"]})
        text = json_schema().replace('{"type": "string"}', '{"$ref": "kind.json"}')
        return kind, OrderSchema("JSON", text, "shop.JsonOrder", (Reference("kind.json", subject, 1),))
    file = FileDescriptorProto(name="kind.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Kinds")
    values = file.enum_type.add(name="Kind").value
    values.add(name="PLUMS", number=0)
    values.add(name="PEARS", number=1)
    kind = 'syntax = "proto3"; package shop; message Kinds {} enum Kind { PLUMS = 0; PEARS = 1; }'
    own = protobuf("Kind id = 1; int64 cents = 2;").replace("package shop;", 'package shop; import "kind.proto";')
    of_kind = Field(name="id", number=1, type=Field.TYPE_ENUM, label=Field.LABEL_OPTIONAL, type_name=".shop.Kind")
    files = [file, proto_file("order.proto", of_kind, CENTS, imports=("kind.proto",))]
    reference = Reference("kind.proto", subject, 1)
    return kind, OrderSchema("PROTOBUF", own, "shop.ProtobufOrder", (reference,), FileDescriptorSet(file=files))


@TYPES
@pytest.mark.parametrize("kind", kinds())
def test_a_client_follows_references_and_may_not_delete_what_is_referred_to(
    kind: Any, type: str, users: Users, registry: Registry
) -> None:
    client, place, order = users[kind], Place(f"refers-{kind.name}-{type}"), {"id": "PEARS", "cents": 5}
    # Where a client registers what a file imports by itself, it does so under the name of the import.
    subject = "kind.proto" if type == "PROTOBUF" else f"kind-{kind.name}-{type}"
    text, schema = referring(type, subject)
    client.register(subject, type, text)
    writer = users[ConfluentPython] if f"write {type}" in kind.lacks else client
    data = writer.encode(place, schema, order)
    id = client.latest(f"{place.topic}-value")
    assert id in registry.ask("GET", f"/subjects/{subject}/versions/1/referencedby")[1]
    for reader in (client, users[ConfluentPython], users[Ours]):
        assert read(reader, place, schema, data) == order, reader.name
    if "delete" not in kind.lacks:
        with pytest.raises(Refused) as refused:
            client.delete_version(subject, 1)
        assert refused.value.code == 422


@pytest.mark.parametrize("kind", kinds())
def test_a_client_has_contexts_by_name_and_by_address(kind: Any, registry: Registry) -> None:
    """Clients of their own: kafkajs' remembers a schema by its id alone, and each context has an id 1."""
    context, schema, place = f".ctx-{kind.name}", SCHEMAS["AVRO"], Place("orders")
    with closing(kind(registry.url)) as outside:
        assert outside.register(f":{context}:orders-value", "AVRO", schema.text) == 1
        assert outside.latest(f":{context}:orders-value") == 1
    with closing(kind(f"{registry.url}/contexts/{context}")) as inside:
        assert read(inside, place, schema, inside.encode(place, schema, ORDER)) == ORDER
        assert inside.register("orders-value", "AVRO", WIDER["AVRO"]) == 2
    assert registry.ask("GET", f"/subjects/:{context}:orders-value/versions") == (200, [1, 2])
