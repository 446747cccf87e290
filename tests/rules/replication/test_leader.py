"""The leader's rules: high watermark, in-sync replicas, epochs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metadata.image import BrokerRegistration, PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId, Uuid
from ottla.replication.leader import (
    HIGH_WATERMARK_MOVED,
    ISR_CHANGE_WANTED,
    LOG_START_MOVED,
    NOTHING_MOVED,
    Brokers,
    Diverging,
    IsrChange,
    PartitionLeader,
    check_position,
    end_of_epoch,
)
from tests.rules.replication.cluster import MemoryLog
from tests.support.examples import examples

LAG = 1_000
ID = Uuid(bytes(16))


def broker(id_: int, epoch: int = 5, *, fenced: bool = False, leaving: bool = False) -> BrokerRegistration:
    return BrokerRegistration(id_, epoch, ID, (), {}, None, fenced, leaving, (), ())


def placed(
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
    leader_epoch: int = 4,
    partition_epoch: int = 7,
) -> PartitionImage:
    return PartitionImage(replicas, (ID,) * len(replicas), isr, (), (), (), (), 1, 0, leader_epoch, partition_epoch)


def leading(
    where: PartitionImage | None = None, *, end: int = 10, high_watermark: int = 10, min_isr: int = 1, now: int = 0
) -> PartitionLeader:
    brokers = Brokers({id_: broker(id_) for id_ in (1, 2, 3)})
    return PartitionLeader(
        BrokerId(1),
        where or placed(),
        brokers,
        min_isr=min_isr,
        max_lag_ms=LAG,
        high_watermark=high_watermark,
        log_end_offset=end,
        now=now,
    )


def brokers_of(leader: PartitionLeader) -> Brokers:
    return leader._brokers


def test_who_the_controller_puts_out_of_sync_holds_nothing_up_though_it_was_in_sync_just_now() -> None:
    """As by the failure of its log directory, which its broker outlives."""
    leader = leading(end=20, high_watermark=20)
    for follower in (2, 3):
        leader.fetched(follower, 20, 0, 5, 20, 1)
    leader.appended(20, 2)
    leader.log_end_moved(30, 2)
    leader.fetched(2, 30, 0, 5, 30, 3)
    assert leader.updated(placed((1, 2), partition_epoch=8), 30, 4)
    assert leader.high_watermark == 30


# ---- without room


def test_a_leader_stands_down_for_those_in_sync_that_have_everything() -> None:
    leader = leading(end=20, min_isr=2)
    leader.fetched(2, 20, 0, 5, 20, 1)
    leader.fetched(3, 19, 0, 5, 20, 1)
    assert not leader.stand_down(20)
    leader.fetched(3, 20, 0, 5, 20, 2)
    assert leader.stand_down(20)
    assert leader.pending == IsrChange((2, 3), (5, 5), 4, 7)
    assert not leader.stand_down(20)  # it is asked for already


def test_a_leader_does_not_stand_down_for_too_few() -> None:
    for isr, min_isr in (((1,), 1), ((1, 2), 2)):
        leader = leading(placed(isr), end=20, min_isr=min_isr)
        leader.fetched(2, 20, 0, 5, 20, 1)
        leader.pending = None  # 2 may have wanted to join
        assert not leader.stand_down(20)


def test_a_leader_that_kafkas_controller_keeps_goes_on() -> None:
    leader = leading(end=20)
    for follower in (2, 3):
        leader.fetched(follower, 20, 0, 5, 20, 1)
    assert leader.stand_down(20)
    change = leader.pending
    assert change is not None
    assert not leader.refused(change, Errors.INVALID_REQUEST)
    assert (leader.pending, leader.isr, leader.maximal_isr) == (None, (1, 2, 3), (1, 2, 3))


def test_a_follower_without_room_leaves_the_isr_at_once_and_holds_nothing_up() -> None:
    leader = leading(end=20, high_watermark=20)
    for follower in (2, 3):
        leader.fetched(follower, 20, 0, 5, 20, 1)
    assert leader.fetched(3, 20, 0, 5, 20, 2, takes_records=False) == ISR_CHANGE_WANTED
    change = leader.pending
    assert change == IsrChange((1, 2), (-1, 5), 4, 7)

    leader.appended(20, 3)
    leader.log_end_moved(30, 3)
    leader.fetched(2, 30, 0, 5, 30, 4)
    assert leader.high_watermark == 20  # until the controller has agreed, 3 counts
    assert leader.agreed(change, 4, 8, (1, 2), 5)
    assert leader.high_watermark == 30  # though 3 was caught up a moment ago

    assert leader.fetched(3, 20, 0, 5, 30, 6, takes_records=False) == NOTHING_MOVED
    assert leader.fetched(3, 30, 0, 5, 30, 7) == ISR_CHANGE_WANTED
    assert leader.pending is not None and leader.pending.isr == (1, 2, 3)


# ---- the high watermark


def test_a_leader_alone_commits_by_itself() -> None:
    leader = leading(placed((1,), (1,)), min_isr=3)
    assert (leader.log_end_moved(12), leader.high_watermark) == (True, 12)


def test_the_high_watermark_is_the_least_end_over_the_isr() -> None:
    leader = leading()
    leader.log_end_moved(20, 1)
    assert leader.fetched(2, 18, 0, 5, 20, 2) == LOG_START_MOVED
    assert leader.fetched(3, 15, 0, 5, 20, 3) == HIGH_WATERMARK_MOVED | LOG_START_MOVED
    assert leader.high_watermark == 15


def test_a_follower_not_heard_of_yet_keeps_the_high_watermark_where_it_was() -> None:
    leader = leading(high_watermark=4)
    leader.log_end_moved(20, 1)
    leader.fetched(2, 20, 0, 5, 20, 2)
    assert leader.high_watermark == 4


def test_a_follower_out_of_sync_does_not_hold_it_back() -> None:
    leader = leading(placed((1, 2)))
    leader.log_end_moved(20, 5_000)
    leader.fetched(3, 2, 0, 5, 20, 5_000)
    assert (leader.fetched(2, 20, 0, 5, 20, 5_001) & HIGH_WATERMARK_MOVED, leader.high_watermark) == (1, 20)


def test_it_waits_for_a_caught_up_replica_that_may_join() -> None:
    leader = leading(placed((1,)), end=20, high_watermark=20)
    brokers_of(leader).registered = {1: broker(1), 2: broker(2), 3: broker(3)}
    leader.pending = IsrChange((), (), 0, 0)  # another change is under way, so 2 is not proposed
    leader.fetched(2, 20, 0, 5, 20, 100)
    leader.log_end_moved(25, 101)
    assert leader.high_watermark == 20
    leader.log_end_moved(26, 101 + LAG)
    assert leader.high_watermark == 26  # it has lagged for too long since


def test_below_min_isr_nothing_is_committed() -> None:
    leader = leading(placed((1,)), min_isr=2)
    assert (leader.under_min_isr, leader.log_end_moved(30, 10), leader.high_watermark) == (True, False, 10)
    assert leader.reconfigure(1, LAG, 11)
    assert (leader.under_min_isr, leader.high_watermark) == (False, 30)


@pytest.mark.parametrize(
    ("min_isr", "before", "after", "is_at"),
    [
        (1, Errors.NONE, Errors.NONE, False),
        (2, Errors.NONE, Errors.NONE, True),
        (3, Errors.NOT_ENOUGH_REPLICAS, Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, False),
    ],
)
def test_what_all_in_sync_must_hold_is_refused_where_these_are_fewer_than_min_isr(
    min_isr: int, before: Errors, after: Errors, is_at: bool
) -> None:
    leader = leading(placed((1, 2)), min_isr=min_isr)
    assert (leader.refusal, leader.refusal_after_append, leader.is_at_min_isr) == (before, after, is_at)


def test_one_that_is_about_to_join_counts_for_what_is_written_but_not_for_what_comes() -> None:
    leader = leading(placed((1,)), min_isr=2)
    leader.maximal_isr = (1, 2)
    assert (leader.refusal, leader.refusal_after_append) == (Errors.NOT_ENOUGH_REPLICAS, Errors.NONE)


def test_min_isr_counts_at_most_the_replicas_there_are() -> None:
    assert leading(placed((1, 2), (1, 2)), min_isr=3).effective_min_isr == 2


def test_a_new_leader_is_settled_when_the_high_watermark_reaches_the_start_of_its_epoch() -> None:
    leader = leading(end=20, high_watermark=12)
    assert not leader.is_settled
    leader.fetched(2, 20, 0, 5, 20, 1)
    leader.fetched(3, 20, 0, 5, 20, 1)
    assert leader.is_settled


# ---- joining and leaving the ISR


def test_a_follower_joins_at_the_high_watermark_and_the_start_of_the_epoch() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=12)
    assert not leader.fetched(3, 15, 0, 5, 20, 1) & ISR_CHANGE_WANTED  # above the high watermark, below the epoch
    assert leader.fetched(3, 20, 0, 5, 20, 2) & ISR_CHANGE_WANTED
    assert leader.pending == IsrChange((1, 2, 3), (-1, -1, 5), 4, 7)
    assert (leader.isr, leader.maximal_isr) == ((1, 2), (1, 2, 3))


def test_who_is_fenced_or_leaving_or_of_another_run_does_not_join() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    for registered in (broker(3, fenced=True), broker(3, leaving=True), broker(3, epoch=6), broker(3, epoch=4)):
        brokers_of(leader).registered = {3: registered}
        assert not leader.fetched(3, 20, 0, 5, 20, 1) & ISR_CHANGE_WANTED
    brokers_of(leader).registered = {3: broker(3)}
    assert leader.fetched(3, 20, 0, 5, 20, 2) & ISR_CHANGE_WANTED


def test_one_proposal_at_a_time() -> None:
    leader = leading(placed((1,)), end=20, high_watermark=20)
    assert leader.fetched(2, 20, 0, 5, 20, 1) & ISR_CHANGE_WANTED
    first = leader.pending
    assert not leader.fetched(3, 20, 0, 5, 20, 1) & ISR_CHANGE_WANTED
    assert leader.pending is first and not leader.shrink(20, 100 * LAG)


def test_a_laggard_leaves_only_when_the_controller_agrees() -> None:
    leader = leading(end=10)
    leader.fetched(2, 10, 0, 5, 10, 0)
    leader.log_end_moved(20, 1)
    leader.fetched(2, 20, 0, 5, 20, 1 + LAG)
    assert not leader.shrink(20, LAG)
    assert leader.shrink(20, LAG + 1)  # 3 was last in sync at 0
    change = leader.pending
    assert change == IsrChange((1, 2), (-1, 5), 4, 7)
    assert (leader.maximal_isr, leader.high_watermark) == ((1, 2, 3), 10)
    assert leader.agreed(change, 4, 8, (1, 2), LAG + 2)
    assert (leader.isr, leader.maximal_isr, leader.partition_epoch, leader.high_watermark) == ((1, 2), (1, 2), 8, 20)


def test_a_follower_that_has_all_there_was_at_its_last_fetch_is_in_sync() -> None:
    leader = leading(end=10)
    for now in range(0, 5 * LAG, 100):
        end = 10 + now
        leader.log_end_moved(end, now)
        for replica in (2, 3):
            leader.fetched(replica, end - 100 if now else 10, 0, 5, end, now)
    assert not leader.shrink(5 * LAG, 5 * LAG)


def test_an_ineligible_replica_is_taken_back() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    leader.fetched(3, 20, 0, 5, 20, 1)
    change = leader.pending
    assert change is not None and not leader.refused(change, Errors.INELIGIBLE_REPLICA)
    assert (leader.pending, leader.maximal_isr) == (None, (1, 2))


@pytest.mark.parametrize(
    ("registered", "later"), [(broker(3, fenced=True), 0), (broker(3), LAG)], ids=["fenced", "silent for too long"]
)
def test_a_follower_that_was_about_to_join_and_may_not_any_more_holds_nothing_up(
    registered: BrokerRegistration, later: int
) -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    for follower in (2, 3):
        leader.fetched(follower, 20, 0, 5, 20, 1)
    leader.appended(20, 2)
    leader.log_end_moved(30, 2)
    leader.fetched(2, 30, 0, 5, 30, 3)
    assert leader.pending is not None
    leader.refused(leader.pending, Errors.INELIGIBLE_REPLICA)
    assert (leader.looked_at_again(3), leader.high_watermark) == (False, 20)  # it may ask again, and has no more
    brokers_of(leader).registered = {3: registered}
    assert (leader.looked_at_again(4 + later), leader.high_watermark) == (True, 30)


def test_when_only_the_metadata_can_tell_a_proposal_stays_pending() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    leader.fetched(3, 20, 0, 5, 20, 1)
    change = leader.pending
    assert change is not None
    assert not leader.refused(change, Errors.INVALID_UPDATE_VERSION)
    assert leader.pending is change
    leader.updated(placed((1, 2), partition_epoch=8), 20, 2)
    assert leader.maximal_isr == (1, 2)
    assert not leader.refused(change, Errors.UNKNOWN_SERVER_ERROR)  # an answer to a proposal of before


def test_errors_that_pass_are_worth_a_repetition() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    leader.fetched(3, 20, 0, 5, 20, 1)
    assert leader.pending is not None and leader.refused(leader.pending, Errors.UNKNOWN_SERVER_ERROR)


def test_metadata_heard_before_does_not_drop_a_proposal() -> None:
    leader = leading(placed((1,)), end=20, high_watermark=20)
    leader.fetched(2, 20, 0, 5, 20, 1)
    assert leader.pending is not None
    leader.agreed(leader.pending, 4, 8, (1, 2), 2)
    leader.fetched(3, 20, 0, 5, 20, 3)
    change = leader.pending
    leader.updated(placed((1, 2), partition_epoch=8), 20, 4)  # the metadata of what was agreed arrives late
    assert leader.pending is change and leader.maximal_isr == (1, 2, 3)


def test_an_answer_of_another_epoch_settles_nothing() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    leader.fetched(3, 20, 0, 5, 20, 1)
    change = leader.pending
    assert change is not None
    leader.agreed(change, 5, 9, (1, 2, 3), 2)
    leader.agreed(change, 4, 6, (1, 2, 3), 2)
    assert (leader.pending, leader.isr) == (change, (1, 2))


# ---- epochs


def test_in_a_new_epoch_those_out_of_sync_count_only_after_a_fetch() -> None:
    leader = leading(placed((1, 2)), end=20, high_watermark=20)
    leader.fetched(2, 20, 0, 5, 20, 1)
    leader.fetched(3, 20, 0, 5, 20, 1)
    leader.updated(placed((1, 2), leader_epoch=5, partition_epoch=8), 20, 2)
    assert (leader.leader_epoch, leader.epoch_start_offset, leader.pending) == (5, 20, None)
    leader.log_end_moved(30, 3)
    assert leader.fetched(2, 30, 0, 5, 30, 4) & HIGH_WATERMARK_MOVED


def test_a_replica_that_the_leader_does_not_know_is_told_to_come_again() -> None:
    leader = leading(placed((1, 2), (1, 2)))
    assert leader.refuses(3, 5, 4) == Errors.UNKNOWN_LEADER_EPOCH
    assert leader.refuses(3, 5, -1) == Errors.NOT_LEADER_OR_FOLLOWER
    assert leader.refuses(2, 5, 4) == Errors.NONE


def test_a_fetch_of_an_earlier_run_of_a_broker_is_refused() -> None:
    leader = leading()
    assert leader.refuses(2, 4, 4) == Errors.NOT_LEADER_OR_FOLLOWER
    assert leader.refuses(2, -1, 4) == Errors.NONE


def test_the_low_watermark_is_that_of_the_living() -> None:
    leader = leading()
    leader.fetched(2, 10, 3, 5, 10, 1)
    leader.fetched(3, 10, 1, 5, 10, 1)
    assert leader.low_watermark(7) == 1
    brokers_of(leader).registered = {2: broker(2), 3: broker(3, fenced=True)}
    assert leader.low_watermark(7) == 3


def log_of(*epochs: int, start: int = 0) -> MemoryLog:
    log = MemoryLog()
    log.log_start_offset = start
    log.records = [(epoch, at) for at, epoch in enumerate(epochs)]
    return log


def test_the_end_of_an_epoch_that_left_no_record() -> None:
    log = log_of(1, 1, 3, 3)
    assert end_of_epoch(log, 6, 6) == (6, 4)  # our own, which begins with the election
    assert end_of_epoch(log, 6, 5) == (3, 4)
    assert end_of_epoch(log, 6, 3) == (3, 4)
    assert end_of_epoch(log, 6, 2) == (1, 2)
    assert end_of_epoch(log, 6, 0) == (0, 0)
    assert end_of_epoch(log, 6, 7) == (-1, -1)
    assert end_of_epoch(log_of(), 6, 5) == (5, 0)


def test_a_position_is_checked_before_anything_is_read() -> None:
    log = log_of(1, 1, 3, 3, start=10)
    assert check_position(log, 6, 14, 3) is None
    assert check_position(log, 6, 13, 2) == Diverging(1, 12)
    assert check_position(log, 6, 15, 3) == Diverging(3, 14)
    assert check_position(log, 6, 9, 1) == Errors.OFFSET_OUT_OF_RANGE
    assert check_position(log, 6, 14, 8) == Errors.OFFSET_OUT_OF_RANGE


# ---- in general


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 5)),
            st.tuples(st.sampled_from([2, 3]), st.integers(0, 12)),
            st.tuples(st.just("agree"), st.integers(0, 1)),
            st.tuples(st.just("shrink"), st.integers(0, 2 * LAG)),
        ),
        max_size=60,
    ),
    st.integers(1, 3),
)
def test_the_high_watermark_never_retreats_and_never_passes_the_isr(
    events: list[tuple[str | int, int]], min_isr: int
) -> None:
    leader = leading(end=0, high_watermark=0, min_isr=min_isr)
    now = end = 0
    ends = {2: 0, 3: 0}
    for kind, amount in events:
        before, now = leader.high_watermark, now + 10
        if kind == "append":
            end += amount
            leader.log_end_moved(end, now)
        elif kind == "agree" and leader.pending is not None:
            change = leader.pending
            if amount:
                leader.agreed(change, 4, leader.partition_epoch + 1, change.isr, now)
            else:
                leader.refused(change, Errors.INELIGIBLE_REPLICA)
        elif kind == "shrink":
            now += amount
            leader.shrink(end, now)
        elif isinstance(kind, int):
            ends[kind] = min(end, ends[kind] + amount)
            leader.fetched(kind, ends[kind], 0, 5, end, now)
        held = [ends[one] for one in leader.maximal_isr if one != 1]
        assert leader.high_watermark >= before
        if leader.high_watermark > before:
            assert len(leader.isr) >= min_isr and leader.high_watermark <= min([end, *held])


def test_nothing_moves_when_a_follower_asks_again_for_the_same() -> None:
    leader = leading()
    leader.fetched(2, 10, 0, 5, 10, 1)
    assert leader.fetched(2, 10, 0, 5, 10, 2) == NOTHING_MOVED
