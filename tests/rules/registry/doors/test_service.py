"""Services beside the cluster let in whom the brokers let in."""

import asyncio
from typing import Any

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.cluster import Cluster
from ottla.client.security import security
from ottla.connect.settings import ConnectSettings
from ottla.http.auth import Caller
from ottla.http.problems import Problem
from ottla.model.permissions import WRITE_TOPIC
from ottla.registry.doors.service import service_door
from ottla.registry.settings import RegistrySettings
from ottla.sql.settings import SqlSettings

NODES_OWN = {
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "true",
    "ottla.audit.format": "json",
}
LOGS_IN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="connect" password="secret";',
}


@pytest.mark.parametrize("beside", [ConnectSettings, SqlSettings, RegistrySettings])
def test_a_service_beside_a_node_has_what_the_nodes_authorizer_has(beside: Any) -> None:
    settings = beside.beside_a_node(NODES_OWN)
    assert [settings[name] for name in NODES_OWN] == ["User:admin", True, "json"]


@pytest.mark.parametrize("everyone", [False, True])
def test_what_no_acl_is_about_is_everybodys_where_the_brokers_have_it_so(everyone: bool) -> None:
    settings = ConnectSettings.beside_a_node({**NODES_OWN, "allow.everyone.if.no.acl.found": str(everyone).lower()})

    async def scene() -> bool:
        brokers = parse_bootstrap("127.0.0.1:9")
        found = service_door("connect", settings, brokers, security(LOGS_IN), Cluster(brokers))
        assert found.acls is not None
        view, rights = found.acls
        alice = Caller("User:alice", "10.0.0.1")
        with pytest.raises(Problem, match="503"):
            rights.check(alice, WRITE_TOPIC, "orders", "GET /")
        view._rules = view._of([])
        return rights.allows(alice, WRITE_TOPIC, "orders")

    assert asyncio.run(scene()) is everyone
