"""The consumer protocol (KIP-848): epochs, targets, reconciliation."""

import pytest

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.coordinator.group.scene import Scene, assigned

NO_INTERVAL = Millis(0)


def scene_of(**settings: object) -> Scene:
    return Scene(**{"consumer_assignment_interval": NO_INTERVAL, **settings})  # type: ignore[arg-type]


def test_the_first_member_gets_everything_in_epoch_2() -> None:
    scene = scene_of()
    response = scene.heartbeat()
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m1", 2)
    assert (response.heartbeat_interval_ms, assigned(response)) == (5000, {"orders": [0, 1, 2, 3]})
    assert scene.groups() == {"g": ("consumer", "Stable")}


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_says_nothing_of_the_assignment() -> None:
    scene = scene_of()
    scene.heartbeat()
    scene.heartbeat(epoch=2)
    written = len(scene.log)
    assert assigned(scene.heartbeat(epoch=2)) is None
    assert len(scene.log) == written


def test_a_full_request_is_told_the_assignment_again() -> None:
    scene = scene_of()
    scene.heartbeat()
    full = scene.heartbeat(
        epoch=2, rebalance_timeout_ms=60_000, subscribed_topic_names=["orders"], owned={"orders": [0, 1, 2, 3]}
    )
    assert assigned(full) == {"orders": [0, 1, 2, 3]}


def test_a_partition_changes_hands_only_after_its_owner_said_that_it_let_go() -> None:
    scene = scene_of()
    scene.heartbeat("m1")
    second = scene.heartbeat("m2")
    assert (second.member_epoch, assigned(second)) == (3, {})
    first = scene.heartbeat("m1", 2)
    assert (first.member_epoch, assigned(first)) == (2, {"orders": [0, 1]})
    still = scene.heartbeat("m1", 2, owned={"orders": [0, 1, 2, 3]})
    assert still.member_epoch == 2
    assert assigned(scene.heartbeat("m2", 3)) is None
    done = scene.heartbeat("m1", 2, owned={"orders": [0, 1]})
    assert done.member_epoch == 3
    assert assigned(scene.heartbeat("m2", 3)) == {"orders": [2, 3]}
    assert scene.groups() == {"g": ("consumer", "Stable")}


def test_an_owner_that_does_not_let_go_in_time_is_fenced() -> None:
    scene = scene_of()
    scene.heartbeat("m1", rebalance_timeout_ms=5000)
    scene.heartbeat("m2")
    scene.heartbeat("m1", 2)
    scene.pass_time(5000)
    assert scene.heartbeat("m1", 2).error_code == Errors.UNKNOWN_MEMBER_ID
    assert assigned(scene.heartbeat("m2", 3)) == {"orders": [0, 1, 2, 3]}


def test_a_silent_member_is_fenced_when_its_session_is_over() -> None:
    scene = scene_of(consumer_session_timeout=Millis(45_000))
    scene.heartbeat("m1")
    scene.pass_time(44_999)
    assert scene.heartbeat("m1", 2).error_code == Errors.NONE
    scene.pass_time(45_000)
    assert scene.heartbeat("m1", 2).error_code == Errors.UNKNOWN_MEMBER_ID
    assert scene.groups() == {"g": ("consumer", "Empty")}


def test_a_member_that_leaves_frees_its_partitions() -> None:
    scene = scene_of()
    scene.heartbeat("m1")
    scene.heartbeat("m2")
    assert scene.heartbeat("m1", -1).member_epoch == -1
    assert assigned(scene.heartbeat("m2", 3)) == {"orders": [0, 1, 2, 3]}


def test_joins_that_come_in_a_crowd_share_one_assignment() -> None:
    scene = Scene(consumer_assignment_interval=Millis(1000))
    assert assigned(scene.heartbeat("m1")) == {"orders": [0, 1, 2, 3]}
    for name in ("m2", "m3", "m4"):
        assert assigned(scene.heartbeat(name)) == {}
    assert scene.groups() == {"g": ("consumer", "Assigning")}
    scene.pass_time(1000)
    epoch = scene.heartbeat("m2", 2).member_epoch
    assert epoch == 5
    assert assigned(scene.heartbeat("m1", 2)) == {"orders": [0]}


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_server_assigns_by_the_assignor_that_members_ask_for(assignor: str) -> None:
    scene = scene_of()
    scene.heartbeat("m1", server_assignor=assignor)
    assert scene.shard.describe_consumer("g").assignor_name == assignor


# ---- epochs


def test_an_epoch_from_the_future_is_fenced() -> None:
    scene = scene_of()
    scene.heartbeat()
    assert scene.heartbeat(epoch=3).error_code == Errors.FENCED_MEMBER_EPOCH


def test_the_epoch_before_is_a_lost_answer_if_the_member_holds_nothing_it_should_not() -> None:
    scene = scene_of()
    scene.heartbeat("m1")
    scene.heartbeat("m2")
    scene.heartbeat("m1", 2, owned={"orders": [0, 1]})
    assert scene.heartbeat("m1", 2, owned={"orders": [0]}).member_epoch == 3
    assert scene.heartbeat("m1", 2, owned={"orders": [0, 3]}).error_code == Errors.FENCED_MEMBER_EPOCH
    assert scene.heartbeat("m1", 2).error_code == Errors.FENCED_MEMBER_EPOCH
    assert scene.heartbeat("m1", 1, owned={}).error_code == Errors.FENCED_MEMBER_EPOCH


def test_joining_again_with_epoch_0_gives_the_current_state() -> None:
    scene = scene_of()
    first = scene.heartbeat()
    again = scene.heartbeat()
    assert (again.member_epoch, assigned(again)) == (first.member_epoch, assigned(first))


def test_strangers_and_unknown_groups() -> None:
    scene = scene_of()
    assert scene.heartbeat(epoch=1).error_code == Errors.GROUP_ID_NOT_FOUND
    assert scene.heartbeat(epoch=-1).error_code == Errors.GROUP_ID_NOT_FOUND
    scene.heartbeat("m1")
    assert scene.heartbeat("m2", 1).error_code == Errors.UNKNOWN_MEMBER_ID
    assert scene.heartbeat("m2", -1).error_code == Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "fields",
    [
        {"owned": {"orders": [0]}},
        {"owned": None},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"instance_id": ""},
        {"rack_id": " "},
    ],
)
def test_a_malformed_join_is_an_invalid_request(fields: dict[str, object]) -> None:
    assert scene_of().heartbeat(**fields).error_code == Errors.INVALID_REQUEST  # type: ignore[arg-type]


def test_other_malformed_requests() -> None:
    scene = scene_of()
    assert scene.heartbeat("").error_code == Errors.INVALID_REQUEST
    assert scene.heartbeat("m", -3).error_code == Errors.INVALID_REQUEST
    assert scene.heartbeat("m", -2).error_code == Errors.INVALID_REQUEST  # only an instance can be away for a while
    assert scene.heartbeat(group=" ").error_code == Errors.INVALID_REQUEST
    assert scene.heartbeat(server_assignor="sticky").error_code == Errors.UNSUPPORTED_ASSIGNOR


def test_version_0_lets_the_server_choose_the_id() -> None:
    scene = scene_of()
    assert scene.heartbeat("", version=0).member_id == "id1"


def test_a_full_group_takes_nobody_else() -> None:
    scene = scene_of(consumer_max_size=1)
    scene.heartbeat("m1")
    assert scene.heartbeat("m2").error_code == Errors.GROUP_MAX_SIZE_REACHED
    assert scene.heartbeat("m1", 2).error_code == Errors.NONE


# ---- what there is to read


def test_more_partitions_are_assigned_with_the_next_heartbeat() -> None:
    scene = scene_of()
    scene.heartbeat()
    scene.topics_become({"orders": 6})
    response = scene.heartbeat(epoch=2)
    assert (response.member_epoch, assigned(response)) == (3, {"orders": [0, 1, 2, 3, 4, 5]})


def test_a_topic_that_comes_later_is_assigned_when_it_is_there() -> None:
    scene = scene_of()
    assert assigned(scene.heartbeat(subscribed_topic_names=["parcels"])) == {}
    scene.topics_become({"orders": 4, "parcels": 1})
    assert assigned(scene.heartbeat(epoch=2)) == {"parcels": [0]}


def test_a_topic_that_is_deleted_is_taken_away() -> None:
    scene = scene_of()
    scene.heartbeat(subscribed_topic_names=["orders", "parcels"])
    scene.topics_become({"parcels": 1})
    scene.heartbeat(epoch=2)
    assert assigned(scene.heartbeat(epoch=2, owned={})) == {"parcels": [0]}


def test_a_smaller_subscription_gives_partitions_back() -> None:
    scene = Scene({"orders": 2, "parcels": 2}, consumer_assignment_interval=NO_INTERVAL)
    scene.heartbeat(subscribed_topic_names=["orders", "parcels"])
    response = scene.heartbeat(epoch=2, subscribed_topic_names=["orders"], owned={"orders": [0, 1], "parcels": [0, 1]})
    assert assigned(response) == {"orders": [0, 1]}
    assert scene.heartbeat(epoch=2, owned={"orders": [0, 1]}).member_epoch == 3


def test_patterns_are_matched_beside_the_loop_and_again_when_topics_come() -> None:
    scene = Scene({"orders": 1, "orders-eu": 1, "parcels": 1}, consumer_assignment_interval=NO_INTERVAL)
    joined = scene.heartbeat(subscribed_topic_names=None, subscribed_topic_regex="orders.*")
    assert assigned(joined) == {}
    scene.run_threads()
    assert assigned(scene.heartbeat(epoch=joined.member_epoch)) == {"orders": [0], "orders-eu": [0]}
    scene.topics_become({"orders": 1, "orders-eu": 1, "orders-us": 1, "parcels": 1})
    scene.pass_time(10_001)
    epoch = scene.shard.describe_consumer("g").members[0].member_epoch
    scene.heartbeat(epoch=epoch)
    scene.run_threads()
    assert assigned(scene.heartbeat(epoch=epoch)) == {"orders": [0], "orders-eu": [0], "orders-us": [0]}
    assert scene.restart().shard.describe_consumer("g").members[0].subscribed_topic_regex == "orders.*"


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", r"(a)\1", "((a{100}){100}){100}"])
def test_a_pattern_that_is_malformed_or_a_bomb_is_refused(pattern: str) -> None:
    response = scene_of().heartbeat(subscribed_topic_names=None, subscribed_topic_regex=pattern)
    assert response.error_code == Errors.INVALID_REGULAR_EXPRESSION


def test_a_pattern_nobody_uses_any_more_is_forgotten() -> None:
    scene = scene_of()
    epoch = scene.heartbeat(subscribed_topic_names=None, subscribed_topic_regex="o.*").member_epoch
    scene.run_threads()
    scene.heartbeat(epoch=epoch, subscribed_topic_names=["orders"], subscribed_topic_regex="")
    key = messages.ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="o.*")
    assert [record.value for record, _ in scene.log if record.key == key][-1] is None


# ---- static members


def test_a_static_member_that_goes_for_a_while_finds_its_partitions_again() -> None:
    scene = scene_of()
    scene.heartbeat("m1", instance_id="i1")
    scene.heartbeat("m2")
    scene.heartbeat("m1", 2, instance_id="i1", owned={"orders": [0, 1]})
    scene.heartbeat("m2", 3)
    assert scene.heartbeat("m1", -2, instance_id="i1").member_epoch == -2
    back = scene.heartbeat("m1b", instance_id="i1")
    assert (back.member_epoch, assigned(back)) == (3, {"orders": [0, 1]})
    assert scene.heartbeat("m1", 3, instance_id="i1").error_code == Errors.FENCED_INSTANCE_ID


def test_an_instance_that_has_not_left_cannot_be_taken_over() -> None:
    scene = scene_of()
    scene.heartbeat("m1", instance_id="i1")
    assert scene.heartbeat("other", instance_id="i1").error_code == Errors.UNRELEASED_INSTANCE_ID
    assert scene.heartbeat("m1", instance_id="i1").error_code == Errors.NONE  # a lost answer, not another process


def test_a_static_member_that_stays_away_is_fenced_after_its_session() -> None:
    scene = scene_of()
    scene.heartbeat("m1", instance_id="i1")
    scene.heartbeat("m1", -2, instance_id="i1")
    scene.pass_time(45_000)
    assert scene.groups() == {"g": ("consumer", "Empty")}


# ---- offsets


def test_commits_carry_the_member_epoch() -> None:
    scene = scene_of()
    scene.heartbeat()
    assert scene.commit(1, member="m1", generation=2) == Errors.NONE
    assert scene.commit(2, member="m1", generation=3) == Errors.STALE_MEMBER_EPOCH
    assert scene.commit(2, member="m2", generation=2) == Errors.UNKNOWN_MEMBER_ID
    assert scene.commit(2, member="m1", generation=2, version=8) == Errors.UNSUPPORTED_VERSION
    assert scene.committed() == 1


def test_kip_1251_an_older_epoch_is_good_enough_for_what_the_member_held_then() -> None:
    scene = scene_of()
    scene.heartbeat("m1")
    scene.heartbeat("m2")
    scene.heartbeat("m1", 2, owned={"orders": [0, 1]})
    scene.heartbeat("m2", 3)
    assert scene.commit(5, member="m1", generation=2, partition=0) == Errors.NONE
    assert scene.commit(5, member="m1", generation=2, partition=2) == Errors.STALE_MEMBER_EPOCH
    assert scene.commit(5, member="m2", generation=2, partition=2) == Errors.STALE_MEMBER_EPOCH


def test_a_stale_transactional_commit_is_told_in_the_producers_terms() -> None:
    scene = scene_of()
    scene.heartbeat()
    assert scene.txn_commit(1, 9, member="m1", generation=2) == Errors.NONE
    assert scene.txn_commit(1, 9, member="m1", generation=3) == Errors.ILLEGAL_GENERATION


def test_a_fetch_by_a_member_is_checked_by_its_epoch() -> None:
    scene = scene_of()
    scene.heartbeat()
    scene.commit(1, member="m1", generation=2)
    assert scene.committed(member_id="m1", member_epoch=2) == 1
    assert scene.committed(member_id="m1", member_epoch=1) == Errors.STALE_MEMBER_EPOCH
    assert scene.committed(member_id="m2", member_epoch=2) == Errors.UNKNOWN_MEMBER_ID
    assert scene.committed() == 1


# ---- after a fail-over


def test_the_log_alone_rebuilds_a_group_in_the_middle_of_its_reconciliation() -> None:
    scene = scene_of()
    scene.heartbeat("m1", instance_id="i1", rack_id="r1")
    scene.heartbeat("m2", server_assignor="range")
    scene.heartbeat("m1", 2, instance_id="i1")
    before = scene.shard.describe_consumer("g")
    assert scene.restart().shard.describe_consumer("g") == before
    assert scene.heartbeat("m1", 2, instance_id="i1", owned={"orders": [0, 1]}).member_epoch == 3
    assert assigned(scene.heartbeat("m2", 3)) == {"orders": [2, 3]}


def test_an_empty_group_is_deleted_without_a_trace() -> None:
    scene = scene_of()
    scene.heartbeat()
    assert scene.take(scene.shard.delete_groups(["g"]))[0].error_code == Errors.NON_EMPTY_GROUP
    scene.heartbeat(epoch=-1)
    assert scene.take(scene.shard.delete_groups(["g"]))[0].error_code == Errors.NONE
    assert scene.groups() == {}
    assert scene.restart().groups() == {}
