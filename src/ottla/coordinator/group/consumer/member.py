"""A member of a consumer-protocol group: who it is, what it reads, what it holds, and in which epoch it is."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.protocol.messages import ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue

LEFT: Final = -1
LEFT_FOR_NOW: Final = -2
"""The epoch of a static member that will be back."""

Owned = dict[bytes, dict[int, int]]
"""By topic id: partition to the epoch in which the member got it (KIP-1251). Never changed in place."""
NOTHING: Final[Owned] = {}
ClassicMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """Was told to let partitions go and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that others still hold."""
    UNKNOWN = 127


class ConsumerMember(NamedTuple):
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    topics: tuple[str, ...] = ()
    """Subscribed by name: sorted, each once."""
    regex: str | None = ""
    assignor: str | None = None
    assigned: Owned = NOTHING
    revoking: Owned = NOTHING
    classic: ClassicMetadata | None = None
    """What a member of the classic protocol said in its JoinGroup; None for one of the consumer protocol."""

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        return self._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout=value.rebalance_timeout_ms,
            topics=tuple(sorted(dict.fromkeys(value.subscribed_topic_names))),
            regex=value.subscribed_topic_regex,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        known = MemberState._value2member_map_
        return self._replace(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in known else MemberState.UNKNOWN,
            assigned=_owned(value.assigned_partitions, value.member_epoch),
            revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
        )


def _owned(topics: Iterable[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], default_epoch: int) -> Owned:
    owned: Owned = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):  # written before 4.3
            epochs = [max(default_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


class Resolved(NamedTuple):
    """The topics that a pattern matched, as of `version` of the metadata."""

    topics: tuple[str, ...] = ()
    version: int = -1
    timestamp: int = -1
