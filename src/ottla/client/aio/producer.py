"""A producer on the loop: what is sent while a write is under way goes out with the next one."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.producing import ALL, Delivered, Producing
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Header, NewRecord


class Written(NamedTuple):
    place: TopicPartition
    offset: int
    """-1 where the broker did not say (acks=0)."""
    timestamp: int


class Producer:
    """`async with Producer(cluster) as producer: await producer.send(...)`."""

    __slots__ = (
        "_cluster",
        "_core",
        "_failure",
        "_idle",
        "_open",
        "_promised",
        "_room",
        "_under_way",
        "_wanted",
        "_writer",
    )

    def __init__(self, cluster: Cluster, *, acks: int = ALL, codec: int = 0, idempotent: bool = True) -> None:
        self._cluster = cluster
        self._core = Producing(acks=acks, codec=codec, idempotent=idempotent, on_delivery=self._delivered)
        self._promised: dict[TopicPartition, deque[asyncio.Future[Written]]] = {}
        """Of each record that was taken, in order."""
        self._under_way: dict[TopicPartition, int] = {}
        """How many of them are being written now."""
        self._failure: ClientError | None = None
        self._wanted = asyncio.Event()
        self._room = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer: asyncio.Task[None] | None = None
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        self._writer = asyncio.create_task(self._write())
        self._writer.add_done_callback(self._ended)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Everything that was taken is written first, unless an exception is why it ends."""
        try:
            if kind is None:
                await self.flush()
        finally:
            if self._writer is not None:
                self._writer.cancel()
                (end,) = await asyncio.gather(self._writer, return_exceptions=True)
                if isinstance(end, Exception):
                    raise end  # what no writer can know of: a value that is not bytes, a defect

    def _ended(self, writer: asyncio.Task[None]) -> None:
        """Whatever ended it, nobody waits for a writer that is no more."""
        self._open = False
        left = {place: len(promised) for place, promised in self._promised.items()}
        self._break(left, ClientError("the producer was closed before it was written"))
        self._room.set()
        self._idle.set()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Written:
        """Returns when it is acknowledged. Raises ClientError."""
        promised = await self.post(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        return await promised

    async def post(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> asyncio.Future[Written]:
        """Returns when it is taken, which may have to wait for room. Await what it gives for the acknowledgement, or
        `flush` for those of all."""
        core = self._core
        if not core.known(topic):
            await self._cluster.run(core.learn(self._cluster.routing, topic))
        place = core.place_of(topic, key, partition)
        stamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        record = NewRecord(key, value, stamp, tuple(headers))
        while self._open and not core.has_room_for(place, record):
            self._room.clear()
            await self._room.wait()
        if not self._open:
            raise ClientError("the producer is not open")
        core.add(place, record)
        promised: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._promised.setdefault(place, deque()).append(promised)
        self._idle.clear()
        self._wanted.set()
        return promised

    async def flush(self) -> None:
        """Returns when all that was taken is written. Raises the first failure since the last time."""
        await self._idle.wait()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # Writing.

    async def _write(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._write_gathered()
            if not self._wanted.is_set():
                self._idle.set()

    async def _write_gathered(self) -> None:
        try:
            await self._announce(self._core.gathered())
        except ClientError as error:
            self._under_way = self._core.gathered()
            self._core.discard()
            self._room.set()
            self._break(self._under_way, error)
            return
        self._under_way = self._core.gathered()
        self._room.set()
        try:
            failures = await self._cluster.run(self._core.flush(self._cluster.routing))
        except ClientError as error:
            self._break(self._under_way, error)
            return
        for place, failure in failures.items():
            self._break({place: self._under_way[place]}, failure)

    async def _announce(self, places: Iterable[TopicPartition]) -> None:
        """Before they are written to: who writes in a transaction may have to say so first."""

    def _delivered(self, delivered: Delivered) -> None:
        promised = self._promised[delivered.place]
        for index, record in enumerate(delivered.records):
            self._under_way[delivered.place] -= 1
            future = promised.popleft()
            if not future.done():
                stamp = delivered.timestamp_of(record)
                future.set_result(Written(delivered.place, delivered.offset_at(index), stamp))

    def _break(self, counts: Mapping[TopicPartition, int], error: ClientError) -> None:
        """The oldest of what was promised, so many of each partition, are told that it failed."""
        for place, count in counts.items():
            for _ in range(count):
                future = self._promised[place].popleft()
                self._failure = self._failure or error
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # `flush` tells it as well: nobody has to await each
