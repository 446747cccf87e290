"""The newest row of each key of tables that were asked for: followed by wire, from when somebody asks first."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.client.errors import ClientError
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record
from ottla.sql.model import DataSource
from ottla.sql.server.merging import Placed

logger = logging.getLogger(__name__)

_AGAIN_S: Final = 0.5
_LOOK_EVERY_S: Final = 5.0
"""Between two looks at how many partitions a topic has."""

_WINDOW_BYTES: Final = 8
_SESSION_BYTES: Final = 16
"""Of a window behind its key in a topic: its start, or its end and start."""
_OVERHEAD_BYTES: Final = 400
"""Of a row in memory besides its key and value."""


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """Of one table, and of all together."""

    rows: int = 5_000_000
    bytes: int = 1 << 30
    total_bytes: int = 2 << 30


class TooManyRows(Exception):
    """A table that this process has no room for."""


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + _OVERHEAD_BYTES


Spans = dict[TopicPartition, tuple[int, int | None]]


async def spans(cluster: Cluster, topics: Iterable[str], *, from_beginning: bool, to_end: bool) -> Spans:
    """From where to where topics are read. Raises ClientError."""
    places = [TopicPartition(topic, number) for topic in topics for number in await cluster.partitions(topic)]
    if not places:
        return {}
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    if from_beginning:
        starts = await list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    else:
        starts = ends
    return {place: (offset_of(starts[place]), offset_of(ends[place]) if to_end else None) for place in places}


class View:
    def __init__(
        self, cluster: Cluster, topic: str, window_bytes: int, limits: ViewLimits, grown: "Callable[[View], None]"
    ) -> None:
        """`window_bytes`: how many bytes of a window stand behind each key. `grown` is told that there are more rows,
        and raises TooManyRows if that are too many."""
        self._cluster = cluster
        self._topic = topic
        self._window_bytes = window_bytes
        self._limits = limits
        self._rows: dict[bytes, Placed] = {}
        self._windows: dict[bytes, dict[bytes, None]] = {}
        """Of a key: all its keys with windows."""
        self.bytes = 0
        self.waiting = 0
        """Queries that wait for it to be up to date."""
        self._grown = grown
        self._positions: dict[TopicPartition, int] = {}
        self._places: list[TopicPartition] = []
        self._look_at = 0.0
        """When its partitions are asked for again."""
        self._looking = asyncio.Lock()
        self._moved = asyncio.Condition()
        self._failed: Exception | None = None
        self._task = asyncio.create_task(self._follow(), name=f"view of {topic}")

    def all(self) -> list[Placed]:
        return list(self._rows.values())

    def of_keys(self, keys: Iterable[bytes]) -> list[Placed]:
        if self._window_bytes:
            keys = [each for key in keys for each in self._windows.get(key, ())]
        return [self._rows[key] for key in keys if key in self._rows]

    async def _follow(self) -> None:
        try:
            await self._followed()
        except Exception as error:
            if not isinstance(error, TooManyRows):
                logger.exception("%s cannot be read any more", self._topic)
            self._failed = error
            self._forget_all()
        finally:
            if self._failed is not None:  # whoever waits is told, wherever it was ended; not when the server ends
                async with self._moved:
                    self._moved.notify_all()

    async def _followed(self) -> None:
        """Raises TooManyRows."""
        while True:
            try:
                first = await spans(self._cluster, [self._topic], from_beginning=True, to_end=False)
                whole = {place: (self._positions.get(place, start), None) for place, (start, _) in first.items()}
                async with Reader(self._cluster, whole) as reader:
                    while reader.active:
                        for fetched in await reader.poll():
                            self._take(fetched.place, fetched.records)
                        async with self._moved:
                            self._positions = reader.positions()
                            self._moved.notify_all()
            except ClientError as error:
                logger.warning("%s cannot be read: %s", self._topic, error)
                await asyncio.sleep(_AGAIN_S)

    def _take(self, place: TopicPartition, records: Iterable[Record]) -> None:
        for record in records:
            key = record.key
            if key is None:
                continue
            before = self._rows.pop(key, None)
            if before is not None:
                self.bytes -= _size(before.record)
            if record.value is None:
                self._forget_window(key)
                continue
            self._rows[key] = Placed(place, record)
            self.bytes += _size(record)
            if self._window_bytes and before is None:
                self._windows.setdefault(key[: -self._window_bytes], {})[key] = None
        if len(self._rows) > self._limits.rows or self.bytes > self._limits.bytes:
            told = f"{len(self._rows):,} keys and {self.bytes >> 20:,} MiB"
            raise TooManyRows(
                f"{self._topic} has more than is kept here for pull queries ({told}; sql.view.max.rows, "
                "sql.view.max.bytes): ask with EMIT CHANGES, or make a smaller table of it"
            )
        self._grown(self)

    def _forget_all(self) -> None:
        self._rows, self._windows, self.bytes = {}, {}, 0

    def _forget_window(self, key: bytes) -> None:
        if self._window_bytes and (others := self._windows.get(key[: -self._window_bytes])) is not None:
            others.pop(key, None)
            if not others:
                del self._windows[key[: -self._window_bytes]]

    async def caught_up(self) -> None:
        """Returns when all that is in the topic now is in the rows. Raises ClientError, TooManyRows, and whatever else
        ended its reading."""
        await self._look_for_partitions()
        found = await list_offsets(self._cluster, dict.fromkeys(self._places, LATEST), isolation=READ_COMMITTED)
        ends = {place: offset_of(outcome) for place, outcome in found.items()}

        def done() -> bool:
            return self._failed is not None or all(self._positions.get(place, -1) >= end for place, end in ends.items())

        if not done():
            async with self._moved:
                await self._moved.wait_for(done)
        if self._failed is not None:
            raise self._failed

    async def _look_for_partitions(self) -> None:
        """A topic may get more of them. Not asked for each query: that would be half of what one by key costs."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._look_at:
            return
        async with self._looking:
            if loop.time() < self._look_at:  # another one did, meanwhile
                return
            numbers = await self._cluster.partitions(self._topic)
            places = [TopicPartition(self._topic, number) for number in numbers]
            if self._places and places != self._places:
                await self.close()
                if self._failed is not None:
                    return  # ended meanwhile, for good
                self._task = loop.create_task(self._follow(), name=self._task.get_name())
            self._places, self._look_at = places, loop.time() + _LOOK_EVERY_S

    def end(self, why: str) -> "asyncio.Task[None]":
        """Its rows are no more. Gives what is over when nobody waits for it any more."""
        self._failed = TooManyRows(why)
        self._forget_all()
        self._task.cancel()
        return self._task

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Views:
    def __init__(self, cluster: Cluster, limits: ViewLimits) -> None:
        self._cluster = cluster
        self._limits = limits
        self._views: OrderedDict[str, View] = OrderedDict()
        """That which was asked for last is the last."""
        self._ending: set[asyncio.Task[None]] = set()

    async def of(self, source: DataSource) -> View:
        """Up to date. Raises ClientError, TooManyRows."""
        topic = source.topic
        if topic not in self._views:
            width = 0 if source.window is None else _SESSION_BYTES if source.window.size_ms is None else _WINDOW_BYTES
            self._views[topic] = View(self._cluster, topic, width, self._limits, self._make_room)
        self._views.move_to_end(topic)
        view = self._views[topic]
        view.waiting += 1
        try:
            await view.caught_up()
        except ClientError:
            raise
        except Exception:
            if self._views.get(topic) is view:
                await self.forget(topic)  # the next query begins anew
            raise
        finally:
            view.waiting -= 1
        return view

    def _make_room(self, grown: View) -> None:
        """Those that nobody has asked for for longest go first. Raises TooManyRows."""
        total, most = self.bytes, self._limits.total_bytes
        for topic, view in list(self._views.items()):
            if total <= most:
                return
            if view is not grown and not view.waiting:
                total -= view.bytes
                self.drop(topic)
        if total > most:
            raise TooManyRows(
                f"the tables that are asked for have more than is kept here for pull queries together "
                f"({total >> 20:,} MiB; sql.views.max.bytes): ask again later, or with EMIT CHANGES"
            )

    @property
    def topics(self) -> list[str]:
        """That which was asked for last is the last."""
        return list(self._views)

    @property
    def bytes(self) -> int:
        """Of all rows that are kept."""
        return sum(each.bytes for each in self._views.values())

    def drop(self, topic: str) -> None:
        """At once; what it still has to do is done beside."""
        view = self._views.pop(topic, None)
        if view is not None:
            ending = view.end(f"the rows of {topic} are not kept any more: ask again")
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def forget(self, topic: str) -> None:
        view = self._views.pop(topic, None)
        if view is not None:
            await view.close()

    async def close(self) -> None:
        for topic in list(self._views):
            await self.forget(topic)
        await asyncio.gather(*self._ending, return_exceptions=True)
