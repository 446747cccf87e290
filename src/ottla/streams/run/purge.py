"""Repartition topics are emptied as they are read: nobody else needs what lies in them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.client import admin
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp

logger = logging.getLogger(__name__)

PURGE_PATIENCE_S: Final = 5.0


class Purge:
    """Deletes the records of repartition topics that have been used."""

    def __init__(self, app: StreamsApp, names: Sequence[str]) -> None:
        self._reach = app.config.reach("admin")
        self._interval_s = app.config["repartition.purge.interval.ms"] / 1000
        self._names = frozenset(names)
        self._last = time.monotonic()

    def after(self, offsets: Mapping[TopicPartition, int]) -> None:
        used = {place: offset for place, offset in offsets.items() if place.topic in self._names and offset > 0}
        if not used or time.monotonic() - self._last < self._interval_s:
            return
        self._last = time.monotonic()
        with self._reach.cluster(timeout_s=PURGE_PATIENCE_S) as cluster:
            try:
                admin.delete_records(cluster, used)
            except ClientError as error:
                logger.info("used repartition records stay until the next time: %s", error)
