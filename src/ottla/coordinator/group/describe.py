"""What admin tools are told about a group."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ottla.coordinator.group.classic_group import ClassicGroup, State
from ottla.coordinator.group.consumer_group import ConsumerGroup
from ottla.coordinator.group.consumer_member import ConsumerMember
from ottla.coordinator.group.state import Group
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.protocol.messages import ConsumerGroupDescribeResponse, DescribeGroupsResponse

_NOT_FOUND_TOLD_FROM = 6
"""The DescribeGroups version from which an unknown group is an error (KIP-1043)."""
_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1

DescribedAssignment: TypeAlias = ConsumerGroupDescribeResponse.Assignment
DescribedTopic: TypeAlias = ConsumerGroupDescribeResponse.TopicPartitions


def described(group_id: str, group: Group | None, version: int) -> DescribeGroupsResponse.DescribedGroup:
    if not isinstance(group, ClassicGroup):
        dead = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if version >= _NOT_FOUND_TOLD_FROM:
            dead.error_code = Errors.GROUP_ID_NOT_FOUND
            dead.error_message = f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
        return dead
    stable = group.state is State.STABLE
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if stable else b"",
                # During a rebalance members still work on what they were given last; only what they offer is open.
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def described_consumer(
    group_id: str, group: Group | None, default_assignor: str, image: MetadataImage
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    if not isinstance(group, ConsumerGroup):
        return ConsumerGroupDescribeResponse.DescribedGroup(
            group_id=group_id,
            error_code=Errors.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {'not found' if group is None else 'is not a consumer group'}.",
        )
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
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
