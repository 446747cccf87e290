"""`ottla.testing`: what one test leaves behind does not reach the next, and a mistake is told in words."""

from collections.abc import Iterator

import pytest

from ottla.client import admin
from ottla.client.cluster import Cluster as Client
from ottla.client.connection import parse_bootstrap
from ottla.testing import Cluster

GROUP = 32


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def own_settings(client: Client, kind: int, name: str, source: int) -> dict[str, str | None]:
    entries = admin.describe_configs(client, kind, [name])[name]
    assert isinstance(entries, list)
    return {entry.name: entry.value for entry in entries if entry.config_source == source}


def test_reset_takes_back_what_was_set_on_brokers_and_groups(one: Cluster) -> None:
    with Client(parse_bootstrap(one.bootstrap_servers)) as client:
        before = own_settings(client, admin.BROKER, "", 3)
        admin.alter_configs(client, admin.BROKER, "", [admin.ConfigChange("message.max.bytes", admin.SET, "1000")])
        admin.alter_configs(client, admin.BROKER, "1", [admin.ConfigChange("log.cleaner.threads", admin.SET, "2")])
        admin.alter_configs(
            client, GROUP, "readers", [admin.ConfigChange("consumer.session.timeout.ms", admin.SET, "50000")]
        )
        assert own_settings(client, admin.BROKER, "", 3) != before
        one.reset()
        assert own_settings(client, admin.BROKER, "", 3) == before
        assert own_settings(client, admin.BROKER, "1", 2) == {}
        assert own_settings(client, GROUP, "readers", 8) == {}


def test_a_cluster_has_at_least_one_node() -> None:
    with pytest.raises(ValueError, match="a cluster of 0 nodes: it takes at least one"):
        Cluster(0)


def test_a_node_that_does_not_exist_is_named_with_those_that_do(one: Cluster) -> None:
    for fault in (one.kill, one.shut_down, one.restart, one.pause, one.resume, one.bootstrap_server):
        with pytest.raises(ValueError, match="there is no node 7: there is only node 1"):
            fault(7)
    with pytest.raises(ValueError, match="there is no node 9: 1 to 3"):
        Cluster(3).partition([9], [1])


def test_a_cluster_that_is_not_started_says_so() -> None:
    with pytest.raises(ValueError, match="the cluster is not started"):
        Cluster(3).kill(1)


def test_a_node_that_is_down_cannot_be_paused() -> None:
    with Cluster() as cluster:
        cluster.kill(1)
        with pytest.raises(ValueError, match=r"node 1 is not running and cannot be paused: restart\(1\) starts it"):
            cluster.pause(1)
