"""Elections: standing, asking for votes, counting them, and giving one's own (PreVote first, KIP-996)."""

from typing import TYPE_CHECKING

from ottla.model.errors import Errors
from ottla.raft.election import NOBODY
from ottla.raft.exchange import HEARD, VoteRequest, VoteResponse
from ottla.raft.roles import NEVER, Candidate, Election, Follower, Leader, Prospective, Resigned, Unattached
from ottla.raft.voters import NO_DIRECTORY, ReplicaKey

if TYPE_CHECKING:
    from ottla.raft.core import Quorum


def stand(quorum: "Quorum", now: int) -> None:
    """From Follower, Unattached or Candidate to Prospective, and on if nobody else has to be asked."""
    role = quorum.role
    assert not isinstance(role, Leader | Prospective)
    quorum.fail_parked()
    leader_id, endpoints = quorum.leader_id, quorum.leader_endpoints
    voted = quorum.local.key if isinstance(role, Candidate) else None if isinstance(role, Resigned) else role.voted
    election = _new_election(quorum)
    prospective = Prospective(
        role.epoch, election_due(quorum, now), election, leader_id=leader_id, endpoints=endpoints, voted=voted
    )
    quorum.become(prospective)
    if election.is_won:
        _become_candidate(quorum, now)
    else:
        ask_for_votes(quorum, prospective, now)


def _new_election(quorum: "Quorum") -> Election:
    election = Election(quorum.voters)
    if quorum.is_voter:
        election.record(quorum.local.id, granted=True)
    return election


def election_due(quorum: "Quorum", now: int) -> int:
    timeout = quorum.timing.election_timeout_ms
    return now + timeout + quorum.draw(0, timeout)


def _become_candidate(quorum: "Quorum", now: int) -> None:
    epoch = quorum.role.epoch + 1
    election = _new_election(quorum)
    candidate = Candidate(epoch, election_due(quorum, now), election)
    quorum.become(candidate)
    if election.is_won:
        # The own vote decides, so vote and victory are one write.
        quorum.lead(candidate, now)
    else:
        quorum.persist()
        ask_for_votes(quorum, candidate, now)


def ask_for_votes(quorum: "Quorum", role: Prospective | Candidate, now: int) -> None:
    election = role.election
    if election.is_lost:
        return
    for voter in election.unanswered():
        if voter.id != quorum.local.id and voter.id not in election.asked and election.retry_at.get(voter.id, 0) <= now:
            election.retry_at.pop(voter.id, None)
            request = VoteRequest(
                role.epoch,
                quorum.local.key,
                voter.key,
                quorum.log.last_epoch,
                quorum.log.end_offset,
                type(role) is Prospective,
            )
            election.asked[voter.id] = request
            quorum.send(voter.endpoints, voter.id, request)


def election_over(quorum: "Quorum", role: Prospective | Candidate, now: int) -> None:
    """Nobody has won in time, or too many have refused."""
    if type(role) is Candidate:
        stand(quorum, now)
    elif role.leader_id != NOBODY and role.endpoints:
        quorum.attempts += 1
        quorum.become_follower(role.epoch, role.leader_id, role.endpoints, now)
    else:
        quorum.unattach(role.epoch, _retry_soon(quorum, now))


def _retry_soon(quorum: "Quorum", now: int) -> int:
    """After a lost round: soon, at a random moment, and later each time, so that rivals get out of step."""
    quorum.attempts += 1
    limit = min(quorum.timing.grace_ms << min(quorum.attempts, 10), max(quorum.timing.backoff_max_ms, 1))
    return now + quorum.draw(min(quorum.timing.grace_ms // 2, limit), limit)


def answered(quorum: "Quorum", sender: int, request: VoteRequest, response: VoteResponse | None, now: int) -> None:
    role = quorum.role
    is_mine = (
        (type(role) is Prospective or type(role) is Candidate)
        and role.epoch == request.epoch
        and request.pre_vote == (type(role) is Prospective)
        and role.election.asked.get(sender) is request
    )
    if is_mine:
        assert isinstance(role, Prospective | Candidate)
        del role.election.asked[sender]
    if response is None or response.error not in HEARD:
        if is_mine:
            assert isinstance(role, Prospective | Candidate)
            role.election.retry_at[sender] = now + quorum.timing.retry_backoff_ms
            _give_up_if_stuck(quorum, role, now)
        return
    if quorum.heard(response, now) or not is_mine or response.error is not Errors.NONE:
        return
    if response.leader_id == sender and type(role) is Prospective and role.endpoints:
        quorum.become_follower(role.epoch, sender, role.endpoints, now)  # it lives
    else:
        assert isinstance(role, Prospective | Candidate)
        _count(quorum, role, sender, now, granted=response.granted)


def _count(quorum: "Quorum", role: Prospective | Candidate, sender: int, now: int, *, granted: bool) -> None:
    election = role.election
    election.record(sender, granted=granted)
    if election.is_won:
        if type(role) is Candidate:
            quorum.lead(role, now)
        else:
            _become_candidate(quorum, now)
    elif election.is_lost:
        if type(role) is Prospective:
            election_over(quorum, role, now)
        else:
            role.due = min(role.due, _retry_soon(quorum, now))
    else:
        _give_up_if_stuck(quorum, role, now)


def _give_up_if_stuck(quorum: "Quorum", role: Prospective | Candidate, now: int) -> None:
    """When one of three voters is dead and the other two stand at once, each refuses the other and nobody has a
    majority against him: to wait for the dead one's vote would take the whole election timeout."""
    election = role.election
    if election.is_stuck and not election.is_given_up:
        election.is_given_up = True
        role.due = min(role.due, _retry_soon(quorum, now))


def asked(quorum: "Quorum", request: VoteRequest, token: object, now: int) -> None:
    error, granted = _judge_vote(quorum, request, now)
    quorum.reply(token, VoteResponse(error, quorum.role.epoch, quorum.leader_id, quorum.leader_endpoints, granted))


def _judge_vote(quorum: "Quorum", request: VoteRequest, now: int) -> tuple[Errors, bool]:
    behind = request.epoch if request.pre_vote else request.epoch - 1
    if request.last_offset < 0 or request.last_epoch < 0 or request.last_epoch > behind:
        return Errors.INVALID_REQUEST, False
    if request.epoch < quorum.role.epoch:
        return Errors.FENCED_LEADER_EPOCH, False
    if request.epoch > quorum.role.epoch:
        quorum.become_unattached(request.epoch, now)
    if not quorum.is_meant(request.voter):
        return Errors.INVALID_VOTER_KEY, False
    granted = _grants(quorum, request)
    if granted and not request.pre_vote:
        _vote_for(quorum, request.candidate, now)
    return Errors.NONE, granted


def _grants(quorum: "Quorum", request: VoteRequest) -> bool:
    role = quorum.role
    if type(role) is Leader:
        return False
    if request.pre_vote:
        # A follower that hears from its leader sees no reason for an election.
        follows = type(role) is Follower and role.has_fetched and not role.lost
        return not follows and quorum.is_up_to_date(request.last_epoch, request.last_offset)
    if type(role) is not Unattached and type(role) is not Prospective:
        return False
    if role.voted is not None:
        return role.voted.id == request.candidate.id and role.voted.directory_id in (
            NO_DIRECTORY,
            request.candidate.directory_id,
        )
    return role.leader_id == NOBODY and quorum.is_up_to_date(request.last_epoch, request.last_offset)


def _vote_for(quorum: "Quorum", candidate: ReplicaKey, now: int) -> None:
    role = quorum.role
    assert isinstance(role, Unattached | Prospective)
    if role.voted is not None:
        return
    if isinstance(role, Prospective):
        role = Unattached(role.epoch, role.due, leader_id=role.leader_id)
        quorum.become(role)
    role.voted = candidate
    role.due = election_due(quorum, now) if quorum.may_stand else NEVER
    quorum.persist()
