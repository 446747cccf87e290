"""A node's own pages where users have to log in: the same users, and the same decision, as on the wire."""

import base64
import logging
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from ottla.cli.pages import page
from ottla.metadata.replay import image_of
from ottla.model.properties import Settings
from ottla.node.monitoring.door import NodeUsers
from ottla.protocol.messages import UserScramCredentialRecord
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.rules.controller.scene import features
from tests.support.patience import PATIENCE_SECONDS

DOOR: dict[str, Any] = {"http_listeners": "http://127.0.0.1:0", "http_authentication_method": "basic"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", connection_failed_authentication_delay_ms="50", **DOOR) as cluster:
        cluster.user("watcher", "w-secret", may=["describe cluster"])
        cluster.user("stranger", "s-secret", may=[])
        cluster.user("eve", "e-secret", may=[])
        yield cluster


def asked(kafka: Cluster, path: str, user: str = "") -> tuple[int, str]:
    shown = {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}
    try:
        with urlopen(Request(f"{kafka.http_address(1)}{path}", headers=shown), timeout=PATIENCE_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_whether_a_node_is_well_is_told_to_everybody(kafka: Cluster) -> None:
    assert [asked(kafka, path)[0] for path in ("/healthz", "/readyz")] == [200, 200]


def test_metrics_are_for_who_may_describe_the_cluster(kafka: Cluster) -> None:
    admin = f"{kafka.admin['sasl.username']}:{kafka.admin['sasl.password']}"  # by PLAIN, and a super user
    for path in ("/metrics", "/version"):
        assert asked(kafka, path, "watcher:w-secret")[0] == 200
        assert asked(kafka, path, admin)[0] == 200
        status, told = asked(kafka, path, "stranger:s-secret")
        assert status == 403
        assert "ottla acls allow stranger describe cluster --execute" in told


def test_who_does_not_say_who_he_is_or_cannot_prove_it_is_told_so(kafka: Cluster) -> None:
    for user in ("", "watcher:wrong", "nobody:w-secret", "watcher:", ":w-secret"):
        assert asked(kafka, "/metrics", user)[0] == 401
    assert asked(kafka, "/healthz", "watcher:wrong")[0] == 401, "who says something has to be right"


def test_a_refusal_is_in_the_audit_log_and_no_password(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        asked(kafka, "/metrics?a=b", "eve:e-secret")
        asked(kafka, "/metrics", "watcher:wr0ng")
    assert "Principal = User:eve is Denied operation = DESCRIBE" in caplog.text
    assert "for request = GET /metrics with" in caplog.text
    assert "e-secret" not in caplog.text
    assert "wr0ng" not in caplog.text


def test_logins_are_in_the_audit_log_and_whoever_guesses_waits(
    kafka: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        assert asked(kafka, "/metrics", "watcher:w-secret")[0] == 200
        began = time.monotonic()
        assert asked(kafka, "/metrics", "guest\nwork:wr0ng")[0] == 401
        assert time.monotonic() - began >= 0.05, "connection.failed.authentication.delay.ms"
    assert (
        "Login of principal = User:watcher with mechanism = BASIC from host = 127.0.0.1 on listener = HTTP succeeded"
        in caplog.messages
    )
    assert (
        "Login of principal = unknown with mechanism = BASIC from host = 127.0.0.1 on listener = HTTP failed: "
        r"a wrong password of 'guest\nwork', or no such user" in caplog.messages
    )


def test_tools_ask_for_pages_over_tls_and_as_somebody() -> None:
    door: dict[str, Any] = {"http_listeners": "https://127.0.0.1:0", "http_authentication_method": "basic"}
    with Cluster(security="SASL_SSL", **door) as secured:
        url = f"{secured.http_address(1)}/metrics"
        assert url.startswith("https://")
        watcher = as_java(secured.user("watcher", may=["describe cluster"]))
        assert "kafka_server" in page(url, watcher, PATIENCE_SECONDS)
        with pytest.raises(HTTPError, match="401"):
            page(url, {**watcher, "security.protocol": "SSL"}, PATIENCE_SECONDS)
        with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
            page(url, {}, PATIENCE_SECONDS)


def test_strangers_are_looked_at_as_most_users_are() -> None:
    """Else the time that a refusal takes tells who exists."""
    scram = {
        (kind, f"user-{number}"): UserScramCredentialRecord(
            name=f"user-{number}", mechanism=kind, salt=b"s" * 25, stored_key=b"k", server_key=b"k", iterations=16_384
        )
        for kind in (1, 2)
        for number in range(3)
    }
    image = image_of([*features(), *scram.values()], "cluster", offset=9, epoch=1, timestamp=1)
    users = NodeUsers(Settings.defaults("/data"), lambda: image)
    for name in ("user-1", "nobody"):
        assert [kept.iterations for kept in users._kept(name)] == [16_384, 16_384]


def test_a_node_without_an_authorizer_asks_only_who_it_is() -> None:
    with Cluster(port=None, **DOOR) as plain:
        assert asked(plain, "/metrics")[0] == 401
        assert asked(plain, "/healthz")[0] == 200
