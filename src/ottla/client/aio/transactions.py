"""A producer whose records, and a group's offsets, become visible together or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Self

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.errors import ClientError, KafkaError
from ottla.client.transacting import FENCING, Transacting
from ottla.model.ids import TopicPartition

TRANSACTION_TIMEOUT_MS: Final = 60_000


class TransactionalProducer(Producer):
    """`async with producer.transaction(): await producer.send(...)`, one at a time. Raises `Fenced` for good when a
    successor has taken the name over."""

    __slots__ = ("_announced", "_begun", "_decided", "_failed", "_transacting")

    def __init__(
        self, cluster: Cluster, transactional_id: str, *, timeout_ms: int = TRANSACTION_TIMEOUT_MS, codec: int = 0
    ) -> None:
        super().__init__(cluster, codec=codec)
        self._transacting = Transacting(transactional_id, timeout_ms)
        self._announced: set[TopicPartition] = set()
        self._begun = False
        """Something belongs to the transaction that is open: an empty one has no end."""
        self._failed = False
        """Something of the transaction that is open could not be written."""
        self._decided = False
        """How the last transaction ended is known: otherwise the name is taken anew before the next."""

    async def __aenter__(self) -> Self:
        await self._initialise()
        return await super().__aenter__()

    async def _initialise(self) -> None:
        await self._cluster.run(self._transacting.initialise(self._cluster.routing))
        self._decided = True

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Committed at the end, aborted by an exception."""
        if not self._decided:
            await self._initialise()
        self._core.begin(self._transacting.transactional)
        self._announced.clear()
        self._begun = self._failed = False
        self._decided = False
        try:
            yield
            await self.flush()
        except BaseException:
            await self._abort()
            raise
        if self._begun:
            await self._cluster.run(self._transacting.commit(self._cluster.routing))
        self._decided = True

    async def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """The group's offsets become these with the commit."""
        self._begun = True
        await self._cluster.run(self._transacting.commit_offsets(self._cluster.routing, group, offsets))

    async def flush(self) -> None:
        try:
            await super().flush()
        except KafkaError as error:
            if error.error in FENCING:
                raise await self._cluster.run(self._transacting.refused(self._cluster.routing)) from error
            raise

    async def _abort(self) -> None:
        await self._idle.wait()
        self._failure = None
        aborted = not self._begun or await self._cluster.run(self._transacting.abort(self._cluster.routing))
        # Of a batch that failed nobody knows whether its sequence number is used up.
        self._decided = aborted and not self._failed

    def _break(self, counts: Mapping[TopicPartition, int], error: ClientError) -> None:
        self._failed = True
        super()._break(counts, error)

    async def _announce(self, places: Iterable[TopicPartition]) -> None:
        self._begun = True
        new = [place for place in places if place not in self._announced]
        await self._cluster.run(self._transacting.add_partitions(self._cluster.routing, new))
        self._announced.update(new)
