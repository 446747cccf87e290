"""The leader's side of the quorum: fetches answered, the high watermark moved, a lost majority noticed."""

from typing import TYPE_CHECKING

from ottla.model.errors import Errors
from ottla.raft import changes
from ottla.raft.exchange import (
    BeginEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from ottla.raft.roles import NEVER, Leader, Parked, Replica
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey, committed_by

if TYPE_CHECKING:
    from ottla.raft.core import Quorum

_OBSERVER_SESSION_MS = 300_000


def check_period(quorum: "Quorum") -> int:
    return quorum.timing.fetch_timeout_ms * 3 // 2


def deadline(quorum: "Quorum", role: Leader) -> int:
    due = NEVER if _has_majority_alone(quorum, role) else min(role.check_due, role.begin_due)
    for parked in role.parked.values():
        due = min(due, parked.deadline)
    if role.change is not None and role.change.deadline < due:
        due = role.change.deadline
    return due


def tick(quorum: "Quorum", role: Leader, now: int) -> None:
    if now >= role.check_due and not _has_majority_alone(quorum, role):
        quorum.become_resigned(role, now)
        quorum.act(now)
        return
    changes.expire(quorum, role, now)
    for key in [k for k, parked in role.parked.items() if parked.deadline <= now]:
        answer(quorum, role.parked.pop(key))
    if now >= role.begin_due:
        role.begin_due = now + quorum.timing.fetch_timeout_ms // 2
        _announce(quorum, role, now)
        _forget_silent_observers(role, now)


def _has_majority_alone(quorum: "Quorum", role: Leader) -> bool:
    return len(role.replicas) == 1 and quorum.local.id in role.replicas


def _announce(quorum: "Quorum", role: Leader, now: int) -> None:
    """Voters that fetch know their leader already."""
    for voter in quorum.voters.voters:
        replica = role.replicas.get(voter.id)
        fetches = replica is not None and 0 <= now - replica.fetched_at < quorum.timing.fetch_timeout_ms // 2
        if voter.id != quorum.local.id and not (fetches and replica is not None and replica.fetched_at >= 0):
            request = BeginEpochRequest(role.epoch, quorum.local.id, quorum.local.endpoints, voter.key)
            quorum.send(voter.endpoints, voter.id, request)


def _forget_silent_observers(role: Leader, now: int) -> None:
    for key in [k for k, r in role.observers.items() if now - r.fetched_at >= _OBSERVER_SESSION_MS]:
        del role.observers[key]


def abandon(quorum: "Quorum", role: Leader) -> None:
    changes.abandon(quorum, role)
    for parked in role.parked.values():
        quorum.reply(parked.token, FetchResponse(Errors.NOT_LEADER_OR_FOLLOWER, role.epoch))
    role.parked.clear()


# Who counts


def follow_voters(quorum: "Quorum", role: Leader) -> None:
    """The last voters in the log count, committed or not (KIP-853)."""
    voters = quorum.voters
    if voters is role.seen_voters:
        return
    role.seen_voters = voters
    known = {r.key: r for r in role.replicas.values()} | role.observers
    replicas: dict[int, Replica] = {}
    for voter in voters.voters:
        match = next((r for k, r in known.items() if voter.is_played_by(k)), None)
        replicas[voter.id] = match or Replica(voter.key)
    counted = [id(r) for r in replicas.values()]
    role.observers = {k: r for k, r in known.items() if id(r) not in counted and r.fetched_at >= 0}
    role.replicas = replicas


def _replica(quorum: "Quorum", role: Leader, key: ReplicaKey) -> Replica:
    found = role.replicas.get(key.id)
    voter = quorum.voters.find(key.id)
    if found is not None and voter is not None and voter.is_played_by(key):
        found.key = key
        return found
    return role.observers.setdefault(key, Replica(key))


def log_changed(quorum: "Quorum", role: Leader, now: int) -> None:
    follow_voters(quorum, role)
    own = role.replicas.get(quorum.local.id)
    if own is not None:
        own.end_offset = quorum.log.flushed
    move_high_watermark(quorum, role, now)
    end = quorum.log.end_offset
    if end > role.seen_end and quorum.role is role:
        role.seen_end = end
        _wake(quorum, role)


def move_high_watermark(quorum: "Quorum", role: Leader, now: int) -> None:
    """A majority is not enough: the offset must lie in the leader's own epoch (the Raft paper's figure 8)."""
    ends = [r.end_offset for r in role.replicas.values() if r.end_offset >= 0]
    committed = committed_by(ends, len(role.replicas))
    if committed <= role.start_offset or committed <= quorum.high_watermark:
        return
    quorum.advance(committed)
    _wake(quorum, role)
    changes.committed(quorum, role, now)


def _wake(quorum: "Quorum", role: Leader) -> None:
    """Answers every parked fetch that there is news for: records, or a higher watermark (KIP-1166)."""
    end, watermark = quorum.log.end_offset, quorum.high_watermark
    woken = [k for k, p in role.parked.items() if p.request.offset < end or p.request.high_watermark < watermark]
    for key in woken:
        answer(quorum, role.parked.pop(key))


# Requests


def _refusal(quorum: "Quorum", epoch: int) -> Errors:
    if epoch < quorum.role.epoch:
        return Errors.FENCED_LEADER_EPOCH
    if epoch > quorum.role.epoch:
        return Errors.UNKNOWN_LEADER_EPOCH
    return Errors.NONE if type(quorum.role) is Leader else Errors.NOT_LEADER_OR_FOLLOWER


def on_fetch(quorum: "Quorum", request: FetchRequest, token: object, now: int) -> None:
    error = _refusal(quorum, request.epoch)
    if request.offset < 0 or request.last_epoch < 0 or request.last_epoch > request.epoch or request.max_wait_ms < 0:
        error = Errors.INVALID_REQUEST
    if error is not Errors.NONE:
        response = FetchResponse(error, quorum.role.epoch, quorum.leader_id, quorum.leader_endpoints)
        quorum.reply(token, response)
        return
    role = quorum.role
    assert isinstance(role, Leader)
    place = where(quorum, request)
    if place is not None:
        _saw(quorum, role, request.replica, now)
        quorum.reply(token, _fetch_response(quorum, place))
        return
    if request.replica.id >= 0 and not _note_fetch(quorum, role, request, now):
        quorum.reply(token, FetchResponse(Errors.NOT_LEADER_OR_FOLLOWER, quorum.role.epoch))
        return
    parked = Parked(token, request, now + request.max_wait_ms)
    has_news = request.offset < quorum.log.end_offset or request.high_watermark < quorum.high_watermark
    if has_news or request.max_wait_ms == 0:
        answer(quorum, parked)
        return
    older = role.parked.pop(request.replica, None)
    if older is not None:
        answer(quorum, older)  # its sender has given it up
    role.parked[request.replica] = parked


def _note_fetch(quorum: "Quorum", role: Leader, request: FetchRequest, now: int) -> bool:
    """False if the news made this node resign."""
    replica = _replica(quorum, role, request.replica)
    replica.fetched(request.offset, quorum.log.end_offset, now)
    if role.replicas.get(request.replica.id) is replica:
        saw_voter(quorum, role, request.replica.id, now)
        move_high_watermark(quorum, role, now)
    return quorum.role is role


def saw_voter(quorum: "Quorum", role: Leader, voter_id: int, now: int) -> None:
    if voter_id not in role.fetched:
        role.fetched.append(voter_id)
    others = len(role.replicas) // 2 + 1 - (1 if quorum.local.id in role.replicas else 0)
    if len(role.fetched) >= others:
        role.fetched.clear()
        role.check_due = now + check_period(quorum)


def _saw(quorum: "Quorum", role: Leader, key: ReplicaKey, now: int) -> None:
    """A voter whose log does not fit yet has nothing to commit by, but it lives and follows."""
    voter = quorum.voters.find(key.id)
    if voter is not None and voter.is_played_by(key):
        role.replicas[voter.id].fetched_at = now
        saw_voter(quorum, role, voter.id, now)


def where(quorum: "Quorum", request: FetchRequest) -> EpochEnd | SnapshotId | None:
    """None if the replica's log is a prefix of ours; else where it parts from ours, or what it needs instead."""
    log = quorum.log
    offset, epoch = request.offset, request.last_epoch
    latest = log.latest_snapshot
    if latest is not None and latest.offset > 0 and offset == 0:
        return latest
    if offset == 0 and log.start_offset == 0:
        return None
    earliest = log.earliest_snapshot
    has_snapshot = earliest is not None and latest is not None and latest.offset > 0
    if has_snapshot and (offset < log.start_offset or (earliest is not None and epoch < earliest.epoch)):
        # Unlike Kafka's, a log that ends at our start in a later epoch is told to truncate instead: it would not take a
        # snapshot that is behind it, and ask for ever.
        return latest
    end = log.end_of_epoch(epoch)
    if end.epoch != epoch or end.offset < offset:
        return end
    return None


def answer(quorum: "Quorum", parked: Parked) -> None:
    request = parked.request
    has_records = request.offset < quorum.log.end_offset
    read_from = request.offset if has_records else -1
    quorum.reply(parked.token, _fetch_response(quorum, None), read_from=read_from, max_bytes=request.max_bytes)


def _fetch_response(quorum: "Quorum", place: EpochEnd | SnapshotId | None) -> FetchResponse:
    return FetchResponse(
        Errors.NONE,
        quorum.role.epoch,
        quorum.local.id,
        quorum.local.endpoints,
        quorum.high_watermark,
        quorum.log.start_offset,
        place if isinstance(place, EpochEnd) else None,
        place if isinstance(place, SnapshotId) else None,
    )


def on_fetch_snapshot(quorum: "Quorum", request: FetchSnapshotRequest, token: object, now: int) -> None:
    error = _refusal(quorum, request.epoch)
    size = None
    if error is Errors.NONE:
        size = quorum.log.snapshot_size(request.snapshot) if request.snapshot.offset > 0 else None
        if size is None:
            error = Errors.SNAPSHOT_NOT_FOUND
        elif not 0 <= request.position < size:
            error = Errors.POSITION_OUT_OF_RANGE
    if error is not Errors.NONE or size is None:
        place = (quorum.role.epoch, quorum.leader_id, quorum.leader_endpoints)
        quorum.reply(token, FetchSnapshotResponse(error, *place, snapshot=request.snapshot))
        return
    role = quorum.role
    assert isinstance(role, Leader)
    _saw(quorum, role, request.replica, now)
    response = FetchSnapshotResponse(
        Errors.NONE,
        role.epoch,
        quorum.local.id,
        quorum.local.endpoints,
        request.snapshot,
        size,
        request.position,
    )
    quorum.reply(token, response, read_from=request.position, max_bytes=request.max_bytes)
