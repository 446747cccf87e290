"""Global tables in the workers: every process keeps a replica, and brings it up to date when a batch begins.

Kafka synchronises a global table with nothing, so a lookup finds what the replica has seen: here all that was committed
when the batch's task began.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.partition_reader import PartitionReader
from ottla.client.errors import KafkaError
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets
from ottla.model.ids import TopicPartition
from ottla.pipelines.rows import headers_of
from ottla.pipelines.source.columns import read_columns
from ottla.streams.record import Raw
from ottla.streams.run.config import patience_s, reach_of
from ottla.streams.tasks.global_tables import GlobalTables
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.topology.graph import Graph

FRESH_S: Final = 0.05
"""Tasks of one batch that follow each other in a worker share what one of them read."""


class Replica:
    """All global tables of one topology in this process."""

    def __init__(self, graph: Graph, config: Mapping[str, Any]) -> None:
        self._cluster = reach_of(config, "global.consumer").cluster(
            client_id="ottla-streams-global", timeout_s=patience_s(config), patient=True
        )
        self._topics = tuple(dict.fromkeys(table.topic for table in graph.global_tables.values()))
        self._positions: dict[TopicPartition, int] = {}
        self._looked = 0.0
        self.tables = GlobalTables(graph, lambda _: MemoryBackend(), config)

    def refresh(self) -> None:
        if time.monotonic() - self._looked < FRESH_S:
            return
        places = [TopicPartition(topic, each) for topic in self._topics for each in self._cluster.partitions(topic)]
        new = [place for place in places if place not in self._positions]
        if new:
            self._positions |= _offsets(self._cluster, new, EARLIEST)
        for place, end in _offsets(self._cluster, places, LATEST).items():
            self._read(place, end)
        self._looked = time.monotonic()

    def close(self) -> None:
        self._cluster.close()

    def take_dropped(self) -> dict[str, int]:
        """What of the tables' topics was left out since the last time, by reason. Each worker reads them by itself, and
        so do all counts."""
        dropped, self.tables.dropped = self.tables.dropped, {}
        return dropped

    def _read(self, place: TopicPartition, end: int) -> None:
        start = self._positions[place]
        if end <= start:
            return
        for low, batches in PartitionReader(self._cluster, place, start, end, isolation=READ_COMMITTED):
            for columns in read_columns(str(place), batches, low, end, with_headers=True):
                rows = zip(
                    columns.offsets.tolist(),
                    columns.keys.to_pylist(),
                    columns.values.to_pylist(),
                    columns.timestamps.tolist(),
                    [()] * len(columns) if columns.headers is None else headers_of(columns.headers),
                    strict=True,
                )
                for row in rows:
                    self.tables.update(Raw(place.topic, place.partition, *row))
        self._positions[place] = end


def _offsets(cluster: Cluster, places: list[TopicPartition], moment: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for place, outcome in list_offsets(cluster, dict.fromkeys(places, moment), isolation=READ_COMMITTED).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[place] = outcome.offset
    return found


_replicas: dict[tuple[str, tuple[str, ...]], Replica] = {}
"""Of this worker process, which lives on from batch to batch."""


def replica_of(graph: Graph, config: Mapping[str, Any], application_id: str) -> Replica:
    """Up to date."""
    name = (f"{application_id}@{config['bootstrap.servers']}", tuple(graph.global_tables))
    replica = _replicas.get(name)
    if replica is None:
        replica = _replicas[name] = Replica(graph, config)
    replica.refresh()
    return replica
