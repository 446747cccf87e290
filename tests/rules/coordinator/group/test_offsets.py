"""Committed offsets: who may commit, what is seen, what expires."""

import pytest

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from tests.rules.coordinator.group.scene import Scene, topic_id

DAY = 86_400_000


def test_a_bare_commit_makes_a_group_that_only_holds_offsets() -> None:
    scene = Scene()
    assert scene.commit(7, metadata="note") == Errors.NONE
    assert scene.committed() == 7
    assert scene.groups() == {"g": ("classic", "Empty")}


def test_a_commit_is_written_as_kafka_writes_it() -> None:
    scene = Scene()
    scene.commit(7, metadata="note")
    record, _ = scene.log[-1]
    assert record.key == messages.OffsetCommitKey(group="g", topic="orders", partition=0)
    assert record.value == messages.OffsetCommitValue(
        offset=7, leader_epoch=-1, metadata="note", commit_timestamp=scene.now, topic_id=topic_id("orders")
    )
    assert record.version == 4


def test_only_a_commit_with_a_retention_time_is_written_in_version_1() -> None:
    scene = Scene()
    scene.commit(7, version=4, retention=1000)
    assert scene.log[-1][0].version == 1
    assert scene.restart().committed() == 7


def test_offsets_come_back_from_the_log() -> None:
    scene = Scene()
    scene.commit(1)
    scene.commit(2, partition=3)
    scene.commit(5)
    assert scene.restart().committed() == 5
    assert scene.committed(partition=3) == 2


def test_an_offset_nobody_committed_is_minus_one() -> None:
    assert Scene().committed() == -1


@pytest.mark.parametrize(("version", "error"), [(8, Errors.ILLEGAL_GENERATION), (9, Errors.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_group_that_is_gone_is_told_in_the_terms_of_its_version(version: int, error: Errors) -> None:
    assert Scene().commit(1, member="m", generation=3, version=version) == error


def test_generation_and_member_are_checked_when_the_commit_is_written() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    assert scene.commit(1, member=member, generation=1) == Errors.NONE
    assert scene.commit(2, member=member, generation=0) == Errors.ILLEGAL_GENERATION
    assert scene.commit(2, member="stranger", generation=1) == Errors.UNKNOWN_MEMBER_ID
    assert scene.commit(2) == Errors.UNKNOWN_MEMBER_ID  # a bare commit, but the group has members
    assert scene.committed() == 1


def test_a_member_that_has_no_assignment_yet_has_nothing_to_commit() -> None:
    scene = Scene()
    member, _ = scene.join_known()
    scene.pass_time(0)
    assert scene.commit(1, member=member, generation=1) == Errors.REBALANCE_IN_PROGRESS


def test_a_note_that_is_too_long_refuses_its_partition_only() -> None:
    scene = Scene(offset_metadata_max_bytes=4)
    assert scene.commit(1, metadata="12345") == Errors.OFFSET_METADATA_TOO_LARGE
    assert scene.commit(1, metadata="1234") == Errors.NONE


def test_an_offset_of_an_earlier_topic_of_the_same_name_is_not_told_to_who_asks_by_id() -> None:
    scene = Scene()
    scene.commit(7)
    kind = messages.OffsetFetchRequest
    asked = kind.OffsetFetchRequestGroup(
        group_id="g",
        topics=[kind.OffsetFetchRequestTopics(name="orders", topic_id=b"x" * 16, partition_indexes=[0])],
    )
    found = scene.take(scene.shard.fetch_offsets(asked, False))
    assert found.topics[0].partitions[0].committed_offset == -1


def test_asking_for_nothing_in_particular_lists_every_offset() -> None:
    scene = Scene({"orders": 4, "parcels": 1})
    scene.commit(1)
    scene.commit(2, topic="parcels")
    asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    found = scene.take(scene.shard.fetch_offsets(asked, False))
    assert {topic.name: topic.partitions[0].committed_offset for topic in found.topics} == {"orders": 1, "parcels": 2}


# ---- transactions


def test_offsets_of_a_transaction_are_seen_once_it_is_committed() -> None:
    scene = Scene()
    scene.commit(1)
    assert scene.txn_commit(5, producer_id=9) == Errors.NONE
    assert scene.committed() == 1
    assert scene.committed(stable=True) == Errors.UNSTABLE_OFFSET_COMMIT
    scene.end_transaction(9, committed=True)
    assert scene.committed(stable=True) == 5


def test_offsets_of_an_aborted_transaction_never_were() -> None:
    scene = Scene()
    scene.commit(1)
    scene.txn_commit(5, producer_id=9)
    scene.end_transaction(9, committed=False)
    assert scene.committed(stable=True) == 1


def test_a_plain_commit_after_the_staged_one_wins_whatever_the_marker_says() -> None:
    scene = Scene()
    scene.txn_commit(5, producer_id=9)
    scene.commit(8)
    scene.end_transaction(9, committed=True)
    assert scene.committed() == 8
    assert scene.restart().committed() == 8


def test_staged_offsets_survive_a_restart() -> None:
    scene = Scene()
    scene.txn_commit(5, producer_id=9)
    scene.restart()
    assert scene.committed(stable=True) == Errors.UNSTABLE_OFFSET_COMMIT
    scene.end_transaction(9, committed=True)
    assert scene.committed(stable=True) == 5


def test_kip_447_a_transactional_commit_is_fenced_by_member_and_generation() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    assert scene.txn_commit(5, 9, member=member, generation=1) == Errors.NONE
    assert scene.txn_commit(5, 9, member=member, generation=0) == Errors.ILLEGAL_GENERATION
    assert scene.txn_commit(5, 9, member="stranger", generation=1) == Errors.UNKNOWN_MEMBER_ID
    assert scene.txn_commit(5, 9) == Errors.NONE  # versions before KIP-447 name no member
    assert scene.txn_commit(5, 9, group="nowhere", generation=1) == Errors.ILLEGAL_GENERATION


# ---- going away


def delete(scene: Scene, *partitions: int) -> list[Errors]:
    kind = messages.OffsetDeleteRequest
    asked = [kind.OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    request = kind(group_id="g", topics=[kind.OffsetDeleteRequestTopic(name="orders", partitions=asked)])
    response = scene.take(scene.shard.delete_offsets(request))
    if response.error_code:
        return [Errors(response.error_code)]
    return [Errors(partition.error_code) for partition in response.topics[0].partitions]


def test_offsets_can_be_deleted_staged_ones_too() -> None:
    scene = Scene()
    scene.commit(1)
    scene.txn_commit(5, producer_id=9)
    assert delete(scene, 0, 1) == [Errors.NONE, Errors.NONE]
    scene.end_transaction(9, committed=True)
    assert scene.committed() == -1
    assert scene.restart().committed() == -1


def test_offsets_of_a_topic_that_the_group_reads_cannot_be_deleted() -> None:
    scene = Scene()
    (member,) = scene.stable_group()
    scene.commit(1, member=member, generation=1)
    assert delete(scene, 0) == [Errors.GROUP_SUBSCRIBED_TO_TOPIC]


def test_nothing_of_an_unknown_group_or_of_opaque_members_can_be_deleted() -> None:
    scene = Scene()
    assert delete(scene, 0) == [Errors.GROUP_ID_NOT_FOUND]
    scene.stable_group(protocol_type="connect")
    assert delete(scene, 0) == [Errors.NON_EMPTY_GROUP]


def test_offsets_of_a_deleted_topic_go_with_it() -> None:
    scene = Scene({"orders": 4, "parcels": 1})
    scene.commit(1)
    scene.commit(2, topic="parcels")
    scene.topics_become({"parcels": 1})
    assert (scene.committed(), scene.committed(topic="parcels")) == (-1, 2)
    assert scene.restart().committed() == -1


def test_a_simple_group_expires_from_its_last_commit() -> None:
    scene = Scene(offsets_retention=Millis(7 * DAY), offsets_retention_check=Millis(DAY))
    scene.commit(1)
    scene.pass_time(6 * DAY)
    assert scene.committed() == 1
    scene.pass_time(2 * DAY)
    assert scene.groups() == {}
    assert scene.restart().groups() == {}


def test_a_group_expires_from_when_its_last_member_left() -> None:
    scene = Scene(offsets_retention=Millis(7 * DAY), offsets_retention_check=Millis(DAY))
    (member,) = scene.stable_group(session=1_800_000)
    scene.commit(1, member=member, generation=1)
    for _ in range(20 * 48):
        scene.pass_time(1_800_000 - 1000)
        assert scene.beat(member, 1) == Errors.NONE
    scene.leave(member)
    scene.pass_time(6 * DAY)
    assert scene.committed() == 1
    scene.pass_time(2 * DAY)
    assert scene.groups() == {}


def test_an_open_transaction_keeps_offsets_and_group() -> None:
    scene = Scene(offsets_retention=Millis(7 * DAY), offsets_retention_check=Millis(DAY))
    scene.commit(1)
    scene.txn_commit(2, producer_id=9)
    scene.pass_time(20 * DAY)
    assert scene.committed() == 1
    scene.end_transaction(9, committed=False)
    scene.pass_time(2 * DAY)
    assert scene.groups() == {}
