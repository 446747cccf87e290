"""Apache's own clients and tools log in: PLAIN, SCRAM, delegation tokens, OAUTHBEARER; they make users and tokens."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.security import security
from ottla.client.users import Credential, describe_users
from ottla.model.properties.jaas import OAUTH_MODULE, SCRAM_MODULE, jaas_text
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.support.bearer import AUDIENCE, ISSUER, Issuer, KeyServer
from tests.support.jvm import Tools, run_alone

pytestmark = pytest.mark.jvm

ISSUED = Issuer(kind="RSA")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with KeyServer(ISSUED) as keys:
        bearer = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.url,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "delegation.token.secret.key": "shared",
            "connections.max.reauth.ms": "60000",
        }
        settings: dict[str, Any] = dict(bearer)
        with Cluster(security="SASL_PLAINTEXT", **settings) as kafka:
            yield kafka


class Java:
    def __init__(self, tools: Tools, kafka: Cluster, at: Path) -> None:
        self._tools = tools
        self._kafka = kafka
        self._at = at

    def file(self, settings: dict[str, str]) -> str:
        path = self._at / "client.properties"
        path.write_text("".join(f"{name}={text}\n" for name, text in settings.items() if name != "bootstrap.servers"))
        return str(path)

    def __call__(self, tool: str, settings: dict[str, str], *args: str, config: str = "--command-config") -> str:
        words = ("--bootstrap-server", self._kafka.bootstrap_servers, config, self.file(settings), *args)
        return self._tools.must(tool, *words)

    def round_trip(self, topic: str, settings: dict[str, str]) -> None:
        """Written and read by Java's clients."""
        file = self.file(settings)
        words = ("--bootstrap-server", self._kafka.bootstrap_servers, "--topic", topic)
        self._tools.must("ConsoleProducer", *words, "--command-config", file, stdin="one\n")
        read = self._tools.must(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *words,
            *("--command-config", file, "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000"),
        )
        assert read.splitlines() == ["one"]


@pytest.fixture
def java(java_tools: Tools, kafka: Cluster, tmp_path: Path) -> Java:
    return Java(java_tools, kafka, tmp_path)


def test_java_logs_in_by_plain_and_scram(java: Java, kafka: Cluster) -> None:
    java.round_trip("plain", as_java(kafka.admin))
    java.round_trip("scram", as_java(kafka.user("alice")))


def test_kafka_configs_makes_users(java: Java, kafka: Cluster) -> None:
    admin = as_java(kafka.admin)
    users = ("--entity-type", "users", "--entity-name", "uma")
    tool = "kafka.admin.ConfigCommand"
    java(tool, admin, "--alter", *users, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=uma-secret]")
    with Client(parse_bootstrap(kafka.bootstrap_servers), security=security(kafka.admin)) as client:
        assert describe_users(client, ["uma"]) == {"uma": [Credential("SCRAM-SHA-512", 8192)]}
    jaas = jaas_text(SCRAM_MODULE, username="uma", password="uma-secret")
    kafka.allow("uma", "all topic:uma group:*")
    java.round_trip("uma", {**admin, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas})
    java(tool, admin, "--alter", *users, "--delete-config", "SCRAM-SHA-512")
    with Client(parse_bootstrap(kafka.bootstrap_servers), security=security(kafka.admin)) as client:
        assert describe_users(client, ["uma"]) == {}


def test_kafka_delegation_tokens_makes_tokens_that_log_in(java: Java, kafka: Cluster) -> None:
    alice = as_java(kafka.user("alice"))
    of_alice = ("--owner-principal", "User:alice")
    made = java(
        "DelegationTokenCommand", alice, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
    )
    found = re.search(r"^(\S{22})\s+(\S+==)\s+User:alice", made, re.MULTILINE)
    assert found is not None, made
    token_id, secret = found.groups()
    jaas = jaas_text(SCRAM_MODULE, username=token_id, password=secret, tokenauth="true")
    java.round_trip("token", {**alice, "sasl.jaas.config": jaas})
    assert token_id in java("DelegationTokenCommand", alice, "--describe", *of_alice)
    java("DelegationTokenCommand", alice, "--renew", "--renew-time-period", "-1", "--hmac", secret)
    java("DelegationTokenCommand", alice, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert token_id not in java("DelegationTokenCommand", alice, "--describe", *of_alice)


def test_java_logs_in_by_a_signed_token(kafka: Cluster, tmp_path: Path) -> None:
    """In a JVM of its own: the file with the token has to be allowed by a system property."""
    token = tmp_path / "token"
    token.write_text(ISSUED.token("tina"))
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "sasl.login.callback.handler.class": f"{OAUTH_MODULE.rpartition('.')[0]}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": jaas_text(OAUTH_MODULE),
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token.as_uri()}"
    words = ("--bootstrap-server", kafka.bootstrap_servers, "--command-config", str(file), "--list")
    run_alone("org.apache.kafka.tools.TopicCommand", *words, flags=(allowed,))
