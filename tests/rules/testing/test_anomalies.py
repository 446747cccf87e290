"""Each anomaly is found where it is, and nowhere else: a checker that finds nothing proves nothing."""

import random
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.testing.checkers import CHECKS, Action, Kind, Operation, Poll, Promises, Send, judge

P, Q = "load-0", "load-1"
_CLOCK = count()


def sent(
    process: int,
    *places: tuple[int, int | None],
    outcome: Kind = Kind.OK,
    partition: str = P,
) -> Operation:
    """Sends of (value, offset)."""
    steps = tuple(Send(partition, value, offset) for value, offset in places)
    return Operation(process, Action.SEND, outcome, steps, invoked=next(_CLOCK))


def polled(process: int, *records: tuple[int, int], partition: str = P, moved: tuple[str, ...] = ()) -> Operation:
    """A poll of (value, offset)."""
    poll = Poll(partition, tuple((offset, value) for value, offset in records))
    return Operation(process, Action.POLL, Kind.OK, (poll,), moved, invoked=next(_CLOCK))


def txn(process: int, *steps: Send | Poll, outcome: Kind = Kind.OK) -> Operation:
    return Operation(process, Action.TXN, outcome, steps, invoked=next(_CLOCK))


def assigned(process: int, *partitions: str, action: Action = Action.ASSIGN, fresh: bool = False) -> Operation:
    return Operation(process, action, Kind.OK, (), partitions, fresh, invoked=next(_CLOCK))


def illegal(*history: Operation, promises: Promises | None = None) -> dict[str, list[tuple[int, ...]]]:
    """The values of each anomaly, by check."""
    found = judge(history, promises).illegal
    return {name: [anomaly.values for anomaly in anomalies] for name, anomalies in found.items()}


def legal(*history: Operation, promises: Promises | None = None) -> list[str]:
    return sorted(judge(history, promises).legal)


def test_an_ordinary_history_passes() -> None:
    verdict = judge([sent(1, (10, 0)), sent(1, (11, 1)), polled(2, (10, 0)), polled(2, (11, 1))])
    assert (verdict.valid, verdict.legal, verdict.acknowledged, verdict.read) == (True, {}, 2, 2)
    assert str(verdict) == "nothing illegal among 2 acknowledged records"


def test_the_empty_history_passes() -> None:
    assert judge([]).valid


class TestPlaces:
    def test_two_values_at_one_offset_as_two_readers_saw_it(self) -> None:
        history = [sent(1, (10, None)), sent(2, (11, None)), polled(3, (10, 0)), polled(4, (11, 0))]
        assert illegal(*history) == {"inconsistent-offsets": [(10, 11)]}

    def test_two_values_at_one_offset_as_writer_and_reader_saw_it(self) -> None:
        found = illegal(sent(1, (10, 0)), sent(2, (11, None)), polled(3, (11, 0), (10, 1)))
        assert found["inconsistent-offsets"] == [(11, 10)]

    def test_the_same_offset_in_two_partitions_is_no_matter(self) -> None:
        assert (
            illegal(
                sent(1, (10, 0)), sent(1, (10, 0), partition=Q), polled(2, (10, 0)), polled(2, (10, 0), partition=Q)
            )
            == {}
        )

    def test_offsets_need_not_be_dense(self) -> None:
        assert illegal(sent(1, (10, 0), (11, 5)), polled(2, (10, 0), (11, 5))) == {}

    def test_one_value_at_two_offsets(self) -> None:
        history = [sent(1, (10, 0)), polled(2, (10, 0)), polled(3, (10, 4))]
        assert illegal(*history) == {"duplicate": [(10,)]}
        without = Promises(idempotent=False)
        assert illegal(*history, promises=without) == {}
        assert legal(*history, promises=without) == ["duplicate"]

    def test_a_value_that_nobody_sent(self) -> None:
        assert illegal(polled(1, (66, 0))) == {"unwritten-read": [(66,)]}


class TestWrites:
    def test_an_acknowledged_value_below_what_was_read(self) -> None:
        history = [sent(1, (10, 0)), sent(1, (11, 1)), sent(1, (12, 2)), polled(2, (10, 0)), polled(3, (12, 2))]
        assert illegal(*history) == {"lost-write": [(11,)], "unseen": [(11,)]}
        assert illegal(*history, promises=Promises(acks_all=False)) == {}
        assert legal(*history, promises=Promises(acks_all=False)) == ["lost-write", "unseen"]

    def test_an_acknowledged_value_above_all_that_was_read_is_unseen_not_lost(self) -> None:
        assert illegal(sent(1, (10, 0)), sent(1, (11, 1)), polled(2, (10, 0))) == {"unseen": [(11,)]}

    def test_an_acknowledged_value_of_unknown_offset_is_unseen(self) -> None:
        assert illegal(sent(1, (10, None)), polled(2)) == {"unseen": [(10,)]}

    def test_a_value_of_unknown_fate_may_be_missing_or_there(self) -> None:
        missing = sent(1, (10, None), outcome=Kind.INFO)
        there = sent(1, (11, None), outcome=Kind.INFO)
        assert illegal(missing, there, sent(1, (12, 1)), polled(2, (11, 0), (12, 1))) == {}

    def test_a_transaction_of_unknown_end_has_committed_if_one_of_its_values_was_read(self) -> None:
        unknown = txn(1, Send(P, 10, 0), Send(P, 11, 1), outcome=Kind.INFO)
        assert illegal(unknown, sent(2, (12, 3)), polled(3, (12, 3))) == {}
        assert illegal(unknown, sent(2, (12, 3)), polled(3, (10, 0)), polled(4, (12, 3))) == {
            "lost-write": [(11,)],
            "unseen": [(11,)],
        }

    def test_a_failed_value_may_not_be_read(self) -> None:
        failed = sent(1, (10, None), outcome=Kind.FAIL)
        assert illegal(failed, polled(2, (10, 0))) == {"aborted-read": [(10,)]}
        assert legal(failed, polled(2, (10, 0)), promises=Promises(read_committed=False)) == ["aborted-read"]

    def test_a_value_of_an_aborted_transaction_may_not_be_read(self) -> None:
        aborted = txn(1, Send(P, 10, 0), Send(Q, 11, 0), outcome=Kind.FAIL)
        assert illegal(aborted, polled(2, (11, 0), partition=Q)) == {"aborted-read": [(11,)]}

    def test_a_transaction_may_not_read_its_own_value(self) -> None:
        own = txn(1, Send(P, 10, 0), Poll(P, ((0, 10),)))
        assert illegal(own) == {"precommitted-read": [(10,)]}

    def test_one_operations_sends_keep_their_order(self) -> None:
        history = [sent(1, (10, 1), (11, 0)), polled(2, (11, 0), (10, 1))]
        assert illegal(*history) == {"int-nonmonotonic-send": [(10, 11)]}
        assert legal(*history, promises=Promises(idempotent=False)) == ["int-nonmonotonic-send"]

    def test_one_processs_sends_keep_their_order(self) -> None:
        history = [sent(1, (10, 1)), sent(1, (11, 0)), polled(2, (11, 0), (10, 1))]
        assert illegal(*history) == {"nonmonotonic-send": [(10, 11)]}

    def test_sends_of_unknown_place_are_stepped_over_when_order_is_compared(self) -> None:
        history = [
            sent(1, (10, 1)),
            sent(1, (12, None), outcome=Kind.INFO),
            sent(1, (11, 0)),
            polled(2, (11, 0), (10, 1)),
        ]
        assert illegal(*history) == {"nonmonotonic-send": [(10, 11)]}

    def test_two_processes_sends_may_come_in_any_order(self) -> None:
        assert illegal(sent(1, (10, 1)), sent(2, (11, 0)), polled(3, (11, 0), (10, 1))) == {}

    def test_writes_between_those_of_a_transaction_are_always_legal(self) -> None:
        history = [txn(1, Send(P, 10, 0), Send(P, 12, 2)), sent(2, (11, 1)), polled(3, (10, 0), (11, 1), (12, 2))]
        assert illegal(*history) == {}
        assert legal(*history) == ["int-send-skip"]


class TestReads:
    WRITES = (sent(1, (10, 0)), sent(1, (11, 1)), sent(1, (12, 2)))
    SEEN = polled(9, (10, 0), (11, 1), (12, 2))

    def test_a_gap_in_one_poll(self) -> None:
        assert illegal(*self.WRITES, self.SEEN, polled(2, (10, 0), (12, 2))) == {"int-poll-skip": [(10, 11, 12)]}

    def test_a_gap_in_one_poll_is_illegal_for_subscribers_too_unless_the_partition_moved(self) -> None:
        subscribed = Promises(subscribed=True)
        assert illegal(*self.WRITES, self.SEEN, polled(2, (10, 0), (12, 2)), promises=subscribed) == {
            "int-poll-skip": [(10, 11, 12)]
        }
        moved = polled(2, (10, 0), (12, 2), moved=(P,))
        assert illegal(*self.WRITES, self.SEEN, moved, promises=subscribed) == {}

    @pytest.mark.parametrize("records", [((11, 1), (10, 0)), ((10, 0), (10, 0))])
    def test_a_poll_that_goes_back_or_repeats(self, records: tuple[tuple[int, int], ...]) -> None:
        values = tuple(value for value, _ in records)
        assert illegal(*self.WRITES, self.SEEN, polled(2, *records)) == {"int-nonmonotonic-poll": [values]}

    def test_a_gap_between_polls(self) -> None:
        history = [*self.WRITES, self.SEEN, polled(2, (10, 0)), polled(2, (12, 2))]
        assert illegal(*history) == {"poll-skip": [(10, 11, 12)]}
        assert legal(*history, promises=Promises(subscribed=True)) == ["poll-skip"]

    def test_a_poll_before_the_last_one(self) -> None:
        history = [*self.WRITES, self.SEEN, polled(2, (10, 0), (11, 1)), polled(2, (10, 0))]
        assert illegal(*history) == {"nonmonotonic-poll": [(11, 10)]}
        assert legal(*history, promises=Promises(subscribed=True)) == ["nonmonotonic-poll"]

    def test_an_assignment_keeps_the_place_in_partitions_it_keeps(self) -> None:
        first, again = polled(2, (10, 0), (11, 1)), polled(2, (10, 0))
        kept = assigned(2, P, Q)
        kept.invoked, again.invoked = next(_CLOCK), next(_CLOCK)
        assert illegal(*self.WRITES, self.SEEN, first, kept, again) == {"nonmonotonic-poll": [(11, 10)]}

    @pytest.mark.parametrize("change", [assigned(2, Q), assigned(2, P, fresh=True)])
    def test_an_assignment_elsewhere_or_a_seek_starts_afresh(self, change: Operation) -> None:
        first, change.invoked, again = polled(2, (10, 0), (11, 1)), next(_CLOCK), polled(2, (10, 0))
        assert illegal(*self.WRITES, self.SEEN, first, change, again) == {}

    def test_an_aborted_transaction_gives_its_place_back(self) -> None:
        aborted = txn(2, Poll(P, ((0, 10), (1, 11))), outcome=Kind.FAIL)
        again = txn(2, Poll(P, ((0, 10), (1, 11))))
        assert illegal(*self.WRITES, self.SEEN, aborted, again) == {}

    def test_what_was_acknowledged_and_read_by_none_is_also_a_gap(self) -> None:
        found = illegal(*self.WRITES, polled(2, (10, 0), (12, 2)))
        assert found == {"int-poll-skip": [(10, 11, 12)], "lost-write": [(11,)], "unseen": [(11,)]}


class TestCycles:
    def test_two_transactions_that_read_each_other(self) -> None:
        first = txn(1, Send(P, 10, 0), Poll(Q, ((0, 11),)))
        second = txn(2, Send(Q, 11, 0), Poll(P, ((0, 10),)))
        assert illegal(first, second) == {"g1c": [(10, 11)]}
        assert legal(first, second, promises=Promises(read_committed=False)) == ["g1c"]

    def test_a_circle_of_three_beside_transactions_that_are_in_none(self) -> None:
        history = [txn(i, Send(P, 10 + i, i), Poll(P, (((i + 1) % 3, 10 + (i + 1) % 3),))) for i in range(3)]
        outside = txn(8, Send(Q, 20, 0), Poll(P, ((0, 10),)))
        assert illegal(*history, outside, polled(9, (20, 0), partition=Q))["g1c"] == [(10, 11, 12)]

    def test_a_chain_is_no_circle(self) -> None:
        history = [txn(1, Send(P, 0, 0))]
        history += [txn(1 + i, Poll(P, ((i - 1, i - 1),)), Send(P, i, i)) for i in range(1, 3000)]
        assert illegal(*history, polled(9999, (2999, 2999))) == {}

    def test_a_circle_that_needs_the_order_of_writes_is_legal(self) -> None:
        """T1 before T2 in one partition, T2 before T1 in the other: G0, which Kafka allows."""
        history = [txn(1, Send(P, 10, 0), Send(Q, 11, 1)), txn(2, Send(P, 12, 1), Send(Q, 13, 0))]
        seen = [polled(3, (10, 0), (12, 1)), polled(3, (13, 0), (11, 1), partition=Q)]
        assert illegal(*history, *seen) == {}


def test_every_check_has_its_own_name() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def honest(seed: int) -> list[Operation]:
    """A random history of an honest log: sends and transactions of every end are appended, readers read."""
    dice, history, clock = random.Random(seed), [], count()
    log: list[tuple[int, int, bool]] = []  # offset, value, visible
    readers = [0, 0, 0]
    for value in range(dice.randrange(1, 60)):
        action, process = dice.choice([Action.SEND, Action.TXN]), dice.randrange(3)
        outcome = dice.choice([Kind.OK, Kind.OK, Kind.FAIL, Kind.INFO])
        visible = outcome is Kind.OK or (outcome is Kind.INFO and dice.random() < 0.5)
        offset = len(log) + value  # gaps, as markers leave them
        if visible or action is Action.TXN:
            log.append((offset, value, visible))
        known = offset if outcome is Kind.OK or action is Action.TXN else None
        history.append(Operation(process, action, outcome, (Send(P, value, known),), invoked=next(clock)))
        reader = dice.randrange(len(readers))
        history.append(_reading(log, readers, reader, dice.randrange(8), next(clock)))
    return history + [_reading(log, readers, reader, len(log), next(clock)) for reader in range(len(readers))]


def _reading(log: list[tuple[int, int, bool]], readers: list[int], reader: int, size: int, now: int) -> Operation:
    start = readers[reader]
    readers[reader] = end = min(start + size, len(log))
    records = tuple((offset, value) for offset, value, visible in log[start:end] if visible)
    return Operation(10 + reader, Action.POLL, Kind.OK, (Poll(P, records),), invoked=now)


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_an_honest_log_is_never_accused(seed: int) -> None:
    assert illegal(*honest(seed)) == {}


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_record_taken_out_of_an_honest_log_is_missed(seed: int) -> None:
    history = honest(seed)
    acknowledged = [send.value for op in history if op.outcome is Kind.OK for send in op.sends()]
    if not acknowledged:
        return
    gone = random.Random(seed).choice(acknowledged)
    for operation in history:
        operation.steps = tuple(
            Poll(step.partition, tuple(record for record in step.records if record[1] != gone))
            if isinstance(step, Poll)
            else step
            for step in operation.steps
        )
    assert illegal(*history)["unseen"] == [(gone,)]
