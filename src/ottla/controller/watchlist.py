"""Partitions that are not as they should be, known without a walk over all of them."""

from collections.abc import Iterator
from typing import Final

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage, PartitionImage, TopicImage
from ottla.model.ids import Uuid

Place = tuple[Uuid, int]
"""A partition of a topic, by the topic's id."""

Places = dict[Place, None]


class Watchlist:
    """Follows the controller's image, one delta at a time."""

    __slots__ = ("imbalanced", "leaderless", "reassigning")

    def __init__(self, image: MetadataImage) -> None:
        self.leaderless: Final[Places] = {}
        self.imbalanced: Final[Places] = {}
        """Led by another than their first replica."""
        self.reassigning: Final[Places] = {}
        for topic in image.topics_by_id.values():
            for index, partition in topic.partitions.items():
                self._note((topic.id, index), partition)

    def follow(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted_topics.values():
            self._forget(topic)
        for topic_id, partitions in delta.changed_partitions.items():
            for index, partition in partitions.items():
                self._note((topic_id, index), partition)

    def _note(self, place: Place, partition: PartitionImage) -> None:
        leader = partition.leader
        if leader == partition.replicas[0] and not partition.adding_replicas and not partition.removing_replicas:
            self._drop(place)
            return
        _set(self.leaderless, place, leader < 0)
        _set(self.imbalanced, place, 0 <= leader != partition.replicas[0])
        _set(self.reassigning, place, bool(partition.adding_replicas or partition.removing_replicas))

    def _drop(self, place: Place) -> None:
        self.leaderless.pop(place, None)
        self.imbalanced.pop(place, None)
        self.reassigning.pop(place, None)

    def _forget(self, topic: TopicImage) -> None:
        if self.leaderless or self.imbalanced or self.reassigning:
            for index in topic.partitions:
                self._drop((topic.id, index))


def _set(places: Places, place: Place, belongs: bool) -> None:
    if belongs:
        places[place] = None
    else:
        places.pop(place, None)


def partitions_at(image: MetadataImage, places: Places) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    for topic_id, index in places:
        topic = image.topics_by_id[topic_id]
        yield topic, index, topic.partitions[index]
