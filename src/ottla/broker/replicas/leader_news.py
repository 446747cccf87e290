"""Runs `lost_leaders`: tells it what happens, and wakes up whoever waits for news of a leader that was lost."""

import asyncio
from contextlib import suppress

from ottla.broker.replicas.lost_leaders import LostLeaders
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Millis
from ottla.model.ports import Clock


class LeaderNews:
    __slots__ = ("_clock", "_news", "lost_leaders")

    def __init__(self, clock: Clock, lost_leaders: LostLeaders) -> None:
        self._clock = clock
        self._news = asyncio.Event()
        self.lost_leaders = lost_leaders

    def lost(self, broker_id: int) -> None:
        self.lost_leaders.lost(broker_id, self._clock.monotonic())

    def reached(self, broker_id: int) -> None:
        if self.lost_leaders.reached(broker_id):
            self._tell()

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.lost_leaders.on_metadata(delta, image, self._clock.monotonic())
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def next(self, until: Millis) -> None:
        """Returns with the next news, or at that time."""
        news = self._news
        with suppress(TimeoutError):
            async with asyncio.timeout((until - self._clock.monotonic()) / 1000):
                await news.wait()
