"""Whole clusters whose ACLs change under faults: no request is allowed that no committed set of them allows.

A seed that fails prints the command that replays it.
"""

from collections import Counter

import pytest

from ottla.model.acls import EVERYBODY, WILDCARD, Acl, Pattern, PermissionType
from ottla.model.permissions import Operation, Resource
from ottla.testing.checkers import AllowedByCommitted, CommittedAcls, Granted, Question
from ottla.testing.sim import cluster
from ottla.testing.sim.guarded import Guarded
from ottla.testing.sim.planted import Planted
from ottla.testing.sim.planted_guarded import BUGS

SEEDS = range(1, 4)
SEEDS_FOR_A_BUG = range(1, 31)
FAULT_SECONDS = 10.0


def test_nobody_is_allowed_what_no_committed_acls_allow() -> None:
    answers: Counter[str] = Counter()
    for seed in SEEDS:
        report = cluster.run(seed, fault_seconds=FAULT_SECONDS, kind=Guarded)
        assert not report.problems, str(report)
        answers.update(report.answers)
    # Of one seed the ACLs may be such that nobody is ever allowed anything.
    assert min(answers["allowed"], answers["refused"]) > 20 * len(SEEDS), answers


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Planted) -> None:
    for seed in SEEDS_FOR_A_BUG:
        with bug.planted():
            if cluster.run(seed, fault_seconds=FAULT_SECONDS, kind=Guarded).problems:
                return
    pytest.fail(f"{bug.what}: no seed of {SEEDS_FOR_A_BUG} showed it")


# ---- the checker itself

WRITE = Question("User:alice", "10.0.0.1", Operation.WRITE, Resource.TOPIC, "orders")
MAY_WRITE = Acl(
    Resource.TOPIC, "ord", Pattern.PREFIXED, "User:alice", "10.0.0.1", Operation.WRITE, PermissionType.ALLOW
)
NOBODY_WRITES = Acl(Resource.TOPIC, WILDCARD, Pattern.LITERAL, EVERYBODY, WILDCARD, Operation.ALL, PermissionType.DENY)
COMMITTED = [
    CommittedAcls(-1, frozenset()),
    CommittedAcls(10, frozenset({MAY_WRITE})),
    CommittedAcls(20, frozenset({MAY_WRITE, NOBODY_WRITES})),
    CommittedAcls(30, frozenset({MAY_WRITE})),
]


@pytest.mark.parametrize(
    ("since", "until", "is_wrong"),
    [(0, 9, True), (0, 10, False), (10, 10, False), (19, 25, False), (20, 29, True), (25, 30, False), (35, 40, False)],
)
def test_a_request_may_be_decided_by_any_set_from_its_arrival_to_its_answer(
    since: int, until: int, is_wrong: bool
) -> None:
    found = list(AllowedByCommitted().find([Granted(WRITE, "node-1", since, until)], COMMITTED))
    assert bool(found) == is_wrong
