"""Bugs planted into the cores, each of which the simulation must catch: one that catches nothing proves nothing.

Every bug is one that a system of this kind has had, or is the absence of one rule. A bug is a set of replacements that
last as long as its `with` block.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ottla.model.errors import Errors
from ottla.raft import changes, core, follower, leader, voters, voting
from ottla.raft.core import Quorum
from ottla.raft.exchange import EpochEnd, FetchRequest, InstallSnapshot
from ottla.raft.roles import Follower, Leader, Prospective, Unattached

Replacement = tuple[Any, str, Any]
"""Owner, attribute, what to put there."""


class Planted(NamedTuple):
    name: str
    what: str
    replacements: Callable[[], list[Replacement]]

    @contextmanager
    def planted(self) -> Iterator[None]:
        undo = []
        for owner, name, value in self.replacements():
            if isinstance(owner, dict):
                undo.append((owner, name, owner[name]))
                owner[name] = value
            else:
                undo.append((owner, name, owner.__dict__[name]))
                setattr(owner, name, value)
        try:
            yield
        finally:
            for owner, name, value in reversed(undo):
                if isinstance(owner, dict):
                    owner[name] = value
                else:
                    setattr(owner, name, value)


def _votes_stay_in_memory() -> list[Replacement]:
    return [(Quorum, "persist", lambda self: None)]


def _votes_forgotten_by_a_restart() -> list[Replacement]:
    first = Quorum._first_role

    def forgetful(self: Quorum, election: Any, now: int) -> Any:
        return first(self, election._replace(voted_id=-1, leader_id=-1), now)

    return [(Quorum, "_first_role", forgetful)]


def _epoch_forgotten_by_a_restart() -> list[Replacement]:
    first = Quorum._first_role

    def forgetful(self: Quorum, election: Any, now: int) -> Any:
        return first(self, type(election)(self.log.last_epoch), now)

    return [(Quorum, "_first_role", forgetful)]


def _leads_on_after_a_restart() -> list[Replacement]:
    first = Quorum._first_role

    def stubborn(self: Quorum, election: Any, now: int) -> Any:
        if election.leader_id == self.local.id and election.epoch >= self.log.last_epoch:
            role = Leader(election.epoch, self.log.end_offset, now + leader.check_period(self))
            leader.follow_voters(self, role)
            return role
        return first(self, election, now)

    return [(Quorum, "_first_role", stubborn)]


def _votes_twice() -> list[Replacement]:
    grants = voting._grants

    def generous(quorum: Quorum, request: Any) -> bool:
        role: Any = quorum.role
        if isinstance(role, Unattached) and not request.pre_vote:
            role.voted = None
        return grants(quorum, request)

    return [(voting, "_grants", generous)]


def _any_log_is_good_enough() -> list[Replacement]:
    return [(Quorum, "is_up_to_date", lambda self, last_epoch, last_offset: True)]


def _longer_log_wins() -> list[Replacement]:
    """The Raft paper's 5.4.1 without epochs."""
    return [(Quorum, "is_up_to_date", lambda self, last_epoch, last_offset: last_offset >= self.log.end_offset)]


def _no_pre_vote() -> list[Replacement]:
    stand = voting.stand

    def rash(quorum: Quorum, now: int) -> None:
        stand(quorum, now)
        if isinstance(quorum.role, Prospective):
            quorum._out.clear()
            voting._become_candidate(quorum, now)

    return [(voting, "stand", rash)]


def _half_is_a_majority() -> list[Replacement]:
    return [(voters.VoterSet, "majority", property(lambda self: max(1, len(self.voters) // 2)))]


def _fetches_before_its_disk_has_it() -> list[Replacement]:
    def is_busy(quorum: Quorum, role: Follower) -> bool:
        return role.download is not None and role.download[1] < 0

    return [(follower, "_is_busy", is_busy)]


def _leader_counts_what_it_has_not_flushed() -> list[Replacement]:
    changed = leader.log_changed

    def eager(quorum: Quorum, role: Leader, now: int) -> None:
        changed(quorum, role, now)
        own = role.replicas.get(quorum.local.id)
        if own is not None and quorum.role is role:
            own.end_offset = quorum.log.end_offset
            leader.move_high_watermark(quorum, role, now)

    return [(leader, "log_changed", eager)]


def _commits_old_epochs_by_count() -> list[Replacement]:
    def by_count(quorum: Quorum, role: Leader, now: int) -> None:
        ends = [r.end_offset for r in role.replicas.values() if r.end_offset >= 0]
        committed = voters.committed_by(ends, len(role.replicas))
        if committed > quorum.high_watermark:
            quorum.advance(committed)
            leader._wake(quorum, role)
            changes.committed(quorum, role, now)

    return [(leader, "move_high_watermark", by_count)]


def _observers_count() -> list[Replacement]:
    move = leader.move_high_watermark

    def with_observers(quorum: Quorum, role: Leader, now: int) -> None:
        everyone = [*role.replicas.values(), *role.observers.values()]
        ends = [r.end_offset for r in everyone if r.end_offset >= 0]
        committed = voters.committed_by(ends, len(role.replicas))
        if committed > role.start_offset and committed > quorum.high_watermark and role.observers:
            quorum.advance(committed)
        move(quorum, role, now)

    return [(leader, "move_high_watermark", with_observers)]


def _one_copy_is_enough() -> list[Replacement]:
    return [(leader, "committed_by", lambda ends, count: max(ends, default=-1))]


def _stale_fetches_are_served() -> list[Replacement]:
    def lenient(quorum: Quorum, epoch: int) -> Errors:
        return Errors.NONE if isinstance(quorum.role, Leader) else Errors.NOT_LEADER_OR_FOLLOWER

    return [(leader, "_refusal", lenient)]


def _divergence_is_not_noticed() -> list[Replacement]:
    place = leader.where

    def blind(quorum: Quorum, request: FetchRequest) -> Any:
        found = place(quorum, request)
        fits = quorum.log.start_offset <= request.offset <= quorum.log.end_offset
        return None if isinstance(found, EpochEnd) and fits else found

    return [(leader, "where", blind)]


def _truncates_too_far() -> list[Replacement]:
    def deep(quorum: Quorum, diverging: EpochEnd) -> int:
        return max(quorum.log.start_offset, min(diverging.offset, quorum.log.end_offset) - 3)

    return [(follower, "truncation", deep)]


def _watermark_before_truncation() -> list[Replacement]:
    """KAFKA-14704."""
    response_of = follower.fetch_response

    def hasty(quorum: Quorum, sender: int, request: Any, response: Any, now: int) -> None:
        role = quorum.role
        if isinstance(role, Follower) and role.in_flight is request and response is not None and response.diverging:
            quorum.advance(min(response.high_watermark, quorum.log.end_offset))
        response_of(quorum, sender, request, response, now)

    return [(core._RESPONSES, FetchRequest, hasty), (follower, "forbid_truncation", lambda quorum, offset: None)]  # type: ignore[list-item]


def _watermark_past_the_log() -> list[Replacement]:
    def hasty(quorum: Quorum, role: Follower, now: int) -> None:
        if role.known_high_watermark > quorum.high_watermark:
            quorum.advance(role.known_high_watermark)
        follower.fetch(quorum, role, now)

    return [(follower, "log_changed", hasty)]


def _two_changes_of_the_voters() -> list[Replacement]:
    def lenient(quorum: Quorum, now: int) -> Any:
        if not isinstance(quorum.role, Leader):
            return Errors.NOT_LEADER_OR_FOLLOWER, None
        quorum.role.change = None
        return None

    return [(changes, "_refusal", lenient)]


def _a_new_disk_is_the_old_voter() -> list[Replacement]:
    """A controller comes back with an empty disk and votes as if it had all it ever acknowledged."""
    return [
        (voters.VoterSet, "has", lambda self, member: self.find(member.id) is not None),
        (Quorum, "is_meant", lambda self, member: True),
    ]


def _never_doubts_its_majority() -> list[Replacement]:
    return [(leader, "check_period", lambda quorum: 1 << 40)]


def _loads_any_snapshot() -> list[Replacement]:
    def eager(quorum: Quorum, role: Follower, snapshot: Any, now: int) -> None:
        role.download = None
        role.known_high_watermark = max(role.known_high_watermark, snapshot.offset)
        quorum.emit(InstallSnapshot(snapshot))

    return [(follower, "snapshot_stored", eager)]


BUGS: tuple[Planted, ...] = (
    Planted("votes-stay-in-memory", "a vote is given before it is on the disk", _votes_stay_in_memory),
    Planted("votes-forgotten", "a restart forgets whom it voted for", _votes_forgotten_by_a_restart),
    Planted("epoch-forgotten", "a restart forgets the epoch", _epoch_forgotten_by_a_restart),
    Planted("leads-on", "a restarted leader takes its old epoch up again", _leads_on_after_a_restart),
    Planted("votes-twice", "a vote in an epoch does not exclude another", _votes_twice),
    Planted("any-log-wins", "votes without a look at the candidate's log", _any_log_is_good_enough),
    Planted("longer-log-wins", "compares logs by length, not by epoch", _longer_log_wins),
    Planted("no-pre-vote", "stands for election without asking first", _no_pre_vote),
    Planted("half-is-majority", "half of the voters elect", _half_is_a_majority),
    Planted(
        "fetch-before-fsync", "a follower asks for more before its disk has the last", _fetches_before_its_disk_has_it
    ),
    Planted(
        "leader-unflushed", "the leader counts its own log before its fsync", _leader_counts_what_it_has_not_flushed
    ),
    Planted("old-epoch-commit", "records of earlier epochs are committed by count", _commits_old_epochs_by_count),
    Planted("observers-count", "observers move the high watermark", _observers_count),
    Planted("one-copy", "the leader's own copy commits", _one_copy_is_enough),
    Planted("stale-fetch", "fetches of other epochs are served", _stale_fetches_are_served),
    Planted("no-divergence", "a log that parts from the leader's is appended to", _divergence_is_not_noticed),
    Planted("truncates-too-far", "truncation below the high watermark", _truncates_too_far),
    Planted("watermark-first", "the high watermark moves before the truncation", _watermark_before_truncation),
    Planted("watermark-past-log", "a follower's high watermark passes its log", _watermark_past_the_log),
    Planted("two-changes", "voters change while a change is not committed", _two_changes_of_the_voters),
    Planted("new-disk-votes", "a replaced disk votes as the old one", _a_new_disk_is_the_old_voter),
    Planted("no-check-quorum", "a leader without a majority stays", _never_doubts_its_majority),
    Planted("any-snapshot", "a snapshot older than the log is loaded", _loads_any_snapshot),
)
