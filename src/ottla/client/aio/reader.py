"""Assigned partitions, read on the loop: ranges, or followed for ever as an asynchronous iterator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping

from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.fetching import MAX_WAIT_MS, Fetched, Fetching
from ottla.client.offsets import READ_COMMITTED
from ottla.client.steps import REQUEST_TIMEOUT_S, Ask
from ottla.model.ids import TopicPartition
from ottla.protocol.codec import Message


class Reader:
    """`async with Reader(...) as reader: async for fetched in reader`. Records of a partition come in order."""

    __slots__ = ("_cluster", "_core", "_fetches", "_lane")

    def __init__(
        self,
        cluster: Cluster,
        spans: Mapping[TopicPartition, tuple[int, int | None]],
        *,
        isolation: int = READ_COMMITTED,
        max_wait_ms: int = MAX_WAIT_MS,
        timeout_s: float = math.inf,
    ) -> None:
        """`spans`: from which offset, and up to but without which (None: follow). A cluster that is away is waited
        for, as long as `timeout_s` without a single answer."""
        self._cluster = cluster
        self._core = Fetching(spans, isolation=isolation, max_wait_ms=max_wait_ms, timeout_s=timeout_s)
        self._lane = cluster.new_lane("reader")
        self._fetches: dict[int, asyncio.Task[Message | ClientError]] = {}

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        fetches, self._fetches = self._fetches, {}
        for fetch in fetches.values():
            fetch.cancel()
        await asyncio.gather(*fetches.values(), return_exceptions=True)
        await self._cluster.close_lane(self._lane)

    @property
    def active(self) -> bool:
        return self._core.active

    @property
    def skipped(self) -> dict[TopicPartition, tuple[int, int]]:
        """Offsets that were gone (retention, DeleteRecords) before they could be read."""
        return self._core.skipped

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to fetch of each partition: behind what was given, markers of transactions included."""
        return self._core.positions()

    def reached(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether everything below these offsets was given: with LATEST of `list_offsets`, that it has caught up."""
        positions = self.positions()
        return all(positions[place] >= end for place, end in ends.items())

    async def __aiter__(self) -> AsyncIterator[Fetched]:
        while self.active:
            for fetched in await self.poll():
                yield fetched

    async def poll(self, timeout_s: float | None = None) -> list[Fetched]:
        """What has arrived, waiting at most that long for something. Raises KafkaError, TimedOut."""
        if kept := self._core.taken():
            return kept
        routing = self._cluster.routing
        for leader, ask in (await self._cluster.run(self._core.asks(routing, self._lane))).items():
            self._fetches[leader] = asyncio.create_task(self._fetch(ask))
        if self._fetches:
            await asyncio.wait(self._fetches.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for leader in [leader for leader, fetch in self._fetches.items() if fetch.done()]:
            answer = self._fetches.pop(leader).result()
            await self._cluster.run(self._core.heard(routing, leader, answer))
        return self._core.taken()

    async def _fetch(self, ask: Ask) -> Message | ClientError:
        return await self._cluster.heard(ask, asyncio.get_running_loop().time() + REQUEST_TIMEOUT_S)
