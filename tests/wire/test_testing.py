"""`ottla.testing`: what one test leaves behind does not reach the next, and a mistake is told in words."""

import logging
import re
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from random import randrange
from typing import Any

import pytest

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.protocol import messages as m
from ottla.runtime.forwarding import Sender
from ottla.testing import Cluster, KafkaError, SettingsError, StartFailed
from ottla.testing.security import scram_user
from tests.support.patience import eventually
from tests.support.wire import Wire

GROUP = 32


@pytest.fixture
def one(kafka: Cluster) -> Cluster:
    """As anybody's test gets it from the plugin."""
    return kafka


@pytest.fixture
def three(kafka_cluster: Cluster) -> Cluster:
    return kafka_cluster


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


def test_reset_takes_back_quotas_users_tokens_and_levels_of_loggers() -> None:
    """A quota that one test sets would slow down all that follow."""
    with Cluster(delegation_token_secret_key="nobody-knows") as kafka, Wire(kafka.bootstrap_servers) as wire:
        before = logging.getLogger("ottla.net").level
        node = kafka._node(1)
        part = m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="alice")
        rate = m.AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1.0)
        wire.ask(m.AlterClientQuotasRequest([m.AlterClientQuotasRequest.EntryData([part], [rate])]))
        wire.ask(scram_user("alice", "secret"))
        resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
            8, "1", [m.IncrementalAlterConfigsRequest.AlterableConfig("ottla.net", 0, "FATAL")]
        )
        wire.ask(m.IncrementalAlterConfigsRequest([resource]))
        token = m.CreateDelegationTokenRequest(max_lifetime_ms=-1)
        kafka._call(1, node.control_plane.submit(token, on_behalf_of=Sender("User:alice", "127.0.0.1")))
        assert left_in(kafka) == [1, 1, 1]
        assert logging.getLogger("ottla.net").level == logging.CRITICAL
        kafka.reset()
        assert left_in(kafka) == [0, 0, 0]
        assert logging.getLogger("ottla.net").level == before


def left_in(kafka: Cluster) -> list[int]:
    image = kafka._node(1).control_plane.image
    return [len(each) for each in (image.client_quotas, image.scram, image.delegation_tokens)]


def test_a_cluster_has_at_least_one_node() -> None:
    with pytest.raises(ValueError, match="a cluster of 0 nodes: it takes at least one"):
        Cluster(0)


def test_a_node_that_does_not_exist_is_named_with_those_that_do(one: Cluster) -> None:
    for fault in (one.kill, one.shut_down, one.restart, one.pause, one.resume, one.bootstrap_server):
        with pytest.raises(ValueError, match="there is no node 7: there is only node 1"):
            fault(7)
    with pytest.raises(ValueError, match="there is no node 9: 1 to 3"):
        Cluster(3).partition([9], [1])


def test_who_leads_what_is_not_there_is_nobody_and_nothing_can_be_done_to_him(one: Cluster) -> None:
    assert one.leader_of("never-made") == -1
    with pytest.raises(ValueError, match="-1 is no node: nobody leads the partition that was asked for"):
        one.kill(one.leader_of("never-made"))


def test_a_cluster_with_tls_names_what_certificates_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ModuleNotFoundError, match=r"cryptography is not installed: pip install 'ottla\[security\]'"):
        Cluster(security="SASL_SSL").start()


def test_a_cluster_that_is_not_started_says_so() -> None:
    with pytest.raises(ValueError, match="the cluster is not started"):
        Cluster(3).kill(1)


def test_a_node_that_is_down_cannot_be_paused(one: Cluster) -> None:
    one.kill(1)
    with pytest.raises(ValueError, match=r"node 1 is not running and cannot be paused: restart\(1\) starts it"):
        one.pause(1)


def free_port(neighbours: int = 0) -> int:
    """Free with so many after it. Below those that the kernel gives to anybody who connects."""
    while True:
        port = randrange(10_000, 32_000)
        with ExitStack() as taken:
            try:
                for number in range(port, port + neighbours + 1):
                    taken.enter_context(socket.socket()).bind(("127.0.0.1", number))
            except OSError:
                continue
        return port


def test_reset_brings_back_a_node_that_was_killed_where_its_clients_know_it(one: Cluster) -> None:
    before = one.bootstrap_servers
    one.create_topic("orders")
    one.kill(1)
    one.reset()
    assert one.bootstrap_servers == before
    assert one.produce("after", "the kill")[0].offset == 0
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        one.consume("orders")


def test_what_was_produced_is_told_as_it_stands_in_the_log(one: Cluster) -> None:
    one.create_topic("stamped", message_timestamp_type="LogAppendTime")
    assert one.produce("stamped", "a", "b", timestamp_ms=5) == one.consume("stamped")


@pytest.mark.parametrize("fault", ["kill", "shut_down", "pause", "partition"])
def test_no_fault_of_a_test_reaches_the_next(three: Cluster, fault: str) -> None:
    """Of the controller, which is the one that the others miss most."""
    three.create_topic("orders", partitions=3)
    victim = three.controller
    if fault == "partition":
        three.partition([victim], [node_id for node_id in (1, 2, 3) if node_id != victim])
    else:
        getattr(three, fault)(victim)
    three.reset()
    assert three.running == [1, 2, 3]
    for node_id in (1, 2, 3):
        assert three.leader_of("orders", seen_by=node_id) == -1
    three.create_topic("next", partitions=3)
    eventually(lambda: all(sorted(three.in_sync("next", partition)) == [1, 2, 3] for partition in range(3)))
    three.produce("next", *map(str, range(9)))
    assert len(three.consume("next")) == 9


def test_a_node_that_is_paused_or_cut_off_is_given_up_soon(three: Cluster) -> None:
    with Client(parse_bootstrap(three.bootstrap_servers)) as client:
        entries = admin.describe_configs(client, admin.BROKER, ["1"])["1"]
        assert isinstance(entries, list)
        assert {"broker.session.timeout.ms": "2000"}.items() <= {e.name: e.value for e in entries}.items()


def test_a_port_is_where_the_first_node_listens_and_the_others_follow() -> None:
    port = free_port(neighbours=2)
    with Cluster(port=port) as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port}"
    with Cluster(3, port=port) as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port},127.0.0.1:{port + 1},127.0.0.1:{port + 2}"


def test_a_port_that_somebody_else_has_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StartFailed, match=f"cannot listen on 127.0.0.1:{port}: another process does"):
            Cluster(port=port).start()


def test_listeners_need_not_name_the_controllers() -> None:
    port = free_port()
    with Cluster(listeners=f"PLAINTEXT://127.0.0.1:{port}") as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port}"
        cluster.produce("orders", "plums")
    with Cluster(listeners="PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0") as cluster:
        cluster.produce("orders", "plums")


@pytest.mark.parametrize(
    ("nodes", "settings", "problem"),
    [
        (1, {"ports": 9092}, "ports: not a known setting"),
        (1, {"num_partition": 3}, "num_partition: not a known setting; did you mean num_partitions?"),
        (1, {"port": 9092, "listeners": "PLAINTEXT://:9093"}, "port: listeners say already where to listen"),
        (3, {"port": 65534}, "port=65534: 1 to 65533"),
        (3, {"node_id": 4}, "node_id: each of 3 nodes has its own; port=N says where the first listens"),
    ],
)
def test_a_keyword_that_would_do_nothing_is_refused(nodes: int, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Cluster(nodes, **settings)
    assert refused.value.problems == (problem,)


def test_a_cluster_that_runs_cannot_be_started_again_and_is_not_lost(one: Cluster) -> None:
    before = one.bootstrap_servers
    with pytest.raises(ValueError, match=r"the cluster is started already; stop\(\) ends it"):
        one.start()
    assert one.bootstrap_servers == before
    one.produce("orders", "plums")


def test_a_test_without_a_client_creates_writes_and_reads(one: Cluster) -> None:
    one.create_topic("orders", partitions=2, cleanup_policy="compact")
    first = one.produce("orders", "plums", b"pears", key="42", partition=1, headers={"of": "today"}, timestamp_ms=7)
    assert first == [
        ("orders", 1, 0, 7, b"42", b"plums", (("of", b"today"),)),
        ("orders", 1, 1, 7, b"42", b"pears", (("of", b"today"),)),
    ]
    one.produce("orders", None, key="43", partition=0, timestamp_ms=8)
    assert one.consume("orders") == [("orders", 0, 0, 8, b"43", None, ()), *first]
    assert one.consume("orders", 2, timeout_s=60) == one.consume("orders")[:3]
    with pytest.raises(TimeoutError, match=r"\d records of orders came within 0.1 s, not 4"):
        one.consume("orders", 4, timeout_s=0.1)
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        one.create_topic("orders")


def test_the_readmes_test_without_a_client_passes(three: Cluster) -> None:
    (example,) = [block for block in python_blocks() if "def test_an_order_outlives_its_leader" in block]
    names: dict[str, Any] = {}
    exec(example, names)
    names["test_an_order_outlives_its_leader"](three)


def python_blocks() -> list[str]:
    readme = Path(__file__).parents[2] / "README.md"
    return re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
