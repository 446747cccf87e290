"""Logging in over real sockets: row by row, then with the clients that people have."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.frames import RequestHeader, encode_request
from ottla.testing import Cluster
from tests.support.bearer import AUDIENCE, ISSUER, Issuer, KeyServer
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sasl import (
    MECHANISMS,
    authenticate,
    handshake,
    make_user,
    plain,
    plain_login,
    sasl_cluster,
    scram_login,
)
from tests.support.wire import Deadline, Wire

USERS = {
    "PLAIN": ("alice", "alice-secret"),
    "SCRAM-SHA-256": ("sam", "sam-secret"),
    "SCRAM-SHA-512": ("sue", "sue-secret"),
}
ISSUED = Issuer()


@pytest.fixture(scope="module")
def keys() -> Iterator[KeyServer]:
    with KeyServer(ISSUED) as server:
        yield server


@pytest.fixture(scope="module")
def kafka(keys: KeyServer) -> Iterator[Cluster]:
    """With every mechanism, and a user for each that has some."""
    bearer = {
        "sasl.oauthbearer.jwks.endpoint.url": keys.url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "1",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "2",
    }
    with sasl_cluster(1, f"{MECHANISMS},OAUTHBEARER", **bearer) as kafka, Wire(kafka.bootstrap_servers) as admin:
        assert plain_login(admin).error_code == 0
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert make_user(admin, *USERS[mechanism], mechanism) == 0
        yield kafka


@pytest.fixture
def wire(kafka: Cluster) -> Iterator[Wire]:
    with Wire(kafka.bootstrap_servers) as wire:
        yield wire


# Row by row.


def test_before_its_login_a_client_may_ask_what_is_spoken_and_then_logs_in(wire: Wire) -> None:
    answer = wire.ask(m.ApiVersionsRequest(client_software_name="a", client_software_version="1"))
    assert {17, 36} <= {api.api_key for api in answer.api_keys}
    assert handshake(wire).mechanisms == [*MECHANISMS.split(","), "OAUTHBEARER"]
    done = authenticate(wire, plain("alice", "alice-secret"))
    assert (done.error_code, done.session_lifetime_ms) == (0, 0)
    assert wire.ask(m.MetadataRequest(topics=[])).brokers


def test_an_unknown_version_of_apiversions_is_answered_and_goes_on(wire: Wire) -> None:
    wire.send_frame(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0")
    assert wire.receive(18, 0).error_code == Errors.UNSUPPORTED_VERSION
    wire.ask(m.ApiVersionsRequest(client_software_name="a", client_software_version="1"))
    assert plain_login(wire).error_code == 0


def test_after_handshake_0_tokens_are_bare(wire: Wire) -> None:
    assert handshake(wire, "PLAIN", 0).error_code == 0
    wire.send_frame(plain("alice", "alice-secret"))
    assert wire.receive_frame() == b""
    assert wire.ask(m.MetadataRequest(topics=[])).brokers


def test_after_handshake_0_a_failure_just_closes(wire: Wire) -> None:
    handshake(wire, "PLAIN", 0)
    wire.send_frame(plain("alice", "wrong"))
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("name", ["alice", "nobody"])
def test_a_wrong_password_is_answered_and_closed(wire: Wire, name: str) -> None:
    answer = plain_login(wire, name, "wrong")
    assert (answer.error_code, answer.error_message) == (58, "Authentication failed: Invalid username or password")
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("name", ["sam", "nobody"])
def test_so_it_is_with_scram_whoever_it_is(wire: Wire, name: str) -> None:
    answer = scram_login(wire, name, "wrong")
    text = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    assert (answer.error_code, answer.error_message) == (58, text)
    assert wire.is_closed_by_peer()


def test_a_mechanism_that_is_not_enabled(wire: Wire) -> None:
    answer = handshake(wire, "GSSAPI")
    assert (answer.error_code, answer.mechanisms) == (33, [*MECHANISMS.split(","), "OAUTHBEARER"])
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("key", [key for key in API if key not in (17, 18)])
def test_any_other_request_before_the_login_is_not_answered(wire: Wire, key: int) -> None:
    wire.send_bytes(encode_request(RequestHeader(key, API[key].min_version, 1, "c"), m.request_class(key)()))
    assert wire.is_closed_by_peer()


def test_a_request_behind_the_handshake_is_answered_with_34_and_closed(wire: Wire) -> None:
    handshake(wire)
    answer = wire.ask(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="t")]), 12)
    assert [topic.error_code for topic in answer.topics] == [Errors.ILLEGAL_SASL_STATE]
    assert wire.is_closed_by_peer()


def test_who_is_logged_in_for_good_is_told_so_and_stays(wire: Wire) -> None:
    plain_login(wire)
    assert handshake(wire).error_code == Errors.ILLEGAL_SASL_STATE
    assert authenticate(wire, b"x").error_code == Errors.ILLEGAL_SASL_STATE
    assert wire.ask(m.MetadataRequest(topics=[])).brokers


def test_so_it_is_where_nobody_logs_in() -> None:
    with Cluster() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert handshake(wire).error_code == Errors.ILLEGAL_SASL_STATE
        assert authenticate(wire, b"x").error_code == Errors.ILLEGAL_SASL_STATE
        assert wire.ask(m.MetadataRequest(topics=[])).brokers


@pytest.mark.parametrize("size", [524_289, 2**31 - 1, -1])
def test_a_stranger_may_announce_little(wire: Wire, size: int) -> None:
    wire.send_bytes(size.to_bytes(4, "big", signed=True))
    assert wire.is_closed_by_peer()


def test_who_is_logged_in_may_announce_more(wire: Wire) -> None:
    plain_login(wire)
    wire.send_bytes((600_000).to_bytes(4, "big"))
    wire.send_bytes(b"\0\x03\0\x0c\0\0\0\x01\0\0\0")
    wire.send_bytes(bytes(600_000 - 11))
    assert wire.receive(3, 12).brokers


def test_what_is_sent_together_with_the_last_token_is_answered_behind_it(wire: Wire) -> None:
    handshake(wire)
    wire.send(m.SaslAuthenticateRequest(auth_bytes=plain("alice", "alice-secret")))
    wire.send(m.MetadataRequest(topics=[]))
    assert wire.receive(36).error_code == 0
    assert wire.receive(3).brokers


def test_who_does_not_log_in_is_closed_after_a_while() -> None:
    with sasl_cluster(ottla_authentication_timeout_ms="100") as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert wire.is_closed_by_peer()
        with Wire(kafka.bootstrap_servers) as other:
            plain_login(other)
            time.sleep(0.2)  # longer than a stranger has: who is logged in stays
            assert other.ask(m.MetadataRequest(topics=[])).brokers


def test_a_failed_login_is_answered_late() -> None:
    with (
        sasl_cluster(connection_failed_authentication_delay_ms="300") as kafka,
        Wire(kafka.bootstrap_servers) as wire,
    ):
        handshake(wire)
        before = time.monotonic()
        assert authenticate(wire, plain("alice", "wrong")).error_code == 58
        assert time.monotonic() - before >= 0.29


def test_users_are_made_changed_and_removed_while_it_runs(kafka: Cluster) -> None:
    with Wire(kafka.bootstrap_servers) as admin:
        plain_login(admin)
        for password in ("first", "second"):
            assert make_user(admin, "eve", password) == 0
            for tried in ("first", "second"):
                with Wire(kafka.bootstrap_servers) as wire:
                    assert (scram_login(wire, "eve", tried).error_code == 0) == (tried == password)
        described = admin.ask(m.DescribeUserScramCredentialsRequest(users=None))
        assert {r.user: [(i.mechanism, i.iterations) for i in r.credential_infos] for r in described.results}[
            "eve"
        ] == [(1, 4096)]
        kind = m.AlterUserScramCredentialsRequest
        admin.ask(kind(deletions=[kind.ScramCredentialDeletion("eve", 1)]))
        with Wire(kafka.bootstrap_servers) as wire:
            assert scram_login(wire, "eve", "second").error_code == 58


def test_described_are_those_asked_for_and_what_is_wrong_with_them(kafka: Cluster) -> None:
    kind = m.DescribeUserScramCredentialsRequest
    with Wire(kafka.bootstrap_servers) as admin:
        plain_login(admin)
        answer = admin.ask(kind(users=[kind.UserName(name) for name in ("sam", "none", "twice", "twice")]))
    assert {each.user: each.error_code for each in answer.results} == {"sam": 0, "none": 91, "twice": 92}


# Again and again (KIP-368).


def test_a_session_that_ends_is_renewed_or_closed() -> None:
    with sasl_cluster(connections_max_reauth_ms="1500") as kafka:
        with Wire(kafka.bootstrap_servers) as wire:
            assert plain_login(wire, "alice", "alice-secret").session_lifetime_ms == 1500
            assert plain_login(wire, "alice", "alice-secret").session_lifetime_ms == 1500
            assert handshake(wire).error_code == Errors.ILLEGAL_SASL_STATE  # not more than once a second
            assert wire.ask(m.MetadataRequest(topics=[])).brokers
            time.sleep(1.6)
            assert plain_login(wire, "alice", "alice-secret").error_code == 0  # late, and still accepted
            assert wire.ask(m.MetadataRequest(topics=[])).brokers
        with Wire(kafka.bootstrap_servers) as wire:
            plain_login(wire)
            answer = plain_login(wire, "bob", "bob-secret")
            text = "Cannot change principals during re-authentication from User.admin: User.bob"
            assert (answer.error_code, answer.error_message) == (58, text)
            assert wire.is_closed_by_peer()
        with Wire(kafka.bootstrap_servers) as wire:
            plain_login(wire)
            assert handshake(wire, "SCRAM-SHA-256").error_code == 0
            wire.send(m.SaslAuthenticateRequest(auth_bytes=b"n,,n=admin,r=abc"))
            assert wire.is_closed_by_peer()
        with Wire(kafka.bootstrap_servers) as wire:
            plain_login(wire)
            time.sleep(1.6)
            wire.send(m.MetadataRequest(topics=[]))
            assert wire.is_closed_by_peer()


def test_what_was_asked_before_a_renewal_is_answered_before_it() -> None:
    with sasl_cluster(connections_max_reauth_ms="60000") as kafka, Wire(kafka.bootstrap_servers) as wire:
        plain_login(wire)
        created = wire.ask(m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic("t", 1, 1)]))
        waiting = m.FetchRequest(
            max_wait_ms=200,
            min_bytes=1,
            max_bytes=1000,
            topics=[
                m.FetchRequest.FetchTopic(
                    topic_id=created.topics[0].topic_id,
                    partitions=[m.FetchRequest.FetchPartition(partition_max_bytes=1000)],
                )
            ],
        )
        wire.send(waiting)
        wire.send(m.SaslHandshakeRequest(mechanism="PLAIN"))
        assert wire.receive(1).error_code == 0
        assert wire.receive(17).error_code == 0
        assert authenticate(wire, plain("admin", "admin-secret")).session_lifetime_ms == 60_000


# Clients.


def records(kafka: Cluster, topic: str, settings: dict[str, Any]) -> list[bytes | None]:
    """Written and read by librdkafka."""
    from confluent_kafka import Consumer, Producer  # noqa: PLC0415

    base = {"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT", **settings}
    producer = Producer(base)
    producer.produce(topic, b"one")
    assert producer.flush(PATIENCE_SECONDS) == 0
    consumer = Consumer({**base, "group.id": f"group-of-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.poll(PATIENCE_SECONDS)
    consumer.close()
    assert found is not None and found.error() is None
    return [found.value()]


@pytest.mark.parametrize("mechanism", USERS)
def test_librdkafka_produces_and_consumes_in_a_group(kafka: Cluster, mechanism: str) -> None:
    name, password = USERS[mechanism]
    settings = {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password}
    assert records(kafka, f"rd-{mechanism}", settings) == [b"one"]


def test_librdkafka_logs_in_by_tokens_that_somebody_signed(kafka: Cluster) -> None:
    def fresh(_: str) -> tuple[str, float]:
        return ISSUED.token("tina"), time.time() + 60

    assert records(kafka, "rd-bearer", {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": fresh}) == [b"one"]


def test_a_key_that_the_issuer_has_just_made_is_fetched(kafka: Cluster, keys: KeyServer) -> None:
    new = Issuer("k2")
    token = f"n,,\x01auth=Bearer {new.token('tina', key_id='k2')}\x01\x01".encode()
    with Wire(kafka.bootstrap_servers) as wire:
        handshake(wire, "OAUTHBEARER")
        assert authenticate(wire, token).auth_bytes == b'{"status":"invalid_token"}'
        assert authenticate(wire, b"\x01").error_message == '{"status":"invalid_token"}'
        assert wire.is_closed_by_peer()
    keys.answer = new.key_set()
    patience = Deadline("the new key is known")
    while True:
        with Wire(kafka.bootstrap_servers) as wire:
            handshake(wire, "OAUTHBEARER")
            answer = authenticate(wire, token)
            if not answer.auth_bytes:
                break
        patience.check(answer)
    assert 0 < answer.session_lifetime_ms <= 60_000
    keys.answer = ISSUED.key_set()


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def test_a_renewal_by_a_key_that_has_to_be_fetched_goes_on(kafka: Cluster, keys: KeyServer) -> None:
    """Issuers change their keys while sessions last: the first renewal after that waits for the new set."""
    new = Issuer("k4")
    with Wire(kafka.bootstrap_servers) as wire:
        handshake(wire, "OAUTHBEARER")
        assert authenticate(wire, bearer(ISSUED.token("tina"))).session_lifetime_ms > 0
        keys.answer = new.key_set()
        try:
            handshake(wire, "OAUTHBEARER")
            assert authenticate(wire, bearer(new.token("tina", key_id="k4"))).session_lifetime_ms > 0
            assert wire.ask(m.MetadataRequest(topics=[])).brokers
        finally:
            keys.answer = ISSUED.key_set()


def test_keys_that_come_as_no_http_at_all_are_keys_that_do_not_come() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = {
            "sasl.oauthbearer.jwks.endpoint.url": f"http://127.0.0.1:{server.getsockname()[1]}/keys",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        with sasl_cluster(1, "PLAIN,OAUTHBEARER", **settings) as kafka, Wire(kafka.bootstrap_servers) as wire:
            handshake(wire, "OAUTHBEARER")
            wire.send(m.SaslAuthenticateRequest(auth_bytes=bearer(ISSUED.token())))
            asking, _ = server.accept()
            with asking:
                asking.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            assert wire.receive(36).auth_bytes == b'{"status":"invalid_token"}'


def test_keys_that_do_not_come_hold_up_nobody_else(kafka: Cluster, keys: KeyServer) -> None:
    strange = Issuer("k3").token(key_id="k3")
    keys.hangs.clear()
    try:
        with Wire(kafka.bootstrap_servers) as waiting, Wire(kafka.bootstrap_servers) as other:
            handshake(waiting, "OAUTHBEARER")
            waiting.send(m.SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {strange}\x01\x01".encode()))
            assert plain_login(other).error_code == 0
            assert other.ask(m.MetadataRequest(topics=[])).brokers
            keys.hangs.set()
            assert waiting.receive(36).auth_bytes == b'{"status":"invalid_token"}'
    finally:
        keys.hangs.set()


@pytest.mark.parametrize("mechanism", USERS)
def test_kafka_python_produces_and_consumes(kafka: Cluster, mechanism: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer  # noqa: PLC0415

    name, password = USERS[mechanism]
    settings = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
    }
    producer = KafkaProducer(**settings)
    producer.send(f"kp-{mechanism}", b"one").get(PATIENCE_SECONDS)
    producer.close()
    consumer = KafkaConsumer(f"kp-{mechanism}", auto_offset_reset="earliest", **settings)
    assert next(iter(consumer)).value == b"one"
    consumer.close()


@pytest.mark.parametrize("mechanism", USERS)
def test_aiokafka_produces_and_consumes(kafka: Cluster, mechanism: str) -> None:
    asyncio.run(_aiokafka(kafka, mechanism))


async def _aiokafka(kafka: Cluster, mechanism: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # noqa: PLC0415

    name, password = USERS[mechanism]
    settings = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
    }
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait(f"aio-{mechanism}", b"one")
    async with AIOKafkaConsumer(f"aio-{mechanism}", auto_offset_reset="earliest", **settings) as consumer:
        assert (await consumer.getone()).value == b"one"


def test_three_nodes_that_log_in_with_each_other_replicate_through_renewals() -> None:
    """librdkafka and the nodes renew their logins every second and a half, with requests under way."""
    from confluent_kafka import Producer  # noqa: PLC0415

    with sasl_cluster(3, connections_max_reauth_ms="1500") as kafka:
        errors: list[object] = []
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "alice-secret",
                "acks": "all",
            }
        )
        end = time.monotonic() + 4
        while time.monotonic() < end:
            producer.produce("t", b"x", callback=lambda error, _: errors.append(error) if error else None)
            producer.poll(0.01)
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert errors == []
        assert sorted(kafka.in_sync("t")) == [1, 2, 3]
