"""Registry clients of several languages: register, evolve, be refused; and each reads what the others wrote."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.registry.languages import LANGUAGES
from ottla.testing import Cluster
from tests.support.clients.base import Refused
from tests.support.clients.registry import ConfluentJs, ConfluentPython, FranzGo, KafkaJs, Ours, RegistryUser
from tests.support.registries import Registry

CONFLUENT_JS = pytest.param(ConfluentJs, marks=pytest.mark.matrix)
FOREIGN: tuple[Any, ...] = (KafkaJs, FranzGo, CONFLUENT_JS)
KINDS: tuple[Any, ...] = (ConfluentPython, Ours, *FOREIGN)
ORDER = {"id": "żółw", "cents": 1234567890123}


def avro(*more: dict[str, Any]) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}, *more]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def json_schema(**more: Any) -> str:
    properties = {"id": {"type": "string"}, "cents": {"type": "integer"}}
    return json.dumps({"type": "object", "title": "Order", "properties": properties, **more})


SCHEMAS = {"AVRO": avro(), "JSON": json_schema()}
WIDER = {
    "AVRO": avro({"name": "note", "type": "string", "default": ""}),
    "JSON": json_schema(description="what somebody wants"),
}
OTHERS = {"AVRO": avro({"name": "extra", "type": "string"}), "JSON": json_schema(required=["id"])}
"""What cannot read what was written before."""


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with (
        Cluster(1, transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as cluster,
        Registry(cluster.bootstrap_servers, languages=LANGUAGES) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def users(registry: Registry) -> Iterator[dict[Any, RegistryUser]]:
    """Those that were asked for so far."""
    started: dict[Any, RegistryUser] = {}
    yield started
    for user in started.values():
        user.close()


def user(kind: Any, users: dict[Any, RegistryUser], registry: Registry) -> RegistryUser:
    if kind not in users:
        users[kind] = kind(registry.url)
    return users[kind]


@pytest.mark.parametrize("type", SCHEMAS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_a_client_registers_evolves_and_is_refused(
    kind: Any, type: str, users: dict[Any, RegistryUser], registry: Registry
) -> None:
    client, subject = user(kind, users, registry), f"life-{kind.name}-{type}-value"
    first = client.register(subject, type, SCHEMAS[type])
    assert client.register(subject, type, SCHEMAS[type]) == first
    second = client.register(subject, type, WIDER[type])
    assert second > first
    with pytest.raises(Refused) as refused:
        client.register(subject, type, OTHERS[type])
    assert refused.value.code == 409
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1, 2])


@pytest.mark.parametrize("type", SCHEMAS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_what_one_language_writes_all_others_read(
    kind: Any, type: str, users: dict[Any, RegistryUser], registry: Registry
) -> None:
    topic = f"bytes-{kind.name}-{type}"
    data = user(kind, users, registry).encode(topic, type, SCHEMAS[type], ORDER)
    for reader in [user(each, users, registry) for each in (kind, ConfluentPython, Ours)]:
        assert reader.decode(topic, type, data) == ORDER, reader.name


@pytest.mark.parametrize("reader", FOREIGN, ids=lambda kind: str(kind.name))
@pytest.mark.parametrize("type", SCHEMAS)
def test_other_languages_read_what_python_and_each_other_write(
    reader: Any, type: str, users: dict[Any, RegistryUser], registry: Registry
) -> None:
    client = user(reader, users, registry)
    for writer in (ConfluentPython, Ours, FranzGo if reader is KafkaJs else KafkaJs):
        topic = f"into-{reader.name}-{writer.name}-{type}"
        data = user(writer, users, registry).encode(topic, type, SCHEMAS[type], ORDER)
        assert client.decode(topic, type, data) == ORDER, writer.name


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: str(kind.name))
def test_other_languages_find_schemas_again(kind: Any, users: dict[Any, RegistryUser], registry: Registry) -> None:
    client: Any = user(kind, users, registry)
    subject = f"found-{kind.name}"
    first = client.register(subject, "AVRO", SCHEMAS["AVRO"])
    second = client.register(subject, "AVRO", WIDER["AVRO"])
    assert client.lookup(subject, "AVRO", SCHEMAS["AVRO"]) == first
    assert client.latest(subject) == second
    with pytest.raises(Refused):
        client.latest("nothing")


@pytest.mark.parametrize("kind", [FranzGo, CONFLUENT_JS], ids=lambda kind: str(kind.name))
def test_other_languages_delete_a_subject_for_good(
    kind: Any, users: dict[Any, RegistryUser], registry: Registry
) -> None:
    """The client of kafkajs has no call that deletes."""
    client: Any = user(kind, users, registry)
    subject = f"gone-{kind.name}"
    client.register(subject, "AVRO", SCHEMAS["AVRO"])
    client.register(subject, "AVRO", WIDER["AVRO"])
    assert client.delete(subject) == [1, 2]
    assert registry.ask("GET", f"/subjects/{subject}/versions?deleted=true")[0] == 404


KIND = json.dumps({"type": "enum", "name": "Kind", "namespace": "shop", "symbols": ["PLUMS", "PEARS"]})
OF_A_KIND = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "shop.Kind"}, {"name": "cents", "type": "long"}],
    }
)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: str(kind.name))
def test_other_languages_follow_references(kind: Any, users: dict[Any, RegistryUser], registry: Registry) -> None:
    client: Any = user(kind, users, registry)
    topic, order = f"refers-{kind.name}", {"id": "PEARS", "cents": 5}
    client.register(f"kind-{kind.name}", "AVRO", KIND)
    references = [{"name": "shop.Kind", "subject": f"kind-{kind.name}", "version": 1}]
    data = client.encode(topic, "AVRO", OF_A_KIND, order, references=references)
    id = client.latest(f"{topic}-value")
    assert registry.ask("GET", f"/subjects/kind-{kind.name}/versions/1/referencedby") == (200, [id])
    for reader in (client, user(ConfluentPython, users, registry), user(Ours, users, registry)):
        assert reader.decode(topic, "AVRO", data) == order, reader.name


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: str(kind.name))
def test_other_languages_have_contexts_by_name_and_by_address(
    kind: Any, users: dict[Any, RegistryUser], registry: Registry
) -> None:
    context = f".ctx-{kind.name}"
    outside: Any = user(kind, users, registry)
    assert outside.register(f":{context}:orders-value", "AVRO", SCHEMAS["AVRO"]) == 1
    assert outside.latest(f":{context}:orders-value") == 1
    inside = kind(f"{registry.url}/contexts/{context}")
    try:
        assert inside.decode("orders", "AVRO", inside.encode("orders", "AVRO", SCHEMAS["AVRO"], ORDER)) == ORDER
        assert inside.register("orders-value", "AVRO", WIDER["AVRO"]) == 2
    finally:
        inside.close()
    assert registry.ask("GET", f"/subjects/:{context}:orders-value/versions") == (200, [1, 2])
