"""The classic protocol: join, sync, heartbeat, leave. A leader among the members assigns; we bring them together.

A join waits until everybody has joined or the rebalance timeout is over; a sync waits for the leader's. Waiting is a
token on the member, answered by an effect. Errors are Kafka's, state by state.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.classic.group import ClassicGroup, ClassicMember, Protocols, State
from ottla.coordinator.group.draft import Draft, GroupError
from ottla.coordinator.group.kind import Replay
from ottla.coordinator.group.state import NO_MEMBER, GroupState
from ottla.coordinator.shard import Now
from ottla.model.errors import Errors
from ottla.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

MEMBER_ID_REQUIRED_FROM: Final = 4
SKIP_ASSIGNMENT_FROM: Final = 9
NEW_MEMBER_JOIN_TIMEOUT: Final = 5 * 60_000
"""How long a member that cannot send heartbeats yet may wait in its first join."""
FIRST_GENERATION: Final = 0

MemberLeft: TypeAlias = LeaveGroupResponse.MemberResponse


class ClassicKind:
    """Decides for the classic groups of one shard. A name that nobody has yet is a classic group's to be."""

    __slots__ = ("_state",)

    def __init__(self, state: GroupState) -> None:
        self._state = state

    # ---- joining

    def found(self, request: JoinGroupRequest, caller: Caller, token: int, draft: Draft, now: Now) -> None:
        """The first member comes. Whatever had the group's name before is gone."""
        if request.member_id != NO_MEMBER:
            draft.respond(token, join_refused(request.member_id, Errors.UNKNOWN_MEMBER_ID))
            return
        try:
            self._state.check_room()
        except GroupError as refused:
            draft.respond(token, join_refused(NO_MEMBER, refused.error))
            return
        group = ClassicGroup(request.group_id)
        self._state.undo.key(self._state.groups, group.group_id)
        self._state.groups[request.group_id] = group
        written = len(draft.records)
        self.join(request, group, caller, token, draft, now)
        if len(draft.records) == written:
            # So that an empty group, too, outlives a restart.
            draft.records.append(ClassicGroup(group.group_id).record())

    def join(
        self, request: JoinGroupRequest, group: ClassicGroup, caller: Caller, token: int, draft: Draft, now: Now
    ) -> None:
        member_id = request.member_id
        self._state.undo.keep(group)
        if not self._has_room(group, member_id):
            group.remove(member_id)
            draft.respond(token, join_refused(NO_MEMBER, Errors.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(request.protocol_type, protocols_of(request)):
            draft.respond(token, join_refused(member_id, Errors.INCONSISTENT_GROUP_PROTOCOL))
        elif member_id == NO_MEMBER:
            self._join_new(group, request, caller, token, draft, now)
        elif member_id in group.pending_joins and request.group_instance_id is None:
            self._add(group, member_id, request, caller, token, draft, now)
        else:
            try:
                member = group.check_member(member_id, request.group_instance_id)
            except GroupError as refused:
                draft.respond(token, join_refused(member_id, refused.error))
                return
            self._rejoin(group, member, request, token, draft, now)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._state.settings.classic_max_size
        member = group.members.get(member_id)
        if group.state is State.PREPARING_REBALANCE:
            # Counting who waits, not who is a member, lets the last to come back be turned away.
            return (member is not None and member.join_token is not None) or group.awaiting < limit
        if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            return member is not None or len(group.members) < limit
        return True

    def _join_new(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, token: int, draft: Draft, now: Now
    ) -> None:
        instance_id = request.group_instance_id
        member_id = f"{caller.client_id if instance_id is None else instance_id}-{self._state.new_id()}"
        if instance_id is not None:
            known = group.static_members.get(instance_id)
            if known is not None:
                self._replace(group, known, member_id, request, caller, token, draft, now)
            else:
                self._add(group, member_id, request, caller, token, draft, now)
        elif caller.version >= MEMBER_ID_REQUIRED_FROM:
            # KIP-394: a client that loses our answer must not leave a ghost in the group.
            group.pending_joins[member_id] = None
            self._expect(group, member_id, request.session_timeout_ms, now)
            draft.respond(token, join_refused(member_id, Errors.MEMBER_ID_REQUIRED))
        else:
            self._add(group, member_id, request, caller, token, draft, now)

    def _add(
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinGroupRequest,
        caller: Caller,
        token: int,
        draft: Draft,
        now: Now,
    ) -> None:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            caller.client_id,
            caller.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            protocols_of(request),
        )
        member.is_new = True
        member.join_token = token
        if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
            group.member_added = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        self._expect(group, member_id, NEW_MEMBER_JOIN_TIMEOUT, now)
        self._rebalance_or_complete(group, draft, now)

    def _rejoin(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, token: int, draft: Draft, now: Now
    ) -> None:
        unchanged = member.protocols == protocols_of(request)
        is_leader = group.leader == member.member_id
        if group.state is State.PREPARING_REBALANCE:
            self._update(group, member, request, token, draft, now)
        elif group.state is State.COMPLETING_REBALANCE and unchanged:
            # The answer to its first join was lost: tell it again.
            draft.respond(token, self._generation(group, member, is_leader))
        elif group.state is State.STABLE and unchanged and not is_leader:
            draft.respond(token, self._generation(group, member, False))
        elif group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            # Changed metadata; or the leader asks, which is how it reports changes in the topics.
            self._update(group, member, request, token, draft, now)
        else:
            draft.respond(token, join_refused(member.member_id, Errors.UNKNOWN_MEMBER_ID))

    def _update(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, token: int, draft: Draft, now: Now
    ) -> None:
        self._state.undo.keep(member)
        group.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
        self._wait_for_join(member, token, draft)
        self._rebalance_or_complete(group, draft, now)

    def _wait_for_join(self, member: ClassicMember, token: int, draft: Draft) -> None:
        if member.join_token is not None:
            # A second join of the same member: its first connection is gone, whatever it gets is not read.
            draft.respond(member.join_token, join_refused(member.member_id, Errors.REBALANCE_IN_PROGRESS))
        member.join_token = token

    def _replace(
        self,
        group: ClassicGroup,
        old_id: str,
        new_id: str,
        request: JoinGroupRequest,
        caller: Caller,
        token: int,
        draft: Draft,
        now: Now,
    ) -> None:
        """KIP-345: a static member came back under its instance id."""
        leader_before = group.leader
        fenced = group.members[old_id]
        self._answer_join(fenced, join_refused(old_id, Errors.FENCED_INSTANCE_ID), draft)
        self._answer_sync(fenced, SyncGroupResponse(error_code=Errors.FENCED_INSTANCE_ID), draft)
        self._state.deadlines.cancel(_session_key(group.group_id, old_id))
        member = group.replace_static(old_id, new_id)
        self._expect(group, new_id, member.session_timeout, now)
        group.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
        member.join_token = token
        if group.state is State.STABLE and group.protocol == group.select_protocol():
            # KAFKA-10284: the new id is written before it is told, or a fail-over would fence its owner.
            draft.records.append(group.record())
            is_leader = group.leader == new_id
            if caller.version >= SKIP_ASSIGNMENT_FROM:
                answer = self._generation(group, member, is_leader)
                answer.skip_assignment = is_leader
            else:
                # An old client would assign anew if it were told that it leads: name the leader of before.
                answer = self._generation(group, member, False)
                answer.leader = leader_before or ""
            self._answer_join(member, answer, draft)
        elif group.state is State.STABLE:
            self._rebalance_or_complete(group, draft, now)
        elif group.state is State.COMPLETING_REBALANCE:
            # KAFKA-9801: the leader may be assigning to the old id just now.
            self.prepare_rebalance(group, draft, now)
        else:
            self._complete_if_all_joined(group, draft, now)

    # ---- bringing them together

    def _rebalance_or_complete(self, group: ClassicGroup, draft: Draft, now: Now) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY):
            self.prepare_rebalance(group, draft, now)
        else:
            self._complete_if_all_joined(group, draft, now)

    def prepare_rebalance(self, group: ClassicGroup, draft: Draft, now: Now) -> None:
        self._state.undo.keep(group)
        if group.state is State.COMPLETING_REBALANCE:
            for member in group.members.values():
                self._state.undo.keep(member)
                member.assignment = b""
            self._spread(group, Errors.REBALANCE_IN_PROGRESS, draft, now)
        group.pending_syncs.clear()
        self._state.deadlines.cancel(_sync_key(group.group_id))
        is_first = group.state is State.EMPTY
        group.move_to(State.PREPARING_REBALANCE, now.wall)
        if is_first:
            delay = self._state.settings.initial_rebalance_delay
            self._delay_first(group.group_id, delay, max(group.rebalance_timeout - delay, 0), now)
        elif group.all_joined():
            self._complete_join(group, draft, now)
        else:
            self._await_joins(group, now)

    def _delay_first(self, group_id: str, delay: int, remaining: int, now: Now) -> None:
        """A new group waits for more members: each that comes prolongs the wait, up to the rebalance timeout."""

        def due(draft: Draft, now: Now) -> None:
            group = self._state.find(ClassicGroup, group_id)
            if group is None:
                return
            if group.member_added and remaining:
                self._state.undo.keep(group)
                group.member_added = False
                longer = min(self._state.settings.initial_rebalance_delay, remaining)
                self._delay_first(group_id, longer, max(remaining - delay, 0), now)
            else:
                self._complete_join(group, draft, now)

        self._state.deadlines.set(_join_key(group_id), now.monotonic + delay, due)

    def _await_joins(self, group: ClassicGroup, now: Now) -> None:
        group_id = group.group_id

        def due(draft: Draft, now: Now) -> None:
            group = self._state.find(ClassicGroup, group_id)
            if group is not None:
                self._complete_join(group, draft, now)

        self._state.deadlines.set(_join_key(group_id), now.monotonic + group.rebalance_timeout, due)

    def _complete_if_all_joined(self, group: ClassicGroup, draft: Draft, now: Now) -> None:
        # A group that is still in its initial delay waits it out.
        if group.state is State.PREPARING_REBALANCE and group.previous_state is not State.EMPTY and group.all_joined():
            self._complete_join(group, draft, now)

    def _complete_join(self, group: ClassicGroup, draft: Draft, now: Now) -> None:
        deadlines = self._state.deadlines
        self._state.undo.keep(group)
        deadlines.cancel(_join_key(group.group_id))
        for member in list(group.members.values()):
            if member.join_token is None and member.instance_id is None:
                group.remove(member.member_id)
                deadlines.cancel(_session_key(group.group_id, member.member_id))
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none is back: their session decides.
            self._await_joins(group, now)
            return
        group.next_generation(now.wall)
        if group.is_empty():
            draft.records.append(group.record())
            return
        for member in group.members.values():
            self._state.undo.keep(member)
            answer = self._generation(group, member, group.leader == member.member_id)
            self._answer_join(member, answer, draft)
            self._expect(group, member.member_id, member.session_timeout, now)
            member.is_new = False
            group.pending_syncs[member.member_id] = None
        self._await_syncs(group, now)

    def _await_syncs(self, group: ClassicGroup, now: Now) -> None:
        group_id, generation = group.group_id, group.generation

        def due(draft: Draft, now: Now) -> None:
            group = self._state.find(ClassicGroup, group_id)
            if group is None or group.generation != generation or not group.pending_syncs:
                return
            if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
                self._state.undo.keep(group)
                for member_id in list(group.pending_syncs):
                    group.remove(member_id)
                    self._state.deadlines.cancel(_session_key(group_id, member_id))
                self.prepare_rebalance(group, draft, now)

        self._state.deadlines.set(_sync_key(group_id), now.monotonic + group.rebalance_timeout, due)

    def _generation(self, group: ClassicGroup, member: ClassicMember, with_members: bool) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            member_id=member.member_id,
            members=group.joined_members() if with_members else [],
        )

    # ---- syncing

    def sync(self, request: SyncGroupRequest, group: ClassicGroup, token: int, draft: Draft, now: Now) -> None:
        if group.is_empty():
            draft.respond(token, SyncGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
            return
        try:
            member = self._check_sync(group, request)
        except GroupError as refused:
            draft.respond(token, SyncGroupResponse(error_code=refused.error))
            return
        if group.state is State.PREPARING_REBALANCE:
            draft.respond(token, SyncGroupResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
            return
        self._state.undo.keep(group)
        group.pending_syncs.pop(member.member_id, None)
        if not group.pending_syncs:
            self._state.deadlines.cancel(_sync_key(group.group_id))
        if group.state is State.STABLE:
            draft.respond(token, self._assignment(group, member, Errors.NONE))
            return
        if member.sync_token is not None:
            draft.respond(member.sync_token, SyncGroupResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
        self._state.undo.keep(member)
        member.sync_token = token
        if group.leader == member.member_id:
            self._assigned(group, request, draft, now)

    def _check_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> ClassicMember:
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol):
            raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL)
        return member

    def _assigned(self, group: ClassicGroup, request: SyncGroupRequest, draft: Draft, now: Now) -> None:
        assignments = {given.member_id: given.assignment for given in request.assignments}
        for member in group.members.values():
            self._state.undo.keep(member)
            member.assignment = assignments.get(member.member_id, b"")
        group.move_to(State.STABLE, now.wall)
        draft.records.append(group.record())
        self._spread(group, Errors.NONE, draft, now)

    def _spread(self, group: ClassicGroup, error: Errors, draft: Draft, now: Now) -> None:
        for member in group.members.values():
            if member.sync_token is not None:
                self._answer_sync(member, self._assignment(group, member, error), draft)
                # Its session did not run while it waited.
                self._expect(group, member.member_id, member.session_timeout, now)

    def _assignment(self, group: ClassicGroup, member: ClassicMember, error: Errors) -> SyncGroupResponse:
        if error:
            return SyncGroupResponse(error_code=error)
        return SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
        )

    # ---- living and leaving

    def heartbeat(self, request: HeartbeatRequest, group: ClassicGroup, now: Now) -> HeartbeatResponse:
        """Raises GroupError."""
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        if group.is_empty():
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        self._expect(group, member.member_id, member.session_timeout, now)
        rebalancing = group.state is State.PREPARING_REBALANCE
        return HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS if rebalancing else Errors.NONE)

    def committed(self, group: ClassicGroup, member_id: str, now: Now) -> None:
        """A commit keeps a member of the classic protocol alive as a heartbeat does."""
        if group.state in (State.STABLE, State.PREPARING_REBALANCE):
            member = group.members.get(member_id)
            if member is not None:
                self._expect(group, member_id, member.session_timeout, now)

    def leave(self, request: LeaveGroupRequest, group: ClassicGroup, draft: Draft, now: Now) -> LeaveGroupResponse:
        self._state.undo.keep(group)
        left = [
            MemberLeft(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=self._leave(group, member.member_id, member.group_instance_id, draft),
            )
            for member in request.members
        ]
        if any(not member.error_code for member in left):
            if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
                self.prepare_rebalance(group, draft, now)
            else:
                self._complete_if_all_joined(group, draft, now)
        return LeaveGroupResponse(members=left)

    def _leave(self, group: ClassicGroup, member_id: str, instance_id: str | None, draft: Draft) -> Errors:
        if member_id == NO_MEMBER:  # an admin removes a static member by its instance id alone (KIP-571)
            found = group.static_members.get(instance_id) if instance_id is not None else None
            if found is None:
                return Errors.UNKNOWN_MEMBER_ID
            self._remove(group, found, draft)
        elif member_id in group.pending_joins:
            group.remove(member_id)
            self._state.deadlines.cancel(_session_key(group.group_id, member_id))
        else:
            try:
                group.check_member(member_id, instance_id)
            except GroupError as refused:
                return refused.error
            self._remove(group, member_id, draft)
        return Errors.NONE

    def _remove(self, group: ClassicGroup, member_id: str, draft: Draft) -> None:
        member = group.members[member_id]
        self._state.deadlines.cancel(_session_key(group.group_id, member_id))
        self._answer_join(member, join_refused(NO_MEMBER, Errors.UNKNOWN_MEMBER_ID), draft)
        self._answer_sync(member, SyncGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID), draft)
        group.remove(member_id)

    def _expect(self, group: ClassicGroup, member_id: str, timeout: int, now: Now) -> None:
        """The member has to be heard of before `timeout` is over."""
        group_id = group.group_id

        def due(draft: Draft, now: Now) -> None:
            found = self._state.find(ClassicGroup, group_id)
            if found is not None:
                self._session_over(found, member_id, draft, now)

        self._state.deadlines.set(_session_key(group_id, member_id), now.monotonic + timeout, due)

    def _session_over(self, group: ClassicGroup, member_id: str, draft: Draft, now: Now) -> None:
        self._state.undo.keep(group)
        if member_id in group.pending_joins:
            group.remove(member_id)
            if group.state is State.PREPARING_REBALANCE and group.all_joined():
                self._complete_join(group, draft, now)
            return
        member = group.members.get(member_id)
        if member is None or member.waits:
            return
        self._remove(group, member_id, draft)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.prepare_rebalance(group, draft, now)
        elif group.state is State.PREPARING_REBALANCE and group.all_joined():
            self._complete_join(group, draft, now)

    # ---- the log, and coming and going of the shard

    def replays(self) -> Mapping[int, Replay]:
        return {GroupMetadataKey.API_KEY: self._replay}

    def _replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        groups = self._state.groups
        if value is None:
            if self._state.find(ClassicGroup, key.group) is not None:
                del groups[key.group]
        elif self._state.loading or key.group not in groups:
            groups[key.group] = ClassicGroup.of_record(key.group, value)
        # else the record tells what the living group has just become

    def loaded(self, group: ClassicGroup, draft: Draft, now: Now) -> None:
        """Nobody could send a heartbeat while the group was away, so each session starts now."""
        for member in group.members.values():
            self._expect(group, member.member_id, member.session_timeout, now)
        if len(group.members) > self._state.settings.classic_max_size:
            self.prepare_rebalance(group, draft, now)

    def topics_changed(self, group: ClassicGroup) -> None:
        """Its leader sees to that."""

    def resigned(self, group: ClassicGroup, draft: Draft) -> None:
        self.dissolve(group, Errors.NOT_COORDINATOR, draft)
        group.move_to(State.DEAD, group.state_since)

    def dissolve(self, group: ClassicGroup, error: Errors, draft: Draft) -> None:
        """Sends everybody who waits away with `error`: the group is no longer kept here, or not by this protocol."""
        for member in group.members.values():
            self._answer_join(member, join_refused(member.member_id, error), draft)
            self._answer_sync(member, SyncGroupResponse(error_code=error), draft)
        self.forget(group)

    def forget(self, group: ClassicGroup) -> None:
        deadlines = self._state.deadlines
        deadlines.cancel(_join_key(group.group_id))
        deadlines.cancel(_sync_key(group.group_id))
        for member_id in (*group.members, *group.pending_joins):
            deadlines.cancel(_session_key(group.group_id, member_id))

    def _answer_join(self, member: ClassicMember, response: JoinGroupResponse, draft: Draft) -> None:
        if member.join_token is not None:
            draft.respond(member.join_token, response)
            self._state.undo.keep(member)
            member.join_token = None

    def _answer_sync(self, member: ClassicMember, response: SyncGroupResponse, draft: Draft) -> None:
        if member.sync_token is not None:
            draft.respond(member.sync_token, response)
            self._state.undo.keep(member)
            member.sync_token = None


def protocols_of(request: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def join_refused(member_id: str, error: Errors) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=member_id, error_code=error, protocol_name=None)


def _differ(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual


def _session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("session", group_id, member_id)


def _join_key(group_id: str) -> tuple[str, str]:
    return ("join", group_id)


def _sync_key(group_id: str) -> tuple[str, str]:
    return ("sync", group_id)
