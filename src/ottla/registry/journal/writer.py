"""Writes to `_schemas` as the one who may: see the theory of operation of this room."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ottla.client.aio.cluster import Cluster
from ottla.client.appending import append
from ottla.client.errors import KafkaError
from ottla.client.producing import Identity
from ottla.client.transacting import FENCING, Transacting
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol.records import NewRecord
from ottla.registry.journal.codec import encode
from ottla.registry.journal.reader import LEADER_HEADER, Leader
from ottla.registry.machine.records import Noop, Record

TRANSACTION_TIMEOUT_MS: Final = 60_000
"""Asked for with the identity; no transaction is ever begun."""
_TOO_LARGE: Final = (Errors.MESSAGE_TOO_LARGE, Errors.RECORD_LIST_TOO_LARGE)


class Superseded(Exception):
    """Another registry writes now: what was to be written was refused."""


class TooLarge(Exception):
    """The topic does not take records of this size: nothing was written."""


@dataclass(frozen=True, slots=True)
class Written:
    first_offset: int
    """-1 where the broker no longer knows it, because an answer got lost on the way."""
    timestamps: tuple[int, ...]


class Writer:
    """An identity, from when it was taken until somebody else takes it."""

    __slots__ = ("_cluster", "_identity", "_leader_header", "_place", "_sequence", "_url")

    def __init__(self, cluster: Cluster, place: TopicPartition, url: str) -> None:
        self._cluster = cluster
        self._place = place
        self._url = url
        self._identity = Identity()
        self._leader_header = b""
        self._sequence = 0

    async def take(self, transactional_id: str) -> Leader:
        """From now on nobody else's batches are taken, once this one has written its first. Raises ClientError."""
        transacting = Transacting(transactional_id, TRANSACTION_TIMEOUT_MS)
        await self._cluster.run(transacting.initialise(self._cluster.routing))
        self._identity = transacting.identity
        self._sequence = 0
        taken = Leader(self._url, self._identity.producer_id, self._identity.epoch)
        self._leader_header = msgspec.json.encode(taken)
        return taken

    async def write(self, records: Sequence[Record]) -> Written:
        """All of them, in one batch. Raises Superseded, TooLarge, and ClientError when nobody knows what became of
        them: then the identity has to be taken anew."""
        now_ms = time.time_ns() // 1_000_000
        new = [self._encoded(record, now_ms) for record in records]
        try:
            delivered = await append(self._cluster, self._place, new, self._identity, self._sequence)
        except KafkaError as error:
            if error.error in FENCING:
                raise Superseded(str(error)) from error
            if error.error in _TOO_LARGE:
                raise TooLarge(str(error)) from error
            raise
        self._sequence += len(new)
        return Written(delivered.base_offset, tuple(delivered.timestamp_of(record) for record in new))

    def header_of(self, record: Record) -> bytes | None:
        """A NOOP takes the place of the last one when the topic is compacted, so each says who leads."""
        return self._leader_header if isinstance(record, Noop) else None

    def _encoded(self, record: Record, now_ms: int) -> NewRecord:
        key, value = encode(record)
        header = self.header_of(record)
        return NewRecord(key, value, now_ms, () if header is None else ((LEADER_HEADER, header),))
