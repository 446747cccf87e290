"""10,000 ACLs: what a decision takes, how soon a change is in force on three brokers, and what other clients feel.

Decisions are timed in this process, each of another name, so that nothing is remembered. A change is made at one broker
and looked for at each of the three. While 10,000 entries are created in one request, and deleted in one, another client
produces 100 times a second: its longest wait holds every stall of the loop, and the disk. 100,000 entries are read by a
node that starts, beside the time of a start without any.
"""

import time
from itertools import count

from bench.clusters import Cluster, three
from bench.context import Context
from bench.measures import Measure, Metric, value_at_most
from bench.probing import probe
from bench.secured import AUTHORIZED, with_more
from bench.servers import Ottla, Server
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.connection import Connection
from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.ids import Uuid
from ottla.model.permissions import Operation, Resource
from ottla.protocol.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from ottla.security.acls import AclIndex, Rules

NAME = "acls"
METRICS = (
    Metric("decision", "a decision among 10,000 entries, not remembered", "µs", value_at_most(5)),
    Metric("in_force", "a change in force on three brokers", "ms", value_at_most(200)),
    Metric("quiet_max", "another client's longest produce, nothing going on", "ms"),
    Metric("create_max", "the same while 10,000 are created in one request", "ms"),
    Metric("delete_max", "the same while they are deleted in one", "ms"),
    Metric("moved", "moved by, at most", "ms", value_at_most(10)),
    Metric("replay", "a start with 100,000 takes longer by", "s", value_at_most(2)),
)
MANY = 10_000
CHANGES = 30
PROBE_RATE = 100.0
PATIENCE_SECONDS = 120.0
_numbers = count()


def run(context: Context) -> list[Measure]:
    rounds = min(3, context.rounds)
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        trial = {"decision": decision_us(), **on_one_node(context), "replay": replay_s(context)}
        with three(context, with_more(Ottla, "ottla", f"{AUTHORIZED}super.users=User:ANONYMOUS\n")) as cluster:
            trial["in_force"] = in_force_ms(cluster)
        found.append(trial)
    return [Measure("ACLs", metric, (), tuple(each[metric.key] for each in found)) for metric in METRICS]


def entry(number: int) -> Acl:
    return Acl(
        Resource.TOPIC,
        f"topic-{number}",
        Pattern.LITERAL if number % 4 else Pattern.PREFIXED,
        f"User:u{number % 100}",
        "*",
        Operation.READ,
        PermissionType.ALLOW,
    )


def decision_us() -> float:
    index = AclIndex()
    for number in range(MANY):
        index.add(Uuid(number.to_bytes(16)), entry(number))
    rights = Rules(index).rights("User:u7", "10.0.0.1")
    names = [f"topic-{number}" for number in range(MANY)]
    began = time.perf_counter()
    for name in names:
        rights.allows(Operation.READ, Resource.TOPIC, name)
    return (time.perf_counter() - began) / MANY * 1e6


class Door:
    """One broker, asked directly."""

    def __init__(self, server: Server) -> None:
        (address,) = parse_bootstrap(server.bootstrap)
        self._connection = Connection.open(address, client_id="bench", deadline=deadline())

    def create(self, acls: list[Acl]) -> None:
        request = CreateAclsRequest([CreateAclsRequest.AclCreation(*acl) for acl in acls])
        answer = self._connection.call(request, CreateAclsResponse, deadline=deadline())
        assert not any(each.error_code for each in answer.results), answer.results[:1]

    def delete_all(self) -> int:
        request = DeleteAclsRequest([DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, None, 1, 1)])
        answer = self._connection.call(request, DeleteAclsResponse, deadline=deadline())
        return len(answer.filter_results[0].matching_acls)

    def has(self, acl: Acl) -> bool:
        request = DescribeAclsRequest(acl.resource, acl.name, acl.pattern, acl.principal, None, 1, 1)
        return bool(self._connection.call(request, DescribeAclsResponse, deadline=deadline()).resources)

    def close(self) -> None:
        self._connection.close()


def deadline() -> float:
    return time.monotonic() + PATIENCE_SECONDS


def on_one_node(context: Context) -> dict[str, float]:
    server = context.new_server(with_more(Ottla, "ottla", AUTHORIZED))
    server.start()
    door = Door(server)
    with context.topic(server, 1) as topic:
        with probe(server, topic, PROBE_RATE) as quiet:
            time.sleep(context.amount(5, 2))
        with probe(server, topic, PROBE_RATE) as creating:
            door.create([entry(number) for number in range(MANY)])
        with probe(server, topic, PROBE_RATE) as deleting:
            assert door.delete_all() == MANY
    door.close()
    context.discard(server)
    worst = [each["max"] * 1000 for each in (quiet, creating, deleting)]
    return {
        "quiet_max": worst[0],
        "create_max": worst[1],
        "delete_max": worst[2],
        "moved": max(0.0, max(worst[1:]) - worst[0]),
    }


def in_force_ms(cluster: Cluster) -> float:
    """The slowest of some changes, from the request at one broker until each of them shows it."""
    doors = [Door(node) for node in cluster.nodes]
    slowest = 0.0
    doors[0].create([entry(number) for number in range(MANY)])
    for _ in range(CHANGES):
        acl = entry(MANY + next(_numbers))
        began = time.perf_counter()
        doors[0].create([acl])
        while not all(door.has(acl) for door in doors):
            pass
        slowest = max(slowest, time.perf_counter() - began)
    for door in doors:
        door.close()
    return slowest * 1000


def replay_s(context: Context) -> float:
    server = context.new_server(with_more(Ottla, "ottla", AUTHORIZED))
    server.start()
    server.stop()
    without = started_s(server)
    door = Door(server)
    for at in range(0, context.amount(100_000, 10_000), MANY):
        door.create([entry(number) for number in range(at, at + MANY)])
    door.close()
    server.stop()
    with_them = started_s(server)
    context.discard(server)
    return max(0.0, with_them - without)


def started_s(server: Server) -> float:
    began = time.perf_counter()
    server.start()
    return time.perf_counter() - began
