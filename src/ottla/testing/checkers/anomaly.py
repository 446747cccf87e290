"""The shape of a check and of what it finds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from ottla.testing.checkers.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Promises:
    """What the clients of a history were configured for: it decides which anomalies are allowed."""

    acks_all: bool = True
    idempotent: bool = True
    subscribed: bool = False
    """Consumers got their partitions from a group: a rebalance may repeat records or step over some."""
    read_committed: bool = True


class Anomaly(NamedTuple):
    check: str
    partition: str
    """Empty when it concerns none in particular."""
    story: str
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.check} in {self.partition}: {self.story}" if self.partition else f"{self.check}: {self.story}"


class Check(Protocol):
    """One kind of anomaly, searched for in a whole history."""

    name: ClassVar[str]

    def find(self, evidence: Evidence) -> Iterator[Anomaly]: ...

    def legal(self, promises: Promises) -> bool:
        """Whether Kafka may do this to such clients."""
