"""KIP-853: voters that come, go and move, one at a time."""

import pytest

from ottla.model.errors import Errors
from ottla.raft.core import Timing
from ottla.raft.election import ElectionState
from ottla.raft.exchange import (
    AddVoterRequest,
    Advance,
    AppendControl,
    Effect,
    FetchRequest,
    RemoveVoterRequest,
    Reply,
    Request,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoteRequest,
)
from ottla.raft.roles import NEVER, Follower, Leader, Resigned, Unattached
from ottla.raft.voters import ReplicaKey, Voter, VoterEndpoint
from tests.rules.raft.scene import (
    TIMING,
    Member,
    a_fetch,
    a_vote_request,
    a_voter,
    answer,
    from_leader,
    key,
    of,
    place,
    requests,
    the_voters,
)

GOOD = VersionsResponse(Errors.NONE, kraft_versions=(0, 1))


def a_leader(*voters: int) -> Member:
    """Active, with the voters in its log and committed; node 9 follows as an observer that has caught up."""
    leader = Member(1, voters or (1, 2, 3), dynamic=True).lead(1000)
    for other in (voters or (1, 2, 3))[1:]:
        leader.ask(a_fetch(other, 1), 1000)
    leader.ask(a_fetch(9, 1), 1000)
    assert leader.quorum.is_active
    return leader


def add(voter: Voter = a_voter(9), *, when_committed: bool = True) -> AddVoterRequest:  # noqa: B008
    return AddVoterRequest(voter, when_committed, 1500)


def added(leader: Member, request: AddVoterRequest, versions: VersionsResponse | None = GOOD) -> list[Effect]:
    """The effects of what the new voter says of itself."""
    ((to, question),) = requests(leader.ask(request, 1000, token="add"))
    assert (to, question) == (9, VersionsRequest(key(9)))
    return leader.hear(9, question, versions, 1001)


def reply_to(token: str, effects: list[Effect]) -> Errors | None:
    return next((r.response.error for r in of(Reply, effects) if r.token == token), None)


def test_a_voter_is_added_when_a_majority_of_the_new_voters_has_the_record() -> None:
    leader = a_leader()
    effects = added(leader, add())
    assert len(of(AppendControl, effects)) == 1
    assert reply_to("add", effects) is None
    assert leader.quorum.voters == the_voters(1, 2, 3, 9, dynamic=True)
    leader.flush(1002)
    assert of(Advance, leader.ask(a_fetch(2, 2), 1003)) == []  # two of four
    effects = leader.ask(a_fetch(9, 2), 1004)
    assert of(Advance, effects) == [Advance(2)]
    assert reply_to("add", effects) is Errors.NONE


def test_who_joins_by_itself_is_answered_before_the_commit_it_has_to_take_part_in() -> None:
    leader = a_leader()
    assert reply_to("add", added(leader, add(when_committed=False))) is Errors.NONE


@pytest.mark.parametrize(
    ("versions", "error"),
    [
        (None, Errors.REQUEST_TIMED_OUT),
        (VersionsResponse(Errors.UNSUPPORTED_VERSION), Errors.REQUEST_TIMED_OUT),
        (VersionsResponse(Errors.NONE, kraft_versions=(0, 0)), Errors.INVALID_REQUEST),
    ],
)
def test_a_voter_that_does_not_answer_or_is_too_old_is_not_added(
    versions: VersionsResponse | None, error: Errors
) -> None:
    leader = a_leader()
    effects = added(leader, add(), versions)
    assert reply_to("add", effects) is error
    assert of(AppendControl, effects) == []
    assert requests(leader.ask(add(), 1010)) != []  # and the next may be


def test_a_voter_that_has_not_caught_up_is_not_added() -> None:
    leader = Member(1, dynamic=True).lead(1000)
    leader.ask(a_fetch(2, 1), 1000)
    assert reply_to("add", added(leader, add())) is Errors.REQUEST_TIMED_OUT
    leader.append(5)
    leader.ask(a_fetch(9, 1), 1000)
    assert reply_to("add", added(leader, add())) is Errors.REQUEST_TIMED_OUT
    leader.ask(a_fetch(9, 2), 1000)
    assert reply_to("add", added(leader, add())) is None


def test_the_conditions_for_a_change_are_checked_in_kafkas_order() -> None:
    follower = Member(1, dynamic=True).follow(2)
    assert answer(follower.ask(add())).error is Errors.NOT_LEADER_OR_FOLLOWER
    fresh = Member(1, dynamic=True).lead(1000)
    assert answer(fresh.ask(add(), 1000)).error is Errors.REQUEST_TIMED_OUT  # nothing committed in its epoch
    static = Member(1).lead(1000)
    static.ask(a_fetch(2, 1), 1000)
    for request in (add(), RemoveVoterRequest(key(2)), UpdateVoterRequest(1, a_voter(2))):
        assert answer(static.ask(request, 1001)).error is Errors.UNSUPPORTED_VERSION
    leader = a_leader()
    assert answer(leader.ask(add(a_voter(2, disk=7)), 1001)).error is Errors.DUPLICATE_VOTER
    assert answer(leader.ask(add(a_voter(9)._replace(endpoints=())), 1001)).error is Errors.INVALID_REQUEST
    assert answer(leader.ask(add(Voter(9, endpoints=place(9))), 1001)).error is Errors.INVALID_REQUEST


def test_one_change_at_a_time() -> None:
    leader = a_leader()
    leader.ask(add(), 1000)
    busy: list[Request] = [add(a_voter(8)), RemoveVoterRequest(key(2)), UpdateVoterRequest(1, a_voter(2))]
    for request in busy:
        assert answer(leader.ask(request, 1001)).error is Errors.REQUEST_TIMED_OUT


def test_a_change_whose_asker_gave_up_still_blocks_the_next_until_it_is_committed() -> None:
    leader = a_leader()
    added(leader, add())
    effects = leader.tick(1000 + 1500)
    assert reply_to("add", effects) is Errors.REQUEST_TIMED_OUT
    assert answer(leader.ask(RemoveVoterRequest(key(2)), 2600)).error is Errors.REQUEST_TIMED_OUT
    leader.flush(2700)
    leader.ask(a_fetch(2, 2), 2700)
    leader.ask(a_fetch(3, 2), 2700)
    assert leader.quorum.high_watermark == 2
    assert reply_to("remove", leader.ask(RemoveVoterRequest(key(2)), 2800, token="remove")) is None
    assert leader.quorum.voters.ids == (1, 3, 9)


def test_a_leader_that_steps_down_says_so_to_who_asked_for_a_change() -> None:
    leader = a_leader()
    leader.ask(add(), 1000, token="add")
    assert reply_to("add", leader.ask(a_vote_request(2, 2, last=(1, 99)), 1100)) is Errors.NOT_LEADER_OR_FOLLOWER


def test_a_voter_leaves_and_the_majority_is_that_of_those_who_stay() -> None:
    leader = a_leader()
    leader.ask(RemoveVoterRequest(key(3)), 1000, token="remove")
    assert leader.quorum.voters.ids == (1, 2)
    leader.flush(1001)
    leader.ask(a_fetch(3, 2), 1002)
    assert leader.quorum.high_watermark == 1
    assert reply_to("remove", leader.ask(a_fetch(2, 2), 1003)) is Errors.NONE


@pytest.mark.parametrize(
    ("gone", "error"),
    [
        (key(8), Errors.VOTER_NOT_FOUND),
        (key(3, disk=1), Errors.VOTER_NOT_FOUND),
        (ReplicaKey(3), Errors.INVALID_REQUEST),
    ],
)
def test_only_a_voter_can_leave(gone: ReplicaKey, error: Errors) -> None:
    assert answer(a_leader().ask(RemoveVoterRequest(gone), 1000)).error is error


def test_the_last_voter_cannot_leave() -> None:
    leader = Member(1, (1,), dynamic=True)
    leader.tick(0)
    leader.flush()
    assert answer(leader.ask(RemoveVoterRequest(key(1)))).error is Errors.VOTER_NOT_FOUND


def test_a_leader_that_removes_itself_leads_until_that_is_committed_without_counting_itself() -> None:
    leader = a_leader()
    leader.ask(RemoveVoterRequest(key(1)), 1000, token="remove")
    leader.flush(1001)
    leader.ask(a_fetch(2, 2), 1002)
    assert leader.quorum.high_watermark == 1
    assert isinstance(leader.quorum.role, Leader)
    effects = leader.ask(a_fetch(3, 2), 1003)
    assert Advance(2) in effects
    assert reply_to("remove", effects) is Errors.NONE
    assert isinstance(leader.quorum.role, Resigned)


def test_a_removed_voter_may_be_needed_until_its_removal_is_committed() -> None:
    """With two voters, a leader that dies with its own removal in its log alone: nobody else can win."""
    member = Member(1, (1, 2), dynamic=True, epochs=(1,), election=ElectionState(1, leader_id=1))
    member.log.append(1, the_voters(2, dynamic=True))
    member.flush()
    assert member.quorum.may_stand
    asked = requests(member.tick(member.quorum.role.due if isinstance(member.quorum.role, Unattached) else 0))
    assert [to for to, r in asked if isinstance(r, VoteRequest)] == [2]
    member.follow(2, epoch=2)
    member.fetched(from_leader(member, epoch=2, high_watermark=2))
    assert not member.quorum.may_stand
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.due == NEVER


def test_a_voter_that_moved_tells_the_leader_and_is_updated() -> None:
    elsewhere = a_voter(2)._replace(endpoints=(VoterEndpoint("CONTROLLER", "new", 1),))
    leader = a_leader()
    effects = leader.ask(UpdateVoterRequest(1, elsewhere), 1000)
    assert reply_to("t", effects) is Errors.NONE
    assert leader.quorum.voters.find(2) == elsewhere
    same = leader.log.end_offset
    leader.flush()
    leader.ask(a_fetch(2, 2), 1001)
    assert reply_to("t", leader.ask(UpdateVoterRequest(1, elsewhere), 1002)) is Errors.NONE
    assert leader.log.end_offset == same


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (UpdateVoterRequest(0, a_voter(2)), Errors.FENCED_LEADER_EPOCH),
        (UpdateVoterRequest(2, a_voter(2)), Errors.UNKNOWN_LEADER_EPOCH),
        (UpdateVoterRequest(1, a_voter(2, disk=1)), Errors.VOTER_NOT_FOUND),
        (UpdateVoterRequest(1, a_voter(8)), Errors.VOTER_NOT_FOUND),
        (UpdateVoterRequest(1, a_voter(2)._replace(endpoints=())), Errors.INVALID_REQUEST),
        (UpdateVoterRequest(1, a_voter(2)._replace(kraft_versions=(0, 0))), Errors.INVALID_REQUEST),
    ],
)
def test_an_update_that_does_not_fit_is_refused(request_: UpdateVoterRequest, error: Errors) -> None:
    assert answer(a_leader().ask(request_, 1000)).error is error


# What a follower does of its own accord


def told(member: Member, now: int) -> list[object]:
    member.fetched(from_leader(member), now)
    return [r for _, r in requests(member.done) if not isinstance(r, FetchRequest)]


def test_a_voter_whose_listeners_changed_says_so_after_a_while() -> None:
    member = Member(1, dynamic=True)
    old = a_voter(1)._replace(endpoints=(VoterEndpoint("CONTROLLER", "old", 1),))
    member.log.history.restart(-1, the_voters(1, 2, 3, dynamic=True).updated(old), 1)
    member.follow(2)
    assert told(member, 10) == []
    assert told(member, TIMING.fetch_timeout_ms) == [UpdateVoterRequest(1, a_voter(1))]


def test_auto_join_a_new_controller_asks_to_become_a_voter() -> None:
    member = Member(9, dynamic=True, timing=Timing(auto_join=True)).follow(2)
    assert told(member, TIMING.fetch_timeout_ms) == [AddVoterRequest(a_voter(9), False, TIMING.request_timeout_ms)]
    unasked = Member(9, dynamic=True).follow(2)
    assert told(unasked, TIMING.fetch_timeout_ms) == []


def test_auto_join_with_a_new_disk_the_old_voter_leaves_first() -> None:
    member = Member(3, dynamic=True, timing=Timing(auto_join=True), disk=1).follow(2)
    assert told(member, TIMING.fetch_timeout_ms) == [RemoveVoterRequest(key(3))]


def test_an_observer_that_the_log_makes_a_voter_begins_to_watch_its_leader() -> None:
    member = Member(9, dynamic=True).follow(2)
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.due == NEVER
    member.log.append(1, the_voters(1, 2, 3, 9, dynamic=True))
    member.flush(77)
    assert member.quorum.role.due == 77 + TIMING.fetch_timeout_ms
