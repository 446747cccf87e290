"""Bugs planted into replication and the controller, each of which the simulated cluster must show."""

from typing import Any

from ottla.broker.handlers import k00_produce
from ottla.controller import registration
from ottla.model.errors import Errors
from ottla.replication import leader as leader_rules
from ottla.replication.directory_move import DirectoryMove, Do, Next
from ottla.replication.follower import PartitionFollower
from ottla.replication.leader import PartitionLeader
from ottla.storage.log import Log
from ottla.storage.producer_state import ProducerStates
from ottla.testing.sim.planted import Planted, Replacement


def _commits_alone() -> list[Replacement]:
    def advance(self: PartitionLeader, now: int) -> bool:
        moved = self.own_end > self.high_watermark
        self.high_watermark = max(self.high_watermark, self.own_end)
        return moved

    return [(PartitionLeader, "_advance", advance)]


def _shrinks_before_it_is_agreed() -> list[Replacement]:
    whole = PartitionLeader.shrink

    def shrink(self: PartitionLeader, leader_end: int, now: int) -> bool:
        wanted = whole(self, leader_end, now)
        if wanted and self.pending is not None:
            self.isr = self.maximal_isr = self.pending.isr
            self._advance(now)
        return wanted

    return [
        (PartitionLeader, "shrink", shrink),
        (PartitionLeader, "effective_min_isr", property(lambda _: 1)),
    ]


def _changes_directories_too_early() -> list[Replacement]:
    def next_of(self: DirectoryMove, current: Any, future: Any) -> Next:
        return Next(Do.SWAP)

    return [(DirectoryMove, "next", next_of), (Log, "succeed", lambda self, other: None)]


def _never_truncates() -> list[Replacement]:
    def answered(self: PartitionFollower, asked: Any, log: Any, now: int, pause: int, **said: int) -> Any:
        said["diverging_epoch"] = said["diverging_end"] = -1
        return whole(self, asked, log, now, pause, **said)

    whole = PartitionFollower.answered
    return [(PartitionFollower, "answered", answered)]


def _leader_sees_no_divergence() -> list[Replacement]:
    from ottla.broker.handlers import k01_fetch  # noqa: PLC0415  it is patched where it is used

    replacements: list[Replacement] = [(leader_rules, "check_position", lambda *_: None)]
    if "check_position" in k01_fetch.__dict__:
        replacements.append((k01_fetch, "check_position", lambda *_: None))
    return replacements


def _answers_after_it_lost() -> list[Replacement]:
    return [(k00_produce, "_outcome", lambda partition, *, committed: Errors.NONE)]


def _forgets_sequences() -> list[Replacement]:
    return [(ProducerStates, "check_client", lambda *_, **__: None)]


def _end_goes_back() -> list[Replacement]:
    return [(PartitionLeader, "is_settled", property(lambda _: True))]


def _crash_is_taken_for_clean() -> list[Replacement]:
    return [(registration, "after_shutdown", lambda *_, **__: [])]


BUGS = (
    Planted("commits-alone", "the high watermark follows the leader's own log", _commits_alone),
    Planted("shrinks-at-once", "a smaller ISR counts before the controller agreed", _shrinks_before_it_is_agreed),
    Planted("never-truncates", "a follower keeps what its leader does not have", _never_truncates),
    Planted("moves-too-early", "a copy takes the log's place before it is whole", _changes_directories_too_early),
    Planted("sees-no-divergence", "a leader does not compare epochs", _leader_sees_no_divergence),
    Planted("answers-after-it-lost", "acknowledges what it may have lost", _answers_after_it_lost),
    Planted("forgets-sequences", "a batch that is sent again is appended again", _forgets_sequences),
    Planted("end-goes-back", "tells the end of the log before it is settled", _end_goes_back),
    Planted("crash-is-clean", "a crashed broker stays in sync on paper", _crash_is_taken_for_clean),
)
