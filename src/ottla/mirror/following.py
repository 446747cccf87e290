"""Reads the topics of syncs and checkpoints into their cores, and groups of both clusters.

Such topics are compacted; they are read from the beginning, and then as far as they go each time somebody asks.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.errors import KafkaError
from ottla.client.groups import committed, describe, list_groups
from ottla.client.offsets import EARLIEST, LATEST, list_offsets, offset_of
from ottla.mirror.checkpoints import Committed, Partition
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition

logger = logging.getLogger(__name__)

_WAIT_S = 0.5
_EMPTY, _DEAD = "Empty", "Dead"
_WITH_OFFSETS = ("", "classic", "consumer")
"""Kinds of groups; a broker older than KIP-848 names none."""


class Follower:
    """A compacted topic, read to its end each time `catch_up` is called."""

    __slots__ = ("_cluster", "_next", "_replay", "_topic")

    def __init__(self, cluster: Cluster, topic: str, replay: Callable[[bytes, bytes], None]) -> None:
        """`replay` is given keys and values; it may raise ValueError, which is told and passed over."""
        self._cluster = cluster
        self._topic = topic
        self._replay = replay
        self._next: dict[TopicPartition, int] = {}

    def catch_up(self) -> None:
        """Raises KafkaError where the topic is not there or may not be read."""
        places = [TopicPartition(self._topic, partition) for partition in self._cluster.partitions(self._topic)]
        begins, ends = self._asked(places, EARLIEST), self._asked(places, LATEST)
        spans: dict[TopicPartition, tuple[int, int | None]] = {
            place: (max(self._next.get(place, 0), begins[place]), ends[place]) for place in places
        }
        self._read({place: span for place, span in spans.items() if span[0] < ends[place]})
        self._next |= ends

    def _read(self, spans: Mapping[TopicPartition, tuple[int, int | None]]) -> None:
        if not spans:
            return
        consumer = Consumer(self._cluster, spans)
        while consumer.active:
            for fetched in consumer.poll(_WAIT_S):
                for record in fetched.records:
                    if record.key is not None and record.value is not None:
                        self._take(bytes(record.key), bytes(record.value), fetched.place, record.offset)

    def _take(self, key: bytes, value: bytes, place: TopicPartition, offset: int) -> None:
        try:
            self._replay(key, value)
        except ValueError as reason:
            logger.warning("%s has something else at offset %d: %s", place, offset, reason)

    def _asked(self, places: Sequence[TopicPartition], which: int) -> dict[TopicPartition, int]:
        found = list_offsets(self._cluster, dict.fromkeys(places, which))
        return {place: offset_of(outcome) for place, outcome in found.items()}


def groups_of(cluster: Cluster) -> list[str]:
    """Groups that read by offsets of their own: share groups have none."""
    return sorted(group.name for group in list_groups(cluster) if group.kind.lower() in _WITH_OFFSETS)


def committed_of(cluster: Cluster, group: str) -> dict[Partition, Committed]:
    return {
        (place.topic, place.partition): Committed(at.offset, at.metadata)
        for place, at in committed(cluster, group).items()
        if at.offset >= 0
    }


def is_at_work(cluster: Cluster, group: str) -> bool:
    """Whether a group has members there, who say themselves where they are."""
    try:
        return describe(cluster, group).state not in (_EMPTY, _DEAD)
    except KafkaError as error:
        if error.error == Errors.GROUP_ID_NOT_FOUND:
            return False
        raise
