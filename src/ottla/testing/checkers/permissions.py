"""Whether what was allowed was allowed by the access control list, as the cluster had committed it."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

from ottla.model.acls import EVERYBODY, WILDCARD, Acl, PermissionType
from ottla.model.permissions import Operation, Resource
from ottla.testing.checkers.anomaly import Anomaly

_IMPLIED: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Who may do one of these may do that."""


class Question(NamedTuple):
    principal: str
    host: str
    operation: Operation
    resource: Resource
    name: str


class CommittedAcls(NamedTuple):
    """All entries, from a record of the metadata log on."""

    offset: int
    acls: frozenset[Acl]


class Granted(NamedTuple):
    """Somebody was allowed something. Who decided it had the metadata log at least as far as `since`, and nobody had it
    further than `until`."""

    question: Question
    by: str
    since: int
    until: int


def allows(acls: Iterable[Acl], question: Question) -> bool:
    """StandardAuthorizer's rule, by a look at every entry: the slow twin of `security.acls`."""
    allowed = False
    wanted = (question.operation, Operation.ALL)
    for acl in acls:
        if (
            acl.resource != question.resource
            or acl.principal not in (question.principal, EVERYBODY)
            or acl.host not in (question.host, WILDCARD)
            or not acl.covers(question.name)
        ):
            continue
        if acl.permission == PermissionType.DENY:
            if acl.operation in wanted:
                return False
        elif acl.operation in (*wanted, *_IMPLIED.get(question.operation, ())):
            allowed = True
    return allowed


class AllowedByCommitted:
    """No request is allowed that no committed set of entries since its arrival allows."""

    name: ClassVar[str] = "not-permitted"

    def find(self, granted: Iterable[Granted], committed: Sequence[CommittedAcls]) -> Iterator[Anomaly]:
        """`committed` in the order of the log, from a set of which nothing was before on."""
        offsets = [each.offset for each in committed]
        for question, by, since, until in granted:
            first = max(0, bisect_right(offsets, since) - 1)
            sets = committed[first : bisect_right(offsets, until)]
            if not any(allows(each.acls, question) for each in sets):
                asked = f"{question.operation.name} of {question.resource.name} {question.name}"
                yield Anomaly(
                    self.name,
                    "",
                    f"{by} allowed {question.principal} {asked}, which no entries from offset {since} to {until} allow",
                    (since, until),
                )
