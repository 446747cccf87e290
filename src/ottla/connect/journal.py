"""The three topics of a cluster of workers: made when missing, followed, and written.

`Follower` reads a whole topic into whatever replays it and goes on reading. `Writer` writes `connect-configs` as the
one who may: it takes the identity of the transactional id that Java's leaders have too, `connect-cluster-<group.id>`:
a leader that was superseded is refused by the topic itself, whichever of the two it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.reader import Reader
from ottla.client.appending import append
from ottla.client.errors import ClientError, KafkaError
from ottla.client.offsets import LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.client.producing import Identity
from ottla.client.transacting import FENCING, Transacting
from ottla.connect import offsets
from ottla.connect.config_records import Unreadable
from ottla.connect.failures import WrongTopic
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol.records import NewRecord
from ottla.protocol.records import Record as LogRecord

logger = logging.getLogger(__name__)

_TOPIC: Final = 2
_TOO_LARGE: Final = (Errors.MESSAGE_TOO_LARGE, Errors.RECORD_LIST_TOO_LARGE)
_AGAIN_S: Final = 0.5
_AT_ONCE: Final = 500
"""Records that are replayed before others have their turn."""
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_READING_S: Final = 30.0


class TooLarge(Exception):
    """The topic does not take records of this size: nothing was written."""


class Superseded(Exception):
    """Another worker leads by now: nothing was written."""


async def prepare(
    cluster: Cluster, topic: str, partitions: int, replication_factor: int, setting: str, *, one: bool = False
) -> int:
    """Makes the topic if it is missing; gives the number of its partitions. Raises WrongTopic, KafkaError."""
    response = await cluster.metadata([topic])
    (found,) = response.topics
    if found.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
        copies = -1 if replication_factor < 0 else max(min(replication_factor, len(response.brokers)), 1)
        new = admin.NewTopic(topic, partitions, copies, configs={"cleanup.policy": "compact"})
        outcome = (await admin.create_topics(cluster, [new]))[topic]
        if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
            raise outcome
        if isinstance(outcome, admin.CreatedTopic) and outcome.partitions > 0:
            return outcome.partitions
        (found,) = (await cluster.metadata([topic])).topics
    count = max(len(found.partitions), 1)
    if one and count > 1:
        raise WrongTopic(
            f"Topic '{topic}' supplied via the '{setting}' property is required to have a single partition in order to "
            f"guarantee consistency of connector configurations, but found {count} partitions."
        )
    await _check_policy(cluster, topic, setting)
    return count


async def _check_policy(cluster: Cluster, topic: str, setting: str) -> None:
    found = (await admin.describe_configs(cluster, _TOPIC, [topic]))[topic]
    if isinstance(found, KafkaError):
        raise found
    policy = next((entry.value or "" for entry in found if entry.name == "cleanup.policy"), "")
    if policy != "compact":
        raise WrongTopic(
            f"Topic '{topic}' supplied via the '{setting}' property is required to have 'cleanup.policy=compact' to "
            f"guarantee consistency and durability, but found the topic currently has 'cleanup.policy={policy}': "
            f"ottla configs --alter --entity-type topics --entity-name {topic} --add-config cleanup.policy=compact"
        )


Replay = Callable[[LogRecord], None]
"""Never raises: what cannot be read it says and passes over."""


class Follower:
    """`run` reads for ever; `heard` is called after each round that brought something."""

    __slots__ = ("_changed", "_cluster", "_heard", "_replay", "positions", "topic", "trouble")

    def __init__(
        self, cluster: Cluster, topic: str, partitions: int, replay: Replay, heard: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._replay = replay
        self._heard = heard
        self._changed = asyncio.Condition()
        self.topic = topic
        self.positions = {TopicPartition(topic, index): 0 for index in range(partitions)}
        self.trouble: str | None = None
        """Why the topic cannot be read now."""

    async def run(self) -> None:
        """Ends when it is cancelled: a cluster that is away, or refuses, is asked again."""
        while True:
            try:
                await self._follow()
            except ClientError as error:
                if self.trouble != str(error):
                    logger.warning("%s cannot be read, and what is known may be old: %s", self.topic, error)
                self.trouble = str(error)
                await asyncio.sleep(_AGAIN_S)

    async def _follow(self) -> None:
        spans = {place: (position, None) for place, position in self.positions.items()}
        async with Reader(self._cluster, spans, isolation=READ_COMMITTED) as reader:
            while reader.active:
                for fetched in await reader.poll():
                    self.trouble = None
                    await self._replay_all(fetched.records)
                self.positions.update(reader.positions())
                self._heard()
                async with self._changed:
                    self._changed.notify_all()

    async def _replay_all(self, records: Iterable[LogRecord]) -> None:
        for number, record in enumerate(records, 1):
            self._replay(record)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def reached(self, positions: Mapping[TopicPartition, int]) -> None:
        """Returns when all before these offsets has been replayed."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: all(self.positions[place] >= position for place, position in positions.items())
            )

    async def caught_up(self) -> None:
        """Returns when all that is in the topic now has been replayed. Raises ClientError."""
        ends = await list_offsets(self._cluster, dict.fromkeys(self.positions, LATEST), isolation=READ_COMMITTED)
        await self.reached({place: offset_of(end) for place, end in ends.items()})


async def read_offsets(cluster: Cluster, topic: str) -> offsets.Offsets:
    """What a topic of offsets says now; nothing where there is no such topic. Raises ClientError."""
    (described,) = (await cluster.metadata([topic])).topics
    found = offsets.Offsets()
    places = [TopicPartition(topic, each.partition_index) for each in described.partitions]
    if described.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION or not places:
        return found
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    spans = {place: (0, offset_of(end)) for place, end in ends.items()}
    async with Reader(cluster, spans, isolation=READ_COMMITTED, timeout_s=_READING_S) as reader:
        async for fetched in reader:
            for record in fetched.records:
                with suppress(Unreadable):  # Java passes over it as well
                    found.replay(offsets.decode(record.key, record.value))
    return found


class Writer:
    """An identity, from when it was taken until somebody else takes it."""

    __slots__ = ("_cluster", "_identity", "_place", "_sequence", "_transactional_id", "taken")

    def __init__(self, cluster: Cluster, topic: str, group_id: str) -> None:
        self._cluster = cluster
        self._place = TopicPartition(topic, 0)
        self._transactional_id = f"connect-cluster-{group_id}"
        self._identity = Identity()
        self._sequence = 0
        self.taken = False

    async def take(self) -> None:
        """From now on others are refused. Raises ClientError."""
        transacting = Transacting(self._transactional_id, _TRANSACTION_TIMEOUT_MS)
        await self._cluster.run(transacting.initialise(self._cluster.routing))
        self._identity, self._sequence, self.taken = transacting.identity, 0, True

    async def write(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        """All of them in one batch, whole or not at all; gives the offset behind them. Raises Superseded, TooLarge, and
        ClientError when nobody knows what became of them."""
        now_ms = time.time_ns() // 1_000_000
        new = [NewRecord(key, value, now_ms, ()) for key, value in records]
        try:
            delivered = await append(self._cluster, self._place, new, self._identity, self._sequence)
        except KafkaError as error:
            self.taken = False
            if error.error in FENCING:
                raise Superseded(str(error)) from error
            if error.error in _TOO_LARGE:
                raise TooLarge(str(error)) from error
            raise
        except ClientError:
            self.taken = False
            raise
        self._sequence += len(new)
        return delivered.base_offset + len(new)

    @property
    def place(self) -> TopicPartition:
        return self._place
