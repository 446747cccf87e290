"""Who should have what: the target assignment of a consumer-protocol group, and the hash of what it was made from."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from ottla.coordinator.group import consumer_records as write
from ottla.coordinator.group.assignors import ASSIGNORS, MemberSpec, Partitions
from ottla.coordinator.group.consumer_group import ConsumerGroup
from ottla.coordinator.group.consumer_member import ConsumerMember
from ottla.coordinator.records import CoordinatorRecord
from ottla.metadata.image import MetadataImage


def metadata_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """Changes when a subscribed topic comes, goes, is made again or grows; 0 if none of them exists.

    Not the number that Kafka computes: after a move between the two a group is assigned afresh, once.
    """
    digest = blake2b(digest_size=8)
    known = [image.topics[name] for name in sorted(dict.fromkeys(topics)) if name in image.topics]
    for topic in known:
        digest.update(b"%b%d\0%b\0" % (topic.id, len(topic.partitions), topic.name.encode()))
    return int.from_bytes(digest.digest(), "big", signed=True) if known else 0


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
