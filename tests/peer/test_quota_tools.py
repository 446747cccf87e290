"""Apache's kafka-configs sets and shows quotas of users, clients and addresses."""

import pytest

from ottla.testing import Cluster
from tests.support.jvm import Answer, Tools
from tests.support.quotas import described
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

CONFIGS = "kafka.admin.ConfigCommand"


def test_kafka_configs_for_users_clients_and_ips(java_tools: Tools) -> None:
    with Cluster() as kafka, Wire(kafka.bootstrap_servers) as wire:

        def configs(*words: str) -> Answer:
            return java_tools.run(CONFIGS, "--bootstrap-server", kafka.bootstrap_servers, *words)

        alice = ("--entity-type", "users", "--entity-name", "alice")
        pair = (*alice, "--entity-type", "clients", "--entity-default")
        ip = ("--entity-type", "ips", "--entity-name", "10.1.1.1")
        for config, entity in {
            "producer_byte_rate=1024,request_percentage=12.5": alice,
            "consumer_byte_rate=2048": pair,
            "connection_creation_rate=100": ip,
        }.items():
            assert configs("--alter", "--add-config", config, *entity).code == 0
        assert described(wire) == {
            (("user", "alice"),): {"producer_byte_rate": 1024.0, "request_percentage": 12.5},
            (("client-id", None), ("user", "alice")): {"consumer_byte_rate": 2048.0},
            (("ip", "10.1.1.1"),): {"connection_creation_rate": 100.0},
        }
        shown = configs("--describe", *alice).out
        assert "Quota configs for user-principal 'alice' are" in shown
        assert "producer_byte_rate=1024.0" in shown and "request_percentage=12.5" in shown
        assert "consumer_byte_rate=2048.0" in configs("--describe", *pair).out
        assert "connection_creation_rate=100.0" in configs("--describe", "--entity-type", "ips").out
        assert configs("--alter", "--delete-config", "producer_byte_rate,request_percentage", *alice).code == 0
        assert len(described(wire)) == 2
        assert configs("--alter", "--add-config", "producer_byte_rate=-1", *alice).code != 0
