"""The group coordinator of one partition of __consumer_offsets: routes requests to the kinds and replays records."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.classic.describe import described as classic_described
from ottla.coordinator.group.classic.describe import no_classic_group
from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.kind import ClassicKind, join_refused
from ottla.coordinator.group.commits import Commits
from ottla.coordinator.group.committed import Offsets
from ottla.coordinator.group.consumer.describe import described as consumer_described
from ottla.coordinator.group.consumer.describe import no_consumer_group
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.kind import ConsumerKind
from ottla.coordinator.group.draft import Draft, GroupError
from ottla.coordinator.group.expiry import PAUSE_MS, ExpiryRound
from ottla.coordinator.group.kind import Group, Kind
from ottla.coordinator.group.offsets import AskedCommit, CommitReply, OffsetCommands
from ottla.coordinator.group.state import GroupSettings, GroupState
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
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
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
    __slots__ = ("_classic", "_consumer", "_expiry", "_kinds", "_offsets", "_replays", "_state")

    def __init__(
        self, settings: GroupSettings, new_id: Callable[[], str], groups_here: Callable[[], int] | None = None
    ) -> None:
        """`groups_here` counts the groups of all shards that share one limit."""
        self._state = GroupState(settings, Offsets(), new_id, groups_here)
        self._expiry: ExpiryRound | None = None
        self._classic = ClassicKind(self._state)
        self._consumer = ConsumerKind(self._state, self._classic)
        self._kinds: dict[str, Kind[Any]] = {ClassicGroup.KIND: self._classic, ConsumerGroup.KIND: self._consumer}
        self._offsets = OffsetCommands(self._state, ClassicGroup, self._committed)
        self._replays = {kind: replay for each in self._kinds.values() for kind, replay in each.replays().items()}

    def _kind(self, group: Group) -> Kind[Any]:
        return self._kinds[group.KIND]

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
            self._kind(group).loaded(group, draft, now)
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
                self._kind(group).topics_changed(group)
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
            self._kind(group).resigned(group, draft)
        return tuple(effect for effect in draft.effects if isinstance(effect, Respond))

    # ---- the classic protocol's requests

    def join(self, request: JoinGroupRequest, caller: Caller, now: Now) -> Decision[Any]:
        """Parked; the answer is a JoinGroupResponse."""
        token = self._state.token()
        draft = Draft()
        self._welcome(request.group_id, now)
        settings = self._state.settings
        if not request.group_id:
            draft.respond(token, join_refused(request.member_id, Errors.INVALID_GROUP_ID))
        elif not settings.min_session_timeout <= request.session_timeout_ms <= settings.max_session_timeout:
            draft.respond(token, join_refused(request.member_id, Errors.INVALID_SESSION_TIMEOUT))
        elif (group := self._state.groups.get(request.group_id)) is None:
            self._classic.found(request, caller, token, draft, now)
        else:
            self._kind(group).join(request, group, caller, token, draft, now)
        return draft.decision(Parked(token))

    def sync(self, request: SyncGroupRequest, now: Now) -> Decision[Any]:
        """Parked; the answer is a SyncGroupResponse."""
        token = self._state.token()
        draft = Draft()
        group = self._state.groups.get(request.group_id)
        if not request.group_id:
            draft.respond(token, SyncGroupResponse(error_code=Errors.INVALID_GROUP_ID))
        elif group is None:
            draft.respond(token, SyncGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
        else:
            self._kind(group).sync(request, group, token, draft, now)
        return draft.decision(Parked(token))

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> Decision[HeartbeatResponse]:
        group = self._state.groups.get(request.group_id)
        if group is None:
            error = Errors.UNKNOWN_MEMBER_ID if request.group_id else Errors.INVALID_GROUP_ID
            return Decision(HeartbeatResponse(error_code=error))
        try:
            return Decision(self._kind(group).heartbeat(request, group, now))
        except GroupError as refused:
            return Decision(HeartbeatResponse(error_code=refused.error))

    def leave(self, request: LeaveGroupRequest, now: Now) -> Decision[LeaveGroupResponse]:
        if not request.group_id:
            return Decision(LeaveGroupResponse(error_code=Errors.INVALID_GROUP_ID))
        group = self._state.groups.get(request.group_id)
        if group is not None:
            draft = Draft()
            return _decided(draft, self._kind(group).leave(request, group, draft, now))
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
            decision = _decided(draft, self._consumer.consumer_heartbeat(request, caller, draft, now))
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

    def _committed(self, group: Group, member_id: str, now: Now) -> None:
        self._kind(group).committed(group, member_id, now)

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
        group = self._state.find(ClassicGroup, group_id)
        if group is None:
            return no_classic_group(group_id, version, exists=group_id in self._state.groups)
        return classic_described(group)

    def describe_consumer(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        group = self._state.find(ConsumerGroup, group_id)
        if group is None:
            return no_consumer_group(group_id, exists=group_id in self._state.groups)
        return consumer_described(group, self._state.settings.consumer_assignors[0], self._state.image)

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
        self._kind(group).forget(group)


def _decided(draft: Draft, reply: R) -> Decision[R]:
    return Decision(reply, tuple(draft.records), tuple(draft.effects))
