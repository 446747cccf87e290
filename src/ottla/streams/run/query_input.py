"""What one Spark query reads: its partitions, where it began, and where each of its batches began and ended."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.client.blocking.cluster import Cluster
from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import keep_offsets, kept_offsets, offsets_of_batch
from ottla.pipelines.files import kept_text
from ottla.pipelines.source.offsets import EARLIEST, from_json
from ottla.pipelines.source.origins import Origins
from ottla.streams.plan.plan import QueryPlan
from ottla.streams.run import topics
from ottla.streams.run.changed_inputs import last_ends, left_behind, renewed, unknown
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
        self._subscription = around.subscription(plan.sources)
        self._began: Mapping[TopicPartition, int] = {}
        self.left_behind = 0
        """Offsets of partitions that an earlier version read."""

    @property
    def checkpoint(self) -> str:
        return self.directory.checkpoint(self.plan.name)

    @property
    def initial_offsets(self) -> str:
        return self.directory.initial_offsets(self.plan.name)

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
        ends = last_ends(self.checkpoint)
        if ends:
            return self._goes_on(cluster, found, ends)
        return found if self.directory.is_local else self._kept(cluster, found)

    def _kept(self, cluster: Cluster, starting: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where the first batch begins: the source keeps that in a file by itself, but knows local ones only."""
        exact = topics.exact_offsets(cluster, starting)
        keep_offsets(self.initial_offsets, exact)
        return exact

    def _goes_on(
        self, cluster: Cluster, found: Mapping[TopicPartition, int], ends: Sequence[Mapping[TopicPartition, int]]
    ) -> dict[TopicPartition, int]:
        """With what the checkpoint does not know where the group is, or where a partition without offsets begins."""
        text = kept_text(self.initial_offsets)
        if text is None:
            return dict(found)
        began = from_json(text)
        new = topics.exact_offsets(cluster, {place: found[place] for place in unknown(found, ends)})
        self._began = renewed(began, ends, found, new)
        self.left_behind = left_behind(self._began, found)
        if self._began != began:
            keep_offsets(self.initial_offsets, self._began)
        return {place: self._began.get(place, EARLIEST) for place in found}

    def ends(self, batch_id: int) -> dict[TopicPartition, int]:
        """How far the batch reads. An earlier version, which read others, may have begun it."""
        ends = offsets_of_batch(self.checkpoint, batch_id)
        return {place: offset for place, offset in ends.items() if self._subscription.has(place)}

    def origins(self, batch_id: int, ends: Mapping[TopicPartition, int]) -> Origins | None:
        """Results of a native aggregate have the headers of a record of this batch."""
        return None if self.plan.aggregate is None else self._between(batch_id, ends)

    def records(self, batch_id: int, ends: Mapping[TopicPartition, int]) -> int:
        """Of a batch, at most: some offsets may have none."""
        return sum(max(0, each.end - each.start) for each in self._between(batch_id, ends).ranges)

    def _between(self, batch_id: int, ends: Mapping[TopicPartition, int]) -> Origins:
        before = offsets_of_batch(self.checkpoint, batch_id - 1) if batch_id else kept_offsets(self.initial_offsets)
        return Origins.between({**self._began, **before}, ends, self.left_behind)
