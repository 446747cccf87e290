"""What ConsumerGroupDescribe tells."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import ConsumerMember
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.protocol.messages import ConsumerGroupDescribeResponse

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1

DescribedAssignment: TypeAlias = ConsumerGroupDescribeResponse.Assignment
DescribedTopic: TypeAlias = ConsumerGroupDescribeResponse.TopicPartitions


def no_consumer_group(group_id: str, *, exists: bool) -> ConsumerGroupDescribeResponse.DescribedGroup:
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        error_code=Errors.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {'is not a consumer group' if exists else 'not found'}.",
    )


def described(
    group: ConsumerGroup, default_assignor: str, image: MetadataImage
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members.values()) or default_assignor,
        members=[_member(group, member, image) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> ConsumerGroupDescribeResponse.Member:
    held: dict[bytes, list[int]] = {}
    for owned in (member.assigned, member.revoking):  # still responsible for the latter
        for topic, partitions in owned.items():
            held.setdefault(topic, []).extend(partitions)
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, image),
        target_assignment=_assignment(group.target.get(member.member_id, {}), image),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], image: MetadataImage) -> DescribedAssignment:
    topics = []
    for topic, indexes in partitions.items():
        known = image.topics_by_id.get(topic)  # type: ignore[call-overload]
        if known is not None:
            topics.append(DescribedTopic(topic_id=topic, topic_name=known.name, partitions=list(indexes)))
    return DescribedAssignment(topic_partitions=topics)
