"""Partitions move to other brokers (KIP-455): newcomers first, leavers last."""

import pytest

from ottla.metadata.image import PartitionImage
from ottla.model.errors import Errors
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, uuid

Request = messages.AlterPartitionReassignmentsRequest
Lists = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def move(scene: Scene, *replicas: int, topic: str = "t", index: int = 0, allow: bool = True) -> int:
    return asked(scene, list(replicas), topic, index, allow)


def cancel(scene: Scene) -> int:
    return asked(scene, None)


def asked(scene: Scene, replicas: list[int] | None, topic: str = "t", index: int = 0, allow: bool = True) -> int:
    target = Request.ReassignablePartition(partition_index=index, replicas=replicas)
    request = Request(
        allow_replication_factor_change=allow, topics=[Request.ReassignableTopic(name=topic, partitions=[target])]
    )
    reply = scene.play(request).reply
    assert isinstance(reply, messages.AlterPartitionReassignmentsResponse)
    assert (reply.error_code, reply.allow_replication_factor_change) == (Errors.NONE, allow)
    ((result,),) = (t.partitions for t in reply.responses)
    return result.error_code


def lists(partition: PartitionImage) -> Lists:
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def on_1_2_3() -> Scene:
    return Scene().with_brokers(1, 2, 3, 4, 5).with_partition(1, 2, 3)


def test_newcomers_join_the_replicas_and_leavers_stay_until_they_are_in_sync() -> None:
    scene = on_1_2_3()
    before = scene.partition()
    assert move(scene, 4, 5, 2) == Errors.NONE
    assert scene.partition() == before._replace(
        replicas=(4, 5, 2, 1, 3),
        directories=(uuid(904), uuid(905), uuid(902), uuid(901), uuid(903)),
        adding_replicas=(4, 5),
        removing_replicas=(1, 3),
        partition_epoch=1,
    )


def test_another_order_of_the_same_replicas_counts_at_once() -> None:
    scene = on_1_2_3()
    assert move(scene, 3, 1, 2) == Errors.NONE
    after = scene.partition()
    assert (lists(after), after.leader, after.leader_epoch) == (((3, 1, 2), (), ()), 1, 0)
    assert after.directories == (uuid(903), uuid(901), uuid(902))


def test_the_present_assignment_changes_nothing() -> None:
    scene = on_1_2_3()
    before = scene.partition()
    assert move(scene, 1, 2, 3) == Errors.NONE
    assert scene.partition() == before


def test_fewer_replicas_count_at_once_if_all_that_stay_are_in_sync() -> None:
    scene = on_1_2_3()
    assert move(scene, 2, 3) == Errors.NONE
    after = scene.partition()
    assert (lists(after), after.isr, after.leader, after.leader_epoch) == (((2, 3), (), ()), (2, 3), 2, 1)


def test_fewer_replicas_wait_for_one_that_stays_and_is_not_in_sync() -> None:
    scene = on_1_2_3()
    scene.has_isr(1, 2)
    assert move(scene, 2, 3) == Errors.NONE
    after = scene.partition()
    assert (lists(after), after.isr, after.leader) == (((2, 3, 1), (), (1,)), (1, 2), 1)


def test_a_reassignment_does_not_end_with_an_empty_isr() -> None:
    scene = on_1_2_3()
    scene.has_isr(1)
    move(scene, 2, 3)
    assert lists(scene.partition()) == ((2, 3, 1), (), (1,))


def test_fencing_a_newcomer_leaves_the_reassignment_open() -> None:
    scene = on_1_2_3()
    move(scene, 1, 2, 4)
    scene.fence(4)
    assert lists(scene.partition()) == ((1, 2, 4, 3), (4,), (3,))


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ([], Errors.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], Errors.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], Errors.INVALID_REPLICA_ASSIGNMENT),
        ([1, -1], Errors.INVALID_REPLICA_ASSIGNMENT),
        (None, Errors.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_an_assignment_that_cannot_be_is_refused(replicas: list[int] | None, error: Errors) -> None:
    scene = on_1_2_3()
    before = scene.partition()
    assert asked(scene, replicas) == error
    assert scene.partition() == before


def test_unknown_partitions_are_refused() -> None:
    scene = on_1_2_3()
    assert move(scene, 1, topic="nobody") == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert move(scene, 1, index=1) == Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_kip_860_the_replication_factor_may_be_protected() -> None:
    scene = on_1_2_3()
    assert move(scene, 1, 2, allow=False) == Errors.INVALID_REPLICATION_FACTOR
    assert move(scene, 1, 2, 4, allow=False) == Errors.NONE
    # It is counted as it will be: three, not the four there are in between.
    assert move(scene, 1, 2, 3, 4, allow=False) == Errors.INVALID_REPLICATION_FACTOR
    assert move(scene, 1, 2, 5, allow=False) == Errors.NONE


# Changing one's mind


def test_cancelled_it_is_as_before() -> None:
    scene = on_1_2_3()
    before = scene.partition()
    move(scene, 1, 4, 5)
    scene.has_isr(1, 2, 3, 4)
    assert cancel(scene) == Errors.NONE
    after = scene.partition()
    assert (lists(after), after.isr, after.leader) == (((1, 2, 3), (), ()), (1, 2, 3), 1)
    assert after.directories == before.directories
    assert after.leader_epoch == 1


def test_a_cancel_that_would_lose_records_is_refused_unless_the_topic_allows_that() -> None:
    for unclean, error in (("false", Errors.INVALID_REPLICA_ASSIGNMENT), ("true", Errors.NONE)):
        scene = Scene().with_brokers(1, 2, 3, 4)
        scene.with_partition(1, 2, unclean_leader_election_enable=unclean)
        move(scene, 3, 4)
        scene.has_isr(3)
        assert cancel(scene) == error


def test_another_target_replaces_the_one_before() -> None:
    scene = on_1_2_3()
    move(scene, 1, 2, 4)
    assert move(scene, 1, 2, 5) == Errors.NONE
    assert lists(scene.partition()) == ((1, 2, 5, 3), (5,), (3,))


def test_going_back_to_where_one_came_from_ends_the_reassignment() -> None:
    scene = on_1_2_3()
    move(scene, 1, 2, 4)
    assert move(scene, 1, 2, 3) == Errors.NONE
    assert lists(scene.partition()) == ((1, 2, 3), (), ())


def test_keeping_both_the_newcomers_and_the_leavers_waits_for_the_newcomers() -> None:
    scene = on_1_2_3()
    move(scene, 1, 2, 4)
    assert move(scene, 1, 2, 3, 4) == Errors.NONE
    assert lists(scene.partition()) == ((1, 2, 3, 4), (4,), ())


def test_a_newcomer_that_alone_is_in_sync_is_not_dropped_before_others_are() -> None:
    scene = on_1_2_3()
    move(scene, 4, 5)
    scene.has_isr(4)
    assert move(scene, 1, 2, 3) == Errors.NONE
    after = scene.partition()
    assert (lists(after), after.isr) == (((1, 2, 3, 4), (), (4,)), (4,))


def test_elr_holds_only_replicas() -> None:
    scene = Scene(min_insync_replicas="3").with_brokers(1, 2, 3, 4).with_partition(1, 2, 3)
    scene.has_isr(1, 2)
    move(scene, 1, 2)
    after = scene.partition()
    assert (lists(after), after.isr, after.elr) == (((1, 2), (), ()), (1, 2), ())


# The list


def listed(scene: Scene, request: "messages.ListPartitionReassignmentsRequest") -> object:
    decision = scene.decide(request)
    assert decision.records == ()
    reply = decision.reply
    assert isinstance(reply, messages.ListPartitionReassignmentsResponse)
    return reply.topics


def test_what_moves_is_listed_all_of_it_or_by_topic() -> None:
    scene = on_1_2_3().with_partition(1, 2, topic="quiet").with_partition(2, 1, topic="u")
    move(scene, 1, 2, 4)
    move(scene, 3, 2, topic="u")
    kind = messages.ListPartitionReassignmentsRequest
    answer = messages.ListPartitionReassignmentsResponse
    t = answer.OngoingTopicReassignment(
        name="t",
        partitions=[
            answer.OngoingPartitionReassignment(
                partition_index=0, replicas=[1, 2, 4, 3], adding_replicas=[4], removing_replicas=[3]
            )
        ],
    )
    u = answer.OngoingTopicReassignment(
        name="u",
        partitions=[
            answer.OngoingPartitionReassignment(
                partition_index=0, replicas=[3, 2, 1], adding_replicas=[3], removing_replicas=[1]
            )
        ],
    )
    assert listed(scene, kind(topics=None)) == [t, u]
    some = [kind.ListPartitionReassignmentsTopics(name=n, partition_indexes=[0, 7]) for n in ("t", "quiet", "nobody")]
    assert listed(scene, kind(topics=some)) == [t]
    cancel(scene)
    scene.play(messages.DeleteTopicsRequest(topic_names=["u"]))
    assert listed(scene, kind(topics=None)) == []
