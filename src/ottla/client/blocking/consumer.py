"""An assigning consumer, blocking: waits in one poll for whichever leader has something to say."""

from __future__ import annotations

import select
from collections.abc import Mapping

from ottla.client.blocking.cluster import Cluster, Sent
from ottla.client.errors import ClientError, ConnectionLost
from ottla.client.fetching import MAX_WAIT_MS, Fetched, Fetching
from ottla.client.offsets import READ_UNCOMMITTED
from ottla.model.ids import TopicPartition
from ottla.protocol.codec import Message


class Consumer:
    """`poll` until `active` is False, or for ever. Records of a partition come in order."""

    __slots__ = ("_cluster", "_core", "_sent")

    def __init__(
        self,
        cluster: Cluster,
        spans: Mapping[TopicPartition, tuple[int, int | None]],
        *,
        isolation: int = READ_UNCOMMITTED,
        max_wait_ms: int = MAX_WAIT_MS,
    ) -> None:
        """`spans`: from which offset, and up to but without which (None: follow)."""
        self._cluster = cluster
        self._core = Fetching(spans, isolation=isolation, max_wait_ms=max_wait_ms)
        self._sent: dict[int, Sent] = {}

    @property
    def active(self) -> bool:
        return self._core.active

    @property
    def skipped(self) -> dict[TopicPartition, tuple[int, int]]:
        """Offsets that were gone (retention, DeleteRecords) before they could be read."""
        return self._core.skipped

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to fetch of each partition: behind what `poll` gave, markers of transactions included."""
        return self._core.positions()

    def poll(self, timeout_s: float) -> list[Fetched]:
        """What has arrived, waiting at most that long for something. Raises KafkaError, TimedOut."""
        if kept := self._core.taken():
            return kept
        self._ask()
        for leader in self._ready(timeout_s):
            answer = self._receive(self._sent[leader])
            if answer is not None:
                self._heard(leader, answer)
        return self._core.taken()

    def _ask(self) -> None:
        routing = self._cluster.routing
        for leader, ask in self._cluster.run(self._core.asks(routing)).items():
            try:
                self._sent[leader] = self._cluster.send(ask, self._cluster.until_s())
            except ClientError as error:
                self._heard(leader, error)

    def _heard(self, leader: int, answer: Message | ClientError) -> None:
        self._sent.pop(leader, None)
        self._cluster.run(self._core.heard(self._cluster.routing, leader, answer))

    def _ready(self, timeout_s: float) -> list[int]:
        """Leaders whose answer is here, or whose socket has something to say."""
        # Another request on the same connection may have read the answer, or found the connection broken.
        at_once = [
            leader
            for leader, sent in self._sent.items()
            if sent.connection.closed or sent.connection.arrived(sent.correlation)
        ]
        if at_once or not self._sent:
            return at_once
        waiting = {sent.connection.fileno(): leader for leader, sent in self._sent.items()}
        poller = select.poll()
        for fd in waiting:
            poller.register(fd, select.POLLIN)
        return [waiting[fd] for fd, _ in poller.poll(timeout_s * 1000)]

    def _receive(self, sent: Sent) -> Message | ClientError | None:
        """None: it is not all here yet."""
        connection = sent.connection
        if connection.closed:
            return ConnectionLost(str(connection.address), "it broke while a fetch was waiting")
        try:
            if not connection.arrived(sent.correlation):
                connection.pump(self._cluster.until_s())
            if not connection.arrived(sent.correlation):
                return None
            return self._cluster.receive(sent, self._cluster.until_s())
        except ClientError as error:
            if connection.closed:
                self._cluster.abandon(sent)
            return error
