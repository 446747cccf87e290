"""The bytes that consumers put into classic JoinGroup and SyncGroup: int16 version, then the struct of that version.

Every version begins as version 0 does, so a subscription of a later version than ours can still be read.
"""

from collections.abc import Mapping, Sequence

from ottla.protocol.codec import DecodeError
from ottla.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

HIGHEST = 3


def version_of(blob: bytes) -> int:
    """Raises DecodeError for what is too short to have one."""
    if len(blob) < 2:
        raise DecodeError("consumer protocol metadata without a version")
    version = int.from_bytes(blob[:2], "big", signed=True)
    if version < 0:
        raise DecodeError(f"consumer protocol version {version}")
    return min(version, HIGHEST)


def subscription(blob: bytes) -> ConsumerProtocolSubscription:
    """Raises DecodeError."""
    return ConsumerProtocolSubscription.decode(blob, version_of(blob), 2)


def subscribed_topics(blob: bytes) -> list[str] | None:
    """None if the bytes are not a subscription."""
    try:
        version_of(blob)
        return ConsumerProtocolSubscription.decode(blob, 0, 2).topics
    except DecodeError:
        return None


def assignment_bytes(partitions: Mapping[str, Sequence[int]], version: int) -> bytes:
    """Partitions by topic name."""
    topics = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=list(indexes))
        for topic, indexes in partitions.items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=topics, user_data=None)
    return version.to_bytes(2, "big") + message.encode(version)


def assignment(blob: bytes) -> dict[str, list[int]]:
    """Partitions by topic name. Raises DecodeError; an empty blob is an empty assignment."""
    if not blob:
        return {}
    message = ConsumerProtocolAssignment.decode(blob, version_of(blob), 2)
    found: dict[str, list[int]] = {}
    for topic in message.assigned_partitions:
        found.setdefault(topic.topic, []).extend(topic.partitions)
    return found


def has_user_data(blob: bytes) -> bool:
    """Whether a custom assignor put something of its own into an assignment. Raises DecodeError."""
    return bool(blob) and bool(ConsumerProtocolAssignment.decode(blob, version_of(blob), 2).user_data)
