"""What the members of a quorum say to each other, and what the core asks of its driver.

These are the facts of Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot and the three voter changes,
without topics, partitions and versions: `wire` translates. A simulation passes millions of them, so they are tuples.
"""

from typing import Final, NamedTuple

from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.raft.election import NOBODY, ElectionState
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey, Voter, VoterEndpoint

Endpoints = tuple[VoterEndpoint, ...]


class EpochEnd(NamedTuple):
    """Where an epoch ends in a log."""

    epoch: int
    offset: int


# Requests


class VoteRequest(NamedTuple):
    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey | None
    """Whom the candidate believes to ask; None if it did not say."""
    last_epoch: int
    last_offset: int
    """The end of the candidate's log."""
    pre_vote: bool


class BeginEpochRequest(NamedTuple):
    epoch: int
    leader_id: int
    endpoints: Endpoints
    voter: ReplicaKey | None


class EndEpochRequest(NamedTuple):
    epoch: int
    leader_id: int
    endpoints: Endpoints
    successors: tuple[ReplicaKey, ...]
    """Preferred first: those with the longest logs."""


class FetchRequest(NamedTuple):
    replica: ReplicaKey
    epoch: int
    offset: int
    """The end of the replica's log: all below is on its disk."""
    last_epoch: int
    high_watermark: int
    """What the replica knows of it (KIP-1166); the leader answers at once when it knows more."""
    max_wait_ms: int
    max_bytes: int


class FetchSnapshotRequest(NamedTuple):
    replica: ReplicaKey
    epoch: int
    snapshot: SnapshotId
    position: int
    max_bytes: int


class AddVoterRequest(NamedTuple):
    voter: Voter
    ack_when_committed: bool
    timeout_ms: int


class RemoveVoterRequest(NamedTuple):
    voter: ReplicaKey


class UpdateVoterRequest(NamedTuple):
    epoch: int
    voter: Voter


class VersionsRequest(NamedTuple):
    """Which kraft.version levels a node that wants to vote supports: asked by ApiVersions."""

    voter: ReplicaKey


Request = (
    VoteRequest
    | BeginEpochRequest
    | EndEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | VersionsRequest
)


# Responses: each says which epoch and leader the answering node knows


class VoteResponse(NamedTuple):
    error: Errors
    epoch: int
    leader_id: int = NOBODY
    endpoints: Endpoints = ()
    granted: bool = False


class EpochResponse(NamedTuple):
    """Answers BeginEpochRequest and EndEpochRequest."""

    error: Errors
    epoch: int
    leader_id: int = NOBODY
    endpoints: Endpoints = ()


class FetchResponse(NamedTuple):
    error: Errors
    epoch: int
    leader_id: int = NOBODY
    endpoints: Endpoints = ()
    high_watermark: int = -1
    log_start: int = -1
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None
    records: object = None
    """Whole batches, opaque to the core; filled in by the driver where `Reply` says from where."""


class FetchSnapshotResponse(NamedTuple):
    error: Errors
    epoch: int
    leader_id: int = NOBODY
    endpoints: Endpoints = ()
    snapshot: SnapshotId | None = None
    size: int = 0
    position: int = 0
    data: object = None


class ChangeResponse(NamedTuple):
    """Answers the three voter changes."""

    error: Errors
    epoch: int
    leader_id: int = NOBODY
    endpoints: Endpoints = ()
    message: str | None = None


class VersionsResponse(NamedTuple):
    error: Errors
    epoch: int = -1
    leader_id: int = NOBODY
    endpoints: Endpoints = ()
    kraft_versions: tuple[int, int] = (0, 0)


Response = VoteResponse | EpochResponse | FetchResponse | FetchSnapshotResponse | ChangeResponse | VersionsResponse


# Effects: carried out in order, each completed before the next


class Persist(NamedTuple):
    """Write the quorum-state file and make it durable before anything that follows."""

    state: ElectionState


class AppendControl(NamedTuple):
    """Append one control batch of these records at the end of the log, flush it, and call `log_changed` for both."""

    epoch: int
    records: tuple[Message, ...]


class Append(NamedTuple):
    """Append batches as a leader of `epoch` or an earlier one wrote them, flush, and call `log_changed` for both."""

    records: object
    epoch: int


class Truncate(NamedTuple):
    """Cut the log so that it ends at `offset`, then call `log_changed`."""

    offset: int


class StoreSnapshot(NamedTuple):
    """One piece of a snapshot; after the last one it is made durable and `snapshot_stored` is called."""

    id: SnapshotId
    position: int
    data: object
    is_last: bool


class InstallSnapshot(NamedTuple):
    """Throw the log away and begin it anew at the snapshot's end; then call `log_changed`."""

    id: SnapshotId


class Send(NamedTuple):
    """The outcome comes back by `response`, with this very request; None for a response that never came."""

    to: Endpoints
    node_id: int
    """-1 while all that is known of the receiver is its address."""
    request: Request


class Reply(NamedTuple):
    token: object
    response: Response
    read_from: int = -1
    """Fill `records` with batches from this offset, or `data` with the snapshot from this position; -1 for nothing."""
    max_bytes: int = 0


class Advance(NamedTuple):
    """The high watermark has risen to `offset`: everything below it is committed."""

    offset: int


Effect = Persist | AppendControl | Append | Truncate | StoreSnapshot | InstallSnapshot | Send | Reply | Advance

ELSEWHERE: Final = (Errors.FENCED_LEADER_EPOCH, Errors.NOT_LEADER_OR_FOLLOWER)
HEARD: Final = (Errors.NONE, Errors.INVALID_VOTER_KEY, Errors.UNKNOWN_LEADER_EPOCH, *ELSEWHERE)
"""Errors of an answer that speaks of epoch and leader; others say only that this time it did not work."""
