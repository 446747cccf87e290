"""A simple batching producer, blocking: records gather per partition and go out together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ottla.client.blocking.cluster import Cluster
from ottla.client.producing import ALL, Delivered, Producing
from ottla.protocol.records import Header, NewRecord


class Producer:
    """`send` as often as needed, then `flush`. `on_delivery` hears of each acknowledged batch."""

    __slots__ = ("_cluster", "_core")

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ALL,
        codec: int = 0,
        idempotent: bool = True,
        on_delivery: Callable[[Delivered], None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._core = Producing(acks=acks, codec=codec, idempotent=idempotent, on_delivery=on_delivery)

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Queues a record; writes when a batch or the buffer is full. Raises KafkaError when that fails."""
        core = self._core
        if not core.known(topic):
            self._cluster.run(core.learn(self._cluster.routing, topic))
        place = core.place_of(topic, key, partition)
        stamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        record = NewRecord(key, value, stamp, tuple(headers))
        if not core.has_room_for(place, record):
            self.flush()
        core.add(place, record)

    def flush(self) -> None:
        """Returns when everything queued is acknowledged. On an error what was queued is gone: who sent it knows."""
        for failure in self._cluster.run(self._core.flush(self._cluster.routing)).values():
            raise failure
