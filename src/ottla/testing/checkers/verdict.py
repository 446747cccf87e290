"""All checks over one history, and whether what they found is allowed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from ottla.testing.checkers.anomaly import Anomaly, Check, Promises
from ottla.testing.checkers.cycles import CircularInformationFlow
from ottla.testing.checkers.evidence import Evidence
from ottla.testing.checkers.history import Kind, Operation
from ottla.testing.checkers.places import Duplicate, InconsistentOffsets, UnwrittenRead
from ottla.testing.checkers.reads import InternalNonmonotonicPoll, InternalPollSkip, NonmonotonicPoll, PollSkip
from ottla.testing.checkers.writes import (
    AbortedRead,
    InternalNonmonotonicSend,
    InternalSendSkip,
    LostWrite,
    NonmonotonicSend,
    PrecommittedRead,
    Unseen,
)

CHECKS: tuple[Check, ...] = (
    InconsistentOffsets(),
    Duplicate(),
    LostWrite(),
    Unseen(),
    UnwrittenRead(),
    AbortedRead(),
    PrecommittedRead(),
    InternalPollSkip(),
    InternalNonmonotonicPoll(),
    PollSkip(),
    NonmonotonicPoll(),
    InternalNonmonotonicSend(),
    NonmonotonicSend(),
    InternalSendSkip(),
    CircularInformationFlow(),
)
EXAMPLES = 100
"""So many of each kind are kept: a broken log breaks every rule thousands of times."""


@dataclass(slots=True)
class Verdict:
    """What was found, by name of the check, and how much there was to look at."""

    illegal: dict[str, list[Anomaly]] = field(default_factory=dict)
    legal: dict[str, list[Anomaly]] = field(default_factory=dict)
    acknowledged: int = 0
    read: int = 0
    unknown: int = 0
    """Sends of which nobody knows whether they happened."""

    @property
    def valid(self) -> bool:
        return not self.illegal

    def __str__(self) -> str:
        if self.valid:
            return f"nothing illegal among {self.acknowledged} acknowledged records"
        return "\n".join(str(anomaly) for found in self.illegal.values() for anomaly in found[:5])


def judge(
    history: Iterable[Operation], promises: Promises | None = None, checks: tuple[Check, ...] = CHECKS
) -> Verdict:
    """`promises`: what the clients were configured for; by default all that Kafka offers."""
    promises = promises or Promises()
    evidence = Evidence(history)
    verdict = Verdict()
    for log in evidence.partitions.values():
        outcomes = list(log.sent.values())
        verdict.acknowledged += outcomes.count(Kind.OK)
        verdict.unknown += outcomes.count(Kind.INFO)
        verdict.read += len(log.read)
    for check in checks:
        found = list(islice(check.find(evidence), EXAMPLES))
        if found:
            (verdict.legal if check.legal(promises) else verdict.illegal)[check.name] = found
    return verdict
