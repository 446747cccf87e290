"""SSL listeners and the clients people have: produce, consume, certificates of clients, renewal under traffic."""

import asyncio
import logging
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer

from ottla.broker.front.client import Client
from ottla.broker.security.authorizer import AllowAll, Rights, Underway
from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.cluster import Cluster as AioClient
from ottla.client.blocking.cluster import Cluster as BlockingClient
from ottla.client.blocking.consumer import Consumer as BlockingConsumer
from ottla.client.errors import ClientError
from ottla.client.security import SecurityRefused, security
from ottla.model.ids import TopicPartition
from ottla.model.properties import Settings
from ottla.node.node import Node
from ottla.testing import Cluster
from tests.support import jvm
from tests.support.certificates import as_pkcs12, authority_file, client_context, issued, stranger, written
from tests.support.nodes import Ottla, free_ports, resident_bytes
from tests.support.patience import PATIENCE_SECONDS, eventually

VALUES = [b"first", b"", b"x" * 900_000, *(b"%d" % number for number in range(500))]


class Place(NamedTuple):
    """A cluster under TLS and what its clients need."""

    cluster: Cluster
    directory: Path

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap_servers

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.pem")

    @property
    def kafkas(self) -> dict[str, str]:
        """Kafka's own client settings."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
        }


def of_nodes(directory: Path, **more: str) -> dict[str, Any]:
    """Settings of nodes that speak TLS everywhere."""
    return {
        "listener_security_protocol_map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(directory / "node.pem"),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(directory / "ca.pem"),
        **more,
    }


def stores(directory: Path) -> None:
    authority_file(directory)
    written(directory, issued(), "node")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("tls")
    stores(directory)
    with Cluster(**of_nodes(directory, ssl_client_auth="requested", ottla_tls_reload_interval_ms="200")) as cluster:
        yield Place(cluster, directory)


# ---- clients


def librdkafkas(place: Place, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": place.bootstrap, "security.protocol": "SSL", "ssl.ca.location": place.ca, **more}


def produced_by_librdkafka(place: Place, topic: str, values: list[bytes]) -> None:
    producer = Producer(librdkafkas(place, **{"message.max.bytes": 2_000_000}))
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def consumed_by_librdkafka(place: Place, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(librdkafkas(place, **{"group.id": topic, "auto.offset.reset": "earliest"}))
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    try:
        while len(found) < count:
            for message in consumer.consume(count, PATIENCE_SECONDS):
                assert message.error() is None, message.error()
                found.append(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def test_librdkafka_produces_and_consumes_in_a_group(one: Place) -> None:
    produced_by_librdkafka(one, "librdkafka", VALUES)
    assert consumed_by_librdkafka(one, "librdkafka", len(VALUES)) == VALUES


def test_kafka_python_produces_and_consumes(one: Place) -> None:
    how = {"bootstrap_servers": one.bootstrap, "security_protocol": "SSL", "ssl_cafile": one.ca}
    producer = KafkaProducer(**how, max_request_size=2_000_000)
    for value in VALUES:
        producer.send("kafka-python", value, partition=0)
    producer.flush(PATIENCE_SECONDS)
    producer.close()
    consumer = KafkaConsumer("kafka-python", **how, auto_offset_reset="earliest", group_id="kafka-python")
    found = [next(consumer).value for _ in VALUES]
    consumer.close()
    assert found == VALUES


def test_aiokafka_produces_and_consumes(one: Place) -> None:
    async def scenario() -> list[bytes | None]:
        how: dict[str, Any] = {
            "bootstrap_servers": one.bootstrap,
            "security_protocol": "SSL",
            "ssl_context": client_context(),
        }
        async with AIOKafkaProducer(**how, max_request_size=2_000_000) as producer:
            for value in VALUES:
                await producer.send("aiokafka", value, partition=0)
            await producer.flush()
        found: list[bytes | None] = []
        async with AIOKafkaConsumer("aiokafka", **how, auto_offset_reset="earliest", group_id="aiokafka") as consumer:
            while len(found) < len(VALUES):
                found.append((await consumer.getone()).value)
        return found

    assert asyncio.run(scenario()) == VALUES


def test_the_clients_of_the_house_read_kafkas_settings(one: Place) -> None:
    produced_by_librdkafka(one, "house", VALUES)
    how = security(one.kafkas)
    with BlockingClient(parse_bootstrap(one.bootstrap), security=how) as client:
        consumer = BlockingConsumer(client, {TopicPartition("house", 0): (0, None)})
        found: list[bytes | None] = []
        while len(found) < len(VALUES):
            found += [record.value for fetched in consumer.poll(1.0) for record in fetched.records]
    assert found == VALUES

    async def partitions() -> list[int]:
        async with AioClient(parse_bootstrap(one.bootstrap), security=how) as client:
            return await client.partitions("house")

    assert asyncio.run(partitions()) == [0]


@pytest.fixture(scope="module")
def tools() -> Iterator[jvm.Tools]:
    found = jvm.Tools()
    yield found
    found.close()


@pytest.mark.jvm
@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not installed")
@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM"])
def test_javas_tools_work_over_ssl_with_every_kind_of_store(
    one: Place, tools: jvm.Tools, tmp_path: Path, kind: str
) -> None:
    config = tmp_path / "client.properties"
    given = {**one.kafkas, "enable.metrics.push": "false"}
    if kind != "PEM":
        trust = tmp_path / "trust"
        subprocess.run(
            [
                "keytool",
                "-importcert",
                "-noprompt",
                "-alias",
                "ca",
                "-file",
                one.ca,
                "-keystore",
                str(trust),
                "-storetype",
                kind,
                "-storepass",
                "changeit",
            ],
            check=True,
            capture_output=True,
        )
        given |= {
            "ssl.truststore.type": kind,
            "ssl.truststore.location": str(trust),
            "ssl.truststore.password": "changeit",
        }
        # Ours read what keytool wrote.
        with BlockingClient(parse_bootstrap(one.bootstrap), security=security(given)) as client:
            assert client.metadata([]).brokers
    config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    topic = f"java-{kind.lower()}"
    reach = ("--bootstrap-server", one.bootstrap)
    tools.must("TopicCommand", *reach, "--command-config", str(config), "--create", "--topic", topic)
    tools.must("ConsoleProducer", *reach, "--command-config", str(config), "--topic", topic, stdin="one\ntwo\nthree\n")
    found = tools.must(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*reach, "--command-config", str(config), "--topic", topic, "--from-beginning", "--max-messages", "3"),
    )
    assert found.split() == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ssl.ca.location": "ca.pem"}, "ssl.ca.location: a name of librdkafka's; Kafka's is ssl.truststore.location"),
        ({"ssl.trustore.location": "x"}, "did you mean ssl.truststore.location?"),
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is none of PLAINTEXT, SSL"),
        (
            {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/gone"},
            "/gone: No such",
        ),
        (
            {"security.protocol": "SSL", "ssl.engine.factory.class": "a.B"},
            "ssl.engine.factory.class: classes of others",
        ),
    ],
)
def test_client_settings_that_cannot_be_had_are_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(SecurityRefused) as caught:
        security(given)
    assert said in str(caught.value)


# ---- who is refused, and what is said


def reason(place: Place, **more: str) -> str:
    """Why a client of the house finds no broker."""
    given = {**place.kafkas, **{name.replace("_", "."): value for name, value in more.items()}}
    with (
        BlockingClient(parse_bootstrap(place.bootstrap), timeout_s=5, security=security(given)) as client,
        pytest.raises(ClientError) as caught,
    ):
        client.metadata([])
    return str(caught.value)


def test_a_client_that_trusts_another_authority_is_told_so(one: Place) -> None:
    strange = authority_file(one.directory, stranger())
    assert "from an authority that is not in the trust store" in reason(one, ssl_truststore_location=str(strange))


def test_a_client_without_tls_is_told_what_might_be_the_matter(one: Place) -> None:
    assert "does its listener want TLS or a login?" in reason(one, security_protocol="PLAINTEXT")


def test_both_mistakes_of_protocol_are_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stores(tmp_path)
    ssl_port, plain_port = free_ports(2)
    how = of_nodes(tmp_path) | {"listener_security_protocol_map": "INNER:SSL,OUTER:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    listeners = f"INNER://127.0.0.1:{ssl_port},OUTER://127.0.0.1:{plain_port}"
    with Cluster(**how, listeners=listeners, inter_broker_listener_name="INNER"), caplog.at_level(logging.WARNING):
        with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", plain_port)) as sock:
            client_context().wrap_socket(sock, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", ssl_port)) as sock:
            sock.sendall(b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x00\x00\x04test")
            with suppress(ConnectionResetError):  # it leaves bytes unread, which TCP tells
                assert sock.recv(1) == b""
        eventually(lambda: len([line for line in caplog.messages if line.startswith("closing 127.0.0.1")]) == 2)
    said = " ".join(caplog.messages)
    fits = "the listener that would fit is"
    assert f"TLS to the listener OUTER, which is PLAINTEXT; {fits} INNER://127.0.0.1:{ssl_port} (SSL)" in said
    assert f"Kafka without TLS to the listener INNER, which is SSL; {fits} OUTER://127.0.0.1:{plain_port}" in said


# ---- certificates of clients


def trusting(directory: Path) -> dict[str, str]:
    ca = directory / "ca.pem"
    return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}


class Doorman(AllowAll):
    """Allows everything, and remembers who came."""

    __slots__ = ("logins", "seen")

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.logins: list[tuple[str, str, str]] = []

    def logged_in(self, principal: str, client: Client, mechanism: str, failure: str = "") -> None:
        self.logins.append((principal, mechanism, failure))

    def for_client(self, principal: str, host: str, underway: Underway) -> Rights:
        self.seen.append(principal)
        return super().for_client(principal, host, underway)


def principals(directory: Path, clients: list[dict[str, str]], doorman: Doorman | None = None, **how: str) -> list[str]:
    """Whom a node takes these clients for; what went wrong in the place of a client that did not get in."""

    async def scenario() -> list[str]:
        door = doorman or Doorman()
        (port,) = free_ports(1)
        given = {name: value for name, value in (of_nodes(directory) | how).items()}
        given["listeners"] = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{free_ports(1)[0]}"
        node = Node(Settings.defaults(str(directory / "data"), **given), door)
        await node.start()
        found = []
        try:
            for client in clients:
                door.seen.clear()
                reach = parse_bootstrap(f"localhost:{port}")
                async with AioClient(reach, timeout_s=5, security=security(client)) as cluster:
                    try:
                        await cluster.metadata([])
                        found.append(door.seen[-1])
                    except ClientError as error:
                        found.append(str(error))
        finally:
            await node.stop()
        return found

    return asyncio.run(scenario())


def test_a_certificate_names_the_user(tmp_path: Path) -> None:
    stores(tmp_path)
    base = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    alice = written(tmp_path, issued("alice@example.org", common_name="Alice"), "alice")
    with_key = base | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(alice)}
    found = principals(tmp_path, [with_key, base], ssl_client_auth="requested")
    assert found == ["User:CN=Alice,OU=tests,O=ottla", "User:ANONYMOUS"]
    shutil.rmtree(tmp_path / "data")
    rules = "RULE:^CN=([^,]+),OU=tests,.*$/$1/L"
    assert principals(tmp_path, [with_key], ssl_client_auth="required", ssl_principal_mapping_rules=rules) == [
        "User:alice"
    ]


def test_a_login_by_certificate_is_told_to_the_audit_log_and_so_is_one_that_names_nobody(tmp_path: Path) -> None:
    stores(tmp_path)
    base = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    alice, eve = (
        base | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(written(tmp_path, leaf, name))}
        for name, leaf in (("alice", issued(common_name="Alice")), ("eve", issued(common_name="Eve")))
    )
    doorman = Doorman()
    rules = "RULE:^CN=(Alice).*$/$1/L"
    principals(tmp_path, [alice, base, eve], doorman, ssl_client_auth="requested", ssl_principal_mapping_rules=rules)
    told = list(dict.fromkeys((who, mechanism, bool(why)) for who, mechanism, why in doorman.logins))
    assert ("User:alice", "SSL", False) in told
    assert ("unknown", "SSL", True) in told
    assert [each for each in told if each[0] == "User:ANONYMOUS"] == []


def test_who_shows_no_certificate_or_a_strange_one_is_refused_where_one_is_required(tmp_path: Path) -> None:
    stores(tmp_path)
    base = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    eve = written(tmp_path, issued("eve@example.org", common_name="eve", ca=stranger()), "eve")
    with_key = base | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(eve)}
    refused = principals(tmp_path, [base, with_key], ssl_client_auth="required")
    assert [text.startswith("no broker could be reached") or "lost" in text for text in refused] == [True, True]


@pytest.mark.jvm
@pytest.mark.matrix
def test_javas_client_is_who_its_certificate_says(tools: jvm.Tools, tmp_path: Path) -> None:
    stores(tmp_path)
    alice = issued("alice@example.org", common_name="Alice")
    own = of_nodes(
        tmp_path,
        ssl_client_auth="required",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    )
    subjects = [f"User:CN={name},OU=tests,O=ottla" for name in ("Alice", "node")]
    with Cluster(**own, super_users=";".join(subjects)) as cluster:
        place = Place(cluster, tmp_path)
        config = tmp_path / "client.properties"

        def asked(given: dict[str, str]) -> jvm.Answer:
            config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            words = ("--bootstrap-server", place.bootstrap, "--command-config", str(config))
            return tools.run("TopicCommand", *words, "--create", "--topic", "of-alice")

        short = {**place.kafkas, "default.api.timeout.ms": "5000", "request.timeout.ms": "4000"}
        assert "handshake" in asked(short).out
        stored = tmp_path / "alice.p12"
        stored.write_bytes(as_pkcs12(alice, "changeit"))
        shown = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(stored)}
        done = asked({**place.kafkas, **shown, "ssl.keystore.password": "changeit"})
        assert done.code == 0, done


# ---- renewal


def shown_by(port: int) -> bytes:
    """The certificate that a new connection is shown."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
    with sock, client_context().wrap_socket(sock, server_hostname="localhost") as secured:
        return secured.getpeercert(binary_form=True) or b""


def test_a_certificate_is_renewed_under_traffic_by_its_file_and_by_a_setting(one: Place, tmp_path: Path) -> None:
    port = int(one.bootstrap.rpartition(":")[2])
    failures: list[KafkaError] = []
    stop = threading.Event()
    delivered = [0]

    def told(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failures.append(error)
        delivered[0] += 1

    def traffic() -> None:
        producer = Producer(librdkafkas(one))
        while not stop.is_set():
            producer.produce("renewed", b"x" * 1000, on_delivery=told)
            producer.poll(0.001)
        producer.flush(PATIENCE_SECONDS)

    busy = threading.Thread(target=traffic)
    busy.start()
    try:
        first = shown_by(port)
        replacement = tmp_path / "new.pem"
        replacement.write_bytes(issued().private_key_and_cert_chain_pem.bytes())
        os.replace(replacement, one.directory / "node.pem")
        eventually(lambda: shown_by(port) != first)
        second = shown_by(port)
        other = written(one.directory, issued(), "other")
        reach = ["-b", one.bootstrap, "--command-config", str(config_file(one, tmp_path))]
        change = f"listener.name.plaintext.ssl.keystore.location={other}"
        assert tool("configs", "set", "broker", "1", change, *reach).returncode == 0
        eventually(lambda: shown_by(port) != second)
        bad = written(one.directory, issued(common_name="somebody else"), "bad")
        said = tool("configs", "set", "broker", "1", change.replace(str(other), str(bad)), *reach)
        assert said.returncode == 1
        assert "ssl.allow.dn.changes=true would let it pass" in said.stderr
        assert shown_by(port) != second
    finally:
        stop.set()
        busy.join(PATIENCE_SECONDS)
    assert failures == []
    assert delivered[0] > 0


def config_file(place: Place, directory: Path) -> Path:
    path = directory / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in place.kafkas.items()))
    return path


def tool(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ottla", *words], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )


# ---- three nodes


def test_three_nodes_under_tls_replicate_fail_over_and_elect(tmp_path: Path) -> None:
    stores(tmp_path)
    with Cluster(3, **of_nodes(tmp_path, ssl_client_auth="required")) as cluster:
        client = written(tmp_path, issued("client@example.org", common_name="client"), "client")
        how = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(tmp_path / "ca.pem"),
            "ssl.certificate.location": str(client),
            "ssl.key.location": str(client),
        }
        producer = Producer({**how, "acks": "all"})
        failures: list[KafkaError] = []
        for number in range(300):
            producer.produce(
                "t", b"%d" % number, partition=0, on_delivery=lambda e, _: failures.append(e) if e else None
            )
        assert producer.flush(PATIENCE_SECONDS) == 0
        cluster.kill(cluster.leader_of("t"))
        for number in range(300, 600):
            producer.produce(
                "t", b"%d" % number, partition=0, on_delivery=lambda e, _: failures.append(e) if e else None
            )
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert failures == []
        consumer = Consumer({**how, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        found: list[bytes | None] = []
        while len(found) < 600:
            found += [message.value() for message in consumer.consume(600, PATIENCE_SECONDS) if message.error() is None]
        consumer.close()
        assert found == [b"%d" % number for number in range(600)]


# ---- many who mean no good, and many who are silent


def test_thousands_of_half_open_handshakes_keep_nobody_out(tmp_path: Path) -> None:
    stores(tmp_path)
    limits: dict[str, Any] = {"ottla_tls_half_open_handshakes_max": "100", "ottla_connection_creation_rate_per_ip": "0"}
    with Cluster(**of_nodes(tmp_path), **limits, max_connections="4000", socket_listen_backlog_size="1000") as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
        idle = []
        try:
            for number in range(1000):
                sock = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
                idle.append(sock)
                if number % 2:
                    sock.sendall(b"\x16\x03\x01")  # the beginning of a hello
            produced_by_librdkafka(Place(cluster, tmp_path), "t", [b"through"])
        finally:
            for sock in idle:
                sock.close()


def test_metrics_and_health_are_served_over_https_and_renewed(tmp_path: Path) -> None:
    stores(tmp_path)
    https: dict[str, Any] = {
        "http_listeners": "https://127.0.0.1:0",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(tmp_path / "node.pem"),
        "ottla_tls_reload_interval_ms": "100",
    }
    with Cluster(1, port=None, **https) as cluster:
        address = cluster.http_address(1)
        assert address.startswith("https://127.0.0.1:")
        with urlopen(f"{address}/healthz", context=client_context(), timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        port = int(address.rpartition(":")[2])
        first = shown_by(port)
        replacement = tmp_path / "new.pem"
        replacement.write_bytes(issued().private_key_and_cert_chain_pem.bytes())
        os.replace(replacement, tmp_path / "node.pem")
        eventually(lambda: shown_by(port) != first)


def test_an_idle_connection_takes_little(tmp_path: Path) -> None:
    stores(tmp_path)
    encrypted, controllers = free_ports(2)
    node = Ottla(tmp_path / "node")
    listeners = f"PLAINTEXT://127.0.0.1:{node.port},SSL://127.0.0.1:{encrypted},CONTROLLER://127.0.0.1:{controllers}"
    more = {
        "listeners": listeners,
        "advertised.listeners": listeners.rpartition(",")[0],
        "controller.quorum.voters": f"1@127.0.0.1:{controllers}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "node.pem"),
        "ottla.connection.creation.rate.per.ip": "0",
    }
    with node.properties.open("a") as file:
        file.write("".join(f"{name}={value}\n" for name, value in more.items()))
    context = client_context()
    request = b"\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04test"
    with node, ExitStack() as opened:
        assert node.process is not None

        def greet(count: int) -> None:
            for _ in range(count):
                sock = opened.enter_context(socket.create_connection(("127.0.0.1", encrypted), PATIENCE_SECONDS))
                secured = opened.enter_context(context.wrap_socket(sock, server_hostname="localhost"))
                secured.sendall(struct.pack(">i", len(request)) + request)
                assert secured.recv(4)

        greet(100)
        before = resident_bytes(node.process.pid)
        greet(300)
        assert (resident_bytes(node.process.pid) - before) / 300 < 40 * 1024
