"""Replicas that move from one log directory of this node to another: AlterReplicaLogDirs (KIP-113).

What is to be done next is `replication.directory_move`'s to say; here it is done, by a task for each move. A move that
a stop interrupts goes on with the next start: its future log is found on the disk (`placement`).
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Final

from ottla.broker.partition import FutureReplica, Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.model.ports import Clock, Ids
from ottla.model.properties.property import LONG_MAX
from ottla.replication.directory_move import DirectoryMove, Do, Stage
from ottla.replication.throttle import ByteRate
from ottla.runtime.tasks import Tasks
from ottla.storage import names
from ottla.storage.answers import Deletion, FileSlice, Rejected
from ottla.storage.config import NEVER
from ottla.storage.directory import LogDirectory
from ottla.storage.following import append_as_follower
from ottla.storage.fs import StorageError
from ottla.storage.log import Log
from ottla.storage.reading import read
from ottla.storage.retention import apply_retention, delete_records_before

logger = logging.getLogger(__name__)

AT_ONCE: Final = 64 << 10
"""Bytes that are copied without leaving the loop: so near to the end they are in the page cache, and a log that is
written to all the time can be caught up with in no other way."""
_LOOK_AGAIN_SECONDS: Final = 1.0
"""While the controller, or room in the directory, is waited for."""
_TRY_AGAIN_SECONDS: Final = 10.0
"""After the disk has refused: a log that cannot be read today can be no better in a second."""
_PACE_SECONDS: Final = 0.1
"""Until a copy that was held back by the limit looks again."""


class Moves:
    """Hears `Events.moving`."""

    __slots__ = ("_clock", "_configs", "_has_directory_ids", "_ids", "_loop", "_rate", "_replicas", "_slots", "_tasks")

    def __init__(
        self,
        loop: AbstractEventLoop,
        replicas: Replicas,
        configs: Configs,
        clock: Clock,
        ids: Ids,
        has_directory_ids: Callable[[], bool],
    ) -> None:
        """`has_directory_ids`: the metadata says in which directory a replica lies."""
        settings = configs.settings
        self._loop = loop
        self._replicas = replicas
        self._configs = configs
        self._clock = clock
        self._ids = ids
        self._has_directory_ids = has_directory_ids
        self._tasks = Tasks(loop)
        at_once = settings.find_int("num.replica.alter.log.dirs.threads") or len(replicas.directories)
        self._slots = asyncio.Semaphore(max(1, at_once))
        number = settings.get_int
        self._rate = ByteRate(
            number("alter.log.dirs.replication.quota.window.num"),
            number("alter.log.dirs.replication.quota.window.size.seconds") * 1000,
        )

    async def stop(self) -> None:
        await self._tasks.stop()

    # ---- what is asked for

    def alter(self, name: TopicPartition, path: str) -> Errors:
        """The replica of a partition is to lie in the directory at `path`."""
        if not names.may_be_marked(name):
            return Errors.INVALID_TOPIC_EXCEPTION
        target = next((each for each in self._replicas.directories if each.absolute_path == path), None)
        if target is None:
            return Errors.LOG_DIR_NOT_FOUND
        if not target.is_online:
            return Errors.KAFKA_STORAGE_ERROR
        partition = self._replicas.find(*name)
        if partition is None:
            self._replicas.prefer(name, target)
            return Errors.REPLICA_NOT_AVAILABLE
        if partition.log is None or partition.directory is None:
            return Errors.KAFKA_STORAGE_ERROR if partition.offline else Errors.REPLICA_NOT_AVAILABLE
        future = partition.future
        if future is not None and future.directory is target:
            return Errors.NONE
        if future is not None:
            self._cancel(partition, future)
        if target is partition.directory:
            return Errors.NONE
        if any(not each.is_online for each in self._replicas.directories):
            return Errors.KAFKA_STORAGE_ERROR  # a future log of this partition may lie there already
        try:
            self._begin(partition, partition.log, target)
        except StorageError as error:
            self._replicas.storage_failed(target, error)
            return Errors.KAFKA_STORAGE_ERROR
        return Errors.NONE

    def _begin(self, partition: Partition, current: Log, target: LogDirectory) -> None:
        log = target.create_future(
            current.topic_partition,
            self._ids.uuid().hex(),
            partition.topic_id,
            current.config,
            self._clock.wall(),
        )
        partition.future = FutureReplica(log, target, DirectoryMove(agreed=not self._has_directory_ids()))
        logger.info("%s moves to %s", current.topic_partition, target.path)
        self.start(partition)

    def _cancel(self, partition: Partition, future: FutureReplica) -> None:
        logger.info("%s does not move to %s any more", future.log.topic_partition, future.directory.path)
        self._replicas.drop_future(partition)
        self._replicas.delete_future(future, self._ids.uuid().hex())

    # ---- moving

    def start(self, partition: Partition) -> None:
        future = partition.future
        assert future is not None
        self._tasks.start(self._move(partition, future), f"move of {future.log.topic_partition}")

    async def _move(self, partition: Partition, future: FutureReplica) -> None:
        """Only so many copy side by side, each until it has had everything."""
        async with self._slots:
            while self._is_on(partition, future) and future.move.stage is not Stage.ASKED:
                await self._step(partition, future)
        while self._is_on(partition, future):
            await self._step(partition, future)

    def _is_on(self, partition: Partition, future: FutureReplica) -> bool:
        return partition.future is future and partition.log is not None and partition.role is not None

    async def _step(self, partition: Partition, future: FutureReplica) -> None:
        current = partition.log
        assert current is not None
        try:
            await self._do_next(partition, current, future)
        except StorageError as error:
            at_fault = future.directory if error.directory == future.directory.path else partition.directory
            if at_fault is not None:
                self._replicas.storage_failed(at_fault, error)
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def _do_next(self, partition: Partition, current: Log, future: FutureReplica) -> None:
        log, move = future.log, future.move
        if log.config is not current.config:
            log.update_config(current.config)
        do, offset = move.next(current, log)
        if do == Do.COPY:
            await self._copy(partition, current, future)
        elif do == Do.TRUNCATE:
            logger.info("%s: its copy is cut back from %d to %d", log.topic_partition, log.log_end_offset, offset)
            await self._remove(future, log.truncate_to(offset, self._clock.wall()))
        elif do == Do.RESTART:
            await self._remove(future, log.truncate_fully_and_start_at(offset, self._clock.wall()))
        elif do == Do.FLUSH:
            await self._flush(log)
            move.flushed()
        elif do == Do.ASK:
            assert future.directory.id is not None
            move.asked()
            self._replicas.events.lies_in.tell(partition, future.directory.id)
        elif do == Do.WAIT:
            await future.is_agreed_within(_LOOK_AGAIN_SECONDS)
        else:
            if do == Do.FLUSH_AND_SWAP:
                log.flush()
            self._swap(partition, current, future)

    async def _copy(self, partition: Partition, current: Log, future: FutureReplica) -> None:
        log, generation = future.log, current.generation
        if future.directory.low_on_space:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            return
        if self._is_over_the_limit():
            await asyncio.sleep(_PACE_SECONDS)
            return
        most = self._configs.settings.get_int("replica.fetch.max.bytes")
        found = read(current, log.log_end_offset, most, upper_bound=current.log_end_offset)
        if not isinstance(found, FileSlice):
            await asyncio.sleep(_PACE_SECONDS)
            return
        if found.length <= AT_ONCE:
            records = found.read()
        else:
            records = await self._loop.run_in_executor(None, found.read)
            if not self._is_on(partition, future) or current.generation != generation:
                return  # what was read may have been cut off meanwhile
        self._append(partition, current, log, records)
        await self._remove(future, self._follow_start(current, log))
        if found.length > AT_ONCE and log.recovery_point < log.active.base_offset:
            await self._flush(log)  # a closed segment at a time, so that little is left for the end

    def _append(self, partition: Partition, current: Log, log: Log, records: bytes) -> None:
        outcome = append_as_follower(log, records, partition.leader_epoch, self._clock.wall())
        if isinstance(outcome, Rejected):
            assert partition.directory is not None
            raise StorageError(
                partition.directory.path, f"{current.topic_partition} cannot be copied: {outcome.message}"
            )
        self._rate.record(len(records), self._clock.monotonic())

    def _follow_start(self, current: Log, log: Log) -> Deletion | None:
        """Records that are deleted meanwhile are deleted there too."""
        start = min(current.log_start_offset, log.log_end_offset)
        if start <= log.log_start_offset:
            return None
        delete_records_before(log, start)
        return apply_retention(log, self._clock.wall(), start)

    async def _remove(self, future: FutureReplica, deletion: Deletion | None) -> None:
        """At once: nobody reads from a copy, and when other files are due it may long have another name."""
        if deletion is not None:
            await self._loop.run_in_executor(None, future.directory.perform, deletion)

    def _is_over_the_limit(self) -> bool:
        limit = self._configs.throttled_rate("replica.alter.log.dirs.io.max.bytes.per.second")
        return limit != LONG_MAX and self._rate.per_second(self._clock.monotonic()) > limit

    async def _flush(self, log: Log) -> None:
        flush = log.flush_begin()
        if flush is not None:
            await self._loop.run_in_executor(None, flush.run)
            log.flush_done(flush)

    # ---- arriving

    def _swap(self, partition: Partition, current: Log, future: FutureReplica) -> None:
        """The new name comes before the old one goes: a crash in between leaves two whole logs, of which the metadata
        knows the one to take."""
        name, source, target = current.topic_partition, partition.directory, future.directory
        assert source is not None
        log = target.promote(name, source.saved.cleaned_to.get(name))
        log.succeed(current)
        partition.log, partition.directory, partition.future = log, target, None
        deletion = self._follow_start(current, log)
        if deletion is not None:
            self._replicas.deletions.append((target, deletion))
        logger.info("%s has moved from %s to %s", name, source.path, target.path)
        try:
            self._replicas.deletions.append((source, source.delete_log(name, self._ids.uuid().hex())))
        except StorageError as error:
            source.logs.pop(name, None)
            self._replicas.storage_failed(source, error)
        self._replicas.events.log_start_moved.tell()  # both directories have something to write down
        if log.config.flush_messages != NEVER:
            self._replicas.events.flush_wanted.tell(partition)
