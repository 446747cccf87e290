"""Replay of the consumer protocol's records into the table of groups: the only thing that changes such a group."""

from collections.abc import Mapping

from ottla.coordinator.group.consumer.assignors import Partitions
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import LEFT, ConsumerMember, Resolved
from ottla.coordinator.group.kind import Replay
from ottla.coordinator.group.state import GroupState
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

NEVER_ASSIGNED = -1


class ConsumerReplay:
    __slots__ = ("_state",)

    def __init__(self, state: GroupState) -> None:
        self._state = state

    def table(self) -> Mapping[int, Replay]:
        """By type of record."""
        return {
            ConsumerGroupMetadataKey.API_KEY: self._epoch,
            ConsumerGroupPartitionMetadataKey.API_KEY: self._old_metadata,
            ConsumerGroupMemberMetadataKey.API_KEY: self._member,
            ConsumerGroupTargetAssignmentMetadataKey.API_KEY: self._target_epoch,
            ConsumerGroupTargetAssignmentMemberKey.API_KEY: self._target,
            ConsumerGroupCurrentMemberAssignmentKey.API_KEY: self._current,
            ConsumerGroupRegularExpressionKey.API_KEY: self._regex,
        }

    def _group(self, group_id: str, *, create: bool) -> ConsumerGroup | None:
        found = self._state.find(ConsumerGroup, group_id)
        if found is not None:
            return found
        known = self._state.groups.get(group_id)
        # A simple group is no group: offsets that were replayed first made it, and it has no record of its own.
        if create and (known is None or known.is_simple()):
            created = self._state.groups[group_id] = ConsumerGroup(group_id)
            return created
        return None

    def _epoch(self, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        if value is None:
            del self._state.groups[key.group_id]
        else:
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash

    def _old_metadata(self, key: ConsumerGroupPartitionMetadataKey, value: object) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is not None:
            group.has_old_metadata = value is not None

    def _member(self, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        if value is None:
            group.drop_member(key.member_id)
        else:
            member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.put_member(member.with_metadata(value))

    def _target_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is not None:
            group.assignment_epoch = NEVER_ASSIGNED if value is None else value.assignment_epoch
            group.assignment_timestamp = 0 if value is None else value.assignment_timestamp

    def _target(
        self, key: ConsumerGroupTargetAssignmentMemberKey, value: ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        if value is None:
            group.target.pop(key.member_id, None)
            return
        partitions: Partitions = {topic.topic_id: tuple(sorted(topic.partitions)) for topic in value.topic_partitions}
        group.target[key.member_id] = partitions

    def _current(
        self, key: ConsumerGroupCurrentMemberAssignmentKey, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        member = group.members.get(key.member_id)
        if value is not None:
            group.put_member((member or ConsumerMember(key.member_id)).with_assignment(value))
        elif member is not None:
            group.put_member(member._replace(epoch=LEFT, previous_epoch=LEFT, assigned={}, revoking={}))

    def _regex(self, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None) -> None:
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        if value is None:
            group.regexes.pop(key.regular_expression, None)
        else:
            resolved = Resolved(tuple(value.topics), value.version, value.timestamp)
            group.regexes[key.regular_expression] = resolved
