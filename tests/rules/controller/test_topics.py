"""Creating and deleting topics and partitions."""

import pytest

from ottla.controller.topics import MAX_PARTITIONS_PER_REQUEST
from ottla.metadata.image import PartitionImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import UNASSIGNED_DIRECTORY, ZERO_UUID
from ottla.protocol import messages
from tests.rules.controller.scene import Assignment, Scene, Topic, TopicConfig, uuid


def a_partition(*replicas: int) -> PartitionImage:
    return PartitionImage(
        replicas=replicas,
        directories=tuple(uuid(900 + r) for r in replicas),
        isr=replicas,
        removing_replicas=(),
        adding_replicas=(),
        elr=(),
        last_known_elr=(),
        leader=replicas[0],
        leader_recovery_state=0,
        leader_epoch=0,
        partition_epoch=0,
    )


def test_a_topic_gets_its_id_its_configs_and_its_partitions_in_this_order() -> None:
    scene = Scene().with_brokers(1)
    topic = Topic(
        name="orders",
        num_partitions=2,
        replication_factor=1,
        configs=[TopicConfig(name="retention.ms", value="1000")],
    )
    decision = scene.play(messages.CreateTopicsRequest(topics=[topic]), 1)
    assert [type(record).__name__ for record in decision.records] == [
        "TopicRecord",
        "ConfigRecord",
        "PartitionRecord",
        "PartitionRecord",
    ]
    assert scene.image.topics == {"orders": TopicImage("orders", uuid(0), {0: a_partition(1), 1: a_partition(1)})}
    assert scene.image.topic_configs("orders") == {"retention.ms": "1000"}


def test_the_reply_tells_the_id_the_size_and_all_configs_with_their_source() -> None:
    scene = Scene().with_brokers(1)
    topic = Topic(
        name="orders", num_partitions=2, replication_factor=1, configs=[TopicConfig(name="retention.ms", value="1000")]
    )
    (result,) = scene.create(topic).topics
    assert (result.error_code, result.error_message, result.topic_id) == (Errors.NONE, None, uuid(0))
    assert (result.num_partitions, result.replication_factor, result.topic_config_error_code) == (2, 1, 0)
    assert result.configs is not None
    by_name = {c.name: (c.value, c.config_source) for c in result.configs}
    assert by_name["retention.ms"] == ("1000", 1)
    assert by_name["cleanup.policy"] == ("delete", 5)
    assert [c.name for c in result.configs] == sorted(by_name)


def test_minus_one_means_the_broker_default_for_partitions_and_replication() -> None:
    scene = Scene(num_partitions="5", default_replication_factor="2").with_brokers(1, 2)
    scene.create(Topic(name="orders", num_partitions=-1, replication_factor=-1))
    partitions = scene.image.topics["orders"].partitions
    assert [len(p.replicas) for p in partitions.values()] == [2] * 5


def test_validate_only_answers_like_a_creation_and_creates_nothing() -> None:
    scene = Scene().with_brokers(1)
    before = scene.image
    reply = scene.create(Topic(name="orders", num_partitions=3, replication_factor=1), validate_only=True)
    assert [(t.error_code, t.num_partitions) for t in reply.topics] == [(Errors.NONE, 3)]
    assert scene.image is before


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "no spaces", "ümlaut", "sla/sh"])
def test_a_name_outside_of_the_rules_is_an_invalid_topic(name: str) -> None:
    scene = Scene().with_brokers(1)
    assert scene.error_of(Topic(name=name, num_partitions=1, replication_factor=1)) == Errors.INVALID_TOPIC_EXCEPTION


def test_an_existing_topic_is_said_to_exist_even_where_its_name_also_collides() -> None:
    scene = Scene().with_brokers(1)
    scene.created("a_b")
    wanted = Topic(name="a_b", num_partitions=1, replication_factor=1)
    assert scene.error_of(wanted) == Errors.TOPIC_ALREADY_EXISTS


def test_names_that_differ_only_in_dots_and_underscores_collide_until_the_first_is_deleted() -> None:
    scene = Scene().with_brokers(1)
    scene.created("a.b_c")
    rival = Topic(name="a_b.c", num_partitions=1, replication_factor=1)
    assert scene.error_of(rival) == Errors.INVALID_TOPIC_EXCEPTION
    scene.play(messages.DeleteTopicsRequest(topic_names=["a.b_c"]))
    assert scene.error_of(rival) == Errors.NONE


def test_a_collision_is_also_found_with_topics_from_before_the_controller_started() -> None:
    scene = Scene().with_brokers(1)
    scene.created("a.b")
    restarted = Scene(records=[])
    restarted.controller = type(scene.controller)(scene.image, scene.settings)
    rival = Topic(name="a_b", num_partitions=1, replication_factor=1)
    assert restarted.error_of(rival) == Errors.INVALID_TOPIC_EXCEPTION


def test_the_metadata_log_itself_cannot_be_created() -> None:
    wanted = Topic(name="__cluster_metadata", num_partitions=1, replication_factor=1)
    assert Scene().with_brokers(1).error_of(wanted) == Errors.INVALID_REQUEST


def test_a_topic_named_twice_is_refused_once_and_the_others_are_created() -> None:
    scene = Scene().with_brokers(1)
    twice = Topic(name="twice", num_partitions=1, replication_factor=1)
    reply = scene.create(twice, Topic(name="once", num_partitions=1, replication_factor=1), twice)
    assert [(t.name, t.error_code) for t in reply.topics] == [
        ("once", Errors.NONE),
        ("twice", Errors.INVALID_REQUEST),
    ]
    assert list(scene.image.topics) == ["once"]


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 1, Errors.INVALID_PARTITIONS),
        (-2, 1, Errors.INVALID_PARTITIONS),
        (1, 0, Errors.INVALID_REPLICATION_FACTOR),
        (1, -2, Errors.INVALID_REPLICATION_FACTOR),
        (1, 3, Errors.INVALID_REPLICATION_FACTOR),
        (1, 2, Errors.NONE),  # redpanda#2618: an even factor is fine
    ],
)
def test_impossible_numbers_are_told_apart(partitions: int, factor: int, error: Errors) -> None:
    scene = Scene().with_brokers(1, 2)
    assert scene.error_of(Topic(name="t", num_partitions=partitions, replication_factor=factor)) == error


def test_without_a_live_broker_no_replication_factor_can_be_met() -> None:
    wanted = Topic(name="t", num_partitions=1, replication_factor=1)
    assert Scene().error_of(wanted) == Errors.INVALID_REPLICATION_FACTOR
    scene = Scene()
    scene.register(1)
    assert scene.error_of(wanted) == Errors.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("retention.ms", "soon", Errors.INVALID_CONFIG),
        ("retention.ms", None, Errors.INVALID_CONFIG),
        ("no.such.config", "1", Errors.INVALID_CONFIG),
        ("cleanup.policy", "compact,delete", Errors.NONE),
    ],
)
def test_configs_are_checked_before_anything_is_created(name: str, value: str | None, error: Errors) -> None:
    scene = Scene().with_brokers(1)
    topic = Topic(name="t", num_partitions=1, replication_factor=1, configs=[TopicConfig(name=name, value=value)])
    assert scene.error_of(topic) == error
    assert ("t" in scene.image.topics) == (error == Errors.NONE)


def assigned(*assignments: tuple[int, list[int]], partitions: int = -1, factor: int = -1) -> "Topic":
    return Topic(
        name="t",
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[Assignment(partition_index=index, broker_ids=brokers) for index, brokers in assignments],
    )


def test_a_manual_assignment_is_kept_as_it_was_given() -> None:
    scene = Scene().with_brokers(1, 2)
    assert scene.error_of(assigned((1, [2, 1]), (0, [1, 2]))) == Errors.NONE
    assert scene.image.topics["t"].partitions == {0: a_partition(1, 2), 1: a_partition(2, 1)}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (assigned((0, [1]), partitions=1), Errors.INVALID_REQUEST),
        (assigned((0, [1]), factor=1), Errors.INVALID_REQUEST),
        (assigned((0, [1]), (0, [2])), Errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (2, [2])), Errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [])), Errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1, 1])), Errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [7])), Errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (1, [1, 2])), Errors.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_manual_assignment_must_make_sense(topic: "Topic", error: Errors) -> None:
    assert Scene().with_brokers(1, 2).error_of(topic) == error


def test_a_fenced_replica_is_assigned_but_not_in_sync() -> None:
    scene = Scene().with_brokers(1)
    scene.register(2)
    assert scene.error_of(assigned((0, [2, 1]))) == Errors.NONE
    partition = scene.image.topics["t"].partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 1), (1,), 1)


def test_a_broker_with_several_directories_chooses_one_itself() -> None:
    scene = Scene().with_brokers(1, log_dirs=[uuid(901), uuid(902)])
    scene.created("t")
    assert scene.image.topics["t"].partitions[0].directories == (UNASSIGNED_DIRECTORY,)


def test_one_request_creates_at_most_ten_thousand_partitions() -> None:
    scene = Scene().with_brokers(1)
    too_many = Topic(name="t", num_partitions=MAX_PARTITIONS_PER_REQUEST + 1, replication_factor=1)
    assert scene.error_of(too_many) == Errors.POLICY_VIOLATION
    # The topic's own record is one too many.
    almost = Topic(name="t", num_partitions=MAX_PARTITIONS_PER_REQUEST, replication_factor=1)
    assert scene.error_of(almost) == Errors.POLICY_VIOLATION
    assert scene.image.topics == {}


# Deleting


def deleted(scene: Scene, request: "messages.DeleteTopicsRequest") -> list[tuple[str | None, bytes, int]]:
    reply = scene.play(request).reply
    assert isinstance(reply, messages.DeleteTopicsResponse)
    return [(r.name, r.topic_id, r.error_code) for r in reply.responses]


def state(name: str | None = None, topic_id: bytes = ZERO_UUID) -> "messages.DeleteTopicsRequest.DeleteTopicState":
    return messages.DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=topic_id)


def test_topics_are_deleted_by_name_or_by_id_and_their_configs_with_them() -> None:
    scene = Scene().with_brokers(1)
    config = [TopicConfig(name="retention.ms", value="1000")]
    scene.create(Topic(name="a", num_partitions=1, replication_factor=1, configs=config))
    scene.created("b")
    request = messages.DeleteTopicsRequest(topics=[state("a"), state(topic_id=uuid(1))])
    assert deleted(scene, request) == [("a", uuid(0), Errors.NONE), ("b", uuid(1), Errors.NONE)]
    assert (scene.image.topics, scene.image.topics_by_id, scene.image.topic_configs("a")) == ({}, {}, {})


def test_an_unknown_topic_gets_the_error_of_the_way_it_was_named() -> None:
    request = messages.DeleteTopicsRequest(topics=[state("gone"), state(topic_id=uuid(7))])
    assert deleted(Scene(), request) == [
        ("gone", ZERO_UUID, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (None, uuid(7), Errors.UNKNOWN_TOPIC_ID),
    ]


def test_a_topic_named_in_two_ways_is_not_deleted_and_answered_once() -> None:
    scene = Scene().with_brokers(1)
    scene.created("a")
    request = messages.DeleteTopicsRequest(topics=[state("a"), state(topic_id=uuid(0))])
    assert deleted(scene, request) == [("a", uuid(0), Errors.INVALID_REQUEST)]
    assert list(scene.image.topics) == ["a"]


def test_name_and_id_together_or_neither_is_no_request() -> None:
    scene = Scene().with_brokers(1)
    scene.created("a")
    request = messages.DeleteTopicsRequest(topics=[state("a", uuid(0)), state()])
    assert [error for _, _, error in deleted(scene, request)] == [Errors.INVALID_REQUEST] * 2
    assert list(scene.image.topics) == ["a"]


def test_deletion_may_be_switched_off() -> None:
    scene = Scene(delete_topic_enable="false").with_brokers(1)
    scene.created("a")
    assert deleted(scene, messages.DeleteTopicsRequest(topic_names=["a"])) == [
        ("a", ZERO_UUID, Errors.TOPIC_DELETION_DISABLED)
    ]


# More partitions


def grown(scene: Scene, name: str, count: int, assignments: list[list[int]] | None = None) -> list[int]:
    kind = messages.CreatePartitionsRequest
    given = None
    if assignments is not None:
        given = [kind.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    topic = kind.CreatePartitionsTopic(name=name, count=count, assignments=given)
    reply = scene.play(kind(topics=[topic])).reply
    assert isinstance(reply, messages.CreatePartitionsResponse)
    return [r.error_code for r in reply.results]


def test_a_topic_grows_and_never_shrinks() -> None:
    scene = Scene().with_brokers(1)
    scene.created("t", num_partitions=2)
    assert grown(scene, "t", 2) == [Errors.INVALID_PARTITIONS]
    assert grown(scene, "t", 1) == [Errors.INVALID_PARTITIONS]
    assert grown(scene, "t", 4) == [Errors.NONE]
    assert scene.image.topics["t"].partitions == dict.fromkeys(range(4), a_partition(1))
    assert grown(scene, "gone", 4) == [Errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_added_partitions_keep_the_replication_factor_even_if_assigned_by_hand() -> None:
    scene = Scene().with_brokers(1, 2)
    scene.created("t", replication_factor=2)
    assert grown(scene, "t", 2, [[1]]) == [Errors.INVALID_REPLICA_ASSIGNMENT]
    assert grown(scene, "t", 3, [[1, 2]]) == [Errors.INVALID_REPLICA_ASSIGNMENT]
    assert grown(scene, "t", 2, [[2, 1]]) == [Errors.NONE]
    assert scene.image.topics["t"].partitions[1] == a_partition(2, 1)


def test_each_topic_has_one_result_and_one_named_twice_is_refused() -> None:
    scene = Scene().with_brokers(1)
    scene.created("t")
    kind = messages.CreatePartitionsRequest
    twice = kind.CreatePartitionsTopic(name="t", count=2, assignments=None)
    reply = scene.play(kind(topics=[twice, twice])).reply
    assert isinstance(reply, messages.CreatePartitionsResponse)
    assert [(r.name, r.error_code) for r in reply.results] == [("t", Errors.INVALID_REQUEST)]
    assert len(scene.image.topics["t"].partitions) == 1
