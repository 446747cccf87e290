"""What a history proves about each partition: which value stands where, who was read, what must have committed.

Built once, read by all checks. Offsets need not be dense, since markers of transactions take some: order is therefore
spoken of as an index among the values known to be there.
"""

from collections.abc import Iterable, Iterator

from ottla.testing.checkers.history import Action, Kind, Operation, Partition


class PartitionEvidence:
    """One partition."""

    def __init__(self) -> None:
        self.at: dict[int, list[int]] = {}
        """Offset to the values seen there: one, if all is well."""
        self.read: dict[int, int] = {}
        """Value to the offset it was read at, the first time."""
        self.sent: dict[int, Kind] = {}
        """Value to what became of it: ok, fail, or info."""
        self.values: list[int] = []
        """In order of offsets."""
        self.index: dict[int, int] = {}
        """Value to its place in `values`."""

    def stands(self, offset: int, value: int) -> None:
        there = self.at.get(offset)
        if there is None:
            self.at[offset] = [value]
        elif value not in there:
            there.append(value)

    def put_in_order(self) -> None:
        self.values = [value for offset in sorted(self.at) for value in self.at[offset]]
        for index, value in enumerate(self.values):
            self.index.setdefault(value, index)

    def between(self, first: int, second: int) -> list[int]:
        """The values after `first` and before `second`."""
        return self.values[self.index[first] + 1 : self.index[second]]

    def step(self, first: int, second: int) -> int:
        """1 from a value to the next; 1 also when a place is unknown, for then there is nothing to object to."""
        i, j = self.index.get(first), self.index.get(second)
        return 1 if i is None or j is None else j - i


class Evidence:
    """Everything the checks ask for."""

    def __init__(self, history: Iterable[Operation]) -> None:
        self.history = sorted(history, key=lambda operation: operation.invoked)
        self.partitions: dict[Partition, PartitionEvidence] = {}
        for operation in self.history:
            self._take_polls(operation)
            for send in operation.sends():
                self.of(send.partition).sent[send.value] = operation.outcome
        for operation in self.history:
            self._take_sends(operation)
        for evidence in self.partitions.values():
            evidence.put_in_order()

    def of(self, partition: Partition) -> PartitionEvidence:
        evidence = self.partitions.get(partition)
        if evidence is None:
            evidence = self.partitions[partition] = PartitionEvidence()
        return evidence

    def by_process(self) -> Iterator[list[Operation]]:
        """Each process's operations in the order it invoked them."""
        ordered: dict[int, list[Operation]] = {}
        for operation in self.history:
            ordered.setdefault(operation.process, []).append(operation)
        return iter(ordered.values())

    def committed(self, operation: Operation) -> bool:
        """It was acknowledged, or somebody read what a transaction of unknown end has written."""
        if operation.outcome is not Kind.INFO:
            return operation.outcome is Kind.OK
        return operation.action is Action.TXN and any(
            send.value in self.of(send.partition).read for send in operation.sends()
        )

    def _take_polls(self, operation: Operation) -> None:
        # Also of transactions that failed: the consumer saw those records, whatever became of its own writes.
        for poll in operation.polls():
            evidence = self.of(poll.partition)
            for offset, value in poll.records:
                evidence.stands(offset, value)
                evidence.read.setdefault(value, offset)

    def _take_sends(self, operation: Operation) -> None:
        if not operation.steps or not self.committed(operation):
            return
        for send in operation.sends():
            evidence = self.of(send.partition)
            evidence.sent[send.value] = Kind.OK
            if send.offset is not None:
                evidence.stands(send.offset, send.value)
