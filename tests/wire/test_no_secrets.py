"""What a node writes about logins, users and settings holds no password, at any level, for its log or for auditors."""

import logging
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from ottla.protocol import messages as m
from ottla.testing import Cluster
from tests.support.sasl import handshake, plain_login
from tests.support.wire import Closed, Wire

RIGHT, WRONG, STORE, TOKEN = "r1ght-secret", "wr0ng-secret", "st0re-secret", "eyJhbGciOiJub25lIn0.t0ken-secret."


def test_no_secret_is_in_the_log_at_any_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Cluster(security="SASL_SSL") as kafka:
        alice = {**kafka.user("alice", RIGHT), "log_level": 0}
        producer = Producer(alice)
        producer.produce("orders", b"plums")
        assert producer.flush(60) == 0
        with pytest.raises(KafkaException):
            Producer({**alice, "sasl.password": WRONG}).list_topics(timeout=2)
        change = ConfigEntry("ssl.keystore.password", STORE, incremental_operation=AlterConfigOpType.SET)
        broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[change])
        admin = AdminClient({**kafka.admin})  # one that is let go at once takes its answers along
        with suppress(KafkaException):  # whether it is taken does not matter here
            admin.incremental_alter_configs([broker])[broker].result(60)
        kafka.user("alice", f"{RIGHT}-2")
        assert caplog.text, "it says something"
        for secret in (RIGHT, WRONG, STORE, kafka.admin["sasl.password"]):
            assert secret not in caplog.text


def test_no_token_or_bare_password_is_in_it_either(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Cluster(security="SASL_PLAINTEXT") as kafka:
        with Wire(kafka.bootstrap_servers) as wire:
            assert plain_login(wire, "alice", WRONG).error_code
        for token in (f"\0alice\0{WRONG}\0more".encode(), f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()):
            with Wire(kafka.bootstrap_servers) as wire, suppress(Closed):
                handshake(wire, "PLAIN")
                assert wire.ask(m.SaslAuthenticateRequest(auth_bytes=token)).error_code
    for secret in (WRONG, TOKEN, "t0ken-secret"):
        assert secret not in caplog.text
