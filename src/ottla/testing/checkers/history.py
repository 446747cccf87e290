"""What clients did and what they were told: the input of every check.

A history is a list of operations. Each was invoked by a process (one client, never used again after it crashed) and
ended in one of three ways: it took effect (ok), it certainly did not (fail), or nobody knows (info). Values are numbers
that are sent once to one partition, so a value found somewhere says who wrote it.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Partition = str
"""Topic and number, such as `load-3`; the checks only compare it."""


class Kind(StrEnum):
    """What an event says of its operation. All but INVOKE are outcomes."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(StrEnum):
    SEND = "send"
    """One or more sends, each on its own."""
    POLL = "poll"
    TXN = "txn"
    """Polls and sends that take effect together or not at all."""
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"


class Send(NamedTuple):
    partition: Partition
    value: int
    offset: int | None = None
    """Where the acknowledgement says it stands, if it says so."""


class Poll(NamedTuple):
    partition: Partition
    records: tuple[tuple[int, int], ...]
    """(offset, value) in the order they were handed out."""


Step = Send | Poll


class Event(NamedTuple):
    """One line of a history as a simulator or a harness writes it: an invocation, or the end of one."""

    kind: Kind
    process: int
    action: Action
    number: int
    """Ties an end to its invocation, within the process."""
    at: int
    """Time in any unit that does not go back."""
    steps: tuple[Step, ...] = ()
    partitions: tuple[Partition, ...] = ()
    """Of ASSIGN and SUBSCRIBE; of others those that were revoked or assigned while it ran."""
    fresh: bool = False
    """ASSIGN that also seeks: where the process had read to before says nothing any more."""


@dataclass(slots=True, eq=False)
class Operation:
    """An invocation together with its end."""

    process: int
    action: Action
    outcome: Kind
    steps: tuple[Step, ...] = ()
    partitions: tuple[Partition, ...] = ()
    fresh: bool = False
    invoked: int = 0
    completed: int | None = None

    def sends(self) -> Iterator[Send]:
        return (step for step in self.steps if isinstance(step, Send))

    def polls(self) -> Iterator[Poll]:
        return (step for step in self.steps if isinstance(step, Poll))


def operations(events: Iterable[Event]) -> list[Operation]:
    """In order of invocation. What never ended may have happened or not: info."""
    found: list[Operation] = []
    open_: dict[tuple[int, int], Operation] = {}
    for event in events:
        key = (event.process, event.number)
        if event.kind is Kind.INVOKE:
            assert key not in open_, f"process {event.process} invoked number {event.number} twice"
            operation = Operation(
                event.process, event.action, Kind.INFO, event.steps, event.partitions, event.fresh, event.at
            )
            open_[key] = operation
            found.append(operation)
        else:
            operation = open_.pop(key)
            operation.outcome, operation.completed = event.kind, event.at
            operation.steps = event.steps or operation.steps
            operation.partitions = event.partitions or operation.partitions
    return found


def to_json(operation: Operation) -> str:
    """One line. Sends and polls are told apart by their length."""
    steps = [
        [step.partition, step.value, step.offset] if isinstance(step, Send) else [step.partition, step.records]
        for step in operation.steps
    ]
    head = [operation.process, operation.action.value, operation.outcome.value, operation.invoked, operation.completed]
    return json.dumps([*head, steps, operation.partitions, operation.fresh], separators=(",", ":"))


def from_json(line: str) -> Operation:
    process, action, outcome, invoked, completed, steps, partitions, fresh = json.loads(line)
    return Operation(
        process=process,
        action=Action(action),
        outcome=Kind(outcome),
        steps=tuple(_step(step) for step in steps),
        partitions=tuple(partitions),
        fresh=fresh,
        invoked=invoked,
        completed=completed,
    )


def _step(fields: list[object]) -> Step:
    if len(fields) == 3:
        return Send(*fields)  # type: ignore[arg-type]
    partition, records = fields
    assert isinstance(partition, str) and isinstance(records, list)
    return Poll(partition, tuple((offset, value) for offset, value in records))
