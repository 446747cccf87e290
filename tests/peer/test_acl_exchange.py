"""ACLs move between Apache Kafka and ottla with their directory, and Java's tool changes them here."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.model.acls import Acl, Pattern
from ottla.model.permissions import Operation, Resource
from ottla.protocol import messages as m
from tests.peer.test_acl_matrix import DENY, OWNERS, SECURITY, TESTED, Side, give, in_force, prepared, right
from tests.support.acl_requests import ONE, TWO, requests
from tests.support.jvm import Tools
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.patience import eventually
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

TOPIC = Resource.TOPIC
FIRST = (
    right(TOPIC, Operation.READ, "o", pattern=Pattern.PREFIXED),
    right(TOPIC, Operation.ALL, "*", permission=DENY),
    right(Resource.GROUP, Operation.READ, "*", host="*"),
)
THEN = (
    right(TOPIC, Operation.ALL, "*"),
    right(TOPIC, Operation.DESCRIBE, TWO, permission=DENY),
    right(TOPIC, Operation.ALTER_CONFIGS, ONE, permission=DENY),
    right(Resource.CLUSTER, Operation.DESCRIBE),
)
"""Another set, so that the log has removals too."""
VERDICTS = ("name", "key", "group_id", "error_code", "topic_authorized_operations", "cluster_authorized_operations")
SEEN = ("metadata: all", "metadata: named", "metadata: of the cluster", "offsets", "committed: all")


def verdicts(value: Any) -> Any:
    """Names, codes and bit fields; epochs and the like are other ones after a start."""
    if isinstance(value, dict):
        return {k: verdicts(v) for k, v in value.items() if k in VERDICTS or isinstance(v, list | dict)}
    return [verdicts(each) for each in value] if isinstance(value, list) else value


def seen(side: Side) -> dict[str, Any]:
    """What the guest is shown, of what is the same on any server with this directory."""
    with Wire(side.bootstrap, source=TESTED) as wire:
        return {
            asked.label: verdicts(side.notes.plain(wire.ask(asked.request, asked.version)))
            for asked in requests(side.ids)
            if asked.label in SEEN
        }


def moved(node: Node, to: Path) -> Path:
    assert node.process is None
    shutil.copytree(node.data, to, ignore=shutil.ignore_patterns(".lock"))
    return to


@pytest.mark.parametrize(
    ("first", "second"), [(Ottla, ApacheKafka), pytest.param(ApacheKafka, Ottla, marks=pytest.mark.matrix)]
)
def test_the_same_acls_decide_on_the_other_server(tmp_path: Path, first: type[Node], second: type[Node]) -> None:
    with first(tmp_path / "first", extra=SECURITY) as node:
        side = prepared(node)
        give(side, FIRST)
        give(side, THEN)
        expected = seen(side)
        names = {topic["name"] for topic in expected["metadata: all"]["topics"]}
        side.owner.close()
    assert (ONE in names, TWO in names) == (True, False)
    with second(tmp_path / "second", moved(node, tmp_path / "moved"), SECURITY) as other:
        there = Side(other.name, other.bootstrap, Wire(other.bootstrap), side.notes, side.ids)
        assert in_force(there) == {*OWNERS, *THEN}
        # A server that has just started may have made no leader of the partition yet (NOT_LEADER_OR_FOLLOWER).
        eventually(lambda: "'error_code': 6" not in str(seen(there)["offsets"]))
        assert seen(there) == expected
        give(there, FIRST)  # and it can be changed
        there.owner.close()
    assert "Traceback" not in other.printed()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Ottla(tmp_path_factory.mktemp("acl-command"), extra=SECURITY) as node:
        yield node


def listed(node: Node) -> set[Acl]:
    with Wire(node.bootstrap) as wire:
        answer = wire.ask(m.DescribeAclsRequest(1, None, 1, None, None, 1, 1))
    return {
        Acl(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for r in answer.resources
        for a in r.acls
    }


def test_kafka_acls(node: Node, java_tools: Tools) -> None:
    def acls(*words: str) -> str:
        return java_tools.must("AclCommand", "--bootstrap-server", node.bootstrap, *words)

    alice = ("--allow-principal", "User:alice")
    # First, or nobody could go on: this shuts the cluster for all others.
    acls("--add", "--allow-principal", "User:ANONYMOUS", "--operation", "All", "--cluster")
    acls("--add", *alice, "--producer", "--topic", "orders")
    acls("--add", *alice, "--consumer", "--topic", "pay", "--group", "g", "--resource-pattern-type", "prefixed")
    acls("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "Read", "--topic", "orders")
    read, write, create, describe = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE
    expected = {
        Acl(4, "kafka-cluster", 3, "User:ANONYMOUS", "*", Operation.ALL, 3),
        *(Acl(2, "orders", 3, "User:alice", "*", each, 3) for each in (write, create, describe)),
        *(Acl(2, "pay", 4, "User:alice", "*", each, 3) for each in (read, describe)),
        Acl(3, "g", 4, "User:alice", "*", read, 3),
        Acl(2, "orders", 3, "User:bob", "10.0.0.1", read, 2),
    }
    assert listed(node) == expected
    shown = acls("--list", "--topic", "payments", "--resource-pattern-type", "match")
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in shown
    acls("--remove", "--force", *alice, "--producer", "--topic", "orders")
    assert listed(node) == {acl for acl in expected if (acl.name, acl.principal) != ("orders", "User:alice")}
