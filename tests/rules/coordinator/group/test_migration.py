"""A living group moves between the classic and the consumer protocol, and back."""

import pytest

from ottla.coordinator.group.classic import consumer_protocol as blobs
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from tests.rules.coordinator.group.scene import Scene, assigned, given, subscription, told


def classic_group(scene: Scene) -> str:
    """One member of the classic protocol with all four partitions."""
    member, joined = scene.join_known()
    scene.pass_time(0)
    generation = told(joined).generation_id
    blob = blobs.assignment_bytes({"orders": [0, 1, 2, 3]}, 1)
    assert scene.sync(member, generation, {member: blob}).error_code == 0
    return member


def scene_of(policy: str = "bidirectional") -> Scene:
    return Scene(consumer_assignment_interval=Millis(0), migration_policy=policy)


def owning(partitions: list[int]) -> dict[str, bytes]:
    return {"range": subscription("orders", owned={"orders": partitions})}


def test_a_consumer_member_turns_a_living_classic_group_into_a_consumer_group() -> None:
    scene = scene_of()
    classic = classic_group(scene)
    joined = scene.heartbeat("m2")
    assert (joined.error_code, joined.member_epoch, assigned(joined)) == (0, 2, {})
    assert scene.groups() == {"g": ("consumer", "Reconciling")}
    # The classic member is asked to come again; it gives up half, and only then the new one has it.
    assert scene.beat(classic, 1) == Errors.REBALANCE_IN_PROGRESS
    again = scene.join(member=classic, protocols=owning([0, 1, 2, 3]))
    assert (again.error_code, again.generation_id, again.members) == (0, 1, [])
    assert given(scene.sync(classic, 1)) == {"orders": [0, 1]}
    assert assigned(scene.heartbeat("m2", 2)) is None
    assert scene.beat(classic, 1) == Errors.REBALANCE_IN_PROGRESS
    done = scene.join(member=classic, protocols=owning([0, 1]))
    assert done.generation_id == 2
    assert given(scene.sync(classic, 2)) == {"orders": [0, 1]}
    assert assigned(scene.heartbeat("m2", 2)) == {"orders": [2, 3]}
    assert scene.beat(classic, 2) == Errors.NONE
    assert scene.groups() == {"g": ("consumer", "Stable")}


def test_offsets_are_kept_over_the_upgrade() -> None:
    scene = scene_of()
    classic = classic_group(scene)
    scene.commit(7, member=classic, generation=1)
    scene.heartbeat("m2")
    assert scene.committed() == 7
    assert scene.commit(8, member=classic, generation=1) == Errors.NONE
    assert scene.commit(9, member=classic, generation=2) == Errors.ILLEGAL_GENERATION
    assert scene.restart().committed() == 8


def test_the_last_consumer_member_that_leaves_leaves_a_classic_group() -> None:
    scene = scene_of()
    classic = classic_group(scene)
    scene.heartbeat("m2")
    assert scene.heartbeat("m2", -1).error_code == Errors.NONE
    assert scene.groups() == {"g": ("classic", "PreparingRebalance")}
    generation = scene.shard.state.groups["g"].generation  # type: ignore[attr-defined]
    assert scene.beat(classic, generation) == Errors.REBALANCE_IN_PROGRESS
    again = scene.join(member=classic)
    assert (told(again).generation_id, told(again).leader) == (generation + 1, classic)
    scene.sync(classic, generation + 1, {classic: b"x"})
    assert scene.restart().groups() == {"g": ("classic", "Stable")}


def test_a_silent_last_consumer_member_downgrades_the_group_too() -> None:
    scene = scene_of()
    classic = classic_group(scene)
    scene.heartbeat("m2")
    scene.join(member=classic, protocols=owning([0, 1, 2, 3]), session=1_800_000, rebalance=1_800_000)
    scene.sync(classic, 1)
    scene.pass_time(45_000)
    assert scene.groups() == {"g": ("classic", "PreparingRebalance")}


def test_a_new_classic_member_joins_a_consumer_group() -> None:
    scene = scene_of()
    scene.heartbeat("m1")
    first = scene.join()
    assert first.error_code == Errors.MEMBER_ID_REQUIRED
    joined = scene.join(member=first.member_id)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 3, "range")
    assert given(scene.sync(first.member_id, 3)) == {}
    assert assigned(scene.heartbeat("m1", 2, owned={"orders": [0, 1, 2, 3]})) == {"orders": [0, 1]}
    assert scene.beat(first.member_id, 3) == Errors.NONE  # nothing to take yet
    scene.heartbeat("m1", 2, owned={"orders": [0, 1]})
    assert scene.beat(first.member_id, 3) == Errors.REBALANCE_IN_PROGRESS
    again = scene.join(member=first.member_id)
    assert given(scene.sync(first.member_id, again.generation_id)) == {"orders": [2, 3]}


def test_a_classic_member_that_was_asked_to_rejoin_and_does_not_is_fenced() -> None:
    scene = scene_of()
    classic = classic_group(scene)
    scene.heartbeat("m2", rebalance_timeout_ms=1_800_000)
    scene.beat(classic, 1)
    for _ in range(13):
        scene.pass_time(5000)
        scene.heartbeat("m2", 2)
        scene.beat(classic, 1)
    assert scene.beat(classic, 1) == Errors.UNKNOWN_MEMBER_ID


def test_classic_members_leave_a_consumer_group() -> None:
    scene = scene_of()
    classic = classic_group(scene)
    scene.heartbeat("m2")
    assert scene.leave(classic, "nobody") == [Errors.NONE, Errors.UNKNOWN_MEMBER_ID]
    assert assigned(scene.heartbeat("m2", 2)) == {"orders": [0, 1, 2, 3]}


def test_an_empty_classic_group_becomes_a_consumer_group_and_back_whatever_the_policy() -> None:
    scene = scene_of("disabled")
    scene.commit(7)
    assert scene.heartbeat("m1").error_code == Errors.NONE
    scene.heartbeat("m1", -1)
    assert scene.groups() == {"g": ("consumer", "Empty")}
    member, joined = scene.join_known()
    scene.pass_time(0)
    assert told(joined).leader == member
    assert (scene.groups()["g"][0], scene.committed()) == ("classic", 7)
    assert scene.restart().groups()["g"][0] == "classic"


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_no_upgrade_without_the_policy(policy: str) -> None:
    scene = scene_of(policy)
    classic_group(scene)
    assert scene.heartbeat("m2").error_code == Errors.GROUP_ID_NOT_FOUND
    assert scene.groups() == {"g": ("classic", "Stable")}


def test_no_downgrade_without_the_policy() -> None:
    scene = scene_of("upgrade")
    classic_group(scene)
    scene.heartbeat("m2")
    scene.heartbeat("m2", -1)
    assert scene.groups()["g"][0] == "consumer"


def test_classic_members_are_turned_away_when_migration_is_disabled() -> None:
    scene = scene_of("disabled")
    scene.heartbeat("m1")
    assert scene.join().error_code == Errors.INCONSISTENT_GROUP_PROTOCOL


def test_groups_of_other_types_cannot_be_upgraded() -> None:
    scene = scene_of()
    scene.stable_group(protocol_type="connect")
    assert scene.heartbeat("m2").error_code == Errors.GROUP_ID_NOT_FOUND


def test_members_that_wait_in_the_classic_group_are_sent_to_join_again() -> None:
    scene = scene_of()
    one, _two = scene.stable_group(2, protocols={"range": subscription("orders")})
    waiting = scene.join(member=one)
    blob = scene.heartbeat("m3")
    if blob.error_code:  # assignments of this scene are no consumer assignments: then nothing may have changed
        assert told(waiting) is None
    else:
        assert told(waiting).error_code == Errors.REBALANCE_IN_PROGRESS


def test_a_static_member_may_come_back_with_the_other_protocol() -> None:
    scene = scene_of()
    joined = scene.join(instance="i1")
    scene.pass_time(0)
    old = told(joined).member_id
    blob = blobs.assignment_bytes({"orders": [0, 1, 2, 3]}, 1)
    scene.sync(old, 1, {old: blob}, instance="i1")
    back = scene.heartbeat("new", instance_id="i1")
    assert (back.error_code, assigned(back)) == (0, {"orders": [0, 1, 2, 3]})
    assert scene.groups() == {"g": ("consumer", "Stable")}
    scene.heartbeat("new", -2, instance_id="i1")
    again = scene.join(instance="i1")
    assert again.error_code == Errors.NONE
    assert scene.groups()["g"][0] == "classic"
    assert scene.restart().groups()["g"][0] == "classic"
