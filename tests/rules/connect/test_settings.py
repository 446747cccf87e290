"""Kafka's worker settings: what is taken, what is refused and why."""

import pytest

from ottla.connect.doors import worker_tls
from ottla.connect.settings import ConnectSettings
from ottla.model.properties import SettingsError


def test_an_extension_of_others_is_refused_with_the_reason() -> None:
    with pytest.raises(SettingsError, match=r"com.example.Audit: REST extensions are Java code"):
        ConnectSettings.of({"rest.extension.classes": "com.example.Audit"})


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
