"""AlterPartition: what the leader of a partition may change, and what the controller makes of it."""

import pytest

from ottla.metadata.image import RECOVERED, RECOVERING, PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, features, uuid

Request = messages.AlterPartitionRequest
Answer = messages.AlterPartitionResponse.PartitionData


def asked(scene: Scene, *isr: int, **fields: object) -> "Request":
    """The leader's request for this ISR with all epochs right; fields of the partition can be given."""
    partition = scene.partition()
    data = Request.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
        new_isr_with_epochs=[Request.BrokerState(broker_id=b, broker_epoch=scene.epoch_of(b)) for b in isr],
    )
    for name, value in fields.items():
        setattr(data, name, value)
    return Request(
        broker_id=partition.leader,
        broker_epoch=scene.epoch_of(partition.leader),
        topics=[Request.TopicData(topic_id=scene.image.topics["t"].id, partitions=[data])],
    )


def answer(scene: Scene, request: "Request") -> "Answer":
    reply = scene.play(request).reply
    assert isinstance(reply, messages.AlterPartitionResponse)
    assert reply.error_code == Errors.NONE
    ((result,),) = (topic.partitions for topic in reply.topics)
    return result


def led_by_2(**settings: str) -> Scene:
    return Scene(None, **settings).with_brokers(1, 2, 3).with_partition(2, 3, 1)


def test_a_shrunken_isr_is_written_and_answered_with_the_new_partition_epoch() -> None:
    scene = led_by_2()
    before = scene.partition()
    assert answer(scene, asked(scene, 2, 3)) == Answer(
        partition_index=0, leader_id=2, leader_epoch=0, isr=[2, 3], leader_recovery_state=RECOVERED, partition_epoch=1
    )
    assert scene.partition() == before._replace(isr=(2, 3), partition_epoch=1)


def test_an_isr_grows_again() -> None:
    scene = led_by_2()
    scene.has_isr(2)
    assert answer(scene, asked(scene, 2, 3, 1)).isr == [2, 3, 1]


def test_the_same_isr_changes_nothing_and_is_answered_as_it_is() -> None:
    scene = led_by_2()
    request = asked(scene, 2, 3, 1)
    assert scene.decide(request).records == ()
    assert answer(scene, request).partition_epoch == 0


def test_a_former_life_of_the_leader_is_refused_as_a_whole() -> None:
    scene = led_by_2()
    request = asked(scene, 2)
    request.broker_epoch -= 1
    assert scene.decide(request).reply == messages.AlterPartitionResponse(error_code=Errors.STALE_BROKER_EPOCH)


def test_unknown_topics_and_partitions_are_refused_one_by_one() -> None:
    scene = led_by_2()
    request = asked(scene, 2)
    request.topics[0].partitions[0].partition_index = 7
    stranger = Request.TopicData(topic_id=uuid(77), partitions=[Request.PartitionData(partition_index=1)])
    request.topics.append(stranger)
    reply = scene.decide(request).reply
    assert isinstance(reply, messages.AlterPartitionResponse)
    errors = [(Uuid(t.topic_id), p.partition_index, p.error_code) for t in reply.topics for p in t.partitions]
    assert errors == [
        (scene.image.topics["t"].id, 7, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (uuid(77), 1, Errors.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"leader_epoch": 9}, Errors.NOT_CONTROLLER),
        ({"partition_epoch": 9}, Errors.NOT_CONTROLLER),
        ({"leader_epoch": 0}, Errors.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 1}, Errors.INVALID_UPDATE_VERSION),
        ({"leader_recovery_state": RECOVERING}, Errors.INVALID_REQUEST),
        ({"leader_recovery_state": 5}, Errors.INVALID_REQUEST),
    ],
)
def test_epochs_and_recovery_state_must_fit(fields: dict[str, object], error: Errors) -> None:
    scene = led_by_2()
    scene.fence(2)  # 3 leads with epoch 1
    scene.unfence(2)
    scene.has_isr(3, 1)
    assert scene.partition().leader_epoch == 1
    assert answer(scene, asked(scene, 3, **fields)).error_code == error


def test_only_the_leader_may_ask() -> None:
    scene = led_by_2()
    request = asked(scene, 2, 3)
    request.broker_id, request.broker_epoch = 3, scene.epoch_of(3)
    assert answer(scene, request).error_code == Errors.INVALID_REQUEST


@pytest.mark.parametrize("isr", [(), (2, 2), (2, 4)])
def test_an_isr_holds_replicas_of_the_partition_once_each(isr: tuple[int, ...]) -> None:
    scene = led_by_2().with_brokers(4)
    assert answer(scene, asked(scene, *isr)).error_code == Errors.INVALID_REQUEST


def test_a_leader_that_leaves_the_isr_stands_down_for_one_that_stays() -> None:
    scene = led_by_2()
    assert answer(scene, asked(scene, 1, 3)).error_code == Errors.NEW_LEADER_ELECTED
    partition = scene.partition()
    assert (partition.leader, partition.leader_epoch, partition.isr) == (3, 1, (1, 3))


@pytest.mark.parametrize("isr", [(), (1,), (3, 1)])
def test_a_leader_stands_down_for_those_in_sync_only(isr: tuple[int, ...]) -> None:
    scene = led_by_2()
    scene.has_isr(2, 3)
    before = scene.partition()
    assert answer(scene, asked(scene, *isr)).error_code == Errors.INVALID_REQUEST
    assert scene.partition() == before


def test_a_leader_does_not_stand_down_for_one_that_is_fenced() -> None:
    scene = led_by_2()
    request = asked(scene, 3)
    scene.fence(3)
    request.topics[0].partitions[0].partition_epoch = scene.partition().partition_epoch
    assert answer(scene, request).error_code == Errors.INVALID_REQUEST  # it left the ISR with that
    assert scene.partition().leader == 2


def test_kip_841_neither_a_fenced_nor_a_leaving_nor_an_unknown_broker_joins() -> None:
    scene = led_by_2()
    scene.fence(3)
    assert answer(scene, asked(scene, 2, 1, 3)).error_code == Errors.INELIGIBLE_REPLICA
    scene.unfence(3)
    assert answer(scene, asked(scene, 2, 1, 3)).error_code == Errors.NONE
    scene.with_partition(3, 2, topic="led-by-3")
    scene.beat(3, want_shut_down=True)
    assert scene.image.brokers[3].in_controlled_shutdown
    assert answer(scene, asked(scene, 2, 1, 3)).error_code == Errors.INELIGIBLE_REPLICA
    request = asked(scene, 2, 1, 3)
    scene.play(messages.UnregisterBrokerRequest(broker_id=3))
    request.topics[0].partitions[0].partition_epoch = scene.partition().partition_epoch
    assert answer(scene, request).error_code == Errors.INELIGIBLE_REPLICA


def test_kip_903_a_follower_of_a_former_life_does_not_join_unless_its_epoch_is_unknown() -> None:
    scene = led_by_2()
    scene.has_isr(2)
    request = asked(scene, 2, 3)
    state = request.topics[0].partitions[0].new_isr_with_epochs[1]
    state.broker_epoch -= 1
    assert answer(scene, request).error_code == Errors.INELIGIBLE_REPLICA
    state.broker_epoch = -1
    assert answer(scene, request).error_code == Errors.NONE


def test_version_2_gives_no_broker_epochs() -> None:
    scene = led_by_2()
    assert answer(scene, asked(scene, new_isr=[2, 1], new_isr_with_epochs=[])).isr == [2, 1]


# Recovery after an unclean election (KIP-704)


def recovering() -> Scene:
    scene = Scene(records=features(elr=0), unclean_leader_election_enable="true").with_brokers(2, 3)
    scene.with_partition(2, 3)
    scene.fence(3, 2)
    scene.unfence(3)
    scene.unfence(2)
    assert scene.partition().leader_recovery_state == RECOVERING
    return scene


def test_kip_704_nobody_joins_a_leader_that_recovers() -> None:
    scene = recovering()
    assert answer(scene, asked(scene, 3, 2)).error_code == Errors.INVALID_REQUEST


def test_kip_704_the_leader_says_when_it_has_recovered() -> None:
    scene = recovering()
    assert answer(scene, asked(scene, 3, leader_recovery_state=RECOVERED)).leader_recovery_state == RECOVERED
    assert scene.partition().leader_recovery_state == RECOVERED
    assert answer(scene, asked(scene, 3, 2)).isr == [3, 2]


# ELR (KIP-966)


def test_kip_966_who_leaves_an_isr_below_the_minimum_becomes_eligible_and_loses_it_when_the_isr_has_recovered() -> None:
    scene = led_by_2(min_insync_replicas="2")
    answer(scene, asked(scene, 2))
    after = scene.partition()
    assert (after.isr, after.elr) == ((2,), (1, 3))
    answer(scene, asked(scene, 2, 1))
    after = scene.partition()
    assert (after.isr, after.elr) == ((2, 1), ())


def test_kip_966_an_isr_at_the_minimum_needs_no_elr() -> None:
    scene = led_by_2(min_insync_replicas="2")
    answer(scene, asked(scene, 2, 3))
    assert scene.partition().elr == ()


def test_kafka_15021_before_3_6_a_smaller_isr_begins_a_new_leader_epoch_and_a_larger_one_does_not() -> None:
    scene = Scene(records=features(metadata=11, elr=0)).with_brokers(1, 2).with_partition(2, 1)
    answer(scene, asked(scene, 2))
    assert (scene.partition().isr, scene.partition().leader_epoch) == ((2,), 1)
    answer(scene, asked(scene, 2, 1))
    assert (scene.partition().isr, scene.partition().leader_epoch) == ((2, 1), 1)


# Reassignments end here


def moving(scene: Scene, *replicas: int) -> Scene:
    kind = messages.AlterPartitionReassignmentsRequest
    target = kind.ReassignablePartition(partition_index=0, replicas=list(replicas))
    scene.play(kind(topics=[kind.ReassignableTopic(name="t", partitions=[target])]))
    return scene


def test_kip_455_a_reassignment_ends_when_all_newcomers_are_in_sync() -> None:
    scene = moving(led_by_2().with_brokers(4), 2, 3, 4)
    partition = scene.partition()
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ((2, 3, 4, 1), (4,), (1,))
    result = answer(scene, asked(scene, 2, 3, 1, 4))
    assert (result.error_code, result.isr, result.leader_id) == (Errors.NONE, [2, 3, 4], 2)
    assert scene.partition() == PartitionImage(
        replicas=(2, 3, 4),
        directories=(uuid(902), uuid(903), uuid(904)),
        isr=(2, 3, 4),
        removing_replicas=(),
        adding_replicas=(),
        elr=(),
        last_known_elr=(),
        leader=2,
        leader_recovery_state=RECOVERED,
        leader_epoch=1,  # a replica was taken away: its fetches must be refused
        partition_epoch=2,
    )


def test_kip_455_a_leader_that_leaves_is_told_that_another_was_elected() -> None:
    scene = moving(led_by_2().with_brokers(4), 3, 1, 4)
    result = answer(scene, asked(scene, 2, 3, 1, 4))
    assert result == Answer(partition_index=0, error_code=Errors.NEW_LEADER_ELECTED)
    after = scene.partition()
    assert (after.leader, after.replicas, after.isr, after.leader_epoch) == (3, (3, 1, 4), (3, 1, 4), 1)
