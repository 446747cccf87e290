"""How large a record may be: its topic tells, before it is sent. The broker's refusal would be the end of the
transaction and of the connector, and come again with every start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.connect.jobs.raw_record import RawRecord
from ottla.pipelines.sink.limits import UNKNOWN, limits_of
from ottla.protocol import batch

ASKED_FROM: Final = 10_000
"""Bytes of a record or a batch below which nobody is asked: no topic takes less."""
DEFAULT: Final = 1_048_588
"""Kafka's `max.message.bytes`."""
AGE_S: Final = 60.0
"""How late a change may be noticed; one that would let a record through is, at once."""
SETTLED_S: Final = 1.0
_RECORD: Final = 40
"""Of a record besides its key, value and headers, and the lengths of those: not more."""
_HEADER: Final = 10


def size_of(record: RawRecord) -> int:
    """Of a batch with this record alone, before it is compressed; at most a few bytes too much."""
    headers = sum(len(name) * 3 + len(value or b"") + _HEADER for name, value in record.headers)
    return batch.HEADER_SIZE + _RECORD + len(record.key or b"") + len(record.value or b"") + headers


class Sizes:
    """What topics take, each asked when there is something to ask for."""

    __slots__ = ("_clock", "_cluster", "_known")

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known: dict[str, tuple[int | None, float]] = {}
        """With the time of the answer; None: nobody may tell."""

    def most(self, topic: str) -> int | None:
        return self._most(topic, AGE_S)

    def exceeded(self, topic: str, size: int) -> int | None:
        """What the topic takes, if that is less. Where nobody may tell the broker decides."""
        if size < ASKED_FROM:
            return None
        for age_s in (AGE_S, SETTLED_S):
            most = self._most(topic, age_s)
            if most is None or size <= most:
                return None
        return most

    def _most(self, topic: str, age_s: float) -> int | None:
        now = self._clock()
        known = self._known.get(topic)
        if known is None or now - known[1] > age_s:
            known = self._known[topic] = (_asked(self._cluster, topic), now)
        return known[0]


def _asked(cluster: Cluster, topic: str) -> int | None:
    try:
        found = limits_of(cluster, [topic])[topic]
    except ClientError:
        return None
    return None if found is UNKNOWN else found.max_message_bytes
