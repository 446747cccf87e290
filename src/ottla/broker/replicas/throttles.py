"""Throttled replication on this broker: what it sends to followers, and what it copies itself (KIP-73).

Only replicas out of sync are held back, and only those that a topic's setting names: to throttle one that is in sync
would throttle the clients that wait for it.
"""

from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.settings.configs import Configs
from ottla.model.properties.property import LONG_MAX
from ottla.replication.throttle import ByteRate, is_throttled

PAUSE_MS: Final = 100
"""Until a follower that was held back looks again."""


class ReplicationThrottle:
    """One direction: `side` is leader or follower."""

    __slots__ = ("_broker_id", "_configs", "_limit_name", "_rate", "_replicas_name")

    def __init__(self, side: str, configs: Configs, broker_id: int) -> None:
        self._configs = configs
        self._broker_id = broker_id
        self._limit_name = f"{side}.replication.throttled.rate"
        self._replicas_name = f"{side}.replication.throttled.replicas"
        number = configs.settings.get_int
        self._rate = ByteRate(
            number("replication.quota.window.num"), number("replication.quota.window.size.seconds") * 1000
        )

    @property
    def _limit(self) -> int:
        return self._configs.throttled_rate(self._limit_name)

    def _names(self, partition: Partition) -> bool:
        replicas = self._configs.topic_list(partition.topic, self._replicas_name)
        return is_throttled(replicas, partition.index, self._broker_id)

    def holds_back(self, partition: Partition, now: int) -> bool:
        """For a replica that is out of sync."""
        limit = self._limit
        return limit != LONG_MAX and self._rate.per_second(now) > limit and self._names(partition)

    def record(self, partition: Partition, size: int, now: int) -> None:
        if self._limit != LONG_MAX and self._names(partition):
            self._rate.record(size, now)
