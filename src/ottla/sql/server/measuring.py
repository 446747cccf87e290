"""What DESCRIBE ... EXTENDED tells besides: the topic as it is, how far queries have come, and what they left out."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.client import groups
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.offsets import EARLIEST, LATEST, list_offsets, offset_of
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.sql.catalog import Catalog
from ottla.sql.model import DataSource
from ottla.sql.server.entities import Entity

_TOTALS: Final = ("read", "written", "dropped")
Progress = Callable[[str], Mapping[str, Any]]
"""Of a persistent query, by its id, as its application tells; nothing of one that does not run. It may block."""


def application_id(service_id: str, query_id: str) -> str:
    """Of the streams application that a query becomes: its group, and the name of its topics."""
    return f"_ottla-sql-{service_id}-query_{query_id}"


class Measuring:
    def __init__(self, cluster: Cluster, service_id: str, progress: Progress) -> None:
        self._cluster = cluster
        self._service_id = service_id
        self._progress = progress

    async def source(self, source: DataSource, catalog: Catalog) -> Entity:
        """Raises ClientError."""
        queries = [*catalog.writers(source.name), *catalog.readers(source.name)]
        told = {each: await asyncio.to_thread(self._progress, each) for each in queries}
        (topic,) = (await self._cluster.metadata([source.topic])).topics
        read = [(each, catalog.queries[each].query.reads()) for each in catalog.writers(source.name)]
        return {
            "partitions": len(topic.partitions),
            "replication": len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
            "statistics": _lines(statistics(each) for each in _by_query(told)),
            "errorStats": _lines(left_out(each) for each in _by_query(told)),
            "queryOffsetSummaries": [
                await self._summary(query, sorted({each.topic for each in sources})) for query, sources in read
            ],
        }

    async def _summary(self, query_id: str, topics: list[str]) -> Entity:
        group = application_id(self._service_id, query_id)
        found = (await self._cluster.metadata(topics)).topics
        places = {
            each.name or "": [TopicPartition(each.name or "", n) for n in range(len(each.partitions))] for each in found
        }
        every = [place for those in places.values() for place in those]
        starts = await list_offsets(self._cluster, dict.fromkeys(every, EARLIEST))
        ends = await list_offsets(self._cluster, dict.fromkeys(every, LATEST))
        try:
            committed = await groups.committed(self._cluster, group)
        except KafkaError as error:
            if error.error != Errors.GROUP_ID_NOT_FOUND:
                raise
            committed = {}

        def row(place: TopicPartition) -> Entity:
            return {
                "partition": place.partition,
                "logStartOffset": offset_of(starts[place]),
                "logEndOffset": offset_of(ends[place]),
                "consumerOffset": committed[place].offset if place in committed else 0,
            }

        summaries = [{"kafkaTopic": topic, "offsets": list(map(row, those))} for topic, those in places.items()]
        return {"groupId": group, "topicSummaries": summaries}


def _by_query(told: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    return [(query_id, list(found.get("queries", ()))) for query_id, found in told.items() if found]


def statistics(told: tuple[str, list[Mapping[str, Any]]]) -> str:
    query_id, parts = told
    totals = [f"{name}: {sum(int(each.get(name) or 0) for each in parts)}" for name in _TOTALS]
    rate = sum(float(each.get("processed-rows-per-second") or 0) for each in parts)
    lag = sum(int(each.get("lag") or 0) for each in parts)
    return f"{query_id}: {', '.join(totals)}, records-per-second: {rate:.1f}, lag: {lag}"


def left_out(told: tuple[str, list[Mapping[str, Any]]]) -> str:
    """By reason; nothing if nothing was."""
    query_id, parts = told
    counts: dict[str, int] = {}
    for each in parts:
        for reason, number in (each.get("dropped-by-reason") or {}).items():
            counts[reason] = counts.get(reason, 0) + int(number)
    found = ", ".join(f"{reason}: {number}" for reason, number in sorted(counts.items()) if number)
    return f"{query_id}: {found}" if found else ""


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))
