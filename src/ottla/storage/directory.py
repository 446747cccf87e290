"""One log directory: its lock, its identity, its logs and the checkpoints over all of them.

Order is everything here. The clean-shutdown marker is read and deleted before anything else is written, and written
last of all; a recovery point reaches the disk only after what it promises; the first disk error takes the whole
directory offline for good.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from ottla.model.ids import TopicPartition, Uuid
from ottla.storage import checkpoints, names
from ottla.storage.answers import Deletion
from ottla.storage.checkpoints import CorruptCheckpoint, MetaProperties
from ottla.storage.config import LogConfig
from ottla.storage.fs import NO_ROOM, CorruptLog, Entry, Filesystem, Latch, StorageError, replace_file
from ottla.storage.log import Log
from ottla.storage.opening import create_log, open_log
from ottla.storage.saved_offsets import Checkpoint, SavedOffsets
from ottla.storage.segment import OpenFiles

_RESERVE_SHARE: Final = 16
"""At most one part in so many of a disk is held back: a small one is there for records too."""
_WORTH_THREADS: Final = 16
"""Below so many logs to flush, starting threads costs more than it saves."""

T = TypeVar("T")


class DirectoryInUse(Exception):
    """Another process, or another node of this one, works on the directory."""


class Loading(NamedTuple):
    """What `LogDirectory.load` found besides the logs."""

    refused: dict[TopicPartition, CorruptLog]
    """Damaged logs: offline, untouched on disk."""
    deletions: list[Deletion]
    """Left by topic deletions that a stop interrupted."""
    ignored: list[str]
    """Directories that are not logs, stray ones, and future ones that are of no use."""


class LogDirectory:
    __slots__ = (
        "_lock",
        "_reserve_bytes",
        "clean_broker_epoch",
        "files",
        "futures",
        "is_full",
        "is_loaded",
        "latch",
        "logs",
        "low_on_space",
        "meta",
        "path",
        "refused",
        "saved",
    )

    def __init__(self, files: OpenFiles, path: str, lock: object | None, latch: Latch, reserve_bytes: int) -> None:
        self.files = files
        self.path = path
        self._lock: object | None = lock
        self.latch = latch
        self._reserve_bytes = reserve_bytes
        self.meta: MetaProperties | None = None
        self.low_on_space = False
        """Set by whoever watches the disk: produce is refused meanwhile, fetch goes on."""
        self.is_full = False
        """A write found no room. Until there is room again, followers take no records, and what must be written all
        the same (metadata, the state of coordinators) uses the reserve."""
        self.is_loaded = False
        """What is in its logs is known. Before that, none of its checkpoints may be written."""
        self.clean_broker_epoch: int | None = None
        """From the marker of the last shutdown, -1 if it named none; None after a crash."""
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Copies of logs in other directories of this node, which are to come here (KIP-113)."""
        self.refused: dict[TopicPartition, CorruptLog] = {}
        self.saved = SavedOffsets(files.fs, path, latch)

    @classmethod
    def open(
        cls,
        files: OpenFiles,
        path: str,
        *,
        on_offline: Callable[[StorageError], None] | None = None,
        reserve_bytes: int = 0,
    ) -> "LogDirectory":
        """Raises DirectoryInUse, or StorageError if the directory cannot be used at all."""
        latch = Latch(path, on_offline)
        try:
            files.fs.mkdir(path)
            lock = files.fs.lock(f"{path}/{names.LOCK}")
            if lock is None:
                raise DirectoryInUse(
                    f"log directory {path} is in use by another node. Stop that one, or choose another directory."
                )
            _, total = files.fs.space(path)
            directory = cls(files, path, lock, latch, min(reserve_bytes, total // _RESERVE_SHARE))
            directory._take_marker()
            directory.identify()
            directory.saved.recovery_points = directory._read(names.RECOVERY_POINTS, checkpoints.decode_offsets, {})
            directory.saved.log_starts = directory._read(names.LOG_STARTS, checkpoints.decode_offsets, {})
            directory.saved.high_watermarks = directory._read(names.HIGH_WATERMARKS, checkpoints.decode_offsets, {})
            directory.saved.cleaned_to = directory._read(names.CLEANER_OFFSETS, checkpoints.decode_offsets, {})
            directory.is_full = directory.low_on_space = not directory.hold_reserve()
        except OSError as error:
            latch.fail("cannot be opened", error)
        return directory

    def _take_marker(self) -> None:
        """Reads the clean-shutdown marker and removes it durably: a crash from now on must not look clean."""
        path = f"{self.path}/{names.CLEAN_SHUTDOWN}"
        try:
            data = self.fs.read(path)
        except FileNotFoundError:
            return
        self.clean_broker_epoch = checkpoints.decode_clean_shutdown(data)
        self.fs.remove(path)
        self.fs.sync_dir(self.path)

    def _read(self, name: str, decode: Callable[[bytes], T], default: T) -> T:
        """An unreadable checkpoint costs time, not data: without recovery points every batch is checked."""
        try:
            return decode(self.fs.read(f"{self.path}/{name}"))
        except (FileNotFoundError, CorruptCheckpoint):
            return default

    @classmethod
    def absent(cls, files: OpenFiles, path: str, error: StorageError) -> "LogDirectory":
        """One that cannot be opened, in a node that goes on without it."""
        latch = Latch(path)
        latch.take_offline(error)
        return cls(files, path, None, latch, 0)

    @property
    def absolute_path(self) -> str:
        """As clients know it, whatever log.dirs says."""
        return os.path.abspath(self.path)

    @property
    def id(self) -> Uuid | None:
        return None if self.meta is None else self.meta.directory_id

    @property
    def was_clean(self) -> bool:
        return self.clean_broker_epoch is not None

    def identify(self) -> None:
        """Its identity has been written since it was opened."""
        self.meta = self._read(names.META_PROPERTIES, checkpoints.decode_meta_properties, None)

    def format(self, meta: MetaProperties) -> None:
        self.meta = meta
        self.saved.replace(names.META_PROPERTIES, checkpoints.encode_meta_properties(meta))

    # -- logs ----------------------------------------------------------------------------------------------------

    def load(self, config_of: Callable[[str], LogConfig], now: int) -> Loading:
        """Opens every log there is. The metadata log is skipped: Raft opens its own."""
        deletions: list[Deletion] = []
        ignored: list[str] = []
        for entry in sorted(self._list(), key=lambda one: one.name):
            if not entry.is_dir:
                continue
            parsed = names.parse_log_dir(entry.name)
            if parsed is None or parsed[1] == names.STRAY_DIR:
                ignored.append(entry.name)
            elif parsed[1] == names.DELETE_DIR:
                deletions.append(Deletion((), 0, f"{self.path}/{entry.name}"))
            elif parsed[1] == names.FUTURE_DIR:
                if not self._load_future(parsed[0], entry.name, config_of, now):
                    ignored.append(entry.name)
            elif parsed[0].topic != names.METADATA_TOPIC:
                self._load_one(parsed[0], entry.name, config_of, now)
        self.is_loaded = True
        return Loading(self.refused, deletions, ignored)

    def _list(self) -> list[Entry]:
        try:
            return self.fs.list(self.path)
        except OSError as error:
            self.latch.fail("cannot be listed", error)

    def _load_one(self, partition: TopicPartition, name: str, config_of: Callable[[str], LogConfig], now: int) -> None:
        try:
            self.logs[partition] = self._adopted(self._opened(partition, name, config_of, now))
        except CorruptLog as error:
            self.refused[partition] = error

    def _load_future(
        self, partition: TopicPartition, name: str, config_of: Callable[[str], LogConfig], now: int
    ) -> bool:
        """False if it is damaged, or one of several: nobody reads from it, so that nothing is lost without it."""
        if partition in self.futures:
            return False
        try:
            self.futures[partition] = self._adopted(self._opened(partition, name, config_of, now))
        except CorruptLog:
            return False
        return True

    def _opened(self, partition: TopicPartition, name: str, config_of: Callable[[str], LogConfig], now: int) -> Log:
        return open_log(
            self.files,
            f"{self.path}/{name}",
            partition,
            None,
            config_of(partition.topic),
            now=now,
            clean=self.was_clean,
            recovery_point=self.saved.recovery_points.get(partition, 0),
            log_start_offset=self.saved.log_starts.get(partition, 0),
            latch=self.latch,
        )

    def _adopted(self, log: Log) -> Log:
        partition = log.topic_partition
        log.before_truncate = lambda offset: self._before_truncate(partition, offset)
        return log

    def create_log(self, partition: TopicPartition, topic_id: bytes, config: LogConfig, now: int) -> Log:
        assert partition not in self.logs
        log = self.logs[partition] = self._created(partition, names.log_dir_name(partition), topic_id, config, now)
        return log

    def _created(self, partition: TopicPartition, name: str, topic_id: bytes, config: LogConfig, now: int) -> Log:
        self.latch.check()
        # Left by an earlier topic of this name, these would make recovery take the new log for a damaged one.
        self.saved.forget(partition)
        if self.saved.cleaned_to.pop(partition, 0):
            self.write_cleaner_offsets()
        path = f"{self.path}/{name}"
        return self._adopted(create_log(self.files, path, partition, topic_id, config, now=now, latch=self.latch))

    # -- logs that come from another directory -------------------------------------------------------------------

    def create_future(
        self, partition: TopicPartition, unique: str, topic_id: bytes, config: LogConfig, now: int
    ) -> Log:
        """Under the name that Kafka gives to such a log; `unique` is 32 fresh hex digits."""
        assert partition not in self.futures and partition not in self.logs
        name = names.marked_dir_name(partition, unique, names.FUTURE_DIR)
        log = self.futures[partition] = self._created(partition, name, topic_id, config, now)
        return log

    def delete_future(self, partition: TopicPartition, unique: str) -> Deletion:
        deletion = self.futures[partition].delete(unique)
        del self.futures[partition]
        return deletion

    def promote(self, partition: TopicPartition, cleaned_to: int | None = None) -> Log:
        """The future log is the log from now on. `cleaned_to` is how far the one that it replaces was clean."""
        assert partition not in self.logs
        log = self.futures[partition]
        log.rename(f"{self.path}/{names.log_dir_name(partition)}")
        del self.futures[partition]
        self.logs[partition] = log
        if cleaned_to is not None:
            self.saved.cleaned_to[partition] = min(cleaned_to, log.log_end_offset)
        return log

    def delete_log(self, partition: TopicPartition, unique: str) -> Deletion:
        """`unique` is 32 fresh hex digits. The caller performs the deletion later."""
        deletion = self.logs[partition].delete(unique)
        del self.logs[partition]
        self.saved.high_watermarks.pop(partition, None)
        self.saved.cleaned_to.pop(partition, None)
        return deletion

    def set_aside(self, partition: TopicPartition, unique: str, *, future: bool = False) -> str:
        """Renames a log that the metadata does not know, without deleting a byte of it. Returns its new path."""
        log = (self.futures if future else self.logs).pop(partition)
        self.saved.cleaned_to.pop(partition, None)
        log.close(clean=False)
        target = f"{self.path}/{names.marked_dir_name(partition, unique, names.STRAY_DIR)}"
        try:
            self.fs.rename(log.path, target)
        except OSError as error:
            self.latch.fail(f"cannot set {partition} aside", error)
        return target

    def perform(self, deletion: Deletion) -> None:
        """Removes what has been marked; missing files are fine, for a restart may have removed them."""
        self.latch.check()
        try:
            for path in deletion.paths:
                self.fs.remove(path)
            if deletion.directory is not None:
                self._remove_tree(deletion.directory)
        except OSError as error:
            self.latch.fail("cannot remove deleted files", error)

    def _remove_tree(self, path: str) -> None:
        try:
            entries = self.fs.list(path)
        except FileNotFoundError:
            return
        for entry in entries:
            if entry.is_dir:
                self._remove_tree(f"{path}/{entry.name}")
            else:
                self.fs.remove(f"{path}/{entry.name}")
        self.fs.rmdir(path)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def checkpoint_begin(self) -> Checkpoint:
        """What the logs are sure of now, for `Checkpoint.run` to write; damaged logs keep their old entries."""
        return self.saved.begin({**self.futures, **self.logs}, self.refused)

    def checkpoint_done(self, checkpoint: Checkpoint) -> None:
        self.saved.done(checkpoint)

    def write_checkpoints(self) -> None:
        checkpoint = self.checkpoint_begin()
        checkpoint.run()
        self.checkpoint_done(checkpoint)

    def write_high_watermarks(self, high_watermarks: dict[TopicPartition, int]) -> None:
        self.saved.high_watermarks = high_watermarks
        self.saved.replace(names.HIGH_WATERMARKS, checkpoints.encode_offsets(high_watermarks))

    def write_cleaner_offsets(self) -> None:
        """May run in any thread: it writes what is true when its turn comes, so no older truth overtakes a newer."""
        self.latch.check()
        try:
            with self.saved.mutex:
                data = checkpoints.encode_offsets(dict(self.saved.cleaned_to))
                replace_file(self.fs, f"{self.path}/{names.CLEANER_OFFSETS}", data)
        except OSError as error:
            self.latch.fail(f"cannot write {names.CLEANER_OFFSETS}", error)

    def _before_truncate(self, partition: TopicPartition, offset: int) -> None:
        self.saved.lower_recovery_point(partition, offset)
        # What is appended in the place of the lost records is dirty. Taken for clean, a tombstone among it would
        # go while older values of its key stay.
        if self.saved.cleaned_to.get(partition, 0) > offset:
            self.saved.cleaned_to[partition] = offset
            self.write_cleaner_offsets()

    # -- room and leaving ----------------------------------------------------------------------------------------

    @property
    def fs(self) -> Filesystem:
        return self.files.fs

    @property
    def is_online(self) -> bool:
        return self.latch.error is None

    @property
    def is_there(self) -> bool:
        """False once somebody has emptied it: what is written from then on goes into files without a name."""
        return self.fs.exists(f"{self.path}/{names.LOCK}")

    def space(self) -> tuple[int, int]:
        """Free and total bytes of the disk. What the reserve takes, or is to take again, is not free."""
        free, total = self.fs.space(self.path)
        return free if self.has_reserve else max(0, free - self._reserve_bytes), total

    def hold_reserve(self) -> bool:
        """False if there is not even so much room."""
        try:
            if self._reserve_bytes:
                self.fs.reserve(f"{self.path}/{names.RESERVE}", self._reserve_bytes)
        except OSError as error:
            if error.errno not in NO_ROOM:
                self.latch.fail("cannot hold room back", error)
            self.release_reserve()
            return False
        return True

    @property
    def has_reserve(self) -> bool:
        return not self._reserve_bytes or self.fs.exists(f"{self.path}/{names.RESERVE}")

    def release_reserve(self) -> None:
        """Room to finish what must be finished on a full disk."""
        try:
            self.fs.remove(f"{self.path}/{names.RESERVE}")
        except OSError as error:
            self.latch.fail("cannot give up the room that was held back", error)

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """A clean close writes the marker, unless a disk error or a damaged log forbids it. Nothing is held back for a
        node that is gone, however it went."""
        if self.latch.error is None:
            with suppress(StorageError):  # the latch has told it
                self.release_reserve()
        if clean and self.latch.error is None:
            if self.is_loaded:
                self._settle_logs()
                self.write_checkpoints()
                if not self.refused:
                    self._mark_clean(broker_epoch)
            elif self.clean_broker_epoch is not None:
                self._mark_clean(self.clean_broker_epoch)  # untouched: as clean as it was found
        for log in self._all_logs():
            log.close(clean=False)
        self._lock = None

    def _mark_clean(self, broker_epoch: int) -> None:
        self.saved.replace(names.CLEAN_SHUTDOWN, checkpoints.encode_clean_shutdown(broker_epoch))

    def _all_logs(self) -> list[Log]:
        return [*self.logs.values(), *self.futures.values()]

    def _settle_logs(self) -> None:
        """Many logs share the wait for the disk: one after the other ten thousand of them would take half a minute."""
        flushes = [(log, flush) for log in self._all_logs() if (flush := log.close_begin()) is not None]
        for _, flush in flushes:
            flush.dirs = [path for path in flush.dirs if path != self.path]  # the checkpoints sync it for all
        if self.fs.concurrency == 1 or len(flushes) < _WORTH_THREADS:
            for _, flush in flushes:
                flush.run()
        else:
            with ThreadPoolExecutor(self.fs.concurrency) as threads:
                list(threads.map(lambda one: one[1].run(), flushes))
        for log, flush in flushes:
            log.flush_done(flush)
