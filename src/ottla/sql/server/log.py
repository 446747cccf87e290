"""The log of statements: a topic of one partition."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.producer import Producer
from ottla.client.aio.reader import Reader
from ottla.client.errors import ClientError, KafkaError
from ottla.client.offsets import LATEST, list_offsets, offset_of
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition

logger = logging.getLogger(__name__)

_AGAIN_S: Final = 0.5
_KEPT: Final[Mapping[str, str]] = {"retention.ms": "-1", "cleanup.policy": "delete"}


@dataclass(frozen=True, slots=True)
class Logged:
    """A statement as it stands in the log."""

    text: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        return json.dumps({"version": 1, "statement": self.text, "properties": dict(self.properties)}).encode()

    @staticmethod
    def decoded(data: bytes) -> "Logged":
        """Raises ValueError."""
        found = json.loads(data)
        if not isinstance(found, dict) or not isinstance(found.get("statement"), str):
            raise ValueError("no statement")
        properties = found.get("properties")
        return Logged(found["statement"], properties if isinstance(properties, dict) else {})


class StatementLog:
    """`replay` is called with each statement and its offset, in order, and waited for."""

    def __init__(
        self, cluster: Cluster, producer: Producer, topic: str, replay: Callable[[int, Logged], Awaitable[None]]
    ) -> None:
        self._cluster = cluster
        self._producer = producer
        self._place = TopicPartition(topic, 0)
        self._replay = replay
        self._reached = asyncio.Condition()
        self.position = 0
        """The next offset to be replayed."""
        self.trouble: str | None = None
        self._failed: Exception | None = None
        """What ended its reading."""

    @property
    def topic(self) -> str:
        return self._place.topic

    async def prepare(self, replication_factor: int) -> None:
        """Raises ClientError."""
        response = await self._cluster.metadata([self.topic])
        (found,) = response.topics
        if found.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
            factor = max(min(replication_factor, len(response.brokers)), 1)
            new = admin.NewTopic(self.topic, 1, factor, configs=dict(_KEPT))
            outcome = (await admin.create_topics(self._cluster, [new]))[self.topic]
            if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
                raise outcome

    async def follow(self) -> None:
        """Until it is cancelled, or a defect ends it: whoever waits is told."""
        try:
            await self._followed()
        except Exception as error:
            logger.exception("%s is not read any more: this server knows no statement from now on", self.topic)
            self.trouble, self._failed = str(error) or type(error).__name__, error
            async with self._reached:
                self._reached.notify_all()

    async def _followed(self) -> None:
        while True:
            try:
                async with Reader(self._cluster, {self._place: (self.position, None)}) as reader:
                    while reader.active:
                        for fetched in await reader.poll():
                            self.trouble = None
                            for record in fetched.records:
                                await self._one(record.offset, record.value)
                        await self._at(reader.positions()[self._place])
            except ClientError as error:
                self.trouble = str(error)
                logger.warning("%s cannot be read: %s", self.topic, error)
                await asyncio.sleep(_AGAIN_S)

    async def _one(self, offset: int, data: bytes | None) -> None:
        if data is None or offset < self.position:
            return
        try:
            logged = Logged.decoded(data)
        except (ValueError, RecursionError) as error:
            logger.error("%s at offset %d is no statement and is ignored: %s", self.topic, offset, error)
        else:
            await self._replay(offset, logged)
        await self._at(offset + 1)

    async def _at(self, position: int) -> None:
        if position > self.position:
            async with self._reached:
                self.position = position
                self._reached.notify_all()

    async def replayed(self, offset: int) -> None:
        """Raises what ended the reading."""
        async with self._reached:
            await self._reached.wait_for(lambda: self.position > offset or self._failed is not None)
        if self._failed is not None and self.position <= offset:
            raise self._failed

    async def caught_up(self) -> None:
        """Returns when all that is in the log now has been replayed. Raises ClientError."""
        end = offset_of((await list_offsets(self._cluster, {self._place: LATEST}))[self._place])
        await self.replayed(end - 1)

    async def append(self, name: str, logged: Logged) -> int:
        """At which offset it stands. Raises ClientError."""
        written = await self._producer.send(self.topic, logged.encoded(), key=name.encode(), partition=0)
        return written.offset


def as_text(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties of a request, as the log keeps them."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in properties.items()}
