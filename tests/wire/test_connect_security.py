"""A Connect worker that is not for everybody: https, the cluster's users and their rights, users of a file; requests
that are passed on to the leader with what their caller has shown."""

import base64
import http.client
import json
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ottla.connect.failures import StartFailed
from ottla.registry.doors.users_file import line
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.support.certificates import authority_file, client_context, issued, written
from tests.support.connect_workers import ConnectWorker
from tests.support.patience import eventually

SOURCE = {"connector.class": "FileStreamSource", "file": "/tmp/none", "topic": "lines"}
BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", offsets_topic_num_partitions=1) as cluster:
        cluster.user("operator", "o-secret", may=["alter cluster", "describe cluster"])
        cluster.user("watcher", "w-secret", may=["describe cluster"])
        cluster.user("stranger", "s-secret", may=[])
        yield cluster


@pytest.fixture(scope="module")
def https(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    store = written(folder, issued(), "worker")
    return {
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(store),
        "listeners.https.ssl.truststore.type": "PEM",
        "listeners.https.ssl.truststore.location": str(authority_file(folder)),
    }


class SafeWorker(ConnectWorker):
    def __init__(self, kafka: Cluster, settings: dict[str, str]) -> None:
        topics = {f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")}
        logs_in = {name: text for name, text in as_java(kafka.admin).items() if name.startswith(("sasl.", "security."))}
        own = {"super.users": "User:admin", "connect.listeners": "http://127.0.0.1:0"}
        super().__init__(kafka.bootstrap_servers, {**own, **topics, **logs_in, **settings})

    def until(self, path: str, holds: Any) -> Any:
        """Nobody has said yet who he is."""
        return None

    def ask_as(self, user: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        parts = urlsplit(self.url)
        connection = (
            http.client.HTTPSConnection(parts.netloc, timeout=60, context=client_context())
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.netloc, timeout=60)
        )
        shown = {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json", **shown})
            answer = connection.getresponse()
            said = answer.read()
            self.location = answer.getheader("location", "")
            return answer.status, json.loads(said) if said else None
        finally:
            connection.close()


OPERATOR, WATCHER, STRANGER = "operator:o-secret", "watcher:w-secret", "stranger:s-secret"


def test_what_a_user_may_is_decided_by_the_acls_of_the_cluster(kafka: Cluster, https: dict[str, str]) -> None:
    given = {**https, "connect.authentication.method": "BASIC", "connect.login.mechanisms": "SCRAM-SHA-256,PLAIN"}
    names = {"group.id": "first", "config.storage.topic": "first-configs"}
    with SafeWorker(kafka, {**given, **names}) as first, SafeWorker(kafka, {**given, **names}) as second:
        eventually(lambda: first.ask_as(WATCHER, "GET", "/health")[0] == 200, "a worker")
        eventually(lambda: second.ask_as(WATCHER, "GET", "/health")[0] == 200, "another worker")
        assert first.ask_as("", "GET", "/connectors")[0] == 401
        assert first.ask_as("watcher:guessed", "GET", "/connectors")[0] == 401
        assert first.ask_as(WATCHER, "GET", "/connectors") == (200, [])
        status, said = first.ask_as(STRANGER, "GET", "/connectors")
        assert (status, "ottla acls allow stranger describe cluster --execute" in said["message"]) == (403, True)
        body = {"name": "lines", "config": SOURCE, "initial_state": "STOPPED"}
        assert first.ask_as(WATCHER, "POST", "/connectors", body)[0] == 403
        # One of the two leads: the other passes it on, over https, with what the operator has shown.
        for number, worker in enumerate((first, second)):
            status, said = worker.ask_as(OPERATOR, "POST", "/connectors", {**body, "name": f"lines-{number}"})
            assert status == 201, said
            assert worker.location == f"{worker.url}/connectors/lines-{number}"
        eventually(lambda: len(first.ask_as(WATCHER, "GET", "/connectors")[1]) == 2, "both of them")
        assert first.ask_as(STRANGER, "GET", "/metrics")[0] == 403


def test_javas_extension_by_its_name_and_users_of_a_file(kafka: Cluster, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(line("ann", "a-secret", os.urandom(16)) + "\n")
    given = {"rest.extension.classes": BASIC, "connect.users.file": str(users), "group.id": "second"}
    with SafeWorker(kafka, {**given, "config.storage.topic": "second-configs"}) as worker:
        assert worker.ask_as("", "GET", "/")[0] == 401
        assert worker.ask_as("ann:a-secret", "GET", "/")[0] == 200
        assert worker.ask_as("operator:o-secret", "GET", "/")[0] == 401


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"listeners": "https://127.0.0.1:0"}, "ssl.keystore"),
        ({"connect.authentication.method": "BASIC", "security.protocol": "PLAINTEXT"}, "needs somebody who knows"),
        ({"connect.users.file": "/nowhere", "rest.extension.classes": BASIC}, "/nowhere"),
    ],
)
def test_what_cannot_be_is_said_at_the_start(kafka: Cluster, given: dict[str, str], why: str) -> None:
    with pytest.raises(StartFailed, match=why), SafeWorker(kafka, {**given, "group.id": "third"}):
        pass


def test_a_certificate_of_another_authority_is_nobody_s(kafka: Cluster, https: dict[str, str]) -> None:
    with SafeWorker(kafka, {**https, "group.id": "fourth", "config.storage.topic": "fourth-configs"}) as worker:
        parts = urlsplit(worker.url)
        with pytest.raises(ssl.SSLError):
            http.client.HTTPSConnection(parts.netloc, timeout=60, context=ssl.create_default_context()).connect()
