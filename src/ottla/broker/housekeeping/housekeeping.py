"""What a broker does beside answering: flush, checkpoint, retire old segments, compact, watch the disk, remove files.

Everything that waits for the disk runs in a worker thread; the loop only begins and ends it.
"""

import asyncio
import errno
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Iterator
from heapq import nsmallest
from typing import Any, Final

from ottla.broker.housekeeping.cleaning import Cleaning
from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.model.ports import Clock
from ottla.runtime.cleaner.cleaners import Cleaner, Pace
from ottla.runtime.timers import Repeating
from ottla.storage.answers import Deletion
from ottla.storage.directory import LogDirectory
from ottla.storage.flush import Flush
from ottla.storage.fs import StorageError
from ottla.storage.log import Log
from ottla.storage.retention import apply_retention

logger = logging.getLogger(__name__)

_WATCH_MS: Final = 1000
_FLUSH_ROLLED_MS: Final = 2000
_SPARE_BYTES: Final = 16 << 20
"""So much more than the low water, or one in a hundred of a smaller disk, has to be free before records are taken
again."""
_LOGS_PER_TURN: Final = 200
"""Logs looked at before other work gets a turn: ten thousand partitions must not hold up a request."""


class Housekeeping:
    __slots__ = (
        "_clock",
        "_configs",
        "_doomed",
        "_loop",
        "_pending",
        "_replicas",
        "_stopped",
        "_tasks",
        "_timers",
        "cleaning",
    )

    def __init__(
        self,
        loop: AbstractEventLoop,
        replicas: Replicas,
        configs: Configs,
        clock: Clock,
        new_cleaner: Callable[[Pace], Cleaner],
    ) -> None:
        self._loop = loop
        self._replicas = replicas
        self._configs = configs
        self._clock = clock
        self._doomed: list[tuple[int, LogDirectory, Deletion]] = []
        """Files that are to be removed, with the time to do it."""
        self._pending: dict[Partition, None] = {}
        self._tasks: dict[str, Task[None]] = {}
        self._timers: list[Repeating] = []
        self._stopped = False
        self.cleaning = Cleaning(loop, replicas, configs, clock, new_cleaner)

    def start(self) -> None:
        settings = self._configs.settings
        self._watch_disks()
        self._timers = [
            Repeating(_WATCH_MS, self._watch_disks),
            Repeating(_WATCH_MS, self._remove_files),
            Repeating(_WATCH_MS, self._cap_producers),
            Repeating(_FLUSH_ROLLED_MS, lambda: self._begin("flush", self._flush_rolled)),
            Repeating(
                settings.get_int("log.retention.check.interval.ms"),
                lambda: self._begin("retention", self._retire_segments),
            ),
            Repeating(settings.get_int("log.flush.offset.checkpoint.interval.ms"), self.checkpoint_soon),
            Repeating(
                settings.get_int("replica.high.watermark.checkpoint.interval.ms"),
                lambda: self._begin("high watermarks", self._save_high_watermarks),
            ),
            Repeating(
                settings.get_int("producer.id.expiration.check.interval.ms"),
                lambda: self._begin("producers", self._expire_producers),
            ),
        ]
        for timer in self._timers:
            timer.start()
        self.cleaning.start()

    async def stop(self) -> None:
        self._stopped = True
        for timer in self._timers:
            timer.stop()
        await self.cleaning.stop()
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
        if self._timers:  # else no log is loaded, and none has a high watermark
            await self._save_high_watermarks()

    def _begin(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """One run of each kind at a time: a slow disk delays the next, it does not pile them up."""
        if name not in self._tasks and not self._stopped:
            task = self._tasks[name] = self._loop.create_task(work(), name=f"housekeeping-{name}")
            task.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, task: "Task[None]") -> None:
        self._tasks.pop(name, None)
        if not task.cancelled() and task.exception() is not None:
            logger.error("housekeeping: %s failed", name, exc_info=task.exception())
        if self._pending:
            self._begin("group commit", self._group_commit)

    def _logs(self) -> Iterator[tuple[Partition, Log, LogDirectory]]:
        for partition in list(self._replicas.all()):
            if partition.log is not None and partition.directory is not None and partition.directory.is_online:
                yield partition, partition.log, partition.directory

    # ---- making durable

    def flush_soon(self, partition: Partition) -> None:
        """Group commit: everything asked for while one round of fsyncs runs shares the next."""
        self._pending[partition] = None
        self._begin("group commit", self._group_commit)

    async def _group_commit(self) -> None:
        while self._pending:
            partitions, self._pending = list(self._pending), {}
            await self._flush(partitions)

    async def _flush_rolled(self) -> None:
        """A closed segment is flushed once, in the background, so that recovery starts behind it."""
        due = []
        for partition, found, _ in self._logs():
            config = found.config
            if found.recovery_point < found.active.base_offset or (
                config.flush_ms < (1 << 62) and found.unflushed_messages and flush_is_due(found, self._clock.wall())
            ):
                due.append(partition)
        await self._flush(due)

    async def _flush(self, partitions: list[Partition]) -> None:
        begun: list[tuple[Partition, Log, Flush]] = []
        for partition in partitions:
            found = partition.log
            if found is not None:
                flush = self._begin_flush(partition, found)
                if flush is not None:
                    begun.append((partition, found, flush))
        if not begun:
            return
        failed = await self._loop.run_in_executor(None, _run_all, [flush for _, _, flush in begun])
        for (partition, found, flush), error in zip(begun, failed, strict=True):
            if error is not None:
                self._failed(partition, error)
            elif partition.log is found:
                found.flush_done(flush)
                self._replicas.flushed(partition)

    def _begin_flush(self, partition: Partition, found: Log) -> Flush | None:
        try:
            return found.flush_begin()
        except StorageError as error:
            self._failed(partition, error)
            return None

    def _failed(self, partition: Partition, error: StorageError) -> None:
        if partition.directory is not None:
            self._replicas.storage_failed(partition.directory, error)

    def checkpoint_soon(self) -> None:
        self._begin("checkpoint", self._checkpoint)

    async def _checkpoint(self) -> None:
        for directory in self._replicas.directories:
            if not directory.is_online:
                continue
            try:
                checkpoint = directory.checkpoint_begin()
                await self._loop.run_in_executor(None, checkpoint.run)
                directory.checkpoint_done(checkpoint)
            except StorageError as error:
                self._replicas.storage_failed(directory, error)

    async def _save_high_watermarks(self) -> None:
        for directory, marks in self._replicas.high_watermarks().items():
            if directory.is_online and marks != directory.saved.high_watermarks:
                try:
                    await self._loop.run_in_executor(None, directory.write_high_watermarks, marks)
                except StorageError as error:
                    self._replicas.storage_failed(directory, error)

    # ---- making room

    async def _retire_segments(self) -> None:
        for turn, (partition, found, directory) in enumerate(self._logs()):
            if turn % _LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
            if partition.role is None:
                continue
            try:
                deletion = apply_retention(found, self._clock.wall(), partition.high_watermark)
            except StorageError as error:
                self._replicas.storage_failed(directory, error)
                continue
            if deletion is not None:
                logger.info("%s: removing %d old files", found.topic_partition, len(deletion.paths))
                self._replicas.deletions.append((directory, deletion))

    def _remove_files(self) -> None:
        """By the clock that nobody sets: a wall clock set back would keep the files, set forward it would take them."""
        new, self._replicas.deletions = self._replicas.deletions, []
        now = self._clock.monotonic()
        self._doomed += [(now + deletion.delay_ms, directory, deletion) for directory, deletion in new]
        if self._doomed:
            self._begin("files", self._remove_due_files)

    async def _remove_due_files(self) -> None:
        now = self._clock.monotonic()
        due = [doomed for doomed in self._doomed if doomed[0] <= now]
        self._doomed = [doomed for doomed in self._doomed if doomed[0] > now]
        for _, directory, deletion in due:
            if directory.is_online:
                try:
                    await self._loop.run_in_executor(None, directory.perform, deletion)
                except StorageError as error:
                    self._replicas.storage_failed(directory, error)

    async def _expire_producers(self) -> None:
        for turn, (_, found, _directory) in enumerate(self._logs()):
            if turn % _LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
            found.expire_producers(self._clock.wall())

    def _cap_producers(self) -> None:
        """A client that makes up producer ids must not fill the memory: those idle for longest are forgotten."""
        logs = [found for _, found, _ in self._logs() if found.producers_remembered]
        excess = sum(found.producers_remembered for found in logs)
        excess -= self._configs.settings.get_int("ottla.producer.ids.max")
        if excess > 0:
            idle = ((since, id_, found) for found in logs for since, id_ in found.producers.idle_since())
            for _, producer_id, found in nsmallest(excess, idle, key=lambda one: one[:2]):
                found.producers.forget(producer_id)
            logger.warning("forgot %d idle producers: ottla.producer.ids.max is reached", excess)

    def _watch_disks(self) -> None:
        for directory in self._replicas.directories:
            if directory.is_online:
                try:
                    self._watch(directory)
                except StorageError as error:
                    self._replicas.storage_failed(directory, error)

    def _watch(self, directory: LogDirectory) -> None:
        settings = self._configs.settings
        try:
            free, total = directory.space()
            if not directory.is_there:
                raise FileNotFoundError(errno.ENOENT, "its files were removed while the node ran")
            low_water = min(
                settings.get_int("ottla.disk.low.water.bytes"), settings.get_float("ottla.disk.low.water.ratio") * total
            )
            # Room for a moment's records only would be told as room, and as none again, once a second.
            is_low = free < low_water + (min(_SPARE_BYTES, total // 100) if directory.low_on_space else 0)
            if not directory.is_full and not directory.has_reserve:
                self._replicas.no_room(directory)  # the metadata log has found out
            elif is_low and not directory.low_on_space:
                directory.low_on_space = True
                logger.error("%s has %d bytes left: produce is refused until there is room", directory.path, free)
            elif directory.low_on_space and not is_low and (not directory.is_full or directory.hold_reserve()):
                self._replicas.room_again(directory)
        except OSError as error:
            directory.latch.fail("cannot be used any more", error)  # removed, unmounted, or out of order


def flush_is_due(found: Log, now: int) -> bool:
    """By flush.ms. A wall clock that was set back puts nothing off: what is of the future counts as old."""
    return not 0 <= now - found.active.created_ms < found.config.flush_ms


def _run_all(flushes: list[Flush]) -> list[StorageError | None]:
    """In a worker thread. A failure takes one directory offline, not the others."""
    outcomes: list[StorageError | None] = []
    for flush in flushes:
        try:
            flush.run()
            outcomes.append(None)
        except StorageError as error:
            outcomes.append(error)
    return outcomes
