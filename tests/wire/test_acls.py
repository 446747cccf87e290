"""ACLs over the wire, on three nodes: changes, what is in force where, and requests that are passed on."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.errors import Errors
from ottla.model.permissions import Operation, Resource
from ottla.protocol import messages as m
from ottla.protocol.frames import decode_response_header
from ottla.runtime.forwarding import Sender, sealed, sealed_principal
from ottla.testing import Cluster
from tests.support.sasl import plain_login, sasl_cluster
from tests.support.wire import Deadline, Wire

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NODES = (1, 2, 3)


def acl(resource: Resource, name: str, operation: Operation, host: str = "*") -> Acl:
    return Acl(resource, name, Pattern.LITERAL, "User:alice", host, operation, PermissionType.ALLOW)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    """The nodes are User:admin among themselves."""
    with sasl_cluster(3, "PLAIN", authorizer_class_name=STANDARD, super_users="User:admin") as cluster:
        yield cluster


def login(address: str, name: str) -> Wire:
    wire = Wire(address)
    assert plain_login(wire, name, f"{name}-secret").error_code == 0
    return wire


@pytest.fixture
def owner(kafka: Cluster) -> Iterator[Wire]:
    """At a node that is not the active controller."""
    with login(kafka.bootstrap_server(elsewhere(kafka)), "admin") as wire:
        yield wire


@pytest.fixture
def guest(kafka: Cluster) -> Iterator[Wire]:
    with login(kafka.bootstrap_server(elsewhere(kafka)), "alice") as wire:
        yield wire


def elsewhere(kafka: Cluster) -> int:
    return next(node for node in NODES if node != kafka.controller)


def give(owner: Wire, *acls: Acl) -> None:
    results = owner.ask(m.CreateAclsRequest([m.CreateAclsRequest.AclCreation(*each) for each in acls])).results
    assert [result.error_code for result in results] == [0] * len(acls), results


def take(owner: Wire, *acls: Acl) -> None:
    results = owner.ask(m.DeleteAclsRequest([m.DeleteAclsRequest.DeleteAclsFilter(*each) for each in acls]))
    assert [len(result.matching_acls) for result in results.filter_results] == [1] * len(acls)


def create(wire: Wire, name: str) -> Any:
    (result,) = wire.ask(m.CreateTopicsRequest([m.CreateTopicsRequest.CreatableTopic(name, 1, 1)], 10_000)).topics
    return result


def test_an_entry_is_in_force_where_it_was_asked_for_when_the_answer_comes(owner: Wire, guest: Wire) -> None:
    may = acl(Resource.TOPIC, "at-once", Operation.CREATE)
    assert create(guest, "at-once").error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    give(owner, may)
    assert create(guest, "at-once").error_code == 0
    take(owner, may)
    assert create(guest, "at-once").error_code == Errors.TOPIC_AUTHORIZATION_FAILED


def test_and_soon_on_every_node(kafka: Cluster, owner: Wire) -> None:
    create(owner, "everywhere")
    give(owner, acl(Resource.TOPIC, "everywhere", Operation.DESCRIBE))
    for node in NODES:
        deadline = Deadline(f"the entry on node {node}")
        with login(kafka.bootstrap_server(node), "alice") as wire:
            while [topic.name for topic in wire.ask(m.MetadataRequest(None), 12).topics] != ["everywhere"]:
                deadline.check("not yet")


def test_a_refusal_names_what_is_missing_and_the_command_that_gives_it(guest: Wire) -> None:
    assert create(guest, "it's mine").error_message == (
        "User:alice needs CREATE on Topic it's mine; allow it with: "
        """ottla acls allow alice create 'topic:it'"'"'s mine' --execute"""
    )
    answer = guest.ask(m.DescribeAclsRequest(1, None, 1, None, None, 1, 1))
    assert (answer.error_code, answer.error_message) == (
        Errors.CLUSTER_AUTHORIZATION_FAILED,
        "User:alice needs DESCRIBE on Cluster kafka-cluster; allow it with: "
        "ottla acls allow alice describe cluster --execute",
    )


def envelope(principal: bytes, address: bytes, data: bytes) -> "m.EnvelopeRequest":
    return m.EnvelopeRequest(data, principal, address)


ALICE = sealed_principal(Sender("User:alice", "10.0.0.9"))
HOME = bytes((10, 0, 0, 9))
NEW = m.CreateTopicsRequest([m.CreateTopicsRequest.CreatableTopic("of-alice", 1, 1)], 10_000, True)


def test_kip_590_a_principal_travels_in_kafkas_own_form() -> None:
    assert ALICE == b"\0\0\x05User\x06alice\0\0"


def at_controller(kafka: Cluster, request: "m.EnvelopeRequest", who: str = "admin") -> Any:
    with login(controller_address(kafka), who) as wire:
        return wire.ask(request)


def controller_address(kafka: Cluster) -> str:
    (listener,) = kafka._node(kafka.controller).settings.controller_listeners
    return f"{listener.host}:{listener.port}"


def created(reply: Any) -> Any:
    """What the envelope's answer says of the topic."""
    assert reply.error_code == 0
    version = 7
    _, body = decode_response_header(reply.response_data, 19, version)
    (result,) = m.CreateTopicsResponse.decode(memoryview(reply.response_data), version, body).topics
    return result


def test_the_controller_decides_again_in_the_name_of_the_client(kafka: Cluster, owner: Wire) -> None:
    asked = envelope(ALICE, HOME, sealed(NEW))
    assert created(at_controller(kafka, asked)).error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    may = acl(Resource.TOPIC, "of-alice", Operation.CREATE, "10.0.0.9")
    give(owner, may)
    assert created(at_controller(kafka, asked)).error_code == 0
    other_host = envelope(ALICE, bytes((10, 0, 0, 8)), sealed(NEW))
    assert created(at_controller(kafka, other_host)).error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    take(owner, may)


def test_who_may_not_speak_for_others_is_told_so(kafka: Cluster) -> None:
    answer = at_controller(kafka, envelope(ALICE, HOME, sealed(NEW)), "alice")
    assert answer.error_code == Errors.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("principal", "address", "data", "error"),
    [
        (b"", HOME, sealed(NEW), Errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"\0\7" + ALICE[2:], HOME, sealed(NEW), Errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        (ALICE[:5], HOME, sealed(NEW), Errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        (ALICE, b"\1\2\3", sealed(NEW), Errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        (ALICE, HOME, b"\0\x13\0\7", Errors.UNSUPPORTED_VERSION),
        (ALICE, HOME, sealed(m.DescribeClusterRequest()), Errors.INVALID_REQUEST),
        (ALICE, HOME, sealed(m.VoteRequest()), Errors.INVALID_REQUEST),
    ],
)
def test_an_envelope_that_cannot_be_opened_is_refused(
    kafka: Cluster, principal: bytes, address: bytes, data: bytes, error: Errors
) -> None:
    assert at_controller(kafka, envelope(principal, address, data)).error_code == error


def test_each_api_on_a_controllers_listener_asks_for_its_own_permission(kafka: Cluster, owner: Wire) -> None:
    """Not for CLUSTER_ACTION, with which nodes speak among themselves."""
    may = acl(Resource.CLUSTER, "kafka-cluster", Operation.DESCRIBE)
    give(owner, may)
    with login(controller_address(kafka), "alice") as guest:
        deadline = Deadline("the right to describe")
        asked = m.DescribeAclsRequest(1, None, 1, None, None, 1, 1)
        while guest.ask(asked).error_code:
            deadline.check("not yet")
        beat = m.BrokerHeartbeatRequest(1, 1, 0, False, False)
        assert guest.ask(beat).error_code == Errors.CLUSTER_AUTHORIZATION_FAILED
        (result,) = guest.ask(m.DeleteAclsRequest([m.DeleteAclsRequest.DeleteAclsFilter(*may)])).filter_results
        assert result.error_code == Errors.CLUSTER_AUTHORIZATION_FAILED
    take(owner, may)


def test_entries_outlive_a_restart_of_all(kafka: Cluster, owner: Wire) -> None:
    may = acl(Resource.TOPIC, "kept", Operation.CREATE)
    give(owner, may)
    for node in NODES:
        kafka.restart(node)
    one = kafka.bootstrap_server(1)
    with login(one, "admin") as again, login(one, "alice") as guest:
        assert create(guest, "kept").error_code == 0
        assert create(guest, "not-kept").error_code == Errors.TOPIC_AUTHORIZATION_FAILED
        take(again, may)


def test_logins_are_in_the_audit_log(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafka.authorizer.logger")
    with Wire(kafka.bootstrap_server(1)) as wire:
        assert plain_login(wire, "alice", "wrong").error_code == Errors.SASL_AUTHENTICATION_FAILED
    login(kafka.bootstrap_server(1), "alice").close()
    failed, succeeded = [message for message in caplog.messages if message.startswith("Login of principal = ")]
    assert failed.startswith(
        "Login of principal = unknown with mechanism = PLAIN from host = 127.0.0.1 on listener = PLAINTEXT failed: "
    )
    assert "wrong password" in failed
    assert succeeded == (
        "Login of principal = User:alice with mechanism = PLAIN from host = 127.0.0.1 on listener = PLAINTEXT succeeded"
    )
