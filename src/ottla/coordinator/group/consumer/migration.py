"""From the classic to the consumer protocol and back, with the group running (group.consumer.migration.policy).

The first member that comes with the consumer protocol turns a classic group into a consumer group, in which the others
live on as classic members; when the last member of the consumer protocol goes, what is left is a classic group again.
"""

from collections.abc import Iterable, Mapping, Sequence

from ottla.coordinator.group.classic import consumer_protocol as blobs
from ottla.coordinator.group.classic.group import ClassicGroup, ClassicMember, Protocols, State
from ottla.coordinator.group.classic.kind import ClassicKind
from ottla.coordinator.group.consumer import records as write
from ottla.coordinator.group.consumer.assignors import Partitions
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import ClassicMetadata, ConsumerMember
from ottla.coordinator.group.draft import Draft, GroupError
from ottla.coordinator.group.metadata_hash import metadata_hash
from ottla.coordinator.group.state import CONSUMER_TYPE, GroupState
from ottla.coordinator.records import CoordinatorRecord
from ottla.coordinator.shard import Now
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.protocol.codec import DecodeError
from ottla.protocol.messages import ConsumerGroupMemberMetadataValue


class Migration:
    __slots__ = ("_classic", "_state")

    def __init__(self, state: GroupState, classic: ClassicKind) -> None:
        self._state = state
        self._classic = classic

    # ---- classic to consumer

    def upgrade(self, group_id: str, draft: Draft) -> ConsumerGroup:
        """The consumer group that a living classic group becomes; the draft holds the records that make it.

        Raises GroupError if it may not, or cannot. Call `upgrade_done` once the request that asked is granted.
        """
        group = self._upgradable(group_id)
        upgraded = ConsumerGroup(group_id)
        upgraded.epoch = upgraded.assignment_epoch = group.generation
        try:
            for member in group.members.values():
                self._upgrade_member(group, member, upgraded)
        except DecodeError as error:
            raise self._cannot_upgrade(group_id, "the embedded consumer protocol is malformed") from error
        topics = [name for member in upgraded.members.values() for name in member.topics]
        upgraded.metadata_hash = metadata_hash(topics, self._state.image)
        draft.records += group.tombstones()
        draft.records += _records_of(upgraded)
        return upgraded

    def _upgradable(self, group_id: str) -> ClassicGroup:
        group, settings = self._state.find(ClassicGroup, group_id), self._state.settings
        if not settings.upgrade_enabled:
            raise self._cannot_upgrade(group_id, "online upgrade is disabled")
        if group is None or group.protocol_type != CONSUMER_TYPE:
            raise self._cannot_upgrade(group_id, "the group does not use the consumer embedded protocol")
        if len(group.members) > settings.consumer_max_size:
            raise self._cannot_upgrade(group_id, "the group size exceeds the consumer group maximum size")
        return group

    def _cannot_upgrade(self, group_id: str, why: str) -> GroupError:
        return GroupError(
            Errors.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {group_id} to consumer group because {why}.",
        )

    def _upgrade_member(self, group: ClassicGroup, member: ClassicMember, upgraded: ConsumerGroup) -> None:
        subscription = blobs.subscription(member.protocols[0][1])
        if blobs.has_user_data(member.assignment):
            raise self._cannot_upgrade(group.group_id, "an unsupported custom assignor is in use")
        assigned = _by_topic_id(blobs.assignment(member.assignment), self._state.image)
        upgraded.target[member.member_id] = assigned
        upgraded.put_member(
            ConsumerMember(
                member.member_id,
                epoch=group.generation,
                previous_epoch=group.generation,
                instance_id=member.instance_id,
                rack_id=subscription.rack_id or None,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout,
                topics=tuple(sorted(dict.fromkeys(subscription.topics))),
                assigned={topic: dict.fromkeys(partitions, group.generation) for topic, partitions in assigned.items()},
                classic=classic_metadata(member.session_timeout, member.protocols),
            )
        )

    def upgrade_done(self, group: ConsumerGroup, draft: Draft, now: Now) -> None:
        """Whoever waits in the classic group is sent to join again; their sessions run on."""
        before = self._state.find(ClassicGroup, group.group_id)
        if before is not None:
            self._classic.dissolve(before, Errors.REBALANCE_IN_PROGRESS, draft)

    # ---- consumer to classic

    def downgrades_without(self, group: ConsumerGroup, leaving: Mapping[str, None]) -> bool:
        """Whether only classic members are left once `leaving` have gone, and the group may follow them."""
        left = [member for member_id, member in group.members.items() if member_id not in leaving]
        settings = self._state.settings
        return (
            bool(left)
            and all(member.classic is not None for member in left)
            and settings.downgrade_enabled
            and len(left) <= settings.classic_max_size
        )

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Mapping[str, None],
        joining: ConsumerMember | None,
        *,
        rebalance: bool,
        draft: Draft,
        now: Now,
    ) -> None:
        """`joining` is a static member in place of the one it replaces, which the draft has replaced already.

        The classic group is put in place at once, for it has to begin its rebalance before the records are replayed.
        """
        members = {
            member_id: member
            for member_id, member in group.members.items()
            if member_id not in leaving and (joining is None or member.instance_id != joining.instance_id)
        }
        if joining is not None:
            members[joining.member_id] = joining
        written = [*group.members] if joining is None else [*members]
        try:
            classic = self._downgraded(group, members, now)
        except DecodeError as error:
            raise GroupError(
                Errors.GROUP_ID_NOT_FOUND, f"Cannot downgrade the consumer group {group.group_id}: {error}."
            ) from error
        draft.records += write.group_tombstones(group.group_id, written, group.regexes)
        draft.records.append(classic.record())
        self._state.undo.key(self._state.groups, group.group_id)
        self._state.groups[group.group_id] = classic
        self._classic.loaded(classic, draft, now)
        if rebalance:
            self._classic.prepare_rebalance(classic, draft, now)

    def _downgraded(self, group: ConsumerGroup, members: Mapping[str, ConsumerMember], now: Now) -> ClassicGroup:
        classic = ClassicGroup(group.group_id)
        classic.generation = group.epoch
        classic.protocol_type = CONSUMER_TYPE
        classic.state = State.STABLE
        classic.state_since = now.wall
        for member in members.values():
            assert member.classic is not None
            classic.add(
                ClassicMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout,
                    member.classic.session_timeout_ms,
                    protocols_of(member.classic),
                )
            )
        classic.protocol = classic.select_protocol()
        classic.subscriptions = classic.compute_subscriptions()
        for member_id, downgraded in classic.members.items():
            source = member_id if member_id in group.target else group.static_members.get(downgraded.instance_id or "")
            downgraded.assignment = blobs.assignment_bytes(
                by_name(group.target.get(source or "", {}), self._state.image),
                blobs.version_of(downgraded.metadata(classic.protocol)),
            )
        return classic


def _records_of(group: ConsumerGroup) -> list[CoordinatorRecord]:
    group_id = group.group_id
    return [
        *(write.member_metadata(group_id, member) for member in group.members.values()),
        write.group_epoch(group_id, group.epoch, group.metadata_hash),
        *(write.target(group_id, member_id, partitions) for member_id, partitions in group.target.items()),
        write.target_epoch(group_id, group.assignment_epoch, group.assignment_timestamp),
        *(write.current(group_id, member) for member in group.members.values()),
    ]


def classic_metadata(session_timeout: int, protocols: Protocols) -> ClassicMetadata:
    return ClassicMetadata(
        session_timeout_ms=session_timeout,
        supported_protocols=[
            ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in protocols
        ],
    )


def protocols_of(metadata: ClassicMetadata) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in metadata.supported_protocols)


def _by_topic_id(partitions: Mapping[str, Iterable[int]], image: MetadataImage) -> Partitions:
    """Topics that are gone are left out."""
    return {
        image.topics[name].id: tuple(sorted(indexes)) for name, indexes in partitions.items() if name in image.topics
    }


def by_name(partitions: Mapping[bytes, Iterable[int]], image: MetadataImage) -> dict[str, Sequence[int]]:
    found: dict[str, Sequence[int]] = {}
    for topic, indexes in partitions.items():
        known = image.topics_by_id.get(topic)  # type: ignore[call-overload]
        if known is not None:
            found[known.name] = sorted(indexes)
    return found
