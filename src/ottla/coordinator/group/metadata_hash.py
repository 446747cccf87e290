"""Kafka's hash of the topics a group reads: when it changes there is something new to assign."""

from collections.abc import Iterable
from struct import Struct, pack
from typing import Final

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
