"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup over KIP-848.

Such a member is assigned by the coordinator like everybody else. It is told so in its own language: a join gives it the
member epoch as generation and nobody to assign to, a sync gives it its partitions, and REBALANCE_IN_PROGRESS asks it to
come again when there is something to let go or to take.
"""

from typing import Final, TypeAlias

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.classic import consumer_protocol as blobs
from ottla.coordinator.group.classic.kind import MEMBER_ID_REQUIRED_FROM, protocols_of
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import ConsumerMember, MemberState
from ottla.coordinator.group.consumer.migration import Migration, by_name, classic_metadata
from ottla.coordinator.group.consumer.protocol import Change, ConsumerProtocol, fenced_instance
from ottla.coordinator.group.consumer.reconcile import OwnedTopic
from ottla.coordinator.group.draft import Draft, GroupError
from ottla.coordinator.group.state import CONSUMER_TYPE, NO_MEMBER, GroupState
from ottla.coordinator.shard import Now
from ottla.model.errors import Errors
from ottla.protocol.codec import DecodeError
from ottla.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

MemberLeft: TypeAlias = LeaveGroupResponse.MemberResponse
_REJOIN: Final = "rejoin"
_RESYNC: Final = "resync"


class ClassicMembers:
    __slots__ = ("_consumer", "_migration", "_state")

    def __init__(self, state: GroupState, consumer: ConsumerProtocol, migration: Migration) -> None:
        self._state = state
        self._consumer = consumer
        self._migration = migration

    # ---- joining

    def join(
        self, request: JoinGroupRequest, group: ConsumerGroup, caller: Caller, draft: Draft, now: Now
    ) -> JoinGroupResponse:
        """Raises GroupError."""
        if self._state.settings.migration_policy.lower() == "disabled":
            raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL)
        is_new = request.member_id == NO_MEMBER
        member_id = self._state.new_id() if is_new else request.member_id
        self._consumer.check_room(group, member_id)
        if not self._supports(group, request):
            raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL)
        if is_new and request.group_instance_id is None and caller.version >= MEMBER_ID_REQUIRED_FROM:
            return JoinGroupResponse(member_id=member_id, error_code=Errors.MEMBER_ID_REQUIRED, protocol_name=None)
        subscription = _subscription(request)
        replaced = group.static_member(request.group_instance_id)
        downgrades = replaced is not None and self._downgrades_by_replacing(group, replaced)
        before = self._member(group, member_id, request.group_instance_id, is_new, draft)
        change = self._updated(group, before, request, subscription, caller, draft, now)
        epoch = self._consumer.refresh_metadata(group, change, draft)
        owned = _owned(subscription, self._state)
        if downgrades:
            after = self._downgrade(group, change, epoch, owned, draft, now)
        else:
            after = self._consumer.advance(group, change, epoch, owned, draft, now)
            self._state.deadlines.cancel((_REJOIN, group.group_id, member_id))
            self._consumer.expect(group.group_id, member_id, request.session_timeout_ms, now)
            self._fence_unless(_RESYNC, group, member_id, request.rebalance_timeout_ms, now)
        return JoinGroupResponse(
            member_id=after.member_id,
            generation_id=after.epoch,
            protocol_type=CONSUMER_TYPE,
            protocol_name=request.protocols[0].name,
        )

    def _supports(self, group: ConsumerGroup, request: JoinGroupRequest) -> bool:
        """It must share a protocol with every classic member: one day they may be a classic group again."""
        if request.protocol_type != CONSUMER_TYPE:
            return False
        others = [member.classic for member in group.members.values() if member.classic is not None]
        return any(
            all(any(known.name == protocol.name for known in other.supported_protocols) for other in others)
            for protocol in request.protocols
        )

    def _downgrades_by_replacing(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        settings = self._state.settings
        return (
            replaced.classic is None
            and group.classic_members() == len(group.members) - 1
            and settings.downgrade_enabled
            and len(group.members) <= settings.classic_max_size
        )

    def _member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, is_new: bool, draft: Draft
    ) -> ConsumerMember:
        if instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        known = group.static_member(instance_id)
        if is_new:
            if known is None:
                return ConsumerMember(member_id)
            return self._consumer.replace(group, known, member_id, draft)
        if known is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if known.member_id != member_id:
            raise fenced_instance(known, member_id)
        return known

    def _updated(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: JoinGroupRequest,
        subscription: ConsumerProtocolSubscription,
        caller: Caller,
        draft: Draft,
        now: Now,
    ) -> Change:
        after = member._replace(
            instance_id=request.group_instance_id or member.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout=request.rebalance_timeout_ms,
            topics=tuple(sorted(dict.fromkeys(subscription.topics))),
            regex="",  # patterns of the classic protocol are the client's own business
            client_id=caller.client_id,
            client_host=caller.client_host,
            classic=classic_metadata(request.session_timeout_ms, protocols_of(request)),
        )
        if not member.regex:
            after = after._replace(regex=member.regex)
        change = self._consumer.changed(group, member, after, caller, draft, now)
        return change._replace(bumps=change.bumps or change.regex_changed)

    def _downgrade(
        self,
        group: ConsumerGroup,
        change: Change,
        epoch: int,
        owned: list[OwnedTopic],
        draft: Draft,
        now: Now,
    ) -> ConsumerMember:
        after = change.after
        rebalance = group.assignment_epoch < epoch
        if not rebalance:
            partitions = self._consumer.target_of(group, after)
            after = self._consumer.step(group, change, group.assignment_epoch, partitions, owned, draft, now)
        self._migration.downgrade(group, {}, after, rebalance=rebalance, draft=draft, now=now)
        return after

    # ---- syncing

    def sync(self, request: SyncGroupRequest, group: ConsumerGroup, now: Now) -> SyncGroupResponse:
        """Raises GroupError."""
        member = self._known(group, request.member_id, request.group_instance_id)
        assert member.classic is not None
        if request.generation_id != member.epoch:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        protocol = member.classic.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER_TYPE) or request.protocol_name not in (None, protocol.name):
            raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_rejoin(group, member, now)
            raise GroupError(Errors.REBALANCE_IN_PROGRESS)
        self._state.deadlines.cancel((_RESYNC, group.group_id, member.member_id))
        self._consumer.expect(group.group_id, member.member_id, member.classic.session_timeout_ms, now)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=blobs.assignment_bytes(
                by_name(member.assigned, self._state.image), blobs.version_of(protocol.metadata)
            ),
        )

    # ---- living and leaving

    def heartbeat(self, request: HeartbeatRequest, group: ConsumerGroup, now: Now) -> HeartbeatResponse:
        """Raises GroupError."""
        member = self._known(group, request.member_id, request.group_instance_id)
        assert member.classic is not None
        if request.generation_id != member.epoch:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        self._consumer.expect(group.group_id, member.member_id, member.classic.session_timeout_ms, now)
        should_rejoin = (
            member.epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member))
        )
        if not should_rejoin:
            return HeartbeatResponse()
        self._expect_rejoin(group, member, now)
        return HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS)

    def leave(self, request: LeaveGroupRequest, group: ConsumerGroup, draft: Draft, now: Now) -> LeaveGroupResponse:
        left: list[MemberLeft] = []
        leaving: dict[str, ConsumerMember] = {}
        for identity in request.members:
            error = Errors.NONE
            try:
                member = self._leaving(group, identity.member_id, identity.group_instance_id)
                leaving[member.member_id] = member
            except GroupError as refused:
                error = refused.error
            left.append(
                MemberLeft(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
            )
        self._consumer.fence(group, list(leaving.values()), draft, now)
        return LeaveGroupResponse(members=left)

    def _leaving(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        if instance_id is None:
            return group.member(member_id)
        known = group.static_member(instance_id)
        if known is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        if member_id not in (NO_MEMBER, known.member_id):  # an admin names the instance alone
            raise GroupError(Errors.FENCED_INSTANCE_ID)
        return known

    def _known(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        if instance_id is None:
            member = group.member(member_id)
        else:
            known = group.static_member(instance_id)
            if known is None:
                raise GroupError(Errors.UNKNOWN_MEMBER_ID)
            if known.member_id != member_id:
                raise GroupError(Errors.FENCED_INSTANCE_ID)
            member = known
        if member.classic is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        return member

    def _expect_rejoin(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        if (_REJOIN, group.group_id, member.member_id) not in self._state.deadlines:
            self._fence_unless(_REJOIN, group, member.member_id, member.rebalance_timeout, now)

    def _fence_unless(self, kind: str, group: ConsumerGroup, member_id: str, timeout: int, now: Now) -> None:
        self._consumer.fence_at((kind, group.group_id, member_id), group.group_id, member_id, timeout, now)


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Somebody still holds what the member is to get."""
    return any(
        partition not in member.assigned.get(topic, {}) and group.owner(topic, partition) is not None
        for topic, partitions in group.target.get(member.member_id, {}).items()
        for partition in partitions
    )


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return blobs.subscription(request.protocols[0].metadata)
    except DecodeError as error:
        raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL) from error


def _owned(subscription: ConsumerProtocolSubscription, state: GroupState) -> list[OwnedTopic]:
    """What the member says it has, in the terms of a heartbeat."""
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(
            topic_id=state.image.topics[topic.topic].id, partitions=topic.partitions
        )
        for topic in subscription.owned_partitions
        if topic.topic in state.image.topics
    ]
