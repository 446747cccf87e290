"""A look into a topic: its newest records, from which columns are guessed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.client.reach import Reach
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.sql.undeclared import SAMPLE_RECORDS, Undeclared, inferred

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Sampling:
    reach: Reach
    registry: "Registry | None" = None

    def __call__(self, topic: str) -> Undeclared | None:
        """None if there is no such topic."""
        with self.reach.cluster() as cluster:
            partitions = _partitions(cluster, topic)
            return None if partitions is None else inferred(topic, sample(cluster, topic, partitions), self.registry)


def _partitions(cluster: Cluster, topic: str) -> int | None:
    (found,) = cluster.metadata([topic]).topics
    return None if found.error_code != Errors.NONE else len(found.partitions)


def sample(cluster: Cluster, topic: str, partitions: int) -> list[tuple[bytes | None, bytes | None]]:
    """Of every partition the same number of its newest records."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    starts = list_offsets(cluster, dict.fromkeys(places, EARLIEST), isolation=READ_COMMITTED)
    each_of = max(1, SAMPLE_RECORDS // max(1, partitions))
    spans = {}
    for place in places:
        end = offset_of(ends[place])
        start = max(offset_of(starts[place]), end - each_of)
        if start < end:
            spans[place] = (start, end)
    consumer = Consumer(cluster, spans, isolation=READ_COMMITTED)
    found: list[tuple[bytes | None, bytes | None]] = []
    while consumer.active:
        for fetched in consumer.poll(_POLL_S):
            found += [(each.key, each.value) for each in fetched.records]
    return found
