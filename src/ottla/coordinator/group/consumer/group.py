"""One group of the consumer protocol (KIP-848): what is here is durable, rebuilt by replay, changed by nothing else.

The group's epoch counts changes of what there is to assign; the target is who should have what; each member walks
towards it and says so in its own epoch. A partition has one owner until that owner has said that it let go.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from ottla.coordinator.group.consumer import records as write
from ottla.coordinator.group.consumer.assignors import Partitions
from ottla.coordinator.group.consumer.member import ConsumerMember, Resolved
from ottla.coordinator.group.draft import GroupError
from ottla.coordinator.group.kind import PartitionCheck
from ottla.coordinator.records import CoordinatorRecord
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors

_COMMIT_FROM: Final = 9


class ConsumerGroup:
    KIND: ClassVar[str] = "consumer"

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp",
        "epoch",
        "group_id",
        "has_old_metadata",
        "members",
        "metadata_hash",
        "owners",
        "refresh_wanted",
        "regexes",
        "resolving",
        "static_members",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # KAFKA-20268: a group begins at epoch 1 with the empty assignment; the first one computed has epoch 2.
        self.epoch = 1
        self.assignment_epoch = 1
        self.assignment_timestamp = 0
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        self.regexes: dict[str, Resolved] = {}
        self.owners: dict[bytes, dict[int, str]] = {}
        """Who has which partition now, being told to let it go included."""
        self.has_old_metadata = False
        """A record of a kind that Kafka no longer writes is in the log; it gets a tombstone."""
        self.refresh_wanted = True
        """Soft: topics changed, so the next heartbeat looks at the metadata again."""
        self.resolving = False
        """Soft: patterns are being matched beside the loop."""

    # ---- replay

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._disown(before)
            if before.instance_id is not None and before.instance_id != member.instance_id:
                self._drop_instance(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for owned in (member.assigned, member.revoking):
            for topic, partitions in owned.items():
                self.owners.setdefault(topic, {}).update(dict.fromkeys(partitions, member.member_id))

    def drop_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._disown(member)
            self._drop_instance(member)

    def _drop_instance(self, member: ConsumerMember) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]

    def _disown(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic, partitions in owned.items():
                owners = self.owners.get(topic, {})
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self.owners.pop(topic, None)

    # ---- what others ask

    def owner(self, topic: bytes, partition: int) -> str | None:
        return self.owners.get(topic, {}).get(partition)

    def is_empty(self) -> bool:
        return not self.members

    def is_simple(self) -> bool:
        return False

    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def listed_protocol_type(self) -> str:
        return "consumer"

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        """By name and by pattern. A pattern that is not resolved yet matches nothing."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        if resolved is None or not resolved.topics:
            return member.topics
        return tuple(sorted(dict.fromkeys((*member.topics, *resolved.topics))))

    def topic_ids_of(self, member: ConsumerMember, image: MetadataImage) -> tuple[bytes, ...]:
        return tuple(image.topics[name].id for name in self.topics_of(member) if name in image.topics)

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def subscribers_of(self, regex: str) -> int:
        return sum(member.regex == regex for member in self.members.values())

    def classic_members(self) -> int:
        return sum(member.classic is not None for member in self.members.values())

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str | None:
        votes: dict[str, int] = {}
        for member in members:
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(votes, key=lambda name: votes[name], default=None)

    # ---- offsets

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, version: int
    ) -> PartitionCheck | None:
        if generation < 0 and not self.members:
            return None
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and version < _COMMIT_FROM:
            raise GroupError(Errors.UNSUPPORTED_VERSION)
        if generation == member.epoch:
            return None
        stale = Errors.STALE_MEMBER_EPOCH if member.classic is None else Errors.ILLEGAL_GENERATION
        if generation > member.epoch:
            raise GroupError(stale)

        def check(topic_id: bytes, partition: int) -> None:
            """KIP-1251: an older epoch is good enough for what the member has held since then."""
            since = member.assigned.get(topic_id, {}).get(partition)
            if since is None:
                since = member.revoking.get(topic_id, {}).get(partition)
            if since is None or generation < since:
                raise GroupError(stale)

        return check

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise GroupError(Errors.STALE_MEMBER_EPOCH if member.classic is None else Errors.ILLEGAL_GENERATION)

    def check_offset_delete(self) -> None:
        return

    def check_delete(self) -> None:
        if self.members:
            raise GroupError(Errors.NON_EMPTY_GROUP)

    def offsets_expire_since(self) -> Callable[[int], int] | None:
        return lambda commit_timestamp: commit_timestamp

    def tombstones(self) -> list[CoordinatorRecord]:
        return write.group_tombstones(self.group_id, self.members, self.regexes)
