"""The follower's rules: what to ask, where to cut, what to believe."""

import pytest

from ottla.model.errors import Errors
from ottla.replication.fetch_session import AskingSession, Question
from ottla.replication.follower import (
    APPEND,
    ASK_RANGE,
    FIRST_PAUSE_MS,
    NOTHING,
    STOP,
    Ask,
    Do,
    PartitionFollower,
    Step,
)
from tests.rules.replication.cluster import MemoryLog

LONGEST = 1_000


def log_of(*epochs: int, start: int = 0) -> MemoryLog:
    log = MemoryLog()
    log.log_start_offset = start
    log.records = [(epoch, at) for at, epoch in enumerate(epochs)]
    return log


def following(high_watermark: int = 0) -> PartitionFollower:
    return PartitionFollower(2, 6, 9, high_watermark)


def test_it_asks_from_its_end_with_the_epoch_of_its_last_record() -> None:
    assert following().ask(log_of(1, 1, 3, start=5)) == Ask(6, 8, 3, 5)


@pytest.mark.parametrize(
    ("epochs", "leaders_epoch", "leaders_end", "cut"),
    [
        ((1, 1, 3, 3), 3, 3, 3),  # the same epoch ends earlier there
        ((1, 1, 3, 3), 1, 3, 2),  # our epoch 3 is unknown there; epoch 1 ends at 2 here
        ((1, 1, 3, 3), 1, 1, 1),
        ((1, 1, 4, 4), 3, 9, 2),  # we do not know its epoch 3: back to the end of our epoch 1, then ask again (KIP-279)
        ((4, 4), 3, 1, 0),  # older than anything we know
    ],
)
def test_it_cuts_back_to_where_the_logs_may_agree(
    epochs: tuple[int, ...], leaders_epoch: int, leaders_end: int, cut: int
) -> None:
    follower, log = following(), log_of(*epochs)
    step = follower.answered(
        follower.ask(log), log, 0, LONGEST, diverging_epoch=leaders_epoch, diverging_end=leaders_end
    )
    assert step == Step(Do.TRUNCATE, cut)


def test_an_answer_to_another_question_is_ignored() -> None:
    follower, log = following(), log_of(1, 1)
    asked = follower.ask(log)
    assert follower.answered(asked, log, 0, LONGEST) == APPEND
    log.records.append((2, 9))
    assert follower.answered(asked, log, 0, LONGEST) == NOTHING  # the end has moved
    log.records[1:] = [(5, 8)]
    assert follower.answered(asked, log, 0, LONGEST) == NOTHING  # the same end, but other records
    log.records[1:] = [(1, 1)]
    follower.updated(3, 7, 10)
    assert follower.answered(asked, log, 0, LONGEST) == NOTHING  # another leader


def test_the_high_watermark_is_at_most_its_own_end_and_does_not_retreat() -> None:
    follower, log = following(1), log_of(1, 1, 1)
    assert (follower.caught(9, log), follower.high_watermark) == (True, 3)
    assert (follower.caught(2, log), follower.high_watermark) == (False, 3)


def test_cutting_committed_records_off_is_noticed() -> None:
    follower, log = following(2), log_of(1, 1, 1)
    log.truncate(2)
    assert (follower.truncated(log), follower.high_watermark) == (False, 2)
    log.truncate(1)
    assert (follower.truncated(log), follower.high_watermark) == (True, 1)


def test_out_of_range_it_asks_where_the_leaders_log_begins_and_ends() -> None:
    follower, log = following(2), log_of(1, 1, 1)
    asked = follower.ask(log)
    assert follower.answered(asked, log, 0, LONGEST, error=Errors.OFFSET_OUT_OF_RANGE) == ASK_RANGE
    assert follower.range_known(asked, 0, 2, log) == Step(Do.TRUNCATE, 2)
    assert follower.range_known(asked, 7, 9, log) == Step(Do.RESTART, 7)
    assert follower.range_known(asked, 1, 9, log) == NOTHING
    log.restart(7)
    follower.restarted(log)
    assert follower.high_watermark == 7


def test_a_fenced_follower_waits_for_the_metadata() -> None:
    follower, log = following(), log_of(1)
    assert follower.answered(follower.ask(log), log, 0, LONGEST, error=Errors.FENCED_LEADER_EPOCH) == STOP
    assert follower.answered(follower.ask(log), log, 0, LONGEST) == NOTHING
    assert follower.updated(2, 7, 10) and not follower.is_stopped


def test_other_errors_make_it_pause_longer_and_longer() -> None:
    follower, log = following(), log_of(1)
    pauses = []
    for _ in range(8):
        follower.answered(follower.ask(log), log, 0, LONGEST, error=Errors.NOT_LEADER_OR_FOLLOWER)
        pauses.append(follower.ready_at)
    assert pauses == [FIRST_PAUSE_MS, 40, 80, 160, 320, 640, 1000, 1000]
    follower.answered(follower.ask(log), log, 0, LONGEST)
    follower.answered(follower.ask(log), log, 0, LONGEST, error=Errors.UNKNOWN_LEADER_EPOCH)
    assert follower.ready_at == FIRST_PAUSE_MS


def test_old_metadata_changes_nothing() -> None:
    follower = following()
    assert not follower.updated(3, 5, 8)
    assert not follower.updated(2, 6, 10)
    assert (follower.leader_id, follower.partition_epoch) == (2, 10)


# ---- sessions


def test_a_session_says_only_what_has_changed() -> None:
    session: AskingSession[str] = AskingSession()
    a, b = Ask(1, 0, -1, 0), Ask(1, 5, 1, 0)
    assert session.question([("a", a), ("b", b)], []) == Question(0, 0, [("a", a), ("b", b)], [])
    session.answered(77)
    moved = Ask(1, 3, 1, 0)
    assert session.question([("a", moved), ("b", b)], []) == Question(77, 1, [("a", moved)], [])
    session.answered(77)
    assert session.question([], ["b", "c"]) == Question(77, 2, [], ["b"])
    assert session.told == {"a": moved}


def test_without_a_session_everything_is_said_again() -> None:
    session: AskingSession[str] = AskingSession()
    a = Ask(1, 0, -1, 0)
    session.question([("a", a)], [])
    session.answered(0)
    assert session.is_new and session.question([("a", a)], []) == Question(0, 0, [("a", a)], [])
    session.answered(5)
    session.end()
    assert session.question([("a", a)], []) == Question(0, 0, [("a", a)], [])
