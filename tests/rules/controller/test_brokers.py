"""Brokers register, are unfenced, fall silent, leave and come back."""

import pytest

from ottla.metadata.image import PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.controller.scene import Assignment, Scene, Topic, a_registration, features, uuid


def the_error(scene: Scene, request: "messages.BrokerRegistrationRequest") -> int:
    reply = scene.decide(request).reply
    assert isinstance(reply, messages.BrokerRegistrationResponse)
    return reply.error_code


def test_a_new_broker_is_fenced_until_its_first_heartbeat_that_has_caught_up() -> None:
    scene = Scene()
    reply = scene.register(1).reply
    assert isinstance(reply, messages.BrokerRegistrationResponse)
    assert reply.broker_epoch == 10  # the offset of its registration
    assert scene.image.brokers[1].fenced
    behind = scene.beat(1, current_metadata_offset=9).reply
    assert behind == messages.BrokerHeartbeatResponse(is_caught_up=False, is_fenced=True)
    assert scene.beat(1).reply == messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
    assert scene.image.brokers[1].is_active


def test_a_broker_may_ask_to_stay_fenced_and_to_be_fenced_again() -> None:
    scene = Scene()
    scene.register(1)
    scene.beat(1, want_fence=True)
    assert scene.image.brokers[1].fenced
    scene.unfence(1)
    scene.beat(1, want_fence=True)
    assert scene.image.brokers[1].fenced


def test_another_incarnation_gets_a_new_epoch_and_the_same_one_keeps_it() -> None:
    scene = Scene().with_brokers(1)
    first = scene.image.brokers[1]
    scene.register(1, 0, rack="r1")
    assert scene.image.brokers[1] == first._replace(rack="r1", cordoned_log_dirs=None)
    scene.register(1, 1)
    again = scene.image.brokers[1]
    assert (again.epoch > first.epoch, again.fenced, again.incarnation_id) == (True, True, uuid(511))


def test_a_second_process_with_a_live_brokers_id_is_refused_until_the_session_ends() -> None:
    scene = Scene().with_brokers(1, 2)
    assert the_error(scene, a_registration(2, 1)) == Errors.DUPLICATE_BROKER_REGISTRATION
    scene.now = Millis(9000)
    assert the_error(scene, a_registration(2, 1)) == Errors.NONE
    # The broker in the controller's own process can only be one that was started again.
    assert the_error(scene, a_registration(1, 1)) == Errors.NONE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "another"}, Errors.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, Errors.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, Errors.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, Errors.INVALID_REGISTRATION),
        ({"log_dirs": [uuid(1), uuid(1)]}, Errors.INVALID_REGISTRATION),
        ({"log_dirs": [uuid(902)]}, Errors.INVALID_REGISTRATION),
        ({"features": []}, Errors.INVALID_REGISTRATION),
    ],
)
def test_a_registration_must_fit_the_cluster(fields: dict[str, object], error: Errors) -> None:
    scene = Scene().with_brokers(2)
    assert the_error(scene, a_registration(3, **fields)) == error


def test_a_broker_must_support_every_finalized_feature() -> None:
    scene = Scene()
    request = a_registration(1)
    request.features = [f for f in request.features if f.name != "group.version"]
    assert the_error(scene, request) == Errors.UNSUPPORTED_VERSION


def test_heartbeats_and_producer_ids_of_a_former_life_are_refused() -> None:
    scene = Scene().with_brokers(1)
    beat = messages.BrokerHeartbeatRequest(broker_id=1, broker_epoch=1)
    assert scene.decide(beat).reply == messages.BrokerHeartbeatResponse(error_code=Errors.STALE_BROKER_EPOCH)
    ids = messages.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)
    assert scene.decide(ids).reply == messages.AllocateProducerIdsResponse(error_code=Errors.STALE_BROKER_EPOCH)


# What happens to partitions


def with_partition(scene: Scene, *replicas: int) -> Scene:
    assignment = [Assignment(partition_index=0, broker_ids=list(replicas))]
    scene.create(Topic(name="t", num_partitions=-1, replication_factor=-1, assignments=assignment))
    return scene


def the_partition(scene: Scene) -> PartitionImage:
    return scene.image.topics["t"].partitions[0]


def test_kip_320_a_restart_begins_a_new_leader_epoch_for_each_partition_with_one_record() -> None:
    scene = with_partition(Scene().with_brokers(1), 1)
    before = the_partition(scene)
    assert [type(r).__name__ for r in scene.register(1, 1).records] == ["RegisterBrokerRecord"]
    kinds = [type(r).__name__ for r in scene.unfence(1).records]
    assert kinds == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert the_partition(scene) == before._replace(leader_epoch=1, partition_epoch=1)


def test_a_partition_that_kafka_left_without_a_leader_is_led_again() -> None:
    # Apache Kafka moves the only replica to the ELR when it shuts down, and marks it RECOVERING after a crash.
    scene = with_partition(Scene().with_brokers(1), 1)
    topic_id = scene.image.topics["t"].id
    scene.replay(
        [
            messages.PartitionChangeRecord(
                partition_id=0,
                topic_id=topic_id,
                isr=[],
                leader=-1,
                leader_recovery_state=1,
                eligible_leader_replicas=[1],
                last_known_elr=[1],
            )
        ]
    )
    scene.register(1, 1)
    scene.unfence(1)
    after = the_partition(scene)
    assert (after.isr, after.elr, after.last_known_elr) == ((1,), (), ())
    assert (after.leader, after.leader_epoch, after.leader_recovery_state) == (1, 2, 0)


def test_a_fenced_leader_hands_over_to_the_next_in_sync_replica() -> None:
    scene = with_partition(Scene().with_brokers(1, 2, 3), 2, 3, 1)
    scene.now = Millis(9000)
    scene.beat(3)
    scene.replay(scene.controller.tick(scene.now).records)
    after = the_partition(scene)
    assert (after.leader, after.isr, after.leader_epoch) == (3, (3, 1), 1)
    assert scene.image.brokers[2].fenced
    assert scene.controller.tick(scene.now).records == ()


def test_a_follower_that_is_fenced_leaves_the_isr_and_the_leader_keeps_its_epoch() -> None:
    scene = with_partition(Scene().with_brokers(1, 2), 1, 2)
    scene.beat(2, want_fence=True)
    after = the_partition(scene)
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (1, (1,), 0, 1)


def test_kip_966_the_last_in_sync_replica_becomes_eligible_and_is_elected_when_it_returns() -> None:
    scene = with_partition(Scene().with_brokers(2, 3), 2, 3)
    scene.beat(3, want_fence=True)
    scene.beat(2, want_fence=True)
    gone = the_partition(scene)
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_elr) == (-1, (), (2,), (2,))
    scene.unfence(3)
    assert the_partition(scene) == gone  # not eligible: it missed what 2 acknowledged alone
    scene.unfence(2)
    back = the_partition(scene)
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (2, (2,), (), ())
    assert back.leader_recovery_state == 0


def test_kip_966_a_broker_back_from_a_crash_leaves_the_elr() -> None:
    scene = with_partition(Scene(min_insync_replicas="2").with_brokers(2, 3), 2, 3)
    scene.beat(3, want_fence=True)
    assert the_partition(scene).elr == (3,)
    scene.now = Millis(20_000)
    scene.register(3, 1, previous_broker_epoch=-1)
    assert the_partition(scene).elr == ()


def test_kip_966_a_broker_back_from_a_clean_shutdown_stays_in_the_elr() -> None:
    scene = with_partition(Scene(min_insync_replicas="2").with_brokers(2, 3), 2, 3)
    epoch = scene.image.brokers[3].epoch
    scene.beat(3, want_fence=True)
    scene.now = Millis(20_000)
    scene.register(3, 1, previous_broker_epoch=epoch)
    assert the_partition(scene).elr == (3,)


def test_without_elr_the_last_replica_stays_in_the_isr_and_leads_again() -> None:
    scene = with_partition(Scene(records=features(elr=0)).with_brokers(2, 3), 2, 3)
    scene.beat(3, want_fence=True)
    scene.beat(2, want_fence=True)
    gone = the_partition(scene)
    assert (gone.leader, gone.isr, gone.elr) == (-1, (2,), ())
    scene.unfence(3)
    assert the_partition(scene).leader == -1
    scene.unfence(2)
    assert the_partition(scene).leader == 2


def test_unclean_election_is_a_topics_choice_and_marks_the_partition_recovering() -> None:
    scene = Scene(records=features(elr=0), unclean_leader_election_enable="true").with_brokers(2, 3)
    with_partition(scene, 2, 3)
    scene.beat(3, want_fence=True)
    scene.beat(2, want_fence=True)
    scene.unfence(3)
    after = the_partition(scene)
    assert (after.leader, after.isr, after.leader_recovery_state) == (3, (3,), 1)


def test_a_broker_that_leads_what_others_can_take_shuts_down_in_two_steps() -> None:
    scene = with_partition(Scene().with_brokers(2, 3), 2, 3)
    first = scene.beat(2, want_shut_down=True).reply
    assert first == messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)
    assert scene.image.brokers[2].in_controlled_shutdown
    assert (the_partition(scene).leader, the_partition(scene).isr) == (3, (3,))
    scene.beat(3)  # has read who leads
    second = scene.beat(2, want_shut_down=True).reply
    assert second == messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)


def test_a_broker_that_nobody_can_replace_shuts_down_at_once_and_keeps_its_partitions() -> None:
    scene = with_partition(Scene().with_brokers(1), 1)
    before = the_partition(scene)
    reply = scene.beat(1, want_shut_down=True).reply
    assert reply == messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)
    assert (the_partition(scene), scene.image.brokers[1].fenced) == (before, True)


def test_an_unregistered_broker_leaves_every_isr_and_the_cluster() -> None:
    scene = with_partition(Scene().with_brokers(1, 2), 2, 1)
    scene.play(messages.UnregisterBrokerRequest(broker_id=2))
    assert list(scene.image.brokers) == [1]
    assert (the_partition(scene).leader, the_partition(scene).isr) == (1, (1,))
    reply = scene.decide(messages.UnregisterBrokerRequest(broker_id=2)).reply
    assert isinstance(reply, messages.UnregisterBrokerResponse)
    assert reply.error_code == Errors.BROKER_ID_NOT_REGISTERED


def test_a_lost_directory_takes_its_replicas_out_and_leaves_the_others() -> None:
    scene = Scene().with_brokers(1)
    scene.with_brokers(2, log_dirs=[uuid(902), uuid(903)])
    with_partition(scene, 2, 1)
    topic_id = scene.image.topics["t"].id
    placed = messages.PartitionChangeRecord(partition_id=0, topic_id=topic_id, directories=[uuid(902), uuid(901)])
    scene.replay([placed])
    scene.beat(2, offline_log_dirs=[uuid(903)])
    assert the_partition(scene).leader == 2
    assert scene.image.brokers[2].log_dirs == (uuid(902),)
    scene.beat(2, offline_log_dirs=[uuid(902)])
    assert (the_partition(scene).leader, the_partition(scene).isr) == (1, (1,))


def test_producer_ids_come_in_blocks_of_a_thousand_and_never_twice() -> None:
    scene = Scene().with_brokers(1)
    epoch = scene.image.brokers[1].epoch
    request = messages.AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    replies = [scene.play(request).reply for _ in range(3)]
    assert replies == [
        messages.AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=1000) for start in (0, 1000, 2000)
    ]
    assert scene.image.next_producer_id == 3000
    scene.replay([messages.ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=(1 << 63) - 5)])
    exhausted = scene.decide(request).reply
    assert exhausted == messages.AllocateProducerIdsResponse(error_code=Errors.UNKNOWN_SERVER_ERROR)
