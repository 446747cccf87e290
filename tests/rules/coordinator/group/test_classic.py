"""The classic protocol: joining, syncing, living and leaving."""

import pytest

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.coordinator.group.scene import Scene, Waiting, subscription, told


def test_kip_394_a_new_member_is_given_an_id_and_joins_with_it() -> None:
    scene = Scene()
    first = scene.join()
    assert (first.error_code, first.member_id) == (Errors.MEMBER_ID_REQUIRED, "client-id1")
    second = scene.join(member=first.member_id)
    scene.pass_time(0)
    assert told(second) == messages.JoinGroupResponse(
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="client-id1",
        member_id="client-id1",
        members=[
            messages.JoinGroupResponse.JoinGroupResponseMember(member_id="client-id1", metadata=subscription("orders"))
        ],
    )


def test_before_version_4_a_new_member_joins_at_once() -> None:
    scene = Scene()
    joined = scene.join(version=3)
    scene.pass_time(0)
    assert (told(joined).error_code, told(joined).generation_id) == (Errors.NONE, 1)


def test_an_id_that_was_given_out_and_never_used_is_forgotten() -> None:
    scene = Scene()
    member = scene.join(session=10_000).member_id
    scene.pass_time(10_000)
    assert scene.join(member=member).error_code == Errors.UNKNOWN_MEMBER_ID


def test_a_new_group_waits_for_more_members_as_long_as_they_come() -> None:
    scene = Scene(initial_rebalance_delay=Millis(3000))
    _, one = scene.join_known()
    scene.pass_time(2000)
    _, two = scene.join_known()
    scene.pass_time(1500)
    assert told(one) is None
    scene.pass_time(2500)
    assert (told(one).generation_id, told(two).generation_id) == (1, 1)
    assert len(told(one).members) == 2
    assert told(two).members == []


def test_the_leader_brings_assignments_and_everybody_gets_theirs_unchanged() -> None:
    scene = Scene()
    one, two = scene.stable_group(2)
    assert scene.sync(one, 1).assignment == b"\0"
    assert scene.sync(two, 1).assignment == b"\1"


def test_a_follower_waits_for_the_leaders_sync() -> None:
    scene = Scene()
    one, two = (scene.join().member_id for _ in range(2))
    joins = [scene.join(member=member) for member in (one, two)]
    scene.pass_time(0)
    assert [told(join).generation_id for join in joins] == [1, 1]
    waiting = scene.sync(two, 1)
    assert told(waiting) is None
    scene.sync(one, 1, {one: b"a", two: b"b"})
    assert told(waiting).assignment == b"b"


def test_who_is_left_out_by_the_leader_gets_an_empty_assignment() -> None:
    scene = Scene()
    member, _ = scene.join_known()
    scene.pass_time(0)
    assert scene.sync(member, 1, {}).assignment == b""


def test_a_second_member_makes_everybody_rejoin() -> None:
    scene = Scene()
    (one,) = scene.stable_group()
    two, joined = scene.join_known()
    assert isinstance(joined, Waiting)
    assert scene.beat(one, 1) == Errors.REBALANCE_IN_PROGRESS
    again = scene.join(member=one)
    assert (told(again).generation_id, told(joined).generation_id) == (2, 2)
    assert told(again).leader == one
    assert scene.beat(one, 1) == Errors.ILLEGAL_GENERATION
    assert scene.beat(two, 2) == Errors.NONE


def test_who_does_not_rejoin_in_time_is_out() -> None:
    scene = Scene()
    (one,) = scene.stable_group(rebalance=5000, session=30_000)
    _, joined = scene.join_known(rebalance=5000, session=30_000)
    scene.pass_time(5000)
    assert (told(joined).generation_id, len(told(joined).members)) == (2, 1)
    assert scene.beat(one, 2) == Errors.UNKNOWN_MEMBER_ID


def test_who_does_not_sync_in_time_is_out() -> None:
    scene = Scene()
    one, two = (scene.join(rebalance=5000).member_id for _ in range(2))
    for member in (one, two):
        scene.join(member=member, rebalance=5000, session=30_000)
    scene.pass_time(0)
    scene.sync(one, 1, {one: b"a", two: b"b"})
    scene.pass_time(5000)
    assert scene.beat(one, 1) == Errors.REBALANCE_IN_PROGRESS
    assert scene.beat(two, 1) == Errors.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_and_the_rest_rebalances() -> None:
    scene = Scene()
    one, two = scene.stable_group(2, session=10_000)
    scene.pass_time(6000)
    assert scene.beat(one, 1) == Errors.NONE
    scene.pass_time(6000)
    assert scene.beat(two, 1) == Errors.UNKNOWN_MEMBER_ID
    assert scene.beat(one, 1) == Errors.REBALANCE_IN_PROGRESS


def test_a_commit_keeps_a_member_alive_as_a_heartbeat_does() -> None:
    scene = Scene()
    (member,) = scene.stable_group(session=10_000)
    for offset in range(4):
        scene.pass_time(9000)
        assert scene.commit(offset, member=member, generation=1) == Errors.NONE
    assert scene.beat(member, 1) == Errors.NONE


def test_whoever_waits_in_a_join_needs_no_heartbeat() -> None:
    scene = Scene()
    one, two = scene.stable_group(2, session=10_000, rebalance=60_000)
    waiting = scene.join(member=one, rebalance=60_000)
    scene.pass_time(9000)
    scene.beat(two, 1)
    scene.pass_time(9000)
    assert told(waiting) is None
    scene.join(member=two, rebalance=60_000)
    assert told(waiting).generation_id == 2


def test_a_leader_that_joins_again_rebalances_a_follower_does_not() -> None:
    scene = Scene()
    one, two = scene.stable_group(2)
    assert scene.join(member=two).generation_id == 1
    assert isinstance(scene.join(member=one), Waiting)


def test_new_metadata_rebalances() -> None:
    scene = Scene()
    _one, two = scene.stable_group(2)
    assert isinstance(scene.join(member=two, topics=("orders", "parcels")), Waiting)


def test_a_lost_answer_to_a_join_is_repeated() -> None:
    scene = Scene()
    member, joined = scene.join_known()
    scene.pass_time(0)
    assert scene.join(member=member) == told(joined)


def test_the_protocol_is_the_one_most_members_prefer_among_those_all_have() -> None:
    scene = Scene()
    wishes = [{"a": b"1", "b": b"1"}, {"b": b"2", "a": b"2"}, {"c": b"3", "b": b"3", "a": b"3"}]
    ids = [scene.join(protocols=wish, protocol_type="x").member_id for wish in wishes]
    joins = [
        scene.join(member=member, protocols=wish, protocol_type="x") for member, wish in zip(ids, wishes, strict=True)
    ]
    scene.pass_time(0)
    assert [told(join).protocol_name for join in joins] == ["b"] * 3
    assert [member.metadata for member in told(joins[0]).members] == [b"1", b"2", b"3"]


def test_members_that_share_no_protocol_or_type_cannot_meet() -> None:
    scene = Scene()
    scene.stable_group()
    other = {"roundrobin": subscription("orders")}
    assert scene.join(protocols=other).error_code == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert scene.join(protocol_type="connect").error_code == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert scene.join("new", protocols={}).error_code == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert scene.join("new", protocol_type="").error_code == Errors.INCONSISTENT_GROUP_PROTOCOL


def test_kip_559_a_sync_names_the_protocol_it_believes_in() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    wrong = scene.sync(member, 1, protocol_type="connect", protocol_name="range")
    assert wrong.error_code == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert scene.sync(member, 1, protocol_type="consumer", protocol_name="range").error_code == Errors.NONE


@pytest.mark.parametrize(
    ("session", "error"), [(5999, Errors.INVALID_SESSION_TIMEOUT), (1_800_001, Errors.INVALID_SESSION_TIMEOUT)]
)
def test_a_session_timeout_outside_the_brokers_limits_is_refused(session: int, error: Errors) -> None:
    assert Scene().join(session=session).error_code == error


def test_a_group_without_a_name_is_refused() -> None:
    scene = Scene()
    assert scene.join("").error_code == Errors.INVALID_GROUP_ID
    assert scene.sync("m", 1, group="").error_code == Errors.INVALID_GROUP_ID
    assert scene.beat("m", 1, group="") == Errors.INVALID_GROUP_ID


def test_strangers_are_told_that_they_are_unknown() -> None:
    scene = Scene()
    assert scene.beat("m", 1) == Errors.UNKNOWN_MEMBER_ID
    assert scene.sync("m", 1).error_code == Errors.UNKNOWN_MEMBER_ID
    assert scene.join(member="m").error_code == Errors.UNKNOWN_MEMBER_ID
    assert scene.leave("m") == [Errors.UNKNOWN_MEMBER_ID]
    scene.stable_group()
    assert scene.beat("m", 1) == Errors.UNKNOWN_MEMBER_ID
    assert scene.sync("m", 1).error_code == Errors.UNKNOWN_MEMBER_ID
    assert scene.join(member="m").error_code == Errors.UNKNOWN_MEMBER_ID
    assert scene.leave("m") == [Errors.UNKNOWN_MEMBER_ID]


def test_a_full_group_takes_nobody_else() -> None:
    scene = Scene(classic_max_size=1)
    (member,) = scene.stable_group()
    assert scene.join().error_code == Errors.GROUP_MAX_SIZE_REACHED
    assert isinstance(scene.join(member=member), Waiting) or scene.beat(member, 2) == Errors.NONE


def test_the_last_member_that_leaves_leaves_an_empty_group() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    assert scene.leave(member) == [Errors.NONE]
    assert scene.groups() == {"g": ("classic", "Empty")}
    assert scene.restart().groups() == {"g": ("classic", "Empty")}


def test_a_member_that_leaves_while_others_wait_in_a_join_completes_it() -> None:
    scene = Scene()
    one, two = scene.stable_group(2)
    waiting = scene.join(member=one)
    assert told(waiting) is None
    scene.leave(two)
    assert told(waiting).generation_id == 2


# ---- static members (KIP-345)


def test_a_static_member_that_comes_back_in_a_stable_group_keeps_its_place_without_a_rebalance() -> None:
    scene = Scene()
    joined = scene.join(instance="i1")
    scene.pass_time(0)
    old = told(joined).member_id
    scene.sync(old, 1, {old: b"mine"}, instance="i1")
    again = scene.join(instance="i1")
    assert (again.error_code, again.generation_id, again.skip_assignment) == (Errors.NONE, 1, True)
    assert again.member_id != old
    assert scene.sync(again.member_id, 1, instance="i1").assignment == b"mine"
    assert scene.beat(old, 1, instance="i1") == Errors.FENCED_INSTANCE_ID
    assert scene.commit(1, member=old, generation=1, instance="i1") == Errors.FENCED_INSTANCE_ID


def test_kafka_10284_the_new_id_of_a_static_member_survives_a_fail_over() -> None:
    scene = Scene()
    joined = scene.join(instance="i1")
    scene.pass_time(0)
    old = told(joined).member_id
    scene.sync(old, 1, {old: b"mine"}, instance="i1")
    new = scene.join(instance="i1").member_id
    scene.restart()
    assert scene.beat(new, 1, instance="i1") == Errors.NONE
    assert scene.beat(old, 1, instance="i1") == Errors.FENCED_INSTANCE_ID


def test_before_version_9_a_returning_leader_is_told_of_the_leader_before() -> None:
    scene = Scene()
    joined = scene.join(instance="i1", version=8)
    scene.pass_time(0)
    old = told(joined).member_id
    scene.sync(old, 1, {old: b"mine"}, instance="i1")
    again = scene.join(instance="i1", version=8)
    assert (again.leader, again.members, again.skip_assignment) == (old, [], False)


def test_kafka_9801_a_static_member_that_comes_back_while_the_group_assigns_rebalances_it() -> None:
    scene = Scene()
    joined = scene.join(instance="i1")
    scene.pass_time(0)
    assert told(joined).generation_id == 1
    again = scene.join(instance="i1")
    assert told(again).generation_id == 2


def test_an_admin_removes_a_static_member_by_its_instance_id() -> None:
    scene = Scene()
    joined = scene.join(instance="i1")
    scene.pass_time(0)
    member = told(joined).member_id
    assert scene.leave(("", "nobody")) == [Errors.UNKNOWN_MEMBER_ID]
    assert scene.leave(("someone-else", "i1")) == [Errors.FENCED_INSTANCE_ID]
    assert scene.leave(("", "i1")) == [Errors.NONE]
    assert scene.beat(member, 1, instance="i1") == Errors.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_away_holds_its_place_until_its_session_is_over() -> None:
    scene = Scene()
    joined = scene.join(instance="i1", session=10_000)
    scene.pass_time(0)
    old = told(joined).member_id
    scene.sync(old, 1, {old: b"mine"}, instance="i1")
    scene.pass_time(10_000)
    assert scene.groups() == {"g": ("classic", "Empty")}


# ---- after a fail-over


def test_a_stable_group_comes_back_from_the_log_as_it_was() -> None:
    scene = Scene()
    one, two = scene.stable_group(2)
    scene.restart()
    assert scene.groups() == {"g": ("classic", "Stable")}
    assert scene.beat(one, 1) == Errors.NONE
    assert scene.sync(two, 1).assignment == b"\1"
    described = scene.shard.describe("g", 6)
    assert [member.member_id for member in described.members] == [one, two]


def test_during_a_rebalance_a_member_is_described_with_the_assignment_it_still_has() -> None:
    scene = Scene()
    one, two = scene.stable_group(2)
    scene.join(member=one)
    described = scene.shard.describe("g", 6)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [(m.member_id, m.member_metadata, m.member_assignment) for m in described.members] == [
        (one, b"", b"\0"),
        (two, b"", b"\1"),
    ]


def test_sessions_start_anew_after_a_fail_over() -> None:
    scene = Scene()
    (member,) = scene.stable_group(session=10_000)
    scene.pass_time(9000)
    scene.restart()
    scene.pass_time(9000)
    assert scene.beat(member, 1) == Errors.NONE


def test_whoever_waits_is_sent_away_when_the_coordinator_moves() -> None:
    scene = Scene()
    one, _two = scene.stable_group(2)
    waiting = scene.join(member=one)
    (response,) = scene.shard.resigned()
    assert response.response.error_code == Errors.NOT_COORDINATOR
    assert told(waiting) is None


def test_the_record_is_the_one_kafka_writes() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    record, _ = scene.log[-1]
    assert record.key == messages.GroupMetadataKey(group="g")
    assert record.version == 3
    assert record.value == messages.GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=member,
        current_state_timestamp=scene.now,
        members=[
            messages.GroupMetadataValue.MemberMetadata(
                member_id=member,
                client_id="client",
                client_host="/host",
                rebalance_timeout=60_000,
                session_timeout=10_000,
                subscription=subscription("orders"),
                assignment=b"\0",
            )
        ],
    )


def test_only_empty_groups_can_be_deleted_and_their_offsets_go_too() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    scene.commit(1, member=member, generation=1)
    assert [result.error_code for result in scene.take(scene.shard.delete_groups(["g", "nobody"]))] == [
        Errors.NON_EMPTY_GROUP,
        Errors.GROUP_ID_NOT_FOUND,
    ]
    scene.leave(member)
    assert [result.error_code for result in scene.take(scene.shard.delete_groups(["g"]))] == [Errors.NONE]
    assert (scene.groups(), scene.committed()) == ({}, -1)
    assert scene.restart().groups() == {}


def test_groups_are_listed_by_state_and_kind() -> None:
    scene = Scene()
    scene.stable_group()
    scene.commit(1, group="offsets-only")
    listed = scene.shard.list_groups
    assert [group.group_id for group in listed(["stable"], [])] == ["g"]
    assert [group.group_id for group in listed([" Empty "], ["classic"])] == ["offsets-only"]
    assert listed([], ["consumer"]) == []


def test_an_unknown_group_is_dead_or_an_error_by_version() -> None:
    scene = Scene()
    assert (scene.shard.describe("x", 5).group_state, scene.shard.describe("x", 5).error_code) == ("Dead", 0)
    assert scene.shard.describe("x", 6).error_code == Errors.GROUP_ID_NOT_FOUND


def test_subscriptions_of_other_protocol_types_are_never_read() -> None:
    group = ClassicGroup("g")
    group.protocol_type = "connect"
    assert group.compute_subscriptions() is None
    assert not group.is_subscribed_to("orders")
