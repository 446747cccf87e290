"""Leaders and followers together, under loss, delay, crashes and late metadata; and the mistakes this would find."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.metadata.image import PartitionImage
from ottla.replication import follower, leader
from ottla.replication.follower import Ask, FollowerLog, PartitionFollower
from ottla.replication.leader import Brokers, FollowerState, PartitionLeader
from tests.rules.replication import cluster as sim
from tests.rules.replication.cluster import Cluster, Unsafe

SEEDS = 30
EVENTS = 1_200
BOUND = 120
"""A planted mistake is found within so many seeds, or the simulation is too weak."""


def run(seed: int, size: int, min_isr: int, unclean: bool = False) -> Cluster:
    cluster = Cluster(seed, size, min_isr, unclean)
    for _ in range(EVENTS):
        cluster.step()
    cluster.heal()
    return cluster


@pytest.mark.parametrize(("size", "min_isr"), [(3, 2), (3, 1), (2, 1), (4, 3)])
def test_nothing_committed_is_lost_or_changed_and_all_replicas_agree_in_the_end(size: int, min_isr: int) -> None:
    counts: dict[str, int] = {}
    for seed in range(SEEDS):
        for what, times in run(seed, size, min_isr).counts.items():
            counts[what] = counts.get(what, 0) + times
    seen = {what: counts.get(what, 0) >= 5 for what in ("acks", "crashes", "truncations", "isr changes", "divergences")}
    assert all(seen.values()), counts


def test_replicas_agree_again_after_elections_of_replicas_out_of_sync() -> None:
    for seed in range(SEEDS):
        run(seed, 3, 1, unclean=True)


# ---- planted mistakes


def shrink_counts_before_the_controller_agreed(patch: pytest.MonkeyPatch) -> None:
    right = PartitionLeader.shrink

    def wrong(self: PartitionLeader, leader_end: int, now: int) -> bool:
        proposed = right(self, leader_end, now)
        if proposed and self.pending is not None:
            self.maximal_isr = self.pending.isr
            self._advance(now)
        return proposed

    patch.setattr(PartitionLeader, "shrink", wrong)


def a_proposed_replica_does_not_count_before_the_controller_agreed(patch: pytest.MonkeyPatch) -> None:
    right = PartitionLeader.fetched

    def wrong(self: PartitionLeader, *args: Any) -> int:
        before = self.isr
        moved = right(self, *args)
        self.maximal_isr = before
        return moved

    patch.setattr(PartitionLeader, "fetched", wrong)
    patch.setattr(FollowerState, "is_caught_up", lambda self, end, now, lag: self.log_end_offset >= end)


def a_replica_joins_below_the_start_of_the_epoch(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionLeader, follower: FollowerState) -> bool:
        joins = self._brokers.may_join(follower.id, follower.broker_epoch)
        return follower.log_end_offset >= self.high_watermark and joins

    patch.setattr(PartitionLeader, "_is_in_sync", wrong)


def a_replica_joins_below_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionLeader, follower: FollowerState) -> bool:
        return self._brokers.may_join(follower.id, follower.broker_epoch)

    patch.setattr(PartitionLeader, "_is_in_sync", wrong)


def the_fetches_of_a_broker_before_it_crashed_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Brokers, "is_stale", lambda self, broker_id, epoch: False)
    patch.setattr(Brokers, "may_join", lambda self, broker_id, epoch: True)
    right = PartitionLeader._propose

    def wrong(self: PartitionLeader, isr: tuple[int, ...]) -> None:
        right(self, isr)
        assert self.pending is not None
        self.pending = self.pending._replace(broker_epochs=(-1,) * len(isr))

    patch.setattr(PartitionLeader, "_propose", wrong)


def a_diverging_follower_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sim, "check_position", lambda *_: None)


def fetches_of_another_epoch_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLeader, "check_epoch", lambda self, epoch: 0)
    patch.setattr(sim, "check_position", lambda *_: None)


def the_leaders_end_is_taken_for_an_epoch_that_the_follower_does_not_know(patch: pytest.MonkeyPatch) -> None:
    def wrong(epoch: int, end_offset: int, log: FollowerLog) -> int:
        return min(end_offset, log.log_end_offset)

    patch.setattr(follower, "common_end", wrong)
    patch.setattr(leader, "end_of_epoch", _end_without_later_epochs)


def _end_without_later_epochs(log: FollowerLog, leader_epoch: int, asked: int) -> tuple[int, int]:
    """KIP-101 alone: the end of the asked epoch, without saying which epoch that is."""
    epoch, end = right_end(log, leader_epoch, asked)
    return (asked, end) if end < log.log_end_offset else (epoch, end)


right_end = leader.end_of_epoch


def a_follower_cuts_back_to_its_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-101."""
    right = Cluster.follow

    def wrong(self: Cluster, broker: sim.Broker, placed: PartitionImage) -> None:
        right(self, broker, placed)
        broker.log.truncate(broker.high_watermark)

    patch.setattr(Cluster, "follow", wrong)


def late_answers_are_told_by_their_offset_alone(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionFollower, asked: Ask, log: FollowerLog) -> bool:
        return asked.fetch_offset == log.log_end_offset

    patch.setattr(PartitionFollower, "_is_current", wrong)


def late_answers_are_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionFollower, "_is_current", lambda self, asked, log: asked.fetch_offset <= log.log_end_offset)


def the_high_watermark_moves_with_the_leaders(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionFollower, high_watermark: int, log: FollowerLog) -> bool:
        self.high_watermark = high_watermark
        return True

    patch.setattr(PartitionFollower, "caught", wrong)


def the_high_watermark_is_that_of_the_fastest(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionLeader, now: int) -> bool:
        ends = [f.log_end_offset for f in self.followers.values() if f.id in self.isr]
        self.high_watermark = max(self.high_watermark, *ends, 0) if ends else self.own_end
        return True

    patch.setattr(PartitionLeader, "_advance", wrong)


@pytest.mark.parametrize(
    "plant",
    [
        shrink_counts_before_the_controller_agreed,
        a_proposed_replica_does_not_count_before_the_controller_agreed,
        a_replica_joins_below_the_start_of_the_epoch,
        a_replica_joins_below_the_high_watermark,
        the_fetches_of_a_broker_before_it_crashed_count,
        a_diverging_follower_counts,
        fetches_of_another_epoch_count,
        the_leaders_end_is_taken_for_an_epoch_that_the_follower_does_not_know,
        a_follower_cuts_back_to_its_high_watermark,
        late_answers_are_told_by_their_offset_alone,
        late_answers_are_taken,
        the_high_watermark_moves_with_the_leaders,
        the_high_watermark_is_that_of_the_fastest,
    ],
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Unsafe):
        for seed in range(BOUND):
            run(seed, 2 + seed % 3, 1 + seed % 2)
