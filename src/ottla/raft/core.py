"""The quorum of the metadata log as a state machine without I/O: events and time in, effects out.

The driver carries effects out in order and completes each before the next: a vote is on the disk before anyone hears of
it, a follower asks for more only when what it has is on its disk, and the leader counts its own log only as far as it
was flushed: counting earlier lost a write of a one-node cluster in etcd#14370. Replication is by pull, as in KRaft
(KIP-595): `leader` answers fetches, `follower` sends them, `voting` has the elections, `changes` the voters that come
and go.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.raft import changes, follower, leader, voting
from ottla.raft.election import NOBODY, ElectionState
from ottla.raft.exchange import (
    ELSEWHERE,
    HEARD,
    AddVoterRequest,
    Advance,
    AppendControl,
    BeginEpochRequest,
    Effect,
    EndEpochRequest,
    Endpoints,
    EpochEnd,
    EpochResponse,
    FetchRequest,
    FetchSnapshotRequest,
    Persist,
    RemoveVoterRequest,
    Reply,
    Request,
    Response,
    Send,
    UpdateVoterRequest,
    VersionsRequest,
    VoteRequest,
)
from ottla.raft.roles import (
    NEVER,
    TRANSITIONS,
    BrokenQuorum,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import NO_DIRECTORY, ReplicaKey, Voter, VoterHistory, VoterSet, voters_record

Draw = Callable[[int, int], int]
"""A number between both, the dice of the quorum."""


class Timing(NamedTuple):
    election_timeout_ms: int = 1_000
    backoff_max_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    grace_ms: int = 100
    """How long a broken connection to the leader may be broken, give or take a half."""
    max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    snapshot_max_bytes: int = 1 << 20
    auto_join: bool = False


class LogView(Protocol):
    """What the core reads of the log. Only effects change it."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed(self) -> int:
        """Everything below is on the disk; -1 until the first flush of this run."""

    @property
    def last_epoch(self) -> int:
        """Of the last record, or of the snapshot if nothing follows it; 0 for an empty log."""

    @property
    def history(self) -> VoterHistory: ...

    @property
    def latest_snapshot(self) -> SnapshotId | None: ...

    @property
    def earliest_snapshot(self) -> SnapshotId | None: ...

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The greatest epoch that is not above the one asked for, and where it ends; epoch 0 for what is older."""

    def snapshot_size(self, snapshot: SnapshotId) -> int | None: ...


class Quorum:
    __slots__ = (
        "_next_bootstrap",
        "_out",
        "_persisted",
        "attempts",
        "bootstrap",
        "can_vote",
        "draw",
        "high_watermark",
        "local",
        "log",
        "role",
        "timing",
    )

    def __init__(
        self,
        local: Voter,
        log: LogView,
        *,
        election: ElectionState,
        draw: Draw,
        now: int,
        timing: Timing | None = None,
        bootstrap: tuple[Endpoints, ...] = (),
        can_vote: bool = True,
    ) -> None:
        """`bootstrap` says where to ask for the leader; `can_vote` is false on a node that is a broker only."""
        self.local = local
        self.log = log
        self.draw = draw
        self.timing = timing or Timing()
        self.bootstrap = bootstrap
        self.can_vote = can_vote
        snapshot = log.latest_snapshot
        self.high_watermark = snapshot.offset if snapshot is not None and snapshot.offset > 0 else -1
        self._out: list[Effect] = []
        self.attempts = 0
        self._next_bootstrap = 0
        self._persisted = election
        self.role: Role = self._first_role(election, now)

    def _first_role(self, election: ElectionState, now: int) -> Role:
        """A former leader or candidate does not take its old epoch up again: records and claims of that epoch may have
        been lost unflushed, and each must stay unique by offset and epoch. So such a start leads to an election."""
        if election.epoch < self.log.last_epoch:
            return Unattached(self.log.last_epoch, self._first_due(now))
        voted = None if election.voted_id == NOBODY else ReplicaKey(election.voted_id, election.voted_directory_id)
        known = self.voters.find(election.leader_id) if election.leader_id != self.local.id else None
        if known is not None and known.endpoints:
            due = now + self.timing.fetch_timeout_ms if self.may_stand else NEVER
            role = Follower(election.epoch, due, known.id, known.endpoints, voted)
            role.update_due = now + self.timing.fetch_timeout_ms
            return role
        # Its own leadership ended with the process. In its epoch it must not vote for anybody else.
        if election.leader_id == self.local.id:
            voted = self.local.key
        leader_id = NOBODY if election.leader_id == self.local.id else election.leader_id
        return Unattached(election.epoch, self._first_due(now), leader_id=leader_id, voted=voted)

    def _first_due(self, now: int) -> int:
        """Alone there is nobody to wait for. With others a start is like a lost connection: PreVote keeps it safe."""
        if not self.may_stand:
            return NEVER
        return now if self.voters.majority == 1 else now + self.grace()

    # What others ask

    @property
    def voters(self) -> VoterSet:
        return self.log.history.voters

    @property
    def is_voter(self) -> bool:
        return self.can_vote and self.log.history.voters.has(self.local.key)

    @property
    def may_stand(self) -> bool:
        """Also a voter that is being removed: until that is committed the old majority may need it (Ongaro's
        dissertation, 4.2.2). Its own vote does not count then."""
        if self.is_voter:
            return True
        history = self.log.history
        return self.can_vote and history.offset >= self.high_watermark and history.before.has(self.local.key)

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        role = self.role
        if type(role) is Leader:
            return self.local.id
        if type(role) is Candidate or type(role) is Resigned:
            return NOBODY
        return role.leader_id

    @property
    def leader_endpoints(self) -> Endpoints:
        role = self.role
        if type(role) is Leader:
            return self.local.endpoints
        return role.endpoints if type(role) is Follower or type(role) is Prospective else ()

    @property
    def is_active(self) -> bool:
        """Leader, with a record of its own epoch committed: what earlier leaders left is settled."""
        role = self.role
        return type(role) is Leader and self.high_watermark > role.start_offset

    def deadline(self) -> int:
        """When `tick` wants to be called."""
        role = self.role
        if type(role) is Follower:
            return follower.deadline(self, role)
        if type(role) is Leader:
            return leader.deadline(self, role)
        if type(role) is Unattached:
            return min(role.due, NEVER if role.in_flight is not None else role.retry_at)
        if type(role) is Resigned:
            return min(role.due, *role.retry_at.values()) if role.retry_at else role.due
        election = role.election
        return min(role.due, *election.retry_at.values()) if election.retry_at else role.due

    def grace(self) -> int:
        """How long to bear with a broken connection: longer each time that the others saw no reason for an election."""
        grace = min(self.timing.grace_ms << min(self.attempts, 10), self.timing.fetch_timeout_ms)
        return self.draw(grace // 2, grace * 3 // 2)

    def leader_lives(self) -> None:
        self.attempts = 0

    # Events

    def tick(self, now: int) -> list[Effect]:
        self.act(now)
        return self._taken()

    def request(self, request: Request, token: object, now: int) -> list[Effect]:
        """Answered by a Reply with this token, now or later."""
        _REQUESTS[type(request)](self, request, token, now)
        return self._taken()

    def response(self, sender: int, request: Request, response: Response | None, now: int) -> list[Effect]:
        """What became of a Send to node `sender`; None if it was not reached."""
        _RESPONSES[type(request)](self, sender, request, response, now)
        return self._taken()

    def log_changed(self, now: int) -> list[Effect]:
        """The log was appended to, truncated, replaced or flushed."""
        role = self.role
        if type(role) is Leader:
            leader.log_changed(self, role, now)
        elif type(role) is Follower:
            follower.log_changed(self, role, now)
        return self._taken()

    def append_refused(self, now: int) -> list[Effect]:
        """What the leader sent was damaged on the way: it is asked for again, but not in a hurry."""
        role = self.role
        if type(role) is Follower:
            role.retry_at = now + self.timing.retry_backoff_ms
        return self._taken()

    def snapshot_stored(self, snapshot: SnapshotId, now: int) -> list[Effect]:
        role = self.role
        if type(role) is Follower:
            follower.snapshot_stored(self, role, snapshot, now)
        return self._taken()

    def resign(self, now: int) -> list[Effect]:
        role = self.role
        if type(role) is Leader:
            self.become_resigned(role, now)
            self.act(now)
        return self._taken()

    def _taken(self) -> list[Effect]:
        out = self._out
        self._out = []
        return out

    # For the neighbours in this room

    def emit(self, effect: Effect) -> None:
        self._out.append(effect)

    def reply(self, token: object, response: Response, *, read_from: int = -1, max_bytes: int = 0) -> None:
        self._out.append(Reply(token, response, read_from, max_bytes))

    def send(self, to: Endpoints, node_id: int, request: Request) -> None:
        self._out.append(Send(to, node_id, request))

    def advance(self, offset: int) -> None:
        if offset > self.high_watermark:
            assert offset <= self.log.end_offset, f"{offset} is committed, but the log ends at {self.log.end_offset}"
            self.high_watermark = offset
            self._out.append(Advance(offset))

    def next_bootstrap(self) -> Endpoints | None:
        """Somebody who may know the leader, another one each time."""
        places = [v.endpoints for v in self.voters.voters if v.id != self.local.id and v.endpoints]
        places += [b for b in self.bootstrap if b not in places and b != self.local.endpoints]
        if not places:
            return None
        self._next_bootstrap += 1
        return places[self._next_bootstrap % len(places)]

    # Time

    def act(self, now: int) -> None:
        """Whatever is due."""
        role = self.role
        if type(role) is Follower:
            if now >= role.due:
                voting.stand(self, now)
            else:
                follower.tick(self, role, now)
        elif type(role) is Leader:
            leader.tick(self, role, now)
        elif type(role) is Unattached:
            if now >= role.due and self.may_stand:
                voting.stand(self, now)
            elif role.in_flight is None and now >= role.retry_at:
                follower.look_for_leader(self, role, now)
        elif type(role) is Resigned:
            if now >= role.due:
                self.become_unattached(role.epoch + 1, now)
            else:
                self._send_resignation(role, now)
        elif now >= role.due:
            voting.election_over(self, role, now)
        else:
            voting.ask_for_votes(self, role, now)

    # What votes hang on

    def is_meant(self, member: ReplicaKey | None) -> bool:
        return member is None or (
            member.id == self.local.id and member.directory_id in (NO_DIRECTORY, self.local.directory_id)
        )

    def is_up_to_date(self, last_epoch: int, last_offset: int) -> bool:
        """Whether a log that ends there has all that ours could have committed."""
        return (last_epoch, last_offset) >= (self.log.last_epoch, self.log.end_offset)

    # Transitions

    def become(self, role: Role) -> None:
        before = self.role
        assert type(role) in TRANSITIONS[type(before)], f"{before} does not become {role}"
        assert role.epoch >= before.epoch, f"{before} would go back to {role}"
        self.role = role

    def persist(self) -> None:
        role = self.role
        voted: ReplicaKey | None = None
        if type(role) is Candidate:
            voted = self.local.key
        elif type(role) is not Leader and type(role) is not Resigned:
            voted = role.voted
        leader_id = self.local.id if type(role) is Resigned else self.leader_id
        state = ElectionState(role.epoch, leader_id, *(voted or _NO_VOTE))
        if state == self._persisted:
            return
        assert state.epoch >= self._persisted.epoch, f"{state} is older than {self._persisted}"
        self._persisted = state
        if self._out and type(self._out[-1]) is Persist:
            self._out[-1] = Persist(state)  # two changes in one step are one write
        else:
            self._out.append(Persist(state))

    def become_unattached(self, epoch: int, now: int) -> None:
        """A later epoch without a known leader."""
        role = self.role
        assert epoch > role.epoch
        if not self.may_stand:
            due = NEVER
        elif type(role) is Follower or type(role) is Leader:
            due = voting.election_due(self, now)
        else:
            due = role.due if role.due != NEVER else voting.election_due(self, now)
        self.unattach(epoch, due)
        self.persist()

    def unattach(self, epoch: int, due: int) -> None:
        role = self.role
        same = epoch == role.epoch
        voted = role.voted if same and isinstance(role, Prospective) else None
        leader_id = role.leader_id if same and isinstance(role, Prospective) else NOBODY
        self.fail_parked()
        self.become(Unattached(epoch, due, leader_id=leader_id, voted=voted))

    def become_follower(self, epoch: int, leader_id: int, endpoints: Endpoints, now: int) -> None:
        role = self.role
        if epoch < role.epoch or leader_id == self.local.id or not endpoints:
            raise BrokenQuorum(f"{role} cannot follow {leader_id} at {endpoints} in epoch {epoch}")
        if epoch == role.epoch and type(role) is Leader:
            raise BrokenQuorum(f"{leader_id} claims to lead epoch {epoch}, which this node leads")
        voted: ReplicaKey | None = None
        if epoch == role.epoch:
            if type(role) is Candidate or type(role) is Resigned:
                voted = self.local.key
            elif type(role) is not Leader:
                voted = role.voted
        self.fail_parked()
        due = now + self.timing.fetch_timeout_ms if self.may_stand else NEVER
        followed = Follower(epoch, due, leader_id, endpoints, voted)
        self.become(followed)
        followed.update_due = now + self.timing.fetch_timeout_ms
        self.persist()
        follower.fetch(self, followed, now)

    def lead(self, candidate: Candidate, now: int) -> None:
        self.attempts = 0
        start = self.log.end_offset
        role = Leader(candidate.epoch, start, now + leader.check_period(self))
        self.become(role)
        leader.follow_voters(self, role)
        self.persist()
        self._out.append(AppendControl(candidate.epoch, self._first_records(candidate)))
        leader.tick(self, role, now)

    def _first_records(self, candidate: Candidate) -> tuple[Message, ...]:
        kind = messages.LeaderChangeMessage
        voters = self.voters
        records: list[Message] = [
            kind(
                version=0,
                leader_id=self.local.id,
                voters=[kind.Voter(voter_id=i) for i in voters.ids],
                granting_voters=[kind.Voter(voter_id=i) for i in sorted(candidate.election.granted)],
            )
        ]
        history = self.log.history
        known = voters.find(self.local.id)
        if history.kraft_version > 0 and known is not None and (history.offset < 0 or known != self.local):
            # The set was never in the log, or this voter has moved to other listeners since.
            records.append(messages.KRaftVersionRecord(version=0, kraft_version=history.kraft_version))
            records.append(voters_record(voters.updated(self.local)))
        return tuple(records)

    def become_resigned(self, role: Leader, now: int) -> None:
        ranked = sorted(role.replicas.values(), key=lambda r: (-r.end_offset, r.key.id))
        successors = tuple(r.key for r in ranked if r.key.id != self.local.id)
        self.fail_parked()
        self.become(Resigned(role.epoch, voting.election_due(self, now), successors, [key.id for key in successors]))

    def _send_resignation(self, role: Resigned, now: int) -> None:
        for voter_id in role.unacked:
            voter = self.voters.find(voter_id)
            if voter is not None and role.retry_at.get(voter_id, 0) <= now:
                # Until it is answered; an answer that never comes is made up for by the election itself.
                role.retry_at[voter_id] = NEVER
                request = EndEpochRequest(role.epoch, self.local.id, self.local.endpoints, role.successors)
                self.send(voter.endpoints, voter_id, request)

    def fail_parked(self) -> None:
        """Whoever waits for the leader that this node was has to look for another one."""
        role = self.role
        if type(role) is Leader:
            leader.abandon(self, role)

    # What a message says about epoch and leader

    def heard(self, response: Response, now: int) -> bool:
        """True if the response has been dealt with: it is old, or it made this node something else."""
        role = self.role
        epoch, leader_id, error = response.epoch, response.leader_id, response.error
        if epoch < role.epoch or error is Errors.UNKNOWN_LEADER_EPOCH:
            return True
        if epoch > role.epoch or error in ELSEWHERE:
            self.follow_news(epoch, leader_id, response.endpoints, now)
            return True
        if leader_id not in (NOBODY, self.local.id) and self.leader_id == NOBODY:
            self.follow_news(epoch, leader_id, response.endpoints, now)
            return True
        return False

    def follow_news(self, epoch: int, leader_id: int, endpoints: Endpoints, now: int) -> None:
        """Somebody says who leads `epoch`, which is not below ours."""
        if leader_id == self.local.id:
            leader_id = NOBODY  # it was so, before a restart
        if not endpoints and leader_id != NOBODY:
            known = self.voters.find(leader_id)
            endpoints = known.endpoints if known is not None else ()
        own = self.leader_id
        if epoch == self.role.epoch and NOBODY not in (own, leader_id) and own != leader_id:
            raise BrokenQuorum(f"epoch {epoch} is said to be led by {leader_id}, and is known to be led by {own}")
        if epoch > self.role.epoch:
            if leader_id != NOBODY and endpoints:
                self.become_follower(epoch, leader_id, endpoints, now)
            else:
                self.become_unattached(epoch, now)
        elif leader_id != NOBODY and endpoints and not self.leader_endpoints and type(self.role) is not Resigned:
            self.become_follower(epoch, leader_id, endpoints, now)

    def _on_begin(self, request: BeginEpochRequest, token: object, now: int) -> None:
        error = self._refusal_of_voter_request(request.epoch, request.leader_id)
        if error is Errors.NONE:
            self.follow_news(request.epoch, request.leader_id, request.endpoints, now)
            role = self.role
            if type(role) is Prospective and role.leader_id == request.leader_id and role.endpoints:
                self.become_follower(role.epoch, role.leader_id, role.endpoints, now)  # it lives
            if not self.is_meant(request.voter):
                error = Errors.INVALID_VOTER_KEY
        self.reply(token, EpochResponse(error, self.role.epoch, self.leader_id, self.leader_endpoints))

    def _on_end(self, request: EndEpochRequest, token: object, now: int) -> None:
        error = self._refusal_of_voter_request(request.epoch, request.leader_id)
        if error is Errors.NONE:
            self.follow_news(request.epoch, request.leader_id, request.endpoints, now)
            role = self.role
            if type(role) is Follower and role.leader_id == request.leader_id and role.epoch == request.epoch:
                follower.leader_resigned(self, role, request.successors, now)
        self.reply(token, EpochResponse(error, self.role.epoch, self.leader_id, self.leader_endpoints))

    def _refusal_of_voter_request(self, epoch: int, leader_id: int) -> Errors:
        if epoch < self.role.epoch:
            return Errors.FENCED_LEADER_EPOCH
        return Errors.INVALID_REQUEST if leader_id < 0 else Errors.NONE

    def _begin_response(
        self, sender: int, request: BeginEpochRequest, response: EpochResponse | None, now: int
    ) -> None:
        if response is not None and response.error in HEARD:
            self.heard(response, now)

    def _end_response(self, sender: int, request: EndEpochRequest, response: EpochResponse | None, now: int) -> None:
        role = self.role
        is_mine = type(role) is Resigned and role.epoch == request.epoch
        if response is None or response.error not in HEARD:
            if is_mine:
                assert isinstance(role, Resigned)
                role.retry_at[sender] = now + self.timing.retry_backoff_ms
            return
        if not self.heard(response, now) and is_mine and response.error is Errors.NONE:
            assert isinstance(role, Resigned)
            role.retry_at.pop(sender, None)
            if sender in role.unacked:
                role.unacked.remove(sender)


_NO_VOTE = ReplicaKey(NOBODY)

_REQUESTS: dict[type, Callable[[Quorum, Any, object, int], None]] = {
    FetchRequest: leader.on_fetch,
    VoteRequest: voting.asked,
    BeginEpochRequest: Quorum._on_begin,
    EndEpochRequest: Quorum._on_end,
    FetchSnapshotRequest: leader.on_fetch_snapshot,
    AddVoterRequest: changes.on_add,
    RemoveVoterRequest: changes.on_remove,
    UpdateVoterRequest: changes.on_update,
}
_RESPONSES: dict[type, Callable[[Quorum, int, Any, Any, int], None]] = {
    FetchRequest: follower.fetch_response,
    VoteRequest: voting.answered,
    BeginEpochRequest: Quorum._begin_response,
    EndEpochRequest: Quorum._end_response,
    FetchSnapshotRequest: follower.snapshot_response,
    AddVoterRequest: follower.change_response,
    RemoveVoterRequest: follower.change_response,
    UpdateVoterRequest: follower.change_response,
    VersionsRequest: changes.versions_response,
}
