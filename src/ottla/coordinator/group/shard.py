"""The group coordinator of one partition of __consumer_offsets: routes commands to the protocols and replays records.

Share and streams groups will be protocols beside these two, with rows of their own in the replay table.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.classic import ClassicProtocol
from ottla.coordinator.group.classic_group import ClassicGroup, State
from ottla.coordinator.group.commits import Commits
from ottla.coordinator.group.committed import Offsets
from ottla.coordinator.group.consumer import ConsumerProtocol
from ottla.coordinator.group.consumer_group import ConsumerGroup
from ottla.coordinator.group.consumer_replay import ConsumerReplay
from ottla.coordinator.group.describe import described, described_consumer
from ottla.coordinator.group.expiry import PAUSE_MS, ExpiryRound
from ottla.coordinator.group.migration import Migration
from ottla.coordinator.group.mixed import MixedGroups
from ottla.coordinator.group.offsets import AskedCommit, CommitReply, OffsetCommands
from ottla.coordinator.group.state import Draft, Group, GroupError, GroupSettings, GroupState
from ottla.coordinator.records import CoordinatorRecord, Packed
from ottla.coordinator.shard import Decision, Now, Parked, Respond
from ottla.coordinator.undo import Undo
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

R = TypeVar("R")

_EXPIRY = "expire offsets"
CROWDED_CHECK_MS: Final = 10_000
"""How often a node with nearly as many groups as it may have looks for some to be forgotten."""


class GroupShard:
    __slots__ = ("_classic", "_consumer", "_expiry", "_mixed", "_offsets", "_replays", "_state")

    def __init__(
        self, settings: GroupSettings, new_id: Callable[[], str], groups_here: Callable[[], int] | None = None
    ) -> None:
        """`groups_here` counts the groups of all shards that share one limit."""
        self._state = GroupState(settings, Offsets(), new_id, groups_here)
        self._expiry: ExpiryRound | None = None
        self._classic = ClassicProtocol(self._state)
        migration = Migration(self._state, self._classic)
        self._consumer = ConsumerProtocol(self._state, migration)
        self._mixed = MixedGroups(self._state, self._consumer, migration)
        self._offsets = OffsetCommands(self._state, ClassicGroup, self._classic.committed)
        self._replays: dict[int, Callable[[Any, Any], None]] = {
            GroupMetadataKey.API_KEY: self._replay_group,
            **ConsumerReplay(self._state).table(),
        }

    @property
    def state(self) -> GroupState:
        return self._state

    # ---- the shape of a shard

    @property
    def undo(self) -> Undo:
        return self._state.undo

    def replay(
        self, record: CoordinatorRecord | Packed, offset: int, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        if isinstance(record, Commits):
            self._state.offsets.replay_commits(record, offset)
            if record.group_id not in self._state.groups:
                self._state.groups[record.group_id] = ClassicGroup(record.group_id)
            return
        assert isinstance(record, CoordinatorRecord)
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._state.offsets.replay(key, value, offset, producer_id)
            if value is not None and key.group not in self._state.groups:
                self._state.groups[key.group] = ClassicGroup(key.group)
            return
        replay = self._replays.get(key.API_KEY)
        if replay is not None:  # records of share and streams groups are left alone: this shard does not keep them
            replay(key, value)

    def _replay_group(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        groups = self._state.groups
        known = groups.get(key.group)
        if value is None:
            if isinstance(known, ClassicGroup):
                del groups[key.group]
        elif self._state.loading or known is None:
            groups[key.group] = ClassicGroup.of_record(key.group, value)
        # else the record tells what the living group has just become

    def complete_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self._state.offsets.complete_transaction(producer_id, committed=committed)

    def loaded(self, image: MetadataImage, now: Now) -> Decision[None]:
        for name in ("loading", "image", "topics_version"):
            self.undo.field(self._state, name)
        self._state.loading = False
        self._state.image = image
        self._state.topics_version = image.offset
        draft = Draft()
        for group in list(self._state.groups.values()):
            if isinstance(group, ClassicGroup):
                self._classic.loaded(group, draft, now)
            elif isinstance(group, ConsumerGroup):
                self._consumer.loaded(group, now)
        self._expire_later(now)
        return draft.decision(None)

    def on_metadata(self, image: MetadataImage, now: Now) -> Decision[None]:
        for name in ("image", "topics_version"):
            self.undo.field(self._state, name)
        before, self._state.image = self._state.image, image
        draft = Draft()
        if before.topics is not image.topics:
            draft.records += self._offsets.topics_changed(before, image)
            self._state.topics_version = image.offset
            for group in self._state.groups.values():
                if isinstance(group, ConsumerGroup):
                    self.undo.field(group, "refresh_wanted")
                    group.refresh_wanted = True
        return draft.decision(None)

    def change_settings(self, settings: GroupSettings) -> None:
        self._state.settings = settings

    def tick(self, now: Now) -> Decision[None]:
        """One deadline at a time: the next may look at what this one's records change."""
        draft = Draft()
        action = self._state.deadlines.pop_due(now.monotonic)
        if action is not None:
            action(draft, now)
        return draft.decision(None)

    def next_tick(self) -> Millis | None:
        return self._state.deadlines.next()

    def resigned(self) -> tuple[Respond, ...]:
        draft = Draft()
        for group in self._state.groups.values():
            if isinstance(group, ClassicGroup):
                self._classic.dissolve(group, Errors.NOT_COORDINATOR, draft)
                group.move_to(State.DEAD, group.state_since)
        return tuple(effect for effect in draft.effects if isinstance(effect, Respond))

    # ---- the classic protocol's requests

    def join(self, request: JoinGroupRequest, caller: Caller, now: Now) -> Decision[Any]:
        """Parked; the answer is a JoinGroupResponse."""
        token = self._state.token()
        draft = Draft()
        self._welcome(request.group_id, now)
        settings = self._state.settings
        if not request.group_id:
            draft.respond(token, _join_error(request, Errors.INVALID_GROUP_ID))
        elif not settings.min_session_timeout <= request.session_timeout_ms <= settings.max_session_timeout:
            draft.respond(token, _join_error(request, Errors.INVALID_SESSION_TIMEOUT))
        else:
            self._join(request, caller, token, draft, now)
        return draft.decision(Parked(token))

    def _join(self, request: JoinGroupRequest, caller: Caller, token: int, draft: Draft, now: Now) -> None:
        group = self._state.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and group.is_empty():
            if request.member_id:
                draft.respond(token, _join_error(request, Errors.UNKNOWN_MEMBER_ID))
                return
            # Nobody is left who could mind: the name becomes a classic group's.
            self._bury(group, draft)
            self.undo.key(self._state.groups, request.group_id)
            del self._state.groups[request.group_id]
        elif isinstance(group, ConsumerGroup):
            mixed = Draft()
            try:
                mixed.respond(token, self._mixed.join(request, group, caller, mixed, now))
            except GroupError as refused:
                self.undo.run()
                draft.respond(token, _join_error(request, refused.error))
                return
            draft.records += mixed.records
            draft.effects += mixed.effects
            return
        self._classic.join(request, caller, token, draft, now)

    def sync(self, request: SyncGroupRequest, now: Now) -> Decision[Any]:
        """Parked; the answer is a SyncGroupResponse."""
        token = self._state.token()
        draft = Draft()
        if not request.group_id:
            draft.respond(token, SyncGroupResponse(error_code=Errors.INVALID_GROUP_ID))
        else:
            self._sync(request, token, draft, now)
        return draft.decision(Parked(token))

    def _sync(self, request: SyncGroupRequest, token: int, draft: Draft, now: Now) -> None:
        group = self._state.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            self._classic.sync(request, token, draft, now)
            return
        try:
            draft.respond(token, self._mixed.sync(request, group, now))
        except GroupError as refused:
            draft.respond(token, SyncGroupResponse(error_code=refused.error))

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> Decision[HeartbeatResponse]:
        group = self._state.groups.get(request.group_id)
        try:
            if isinstance(group, ClassicGroup):
                return Decision(self._classic.heartbeat(request, group, now))
            if isinstance(group, ConsumerGroup):
                return Decision(self._mixed.heartbeat(request, group, now))
        except GroupError as refused:
            return Decision(HeartbeatResponse(error_code=refused.error))
        error = Errors.UNKNOWN_MEMBER_ID if request.group_id else Errors.INVALID_GROUP_ID
        return Decision(HeartbeatResponse(error_code=error))

    def leave(self, request: LeaveGroupRequest, now: Now) -> Decision[LeaveGroupResponse]:
        if not request.group_id:
            return Decision(LeaveGroupResponse(error_code=Errors.INVALID_GROUP_ID))
        group = self._state.groups.get(request.group_id)
        draft = Draft()
        if isinstance(group, ClassicGroup):
            return _decided(draft, self._classic.leave(request, group, draft, now))
        if isinstance(group, ConsumerGroup):
            return _decided(draft, self._mixed.leave(request, group, draft, now))
        return Decision(
            LeaveGroupResponse(
                members=[
                    LeaveGroupResponse.MemberResponse(
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        error_code=Errors.UNKNOWN_MEMBER_ID,
                    )
                    for member in request.members
                ]
            )
        )

    # ---- the consumer protocol's request

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Now
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        draft = Draft()
        try:
            decision = _decided(draft, self._consumer.heartbeat(request, caller, draft, now))
        except GroupError as refused:
            # What was drafted before the refusal is forgotten with the draft.
            self.undo.run()
            decision = Decision(ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message))
        self._welcome(request.group_id, now)
        return decision

    # ---- offsets

    def commit_offsets(self, asked: AskedCommit, version: int, now: Now) -> Decision[CommitReply]:
        self._welcome(asked.group_id, now)
        return self._offsets.commit(asked, version, now)

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, version: int, now: Now
    ) -> Decision[TxnOffsetCommitResponse]:
        """To be submitted in the transaction of the request's producer."""
        self._welcome(request.group_id, now)
        return self._offsets.txn_commit(request, version, now)

    def fetch_offsets(
        self, asked: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> Decision[OffsetFetchResponse.OffsetFetchResponseGroup]:
        return self._offsets.fetch(asked, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        return self._offsets.delete(request)

    def _expire_later(self, now: Now) -> None:
        self._state.deadlines.set(_EXPIRY, now.monotonic + self._state.settings.offsets_retention_check, self._expire)

    def _expire(self, draft: Draft, now: Now) -> None:
        self.undo.field(self, "_expiry")
        if self._expiry is None:
            self._expiry = ExpiryRound(self._state, self._bury)
        self.undo.keep(self._expiry)
        if self._expiry.step(draft, now):
            self._expiry = None
            self._expire_later(now)
        else:
            self._state.deadlines.set(_EXPIRY, now.monotonic + PAUSE_MS, self._expire)

    def _welcome(self, group_id: str, now: Now) -> None:
        """A new name, where there are many: groups that hold nothing give way before the limit turns anybody away."""
        if group_id in self._state.groups:
            return
        soon = now.monotonic + CROWDED_CHECK_MS
        due = self._state.deadlines.at(_EXPIRY)
        if due is not None and due > soon and self._state.is_crowded():
            self._state.deadlines.set(_EXPIRY, soon, self._expire)

    # ---- groups of every kind

    def list_groups(self, states: list[str], kinds: list[str]) -> list[ListGroupsResponse.ListedGroup]:
        wanted_states = {state.strip().lower() for state in states}
        wanted_kinds = {kind.strip().lower() for kind in kinds}
        return [
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.listed_protocol_type,
                group_state=group.state_name(),
                group_type=group.KIND,
            )
            for group in self._state.groups.values()
            if (not wanted_states or group.state_name().lower() in wanted_states)
            and (not wanted_kinds or group.KIND in wanted_kinds)
        ]

    def describe(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        """As DescribeGroups does, which knows classic groups only."""
        return described(group_id, self._state.groups.get(group_id), version)

    def describe_consumer(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        group = self._state.groups.get(group_id)
        return described_consumer(group_id, group, self._state.settings.consumer_assignors[0], self._state.image)

    def delete_groups(self, group_ids: list[str]) -> Decision[list[DeleteGroupsResponse.DeletableGroupResult]]:
        draft = Draft()
        results = []
        for group_id in group_ids:
            error = Errors.NONE
            try:
                group = self._state.found(group_id)
                group.check_delete()
                draft.records += self._offsets.delete_all(group_id)
                self._bury(group, draft)
            except GroupError as refused:
                error = refused.error
            results.append(DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error))
        return draft.decision(results)

    def _bury(self, group: Group, draft: Draft) -> None:
        draft.records += group.tombstones()
        if isinstance(group, ClassicGroup):
            self._classic.forget_deadlines(group)
        elif isinstance(group, ConsumerGroup):
            self._consumer.forget_deadlines(group)


def _decided(draft: Draft, reply: R) -> Decision[R]:
    return Decision(reply, tuple(draft.records), tuple(draft.effects))


def _join_error(request: JoinGroupRequest, error: Errors) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=request.member_id, error_code=error, protocol_name=None)
