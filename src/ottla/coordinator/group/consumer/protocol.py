"""The consumer protocol (KIP-848): one request, the heartbeat, in which members join, report and learn.

Every change is a record; nothing of a group changes but by replay. Soft are only deadlines, and the wish to look at the
metadata again. Members of the classic protocol may live in such a group too: `migration` speaks with them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.consumer import records as write
from ottla.coordinator.group.consumer import regex, target
from ottla.coordinator.group.consumer.assignors import ASSIGNORS, Partitions
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import LEFT, LEFT_FOR_NOW, ConsumerMember, MemberState, Resolved
from ottla.coordinator.group.consumer.migration import Migration
from ottla.coordinator.group.consumer.reconcile import Goal, OwnedTopic, reconcile
from ottla.coordinator.group.draft import Draft, GroupError
from ottla.coordinator.group.metadata_hash import metadata_hash
from ottla.coordinator.group.state import GroupState
from ottla.coordinator.shard import Decision, Now, Run
from ottla.model.errors import Errors
from ottla.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

MEMBER_ID_REQUIRED_FROM: Final = 1
REGEX_REFRESH_AT_LEAST: Final = 10_000
"""Patterns are not matched again before this, however many topics come."""

Assignment: TypeAlias = ConsumerGroupHeartbeatResponse.Assignment
AssignedTopic: TypeAlias = ConsumerGroupHeartbeatResponse.TopicPartitions


class Change(NamedTuple):
    """A member before and after what its request says, and what that means for the group."""

    before: ConsumerMember
    after: ConsumerMember
    names_changed: bool
    regex_changed: bool
    bumps: bool


class ConsumerProtocol:
    """Decides for the consumer-protocol groups of one shard."""

    __slots__ = ("_migration", "_state")

    def __init__(self, state: GroupState, migration: Migration) -> None:
        self._state = state
        self._migration = migration

    # ---- the heartbeat

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, draft: Draft, now: Now
    ) -> ConsumerGroupHeartbeatResponse:
        """Raises GroupError."""
        self._check(request, caller.version)
        if request.member_epoch in (LEFT, LEFT_FOR_NOW):
            return self._leave(request, draft, now)
        group, upgraded = self._group(request, draft)
        self.check_room(group, request.member_id)
        member_id = request.member_id or self._state.new_id()
        member = self._member(group, member_id, request, draft)
        change = self._updated(group, member, request, caller, draft, now)
        epoch = self.refresh_metadata(group, change, draft)
        after = self.advance(group, change, epoch, request.topic_partitions, draft, now)
        if upgraded:
            self._migration.upgrade_done(group, draft, now)
        self.expect(group.group_id, after.member_id, self._session_timeout(group.group_id), now)
        response = ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._heartbeat_interval(group.group_id),
        )
        if request.member_epoch == 0 or _is_full(request) or member.assigned != after.assigned:
            response.assignment = Assignment(
                topic_partitions=[
                    AssignedTopic(topic_id=topic, partitions=list(partitions))
                    for topic, partitions in after.assigned.items()
                ]
            )
        return response

    def _check(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        epoch = request.member_epoch
        if (version >= MEMBER_ID_REQUIRED_FROM or epoch > 0 or epoch == LEFT) and not request.member_id.strip():
            raise _invalid("MemberId can't be empty.")
        for name, value in (
            ("GroupId", request.group_id),
            ("InstanceId", request.instance_id),
            ("RackId", request.rack_id),
        ):
            if value is not None and not value.strip():
                raise _invalid(f"{name} can't be empty.")
        if epoch == 0:
            self._check_join(request)
        elif epoch == LEFT_FOR_NOW and request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
        elif epoch < LEFT_FOR_NOW:
            raise _invalid("MemberEpoch is invalid.")
        offered = self._state.settings.consumer_assignors
        if request.server_assignor is not None and request.server_assignor not in offered:
            raise GroupError(
                Errors.UNSUPPORTED_ASSIGNOR,
                f"ServerAssignor {request.server_assignor} is not supported. "
                f"Supported assignors: {', '.join(offered)}.",
            )

    def _check_join(self, request: ConsumerGroupHeartbeatRequest) -> None:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")

    def _group(self, request: ConsumerGroupHeartbeatRequest, draft: Draft) -> tuple[ConsumerGroup, bool]:
        """The group, or one that the draft's records will make; and whether those turn a classic group into it."""
        group_id, joining = request.group_id, request.member_epoch == 0
        group = self._state.find(ConsumerGroup, group_id)
        if group is not None:
            return group, False
        other = self._state.groups.get(group_id)
        if not joining:
            kind = "not found" if other is None else "is not a consumer group"
            raise GroupError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} {kind}.")
        if other is None:
            self._state.check_room()
            return ConsumerGroup(group_id), False
        if other.is_empty():
            draft.records += other.tombstones()
            return ConsumerGroup(group_id), False
        return self._migration.upgrade(group_id, draft), True

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        limit = self._state.settings.consumer_max_size
        if len(group.members) >= limit and member_id not in group.members:
            raise GroupError(
                Errors.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )

    def _member(
        self, group: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest, draft: Draft
    ) -> ConsumerMember:
        joining = request.member_epoch == 0
        if request.instance_id is None:
            known = group.members.get(member_id)
            if known is None:
                if joining:
                    return ConsumerMember(member_id)
                known = group.member(member_id)  # raises
            _check_epoch(known, request)
            return known
        known = group.static_member(request.instance_id)
        if known is None:
            if joining:
                return ConsumerMember(member_id)
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if known.member_id == member_id:
            # Joining again under the same id is a lost answer, no second process: it gets what it has.
            if not (joining and known.epoch == LEFT_FOR_NOW):
                _check_epoch(known, request)
                return known
        elif not joining:
            raise fenced_instance(known, member_id)
        elif known.classic is None and known.epoch != LEFT_FOR_NOW:
            raise GroupError(
                Errors.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {request.instance_id} cannot join the group because the "
                f"instance id is owned by {known.member_id} member.",
            )
        return self.replace(group, known, member_id, draft)

    def replace(self, group: ConsumerGroup, known: ConsumerMember, member_id: str, draft: Draft) -> ConsumerMember:
        """A static member comes back as another process: it takes over everything under its new id."""
        fresh = known._replace(member_id=member_id, epoch=0, previous_epoch=0)
        draft.records += write.member_tombstones(group.group_id, known.member_id)
        draft.records.append(write.member_metadata(group.group_id, fresh))
        draft.records.append(write.target(group.group_id, member_id, group.target.get(known.member_id, {})))
        draft.records.append(write.current(group.group_id, fresh))
        return fresh

    # ---- what the request changes

    def _updated(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        draft: Draft,
        now: Now,
    ) -> Change:
        names = request.subscribed_topic_names
        after = member._replace(
            instance_id=_given(request.instance_id, member.instance_id),
            rack_id=_given(request.rack_id, member.rack_id),
            rebalance_timeout=(
                member.rebalance_timeout if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
            ),
            assignor=_given(request.server_assignor, member.assignor),
            topics=member.topics if names is None else tuple(sorted(dict.fromkeys(names))),
            regex=_given(request.subscribed_topic_regex, member.regex),
            client_id=caller.client_id,
            client_host=caller.client_host,
            classic=None,
        )
        return self.changed(group, member, after, caller, draft, now)

    def changed(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
        caller: Caller,
        draft: Draft,
        now: Now,
    ) -> Change:
        """Writes the member if it changed. Raises GroupError for a pattern that cannot be read."""
        regex_changed = before.regex != after.regex
        resolved = regex_changed and (
            after.regex in group.regexes if after.regex else bool(before.regex)  # none any more: that is resolved
        )
        is_new_pattern = regex_changed and bool(after.regex) and not group.subscribers_of(after.regex or "")
        if is_new_pattern:
            regex.check(after.regex or "")
        names_changed = before.topics != after.topics
        if before != after:
            draft.records.append(write.member_metadata(group.group_id, after))
        if regex_changed and before.regex and group.subscribers_of(before.regex) == 1:
            draft.records.append(write.regex_tombstone(group.group_id, before.regex))
        self._resolve_patterns(group, after, is_new_pattern, caller.may_describe, draft, now)
        # A new pattern moves nothing until it has been matched against the topics.
        return Change(before, after, names_changed, regex_changed, names_changed or resolved)

    def refresh_metadata(self, group: ConsumerGroup, change: Change, draft: Draft) -> int:
        """The group's epoch: one more if there is something new to assign."""
        if not (change.bumps or group.refresh_wanted):
            return group.epoch
        members = _with(group, change.after)
        topics = [name for member in members.values() for name in group.topics_of(member)]
        fresh = metadata_hash(topics, self._state.image)
        epoch = group.epoch
        if change.bumps or fresh != group.metadata_hash:
            epoch += 1
            draft.records.append(write.group_epoch(group.group_id, epoch, fresh))
        self._state.undo.field(group, "refresh_wanted")
        group.refresh_wanted = False
        if group.has_old_metadata:
            draft.records.append(write.old_metadata_tombstone(group.group_id))
        return epoch

    # ---- towards the target

    def advance(
        self,
        group: ConsumerGroup,
        change: Change,
        epoch: int,
        owned: Iterable[OwnedTopic] | None,
        draft: Draft,
        now: Now,
    ) -> ConsumerMember:
        """A new target if one is due, and the member's next step towards the target."""
        target_epoch, partitions = self._target(group, change.after, epoch, draft, now)
        return self.step(group, change, target_epoch, partitions, owned, draft, now)

    def step(
        self,
        group: ConsumerGroup,
        change: Change,
        target_epoch: int,
        partitions: Partitions,
        owned: Iterable[OwnedTopic] | None,
        draft: Draft,
        now: Now,
    ) -> ConsumerMember:
        member = change.after
        goal = Goal(target_epoch, partitions, dict.fromkeys(group.topic_ids_of(member, self._state.image)), group.owner)
        after = reconcile(member, goal, owned, subscription_changed=change.names_changed or change.regex_changed)
        if after != member:
            draft.records.append(write.current(group.group_id, after))
            if after.classic is None:
                self._expect_revocation(group.group_id, after, now)
        return after

    def _target(
        self, group: ConsumerGroup, member: ConsumerMember, epoch: int, draft: Draft, now: Now
    ) -> tuple[int, Partitions]:
        before = self.target_of(group, member)
        if group.assignment_epoch >= epoch or not self._may_assign(group, now):
            return group.assignment_epoch, before
        members = _with(group, member)
        assignor = group.preferred_assignor(members.values()) or self._default_assignor()
        computed = target.compute(
            group, members, {**group.target, member.member_id: before}, self._state.image, assignor
        )
        draft.records += target.records(group, computed, epoch, now.wall)
        return epoch, computed[member.member_id]

    def target_of(self, group: ConsumerGroup, member: ConsumerMember) -> Partitions:
        """Also of a static member whose new id is not in the group yet."""
        if member.member_id in group.target or member.instance_id is None:
            return group.target.get(member.member_id, {})
        return group.target.get(group.static_members.get(member.instance_id, ""), {})

    def _may_assign(self, group: ConsumerGroup, now: Now) -> bool:
        """Joins that come in a crowd share one assignment."""
        interval = self._state.group_setting(
            group.group_id, "consumer.assignment.interval.ms", self._state.settings.consumer_assignment_interval
        )
        since = group.assignment_timestamp
        # The stamp is in the log, so it is wall time: a clock that was set back must not stop assignments for good.
        return not since or not interval or now.wall >= since + interval or now.wall < since - interval

    def _default_assignor(self) -> str:
        offered = (name for name in self._state.settings.consumer_assignors if name in ASSIGNORS)
        return next(offered, "uniform")

    # ---- patterns

    def _resolve_patterns(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        is_new_pattern: bool,
        may_describe: Callable[[str], bool],
        draft: Draft,
        now: Now,
    ) -> None:
        """Has the group's patterns matched in a thread if one is new, if topics came, or if it has been long ago.

        As in Kafka all patterns of the group see what the member whose turn it is may describe.
        """
        patterns = dict.fromkeys(each.regex for each in _with(group, member).values() if each.regex)
        if not patterns or group.resolving:
            return
        last = max((resolved.timestamp for resolved in group.regexes.values()), default=-1)
        version = max((resolved.version for resolved in group.regexes.values()), default=-1)
        if not is_new_pattern and last >= 0 and 0 <= now.wall - last <= REGEX_REFRESH_AT_LEAST:
            return
        due = (
            is_new_pattern
            or any(pattern not in group.regexes for pattern in patterns)
            or version < self._state.topics_version
            or now.wall - last > self._state.settings.regex_refresh
        )
        if not due:
            return
        group_id, image, at = group.group_id, self._state.image, now.wall
        wanted, names = [pattern for pattern in patterns if pattern is not None], list(image.topics)
        self._state.undo.field(group, "resolving")
        group.resolving = True
        draft.effects.append(
            Run(
                lambda: regex.resolve(wanted, names, may_describe),
                lambda found, now: self._resolved(group_id, found, image.offset, at, now),
            )
        )

    def _resolved(
        self, group_id: str, found: Mapping[str, tuple[str, ...]], version: int, at: int, now: Now
    ) -> Decision[Any]:
        group = self._state.find(ConsumerGroup, group_id)
        draft = Draft()
        if group is None:
            return draft.decision(None)
        self._state.undo.field(group, "resolving")
        group.resolving = False
        patterns = dict(group.regexes)
        for pattern, topics in found.items():
            if group.subscribers_of(pattern):
                patterns[pattern] = Resolved(topics, version, at)
                draft.records.append(write.regex(group_id, pattern, patterns[pattern]))
        changed = any(patterns[pattern].topics != group.regexes.get(pattern, Resolved()).topics for pattern in patterns)
        names = [name for member in group.members.values() for name in member.topics]
        for member in group.members.values():
            if member.regex in patterns:
                names += patterns[member.regex].topics
        fresh = metadata_hash(names, self._state.image)
        if changed or fresh != group.metadata_hash:
            draft.records.append(write.group_epoch(group_id, group.epoch + 1, fresh))
        return draft.decision(None)

    # ---- leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, draft: Draft, now: Now) -> ConsumerGroupHeartbeatResponse:
        group = self._state.find(ConsumerGroup, request.group_id)
        if group is None:
            raise GroupError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            known = group.static_member(request.instance_id)
            if known is None:
                raise GroupError(Errors.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
            if known.member_id != request.member_id:
                raise fenced_instance(known, request.member_id)
            member = known
        if request.member_epoch == LEFT_FOR_NOW:
            # Its partitions wait for it until its session is over; from epoch 0 on, so that the next one may commit.
            held = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
            away = member._replace(epoch=LEFT_FOR_NOW, assigned=held, revoking={})
            draft.records.append(write.current(group.group_id, away))
        else:
            self.fence(group, [member], draft, now)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember], draft: Draft, now: Now) -> None:
        """Removes members. If only classic ones are left, the group becomes a classic group."""
        if not members:
            return
        for member in members:
            self._forget(group.group_id, member.member_id)
        gone = dict.fromkeys(member.member_id for member in members)
        if self._migration.downgrades_without(group, gone):
            self._migration.downgrade(group, gone, None, rebalance=True, draft=draft, now=now)
            return
        left = {member_id: member for member_id, member in group.members.items() if member_id not in gone}
        for member_id in gone:
            draft.records += write.member_tombstones(group.group_id, member_id)
        kept = dict.fromkeys(member.regex for member in left.values())
        draft.records += [
            write.regex_tombstone(group.group_id, pattern) for pattern in group.regexes if pattern not in kept
        ]
        topics = [name for member in left.values() for name in group.topics_of(member)]
        fresh = metadata_hash(topics, self._state.image)
        draft.records.append(write.group_epoch(group.group_id, group.epoch + 1, fresh))

    # ---- time

    def expect(self, group_id: str, member_id: str, timeout: int, now: Now) -> None:
        """The member has to be heard of before `timeout` is over."""
        self.fence_at(("session", group_id, member_id), group_id, member_id, timeout, now)

    def fence_at(self, key: tuple[str, str, str], group_id: str, member_id: str, timeout: int, now: Now) -> None:
        def due(draft: Draft, now: Now) -> None:
            group = self._state.find(ConsumerGroup, group_id)
            if group is not None and member_id in group.members:
                self.fence(group, [group.members[member_id]], draft, now)

        self._state.deadlines.set(key, now.monotonic + timeout, due)

    def _expect_revocation(self, group_id: str, member: ConsumerMember, now: Now) -> None:
        key = ("rebalance", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._state.deadlines.cancel(key)
            return
        member_id, epoch = member.member_id, member.epoch

        def due(draft: Draft, now: Now) -> None:
            group = self._state.find(ConsumerGroup, group_id)
            found = None if group is None else group.members.get(member_id)
            if group is not None and found is not None and found.epoch == epoch:
                self.fence(group, [found], draft, now)

        self._state.deadlines.set(key, now.monotonic + member.rebalance_timeout, due)

    def _forget(self, group_id: str, member_id: str) -> None:
        for kind in ("session", "rebalance", "rejoin", "resync"):
            self._state.deadlines.cancel((kind, group_id, member_id))

    def forget(self, group: ConsumerGroup) -> None:
        for member_id in group.members:
            self._forget(group.group_id, member_id)

    def loaded(self, group: ConsumerGroup, now: Now) -> None:
        """Deadlines begin anew."""
        for member in group.members.values():
            self.expect(group.group_id, member.member_id, self._session_timeout(group.group_id), now)
            if member.classic is None:
                self._expect_revocation(group.group_id, member, now)

    def _session_timeout(self, group_id: str) -> int:
        return self._state.group_setting(
            group_id, "consumer.session.timeout.ms", self._state.settings.consumer_session_timeout
        )

    def _heartbeat_interval(self, group_id: str) -> int:
        return self._state.group_setting(
            group_id, "consumer.heartbeat.interval.ms", self._state.settings.consumer_heartbeat_interval
        )


def _with(group: ConsumerGroup, member: ConsumerMember) -> dict[str, ConsumerMember]:
    """The members once `member` is among them; one that it replaces is not."""
    members = {**group.members, member.member_id: member}
    replaced = group.static_members.get(member.instance_id) if member.instance_id is not None else None
    if replaced is not None and replaced != member.member_id:
        del members[replaced]
    return members


def _check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
    asked = request.member_epoch
    if asked in (0, member.epoch):
        return
    if asked > member.epoch:
        raise GroupError(
            Errors.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({asked}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )
    # The answer with the new epoch may have been lost: then the member has nothing that it should not have.
    if asked != member.previous_epoch or not _is_subset(request.topic_partitions, member):
        raise GroupError(
            Errors.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a smaller member epoch ({asked}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


def _is_subset(owned: Iterable[OwnedTopic] | None, member: ConsumerMember) -> bool:
    return owned is not None and all(
        partition in member.assigned.get(topic.topic_id, {}) for topic in owned for partition in topic.partitions
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Sent on joining and after any error: the client does not know what it was last told."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _given(value: str | None, before: str | None) -> str | None:
    return before if value is None else value


def _invalid(message: str) -> GroupError:
    return GroupError(Errors.INVALID_REQUEST, message)


def fenced_instance(known: ConsumerMember, member_id: str) -> GroupError:
    return GroupError(
        Errors.FENCED_INSTANCE_ID,
        f"Static member {member_id} with instance id {known.instance_id} was fenced by member {known.member_id}.",
    )
