"""`ottla certs`: what it makes is good for nodes and clients, and what a server shows is judged as clients judge it."""

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.security import security, settings_of
from ottla.testing import Cluster
from tests.support.certificates import authority_file, issued, written
from tests.support.patience import PATIENCE_SECONDS


def tool(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ottla", "certs", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def node(directory: Path, **more: str) -> dict[str, Any]:
    return {
        "listener_security_protocol_map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        **{name.replace(".", "_"): value for name, value in settings_of(directory / "node.properties").items()},
        **more,
    }


def test_certificates_for_development_serve_nodes_clients_and_java(tmp_path: Path) -> None:
    made = tool("dev", str(tmp_path / "certs"), "--user", "alice", "--host", "kafka.example")
    assert made.returncode == 0, made.stderr
    certs = tmp_path / "certs"
    for name in ("ca-key.pem", "node.pem", "alice.pem", "alice.p12", "node.p12", "alice.properties"):
        assert stat.S_IMODE(os.stat(certs / name).st_mode) == 0o600
    with Cluster(**node(certs, ssl_client_auth="required")) as cluster:
        address = cluster.bootstrap_servers
        lines = [line.strip() for line in made.stdout.splitlines()]
        pasted = lines[lines.index("librdkafka (confluent-kafka):") + 1 :][:4]
        producer = Producer({"bootstrap.servers": address, **dict(line.split("=", 1) for line in pasted)})
        producer.produce("t", b"by librdkafka")
        assert producer.flush(PATIENCE_SECONDS) == 0
        as_pkcs12 = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(certs / "truststore.p12"),
            "ssl.truststore.password": "changeit",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(certs / "alice.p12"),
            "ssl.keystore.password": "changeit",
        }
        for given in (settings_of(certs / "alice.properties"), as_pkcs12):
            with Client(parse_bootstrap(address), security=security(given)) as client:
                assert client.partitions("t") == [0]
        checked = tool("check", address, "--command-config", str(certs / "alice.properties"))
        assert (checked.returncode, checked.stderr) == (0, "")
        assert "DNS:kafka.example" in checked.stdout
        assert "versions it takes: TLSv1.2, TLSv1.3" in checked.stdout
        without = tool("check", address, "--ca", str(certs / "ca.pem"))
        assert without.returncode == 1
        assert "the other side asks for a certificate (ssl.client.auth=required)" in without.stderr


def test_an_authority_that_is_there_signs_again(tmp_path: Path) -> None:
    first = tool("dev", str(tmp_path))
    ca, leaf = (tmp_path / "ca.pem").read_bytes(), (tmp_path / "node.pem").read_bytes()
    assert tool("dev", str(tmp_path)).returncode == first.returncode == 0
    assert (tmp_path / "ca.pem").read_bytes() == ca
    assert (tmp_path / "node.pem").read_bytes() != leaf


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "its certificate comes from an authority that is not in the trust store"),
        ({"names": ("elsewhere.example",)}, "it is for DNS:elsewhere.example, and 127.0.0.1 was asked for"),
        ({"ends": datetime(2020, 2, 1, tzinfo=UTC)}, "its certificate has expired"),
    ],
    ids=["authority", "names", "dates"],
)
def test_why_a_client_would_refuse_is_said(tmp_path: Path, how: dict[str, Any], said: str) -> None:
    dates = {"not_before": datetime(2020, 1, 1, tzinfo=UTC), "not_after": how["ends"]} if "ends" in how else {}
    written(tmp_path, issued(*how.get("names", ("127.0.0.1",)), **dates), "node")
    ca = authority_file(tmp_path)
    given: dict[str, Any] = {
        "listener_security_protocol_map": "OUTER:SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": "PLAINTEXT://127.0.0.1:0,OUTER://127.0.0.1:0",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(tmp_path / "node.pem"),
    }
    with Cluster(**given) as cluster:
        address = cluster.bootstrap_servers.split(",")[1]
        found = tool("check", address, *(["--ca", str(ca)] if how else []))
    assert found.returncode == 1
    assert said in found.stderr


def test_a_listener_without_tls_is_told_as_that(tmp_path: Path) -> None:
    with Cluster() as cluster:
        found = tool("check", cluster.bootstrap_servers)
    assert (found.returncode, found.stdout) == (1, "")
    assert "does its listener have TLS?" in found.stderr
