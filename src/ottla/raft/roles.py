"""The roles of a quorum's member, as Kafka's QuorumState has them: records of state, on which `core` and the rest act.

A node that is not among the voters is an observer: it is Unattached or Follower and never anything else.
"""

from typing import Final, final

from ottla.raft.election import NOBODY
from ottla.raft.exchange import Endpoints, FetchRequest, FetchSnapshotRequest, Request
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey, Voter, VoterSet

NEVER: Final = 1 << 62


class BrokenQuorum(Exception):
    """What was seen contradicts the protocol: going on could lose committed records."""


@final
class Unattached:
    """Knows its epoch and nobody to follow; as a voter it stands for election when `due` comes."""

    __slots__ = ("due", "epoch", "in_flight", "leader_id", "retry_at", "voted")

    def __init__(self, epoch: int, due: int, *, leader_id: int = NOBODY, voted: ReplicaKey | None = None) -> None:
        self.epoch = epoch
        self.due = due
        self.leader_id = leader_id
        """Known from the quorum-state file, but nobody has said yet where it is."""
        self.voted = voted
        self.in_flight: Request | None = None
        self.retry_at = 0

    def __repr__(self) -> str:
        return f"Unattached(epoch={self.epoch}, due={self.due}, leader={self.leader_id}, voted={self.voted})"


class Election:
    """Votes of one round, by voter id; a voter that has not answered is asked again."""

    __slots__ = ("_majority", "asked", "granted", "is_given_up", "rejected", "retry_at", "voters")

    def __init__(self, voters: VoterSet) -> None:
        self.voters = voters
        self._majority = voters.majority
        self.granted: list[int] = []
        self.rejected: list[int] = []
        self.asked: dict[int, Request] = {}
        self.retry_at: dict[int, int] = {}
        self.is_given_up = False
        """The round ends soon, not after its timeout."""

    def record(self, voter_id: int, *, granted: bool) -> None:
        if voter_id in self.granted or voter_id in self.rejected or self.voters.find(voter_id) is None:
            return
        (self.granted if granted else self.rejected).append(voter_id)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self._majority

    @property
    def is_lost(self) -> bool:
        return len(self.voters.voters) - len(self.rejected) < self._majority

    @property
    def is_stuck(self) -> bool:
        """Somebody refused, and those whose votes could still decide it cannot be reached."""
        return bool(self.rejected) and not self.asked and all(v.id in self.retry_at for v in self.unanswered())

    def unanswered(self) -> list[Voter]:
        return [v for v in self.voters.voters if v.id not in self.granted and v.id not in self.rejected]


@final
class Prospective:
    """Asks whether it would get the votes before it disturbs anyone with a new epoch (KIP-996)."""

    __slots__ = ("due", "election", "endpoints", "epoch", "leader_id", "voted")

    def __init__(
        self,
        epoch: int,
        due: int,
        election: Election,
        *,
        leader_id: int,
        endpoints: Endpoints,
        voted: ReplicaKey | None,
    ) -> None:
        self.epoch = epoch
        self.due = due
        self.election = election
        self.leader_id = leader_id
        self.endpoints = endpoints
        self.voted = voted

    def __repr__(self) -> str:
        return f"Prospective(epoch={self.epoch}, due={self.due}, granted={self.election.granted})"


@final
class Candidate:
    __slots__ = ("due", "election", "epoch")

    def __init__(self, epoch: int, due: int, election: Election) -> None:
        self.epoch = epoch
        self.due = due
        self.election = election

    def __repr__(self) -> str:
        return f"Candidate(epoch={self.epoch}, due={self.due}, granted={self.election.granted})"


@final
class Follower:
    __slots__ = (
        "download",
        "due",
        "endpoints",
        "epoch",
        "has_fetched",
        "has_updated",
        "in_flight",
        "known_high_watermark",
        "leader_id",
        "lost",
        "retry_at",
        "update_due",
        "voted",
    )

    def __init__(self, epoch: int, due: int, leader_id: int, endpoints: Endpoints, voted: ReplicaKey | None) -> None:
        self.epoch = epoch
        self.due = due
        """When the leader counts as gone; NEVER for an observer."""
        self.leader_id = leader_id
        self.endpoints = endpoints
        self.voted = voted
        self.in_flight: FetchRequest | FetchSnapshotRequest | None = None
        self.retry_at = 0
        self.has_fetched = False
        self.lost = False
        """The connection to the leader broke, or the leader said that it resigns; until the next answer."""
        self.known_high_watermark = -1
        """What the leader said last; ours follows when the records are there."""
        self.download: tuple[SnapshotId, int] | None = None
        """The snapshot being fetched, and how much of it is there; its size when it is being made durable."""
        self.update_due = 0
        """When to tell the leader of a change of this node's place among the voters, at the earliest."""
        self.has_updated = False

    def __repr__(self) -> str:
        return f"Follower(epoch={self.epoch}, due={self.due}, leader={self.leader_id}, lost={self.lost})"


class Replica:
    """What the leader knows of a voter or an observer."""

    __slots__ = ("caught_up_at", "end_offset", "fetched_at", "key", "leader_end")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.end_offset = -1
        """All below is on its disk; -1 until it says so."""
        self.fetched_at = -1
        self.caught_up_at = -1
        self.leader_end = -1
        """Where the leader's log ended at the last fetch."""

    def fetched(self, offset: int, leader_end: int, now: int) -> None:
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif 0 < self.leader_end <= offset:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.leader_end = leader_end
        self.fetched_at = max(self.fetched_at, now)
        self.end_offset = offset


class Parked:
    """A fetch that waits for news."""

    __slots__ = ("deadline", "request", "token")

    def __init__(self, token: object, request: FetchRequest, deadline: int) -> None:
        self.token = token
        self.request = request
        self.deadline = deadline


class VoterChange:
    """The one change of the voters that may be under way."""

    __slots__ = ("ack_early", "deadline", "offset", "token", "voter")

    def __init__(self, token: object, voter: Voter, deadline: int, *, ack_early: bool) -> None:
        self.token = token
        """None once it is answered."""
        self.voter = voter
        self.deadline = deadline
        self.ack_early = ack_early
        self.offset = -1
        """Where the record of the new voters is; -1 while the new voter is being examined."""


@final
class Leader:
    __slots__ = (
        "begin_due",
        "change",
        "check_due",
        "epoch",
        "fetched",
        "observers",
        "parked",
        "replicas",
        "seen_end",
        "seen_voters",
        "start_offset",
    )

    def __init__(self, epoch: int, start_offset: int, check_due: int) -> None:
        self.epoch = epoch
        self.start_offset = start_offset
        """The offset of the epoch's first record."""
        self.replicas: dict[int, Replica] = {}
        """The voters, this node included."""
        self.observers: dict[ReplicaKey, Replica] = {}
        self.parked: dict[ReplicaKey, Parked] = {}
        self.check_due = check_due
        """A majority must have fetched before this time, or the leader resigns."""
        self.fetched: list[int] = []
        """Voters that have fetched since `check_due` was set."""
        self.begin_due = 0
        self.change: VoterChange | None = None
        self.seen_end = start_offset
        """The log's end when parked fetches were looked through last."""
        self.seen_voters: VoterSet | None = None

    def __repr__(self) -> str:
        ends = {i: r.end_offset for i, r in self.replicas.items()}
        return f"Leader(epoch={self.epoch}, start={self.start_offset}, ends={ends})"


@final
class Resigned:
    """A leader that gave up: it tells the others to elect, and stays out of its old epoch."""

    __slots__ = ("due", "epoch", "retry_at", "successors", "unacked")

    def __init__(self, epoch: int, due: int, successors: tuple[ReplicaKey, ...], unacked: list[int]) -> None:
        self.epoch = epoch
        self.due = due
        self.successors = successors
        self.unacked = unacked
        self.retry_at: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Resigned(epoch={self.epoch}, due={self.due})"


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned

TRANSITIONS: Final[dict[type[Role], tuple[type[Role], ...]]] = {
    Unattached: (Unattached, Prospective, Follower),
    Prospective: (Candidate, Follower, Unattached),
    Candidate: (Leader, Prospective, Follower, Unattached),
    Follower: (Prospective, Follower, Unattached),
    Leader: (Resigned, Follower, Unattached),
    Resigned: (Follower, Unattached),
}
"""Which role may come after which. A leader has been a candidate in its own epoch and nothing else; who resigns stays
out of its epoch. The epoch never falls."""
