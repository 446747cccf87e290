"""One group of the classic protocol: its members, its generation and the state it is in.

Members agree on a protocol by name; what it means is theirs. Only for type "consumer" do we read the subscription, to
know which offsets are in use. Of all this the record of the last stable generation is durable, the rest is soft.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import ClassVar, TypeAlias

from ottla.coordinator.group.classic.consumer_protocol import subscribed_topics
from ottla.coordinator.group.draft import GroupError
from ottla.coordinator.group.kind import PartitionCheck
from ottla.coordinator.group.state import CONSUMER_TYPE
from ottla.coordinator.records import CoordinatorRecord, tombstone
from ottla.model.errors import Errors
from ottla.protocol.messages import GroupMetadataKey, GroupMetadataValue, JoinGroupResponse

VALUE_VERSION = 3

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata, in the member's order of preference."""
MemberRecord: TypeAlias = GroupMetadataValue.MemberMetadata


class State(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicMember:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_token",
        "member_id",
        "protocols",
        "rebalance_timeout",
        "session_timeout",
        "sync_token",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout: int,
        session_timeout: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.protocols = protocols
        self.assignment = assignment
        self.join_token: int | None = None
        """The reply that this member waits for; None if it does not."""
        self.sync_token: int | None = None
        self.is_new = False
        """Has not been through a join yet, so it cannot send heartbeats."""

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: dict[str, None]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def waits(self) -> bool:
        """Whoever waits for the group need not send heartbeats."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)


class ClassicGroup:
    KIND: ClassVar[str] = "classic"

    __slots__ = (
        "_supported",
        "generation",
        "group_id",
        "leader",
        "member_added",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_type",
        "state",
        "state_since",
        "static_members",
        "subscriptions",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state = State.EMPTY
        self.previous_state = State.EMPTY
        self.state_since = -1
        """Wall time of the last change of state; -1 if unknown."""
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, None] = {}
        """Member ids that were given out and are expected to join (KIP-394)."""
        self.pending_syncs: dict[str, None] = {}
        self.member_added = False
        """Somebody came during the initial delay, which is then prolonged."""
        self.subscriptions: dict[str, None] | None = None
        """Topics that the members read; None if that cannot be known."""
        self._supported: dict[str, int] = {}

    # ---- what others ask

    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def is_simple(self) -> bool:
        """Made by a bare commit: not a group, just a name for offsets."""
        return self.protocol_type is None and self.is_empty() and not self.pending_joins

    def state_name(self) -> str:
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscriptions is None:
            return self.protocol_type == CONSUMER_TYPE
        return topic in self.subscriptions

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise GroupError(Errors.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise GroupError(Errors.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        return member

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, version: int
    ) -> PartitionCheck | None:
        if generation < 0 and self.is_empty():
            return None  # an admin tool, or a consumer that manages its partitions itself
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise GroupError(Errors.ILLEGAL_GENERATION)
        elif not transactional and not self.is_empty():
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is State.COMPLETING_REBALANCE:
            # The member knows of the new generation but has no assignment in it yet: there is nothing to commit.
            raise GroupError(Errors.REBALANCE_IN_PROGRESS)
        return None

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        return

    def check_offset_delete(self) -> None:
        if not self.is_empty() and self.protocol_type != CONSUMER_TYPE:
            raise GroupError(Errors.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if not self.is_empty():
            raise GroupError(Errors.NON_EMPTY_GROUP)

    def offsets_expire_since(self) -> Callable[[int], int] | None:
        if self.protocol_type is None:
            return _commit_time
        if self.is_empty():
            since = self.state_since
            return _commit_time if since < 0 else lambda _: since
        if self.protocol_type == CONSUMER_TYPE and self.subscriptions is not None and self.state is State.STABLE:
            return _commit_time
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [tombstone(GroupMetadataKey(self.group_id))]

    # ---- members

    def add(self, member: ClassicMember) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.protocols, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_timeout: int, session_timeout: int) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)
        member.rebalance_timeout = rebalance_timeout
        member.session_timeout = session_timeout

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """The process of a static member came back: the new id takes the place of the old, assignment included."""
        old = self.members.pop(old_id)
        assert old.instance_id is not None
        new = ClassicMember(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout,
            old.session_timeout,
            old.protocols,
            old.assignment,
        )
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[old.instance_id] = new_id
        self.pending_syncs.pop(old_id, None)
        return new

    @property
    def awaiting(self) -> int:
        return sum(member.join_token is not None for member in self.members.values())

    def all_joined(self) -> bool:
        return not self.pending_joins and all(member.join_token is not None for member in self.members.values())

    def elect_joined_leader(self) -> bool:
        """Keeps a leader that has joined, else takes the first member that has. False if nobody has."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_token is None:
            joined = (member_id for member_id, member in self.members.items() if member.join_token is not None)
            leader = next(joined, None)
            if leader is None:
                return False
            self.leader = leader
        return True

    @property
    def rebalance_timeout(self) -> int:
        return max((member.rebalance_timeout for member in self.members.values()), default=0)

    # ---- protocols

    def _count(self, protocols: Protocols, change: int) -> None:
        for name, _ in protocols:
            self._supported[name] = self._supported.get(name, 0) + change

    def supports(self, protocol_type: str, protocols: Iterable[tuple[str, bytes]]) -> bool:
        """Whether a member with these protocols could agree with the others."""
        if self.is_empty():
            return bool(protocol_type) and any(True for _ in protocols)
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supported.get(name, 0) == everybody for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The one most members prefer among those that all have."""
        everybody = len(self.members)
        candidates = {name: None for name, count in self._supported.items() if count == everybody}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    # ---- the life of a generation

    def move_to(self, state: State, wall: int) -> None:
        self.previous_state = self.state
        self.state = state
        self.state_since = wall

    def next_generation(self, wall: int) -> None:
        self.generation = (self.generation + 1) & 0x7FFFFFFF
        self.protocol = self.select_protocol() if self.members else None
        self.subscriptions = self.compute_subscriptions()
        self.move_to(State.COMPLETING_REBALANCE if self.members else State.EMPTY, wall)
        self.pending_syncs.clear()

    def compute_subscriptions(self) -> dict[str, None] | None:
        if self.protocol_type != CONSUMER_TYPE:
            return None
        topics: dict[str, None] = {}
        for member in self.members.values():
            found = subscribed_topics(member.metadata(self.protocol))
            if found is None:
                return None
            topics.update(dict.fromkeys(found))
        return topics

    def joined_members(self) -> list[JoinGroupResponse.JoinGroupResponseMember]:
        return [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]

    # ---- the record

    def record(self) -> CoordinatorRecord:
        """As Kafka writes it: the members with their metadata of the chosen protocol and their assignments."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_since,
            members=[
                MemberRecord(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout,
                    session_timeout=member.session_timeout,
                    subscription=member.metadata(self.protocol),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )
        return CoordinatorRecord(GroupMetadataKey(self.group_id), value, VALUE_VERSION)

    @classmethod
    def of_record(cls, group_id: str, value: GroupMetadataValue) -> "ClassicGroup":
        group = cls(group_id)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.state_since = value.current_state_timestamp
        group.state = State.STABLE if value.members else State.EMPTY
        for member in value.members:
            timeout = member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout
            group.add(
                ClassicMember(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    timeout,
                    member.session_timeout,
                    ((value.protocol or "", member.subscription),),
                    member.assignment,
                )
            )
        group.leader = value.leader
        group.subscriptions = group.compute_subscriptions()
        return group


def _commit_time(commit_timestamp: int) -> int:
    return commit_timestamp
