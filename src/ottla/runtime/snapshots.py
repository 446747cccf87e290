"""Snapshots of the metadata, written beside the loop: one at a time, when the log has grown or some time has passed."""

import asyncio
from typing import Final

from ottla.runtime.committed import CommittedImage
from ottla.runtime.disk import DiskThread
from ottla.runtime.metadata_log import MetadataLog, SnapshotJob
from ottla.runtime.timers import Repeating

_NOTHING: Final = -1
"""As the offset of an image."""


class Snapshots:
    __slots__ = ("_committed", "_disk", "_log", "_timer", "_under_way")

    def __init__(self, log: MetadataLog, committed: CommittedImage, disk: DiskThread) -> None:
        self._log = log
        self._committed = committed
        self._disk = disk
        self._under_way: SnapshotJob | None = None
        self._timer = Repeating(log.settings.snapshot_interval_ms, self.take_if_changed)

    def start(self) -> None:
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def take_if_wanted(self) -> None:
        """By the size of the log."""
        if self._log.wants_snapshot:
            self._take()

    def take_if_changed(self) -> None:
        """By the clock."""
        if self._log.has_unsaved:
            self._take()

    def take_before_the_end(self) -> None:
        """Kafka's limit is 20 MB; each restart of a node with 10,000 partitions writes half a megabyte of it."""
        if self._log.is_long:
            self._take()

    async def written(self) -> None:
        """The disk has done all that it was given."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._disk.run(lambda: None, lambda _: None if waiter.done() else waiter.set_result(None))
        await waiter

    def _take(self) -> None:
        image = self._committed.image
        if self._under_way is None and image.offset > _NOTHING:
            job = self._under_way = self._log.begin_snapshot(image)
            self._disk.run(job.run, lambda error: self._done(job, error))

    def _done(self, job: SnapshotJob, error: BaseException | None) -> None:
        """A snapshot that failed is no loss: the log has it all, and the next one may succeed."""
        self._under_way = None
        if error is None:
            self._log.remove(self._log.finish_snapshot(job))
