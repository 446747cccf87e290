"""A history is written line by line and comes back as it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.testing.checkers import Action, Event, Kind, Operation, Poll, Send, from_json, operations, to_json


def fields(operation: Operation) -> tuple[object, ...]:
    return tuple(getattr(operation, name) for name in Operation.__slots__)


def test_an_end_completes_its_invocation() -> None:
    events = [
        Event(Kind.INVOKE, 1, Action.SEND, 0, at=10, steps=(Send("p", 7),)),
        Event(Kind.INVOKE, 1, Action.SEND, 1, at=11, steps=(Send("p", 8),)),
        Event(Kind.OK, 1, Action.SEND, 1, at=12, steps=(Send("p", 8, 0),)),
        Event(Kind.FAIL, 1, Action.SEND, 0, at=13),
    ]
    assert [fields(operation) for operation in operations(events)] == [
        fields(Operation(1, Action.SEND, Kind.FAIL, (Send("p", 7),), invoked=10, completed=13)),
        fields(Operation(1, Action.SEND, Kind.OK, (Send("p", 8, 0),), invoked=11, completed=12)),
    ]


def test_what_never_ended_is_unknown() -> None:
    (operation,) = operations([Event(Kind.INVOKE, 1, Action.TXN, 0, at=10, steps=(Send("p", 7),))])
    assert (operation.outcome, operation.completed) == (Kind.INFO, None)


def test_a_number_is_invoked_once_at_a_time() -> None:
    event = Event(Kind.INVOKE, 1, Action.POLL, 0, at=10)
    with pytest.raises(AssertionError):
        operations([event, event])


numbers = st.integers(0, 1 << 62)
partitions = st.sampled_from(["a-0", "a-1"])
steps = st.one_of(
    st.builds(Send, partitions, numbers, st.none() | numbers),
    st.builds(Poll, partitions, st.lists(st.tuples(numbers, numbers)).map(tuple)),
)


@settings(deadline=None)
@given(
    st.builds(
        Operation,
        process=numbers,
        action=st.sampled_from(Action),
        outcome=st.sampled_from([Kind.OK, Kind.FAIL, Kind.INFO]),
        steps=st.lists(steps).map(tuple),
        partitions=st.lists(partitions).map(tuple),
        fresh=st.booleans(),
        invoked=numbers,
        completed=st.none() | numbers,
    )
)
def test_a_line_comes_back_as_the_operation_it_was(operation: Operation) -> None:
    assert fields(from_json(to_json(operation))) == fields(operation)
