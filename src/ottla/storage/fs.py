"""The only place that touches the disk: raw descriptors behind two small protocols.

`Filesystem` and `File` are kept small enough to have a simulated twin (`ottla.testing.disk`). Nothing here buffers:
what `pwrite` accepted is in the page cache and survives the death of the process. `Latch` remembers the first error of
a log directory; after it every write to that directory is refused and none is retried, because an fsync that failed
once may report success the next time although the data is gone (reliability.md 2.1).
"""

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn, Protocol

Buffer = bytes | bytearray | memoryview

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})
ROOM_ERRORS: Final = NO_ROOM | NO_DESCRIPTOR
"""Out of space or descriptors: the disk itself is sound, so a rolled-back write leaves the directory online."""


class StorageError(OSError):
    """A log directory could not be written or read. `directory` names it; the broker answers KAFKA_STORAGE_ERROR."""

    def __init__(self, directory: str, what: str, cause: OSError | None = None) -> None:
        number = cause.errno if cause is not None and cause.errno is not None else errno.EIO
        detail = f": {cause.strerror or cause}" if cause is not None else ""
        super().__init__(number, f"log directory {directory}: {what}{detail}")
        self.directory = directory


class CorruptLog(Exception):
    """Committed bytes contradict themselves. The log is refused, never cut: a replica has to be rebuilt instead."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)  # both, so that it can be handed from process to process
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Latch:
    """Online until the first disk error, offline from then on. May be set by the thread that runs an fsync."""

    __slots__ = ("directory", "error", "on_offline")

    def __init__(self, directory: str, on_offline: Callable[[StorageError], None] | None = None) -> None:
        self.directory = directory
        self.error: StorageError | None = None
        self.on_offline = on_offline

    def check(self) -> None:
        if self.error is not None:
            raise StorageError(self.directory, "is offline since an earlier error", self.error)

    def fail(self, what: str, cause: OSError) -> NoReturn:
        """Takes the directory offline, unless the cause is mere lack of room, and raises."""
        error = cause if isinstance(cause, StorageError) else StorageError(self.directory, what, cause)
        if cause.errno not in ROOM_ERRORS:
            self.take_offline(error)
        raise error from cause

    def take_offline(self, error: StorageError) -> None:
        if self.error is None:
            self.error = error
            if self.on_offline is not None:
                self.on_offline(error)


class Entry(NamedTuple):
    """One name in a directory."""

    name: str
    is_dir: bool
    size: int
    modified_ms: int


class File(Protocol):
    """An open file. It closes when the last reference to it dies, so a slice being sent keeps its bytes readable."""

    def pwrite(self, data: Buffer, position: int) -> None:
        """All of `data`, however many calls the kernel needs. On an error any prefix may have been written."""

    def pread(self, length: int, position: int) -> bytes:
        """At most `length` bytes, fewer only at the end of the file."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None: ...

    def fileno(self) -> int: ...


class Filesystem(Protocol):
    """Paths are plain strings with forward slashes; the caller has joined them."""

    concurrency: int
    """How many fsyncs are worth running at once: a journal commits those that come together together."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def read(self, path: str) -> bytes: ...

    def list(self, path: str) -> list[Entry]:
        """Everything in a directory, in no particular order. A name that vanishes meanwhile is left out."""

    def exists(self, path: str) -> bool: ...

    def mkdir(self, path: str) -> None:
        """Creates the directory and its parents; an existing one is fine."""

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """A missing file is fine."""

    def rmdir(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def lock(self, path: str) -> object | None:
        """An exclusive lock held until the returned object dies; None when another process holds it."""

    def reserve(self, path: str, size: int) -> None:
        """A file whose removal frees `size` bytes, no more and no less."""

    def space(self, path: str) -> tuple[int, int]:
        """Free and total bytes of the file system that holds `path`."""


class RealFile:
    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def pwrite(self, data: Buffer, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        if written != len(data):
            self._pwrite_rest(memoryview(data), position, written)

    def _pwrite_rest(self, data: memoryview, position: int, done: int) -> None:
        while done < len(data):
            written = os.pwrite(self._fd, data[done:], position + done)
            if written == 0:
                raise OSError(errno.EIO, "the kernel accepted no bytes")
            done += written

    def pread(self, length: int, position: int) -> bytes:
        data = os.pread(self._fd, length, position)
        while data and len(data) < length:
            more = os.pread(self._fd, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fsync(self._fd)

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        # Interpreter shutdown may have taken `os` away already.
        if os is not None:
            os.close(self._fd)


class RealFilesystem:
    __slots__ = ()

    concurrency = 8

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(fd, 1 << 14)
            if len(data) < 1 << 14:
                return data  # of a regular file less than asked for means its end
            chunks = [data]
            while chunk := os.read(fd, 1 << 20):
                chunks.append(chunk)
            return b"".join(chunks)
        finally:
            os.close(fd)

    def list(self, path: str) -> list[Entry]:
        entries = []
        with os.scandir(path) as found:
            for item in found:
                try:
                    stat = item.stat(follow_symlinks=True)
                    is_dir = item.is_dir()
                except FileNotFoundError:
                    continue
                entries.append(Entry(item.name, is_dir, stat.st_size, stat.st_mtime_ns // 1_000_000))
        return entries

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def mkdir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> object | None:
        file = self.open(path, create=True)
        try:
            _lock_exclusively(file.fileno())
        except (BlockingIOError, PermissionError):
            return None
        return file

    def reserve(self, path: str, size: int) -> None:
        file = self.open(path, create=True)  # held by a name: the descriptor closes with its last reference
        if file.size() > size:
            file.truncate(size)
        os.posix_fallocate(file.fileno(), 0, size)

    def space(self, path: str) -> tuple[int, int]:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize


def _lock_exclusively(fd: int) -> None:
    """Excludes Java's FileChannel.tryLock, which Apache Kafka uses, and a second node in this process alike.

    A plain POSIX lock belongs to the process: it would admit the second node, and go when that one closed its file.
    """
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        fcntl.fcntl(fd, command, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


def replace_file(fs: Filesystem, path: str, data: bytes, *, sync: bool = True) -> None:
    """A reader finds the old content or the new, never half of either. Safe to run in any thread.

    `sync=False` is for files that a later flush makes durable and that recovery can rebuild.
    """
    temporary = path + ".tmp"
    file = fs.open(temporary, create=True)
    file.truncate(0)
    file.pwrite(data, 0)
    if sync:
        file.sync()
    del file
    fs.rename(temporary, path)
    if sync:
        fs.sync_dir(parent(path))


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def file_name(path: str) -> str:
    return path.rpartition("/")[2]
