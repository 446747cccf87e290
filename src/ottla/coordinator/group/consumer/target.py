"""Who should have what: the target assignment of a consumer-protocol group."""

from collections.abc import Mapping

from ottla.coordinator.group.consumer import records as write
from ottla.coordinator.group.consumer.assignors import ASSIGNORS, MemberSpec, Partitions
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import ConsumerMember
from ottla.coordinator.records import CoordinatorRecord
from ottla.metadata.image import MetadataImage


def compute(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    targets: Mapping[str, Partitions],
    image: MetadataImage,
    assignor: str,
) -> dict[str, Partitions]:
    """`members` are those the group will have, `targets` what they were given before."""
    specs = {
        member_id: MemberSpec(member.instance_id, group.topic_ids_of(member, image), targets.get(member_id, {}))
        for member_id, member in members.items()
    }
    counts = {
        topic: len(image.topics_by_id[topic].partitions)  # type: ignore[index]
        for topic in dict.fromkeys(topic for spec in specs.values() for topic in spec.topics)
    }
    return ASSIGNORS[assignor](specs, counts)


def records(
    group: ConsumerGroup, computed: Mapping[str, Partitions], epoch: int, timestamp: int
) -> list[CoordinatorRecord]:
    """Only what changed is written, and then the epoch."""
    changed = [
        write.target(group.group_id, member_id, partitions)
        for member_id, partitions in computed.items()
        if group.target.get(member_id) != partitions
    ]
    return [*changed, write.target_epoch(group.group_id, epoch, timestamp)]
