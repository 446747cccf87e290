"""The consumer groups of a shard: their own heartbeat, and the requests of members that speak the classic protocol."""

from collections.abc import Mapping

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.classic.kind import ClassicKind, join_refused
from ottla.coordinator.group.consumer.classic_members import ClassicMembers
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.migration import Migration
from ottla.coordinator.group.consumer.protocol import ConsumerProtocol
from ottla.coordinator.group.consumer.replay import ConsumerReplay
from ottla.coordinator.group.draft import Draft, GroupError
from ottla.coordinator.group.kind import Replay
from ottla.coordinator.group.state import GroupState
from ottla.coordinator.shard import Now
from ottla.model.errors import Errors
from ottla.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


class ConsumerKind:
    """Knows the classic kind, since groups go from one to the other while they run; the classic kind knows none."""

    __slots__ = ("_classic", "_classic_members", "_protocol", "_replay", "_state")

    def __init__(self, state: GroupState, classic: ClassicKind) -> None:
        self._state = state
        self._classic = classic
        migration = Migration(state, classic)
        self._protocol = ConsumerProtocol(state, migration)
        self._classic_members = ClassicMembers(state, self._protocol, migration)
        self._replay = ConsumerReplay(state)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, draft: Draft, now: Now
    ) -> ConsumerGroupHeartbeatResponse:
        """Raises GroupError."""
        return self._protocol.heartbeat(request, caller, draft, now)

    # ---- the log, and coming and going of the shard

    def replays(self) -> Mapping[int, Replay]:
        return self._replay.table()

    def loaded(self, group: ConsumerGroup, draft: Draft, now: Now) -> None:
        self._protocol.loaded(group, now)

    def topics_changed(self, group: ConsumerGroup) -> None:
        self._state.undo.field(group, "refresh_wanted")
        group.refresh_wanted = True

    def resigned(self, group: ConsumerGroup, draft: Draft) -> None:
        """Nobody waits in such a group."""

    def forget(self, group: ConsumerGroup) -> None:
        self._protocol.forget(group)

    def committed(self, group: ConsumerGroup, member_id: str, now: Now) -> None:
        """KIP-848: nothing but a heartbeat keeps a member alive."""

    # ---- the classic protocol's requests

    def join(
        self, request: JoinGroupRequest, group: ConsumerGroup, caller: Caller, token: int, draft: Draft, now: Now
    ) -> None:
        if group.is_empty():
            self._give_way(request, group, caller, token, draft, now)
            return
        mixed = Draft()
        try:
            mixed.respond(token, self._classic_members.join(request, group, caller, mixed, now))
        except GroupError as refused:
            self._state.undo.run()
            draft.respond(token, join_refused(request.member_id, refused.error))
            return
        draft.records += mixed.records
        draft.effects += mixed.effects

    def _give_way(
        self, request: JoinGroupRequest, group: ConsumerGroup, caller: Caller, token: int, draft: Draft, now: Now
    ) -> None:
        """Nobody is left who could mind: the name becomes a classic group's."""
        if request.member_id:
            draft.respond(token, join_refused(request.member_id, Errors.UNKNOWN_MEMBER_ID))
            return
        draft.records += group.tombstones()
        self.forget(group)
        self._state.undo.key(self._state.groups, group.group_id)
        del self._state.groups[group.group_id]
        self._classic.found(request, caller, token, draft, now)

    def sync(self, request: SyncGroupRequest, group: ConsumerGroup, token: int, draft: Draft, now: Now) -> None:
        try:
            draft.respond(token, self._classic_members.sync(request, group, now))
        except GroupError as refused:
            draft.respond(token, SyncGroupResponse(error_code=refused.error))

    def heartbeat(self, request: HeartbeatRequest, group: ConsumerGroup, now: Now) -> HeartbeatResponse:
        """Raises GroupError."""
        return self._classic_members.heartbeat(request, group, now)

    def leave(self, request: LeaveGroupRequest, group: ConsumerGroup, draft: Draft, now: Now) -> LeaveGroupResponse:
        return self._classic_members.leave(request, group, draft, now)
