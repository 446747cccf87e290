"""Who should have what: the target assignment of a consumer-protocol group, and the hash of what it was made from."""

from collections.abc import Iterable, Mapping
from struct import Struct, pack
from typing import Final

from ottla.coordinator.group import consumer_records as write
from ottla.coordinator.group.assignors import ASSIGNORS, MemberSpec, Partitions
from ottla.coordinator.group.consumer_group import ConsumerGroup
from ottla.coordinator.group.consumer_member import ConsumerMember
from ottla.coordinator.records import CoordinatorRecord
from ottla.metadata.image import MetadataImage, TopicImage

_HASH_VERSION: Final = b"\0"
_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")


def metadata_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """Kafka's: changes when a subscribed topic comes, goes, is made again, grows or moves to other racks.

    0 if none of the topics exists.
    """
    known = [image.topics[name] for name in sorted(dict.fromkeys(topics)) if name in image.topics]
    if not known:
        return 0
    return _xxh3(b"".join(_LONG.pack(topic_hash(topic, image)) for topic in known))


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    """Over id, name, number of partitions and the racks of each; numbers are little-endian, text is UTF-16."""
    count = len(topic.partitions)
    parts = [_HASH_VERSION, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), _INT.pack(count)]
    if any(broker.rack is not None for broker in image.brokers.values()):
        for index in range(count):
            parts.append(_INT.pack(index))
            for rack in sorted(_racks(topic, index, image), key=lambda rack: rack.encode("utf-16-be")):
                parts += (_INT.pack(_length(rack)), _text(rack))
    else:
        parts.append(pack(f"<{count}i", *range(count)))
    return _xxh3(b"".join(parts))


def _racks(topic: TopicImage, index: int, image: MetadataImage) -> list[str]:
    placed = topic.partitions.get(index)
    brokers = () if placed is None else (image.brokers.get(replica) for replica in placed.replicas)
    return [broker.rack for broker in brokers if broker is not None and broker.rack is not None]


def _text(value: str) -> bytes:
    """As hash4j feeds it: the characters, then how many they were."""
    return value.encode("utf-16-le") + _INT.pack(_length(value))


def _length(value: str) -> int:
    """In Java's characters."""
    return len(value.encode("utf-16-le")) // 2


def _xxh3(data: bytes) -> int:
    from xxhash import xxh3_64_intdigest  # noqa: PLC0415  a native library, loaded with the first group of this kind

    digest = xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >> 63 else digest


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
