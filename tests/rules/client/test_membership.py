"""A member of a group: when it joins, what it believes to hold, and that any number of them agree in the end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.errors import KafkaError
from ottla.client.membership import (
    Assigned,
    Effects,
    Failed,
    Left,
    Lost,
    MemberSettings,
    Membership,
    Peer,
    Prepare,
    Send,
    State,
)
from ottla.model.errors import Errors
from ottla.protocol import messages as m
from tests.rules.client.village import SETTINGS, Village, shares
from tests.support.examples import examples

ALONE = m.JoinGroupResponse.JoinGroupResponseMember("me", None, b"meta")


def joined(*members: m.JoinGroupResponse.JoinGroupResponseMember, leader: str = "me", generation: int = 1) -> Effects:
    core = Membership(SETTINGS, shares)
    return answer_join(core, *members, leader=leader, generation=generation)


def answer_join(
    core: Membership, *members: m.JoinGroupResponse.JoinGroupResponseMember, leader: str = "me", generation: int = 1
) -> Effects:
    (prepare,) = core.start(0)
    assert isinstance(prepare, Prepare)
    (join,) = core.ready(prepare.number, [("mine", b"meta")], 0)
    assert isinstance(join, Send)
    return core.answered(
        join.number,
        m.JoinGroupResponse(
            generation_id=generation, protocol_name="mine", leader=leader, member_id="me", members=list(members)
        ),
        0,
    )


def stable(at_ms: int = 0, member: MemberSettings = SETTINGS) -> Membership:
    core = Membership(member, shares)
    (sync,) = answer_join(core, ALONE)
    assert isinstance(sync, Send)
    (beat,) = core.answered(sync.number, m.SyncGroupResponse(assignment=b"part"), at_ms)
    assert isinstance(beat, Send)
    assert core.answered(beat.number, m.HeartbeatResponse(), at_ms) == [
        Assigned("me", 1, "mine", "me", b"part", (Peer("me", None, b"meta"),))
    ]
    return core


def beat(core: Membership, now_ms: int) -> Send:
    assert core.next_tick_ms() is not None
    (sent,) = core.tick(now_ms)
    assert isinstance(sent, Send)
    assert sent.kind is m.HeartbeatRequest
    return sent


def test_kip_394_a_new_member_joins_again_with_the_id_it_was_given() -> None:
    core = Membership(SETTINGS, shares)
    (prepare,) = core.start(0)
    assert isinstance(prepare, Prepare)
    (first,) = core.ready(prepare.number, [("mine", b"meta")], 0)
    assert isinstance(first, Send)
    required = m.JoinGroupResponse(error_code=Errors.MEMBER_ID_REQUIRED, member_id="given")
    (second,) = core.answered(first.number, required, 5)
    assert isinstance(second, Send)
    assert second.make(9) == m.JoinGroupRequest(
        "g", 10_000, 30_000, "given", None, "connect", [m.JoinGroupRequest.JoinGroupRequestProtocol("mine", b"meta")]
    )


def test_the_leader_assigns_and_the_others_bring_nothing() -> None:
    other = m.JoinGroupResponse.JoinGroupResponseMember("other", None, b"")
    (led,) = joined(ALONE, other)
    assert isinstance(led, Send)
    request = led.make(5)
    assert isinstance(request, m.SyncGroupRequest)
    assert [each.member_id for each in request.assignments] == ["me", "other"]
    (followed,) = joined(leader="other")
    assert isinstance(followed, Send)
    assert followed.make(5) == m.SyncGroupRequest("g", 1, "me", None, "connect", "mine", [])


def test_kip_814_a_leader_that_came_back_is_told_not_to_assign() -> None:
    core = Membership(SETTINGS._replace(instance_id="i"), shares)
    (prepare,) = core.start(0)
    assert isinstance(prepare, Prepare)
    (join,) = core.ready(prepare.number, [("mine", b"")], 0)
    assert isinstance(join, Send)
    back = m.JoinGroupResponse(generation_id=4, protocol_name="mine", leader="me", skip_assignment=True, member_id="me")
    (sync,) = core.answered(join.number, back, 0)
    assert isinstance(sync, Send)
    assert sync.make(5) == m.SyncGroupRequest("g", 4, "me", "i", "connect", "mine", [])


def test_heartbeats_are_sent_at_their_interval_and_one_at_a_time() -> None:
    core = stable()
    assert core.next_tick_ms() == 3_000
    assert core.tick(2_999) == []
    sent = beat(core, 3_000)
    assert sent.make(4) == m.HeartbeatRequest("g", 1, "me", None)
    assert core.tick(3_001) == []
    assert core.answered(sent.number, m.HeartbeatResponse(), 3_400) == []
    assert core.next_tick_ms() == 6_000


def test_a_rebalance_is_prepared_for_while_heartbeats_go_on() -> None:
    core = stable()
    sent = beat(core, 3_000)
    (prepare,) = core.answered(sent.number, m.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS), 3_001)
    assert isinstance(prepare, Prepare)
    assert core.held is not None
    again = beat(core, 6_000)
    assert core.answered(again.number, m.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS), 6_001) == []
    (join,) = core.ready(prepare.number, [("mine", b"new")], 7_000)
    assert isinstance(join, Send)
    assert join.kind is m.JoinGroupRequest
    assert core.next_tick_ms() is None


def test_a_member_that_hears_nothing_gives_up_when_its_session_can_be_over() -> None:
    core = stable()
    sent = beat(core, 3_000)
    core.answered(sent.number, m.HeartbeatResponse(), 4_000)
    silent = beat(core, 6_000)
    assert core.unanswered(silent.number, 9_400) == []
    core.tick(9_450)  # asks again, elsewhere
    assert core.tick(12_999) == []
    lost, prepare = core.tick(13_000)
    assert (lost, type(prepare)) == (Lost(), Prepare)
    assert core.held is None


@pytest.mark.parametrize(
    ("error", "member_id"), [(Errors.UNKNOWN_MEMBER_ID, ""), (Errors.ILLEGAL_GENERATION, "me")], ids=str
)
def test_a_member_that_was_fenced_has_lost_its_part_and_joins_anew(error: Errors, member_id: str) -> None:
    core = stable()
    lost, prepare = core.answered(beat(core, 3_000).number, m.HeartbeatResponse(error_code=error), 3_001)
    assert lost == Lost()
    assert isinstance(prepare, Prepare)
    (join,) = core.ready(prepare.number, [("mine", b"")], 3_002)
    assert isinstance(join, Send)
    request = join.make(9)
    assert isinstance(request, m.JoinGroupRequest)
    assert request.member_id == member_id


def test_what_is_lost_while_the_owner_prepares_is_prepared_for_again() -> None:
    core = stable()
    (first,) = core.answered(
        beat(core, 3_000).number, m.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS), 3_001
    )
    assert isinstance(first, Prepare)
    lost, second = core.tick(13_000)
    assert lost == Lost()
    assert isinstance(second, Prepare)
    assert core.ready(first.number, [("mine", b"i hold it")], 13_001) == []
    assert core.state is State.PREPARING
    assert len(core.ready(second.number, [("mine", b"i hold nothing")], 13_002)) == 1


def test_kip_345_an_instance_id_that_has_another_owner_ends_this_one() -> None:
    core = stable(member=SETTINGS._replace(instance_id="i"))
    lost, failed = core.answered(
        beat(core, 3_000).number, m.HeartbeatResponse(error_code=Errors.FENCED_INSTANCE_ID), 3_001
    )
    assert lost == Lost()
    assert isinstance(failed, Failed)
    assert failed.error.error == Errors.FENCED_INSTANCE_ID
    assert core.state is State.ENDED
    assert core.next_tick_ms() is None


def test_kip_345_a_static_member_goes_without_leaving() -> None:
    assert stable(member=SETTINGS._replace(instance_id="i")).leave(100) == [Left()]


def test_a_member_leaves_by_its_id_and_waits_no_longer_than_five_seconds() -> None:
    core = stable()
    (sent,) = core.leave(100)
    assert isinstance(sent, Send)
    assert sent.make(2) == m.LeaveGroupRequest("g", "me")
    assert sent.make(5) == m.LeaveGroupRequest("g", members=[m.LeaveGroupRequest.MemberIdentity("me")])
    assert core.tick(5_099) == []
    assert core.tick(5_100) == [Left()]
    assert core.leave(6_000) == []


def test_a_part_counts_from_the_first_heartbeat_that_was_taken_however_late_the_sync_was() -> None:
    core = stable(at_ms=12_000)
    assert core.next_tick_ms() == 15_000
    beat(core, 15_000)
    assert core.tick(21_999) == []
    assert core.tick(22_000)[0] == Lost()


def test_a_generation_that_is_over_before_the_first_heartbeat_is_never_told() -> None:
    core = Membership(SETTINGS, shares)
    (sync,) = answer_join(core, ALONE)
    assert isinstance(sync, Send)
    (first,) = core.answered(sync.number, m.SyncGroupResponse(assignment=b"part"), 5)
    assert isinstance(first, Send)
    (join,) = core.answered(first.number, m.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS), 6)
    assert isinstance(join, Send)
    assert join.kind is m.JoinGroupRequest


def test_who_prepares_for_longer_than_the_rebalance_timeout_has_lost_its_part() -> None:
    core = stable()
    rebalancing = m.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS)
    for now_ms in range(3_000, 30_000, 3_000):
        core.answered(beat(core, now_ms).number, rebalancing, now_ms)
    assert core.tick(29_999) == []
    assert core.tick(30_000)[0] == Lost()


def test_an_answer_to_what_nobody_waits_for_changes_nothing() -> None:
    core = stable()
    sent = beat(core, 3_000)
    core.answered(sent.number, m.HeartbeatResponse(), 3_001)
    before = (core.state, core.held, core.next_tick_ms())
    assert core.answered(sent.number, m.HeartbeatResponse(error_code=Errors.UNKNOWN_MEMBER_ID), 3_002) == []
    assert core.unanswered(sent.number, 3_003) == []
    assert (core.state, core.held, core.next_tick_ms()) == before


def test_a_wish_to_rejoin_while_joining_is_kept() -> None:
    core = Membership(SETTINGS, shares)
    (sync,) = answer_join(core, ALONE)
    assert isinstance(sync, Send)
    assert core.rejoin(1) == []
    (first,) = core.answered(sync.number, m.SyncGroupResponse(assignment=b""), 2)
    assert isinstance(first, Send)
    assigned, prepare = core.answered(first.number, m.HeartbeatResponse(), 3)
    assert (type(assigned), type(prepare)) == (Assigned, Prepare)


def test_a_wish_to_rejoin_while_the_owner_prepares_is_kept_as_it_may_have_looked_before() -> None:
    core = Membership(SETTINGS, shares)
    (prepare,) = core.start(0)
    assert isinstance(prepare, Prepare)
    assert core.rejoin(0) == []
    (join,) = core.ready(prepare.number, [("mine", b"before")], 1)
    assert isinstance(join, Send)
    alone = m.JoinGroupResponse(generation_id=1, protocol_name="mine", leader="me", member_id="me", members=[ALONE])
    (sync,) = core.answered(join.number, alone, 2)
    assert isinstance(sync, Send)
    (first,) = core.answered(sync.number, m.SyncGroupResponse(assignment=b""), 3)
    assert isinstance(first, Send)
    assigned, again = core.answered(first.number, m.HeartbeatResponse(), 4)
    assert (type(assigned), type(again)) == (Assigned, Prepare)
    assert isinstance(again, Prepare)
    (join,) = core.ready(again.number, [("mine", b"after")], 5)
    assert isinstance(join, Send)


def test_an_error_that_will_not_pass_ends_the_member_with_its_name() -> None:
    core = Membership(SETTINGS, shares)
    (prepare,) = core.start(0)
    assert isinstance(prepare, Prepare)
    (join,) = core.ready(prepare.number, [("mine", b"")], 0)
    assert isinstance(join, Send)
    (failed,) = core.answered(join.number, m.JoinGroupResponse(error_code=Errors.INCONSISTENT_GROUP_PROTOCOL), 1)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, KafkaError)
    assert failed.error.subject == "group g"


# Many of them.


@given(st.integers(0, 2**32), st.integers(1, 5), st.floats(0.05, 0.4))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_gets_lost_members_agree_in_the_end_and_never_hold_a_part_twice(
    seed: int, members: int, weather: float
) -> None:
    village = Village(seed)
    village.weather = weather
    for _ in range(members):
        village.move_in()
        village.run(village.dice.randrange(5_000))
    for _ in range(12):
        match village.dice.randrange(6):
            case 0:
                village.coordinator_moves()
            case 1:
                village.move_in()
            case 2:
                village.dice.choice(village.members).crashed = True
            case 3:
                leaver = village.dice.choice(village.members)
                if not leaver.crashed:
                    leaver.leave()
            case 4:
                member = village.dice.choice(village.members)
                if not member.crashed:
                    member.perform(member.core.rejoin(village.now))
        village.run(village.dice.randrange(20_000))
    village.weather = 0.0
    village.move_in()
    village.run(200_000)
    assert village.settled(), [(each.name, each.core.state, each.part) for each in village.living()]


def test_kip_345_a_static_member_that_restarts_gets_its_part_back_and_disturbs_nobody() -> None:
    village = Village(1)
    first, second = village.move_in("a"), village.move_in("b")
    village.run(20_000)
    assert village.settled()
    assert first.part is not None
    assert second.part is not None
    first.crashed = True
    returned = village.move_in("a")
    village.run(5_000)
    assert returned.part is not None
    assert (returned.part.generation, second.part.generation) == (first.part.generation, first.part.generation)
    assert returned.part.assignment == first.part.assignment


def test_kip_345_of_two_with_one_instance_id_the_older_is_told_to_stop() -> None:
    village = Village(1)
    first = village.move_in("a")
    village.run(20_000)
    second = village.move_in("a")
    village.run(20_000)
    assert isinstance(first.ended, Failed)
    assert second.part is not None
