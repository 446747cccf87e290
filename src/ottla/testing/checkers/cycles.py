"""G1c: transactions that read from each other in a circle.

Only reads make edges here (from the writer of a value to its reader). Kafka lets writers interleave as they like, so a
circle that needs the order of two writes is allowed and not looked for; nor is G0, which has no other edges.
"""

from collections.abc import Iterator
from typing import ClassVar

from ottla.testing.checkers.anomaly import Anomaly, Promises
from ottla.testing.checkers.evidence import Evidence
from ottla.testing.checkers.history import Action, Kind, Operation

Graph = list[list[int]]
"""For each transaction the ones that have read from it."""


class CircularInformationFlow:
    """Each transaction of a circle has read what the one before it wrote: they cannot all have come first."""

    name: ClassVar[str] = "g1c"

    def legal(self, promises: Promises) -> bool:
        return not promises.read_committed

    def find(self, evidence: Evidence) -> Iterator[Anomaly]:
        transactions = [
            operation
            for operation in evidence.history
            if operation.action is Action.TXN and operation.outcome is not Kind.FAIL
        ]
        for circle in circles(_reads_from(transactions)):
            members = ", ".join(
                f"process {transactions[i].process} at {transactions[i].invoked}" for i in sorted(circle)
            )
            values = tuple(send.value for i in sorted(circle) for send in transactions[i].sends())
            yield Anomaly(self.name, "", f"these transactions read from each other in a circle: {members}", values)


def _reads_from(transactions: list[Operation]) -> Graph:
    writer = {(s.partition, s.value): i for i, operation in enumerate(transactions) for s in operation.sends()}
    graph: Graph = [[] for _ in transactions]
    for reader, operation in enumerate(transactions):
        for poll in operation.polls():
            for _, value in poll.records:
                source = writer.get((poll.partition, value))
                if source is not None and source != reader:
                    graph[source].append(reader)
    return graph


def circles(graph: Graph) -> Iterator[list[int]]:
    """The strongly connected parts of more than one node (Tarjan's algorithm, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in range(len(graph)):
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        _enter(root, order, low, path, on_path)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in order:
                    _enter(successor, order, low, path, on_path)
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in on_path:
                    low[node] = min(low[node], order[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    part = _leave(node, path, on_path)
                    if len(part) > 1:
                        yield part


def _enter(node: int, order: dict[int, int], low: dict[int, int], path: list[int], on_path: set[int]) -> None:
    order[node] = low[node] = len(order)
    path.append(node)
    on_path.add(node)


def _leave(node: int, path: list[int], on_path: set[int]) -> list[int]:
    part = path[path.index(node) :]
    del path[-len(part) :]
    on_path.difference_update(part)
    return part
