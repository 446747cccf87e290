"""A registry that is not for everybody: https, users of the cluster, users of a file, and writes that are passed on."""

import base64
import http.client
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ottla.model.properties.jaas import PLAIN_MODULE, jaas_text
from ottla.registry.doors.users_file import line
from ottla.registry.service import StartFailed
from ottla.testing import Cluster
from tests.support.bearer import AUDIENCE, ISSUER, Issuer, KeyServer
from tests.support.certificates import authority_file, client_context, issued, written
from tests.support.registries import Registry
from tests.support.sasl import MECHANISMS, make_user, plain_login, sasl_cluster
from tests.support.toy_language import toy
from tests.support.wire import Wire

SCHEMA = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
LOGS_IN = {
    "kafkastore.security.protocol": "SASL_PLAINTEXT",
    "kafkastore.sasl.mechanism": "PLAIN",
    "kafkastore.sasl.jaas.config": jaas_text(PLAIN_MODULE, username="admin", password="admin-secret"),
}


ISSUED = Issuer()


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    few = {"transaction_state_log_num_partitions": "1", "offsets_topic_num_partitions": "1"}
    with KeyServer(ISSUED) as keys:
        bearer = {
            "sasl.oauthbearer.jwks.endpoint.url": keys.url,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        with (
            sasl_cluster(1, f"{MECHANISMS},OAUTHBEARER", **few, **bearer) as cluster,
            Wire(cluster.bootstrap_servers) as admin,
        ):
            assert plain_login(admin).error_code == 0
            assert make_user(admin, "sam", "sam-secret", "SCRAM-SHA-256") == 0
            yield cluster


def registry_of(kafka: Cluster, **settings: str) -> Registry:
    return Registry(kafka.bootstrap_servers, {**LOGS_IN, **{name.replace("_", "."): v for name, v in settings.items()}})


def ask(
    url: str, method: str, path: str, user: str | None = None, body: Any = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    at = urlsplit(url)
    assert at.hostname is not None
    connection = (
        http.client.HTTPSConnection(at.hostname, at.port, context=client_context())
        if at.scheme == "https"
        else http.client.HTTPConnection(at.hostname, at.port)
    )
    if user is not None:
        headers["authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers
    finally:
        connection.close()


def test_who_does_not_say_who_it_is_is_told_how(kafka: Cluster) -> None:
    with registry_of(kafka, authentication_method="BASIC", authentication_realm="schemas") as registry:
        status, body, headers = ask(registry.url, "GET", "/subjects")
        assert (status, body["error_code"]) == (401, 401)
        assert headers["www-authenticate"] == 'Basic realm="schemas"'
        assert ask(registry.url, "GET", "/subjects", authorization="Bearer x")[0] == 401
        assert ask(registry.url, "GET", "/subjects", authorization="Basic !")[0] == 401


def test_users_of_the_cluster_are_users_of_its_registry(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with registry_of(kafka, authentication_method="BASIC", registry_login_mechanisms="PLAIN,SCRAM-SHA-256") as registry:
        assert ask(registry.url, "GET", "/subjects", "alice:alice-secret")[0] == 200
        assert ask(registry.url, "GET", "/subjects", "sam:sam-secret")[0] == 200
        assert ask(registry.url, "GET", "/subjects", "sam:alice-secret")[0] == 401
        assert ask(registry.url, "GET", "/subjects", "nobody:x")[0] == 401
        assert ask(registry.url, "GET", "/subjects", "alice\0:x")[0] == 401
        with (
            SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": "alice:alice-secret"}) as client,
            pytest.raises(SchemaRegistryError, match="Subject 'none' not found"),
        ):
            client.get_versions("none")
    assert "secret" not in caplog.text


def test_tokens_that_the_cluster_takes_are_taken_beside_passwords(
    kafka: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ottla.registry.audit")
    settings = {**LOGS_IN, "authentication.method": "BASIC,BEARER", "kafkastore.topic": "_schemas-tokens"}
    with Registry(kafka.bootstrap_servers, settings) as registry:
        token = ISSUED.token("kim")
        status, told, _ = ask(
            registry.url, "PUT", "/config", body={"compatibility": "FULL"}, authorization=f"Bearer {token}"
        )
        assert status == 200, told
        assert ask(registry.url, "GET", "/subjects", authorization=f"Bearer {token[:-8]}AAAAAAAA")[0] == 401
        assert ask(registry.url, "GET", "/subjects", "alice:alice-secret")[0] == 200
    assert "principal=User:kim host=127.0.0.1 action=put-config subject=(global)" in caplog.text


def test_a_registry_that_cannot_ask_anybody_about_its_users_does_not_start() -> None:
    with pytest.raises(StartFailed, match=r"kafkastore\.security\.protocol=SASL_SSL"):
        Registry("127.0.0.1:1", {"authentication.method": "BASIC"}).__enter__()


def test_a_changed_password_counts_when_its_time_is_over(kafka: Cluster) -> None:
    settings = {"authentication_method": "BASIC", "registry_login_mechanisms": "SCRAM-SHA-256"}
    with (
        Wire(kafka.bootstrap_servers) as admin,
        registry_of(kafka, registry_login_cache_ms="0", **settings) as forgetful,
        registry_of(kafka, **settings) as remembering,
    ):
        assert plain_login(admin).error_code == 0
        assert make_user(admin, "kim", "old-secret") == 0
        for registry in (forgetful, remembering):
            assert ask(registry.url, "GET", "/subjects", "kim:old-secret")[0] == 200
        assert make_user(admin, "kim", "new-secret") == 0
        assert ask(forgetful.url, "GET", "/subjects", "kim:new-secret")[0] == 200
        assert ask(forgetful.url, "GET", "/subjects", "kim:old-secret")[0] == 401
        assert ask(remembering.url, "GET", "/subjects", "kim:old-secret")[0] == 200


def test_a_users_file_is_read_anew_when_it_changes(kafka: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"# ours\n{line('ann', 'ann-secret', b'salt')}\n")
    settings = {"authentication_method": "basic", "registry_users_file": str(file), "registry_login_cache_ms": "0"}
    with registry_of(kafka, **settings) as registry:
        assert ask(registry.url, "GET", "/subjects", "ann:ann-secret")[0] == 200
        assert ask(registry.url, "GET", "/subjects", "ann:other")[0] == 401
        assert ask(registry.url, "GET", "/subjects", "alice:alice-secret")[0] == 401
        file.write_text(f"{line('ben', 'ben-secret', b'salt')}\n")
        os.utime(file, ns=(1, 1))
        assert ask(registry.url, "GET", "/subjects", "ben:ben-secret")[0] == 200
        assert ask(registry.url, "GET", "/subjects", "ann:ann-secret")[0] == 401
        file.write_text("ann:secret\n")
        os.utime(file, ns=(2, 2))
        assert ask(registry.url, "GET", "/subjects", "ben:ben-secret")[0] == 200


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(written(tmp_path, issued(), "registry")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority_file(tmp_path)),
        "registry.listeners": "https://127.0.0.1:0",
    }


def test_writes_are_passed_on_over_tls_with_what_the_caller_showed(
    kafka: Cluster, stores: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ottla.registry.audit")
    settings = {**LOGS_IN, **stores, "authentication.method": "BASIC", "kafkastore.topic": "_schemas-tls"}
    with (
        Registry(kafka.bootstrap_servers, settings) as leader,
        Registry(kafka.bootstrap_servers, {**settings, "leader.eligibility": "false"}) as follower,
    ):
        assert follower.url.startswith("https://")
        path, body = "/subjects/s/versions", {"schema": toy("a")}
        assert ask(follower.url, "POST", path, "alice:wrong", body)[0] == 401
        status, told, _ = ask(follower.url, "POST", path, "alice:alice-secret", body)
        assert (status, told["id"]) == (200, 1), told
        assert ask(leader.url, "GET", "/subjects", "bob:bob-secret")[1] == ["s"]
        assert ask(follower.url, "POST", path, "bob:bob-secret", {"schema": toy("z")})[0] == 409
    who = "principal=User:{} host=127.0.0.1 action=register subject=s"
    onward = f'result="passed on" leader={leader.url}'
    assert [record.message for record in caplog.records if record.name == "ottla.registry.audit"] == [
        f"{who.format('alice')} version=1 id=1 result=done",
        f"{who.format('alice')} {onward} status=200",
        f"{who.format('bob')} result=refused status=409 error_code=40901",
        f"{who.format('bob')} {onward} status=409",
    ]


def test_a_certificate_can_be_asked_of_clients(kafka: Cluster, stores: dict[str, str]) -> None:
    settings = {**LOGS_IN, **stores, "ssl.client.authentication": "REQUIRED"}
    with Registry(kafka.bootstrap_servers, settings) as registry:
        with pytest.raises(OSError, match=r"certificate required|closed|reset|EOF"):
            ask(registry.url, "GET", "/subjects")
        mine = client_context()
        issued(common_name="client").configure_cert(mine)
        connection = http.client.HTTPSConnection(urlsplit(registry.url).netloc, context=mine)
        connection.request("GET", "/subjects")
        assert connection.getresponse().status == 200
        connection.close()


def test_a_certificate_that_was_written_anew_is_shown_from_then_on(kafka: Cluster, stores: dict[str, str]) -> None:
    with Registry(kafka.bootstrap_servers, {**LOGS_IN, **stores}) as registry:
        before = _shown(registry.url)
        file = Path(stores["ssl.keystore.location"])
        file.write_text("nonsense")
        os.utime(file, ns=(1, 1))
        registry.do(_look(registry))
        assert _shown(registry.url) == before
        written(file.parent, issued(), "registry")
        os.utime(file, ns=(2, 2))
        registry.do(_look(registry))
        assert _shown(registry.url) != before


def _look(registry: Registry) -> Any:
    async def look() -> None:
        assert registry.service._tls is not None
        registry.service._tls.renew()

    return look


def _shown(url: str) -> bytes:
    connection = http.client.HTTPSConnection(urlsplit(url).netloc, context=client_context())
    connection.connect()
    assert connection.sock is not None
    shown = connection.sock.getpeercert(binary_form=True)
    connection.close()
    assert isinstance(shown, bytes)
    return shown


def test_the_page_of_metrics_has_confluents_names_and_a_door(kafka: Cluster) -> None:
    settings = {**LOGS_IN, "authentication.method": "BASIC", "kafkastore.topic": "_schemas-metrics"}
    with Registry(kafka.bootstrap_servers, settings) as registry:
        assert ask(registry.url, "POST", "/subjects/s/versions", "alice:alice-secret", {"schema": toy("a")})[0] == 200
        assert ask(registry.url, "GET", "/subjects/none/versions", "alice:alice-secret")[0] == 404
        assert ask(registry.url, "GET", "/metrics")[0] == 401
        connection = http.client.HTTPConnection(urlsplit(registry.url).netloc)
        pair = base64.b64encode(b"alice:alice-secret").decode()
        connection.request("GET", "/metrics", headers={"authorization": f"Basic {pair}", "accept": "text/plain"})
        answer = connection.getresponse()
        page = answer.read().decode()
        connection.close()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = dict(each.rsplit(" ", 1) for each in page.splitlines() if not each.startswith("#"))
    name = "kafka_schema_registry_"
    assert (samples[f"{name}master_slave_role"], samples[f"{name}registered_count"]) == ("1", "1")
    assert (samples[f"{name}avro_schemas_created"], samples[f"{name}deleted_count"]) == ("1", "0")
    assert (samples[f"{name}api_success_count"], samples[f"{name}api_failure_count"]) == ("1", "1")
    assert samples[f'{name}jersey_metrics_request_error_total{{http_status_code="4xx"}}'] == "1"
    assert float(samples[f"{name}jersey_metrics_request_latency_avg"]) > 0


def test_an_https_listener_without_a_certificate_is_refused() -> None:
    with pytest.raises(StartFailed, match=r"ssl\.keystore\.location"):
        Registry("127.0.0.1:1", {"registry.listeners": "https://127.0.0.1:0"}).__enter__()
