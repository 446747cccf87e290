"""Kafka's worker settings: what is taken, what is refused and why."""

import pytest

from ottla.connect.doors import worker_tls
from ottla.connect.providers import Providers
from ottla.connect.settings import ConnectSettings
from ottla.connect.validation import Judge
from ottla.model.properties import SettingsError


def test_an_extension_of_others_is_refused_with_the_reason() -> None:
    with pytest.raises(SettingsError, match=r"com.example.Audit: REST extensions are Java code"):
        ConnectSettings.of({"rest.extension.classes": "com.example.Audit"})


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        ("Principal", "Principal"),
        ("org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy", "None"),
        ("AllowlistConnectorClientConfigOverridePolicy", "Allowlist"),
    ],
)
def test_a_policy_goes_by_its_class_too(said: str, policy: str) -> None:
    assert ConnectSettings.of({"connector.client.config.override.policy": said}).override_policy == policy


def test_a_policy_of_others_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"com.example.Strict is Java code"):
        ConnectSettings.of({"connector.client.config.override.policy": "com.example.Strict"})


def test_an_allowlist_names_what_may_be_overridden() -> None:
    config = {"name": "a", "connector.class": "FileStreamSink", "file": "/none", "topics": "t"}
    given = {**config, "consumer.override.max.poll.records": "1", "consumer.override.group.id": "g"}
    found = Judge({}, Providers({}), "Allowlist", allowlist=("max.poll.records",)).judge(given)
    assert [value.name for _, value in found.configs if value.errors] == ["consumer.override.group.id"]


def test_an_empty_admin_listeners_turns_admin_off_and_other_listeners_are_refused() -> None:
    assert ConnectSettings.of({}).has_admin
    settings = ConnectSettings.of({"admin.listeners": ""})
    assert (settings.has_admin, settings.inherited) == (False, {})
    with pytest.raises(SettingsError, match=r"admin\.listeners= turns it off"):
        ConnectSettings.of({"admin.listeners": "http://127.0.0.1:9999"})


def test_what_asks_for_something_that_is_not_there_is_named() -> None:
    given = {"access.control.allow.origin": "*", "response.http.headers.config": "add X: y", "plugin.path": "/plugins"}
    assert ConnectSettings.of(given).unused == ("access.control.allow.origin", "response.http.headers.config")


def test_javas_basic_auth_extension_means_logins() -> None:
    given = {
        "rest.extension.classes": "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
    }
    assert ConnectSettings.of(given).has_logins
    assert not ConnectSettings.of({}).has_logins


def test_https_has_the_workers_own_certificate_unless_one_name_stands_behind_listeners_https() -> None:
    own = {"ssl.keystore.location": "/own", "ssl.keystore.type": "PEM"}
    assert ConnectSettings.of(own).https == own
    other = ConnectSettings.of({**own, "listeners.https.ssl.keystore.location": "/other"})
    assert (other.https, other.client) == ({"ssl.keystore.location": "/other"}, own)


def test_a_worker_beside_a_node_has_the_nodes_certificate_and_its_own_client_settings() -> None:
    given = {
        "ssl.keystore.location": "/node.pem",
        "connect.ssl.truststore.location": "/ca.pem",
        "super.users": "User:a",
    }
    settings = ConnectSettings.beside_a_node(given)
    assert settings.https == {"ssl.keystore.location": "/node.pem"}
    assert settings.client == {"ssl.truststore.location": "/ca.pem"}
    assert settings["super.users"] == "User:a"


def test_a_worker_without_https_needs_no_certificate() -> None:
    assert worker_tls(ConnectSettings.of({"listeners": "http://127.0.0.1:0"})) is None
