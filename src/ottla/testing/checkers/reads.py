"""Checks on the order in which consumers were given records: nothing left out, nothing backwards."""

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, NamedTuple

from ottla.testing.checkers.anomaly import Anomaly, Promises
from ottla.testing.checkers.evidence import Evidence
from ottla.testing.checkers.history import Action, Kind, Operation, Partition


class Jump(NamedTuple):
    """Two records that one consumer read one after the other and that do not stand one after the other."""

    process: int
    partition: Partition
    first: int
    second: int
    skipped: tuple[int, ...]

    @property
    def is_skip(self) -> bool:
        return bool(self.skipped)

    def told(self, name: str) -> Anomaly:
        if self.is_skip:
            story = f"process {self.process} read {self.first}, then {self.second}, and not {[*self.skipped]} between"
        else:
            story = f"process {self.process} read {self.first}, then {self.second}, which does not stand behind it"
        return Anomaly(name, self.partition, story, (self.first, *self.skipped, self.second))


def _read(operation: Operation) -> dict[Partition, list[int]]:
    values: dict[Partition, list[int]] = {}
    for poll in operation.polls():
        values.setdefault(poll.partition, []).extend(value for _, value in poll.records)
    return {partition: found for partition, found in values.items() if found}


def _jump(evidence: Evidence, process: int, partition: Partition, first: int, second: int) -> Jump | None:
    log = evidence.of(partition)
    step = log.step(first, second)
    if step == 1:
        return None
    skipped = tuple(log.between(first, second)) if step > 1 else ()
    return Jump(process, partition, first, second, skipped)


def jumps_inside(evidence: Evidence) -> Iterator[Jump]:
    """Within one operation. Partitions that came or went while it ran are left out."""
    for operation in evidence.history:
        if operation.action not in (Action.POLL, Action.TXN):
            continue
        for partition, values in _read(operation).items():
            if partition in operation.partitions:
                continue
            for first, second in pairwise(values):
                jump = _jump(evidence, operation.process, partition, first, second)
                if jump is not None:
                    yield jump


def jumps_between(evidence: Evidence) -> Iterator[Jump]:
    """From one operation of a process to its next. An assignment keeps the place in the partitions it keeps."""
    for operations in evidence.by_process():
        last: dict[Partition, int] = {}
        for operation in operations:
            if operation.action in (Action.ASSIGN, Action.SUBSCRIBE):
                kept = () if operation.fresh else operation.partitions
                if operation.outcome is not Kind.FAIL:
                    last = {partition: value for partition, value in last.items() if partition in kept}
                continue
            read = _read(operation)
            for partition in operation.partitions:
                last.pop(partition, None)
            for partition, values in read.items():
                if partition in last:
                    jump = _jump(evidence, operation.process, partition, last[partition], values[0])
                    if jump is not None:
                        yield jump
            # A transaction that did not commit gives its place in the input back.
            if operation.outcome is Kind.OK:
                last.update((partition, values[-1]) for partition, values in read.items())


class InternalPollSkip:
    """A record is missing among those of one operation."""

    name: ClassVar[str] = "int-poll-skip"

    def legal(self, promises: Promises) -> bool:
        return not promises.acks_all  # what was acknowledged and lost is missing in every poll

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        return (jump.told(self.name) for jump in jumps_inside(evidence) if jump.is_skip)


class InternalNonmonotonicPoll:
    """The records of one operation go back, or repeat."""

    name: ClassVar[str] = "int-nonmonotonic-poll"

    def legal(self, promises: Promises) -> bool:
        return False

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        return (jump.told(self.name) for jump in jumps_inside(evidence) if not jump.is_skip)


class PollSkip:
    """A record is missing between two operations of one process."""

    name: ClassVar[str] = "poll-skip"

    def legal(self, promises: Promises) -> bool:
        return promises.subscribed or not promises.acks_all

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        return (jump.told(self.name) for jump in jumps_between(evidence) if jump.is_skip)


class NonmonotonicPoll:
    """A process reads again what it had read, or what stands before."""

    name: ClassVar[str] = "nonmonotonic-poll"

    def legal(self, promises: Promises) -> bool:
        return promises.subscribed

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        return (jump.told(self.name) for jump in jumps_between(evidence) if not jump.is_skip)
