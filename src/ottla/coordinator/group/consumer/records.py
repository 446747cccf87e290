"""The records of consumer-protocol groups, as Kafka 4.3 writes them."""

from collections.abc import Iterable, Mapping

from ottla.coordinator.group.consumer.assignors import Partitions
from ottla.coordinator.group.consumer.member import ConsumerMember, Owned, Resolved
from ottla.coordinator.records import CoordinatorRecord, tombstone
from ottla.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id), value)


def old_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id))


def member_metadata(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout,
        server_assignor=member.assignor,
        classic_member_metadata=member.classic,
    )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def target(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic, partitions=list(indexes))
            for topic, indexes in partitions.items()
        ]
    )
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch(group_id: str, epoch: int, timestamp: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def current(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_topics(member.assigned),
        partitions_pending_revocation=_topics(member.revoking),
    )
    return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _topics(owned: Owned) -> list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    return [
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic, partitions=list(partitions), assignment_epochs=list(partitions.values())
        )
        for topic, partitions in owned.items()
    ]


def regex(group_id: str, pattern: str, resolved: Resolved) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=list(resolved.topics), version=resolved.version, timestamp=resolved.timestamp
    )
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, pattern), value)


def regex_tombstone(group_id: str, pattern: str) -> CoordinatorRecord:
    return tombstone(ConsumerGroupRegularExpressionKey(group_id, pattern))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In the order that replay needs: first what it has, then what it should have, then who it is."""
    return [
        tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        tombstone(ConsumerGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group_id: str, members: Iterable[str], regexes: Mapping[str, object]) -> list[CoordinatorRecord]:
    members = list(members)
    return [
        *(tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)) for member_id in members),
        *(tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)) for member_id in members),
        tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id)),
        *(tombstone(ConsumerGroupMemberMetadataKey(group_id, member_id)) for member_id in members),
        *(regex_tombstone(group_id, pattern) for pattern in regexes),
        old_metadata_tombstone(group_id),
        tombstone(ConsumerGroupMetadataKey(group_id)),
    ]
