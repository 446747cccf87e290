"""The follower's side of the quorum, observers included: fetch, truncate, append, and notice a leader that is gone."""

from typing import TYPE_CHECKING

from ottla.model.errors import Errors
from ottla.raft.election import NOBODY
from ottla.raft.exchange import (
    AddVoterRequest,
    Append,
    ChangeResponse,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    InstallSnapshot,
    RemoveVoterRequest,
    Request,
    StoreSnapshot,
    Truncate,
    UpdateVoterRequest,
)
from ottla.raft.roles import NEVER, BrokenQuorum, Follower, Unattached
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from ottla.raft.core import LogView, Quorum


def deadline(quorum: "Quorum", role: Follower) -> int:
    if role.in_flight is None and not _is_busy(quorum, role):
        return min(role.due, role.retry_at)
    return role.due


def _is_busy(quorum: "Quorum", role: Follower) -> bool:
    """Waits for its own disk."""
    if role.download is not None:
        return role.download[1] < 0
    return quorum.log.flushed < quorum.log.end_offset


def tick(quorum: "Quorum", role: Follower, now: int) -> None:
    if role.in_flight is None and now >= role.retry_at:
        fetch(quorum, role, now)


def fetch(quorum: "Quorum", role: Follower, now: int) -> None:
    """The offset of a fetch is a promise: all below it is on this node's disk."""
    if role.in_flight is not None or now < role.retry_at or _is_busy(quorum, role):
        return
    if now >= role.update_due:
        role.update_due = now + quorum.timing.fetch_timeout_ms
        tell_leader(quorum, role)
    request = _next_request(quorum, role)
    role.in_flight = request
    to, node_id = role.endpoints, role.leader_id
    if role.lost and not quorum.is_voter:
        # An observer has no vote to wait for: whoever answers knows the new leader.
        other = quorum.next_bootstrap()
        if other is not None and other != to:
            to, node_id = other, NOBODY
    quorum.send(to, node_id, request)


def _next_request(quorum: "Quorum", role: Follower) -> FetchRequest | FetchSnapshotRequest:
    if role.download is not None:
        snapshot, position = role.download
        limit = quorum.timing.snapshot_max_bytes
        return FetchSnapshotRequest(quorum.local.key, role.epoch, snapshot, position, limit)
    return fetch_request(quorum, role.epoch)


def fetch_request(quorum: "Quorum", epoch: int) -> FetchRequest:
    log, timing = quorum.log, quorum.timing
    return FetchRequest(
        quorum.local.key,
        epoch,
        log.end_offset,
        log.last_epoch,
        quorum.high_watermark,
        timing.max_wait_ms,
        timing.fetch_max_bytes,
    )


def look_for_leader(quorum: "Quorum", role: Unattached, now: int) -> None:
    """Whoever is asked for records says who leads."""
    role.retry_at = now + quorum.timing.retry_backoff_ms
    if quorum.log.flushed < quorum.log.end_offset:
        return
    place = quorum.next_bootstrap()
    if place is None:
        role.retry_at = NEVER
        return
    role.in_flight = fetch_request(quorum, role.epoch)
    quorum.send(place, NOBODY, role.in_flight)


# Answers


def fetch_response(
    quorum: "Quorum", sender: int, request: FetchRequest, response: FetchResponse | None, now: int
) -> None:
    role = quorum.role
    if (type(role) is not Follower and type(role) is not Unattached) or role.in_flight is not request:
        return
    role.in_flight = None
    if response is None:
        role.retry_at = now + quorum.timing.retry_backoff_ms
        if type(role) is Follower:
            _leader_lost(quorum, role, now)
        return
    if response.error not in _SPEAKING:
        role.retry_at = now + quorum.timing.retry_backoff_ms
        return
    if quorum.heard(response, now) or type(role) is Unattached or response.error is not Errors.NONE:
        if quorum.role is role:
            role.retry_at = now + quorum.timing.retry_backoff_ms
        return
    assert isinstance(role, Follower)
    if response.leader_id != role.leader_id:
        role.retry_at = now + quorum.timing.retry_backoff_ms
        return
    _leader_lives(quorum, role, now)
    if response.diverging is not None:
        quorum.emit(Truncate(truncation(quorum, response.diverging)))
    elif response.snapshot is not None:
        _begin_download(quorum, role, response.snapshot, now)
    else:
        role.known_high_watermark = max(role.known_high_watermark, response.high_watermark)
        if response.records:
            quorum.emit(Append(response.records, role.epoch))
        else:
            log_changed(quorum, role, now)


def _leader_lives(quorum: "Quorum", role: Follower, now: int) -> None:
    role.has_fetched = True
    role.lost = False
    quorum.leader_lives()
    role.due = now + quorum.timing.fetch_timeout_ms if quorum.may_stand else NEVER


def _leader_lost(quorum: "Quorum", role: Follower, now: int) -> None:
    """A connection that broke says more than silence: PreVote asks the others soon, and keeps a mistake harmless."""
    if not role.lost:
        role.lost = True
        if quorum.may_stand:
            role.due = min(role.due, now + quorum.grace())


def leader_resigned(quorum: "Quorum", role: Follower, successors: tuple[ReplicaKey, ...], now: int) -> None:
    """The preferred successor stands at once, the others later, each after twice the time of the one before."""
    role.lost = True
    if not quorum.may_stand:
        return
    keys = [(key.id, key.directory_id) for key in successors]
    own = quorum.local.key
    place = next((i for i, key in enumerate(successors) if key.id == own.id), len(keys))
    limit = quorum.timing.backoff_max_ms
    wait = 0 if place == 0 and keys else limit
    if 0 < place < len(keys):
        wait = min(limit, (limit >> (len(keys) - 1)) << (place - 1))
    role.due = min(role.due, now + wait)


def truncation(quorum: "Quorum", diverging: EpochEnd) -> int:
    """Where our log and the leader's part at the latest (KIP-279): the end of the largest epoch both can have."""
    log = quorum.log
    own = log.end_of_epoch(diverging.epoch)
    offset = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
    if diverging.epoch == 0:
        offset = min(diverging.offset, log.end_offset)
    forbid_truncation(quorum, offset)
    return offset


def forbid_truncation(quorum: "Quorum", offset: int) -> None:
    """What was committed once is never given up."""
    floor = max(quorum.high_watermark, quorum.log.start_offset)
    if offset < floor:
        raise BrokenQuorum(f"the leader of epoch {quorum.epoch} asks to truncate to {offset}, below {floor}")


def log_changed(quorum: "Quorum", role: Follower, now: int) -> None:
    committed = min(role.known_high_watermark, quorum.log.end_offset)
    if committed > quorum.high_watermark:
        quorum.advance(committed)
    if (role.due == NEVER) == quorum.may_stand:
        # The log has just made it a voter, or has just confirmed that it is none any more.
        role.due = now + quorum.timing.fetch_timeout_ms if role.due == NEVER else NEVER
    fetch(quorum, role, now)


# Snapshots


def _begin_download(quorum: "Quorum", role: Follower, snapshot: SnapshotId, now: int) -> None:
    log = quorum.log
    if snapshot.offset <= max(quorum.high_watermark, log.start_offset) or snapshot == log.latest_snapshot:
        role.retry_at = now + quorum.timing.retry_backoff_ms  # ours is as good: the leader's log start moves on
        return
    role.download = (snapshot, 0)
    fetch(quorum, role, now)


def snapshot_response(
    quorum: "Quorum", sender: int, request: FetchSnapshotRequest, response: FetchSnapshotResponse | None, now: int
) -> None:
    role = quorum.role
    if type(role) is not Follower or role.in_flight is not request:
        return
    role.in_flight = None
    if response is None:
        role.retry_at = now + quorum.timing.retry_backoff_ms
        _leader_lost(quorum, role, now)
        return
    if response.error in _GONE:
        role.download = None  # the leader has a newer one by now, and will name it
        role.retry_at = now + quorum.timing.retry_backoff_ms
        return
    if response.error not in _SPEAKING or quorum.heard(response, now) or response.error is not Errors.NONE:
        if quorum.role is role:
            role.retry_at = now + quorum.timing.retry_backoff_ms
        return
    _leader_lives(quorum, role, now)
    if role.download is None or response.snapshot != request.snapshot or response.position != request.position:
        role.download = None
        fetch(quorum, role, now)
        return
    size = len(response.data) if isinstance(response.data, bytes | bytearray | memoryview) else 0
    position = request.position + size
    is_last = position >= response.size
    quorum.emit(StoreSnapshot(request.snapshot, request.position, response.data, is_last))
    role.download = (request.snapshot, -1 if is_last else position)
    fetch(quorum, role, now)


def leads_to(log: "LogView", snapshot: SnapshotId) -> bool:
    """Whether the log has the last record that the snapshot stands for, and with it all before."""
    end = log.end_of_epoch(snapshot.epoch)
    return end.epoch == snapshot.epoch and end.offset >= snapshot.offset


def snapshot_stored(quorum: "Quorum", role: Follower, snapshot: SnapshotId, now: int) -> None:
    if role.download is None or role.download[0] != snapshot:
        return
    role.download = None
    if not leads_to(quorum.log, snapshot) and snapshot.offset >= quorum.high_watermark:
        role.known_high_watermark = max(role.known_high_watermark, snapshot.offset)
        quorum.emit(InstallSnapshot(snapshot))
    else:
        fetch(quorum, role, now)


# Its own place among the voters (KIP-853)


def tell_leader(quorum: "Quorum", role: Follower) -> None:
    history = quorum.log.history
    known = history.voters.find(quorum.local.id)
    request: Request | None = None
    if quorum.is_voter:
        if history.kraft_version > 0 and known != quorum.local:
            request = UpdateVoterRequest(role.epoch, quorum.local)
    elif quorum.can_vote and quorum.timing.auto_join and history.kraft_version > 0 and role.has_fetched:
        # The same id with another disk: the old voter has to leave first.
        if known is not None:
            request = RemoveVoterRequest(known.key)
        else:
            request = AddVoterRequest(quorum.local, False, quorum.timing.request_timeout_ms)
    if request is not None:
        quorum.send(role.endpoints, role.leader_id, request)


def change_response(quorum: "Quorum", sender: int, request: Request, response: ChangeResponse | None, now: int) -> None:
    """Asked again after `update_due` if the voters still say something else."""
    if response is not None and response.epoch >= 0 and response.error in _SPEAKING:
        quorum.heard(response, now)


_SPEAKING = (
    Errors.NONE,
    Errors.FENCED_LEADER_EPOCH,
    Errors.NOT_LEADER_OR_FOLLOWER,
    Errors.UNKNOWN_LEADER_EPOCH,
)
_GONE = (Errors.SNAPSHOT_NOT_FOUND, Errors.POSITION_OUT_OF_RANGE)
