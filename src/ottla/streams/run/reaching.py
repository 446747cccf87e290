"""How far the tasks of a query have come: what is committed for each input, and is known again at the next start.

Spark's checkpoint tells how far a query has read. A task may be behind that, where records of one input wait for those
of another: the group's offset is then the first of them, and how far was read stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.client.blocking.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.pipelines.progress import new_latest
from ottla.pipelines.sink.sink import Commits
from ottla.streams.run import topics
from ottla.streams.run.stages import Reached
from ottla.streams.tasks.offset_metadata import READ, PartitionTimes, decode, encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Reaching:
    """`told` is for the tasks, which tell what changed; `before` is what was committed when the query started."""

    __slots__ = ("_before", "told")

    def __init__(self, spark: SparkSession) -> None:
        self.told = new_latest(spark)
        self._before: Mapping[TopicPartition, Reached] = {}

    def learn(self, cluster: Cluster, group: str, places: Sequence[TopicPartition]) -> None:
        """Tasks that get nothing to do in a batch tell nothing."""
        found: dict[TopicPartition, Reached] = {}
        for place, committed in topics.committed(cluster, group, places).items():
            times = decode(committed.metadata)
            numbers = {name: number for name, number in times.numbers.items() if name != READ}
            waiting = committed.offset if READ in times.numbers else None
            found[place] = Reached(PartitionTimes(times.time, numbers), waiting)
        self._before = found

    def commits(self, read: Mapping[TopicPartition, int]) -> Commits:
        """Not further than tasks have come: who has lost the state reads again what waited."""
        reached = {**self._before, **self.told.value}
        offsets = dict(read)
        metadata: dict[TopicPartition, str] = {}
        for place, end in read.items():
            if place not in reached:
                continue
            times, waiting = reached[place]
            if waiting is not None and waiting < end:
                offsets[place] = waiting
                times = times._replace(numbers={**times.numbers, READ: end})
            metadata[place] = encode(times)
        return Commits(offsets, metadata)
