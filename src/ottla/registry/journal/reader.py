"""Follows `_schemas` into the machine, and tells how far it has come."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.client.errors import ClientError
from ottla.client.offsets import LATEST, READ_UNCOMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record as LogRecord
from ottla.registry.journal.codec import Unreadable, decode
from ottla.registry.journal.topic import WrongTopic
from ottla.registry.machine.machine import Machine
from ottla.registry.machine.records import Record

logger = logging.getLogger(__name__)

LEADER_HEADER: Final = "ottla-registry-leader"
_AT_ONCE: Final = 200
"""Records that are replayed before others have their turn."""
_AGAIN_S: Final = 0.5
_REST_S: Final = 0.05
_QUIET_S: Final = 5.0
"""So long nothing but trouble may come of the topic before that is told."""


class Leader(msgspec.Struct, frozen=True):
    """Who wrote a NOOP to say that it writes from now on."""

    url: str
    producer_id: int
    epoch: int


class _Waiter(NamedTuple):
    offset: int
    number: int
    reached: asyncio.Future[None]


class Follower:
    """`run` reads for ever. Whoever changes the machine, or looks at it from a thread, holds `turn`."""

    __slots__ = ("_check_topic", "_cluster", "_machine", "_numbers", "_topic_id", "_waiters", "_wanted", "leader",
                 "place", "position", "refused", "resting", "trouble", "turn")  # fmt: skip

    def __init__(
        self, cluster: Cluster, machine: Machine, topic: str, check_topic: Callable[[], Awaitable[None]]
    ) -> None:
        """`check_topic` raises WrongTopic, or ClientError, for a topic that cannot be lived in."""
        self._cluster = cluster
        self._machine = machine
        self._check_topic = check_topic
        self._topic_id = b""
        """Of what was read so far."""
        self.place = TopicPartition(topic, 0)
        self.turn = asyncio.Lock()
        self.position = 0
        """The next offset to be replayed."""
        self.leader: Leader | None = None
        """As the topic tells it so far."""
        self.refused: dict[int, str] = {}
        """By offset: why a record was ignored. The last one only."""
        self.trouble: str | None = None
        """Why the topic cannot be read now."""
        self.resting = False
        """Set by who writes; the topic is then read now and then, or when somebody waits for it."""
        self._wanted = asyncio.Event()
        self._waiters: list[_Waiter] = []
        self._numbers = 0

    async def run(self) -> None:
        """Ends when it is cancelled: a cluster that is away, or refuses, is asked again."""
        while True:
            try:
                if not self.is_current:
                    await self._begin_anew()
                await self._follow()
            except (ClientError, WrongTopic) as error:
                if self.trouble != str(error):  # else it has been said, and will go on for as long as it likes
                    logger.warning("%s cannot be read, and schemas may be old: %s", self.place.topic, error)
                self.trouble = str(error)
                await asyncio.sleep(_AGAIN_S)

    async def _follow(self) -> None:
        spans = {self.place: (self.position, None)}
        async with Reader(self._cluster, spans, isolation=READ_UNCOMMITTED, timeout_s=_QUIET_S) as reader:
            while reader.active:
                found = await reader.poll()
                if not self.is_current:
                    return  # some of it may be of another topic
                for fetched in found:
                    self.trouble = None
                    await self._replay_all(fetched.records)
                # Of a compacted topic the end may be gone: then there is no record that tells of it.
                if reader.positions()[self.place] > self.position:
                    await self._reach(reader.positions()[self.place])
                await self._rest()

    @property
    def is_current(self) -> bool:
        """Whether the topic of that name is the one that was read: made anew, it has another id."""
        if not self._topic_id:
            self._topic_id = self._known_id
        return self._topic_id == self._known_id

    @property
    def _known_id(self) -> bytes:
        """Empty as long as nobody told it, and for good where brokers are too old to give ids."""
        return self._cluster.routing.topic_ids.get(self.place.topic, b"")

    async def _begin_anew(self) -> None:
        """The topic is the truth: what was in the other one is gone, here as in every other registry."""
        await self._check_topic()
        async with self.turn:
            subjects = len(self._machine.state.subjects)
            logger.error(
                "the topic %s was deleted and made anew: the %d subjects of the old one are gone, the new one is read",
                self.place.topic,
                subjects,
            )
            self._machine.state.begin_anew()
            self._topic_id = self._known_id
            self.position, self.leader, self.refused, self.resting = 0, None, {}, False
            for waiter in self._waiters:
                if not waiter.reached.done():
                    waiter.reached.set_result(None)
            self._waiters.clear()

    async def _rest(self) -> None:
        """Who writes applies its records itself: to read each of them at once again would be for nothing."""
        if self.resting and not self._waiters:
            self._wanted.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_REST_S):
                    await self._wanted.wait()

    async def _replay_all(self, records: Iterable[LogRecord]) -> None:
        some: list[LogRecord] = []
        for record in records:
            some.append(record)
            if len(some) == _AT_ONCE:
                await self._replay_some(some)
                some.clear()
                await asyncio.sleep(0)
        if some:
            await self._replay_some(some)

    async def _replay_some(self, records: Iterable[LogRecord]) -> None:
        async with self.turn:
            for record in records:
                if record.offset >= self.position:
                    self._replay(record)
            self._tell()

    async def _reach(self, position: int) -> None:
        async with self.turn:
            self.position = max(self.position, position)
            self._tell()

    def _replay(self, record: LogRecord) -> None:
        try:
            found = decode(record.key, record.value)
        except Unreadable as error:
            logger.error("%s at offset %d is ignored: %s", self.place, record.offset, error)
            found = None
        if found is not None:
            self.apply(found, record.offset, record.timestamp, dict(record.headers).get(LEADER_HEADER))
        self.position = record.offset + 1

    def apply(self, record: Record, offset: int, timestamp: int, leader: bytes | None = None) -> None:
        """One record, by whoever holds the turn."""
        wrong = self._machine.replay(record, timestamp)
        if wrong is not None:
            logger.error("%s at offset %d is ignored: %s", self.place, offset, wrong)
            self.refused = {offset: wrong}
        if leader is not None:
            try:
                self.leader = msgspec.json.decode(leader, type=Leader)
            except msgspec.DecodeError as error:
                logger.error("%s at offset %d names no leader: %s", self.place, offset, error)
        self.position = offset + 1

    # How far.

    def _tell(self) -> None:
        while self._waiters and self._waiters[0].offset < self.position:
            waiter = heapq.heappop(self._waiters)
            if not waiter.reached.done():
                waiter.reached.set_result(None)

    def written(self) -> None:
        """Who has applied records itself lets those know who wait for them."""
        self._tell()

    async def replayed(self, offset: int) -> None:
        """Returns when the record at that offset has been replayed, or is known to be gone."""
        if offset < self.position:
            return
        self._numbers += 1
        waiter = _Waiter(offset, self._numbers, asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiters, waiter)
        self._wanted.set()
        await waiter.reached

    async def caught_up(self) -> None:
        """Returns when all that is in the topic now has been replayed. Raises ClientError."""
        end = offset_of((await list_offsets(self._cluster, {self.place: LATEST}))[self.place])
        await self.replayed(end - 1)
