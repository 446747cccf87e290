"""How many groups there may be, who gives way, and how much a shard does in one go."""

import pytest

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.expiry import PAUSE_MS, STEP
from ottla.coordinator.group.shard import CROWDED_CHECK_MS
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.coordinator.group.scene import Scene, assigned

DAY = 86_400_000


# ---- the number of groups


@pytest.fixture
def full() -> Scene:
    """Three groups, and no more allowed: one with a member, two that hold offsets."""
    scene = Scene(max_groups=3)
    scene.stable_group(group="living")
    scene.commit(1, group="a")
    scene.commit(1, group="b")
    return scene


def test_beyond_the_limit_no_protocol_makes_a_group(full: Scene) -> None:
    refused = Errors.GROUP_MAX_SIZE_REACHED
    assert full.join("new").error_code == refused
    assert full.join("new", version=3).error_code == refused
    beat = full.heartbeat(group="new")
    assert (beat.error_code, "ottla.groups.max" in beat.error_message) == (refused, True)
    assert full.commit(1, group="new") == refused
    assert full.txn_commit(1, 7, group="new") == refused
    assert list(full.groups()) == ["living", "a", "b"]


def test_beyond_the_limit_groups_that_are_there_go_on(full: Scene) -> None:
    assert full.commit(2, group="a") == Errors.NONE
    assert full.txn_commit(3, 7, group="b") == Errors.NONE
    assert full.join("a").error_code == Errors.MEMBER_ID_REQUIRED
    assert full.heartbeat(group="b").error_code == Errors.NONE


def test_the_limit_holds_for_all_shards_together() -> None:
    scene = Scene(max_groups=10)
    scene.shard.state._groups_here = lambda: 10
    assert scene.commit(1) == Errors.GROUP_MAX_SIZE_REACHED


def test_a_log_with_more_groups_than_the_limit_is_loaded_whole(full: Scene) -> None:
    full.settings = full.settings._replace(max_groups=1)
    assert list(full.restart().groups()) == ["living", "a", "b"]


def test_where_it_gets_crowded_empty_groups_without_offsets_give_way_soon() -> None:
    scene = Scene(max_groups=10, offsets_retention_check=Millis(DAY))
    for number in range(8):
        (member,) = scene.stable_group(group=f"short-lived-{number}")
        scene.leave(member, group=f"short-lived-{number}")
    scene.pass_time(CROWDED_CHECK_MS)
    assert len(scene.groups()) == 8
    scene.commit(1, group="with offsets")
    scene.commit(1, group="one more")
    scene.pass_time(CROWDED_CHECK_MS)
    assert list(scene.groups()) == ["with offsets", "one more"]


# ---- how much in one go


def test_expiry_looks_at_a_bounded_number_of_offsets_and_pauses() -> None:
    scene = Scene({"orders": 300, "parcels": 300}, offsets_retention=Millis(DAY), offsets_retention_check=Millis(DAY))
    for group in ("a", "b", "c"):
        for topic in ("orders", "parcels"):
            for partition in range(300):
                scene.commit(1, group=group, topic=topic, partition=partition)
    steps = []
    scene.now += DAY
    while scene.shard.state.offsets.by_group:
        before = len(scene.log)
        scene.take(scene.shard.tick(scene.time))
        steps.append(len(scene.log) - before)
        next_tick = scene.shard.next_tick()
        assert next_tick is not None and next_tick >= scene.now + PAUSE_MS
        scene.now = next_tick
    assert max(steps) <= STEP + 300 and len(steps) == 2
    assert scene.groups() == {}


def test_a_commit_between_two_steps_keeps_the_group() -> None:
    topics = {"orders": STEP, "parcels": STEP}
    scene = Scene(topics, offsets_retention=Millis(DAY), offsets_retention_check=Millis(DAY))
    for topic in topics:
        for partition in range(STEP):
            scene.commit(1, topic=topic, partition=partition)
    scene.now += DAY
    scene.take(scene.shard.tick(scene.time))
    assert list(scene.shard.state.offsets.by_group["g"]) == ["orders"]
    scene.commit(5, topic="parcels")
    scene.pass_time(PAUSE_MS)
    assert list(scene.shard.state.offsets.by_group["g"]) == ["parcels"]
    assert (list(scene.groups()), scene.committed(topic="parcels")) == (["g"], 5)


# ---- what a pattern may match


def test_a_pattern_matches_no_topic_that_the_member_may_not_know_of() -> None:
    scene = Scene({"orders": 1, "orders-secret": 1, "parcels": 1}, consumer_assignment_interval=Millis(0))
    asked: list[str] = []

    def may_describe(topic: str) -> bool:
        asked.append(topic)
        return "secret" not in topic

    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m1",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="orders.*",
        topic_partitions=[],
    )
    caller = Caller("client", "/host", 1, may_describe)
    joined = scene.take(scene.shard.consumer_heartbeat(request, caller, scene.time))
    scene.run_threads()
    assert assigned(scene.heartbeat(epoch=joined.member_epoch)) == {"orders": [0]}
    assert asked == ["orders", "orders-secret"]
