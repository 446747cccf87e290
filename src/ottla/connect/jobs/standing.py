"""Where a source stands: read from the offsets topic when it starts, and moved on with each commit. The topic is the
truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ottla.client.blocking.cluster import Cluster
from ottla.connect.config_records import Unreadable
from ottla.connect.jobs.source_task import partition_text
from ottla.connect.offsets import Offsets, decode, key_of
from ottla.connect.spi import Offset, Partition
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.decided import decided_records


class Stand(NamedTuple):
    key: bytes
    offset: dict[str, Any]


class Stands(NamedTuple):
    """At one moment."""

    name: str
    found: dict[str, Stand]
    """By the partition's text."""
    full: bool = False
    """The last batch left something behind."""

    def start(self, partition: Partition) -> Offset | None:
        found = self.found.get(partition_text(partition))
        return None if found is None else found.offset

    def key(self, partition: Partition) -> bytes:
        found = self.found.get(partition_text(partition))
        return key_of(self.name, partition) if found is None else found.key

    def moved(self, ends: Iterable[tuple[Partition, Offset | None]], *, full: bool) -> Stands:
        found = dict(self.found)
        for partition, end in ends:
            if end is not None:
                found[partition_text(partition)] = Stand(self.key(partition), dict(end))
        return Stands(self.name, found, full)


def read_positions(cluster: Cluster, topic: str, connector: str) -> Stands:
    """As committed. All transactions of the connector must be decided."""
    prefix = msgspec.json.encode([connector])[:-1]
    found = Offsets()
    for number in cluster.partitions(topic, auto_create=False):
        place = TopicPartition(topic, number)
        for record in decided_records(cluster, place, lambda key: key is not None and key.startswith(prefix)):
            try:
                found.replay(decode(record.key, record.value))
            except Unreadable:
                continue  # Java passes over it as well
    stands = {
        partition_text(each.partition): Stand(each.key, dict(each.offset))
        for each in found.of(connector)
        if each.offset is not None
    }
    return Stands(connector, stands)
