"""The quorum of the metadata log as a state machine without I/O: events and time in, effects out.

The driver carries effects out in order and completes each before the next: a vote is on the disk before anyone hears of
it, an epoch begins with its leader's record, and the leader counts its own log only as far as it was flushed: counting
earlier lost a write of a one-node cluster in etcd#14370. States have the shape of Kafka's QuorumState; a quorum of one
goes Unattached -> Candidate -> Leader in a single step.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.ids import Millis
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.raft.election import NOBODY, ElectionState
from ottla.raft.voters import Voter, VoterSet, committed_by, voters_record


class Persist(NamedTuple):
    """Write the quorum-state file and make it durable."""

    state: ElectionState


class AppendControl(NamedTuple):
    """Append one control batch of these records at the end of the log."""

    epoch: int
    records: tuple[Message, ...]


class RequestVotes(NamedTuple):
    """Ask the other voters; comes with the issue that adds them."""

    epoch: int
    voters: tuple[int, ...]


class Advance(NamedTuple):
    """The high watermark has risen to `offset`: everything below it is committed."""

    offset: int


Effect = Persist | AppendControl | RequestVotes | Advance


class Flushed(NamedTuple):
    """The local log is on the disk up to `end_offset`."""

    end_offset: int


class EpochStarted(NamedTuple):
    """The control batch of a new epoch was appended; the log ended at `start_offset` before it."""

    start_offset: int


Event = Flushed | EpochStarted


@dataclass(slots=True)
class Unattached:
    epoch: int
    election_due: Millis


@dataclass(slots=True)
class Candidate:
    epoch: int
    votes: dict[int, bool]


@dataclass(slots=True)
class Leader:
    epoch: int
    start_offset: int = -1
    end_offsets: dict[int, int] = field(default_factory=dict)
    """What each voter has on its disk, the leader itself included."""


Role = Unattached | Candidate | Leader


@dataclass(slots=True)
class Quorum:
    local: Voter
    voters: VoterSet
    kraft_version: int
    voters_offset: int
    """Where the voters stand in the log; -1 if they never were written to it."""
    role: Role
    high_watermark: int = -1

    @classmethod
    def start(
        cls,
        local: Voter,
        voters: VoterSet,
        *,
        kraft_version: int,
        voters_offset: int,
        election: ElectionState,
        last_log_epoch: int,
        now: Millis,
    ) -> "Quorum":
        """A former leader does not take its old epoch up again: records of that epoch may have been lost unflushed, and
        each must stay unique by offset and epoch. So every start begins with an election."""
        epoch = max(election.epoch, last_log_epoch)
        # Alone there is nobody to wait for; with others a timeout is drawn by the driver and passed in as time.
        return cls(local, voters, kraft_version, voters_offset, Unattached(epoch, now))

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        return self.local.id if isinstance(self.role, Leader) else NOBODY

    def tick(self, now: Millis) -> list[Effect]:
        match self.role:
            case Unattached(epoch, due) if now >= due and self.voters.find(self.local.id) is not None:
                return self._stand_for(epoch + 1)
            case _:
                return []

    def step(self, event: Event) -> list[Effect]:
        match self.role, event:
            case Leader() as leader, EpochStarted(start_offset):
                leader.start_offset = start_offset
                return []
            case Leader() as leader, Flushed(end_offset):
                leader.end_offsets[self.local.id] = end_offset
                return self._advanced(leader)
            case _:
                return []

    def _stand_for(self, epoch: int) -> list[Effect]:
        candidate = Candidate(epoch, {self.local.id: True})
        self.role = candidate
        if sum(candidate.votes.values()) >= self.voters.majority:
            # The own vote decides, so vote and victory are one write.
            return self._lead(candidate)
        others = tuple(i for i in self.voters.ids if i != self.local.id)
        return [Persist(self._voted_for_self(epoch)), RequestVotes(epoch, others)]

    def _voted_for_self(self, epoch: int) -> ElectionState:
        return ElectionState(epoch, NOBODY, self.local.id, self.local.directory_id)

    def _lead(self, candidate: Candidate) -> list[Effect]:
        self.role = Leader(candidate.epoch)
        granted = [i for i in self.voters.ids if candidate.votes.get(i)]
        kind = messages.LeaderChangeMessage
        records: list[Message] = [
            kind(
                version=0,
                leader_id=self.local.id,
                voters=[kind.Voter(voter_id=i) for i in self.voters.ids],
                granting_voters=[kind.Voter(voter_id=i) for i in granted],
            )
        ]
        known = self.voters.find(self.local.id)
        if self.kraft_version > 0 and (self.voters_offset < 0 or known != self.local):
            # The set was never in the log, or this voter has moved to other listeners since.
            self.voters = self.voters.updated(self.local)
            records.append(messages.KRaftVersionRecord(version=0, kraft_version=self.kraft_version))
            records.append(voters_record(self.voters))
        election = ElectionState(candidate.epoch, self.local.id)
        return [Persist(election), AppendControl(candidate.epoch, tuple(records))]

    def _advanced(self, leader: Leader) -> list[Effect]:
        """A majority is not enough: the offset must lie in the leader's own epoch (the Raft paper's figure 8)."""
        ends = [leader.end_offsets[i] for i in self.voters.ids if i in leader.end_offsets]
        committed = committed_by(ends, len(self.voters.voters))
        if committed <= leader.start_offset or committed <= self.high_watermark or leader.start_offset < 0:
            return []
        self.high_watermark = committed
        return [Advance(committed)]
