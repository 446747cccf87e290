"""Every API with many sets of ACLs, asked of Apache Kafka and of ottla by the same client: the same is refused with the
same codes, the same names are shown and hidden, the bit fields are the same.

Both are without logins, so everybody is User:ANONYMOUS. The client that is tested comes from an address of its own; the
other address, which is that of the nodes too, has all rights by ACLs.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from ottla.model.acls import Acl, Pattern, PermissionType
from ottla.model.permissions import OPERATIONS, Operation, Resource
from ottla.protocol import messages as m
from tests.support.acl_requests import GROUP, NONE, ONE, TRANSACTION, TWO, Asked, Ids, requests
from tests.support.comparing import differences
from tests.support.conversation import Notes
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.requests import create_topic, settle
from tests.support.wire import Closed, Deadline, Wire

pytestmark = pytest.mark.jvm

SECURITY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until the first ACL is there, or nobody could create it.
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
}
EVERYBODY_HERE = "User:ANONYMOUS"
OWNER, TESTED, ELSEWHERE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
TOPIC, CLUSTER = Resource.TOPIC, Resource.CLUSTER
NAMES = {
    Resource.TOPIC: ONE,
    Resource.GROUP: GROUP,
    Resource.CLUSTER: "kafka-cluster",
    Resource.TRANSACTIONAL_ID: TRANSACTION,
}
RIGHTS = {
    **OPERATIONS,
    Resource.CLUSTER: (*OPERATIONS[Resource.CLUSTER], Operation.DELETE),
    Resource.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT),
}


def right(
    resource: Resource,
    operation: Operation,
    name: str | None = None,
    *,
    pattern: Pattern = Pattern.LITERAL,
    host: str = TESTED,
    permission: PermissionType = ALLOW,
) -> Acl:
    found = NAMES[resource] if name is None else name
    return Acl(resource, found, pattern, EVERYBODY_HERE, host, operation, permission)


EVERYTHING = tuple(right(each, Operation.ALL, None if each is CLUSTER else "*", host="*") for each in NAMES)
OWNERS = [acl._replace(host=OWNER) for acl in EVERYTHING]
LOOK = (right(TOPIC, Operation.DESCRIBE), right(Resource.GROUP, Operation.READ), right(CLUSTER, Operation.DESCRIBE))


def single_rights() -> Iterator[tuple[str, tuple[Acl, ...]]]:
    for resource, operations in RIGHTS.items():
        for operation in operations:
            yield f"{resource.name} {operation.name}", (right(resource, operation),)


def all_but_one() -> Iterator[tuple[str, tuple[Acl, ...]]]:
    """The one that is tested is denied in places, so that what is left of everything can be told."""
    for resource, operations in RIGHTS.items():
        for operation in (Operation.ALL, *operations):
            yield (
                f"all but {resource.name} {operation.name}",
                (*EVERYTHING, right(resource, operation, permission=DENY)),
            )


def shapes() -> Iterator[tuple[str, tuple[Acl, ...]]]:
    read = Operation.READ
    yield "nothing", ()
    yield "everything", EVERYTHING
    yield "to look", LOOK
    yield "a prefix", (right(TOPIC, read, "o", pattern=Pattern.PREFIXED), *LOOK[1:])
    yield (
        "a prefix and a literal denied",
        (
            right(TOPIC, Operation.ALL, "t", pattern=Pattern.PREFIXED),
            right(TOPIC, read, TWO, permission=DENY),
        ),
    )
    yield "every name", (right(TOPIC, read, "*"), right(Resource.GROUP, read, "*"))
    yield "what does not exist", (right(TOPIC, Operation.ALL, NONE), right(Resource.GROUP, Operation.ALL, "g-two"))
    yield "from elsewhere", tuple(acl._replace(host=ELSEWHERE) for acl in EVERYTHING)
    yield "for everybody", tuple(acl._replace(principal="User:*", host="*") for acl in LOOK)
    yield "for somebody else", tuple(acl._replace(principal="User:alice", host="*") for acl in EVERYTHING)
    yield "to write somewhere", (right(TOPIC, Operation.WRITE, "other", pattern=Pattern.PREFIXED),)


def by_chance(seed: int) -> tuple[Acl, ...]:
    dice = random.Random(seed)
    found = []
    for _ in range(dice.randint(2, 9)):
        resource = dice.choice(list(NAMES))
        name = NAMES[resource] if resource is CLUSTER else dice.choice((NAMES[resource], NAMES[resource][0], "*", TWO))
        is_prefix = resource is not CLUSTER and name != "*" and dice.random() < 0.4
        found.append(
            right(
                resource,
                dice.choice((Operation.ALL, *RIGHTS[resource])),
                name,
                pattern=Pattern.PREFIXED if is_prefix else Pattern.LITERAL,
                host=dice.choice((TESTED, "*", ELSEWHERE)),
                permission=DENY if dice.random() < 0.25 else ALLOW,
            )
        )
    return tuple(dict.fromkeys(found))


CASES = {
    **dict(shapes()),
    **dict(single_rights()),
    **dict(all_but_one()),
    **{f"by chance {seed}": by_chance(seed) for seed in range(60)},
}
ALWAYS = [*dict(shapes()), *dict(single_rights()), *(f"by chance {seed}" for seed in range(4))]

OWN = "a setting that Apache's Kafka does not have"
DIFFERENCES: dict[tuple[str, str], str] = {
    # (start of the label, start of the place in the answer): reason
    ("fetch: as a follower", ".node_endpoints"): "a broker that is no replica is told of the leader, too",
    ("create", ".topics.name=none.configs.name=confluent."): OWN,
    ("create", ".topics.name=none.configs.name=ottla."): OWN,
    ("fetch: as a follower", ".responses"): "Kafka tells it that there is no list of aborted transactions",
}


class Side(NamedTuple):
    name: str
    bootstrap: str
    owner: Wire
    notes: Notes
    ids: Ids


def prepared(node: Node) -> Side:
    owner = Wire(node.bootstrap)
    given = [m.CreateAclsRequest.AclCreation(*acl) for acl in OWNERS]
    until(lambda: not any(result.error_code for result in owner.ask(m.CreateAclsRequest(given)).results))
    notes = Notes("no-prefix", owner)
    ids = Ids(*(create_topic(owner, name, 1, {"retention.ms": "-1"}) for name in (ONE, TWO)))
    commit_an_offset(owner)
    begin_a_transaction(owner)
    settle(owner)
    return Side(node.name, node.bootstrap, owner, notes, ids)


def until(holds: Callable[[], bool]) -> None:
    deadline = Deadline("what was asked for")
    while not holds():
        deadline.check("not yet")


def commit_an_offset(owner: Wire) -> None:
    find_coordinator(owner, 0, GROUP)
    commit = m.OffsetCommitRequest
    topics = [
        commit.OffsetCommitRequestTopic(name=name, partitions=[commit.OffsetCommitRequestPartition(0, 1)])
        for name in (ONE, TWO)
    ]

    def committed() -> bool:
        answer = owner.ask(commit(GROUP, -1, "", None, -1, topics), 9)
        return not any(partition.error_code for topic in answer.topics for partition in topic.partitions)

    until(committed)


def begin_a_transaction(owner: Wire) -> None:
    find_coordinator(owner, 1, TRANSACTION)
    producer = m.InitProducerIdRequest(TRANSACTION, 600_000)
    until(lambda: not owner.ask(producer, 5).error_code)
    given = owner.ask(producer, 5)
    add = m.AddPartitionsToTxnRequest
    request = add(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=given.producer_id,
        v3_and_below_producer_epoch=given.producer_epoch,
        v3_and_below_topics=[add.AddPartitionsToTxnTopic(name, [0]) for name in (ONE, TWO)],
    )

    def added() -> bool:
        answer = owner.ask(request, 3)
        topics = answer.results_by_topic_v3_and_below
        return not any(each.partition_error_code for topic in topics for each in topic.results_by_partition)

    until(added)


def find_coordinator(owner: Wire, kind: int, key: str) -> None:
    until(lambda: not owner.ask(m.FindCoordinatorRequest("", kind, [key])).coordinators[0].error_code)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    base = tmp_path_factory.mktemp("acls")
    with ApacheKafka(base / "kafka", extra=SECURITY) as kafka, Ottla(base / "ottla", extra=SECURITY) as ottla:
        sides = prepared(kafka), prepared(ottla)
        yield sides
        for side in sides:
            side.owner.close()


def give(side: Side, acls: tuple[Acl, ...]) -> None:
    """These rights and no others, in force."""
    filters = [m.DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, host, 1, 1) for host in (TESTED, ELSEWHERE, "*")]
    side.owner.ask(m.DeleteAclsRequest(filters))
    given = m.CreateAclsRequest([m.CreateAclsRequest.AclCreation(*acl) for acl in acls])
    results = side.owner.ask(given).results
    assert [result.error_code for result in results] == [0] * len(acls), results
    until(lambda: in_force(side) == {*OWNERS, *acls})


def in_force(side: Side) -> set[Acl]:
    answer = side.owner.ask(m.DescribeAclsRequest(1, None, 1, None, None, 1, 1))
    return {
        Acl(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for r in answer.resources
        for a in r.acls
    }


def answers(side: Side, acls: tuple[Acl, ...]) -> dict[str, Any]:
    may_delete = any(
        acl.permission == ALLOW
        and acl.operation in (Operation.ALL, Operation.DELETE)
        and acl.resource in (TOPIC, CLUSTER)
        for acl in acls
    )
    found: dict[str, Any] = {}
    wire = Wire(side.bootstrap, source=TESTED)
    for asked in requests(side.ids, may_delete=may_delete):
        try:
            found[asked.label] = shown(side, asked, wire.ask(asked.request, asked.version))
        except Closed:
            found[asked.label] = "closed"
            wire.close()
            wire = Wire(side.bootstrap, source=TESTED)
    wire.close()
    return found


def shown(side: Side, asked: Asked, answer: Any) -> Any:
    return without_words(side.notes.plain(answer))


WORDS = ("error_message", "throttle_time_ms", "batch_index_error_message")


def without_words(value: Any) -> Any:
    """Codes, names and bit fields are compared: what is said beside them is each server's own."""
    if isinstance(value, dict):
        return {key: without_words(each) for key, each in value.items() if key not in WORDS}
    return [without_words(each) for each in value] if isinstance(value, list) else value


def unexplained(expected: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    return [
        f"{label} {place}: Kafka says {theirs!r:.200}, ottla {ours!r:.200}"
        for label in expected
        for place, theirs, ours in differences(expected[label], seen[label])
        if not any(label.startswith(start) and place.startswith(at) for start, at in DIFFERENCES)
    ]


@pytest.mark.parametrize(
    "name", [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.matrix) for name in CASES]
)
def test_both_refuse_and_hide_alike(both: tuple[Side, Side], name: str) -> None:
    for side in both:
        give(side, CASES[name])
    kafka, ottla = both
    found = unexplained(answers(kafka, CASES[name]), answers(ottla, CASES[name]))
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)
