"""Users and tokens as people handle them: the command line, the house's own client, and clusters for tests."""

import asyncio
import io
import json
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from ottla.cli.app import run
from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.cluster import Cluster as AioClient
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.errors import LoginFailed
from ottla.client.security import Security, SecurityRefused, security
from ottla.client.tokens import create_token
from ottla.client.users import describe_users
from ottla.model.properties.jaas import SCRAM_MODULE, jaas_text
from ottla.protocol import messages as m
from ottla.security.sasl.speaker import Credentials
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.support.sasl import scram_login
from tests.support.wire import Wire


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", delegation_token_secret_key="shared") as kafka:
        yield kafka


class Shell:
    """Commands of a person whose settings are in a file; passwords come from standard input."""

    def __init__(
        self, kafka: Cluster, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, at: Path
    ) -> None:
        self._capture = capture
        self._monkeypatch = monkeypatch
        self._at = at
        monkeypatch.setenv("OTTLA_BOOTSTRAP", kafka.bootstrap_servers)
        self.be(as_java(kafka.admin))

    def be(self, settings: dict[str, str]) -> None:
        file = self._at / "client.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
        self._monkeypatch.setenv("OTTLA_COMMAND_CONFIG", str(file))

    def __call__(self, *words: str, password: str = "", fails: int = 0) -> str:
        """Both streams."""
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(f"{password}\n"))
        self._capture.readouterr()
        code = run(words)
        out, err = self._capture.readouterr()
        assert code == fails, (out, err)
        assert not password or password not in out + err
        return out + err


@pytest.fixture
def ottla(kafka: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    return Shell(kafka, capsys, monkeypatch, tmp_path)


def can_log_in(kafka: Cluster, name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> bool:
    with Wire(kafka.bootstrap_servers) as wire:
        return bool(scram_login(wire, name, password, mechanism).error_code == 0)


# The command line.


def test_a_user_is_added_gets_another_password_and_is_removed(kafka: Cluster, ottla: Shell) -> None:
    assert "user carol can log in by SCRAM-SHA-256" in ottla(
        "users", "add", "carol", "--mechanism", "scram-sha-256", password="c1"
    )
    assert can_log_in(kafka, "carol", "c1")
    listed = json.loads(ottla("users", "list", "--json"))
    assert {"name": "carol", "mechanism": "SCRAM-SHA-256", "iterations": 4096} in listed
    ottla("users", "password", "carol", "--iterations", "8192", password="c2")
    assert (can_log_in(kafka, "carol", "c1"), can_log_in(kafka, "carol", "c2")) == (False, True)
    ottla("users", "remove", "carol")
    assert not can_log_in(kafka, "carol", "c2")


def test_what_goes_wrong_with_users_says_what_to_do(kafka: Cluster, ottla: Shell) -> None:
    assert "`ottla users add nobody` makes one" in ottla("users", "password", "nobody", password="x1y2", fails=1)
    assert "`ottla users list` shows who is there" in ottla("users", "remove", "nobody", fails=1)
    assert "an empty password is none" in ottla("users", "add", "dora", fails=1)
    assert "Too few iterations" in ottla("users", "add", "dora", "--iterations", "7", password="x1y2", fails=1)
    ottla.be(as_java({**kafka.admin, "sasl.password": "guessed"}))
    told = ottla("topics", "list", fails=1)
    assert "does not let admin in: Authentication failed: Invalid username or password" in told
    assert "guessed" not in told
    ottla.be({})
    assert "does its listener want TLS or a login?" in ottla("topics", "list", "--timeout", "0.5", fails=1)


def test_tokens_are_made_listed_renewed_and_ended(kafka: Cluster, ottla: Shell) -> None:
    ottla.be(as_java(kafka.user("tom")))
    made = dict(line.split(maxsplit=1) for line in ottla("tokens", "create", "--renewer", "batch").splitlines()[:2])
    as_token = jaas_text(SCRAM_MODULE, username=made["id"], password=made["hmac"], tokenauth="true")
    (listed,) = json.loads(ottla("tokens", "list", "--owner", "tom", "--json"))
    assert (listed["id"], listed["owner"], listed["renewers"]) == (made["id"], "User:tom", "User:batch")
    ottla("tokens", "renew", made["hmac"], "--period", "60")
    owner = as_java(kafka.user("tom2"))
    ottla.be({**owner, "sasl.jaas.config": as_token})
    ottla("topics", "list")
    assert "cannot be asked for" in ottla("tokens", "list", fails=1)
    ottla.be(as_java(kafka.user("tom", "another")))
    ottla("tokens", "expire", made["hmac"])
    assert "no tokens that you may see" in ottla("tokens", "list", "--owner", "tom")


def test_the_first_user_is_made_where_no_node_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):  # a new directory, and one that is formatted
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{name}-secret\n"))
        assert run(["users", "add", name, "--data", str(tmp_path)]) == 0
    with Cluster(security="SASL_PLAINTEXT", data_dir=tmp_path) as kafka:
        assert can_log_in(kafka, "first", "first-secret")
        assert can_log_in(kafka, "second", "second-secret", "SCRAM-SHA-256")
        monkeypatch.setattr(sys, "stdin", io.StringIO("x\n"))
        assert run(["users", "add", "third", "--data", str(tmp_path)]) == 1
        assert "Ask it with --bootstrap instead" in capsys.readouterr().err


# The house's own client.


def settings_of(kafka: Cluster, **changed: str) -> Security:
    return security({**kafka.admin, **changed})


def test_both_faces_of_the_client_log_in(kafka: Cluster) -> None:
    addresses = parse_bootstrap(kafka.bootstrap_servers)
    for given in (kafka.admin, kafka.user("ben"), as_java(kafka.user("ben2"))):
        with Client(addresses, security=security(given)) as client:
            assert client.metadata([]).brokers

        async def ask(secured: Security) -> int:
            async with AioClient(addresses, security=secured) as client:
                return len((await client.metadata([])).brokers)

        assert asyncio.run(ask(security(given))) == 1


def test_a_wrong_password_is_told_and_not_tried_again(kafka: Cluster) -> None:
    addresses = parse_bootstrap(kafka.bootstrap_servers)
    wrong = settings_of(kafka, **{"sasl.password": "guessed"})
    with Client(addresses, security=wrong) as client, pytest.raises(LoginFailed, match="Invalid username or password"):
        client.metadata([])

    async def ask() -> None:
        async with AioClient(addresses, security=wrong) as client:
            await client.metadata([])

    with pytest.raises(LoginFailed, match="Invalid username or password"):
        asyncio.run(ask())


def test_a_token_logs_in(kafka: Cluster) -> None:
    addresses = parse_bootstrap(kafka.bootstrap_servers)
    with Client(addresses, security=settings_of(kafka)) as client:
        token = create_token(client)
    by_token = Credentials("SCRAM-SHA-256", token.id, b64encode(token.hmac).decode(), by_token=True)
    with Client(addresses, security=Security("SASL_PLAINTEXT", None, by_token)) as client:
        assert client.metadata([]).brokers


def test_clients_renew_their_logins() -> None:
    with Cluster(security="SASL_PLAINTEXT", connections_max_reauth_ms=1500) as kafka:
        addresses = parse_bootstrap(kafka.bootstrap_servers)
        end = time.monotonic() + 3.5
        with Client(addresses, security=settings_of(kafka)) as client:
            opened = client._connection(-1, end + 60)
            while time.monotonic() < end:
                client.call(m.MetadataRequest(topics=[]), m.MetadataResponse)
                time.sleep(0.05)
            assert not opened.closed

        async def ask() -> int:
            opened: set[object] = set()
            until = time.monotonic() + 3.5
            async with AioClient(addresses, security=settings_of(kafka)) as client:
                while time.monotonic() < until:
                    await client.call(m.MetadataRequest(topics=[]), m.MetadataResponse)
                    opened.update(task.result() for task in client._opening.values() if task.done())
                    await asyncio.sleep(0.05)
            return len(opened)

        assert asyncio.run(ask()) == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: GSSAPI is not built; there are PLAIN"),
        ({"sasl.password": ""}, "username and password are needed"),
        ({"sasl.jaas.config": "nonsense"}, "sasl.jaas.config: not a JAAS text"),
        ({"sasl.jaas.config": jaas_text(SCRAM_MODULE, username="a", password="b")}, "is for SCRAM-SHA-256 and"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "a value is needed to log in by OAUTHBEARER"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_clients_settings_is_refused_by_name(
    kafka: Cluster, changed: dict[str, str], why: str
) -> None:
    with pytest.raises(SecurityRefused, match=why):
        settings_of(kafka, **changed)


# Clusters for tests.


def test_a_cluster_for_tests_has_users_on_all_nodes_and_writes_as_its_administrator() -> None:
    from confluent_kafka import Consumer  # noqa: PLC0415

    with Cluster(2, security="SASL_PLAINTEXT") as kafka:
        (record,) = kafka.produce("t", "x")
        assert kafka.consume("t") == [record]
        settings = kafka.user("alice", "wonderland")
        assert (settings["sasl.username"], settings["sasl.password"]) == ("alice", "wonderland")
        consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        found = consumer.poll(60)
        consumer.close()
        assert found is not None and found.value() == b"x"
        with Client(parse_bootstrap(kafka.bootstrap_servers), security=security(kafka.admin)) as client:
            assert list(describe_users(client)) == ["alice"]


def test_without_security_there_are_no_users() -> None:
    with Cluster() as kafka, pytest.raises(ValueError, match="nobody logs in here"):
        kafka.user("alice")
    with pytest.raises(ValueError, match="allowed is SASL_PLAINTEXT"):
        Cluster(security="SSL3")


# With TLS around it.


def test_logins_and_tls_go_together(tmp_path: Path) -> None:
    authority = trustme.CA()
    identity = authority.issue_cert("localhost", "127.0.0.1")
    store, trust = tmp_path / "node.pem", tmp_path / "ca.pem"
    identity.private_key_and_cert_chain_pem.write_to_path(store)
    authority.cert_pem.write_to_path(trust)
    stores: dict[str, Any] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
    }
    protocols = "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL"
    with Cluster(2, security="SASL_PLAINTEXT", listener_security_protocol_map=protocols, **stores) as kafka:
        secured = {**kafka.user("alice"), "security.protocol": "SASL_SSL"}
        trusted = {name: text for name, text in stores.items() if "truststore" in name}
        with Client(parse_bootstrap(kafka.bootstrap_servers), security=security({**secured, **trusted})) as client:
            assert len(client.metadata([]).brokers) == 2

        async def ask() -> int:
            async with AioClient(
                parse_bootstrap(kafka.bootstrap_servers), security=security({**secured, **trusted})
            ) as client:
                return len((await client.metadata([])).brokers)

        assert asyncio.run(ask()) == 2
        from confluent_kafka import Producer  # noqa: PLC0415

        producer = Producer({**secured, "ssl.ca.location": str(trust), "acks": "all"})
        producer.produce("t", b"x")
        assert producer.flush(60) == 0
