"""OAUTHBEARER everywhere: nodes and tools get their tokens from an endpoint, by client credentials (RFC 6749)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.app import run
from ottla.testing import Cluster
from tests.support.bearer import AUDIENCE, ISSUER, Issuer, KeyServer

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
ID = "sasl.oauthbearer.client.credentials.client.id"
SECRET = "sasl.oauthbearer.client.credentials.client.secret"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def login() -> Iterator[KeyServer]:
    with KeyServer(Issuer()) as server:
        yield server


@pytest.fixture(scope="module")
def kafka(login: KeyServer) -> Iterator[Cluster]:
    """Two nodes that have no password for each other."""
    settings: dict[str, Any] = {
        "listener_security_protocol_map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter_broker_listener_name": "PLAINTEXT",
        "sasl_enabled_mechanisms": "OAUTHBEARER",
        "sasl_mechanism_inter_broker_protocol": "OAUTHBEARER",
        "sasl_mechanism_controller_protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": login.url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        ENDPOINT: login.url,
        ID: "node",
        SECRET: "node-secret",
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:node;User:admin",
    }
    with Cluster(2, **settings) as kafka:
        yield kafka


def client(tmp_path: Path, login: KeyServer, name: str, secret: str) -> str:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"{ENDPOINT}={login.url}\n"
        f'sasl.jaas.config={MODULE} required clientId="{name}" clientSecret="{secret}" scope="kafka";\n'
    )
    return str(file)


def test_nodes_and_tools_log_in_by_tokens_of_an_endpoint(
    kafka: Cluster, login: KeyServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "node grant_type=client_credentials" in login.asked
    config = client(tmp_path, login, "admin", "admin-secret")
    words = ("--bootstrap", kafka.bootstrap_servers, "--command-config", config)
    assert run(["topics", "create", "orders", "--replication-factor", "2", *words]) == 0
    assert "created orders" in capsys.readouterr().out
    assert "admin grant_type=client_credentials&scope=kafka" in login.asked


def test_a_secret_that_the_endpoint_refuses_is_said_and_not_shown(
    kafka: Cluster, login: KeyServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = client(tmp_path, login, "admin", "guessed")
    words = ("--bootstrap", kafka.bootstrap_servers, "--command-config", config, "--timeout", "5")
    assert run(["topics", "list", *words]) == 1
    told = capsys.readouterr().err
    assert "no token is to be had from" in told and "401" in told
    assert "guessed" not in told and "Traceback" not in told
