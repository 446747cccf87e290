"""What one Spark query reads: its partitions, where it began, and where each of its batches began and ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.blocking.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import keep_offsets, kept_offsets, offsets_of_batch
from ottla.pipelines.source.origins import Origins
from ottla.streams.plan.plan import QueryPlan
from ottla.streams.run import topics
from ottla.streams.run.config import reset_of
from ottla.streams.run.frames import RunContext
from ottla.streams.run.state_directory import StateDirectory

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp


class QueryInput:
    def __init__(self, app: StreamsApp, plan: QueryPlan, directory: StateDirectory, around: RunContext) -> None:
        self._app = app
        self.plan = plan
        self.directory = directory
        self.around = around

    @property
    def checkpoint(self) -> str:
        return self.directory.checkpoint(self.plan.name)

    @property
    def initial_offsets(self) -> str:
        return f"{self.checkpoint}.initial-offsets"

    def _topics(self) -> list[str]:
        return [topic for source in self.plan.sources for topic in self.around.real_topics(source)]

    def _own_topics(self) -> frozenset[str]:
        return frozenset(self.around.decorate(topic) for topic in self.around.inputs.internal)

    def own_partitions(self) -> list[TopicPartition]:
        """Partitions of repartition topics that it reads."""
        counts = self.around.all_partitions()
        own = [topic for topic in self._topics() if topic in self._own_topics()]
        return [TopicPartition(topic, partition) for topic in own for partition in range(counts[topic])]

    def partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic, number)
            for source in self.plan.sources
            for topic, count in self.around.real_topics(source).items()
            for number in range(count)
        ]

    def first_offsets(self, cluster: Cluster) -> dict[TopicPartition, int]:
        sources = [(source, self.around.real_topics(source)) for source in self.plan.sources]
        default = reset_of(self._app.config["auto.offset.reset"])
        now_ms = time.time_ns() // 1_000_000 if self.around.clock is None else self.around.clock()
        found = topics.starting_offsets(cluster, self._app.application_id, sources, default, now_ms)
        return found if self.directory.is_local else self._kept(cluster, found)

    def _kept(self, cluster: Cluster, starting: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where the first batch began, if there was one: the source keeps that in a file by itself, but knows local
        ones only."""
        try:
            return {**starting, **kept_offsets(self.initial_offsets)}
        except FileNotFoundError:
            exact = topics.exact_offsets(cluster, starting)
            keep_offsets(self.initial_offsets, exact)
            return exact

    def origins(self, batch_id: int, ends: Mapping[TopicPartition, int]) -> Origins | None:
        """Results of a native aggregate have the headers of a record of this batch."""
        if self.plan.aggregate is None:
            return None
        if batch_id:
            return Origins.between(offsets_of_batch(self.checkpoint, batch_id - 1), ends)
        return Origins.between(kept_offsets(self.initial_offsets), ends)
