"""One member of a quorum on the simulation's log: what it does to its log happens at once, the rest is there to see."""

from typing import Any, TypeVar

from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Uuid
from ottla.protocol import messages
from ottla.raft.core import Quorum, Timing
from ottla.raft.election import ElectionState
from ottla.raft.exchange import (
    Append,
    AppendControl,
    Effect,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    InstallSnapshot,
    Reply,
    Request,
    Response,
    Send,
    Truncate,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet, voters_of
from ottla.testing.sim.raft_log import SimLog, SimSnapshot

E = TypeVar("E")
TIMING = Timing()
FAR = 10_000_000


def directory(node_id: int, disk: int = 0) -> Uuid:
    return Uuid((node_id * 100 + disk + 1).to_bytes(16, "big"))


def key(node_id: int, disk: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id, disk))


def place(node_id: int) -> tuple[VoterEndpoint, ...]:
    return (VoterEndpoint("CONTROLLER", "host", 9000 + node_id),)


def a_voter(node_id: int, disk: int = 0) -> Voter:
    return Voter(node_id, directory(node_id, disk), place(node_id))


def the_voters(*ids: int, dynamic: bool = False) -> VoterSet:
    return VoterSet(tuple(a_voter(i) if dynamic else Voter(i, ZERO_UUID, place(i)) for i in ids))


class Member:
    """Time is passed in; the dice always fall on the lowest number."""

    def __init__(
        self,
        node_id: int = 1,
        voters: tuple[int, ...] = (1, 2, 3),
        *,
        dynamic: bool = False,
        election: ElectionState | None = None,
        epochs: tuple[int, ...] = (),
        timing: Timing = TIMING,
        disk: int = 0,
        can_vote: bool = True,
        now: int = 0,
    ) -> None:
        """`epochs` are those of the records in its log."""
        self.log = SimLog()
        known = the_voters(*voters, dynamic=dynamic)
        if dynamic:
            self.log.history.restart(-1, known, 1)
        else:
            self.log.history.use_static(known)
        for number, epoch in enumerate(epochs):
            self.log.append(epoch, number + 1)
        self.log.synced(self.log.end_offset, 0)
        self.done: list[Effect] = []
        self.quorum = Quorum(
            a_voter(node_id, disk),
            self.log,
            election=election or ElectionState(),
            draw=lambda low, high: low,
            now=now,
            timing=timing,
            bootstrap=tuple(place(i) for i in voters if i != node_id),
            can_vote=can_vote,
        )

    # Events; each returns the effects it had, those of the log left out

    def tick(self, now: int) -> list[Effect]:
        return self.carry_out(self.quorum.tick(now), now)

    def ask(self, request: Request, now: int = 0, token: object = "t") -> list[Effect]:
        return self.carry_out(self.quorum.request(request, token, now), now)

    def hear(self, sender: int, request: Request, response: Response | None, now: int = 0) -> list[Effect]:
        return self.carry_out(self.quorum.response(sender, request, response, now), now)

    def flush(self, now: int = 0) -> list[Effect]:
        self.log.synced(self.log.end_offset, self.log.generation)
        return self.carry_out(self.quorum.log_changed(now), now)

    def append(self, value: int, now: int = 0) -> list[Effect]:
        """As the leader's own controller does; not flushed."""
        self.log.append(self.quorum.epoch, value)
        return self.carry_out(self.quorum.log_changed(now), now)

    def carry_out(self, effects: list[Effect], now: int) -> list[Effect]:
        seen: list[Effect] = []
        for effect in effects:
            if isinstance(effect, AppendControl):
                voters = [voters_of(r) for r in effect.records if isinstance(r, messages.VotersRecord)]
                self.log.append(effect.epoch, voters[0] if voters else 0)
            elif isinstance(effect, Append):
                records: Any = effect.records
                for entry in records[1]:
                    self.log.put(entry)
            elif isinstance(effect, Truncate):
                self.log.truncate_to(effect.offset)
            elif isinstance(effect, InstallSnapshot):
                self.log.install(SimSnapshot(effect.id, 0, None, 0))
            seen.append(effect)
            if isinstance(effect, AppendControl | Append | Truncate | InstallSnapshot):
                seen += self.carry_out(self.quorum.log_changed(now), now)
        self.done += seen
        return seen

    # Shortcuts

    def lead(self, now: int = 1000) -> "Member":
        """Elected by everybody, its first record flushed but nothing committed."""
        asked = requests(self.tick(now))
        while asked:
            voter, request = asked.pop(0)
            if isinstance(request, VoteRequest):
                asked += requests(self.hear(voter, request, granted(request.epoch), now))
        self.flush(now)
        return self

    def follow(self, leader_id: int = 2, epoch: int = 1, now: int = 0) -> "Member":
        self.carry_out(_followed(self.quorum, leader_id, epoch, now), now)
        return self

    @property
    def fetch(self) -> FetchRequest:
        """The fetch that waits for its answer."""
        role: Any = self.quorum.role
        assert isinstance(role.in_flight, FetchRequest), role.in_flight
        return role.in_flight

    def fetched(self, response: FetchResponse, now: int = 0) -> list[Effect]:
        return self.hear(response.leader_id, self.fetch, response, now)


def _followed(quorum: Quorum, leader_id: int, epoch: int, now: int) -> list[Effect]:
    quorum.become_follower(epoch, leader_id, place(leader_id), now)
    return quorum._taken()


def of(kind: type[E], effects: list[Effect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def answers(effects: list[Effect]) -> list[Response]:
    return [effect.response for effect in of(Reply, effects)]


def answer(effects: list[Effect]) -> Any:
    (only,) = answers(effects)
    return only


def requests(effects: list[Effect]) -> list[tuple[int, Request]]:
    return [(effect.node_id, effect.request) for effect in of(Send, effects)]


def from_leader(
    member: Member,
    values: tuple[int, ...] = (),
    *,
    epoch: int = 1,
    leader_id: int = 2,
    high_watermark: int = -1,
    **more: Any,
) -> FetchResponse:
    """What a leader with the same log and these records after it answers."""
    other = SimLog()
    other.base_hash = member.log.prefix_hash(member.log.end_offset)
    other.start_offset = other.end_offset = member.log.end_offset
    for value in values:
        other.append(epoch, value)
    records = other.read(other.start_offset, 100) if values else None
    return FetchResponse(Errors.NONE, epoch, leader_id, place(leader_id), high_watermark, 0, records=records, **more)


def a_fetch(
    replica: int | ReplicaKey,
    offset: int,
    *,
    epoch: int = 1,
    last_epoch: int | None = None,
    high_watermark: int = FAR,
    max_wait_ms: int = 500,
) -> FetchRequest:
    member = replica if isinstance(replica, ReplicaKey) else key(replica)
    last = epoch if last_epoch is None else last_epoch
    return FetchRequest(member, epoch, offset, last, high_watermark, max_wait_ms, 1000)


def a_vote_request(
    candidate: int = 2,
    epoch: int = 1,
    *,
    last: tuple[int, int] = (0, 0),
    pre_vote: bool = False,
    voter: ReplicaKey | None = None,
    disk: int = 0,
) -> VoteRequest:
    return VoteRequest(epoch, key(candidate, disk), voter, *last, pre_vote)


def granted(epoch: int) -> VoteResponse:
    return VoteResponse(Errors.NONE, epoch, granted=True)


def refused(epoch: int) -> VoteResponse:
    return VoteResponse(Errors.NONE, epoch, granted=False)


def fine(epoch: int) -> EpochResponse:
    return EpochResponse(Errors.NONE, epoch)


def a_snapshot(offset: int, epoch: int) -> SnapshotId:
    return SnapshotId(offset, epoch)
