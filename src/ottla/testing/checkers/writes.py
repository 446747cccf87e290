"""Checks on what became of writes: acknowledged ones stay and are seen, failed ones are not, own order is kept."""

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from ottla.testing.checkers.anomaly import Anomaly, Promises
from ottla.testing.checkers.evidence import Evidence
from ottla.testing.checkers.history import Action, Kind, Operation, Partition


class LostWrite:
    """An acknowledged value that nobody read although somebody read past it."""

    name: ClassVar[str] = "lost-write"

    def legal(self, promises: Promises) -> bool:
        return not promises.acks_all

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        highest = {partition: max(log.read.values()) for partition, log in evidence.partitions.items() if log.read}
        for operation in evidence.history:
            if not operation.steps or not evidence.committed(operation):
                continue
            for partition, value, offset in operation.sends():
                bound = highest.get(partition, -1)
                if offset is not None and offset <= bound and value not in evidence.of(partition).read:
                    story = f"{value} was acknowledged at offset {offset}; others were read up to {bound}, it was not"
                    yield Anomaly(self.name, partition, story, (value,))


class Unseen:
    """An acknowledged value that the final polls, which read to the end, have not brought up."""

    name: ClassVar[str] = "unseen"

    def legal(self, promises: Promises) -> bool:
        return not promises.acks_all

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for partition, log in evidence.partitions.items():
            for value, outcome in log.sent.items():
                if outcome is Kind.OK and value not in log.read:
                    yield Anomaly(self.name, partition, f"{value} was acknowledged and never read", (value,))


class AbortedRead:
    """G1a: a value was read whose send, or whose transaction, had failed for certain."""

    name: ClassVar[str] = "aborted-read"

    def legal(self, promises: Promises) -> bool:
        return not promises.read_committed

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for partition, log in evidence.partitions.items():
            for value, outcome in log.sent.items():
                if outcome is Kind.FAIL and value in log.read:
                    story = f"{value} had failed and was read at offset {log.read[value]}"
                    yield Anomaly(self.name, partition, story, (value,))


class PrecommittedRead:
    """A transaction polled what it had sent itself: its consumer saw uncommitted records."""

    name: ClassVar[str] = "precommitted-read"

    def legal(self, promises: Promises) -> bool:
        return not promises.read_committed

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for operation in evidence.history:
            if operation.action is not Action.TXN:
                continue
            own = {(send.partition, send.value) for send in operation.sends()}
            for poll in operation.polls():
                for offset, value in poll.records:
                    if (poll.partition, value) in own:
                        story = f"process {operation.process} read its own {value} at offset {offset} before its commit"
                        yield Anomaly(self.name, poll.partition, story, (value,))


def _sent(operation: Operation) -> dict[Partition, list[int]]:
    values: dict[Partition, list[int]] = {}
    for send in operation.sends():
        values.setdefault(send.partition, []).append(send.value)
    return values


class InternalNonmonotonicSend:
    """One operation's sends to a partition stand there in another order."""

    name: ClassVar[str] = "int-nonmonotonic-send"

    def legal(self, promises: Promises) -> bool:
        return not promises.idempotent

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for operation in evidence.history:
            if len(operation.steps) < 2:
                continue
            for partition, values in _sent(operation).items():
                log = evidence.of(partition)
                for first, second in pairwise(values):
                    if log.step(first, second) < 1:
                        story = f"process {operation.process} sent {first}, then {second}; the log has them reversed"
                        yield Anomaly(self.name, partition, story, (first, second))


class InternalSendSkip:
    """Somebody's writes stand between those of one transaction. Kafka does not isolate writers: always allowed."""

    name: ClassVar[str] = "int-send-skip"

    def legal(self, promises: Promises) -> bool:
        return True

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for operation in evidence.history:
            if operation.action is not Action.TXN:
                continue
            for partition, values in _sent(operation).items():
                log = evidence.of(partition)
                for first, second in pairwise(values):
                    if log.step(first, second) > 1:
                        skipped = log.between(first, second)
                        story = f"{skipped} stand between {first} and {second} of one transaction"
                        yield Anomaly(self.name, partition, story, (first, *skipped, second))


class NonmonotonicSend:
    """A later operation of a process stands before an earlier one."""

    name: ClassVar[str] = "nonmonotonic-send"

    def legal(self, promises: Promises) -> bool:
        return not promises.idempotent

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        for operations in evidence.by_process():
            last: dict[Partition, int] = {}
            for operation in operations:
                if operation.outcome is Kind.FAIL:
                    continue
                yield from self._compare(evidence, operation, last)

    def _compare(self, evidence: Evidence, operation: Operation, last: dict[Partition, int]) -> Iterator[Anomaly]:
        """`last` is where each partition's earlier operations ended: the last value whose place is known."""
        for partition, values in _sent(operation).items():
            log = evidence.of(partition)
            known = [value for value in values if value in log.index]
            if not known:
                continue
            before = last.get(partition)
            if before is not None and log.step(before, known[0]) < 1:
                story = f"process {operation.process} sent {before}, later {known[0]}; the log has them reversed"
                yield Anomaly(self.name, partition, story, (before, known[0]))
            last[partition] = known[-1]
