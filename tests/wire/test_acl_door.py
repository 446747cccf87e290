"""A service beside the brokers asks their ACLs: the same decision at another door."""

import asyncio
import base64
import logging
from collections.abc import Mapping

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.acl_view import AclView
from ottla.client.aio.cluster import Cluster as Client
from ottla.http.addresses import Address
from ottla.http.application import Application, Manners
from ottla.http.auth import Basic, Caller, challenge, credentials
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.rights import AclRights
from ottla.http.routes import Route
from ottla.model.errors import Errors
from ottla.model.permissions import ALTER_CLUSTER, CLUSTER_NAME, WRITE_TOPIC, Permission
from ottla.testing import Cluster
from tests.support.asgi import answered
from tests.support.patience import PATIENCE_SECONDS

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


async def admit(headers: Mapping[str, str], host: str) -> Caller:
    """Whoever says a name is believed: what is decided here is what he may."""
    said = credentials(headers)
    if not isinstance(said, Basic):
        raise Problem(401, "Say who you are.", headers=challenge("Basic"))
    return Caller(f"User:{said.user}", host)


async def answer(call: Call) -> dict[str, str]:
    return {"by": call.caller.principal}


ROUTES = (
    Route("GET", "/topics/{topic}", answer, "A topic.", needs=WRITE_TOPIC),
    Route("GET", "/cluster", answer, "The cluster.", needs=ALTER_CLUSTER),
    Route("GET", "/health", answer, "Health."),
)


def by(name: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:x".encode()).decode()}


async def statuses(application: Application, name: str) -> list[int]:
    targets = ("/topics/orders", "/topics/other", "/cluster", "/health")
    return [(await answered(application, "GET", target, headers=by(name)))[0] for target in targets]


class TopicDoor:
    """As the doors of services are made: each knows what its routes are about."""

    def __init__(self, view: AclView) -> None:
        self._rights = AclRights("test", view.rules)

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        return await admit(headers, host)

    def may(self, caller: Caller, need: object, call: Call) -> bool:
        assert isinstance(need, Permission)
        self._rights.check(caller, need, call.path.get("topic", CLUSTER_NAME), f"{call.method} {call.url}")
        return True


def door(view: AclView) -> Application:
    return Application(ROUTES, Address("http", "127.0.0.1", 0), Manners(doorkeeper=TopicDoor(view)))


async def follow(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    async with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        view = AclView(client, frozenset({"User:boss"}))
        application = door(view)
        assert await statuses(application, "alice") == [503, 503, 503, 200]  # nobody before the ACLs are known
        await view.refresh()
        assert await statuses(application, "alice") == [403, 403, 403, 200]
        assert await statuses(application, "boss") == [200, 200, 200, 200]
        kafka.allow("alice", "produce orders")
        await view.refresh()
        assert await statuses(application, "alice") == [200, 403, 403, 200]
        status, told = await answered(application, "GET", "/topics/other", headers=by("alice"))
        needed = "User:alice needs WRITE on topic other"
        command = "ottla acls allow alice write topic:other --execute"
        assert (status, f"{needed}; allow it with: {command}" in str(told)) == (403, True)
        assert (
            "Principal = User:alice is Denied operation = WRITE from host = 127.0.0.1 on resource = "
            "Topic:LITERAL:other for request = GET /topics/other with resourceRefCount = 1 based on rule DefaultDeny"
        ) in caplog.messages
        kafka.deny("*", "write topic:orders")
        await view.refresh()
        assert await statuses(application, "alice") == [403, 403, 403, 200]


def test_the_same_entries_decide_at_the_door_of_a_service(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.test.audit")
    with Cluster(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS") as kafka:
        asyncio.run(follow(kafka, caplog))


def test_a_cluster_without_an_authorizer_lets_everybody_in() -> None:
    async def look(bootstrap: str) -> None:
        async with Client(parse_bootstrap(bootstrap)) as client:
            view = AclView(client)
            await view.refresh()
            assert await statuses(door(view), "alice") == [200, 200, 200, 200]

    with Cluster() as kafka:
        asyncio.run(look(kafka.bootstrap_servers))


def test_rights_of_a_user_are_given_and_taken_in_a_test() -> None:
    with Cluster(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS") as kafka:
        kafka.allow("alice", "consume orders group billing", "describe-configs topic:orders")
        kafka.deny("alice", "read topic:orders from 10.0.0.1")
        assert kafka.rights() == [
            "User:alice may not READ topic:orders from 10.0.0.1",
            "User:alice may READ topic:orders",
            "User:alice may DESCRIBE_CONFIGS topic:orders",
            "User:alice may READ group:billing",
        ]
        kafka.reset()
        assert kafka.rights() == []
        with pytest.raises(ValueError, match="neither an activity"):
            kafka.allow("alice", "fly topic:x")
    with Cluster() as kafka, pytest.raises(ValueError, match="allows everything to everybody"):
        kafka.allow("alice", "produce orders")


def test_a_user_has_the_rights_that_he_was_made_with() -> None:
    def outcome(settings: dict[str, str], topic: str) -> int | None:
        told: list[int | None] = []
        producer = Producer(settings)
        producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(None if error is None else error.code()))
        producer.flush(PATIENCE_SECONDS)
        return told[0]

    with Cluster(2, security="SASL_SSL") as kafka:
        for topic in ("orders", "payments"):
            kafka.create_topic(topic)
        alice = kafka.user("alice", may=["produce orders"])
        assert [outcome(alice, topic) for topic in ("orders", "payments")] == [
            None,
            Errors.TOPIC_AUTHORIZATION_FAILED,
        ]
        assert outcome(kafka.user("bob"), "payments") is None
        assert outcome(kafka.user("alice", may=[]), "orders") == Errors.TOPIC_AUTHORIZATION_FAILED


def test_the_fixture_hands_out_users_who_log_in_over_tls(kafka_secured: Cluster) -> None:
    kafka_secured.create_topic("orders")
    kafka_secured.produce("orders", "plums")
    ann = kafka_secured.user("ann", may=["consume orders group g"])
    assert (ann["security.protocol"], ann["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-256")
    consumer = Consumer({**ann, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found = consumer.poll(PATIENCE_SECONDS)
    consumer.close()
    assert found is not None and found.value() == b"plums"
    kafka_secured.reset()
    assert kafka_secured.rights() == []


def test_the_registry_of_a_secured_cluster_decides_by_the_same_rights(kafka_secured: Cluster) -> None:
    ann = kafka_secured.user("ann", may=["produce orders"])
    bob = kafka_secured.user("bob", may=["consume orders group g"])
    eve = kafka_secured.user("eve", may=[])
    boss = kafka_secured.admin
    url = kafka_secured.schema_registry_url

    def client(who: dict[str, str]) -> SchemaRegistryClient:
        pair = f"{who['sasl.username']}:{who['sasl.password']}"
        return SchemaRegistryClient({"url": url, "basic.auth.user.info": pair})

    schema = Schema('"string"', "AVRO")
    number = client(ann).register_schema("orders-value", schema)
    assert client(boss).register_schema("payments-value", Schema('"long"', "AVRO")) != number
    assert [client(who).get_subjects() for who in (ann, bob, eve)] == [["orders-value"], ["orders-value"], []]
    assert client(boss).get_subjects() == ["orders-value", "payments-value"]
    assert client(bob).get_schema(number).schema_str == '"string"'
    for refused, operation in (
        (lambda: client(eve).get_schema(number), "40403"),  # as one that is not there
        (lambda: client(eve).get_versions("orders-value"), "DESCRIBE on topic orders"),
        (lambda: client(eve).get_versions("no-such-value"), "DESCRIBE on topic no-such"),
        (lambda: client(bob).register_schema("orders-value", Schema('"int"', "AVRO")), "WRITE on topic orders"),
        (lambda: client(ann).delete_subject("orders-value"), "ottla acls allow ann delete topic:orders"),
        (lambda: client(ann).set_compatibility("orders-value", "NONE"), "ALTER_CONFIGS on topic orders"),
        (lambda: client(ann).set_compatibility(level="NONE"), "ALTER_CONFIGS on the cluster"),
        (lambda: client(ann).set_compatibility(":.other:", "NONE"), "ALTER_CONFIGS on the cluster"),
    ):
        with pytest.raises(SchemaRegistryError) as told:
            refused()
        assert operation in f"{told.value} {told.value.error_code}"
