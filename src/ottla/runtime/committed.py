"""The committed facts of the cluster on this node, and who wants to know when they change."""

import asyncio
from collections.abc import Callable

from ottla.metadata.batches import decode_batch
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.difference import difference
from ottla.metadata.image import MetadataImage
from ottla.metadata.replay import Replayer
from ottla.storage.log import Log
from ottla.storage.reading import batches_of

Subscriber = Callable[[MetadataDelta, MetadataImage], None]
Condition = Callable[[MetadataImage], bool]


class CommittedImage:
    """Follows the metadata log up to its high watermark. On the active controller, which has replayed its own records
    already, it is told the result instead."""

    __slots__ = ("_next", "_replayer", "_subscribers", "_waiting", "image")

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._subscribers: list[Subscriber] = []
        self._waiting: dict[asyncio.Future[None], Condition] = {}
        self._replayer = Replayer(image)
        self._next = image.offset + 1

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    async def reached(self, offset: int) -> None:
        """Returns when the image contains the record at this offset, and subscribers have heard of it."""
        await self.until(lambda image: image.offset >= offset)

    async def until(self, holds: Condition) -> None:
        if holds(self.image):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = holds
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)

    def follow(self, log: Log, high_watermark: int) -> None:
        """Replays what was committed since; many batches make one change."""
        if high_watermark <= self._next:
            return
        for data in batches_of(log, self._next, high_watermark):
            batch = decode_batch(data)
            if batch.is_control:
                self._replayer.control_batch(batch.last_offset, batch.epoch, batch.timestamp)
            else:
                self._replayer.batch(batch.records, batch.base_offset, batch.epoch, batch.timestamp)
            self._next = batch.last_offset + 1
        self._publish(*self._replayer.take())

    def take_over(self) -> tuple[MetadataImage, bool]:
        """For a controller that becomes active: the image it starts from, and whether its predecessor left a
        transaction open, which it must abort."""
        torn = self._replayer.transaction_start is not None
        self._replayer.abandon_transaction()
        return self.image, torn

    def told(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The active controller's own change is committed."""
        self._next = image.offset + 1
        self._replayer = Replayer(image)
        self._publish(delta, image)

    def replace(self, image: MetadataImage) -> None:
        """A snapshot took the place of the log."""
        delta = difference(self.image, image)
        self._replayer = Replayer(image)
        self._next = image.offset + 1
        self._publish(delta, image)

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        for subscriber in self._subscribers:
            subscriber(delta, image)
        for waiter in [waiter for waiter, holds in self._waiting.items() if holds(image)]:
            del self._waiting[waiter]
            if not waiter.done():
                waiter.set_result(None)
