"""What must hold for a quorum after every event, each rule in a class of its own.

A checker keeps its own ledger and never looks at what the cores believe where it can look at the disks instead. Each
raises Violation with what it saw.
"""

from typing import TYPE_CHECKING

from ottla.model.errors import Errors
from ottla.raft.election import ElectionState
from ottla.raft.exchange import FetchRequest, FetchSnapshotRequest, Request, Response, VoteRequest, VoteResponse
from ottla.raft.roles import Leader
from ottla.raft.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from ottla.testing.sim.raft import SimNode, World


class Violation(AssertionError):
    """A rule of the quorum was broken."""


class Checker:
    """Hooks that a rule may use; the world calls only those a rule has overridden."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def persisted(self, node: "SimNode", state: ElectionState) -> None: ...

    def sending(self, node: "SimNode", request: Request) -> None: ...

    def replying(self, node: "SimNode", request: Request, response: Response) -> None: ...

    def advanced(self, node: "SimNode", offset: int) -> None: ...

    def appended(self, node: "SimNode", offset: int) -> None:
        """The entry at `offset` is new in the node's log."""

    def truncated(self, node: "SimNode", offset: int) -> None: ...

    def restarted(self, node: "SimNode") -> None: ...

    def became_leader(self, node: "SimNode", role: Leader) -> None: ...

    def looked_at(self, node: "SimNode", now: int) -> None:
        """Every now and then, with the node's own time."""


class SingleLeader(Checker):
    """No epoch has two leaders, over all restarts."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._leaders: dict[int, tuple[int, int]] = {}

    def became_leader(self, node: "SimNode", role: Leader) -> None:
        claim = (node.id, node.incarnation)
        known = self._leaders.setdefault(role.epoch, claim)
        if known != claim:
            raise Violation(f"epoch {role.epoch} is led by {claim} and by {known} (node, incarnation)")


class OneVotePerEpoch(Checker):
    """A ledger of every vote that left a node, across restarts: one candidate in each epoch for each disk."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}

    def _note(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        known = self._votes.setdefault((voter, epoch), candidate)
        if known != candidate:
            raise Violation(f"{voter} voted for {known} and for {candidate} in epoch {epoch}")

    def sending(self, node: "SimNode", request: Request) -> None:
        if type(request) is VoteRequest and not request.pre_vote:
            self._note(node.key, request.epoch, node.key)

    def replying(self, node: "SimNode", request: Request, response: Response) -> None:
        if type(response) is VoteResponse and response.granted and isinstance(request, VoteRequest):
            self._grant(node, request)

    def _grant(self, node: "SimNode", request: VoteRequest) -> None:
        if not request.pre_vote:
            self._note(node.key, request.epoch, request.candidate)


class VotesAreDurable(Checker):
    """Nobody hears of a vote or of an epoch before it is on the disk."""

    def sending(self, node: "SimNode", request: Request) -> None:
        if type(request) is VoteRequest and not request.pre_vote:
            state = node.election
            if state.epoch != request.epoch or state.voted_id != node.id:
                raise Violation(f"node {node.id} asks for votes in epoch {request.epoch}, its disk has {state}")

    def replying(self, node: "SimNode", request: Request, response: Response) -> None:
        if response.epoch > max(node.election.epoch, node.log.last_epoch):
            raise Violation(f"node {node.id} speaks of epoch {response.epoch}, its disk has {node.election}")
        if type(response) is VoteResponse and response.granted and type(request) is VoteRequest:
            state = node.election
            if not request.pre_vote and (state.epoch, state.voted_id) != (request.epoch, request.candidate.id):
                raise Violation(f"node {node.id} grants {request}, its disk has {state}")


class PreVoteComesFirst(Checker):
    """Nobody disturbs the others with a new epoch before a majority has said that it would vote for it (KIP-996)."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._granted: dict[tuple[ReplicaKey, int], dict[int, bool]] = {}

    def replying(self, node: "SimNode", request: Request, response: Response) -> None:
        if type(response) is VoteResponse and response.granted and type(request) is VoteRequest and request.pre_vote:
            self._granted.setdefault((request.candidate, request.epoch), {})[node.id] = True

    def sending(self, node: "SimNode", request: Request) -> None:
        if type(request) is not VoteRequest or request.pre_vote:
            return
        quorum = node.quorum
        assert quorum is not None
        granted = self._granted.get((node.key, request.epoch - 1), {})
        votes = sum(v.id in granted or v.is_played_by(node.key) for v in quorum.voters.voters)
        if votes < len(quorum.voters.voters) // 2 + 1:
            raise Violation(f"node {node.id} asks for votes in epoch {request.epoch} after {votes} promises")


class LeaderHasMajority(Checker):
    """A leader that no majority fetches from gives up in time, counted from its election and from each change of the
    voters."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._since: dict[int, tuple[VoterSet, int]] = {}

    def looked_at(self, node: "SimNode", now: int) -> None:
        quorum = node.quorum
        role = quorum.role if quorum is not None else None
        if type(role) is not Leader or quorum is None or len(quorum.voters.voters) < 2:
            return
        known, since = self._since.setdefault(role.epoch, (quorum.voters, now))
        if known != quorum.voters:
            self._since[role.epoch] = (quorum.voters, now)
            return
        heard = [now if v.is_played_by(node.key) else role.replicas[v.id].fetched_at for v in quorum.voters.voters]
        silent = now - max(since, sorted(heard)[(len(heard) - 1) // 2])
        # Twice 1.5 fetch timeouts is what the rule allows: a voter may have been heard just after the count began anew.
        if silent > 4 * quorum.timing.fetch_timeout_ms:
            raise Violation(f"node {node.id} leads epoch {role.epoch} after {silent} ms without a majority")


class MonotonicEpoch(Checker):
    """The epoch a disk has seen never goes back."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._epochs: dict[ReplicaKey, int] = {}

    def persisted(self, node: "SimNode", state: ElectionState) -> None:
        if state.epoch < self._epochs.get(node.key, 0):
            raise Violation(f"node {node.id} goes back from epoch {self._epochs[node.key]} to {state.epoch}")
        self._epochs[node.key] = state.epoch

    def restarted(self, node: "SimNode") -> None:
        quorum = node.quorum
        assert quorum is not None
        if quorum.epoch < self._epochs.get(node.key, 0):
            raise Violation(f"node {node.id} restarts in epoch {quorum.epoch} after {self._epochs[node.key]}")


class MonotonicHighWatermark(Checker):
    """While a node runs, its high watermark only rises, and never past its log."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._marks: dict[tuple[int, int], int] = {}

    def advanced(self, node: "SimNode", offset: int) -> None:
        key = (node.id, node.incarnation)
        if offset <= self._marks.get(key, -1):
            raise Violation(f"the high watermark of node {node.id} goes from {self._marks[key]} to {offset}")
        if offset > node.log.end_offset:
            raise Violation(f"the high watermark of node {node.id}, {offset}, is past its log's {node.log.end_offset}")
        if offset < node.log.start_offset:
            raise Violation(f"the high watermark of node {node.id}, {offset}, is before its {node.log.start_offset}")
        self._marks[key] = offset


class CommittedPrefix(Checker):
    """What one node takes for committed is the same on all, for ever, and every leader of a later epoch has it."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._hashes: dict[int, int] = {}
        self._highest: dict[int, int] = {}
        """By the epoch in which its leader committed it."""

    def advanced(self, node: "SimNode", offset: int) -> None:
        found = node.log.prefix_hash(offset)
        known = self._hashes.setdefault(offset, found)
        if known != found:
            raise Violation(f"node {node.id} has other records below {offset} than were committed there")
        quorum = node.quorum
        if quorum is not None and type(quorum.role) is Leader:
            self._highest[quorum.role.epoch] = offset

    def became_leader(self, node: "SimNode", role: Leader) -> None:
        log = node.log
        committed = max((offset for epoch, offset in self._highest.items() if epoch < role.epoch), default=0)
        if committed > log.end_offset:
            raise Violation(f"node {node.id} leads epoch {role.epoch} without the committed {committed - 1}")
        is_here = committed >= log.start_offset and committed > 0
        if is_here and log.prefix_hash(committed) != self._hashes[committed]:
            raise Violation(f"node {node.id} leads epoch {role.epoch} with other records than were committed")

    def truncated(self, node: "SimNode", offset: int) -> None:
        quorum = node.quorum
        if quorum is not None and offset < quorum.high_watermark:
            raise Violation(f"node {node.id} truncates to {offset}, below its {quorum.high_watermark}")


class LogMatching(Checker):
    """Two logs that have the same epoch at one offset are the same below it."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._hashes: dict[tuple[int, int], int] = {}

    def appended(self, node: "SimNode", offset: int) -> None:
        entry = node.log.entry(offset)
        known = self._hashes.setdefault((offset, entry[0]), entry[2])
        if known != entry[2]:
            raise Violation(f"the log of node {node.id} differs below offset {offset}, epoch {entry[0]}")


class MajorityHasIt(Checker):
    """A leader's high watermark is on the disks of a majority of its voters, and in its own epoch."""

    def advanced(self, node: "SimNode", offset: int) -> None:
        quorum = node.quorum
        if quorum is None or type(quorum.role) is not Leader:
            return
        wanted = node.log.prefix_hash(offset)
        voters = quorum.voters.voters
        having = 0
        for voter in voters:
            log = self.world.disk_of(voter)
            if log is not None and log.has_durably(offset, wanted):
                having += 1
        if having < len(voters) // 2 + 1:
            raise Violation(f"node {node.id} commits {offset} that {having} of {len(voters)} voters have on disk")
        if offset - 1 >= node.log.start_offset and node.log.entry(offset - 1)[0] != quorum.epoch:
            raise Violation(f"node {node.id} commits {offset} by count, in epoch {node.log.entry(offset - 1)[0]}")


class NoAckBeforeFsync(Checker):
    """The offset a replica fetches from is a promise that its disk keeps."""

    def sending(self, node: "SimNode", request: Request) -> None:
        if type(request) is FetchRequest and request.offset > node.log.flushed:
            raise Violation(f"node {node.id} fetches from {request.offset}, its disk has {node.log.flushed}")
        if type(request) is FetchSnapshotRequest and request.position < 0:
            raise Violation(f"node {node.id} asks for position {request.position} of a snapshot")


class OneVoterChange(Checker):
    """At most one change of the voters is in a leader's log without being committed."""

    def appended(self, node: "SimNode", offset: int) -> None:
        quorum = node.quorum
        if quorum is None or type(quorum.role) is not Leader or not node.log.is_voters(offset):
            return
        pending = node.log.voter_changes_from(max(quorum.high_watermark, 0))
        if pending > 1:
            raise Violation(f"node {node.id} has {pending} changes of the voters in flight")


class StaleIsRefused(Checker):
    """A leader serves no fetch of another epoch."""

    def replying(self, node: "SimNode", request: Request, response: Response) -> None:
        if type(request) is FetchRequest and response.error is Errors.NONE and request.epoch != response.epoch:
            raise Violation(f"node {node.id} in epoch {response.epoch} serves a fetch of epoch {request.epoch}")


ALL: tuple[type[Checker], ...] = (
    SingleLeader,
    OneVotePerEpoch,
    VotesAreDurable,
    PreVoteComesFirst,
    LeaderHasMajority,
    MonotonicEpoch,
    MonotonicHighWatermark,
    CommittedPrefix,
    LogMatching,
    MajorityHasIt,
    NoAckBeforeFsync,
    OneVoterChange,
    StaleIsRefused,
)
