"""The newest row of each key of tables that were asked for: followed by wire, from when somebody asks first."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.client.errors import ClientError
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record

logger = logging.getLogger(__name__)

MOST_ROWS: Final = 5_000_000
"""Of one table: what is larger belongs into a store of its own."""
_AGAIN_S: Final = 0.5


class TooManyRows(Exception):
    """A table that this process has no room for."""


async def spans(
    cluster: Cluster, topics: Iterable[str], *, from_beginning: bool, to_end: bool
) -> dict[TopicPartition, tuple[int, int | None]]:
    """From where to where topics are read. Raises ClientError."""
    places = [TopicPartition(topic, number) for topic in topics for number in await cluster.partitions(topic)]
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    if from_beginning:
        starts = await list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    else:
        starts = ends
    return {place: (offset_of(starts[place]), offset_of(ends[place]) if to_end else None) for place in places}


class View:
    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self.rows: dict[bytes, tuple[int, Record]] = {}
        """By key: partition and record."""
        self._positions: dict[TopicPartition, int] = {}
        self._moved = asyncio.Condition()
        self._failed: Exception | None = None
        self._task = asyncio.create_task(self._follow(), name=f"view of {topic}")

    async def _follow(self) -> None:
        while True:
            try:
                first = await spans(self._cluster, [self._topic], from_beginning=True, to_end=False)
                whole = {place: (self._positions.get(place, start), None) for place, (start, _) in first.items()}
                async with Reader(self._cluster, whole) as reader:
                    while reader.active:
                        for fetched in await reader.poll():
                            self._take(fetched.place.partition, fetched.records)
                        async with self._moved:
                            self._positions = reader.positions()
                            self._moved.notify_all()
            except TooManyRows as error:
                async with self._moved:
                    self._failed = error
                    self._moved.notify_all()
                return
            except ClientError as error:
                logger.warning("%s cannot be read: %s", self._topic, error)
                await asyncio.sleep(_AGAIN_S)

    def _take(self, partition: int, records: Iterable[Record]) -> None:
        for record in records:
            if record.key is None:
                continue
            if record.value is None:
                self.rows.pop(record.key, None)
                continue
            self.rows[record.key] = partition, record
            if len(self.rows) > MOST_ROWS:
                raise TooManyRows(f"{self._topic} has more than {MOST_ROWS:,} keys, which is too many to be asked here")

    async def caught_up(self) -> None:
        """Returns when all that is in the topic now is in the rows. Raises ClientError, TooManyRows."""
        ends = await spans(self._cluster, [self._topic], from_beginning=False, to_end=False)

        def done() -> bool:
            return self._failed is not None or all(
                self._positions.get(place, -1) >= end for place, (end, _) in ends.items()
            )

        async with self._moved:
            await self._moved.wait_for(done)
        if self._failed is not None:
            raise self._failed

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Views:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._views: dict[str, View] = {}

    async def of(self, topic: str) -> View:
        """Up to date. Raises ClientError, TooManyRows."""
        if topic not in self._views:
            self._views[topic] = View(self._cluster, topic)
        view = self._views[topic]
        await view.caught_up()
        return view

    async def forget(self, topic: str) -> None:
        view = self._views.pop(topic, None)
        if view is not None:
            await view.close()

    async def close(self) -> None:
        for topic in list(self._views):
            await self.forget(topic)
