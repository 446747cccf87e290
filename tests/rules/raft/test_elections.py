"""Elections: who stands when, who votes for whom, and what a restart must remember."""

import pytest

from ottla.model.errors import Errors
from ottla.raft.core import Timing
from ottla.raft.election import ElectionState
from ottla.raft.exchange import (
    AppendControl,
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    Persist,
    Send,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.roles import NEVER, BrokenQuorum, Candidate, Follower, Leader, Prospective, Resigned, Unattached
from ottla.raft.voters import ReplicaKey
from tests.rules.raft.scene import (
    TIMING,
    Member,
    a_fetch,
    a_vote_request,
    answer,
    answers,
    directory,
    from_leader,
    granted,
    key,
    of,
    place,
    refused,
    requests,
)

SOON = TIMING.grace_ms // 2


def pre_vote(candidate: int, voter: int, epoch: int, last: tuple[int, int] = (0, 0)) -> VoteRequest:
    """Static voters are addressed by their id alone."""
    return VoteRequest(epoch, key(candidate), ReplicaKey(voter), *last, True)


def test_with_other_voters_promises_are_asked_for_before_a_vote_costs_an_epoch() -> None:
    member = Member()
    effects = member.tick(SOON)
    assert effects == [Send(place(2), 2, pre_vote(1, 2, 0)), Send(place(3), 3, pre_vote(1, 3, 0))]
    assert isinstance(member.quorum.role, Prospective)
    assert member.quorum.epoch == 0


def test_a_majority_of_promises_makes_a_candidate_and_its_vote_is_durable_before_anyone_is_asked() -> None:
    member = Member()
    asked = member.tick(SOON)
    effects = member.hear(2, requests(asked)[0][1], granted(0), SOON)
    assert effects[0] == Persist(ElectionState(1, -1, 1, directory(1)))
    assert [(to, r.epoch, r.pre_vote) for to, r in requests(effects) if isinstance(r, VoteRequest)] == [
        (2, 1, False),
        (3, 1, False),
    ]
    assert isinstance(member.quorum.role, Candidate)


def test_a_majority_of_votes_makes_a_leader_who_begins_its_epoch_and_tells_the_others() -> None:
    member = Member()
    first = member.tick(SOON)
    second = member.hear(2, requests(first)[0][1], granted(0), SOON)
    effects = member.hear(3, requests(second)[1][1], granted(1), SOON)
    assert effects[0] == Persist(ElectionState(1, 1))
    assert isinstance(effects[1], AppendControl)
    begin = [r for _, r in requests(effects)]
    assert begin == [
        BeginEpochRequest(1, 1, place(1), ReplicaKey(2)),
        BeginEpochRequest(1, 1, place(1), ReplicaKey(3)),
    ]
    assert isinstance(member.quorum.role, Leader)


def test_a_voter_that_cannot_be_reached_is_asked_again() -> None:
    member = Member()
    request = requests(member.tick(SOON))[0][1]
    member.hear(2, request, None, SOON)
    assert member.tick(SOON + 1) == []
    again = member.tick(SOON + TIMING.retry_backoff_ms)
    assert requests(again) == [(2, request)]


def test_promises_that_are_refused_lead_back_to_waiting_without_a_new_epoch() -> None:
    member = Member()
    for to, request in requests(member.tick(SOON)):
        member.hear(to, request, refused(0), SOON)
    assert isinstance(member.quorum.role, Unattached)
    assert member.quorum.epoch == 0
    assert member.quorum.role.due > SOON


def test_a_candidate_that_lost_stands_again_soon_and_asks_for_promises_first() -> None:
    member = Member()
    votes = member.hear(2, requests(member.tick(SOON))[0][1], granted(0), SOON)
    for to, request in requests(votes):
        member.hear(to, request, refused(1), SOON)
    role = member.quorum.role
    assert isinstance(role, Candidate)
    assert role.due <= SOON + TIMING.backoff_max_ms
    assert all(r.pre_vote for _, r in requests(member.tick(role.due)) if isinstance(r, VoteRequest))
    assert isinstance(member.quorum.role, Prospective)


@pytest.mark.parametrize("dead_first", [True, False])
def test_a_candidate_between_a_rival_and_a_dead_voter_stands_again_soon(dead_first: bool) -> None:
    member = Member()
    votes = requests(member.hear(2, requests(member.tick(SOON))[0][1], granted(0), SOON))
    answers_heard = [(votes[1], None), (votes[0], refused(1))]
    for (to, request), heard in answers_heard if dead_first else reversed(answers_heard):
        member.hear(to, request, heard, SOON)
    role = member.quorum.role
    assert isinstance(role, Candidate)
    assert SOON < role.due <= SOON + 2 * TIMING.grace_ms
    due, later = role.due, SOON + TIMING.retry_backoff_ms
    for to, request in requests(member.tick(later)):
        member.hear(to, request, None, later)
    assert (member.quorum.role, role.due) == (role, due)  # still dead, and nothing new


def test_a_candidate_that_nobody_refused_waits_for_those_out_of_reach() -> None:
    member = Member()
    votes = requests(member.hear(2, requests(member.tick(SOON))[0][1], granted(0), SOON))
    for to, request in votes:
        member.hear(to, request, None, SOON)
    role = member.quorum.role
    assert isinstance(role, Candidate)
    assert role.due >= SOON + TIMING.election_timeout_ms


def test_answers_to_earlier_rounds_do_not_count() -> None:
    member = Member(voters=(1, 2, 3, 4, 5))
    old = requests(member.tick(SOON))
    votes = requests(member.hear(3, old[1][1], granted(0), SOON) + member.hear(2, old[0][1], granted(0), SOON))
    assert isinstance(member.quorum.role, Candidate)
    member.hear(4, old[2][1], granted(0), SOON)
    member.hear(5, old[3][1], granted(1), SOON)
    assert isinstance(member.quorum.role, Candidate)
    assert len(votes) == 4


# Votes


def test_a_vote_is_on_the_disk_before_it_is_given() -> None:
    effects = Member(1).ask(a_vote_request(2, 5))
    assert effects[0] == Persist(ElectionState(5, -1, 2, directory(2)))
    assert answer(effects[1:]) == VoteResponse(Errors.NONE, 5, granted=True)


def test_there_is_one_vote_in_an_epoch_and_it_may_be_repeated() -> None:
    member = Member(1)
    assert answer(member.ask(a_vote_request(2, 5))).granted
    assert not answer(member.ask(a_vote_request(3, 5))).granted
    again = member.ask(a_vote_request(2, 5))
    assert answer(again).granted
    assert of(Persist, again) == []
    assert answer(member.ask(a_vote_request(3, 6))).granted


def test_a_candidate_with_a_new_disk_is_another_candidate() -> None:
    member = Member(1)
    assert answer(member.ask(a_vote_request(2, 5))).granted
    assert not answer(member.ask(a_vote_request(2, 5, disk=1))).granted


@pytest.mark.parametrize(
    ("last", "good"), [((3, 2), True), ((2, 3), True), ((2, 2), False), ((1, 9), False), ((3, 0), True)]
)
def test_a_vote_goes_only_to_a_log_that_has_all_of_ours(last: tuple[int, int], good: bool) -> None:
    for early in (False, True):
        member = Member(1, epochs=(1, 2, 2))
        assert answer(member.ask(a_vote_request(2, 9, last=last, pre_vote=early))).granted is good


def test_a_vote_request_of_an_earlier_epoch_is_fenced() -> None:
    member = Member(1, election=ElectionState(7))
    assert answer(member.ask(a_vote_request(2, 6))) == VoteResponse(Errors.FENCED_LEADER_EPOCH, 7)


@pytest.mark.parametrize("bad", [(-1, 0), (0, -1), (5, 0), (6, 0)])
def test_a_candidate_cannot_have_a_log_of_its_own_epoch(bad: tuple[int, int]) -> None:
    assert answer(Member(1).ask(a_vote_request(2, 5, last=bad))).error is Errors.INVALID_REQUEST


def test_who_is_asked_under_another_name_does_not_vote() -> None:
    member = Member(1)
    for wrong in (key(3), key(1, disk=1)):
        assert answer(member.ask(a_vote_request(2, 5, voter=wrong))).error is Errors.INVALID_VOTER_KEY
    assert answer(member.ask(a_vote_request(2, 5, voter=key(1)))).granted


def test_a_promise_changes_nothing() -> None:
    member = Member(1)
    effects = member.ask(a_vote_request(2, 0, pre_vote=True))
    assert answer(effects).granted
    assert of(Persist, effects) == []


def test_kip_996_a_follower_that_hears_from_its_leader_promises_nothing() -> None:
    member = Member(1).follow(2)
    assert answer(member.ask(a_vote_request(3, 1, pre_vote=True))).granted  # it has not heard from it yet
    member.fetched(from_leader(member))
    assert not answer(member.ask(a_vote_request(3, 1, pre_vote=True))).granted
    member.hear(2, member.fetch, None)
    assert answer(member.ask(a_vote_request(3, 1, pre_vote=True))).granted
    assert not answer(member.ask(a_vote_request(3, 1))).granted


def test_a_leader_votes_for_nobody_in_its_epoch_and_gives_up_for_a_later_one() -> None:
    leader = Member(1).lead()
    early = answer(leader.ask(a_vote_request(2, 1, last=(1, 99), pre_vote=True)))
    assert (early.granted, early.leader_id, early.endpoints) == (False, 1, place(1))
    effects = leader.ask(a_vote_request(2, 2, last=(1, 99)))
    assert answer(effects).granted
    assert isinstance(leader.quorum.role, Unattached)


def test_a_prospective_that_finds_its_leader_alive_follows_it_again() -> None:
    member = Member(1).follow(2)
    member.hear(2, member.fetch, None, 10)
    asked = dict(requests(member.tick(10 + SOON)))
    assert isinstance(member.quorum.role, Prospective)
    member.hear(2, asked[2], VoteResponse(Errors.NONE, 1, 2, place(2)), 100)
    assert isinstance(member.quorum.role, Follower)
    member.hear(2, member.fetch, None, 110)
    member.tick(2000)
    assert isinstance(member.quorum.role, Prospective)
    member.ask(BeginEpochRequest(1, 2, place(2), key(1)), 2001)
    assert isinstance(member.quorum.role, Follower)


# When


def test_a_silent_leader_is_given_the_whole_fetch_timeout() -> None:
    member = Member(1).follow(2)
    assert member.quorum.deadline() == TIMING.fetch_timeout_ms
    member.tick(TIMING.fetch_timeout_ms - 1)
    assert isinstance(member.quorum.role, Follower)
    member.tick(TIMING.fetch_timeout_ms)
    assert isinstance(member.quorum.role, Prospective)


def test_a_broken_connection_to_the_leader_shortens_the_wait() -> None:
    member = Member(1).follow(2)
    member.hear(2, member.fetch, None, 100)
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.due == 100 + SOON
    fetch = requests(member.tick(100 + TIMING.retry_backoff_ms))
    assert [type(r) for _, r in fetch] == [FetchRequest]
    member.fetched(from_leader(member), 130)
    assert member.quorum.role.due == 130 + TIMING.fetch_timeout_ms


def test_who_cannot_convince_the_others_asks_more_and_more_rarely() -> None:
    member = Member(1).follow(2)
    waits = []
    now = 0
    for _ in range(4):
        member.hear(2, member.fetch, None, now)
        assert isinstance(member.quorum.role, Follower)
        waits.append(member.quorum.role.due - now)
        now = member.quorum.role.due
        for to, request in requests(member.tick(now)):
            if isinstance(request, VoteRequest):
                member.hear(to, request, VoteResponse(Errors.NONE, 1, 2, place(2)) if to == 3 else None, now)
        now = member.quorum.deadline() if isinstance(member.quorum.role, Prospective) else now
        role = member.quorum.role
        while isinstance(role, Prospective):
            now = role.due
            member.tick(now)
            role = member.quorum.role
    assert waits == sorted(waits) and waits[-1] >= 4 * waits[0]


def test_an_observer_never_stands() -> None:
    member = Member(5).follow(2)
    assert isinstance(member.quorum.role, Follower)
    member.hear(2, member.fetch, None)
    member.tick(1_000_000)
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.due == NEVER
    broker = Member(1, can_vote=False)
    broker.tick(1_000_000)
    assert isinstance(broker.quorum.role, Unattached)


def test_a_resigning_leader_names_those_with_the_longest_logs_first() -> None:
    leader = Member(1).lead()
    leader.append(7)
    leader.ask(a_fetch(3, 2), 1000)
    leader.ask(a_fetch(2, 1), 1000)
    effects = leader.carry_out(leader.quorum.resign(1100), 1100)
    sent = [r for _, r in requests(effects) if isinstance(r, EndEpochRequest)]
    assert [r.successors for r in sent] == [(key(3), key(2))] * 2
    assert {a.error for a in answers(effects)} == {Errors.NOT_LEADER_OR_FOLLOWER}
    assert isinstance(leader.quorum.role, Resigned)
    assert leader.quorum.leader_id == -1


@pytest.mark.parametrize(
    ("successors", "wait"), [((1, 3), 0), ((3, 1), 500), ((3, 4, 1), 500), ((3,), 1000), ((), 1000)]
)
def test_the_first_successor_stands_at_once_and_the_others_later(successors: tuple[int, ...], wait: int) -> None:
    member = Member(1).follow(2)
    member.fetched(from_leader(member))
    request = EndEpochRequest(1, 2, place(2), tuple(key(i) for i in successors))
    assert answer(member.ask(request, 50)).error is Errors.NONE
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.due == 50 + wait


def test_a_resigned_leader_stays_out_of_its_epoch() -> None:
    leader = Member(1).lead()
    leader.carry_out(leader.quorum.resign(1100), 1100)
    role = leader.quorum.role
    assert isinstance(role, Resigned)
    assert not answer(leader.ask(a_vote_request(2, 1, last=(0, 9)))).granted
    leader.tick(role.due)
    assert (type(leader.quorum.role), leader.quorum.epoch) == (Unattached, 2)


def test_resignation_is_repeated_until_it_is_acknowledged() -> None:
    leader = Member(1).lead()
    sent = requests(leader.carry_out(leader.quorum.resign(1100), 1100))
    leader.hear(2, sent[0][1], EpochResponse(Errors.NONE, 1, 1, place(1)), 1100)
    leader.hear(3, sent[1][1], None, 1100)
    assert [to for to, _ in requests(leader.tick(1100 + TIMING.retry_backoff_ms))] == [3]


# Restarts


def test_a_restart_follows_the_leader_it_knew() -> None:
    member = Member(1, election=ElectionState(4, leader_id=2, voted_id=2))
    assert isinstance(member.quorum.role, Follower)
    assert (member.quorum.epoch, member.quorum.leader_id) == (4, 2)
    assert [to for to, _ in requests(member.tick(0))] == [2]


def test_a_former_leader_does_not_take_its_epoch_up_again_and_votes_for_nobody_in_it() -> None:
    member = Member(1, election=ElectionState(4, leader_id=1))
    assert isinstance(member.quorum.role, Unattached)
    assert not answer(member.ask(a_vote_request(2, 4, last=(3, 9)))).granted


def test_a_former_candidate_does_not_stand_in_its_epoch_again() -> None:
    """Votes may have gone to a log that was longer before the crash."""
    member = Member(1, election=ElectionState(4, voted_id=1, voted_directory_id=directory(1)))
    assert isinstance(member.quorum.role, Unattached)
    promises = requests(member.tick(SOON))
    votes = requests(member.hear(2, promises[0][1], granted(4), SOON))
    assert [r.epoch for _, r in votes if isinstance(r, VoteRequest)] == [5, 5]


def test_a_log_that_is_ahead_of_the_vote_counts() -> None:
    member = Member(1, election=ElectionState(2, voted_id=3), epochs=(1, 6))
    assert member.quorum.epoch == 6
    assert answer(member.ask(a_vote_request(2, 7, last=(6, 2)))).granted


def test_a_start_among_others_waits_only_for_a_moment() -> None:
    member = Member(1)
    assert isinstance(member.quorum.role, Unattached)
    assert member.quorum.role.due == SOON


# News


def test_a_later_epoch_in_any_answer_ends_the_own_one() -> None:
    leader = Member(1).lead()
    request = requests(leader.done)[-1][1]
    leader.hear(2, request, EpochResponse(Errors.FENCED_LEADER_EPOCH, 9, 3, place(3)), 2000)
    assert (leader.quorum.epoch, leader.quorum.leader_id) == (9, 3)
    member = Member(1)
    asked = requests(member.tick(SOON))
    member.hear(2, asked[0][1], VoteResponse(Errors.FENCED_LEADER_EPOCH, 9), SOON)
    assert (type(member.quorum.role), member.quorum.epoch) == (Unattached, 9)


def test_an_answer_of_an_earlier_epoch_says_nothing() -> None:
    member = Member(1).follow(2, epoch=5)
    member.hear(2, member.fetch, FetchResponse(Errors.NONE, 4, 3, place(3), 7), 10)
    assert (member.quorum.epoch, member.quorum.leader_id) == (5, 2)


def test_whoever_does_not_know_the_leader_asks_around() -> None:
    member = Member(5)
    ((_, request),) = requests(member.tick(0))
    assert isinstance(request, FetchRequest)
    member.hear(-1, request, FetchResponse(Errors.NOT_LEADER_OR_FOLLOWER, 3, 2, place(2)), 5)
    assert (member.quorum.epoch, member.quorum.leader_id, member.quorum.leader_endpoints) == (3, 2, place(2))
    assert member.fetch.epoch == 3


def test_two_leaders_of_one_epoch_end_this_node() -> None:
    member = Member(1).follow(2, epoch=5)
    with pytest.raises(BrokenQuorum, match="epoch 5"):
        member.ask(BeginEpochRequest(5, 3, place(3), key(1)))
    leader = Member(1).lead()
    with pytest.raises(BrokenQuorum):
        leader.ask(BeginEpochRequest(1, 3, place(3), key(1)))


def test_begin_epoch_is_refused_when_it_is_late_or_meant_for_somebody_else() -> None:
    member = Member(1).follow(2, epoch=5)
    assert answer(member.ask(BeginEpochRequest(4, 3, place(3), None))) == EpochResponse(
        Errors.FENCED_LEADER_EPOCH, 5, 2, place(2)
    )
    assert answer(member.ask(BeginEpochRequest(6, 3, place(3), key(9)))).error is Errors.INVALID_VOTER_KEY
    assert answer(member.ask(BeginEpochRequest(6, -1, (), None))).error is Errors.INVALID_REQUEST


def test_the_own_name_as_leader_means_nothing_after_a_restart() -> None:
    member = Member(1, election=ElectionState(4, leader_id=1))
    ((_, request),) = requests(member.tick(0))
    member.hear(-1, request, FetchResponse(Errors.NOT_LEADER_OR_FOLLOWER, 4, 1, place(1)), 5)
    assert (type(member.quorum.role), member.quorum.leader_id) == (Unattached, -1)


def test_check_quorum_a_leader_without_a_majority_resigns() -> None:
    period = TIMING.fetch_timeout_ms * 3 // 2
    leader = Member(1, voters=(1, 2, 3, 4, 5)).lead(1000)
    leader.ask(a_fetch(2, 1), 2000)
    role = leader.quorum.role
    assert isinstance(role, Leader)
    assert role.check_due == 1000 + period  # one of four is not enough
    leader.ask(a_fetch(3, 1), 2500)
    assert role.check_due == 2500 + period
    leader.tick(2500 + period - 1)
    assert isinstance(leader.quorum.role, Leader)
    leader.tick(2500 + period)
    assert isinstance(leader.quorum.role, Resigned)


def test_a_sole_voter_has_its_majority_for_ever() -> None:
    leader = Member(1, voters=(1,))
    leader.tick(0)
    leader.flush()
    assert leader.quorum.deadline() == NEVER
    leader.tick(10**9)
    assert isinstance(leader.quorum.role, Leader)


def test_a_leader_reminds_voters_that_do_not_fetch() -> None:
    leader = Member(1).lead(1000)
    leader.ask(a_fetch(2, 1), 1900)
    half = TIMING.fetch_timeout_ms // 2
    effects = leader.tick(1000 + half)
    assert [to for to, r in requests(effects) if isinstance(r, BeginEpochRequest)] == [3]


def test_grace_is_a_setting() -> None:
    member = Member(1, timing=Timing(grace_ms=1000)).follow(2)
    member.hear(2, member.fetch, None, 100)
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.due == 600
