"""Brokers with several directories (KIP-858): where replicas are, and what is lost with a directory."""

from ottla.metadata.image import offline_replicas
from ottla.model.errors import Errors
from ottla.model.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, features, uuid

Request = messages.AssignReplicasToDirsRequest
A, B, GONE = uuid(902), uuid(912), uuid(999)


def scene_with_two_directories() -> Scene:
    scene = Scene().with_brokers(1)
    scene.with_brokers(2, log_dirs=[A, B])
    return scene.with_partition(2, 1)


def assign(scene: Scene, directory: Uuid, *partitions: int, topic_id: Uuid | None = None) -> list[int]:
    topic = Request.TopicData(
        topic_id=topic_id or scene.image.topics["t"].id,
        partitions=[Request.PartitionData(partition_index=index) for index in partitions],
    )
    request = Request(
        broker_id=2, broker_epoch=scene.epoch_of(2), directories=[Request.DirectoryData(id=directory, topics=[topic])]
    )
    reply = scene.play(request).reply
    assert isinstance(reply, messages.AssignReplicasToDirsResponse)
    assert reply.error_code == Errors.NONE
    ((result,),) = (d.topics for d in reply.directories)
    return [p.error_code for p in result.partitions]


def test_a_new_replica_is_unassigned_until_its_broker_has_chosen() -> None:
    scene = scene_with_two_directories()
    before = scene.partition()
    assert before.directories == (UNASSIGNED_DIRECTORY, uuid(901))
    assert assign(scene, B, 0) == [Errors.NONE]
    assert scene.partition() == before._replace(directories=(B, uuid(901)), partition_epoch=1)
    assert assign(scene, B, 0) == [Errors.NONE]
    assert scene.partition().partition_epoch == 1


def test_a_replica_in_a_directory_that_is_gone_leaves_isr_and_leadership() -> None:
    scene = scene_with_two_directories()
    assert assign(scene, GONE, 0) == [Errors.NONE]
    after = scene.partition()
    assert (after.directories, after.leader, after.isr) == ((GONE, uuid(901)), 1, (1,))


def test_partitions_that_are_not_the_brokers_are_refused() -> None:
    scene = scene_with_two_directories().with_partition(1, topic="other")
    assert assign(scene, A, 0, 5) == [Errors.NONE, Errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert assign(scene, A, 0, topic_id=scene.image.topics["other"].id) == [Errors.NOT_LEADER_OR_FOLLOWER]
    assert assign(scene, A, 0, topic_id=uuid(5)) == [Errors.UNKNOWN_TOPIC_ID]


def test_a_former_life_cannot_assign_nor_can_anybody_before_3_7() -> None:
    scene = scene_with_two_directories()
    stale = Request(broker_id=2, broker_epoch=scene.epoch_of(2) - 1)
    answer = messages.AssignReplicasToDirsResponse
    assert scene.decide(stale).reply == answer(error_code=Errors.STALE_BROKER_EPOCH)
    old = Scene(records=features(metadata=16, elr=0)).with_brokers(2)
    request = Request(broker_id=2, broker_epoch=old.epoch_of(2))
    assert old.decide(request).reply == answer(error_code=Errors.UNSUPPORTED_VERSION)


def test_a_lost_directory_elects_new_leaders_and_its_replica_cannot_lead_even_when_nobody_else_can() -> None:
    scene = scene_with_two_directories()
    assign(scene, A, 0)
    scene.beat(2, offline_log_dirs=[A])
    assert (scene.partition().leader, scene.partition().isr) == (1, (1,))
    scene.fence(1)
    after = scene.partition()
    assert (after.leader, after.isr, after.elr) == (-1, (), (1,))


def test_a_broker_back_without_the_directory_does_not_lead_what_was_in_it() -> None:
    scene = Scene().with_brokers(1)
    scene.with_brokers(2, log_dirs=[A, B])
    scene.with_partition(2)
    assign(scene, A, 0)
    scene.beat(2, want_shut_down=True, want_fence=True)
    scene.register(2, 1, log_dirs=[B])
    scene.unfence(2)
    assert scene.partition().leader == -1
    scene.beat(2, want_shut_down=True, want_fence=True)
    scene.register(2, 2, log_dirs=[A, B])
    scene.unfence(2)
    assert (scene.partition().leader, scene.partition().isr) == (2, (2,))


def test_a_lone_node_back_without_the_directory_gives_up_what_was_in_it() -> None:
    scene = Scene()
    scene.with_brokers(1, log_dirs=[A, B])
    scene.with_partition(1)
    placed = messages.PartitionChangeRecord(partition_id=0, topic_id=scene.image.topics["t"].id, directories=[A])
    scene.replay([placed])
    scene.register(1, 1, log_dirs=[B])
    scene.unfence(1)
    assert (scene.partition().leader, scene.partition().isr) == (-1, ())


def test_which_directories_count_as_live() -> None:
    scene = scene_with_two_directories()
    broker = scene.image.brokers[2]
    asked = [A, B, GONE, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY, LOST_DIRECTORY]
    assert [broker.has_directory(d) for d in asked] == [True, True, False, True, True, False]
    # KAFKA-16162: a registration without directories says nothing about them.
    unknown = broker._replace(log_dirs=())
    assert [unknown.has_directory(d) for d in asked] == [True, True, True, True, True, False]


def test_replicas_in_a_lost_directory_are_shown_as_offline() -> None:
    scene = scene_with_two_directories()
    assign(scene, B, 0)
    assert offline_replicas(scene.image, scene.partition()) == []
    scene.play(
        messages.BrokerHeartbeatRequest(
            broker_id=2,
            broker_epoch=scene.epoch_of(2),
            current_metadata_offset=scene.image.offset,
            offline_log_dirs=[B],
        )
    )
    assert offline_replicas(scene.image, scene.partition()) == [2]
    scene.fence(1)
    assert offline_replicas(scene.image, scene.partition()) == [2, 1]
