"""Voters that come, go and move (KIP-853): one change at a time, each committed by the majority it leads to."""

from typing import TYPE_CHECKING

from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID
from ottla.raft.exchange import (
    AddVoterRequest,
    AppendControl,
    ChangeResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
)
from ottla.raft.roles import Leader, VoterChange
from ottla.raft.voters import Voter, VoterSet, voters_record

if TYPE_CHECKING:
    from ottla.raft.core import Quorum

_CAUGHT_UP_MS = 3_600_000


def on_add(quorum: "Quorum", request: AddVoterRequest, token: object, now: int) -> None:
    refused = _refusal(quorum, now)
    voter = request.voter
    if refused is None and (voter.directory_id == ZERO_UUID or voter.id < 0 or not voter.endpoints):
        refused = Errors.INVALID_REQUEST, "a voter is named by id, directory id and listeners"
    if refused is None and quorum.voters.find(voter.id) is not None:
        refused = Errors.DUPLICATE_VOTER, f"node {voter.id} is among the voters {quorum.voters.ids}"
    if refused is not None:
        _answer(quorum, token, *refused)
        return
    role = quorum.role
    assert isinstance(role, Leader)
    timeout = min(request.timeout_ms, quorum.timing.request_timeout_ms)
    role.change = VoterChange(token, voter, now + timeout, ack_early=not request.ack_when_committed)
    quorum.send(voter.endpoints, voter.id, VersionsRequest(voter.key))


def versions_response(
    quorum: "Quorum", sender: int, request: VersionsRequest, response: VersionsResponse | None, now: int
) -> None:
    role = quorum.role
    change = role.change if type(role) is Leader else None
    if type(role) is not Leader or change is None or change.offset >= 0 or change.voter.key != request.voter:
        return
    if response is None or response.error is not Errors.NONE:
        _finish(quorum, role, Errors.REQUEST_TIMED_OUT, f"node {change.voter.id} does not answer at its listeners")
        return
    low, high = response.kraft_versions
    if not low <= quorum.log.history.kraft_version <= high:
        text = f"node {change.voter.id} supports kraft.version {low} to {high}"
        _finish(quorum, role, Errors.INVALID_REQUEST, text)
        return
    if not is_caught_up(role, change.voter, now):
        text = f"node {change.voter.id} has not caught up with the log"
        _finish(quorum, role, Errors.REQUEST_TIMED_OUT, text)
        return
    voter = change.voter._replace(kraft_versions=(low, high))
    _append(quorum, role, change, quorum.voters.joined_by(voter))
    if change.ack_early and change.token is not None:
        _answer(quorum, change.token, Errors.NONE)
        change.token = None


def is_caught_up(role: Leader, voter: Voter, now: int) -> bool:
    observer = role.observers.get(voter.key)
    return observer is not None and observer.caught_up_at >= 0 and observer.fetched_at > now - _CAUGHT_UP_MS


def on_remove(quorum: "Quorum", request: RemoveVoterRequest, token: object, now: int) -> None:
    refused = _refusal(quorum, now)
    if refused is None and request.voter.directory_id == ZERO_UUID:
        refused = Errors.INVALID_REQUEST, "a voter is named by id and directory id"
    remaining = quorum.voters.without(request.voter)
    if refused is None and (remaining == quorum.voters or not remaining.voters):
        refused = Errors.VOTER_NOT_FOUND, f"voter {request.voter.id} cannot leave the voters {quorum.voters.ids}"
    if refused is not None:
        _answer(quorum, token, *refused)
        return
    role = quorum.role
    assert isinstance(role, Leader)
    deadline = now + quorum.timing.request_timeout_ms
    role.change = VoterChange(token, Voter(*request.voter), deadline, ack_early=False)
    _append(quorum, role, role.change, remaining)


def on_update(quorum: "Quorum", request: UpdateVoterRequest, token: object, now: int) -> None:
    role, voter = quorum.role, request.voter
    if type(role) is Leader and request.epoch != role.epoch:
        fenced = request.epoch < role.epoch
        _answer(quorum, token, Errors.FENCED_LEADER_EPOCH if fenced else Errors.UNKNOWN_LEADER_EPOCH)
        return
    refused = _refusal(quorum, now)
    low, high = voter.kraft_versions
    if refused is None and (not voter.endpoints or not 0 <= low <= quorum.log.history.kraft_version <= high):
        refused = Errors.INVALID_REQUEST, None
    known = quorum.voters.find(voter.id)
    if refused is None and (known is None or known.key != voter.key):
        refused = Errors.VOTER_NOT_FOUND, None
    if refused is not None:
        _answer(quorum, token, *refused)
        return
    assert isinstance(role, Leader)
    if known != voter:
        # Answered at once, as Kafka does: the voter sees by the log whether it came to pass.
        change = VoterChange(None, voter, now + quorum.timing.request_timeout_ms, ack_early=False)
        role.change = change
        _append(quorum, role, change, quorum.voters.updated(voter))
    _answer(quorum, token, Errors.NONE)


def _refusal(quorum: "Quorum", now: int) -> tuple[Errors, str | None] | None:
    """Why the voters cannot change now. The conditions and their order are those of Kafka's AddVoterHandler."""
    role = quorum.role
    if type(role) is not Leader:
        return Errors.NOT_LEADER_OR_FOLLOWER, None
    expire(quorum, role, now)
    if role.change is not None:
        return Errors.REQUEST_TIMED_OUT, "another change of the voters is under way"
    if not quorum.is_active:
        return Errors.REQUEST_TIMED_OUT, "the leader has not committed a record of its epoch yet"
    history = quorum.log.history
    if history.kraft_version < 1:
        return Errors.UNSUPPORTED_VERSION, f"kraft.version is {history.kraft_version}: the voters are fixed"
    if history.offset >= quorum.high_watermark:
        return Errors.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet"
    return None


def _append(quorum: "Quorum", role: Leader, change: VoterChange, voters: VoterSet) -> None:
    change.offset = quorum.log.end_offset
    quorum.emit(AppendControl(role.epoch, (voters_record(voters),)))


def committed(quorum: "Quorum", role: Leader, now: int) -> None:
    change = role.change
    if change is not None and 0 <= change.offset < quorum.high_watermark:
        _finish(quorum, role, Errors.NONE)
    if not quorum.is_voter and quorum.log.history.offset < quorum.high_watermark:
        # It led the change that removed it, and has no say in what comes.
        quorum.become_resigned(role, now)
        quorum.act(now)


def expire(quorum: "Quorum", role: Leader, now: int) -> None:
    """Its asker gives up. A record that is in the log already stays, and blocks the next change until it is settled."""
    if role.change is not None and role.change.deadline <= now:
        _finish(quorum, role, Errors.REQUEST_TIMED_OUT)


def abandon(quorum: "Quorum", role: Leader) -> None:
    if role.change is not None:
        _finish(quorum, role, Errors.NOT_LEADER_OR_FOLLOWER)


def _finish(quorum: "Quorum", role: Leader, error: Errors, message: str | None = None) -> None:
    change, role.change = role.change, None
    if change is not None and change.token is not None:
        _answer(quorum, change.token, error, message)


def _answer(quorum: "Quorum", token: object, error: Errors, message: str | None = None) -> None:
    response = ChangeResponse(error, quorum.role.epoch, quorum.leader_id, quorum.leader_endpoints, message)
    quorum.reply(token, response)
