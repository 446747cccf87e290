"""Checks on where values stand: one value per offset, one offset per value, and only values that were sent."""

from collections.abc import Iterator
from typing import ClassVar

from ottla.testing.checkers.anomaly import Anomaly, Promises
from ottla.testing.checkers.evidence import Evidence


class InconsistentOffsets:
    """Two values were seen at one offset: the log was rewritten under its readers, or replicas differ."""

    name: ClassVar[str] = "inconsistent-offsets"

    def legal(self, promises: Promises) -> bool:
        return not promises.acks_all  # a write that may be lost leaves its offset to another

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for partition, log in evidence.partitions.items():
            for offset, values in sorted(log.at.items()):
                if len(values) > 1:
                    yield Anomaly(self.name, partition, f"offset {offset} holds {values}", tuple(values))


class Duplicate:
    """One value stands at several offsets: a retry was appended twice."""

    name: ClassVar[str] = "duplicate"

    def legal(self, promises: Promises) -> bool:
        return not promises.idempotent

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for partition, log in evidence.partitions.items():
            if len(log.values) == len(log.index):
                continue
            offsets: dict[int, list[int]] = {}
            for offset, values in sorted(log.at.items()):
                for value in values:
                    offsets.setdefault(value, []).append(offset)
            for value, places in offsets.items():
                if len(places) > 1:
                    yield Anomaly(self.name, partition, f"{value} stands at offsets {places}", (value,))


class UnwrittenRead:
    """Somebody read a value that nobody sent: corruption, or a record in the wrong partition."""

    name: ClassVar[str] = "unwritten-read"

    def legal(self, promises: Promises) -> bool:
        return False

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for partition, log in evidence.partitions.items():
            for value, offset in log.read.items():
                if value not in log.sent:
                    yield Anomaly(self.name, partition, f"{value} at offset {offset} was never sent", (value,))
