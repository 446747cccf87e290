"""A simulated disk: the twin of `ottla.storage.fs.RealFilesystem` that can lose power, fill up and fail.

What was written is visible at once, as through a page cache. What was synced is durable: a file's bytes by `File.sync`,
the names in a directory by `sync_dir`. `crash` returns the disk as the next start would find it.
"""

import errno
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ottla.storage.fs import Buffer, Entry, file_name, parent


class Crashed(BaseException):
    """Power was lost at this operation. No handler for disk errors may catch it."""


class Inode:
    __slots__ = ("data", "durable", "modified_ms")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.modified_ms = 0


class Rename(NamedTuple):
    """One change of a directory that is not durable yet: `path` now names `inode`, or nothing."""

    path: str
    inode: Inode | None


def _moved(path: str, source: str, target: str) -> str:
    """`path`, if the directory `source` above it is called `target`."""
    return target + path[len(source) :] if path == source or path.startswith(source + "/") else path


class SimFile:
    __slots__ = ("_disk", "_inode", "path")

    def __init__(self, disk: "SimDisk", path: str, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path

    def pwrite(self, data: Buffer, position: int) -> None:
        disk, content = self._disk, self._inode.data
        disk.step("pwrite", self.path)
        grow = max(0, position + len(data) - len(content))
        room = disk.take_room(grow)
        kept = bytes(data)[: len(data) - (grow - room)]
        if position > len(content):
            content.extend(bytes(position - len(content)))
        content[position : position + len(kept)] = kept
        if room < grow:
            raise OSError(errno.ENOSPC, "no space left on the simulated disk")

    def pread(self, length: int, position: int) -> bytes:
        return bytes(self._inode.data[position : position + length])

    def size(self) -> int:
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self.path)
        content = self._inode.data
        if size < len(content):
            self._disk.used -= len(content) - size
            del content[size:]
        else:
            content.extend(bytes(size - len(content)))

    def sync(self) -> None:
        self._disk.step("sync", self.path)
        if self._disk.failing_sync(self.path):
            # As Linux does: the dirty pages are dropped from its books, the next fsync would report success.
            raise OSError(errno.EIO, "simulated fsync failure")
        self._inode.durable = bytes(self._inode.data)

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a simulated file has no descriptor")


class SimDisk:
    """`crash_at` counts the changing operations down: the one it names does not happen any more."""

    concurrency = 1

    def __init__(self, *, room: int | None = None, crash_at: int | None = None) -> None:
        self.names: dict[str, Inode] = {}
        self.dirs: set[str] = {"/"}
        self.durable_names: dict[str, Inode] = {}
        self.durable_dirs: set[str] = {"/"}
        self.pending: list[Rename] = []
        self.moved_dirs: list[tuple[str, str]] = []
        """Directories whose new names are not durable yet: each has its old one or its new one, and all its files."""
        self.room = room
        self.used = 0
        self.crash_at = crash_at
        self.steps: list[str] = []
        self.failing_sync: Callable[[str], bool] = lambda path: False
        self.locked: set[str] = set()
        self.broken_below = ""
        """Below this path nothing can be written."""

    # -- what goes wrong -----------------------------------------------------------------------------------------

    def step(self, operation: str, path: str) -> None:
        if self.broken_below and path.startswith(self.broken_below):
            raise OSError(errno.EIO, "this part of the simulated disk is broken")
        if self.crash_at is not None and len(self.steps) >= self.crash_at:
            raise Crashed(f"{operation} {path}")
        self.steps.append(f"{operation} {path}")

    def take_room(self, wanted: int) -> int:
        """How much of `wanted` there is room for."""
        got = wanted if self.room is None else max(0, min(wanted, self.room - self.used))
        self.used += got
        return got

    def killed(self) -> "SimDisk":
        """The process died, the page cache lives: everything visible stays."""
        return self._copy({path: bytes(inode.data) for path, inode in self.names.items()}, set(self.dirs))

    def crash(self, dice: Random) -> "SimDisk":
        """Power was lost: names change in order up to some point, unsynced bytes stay in part, or as zeroes."""
        names = dict(self.durable_names)
        for change in self.pending[: dice.randint(0, len(self.pending))]:
            if change.inode is None:
                names.pop(change.path, None)
            else:
                names[change.path] = change.inode
        content, dirs = {path: _torn(inode, dice) for path, inode in names.items()}, set(self.dirs)
        for source, target in reversed(self.moved_dirs[dice.randint(0, len(self.moved_dirs)) :]):
            content = {_moved(path, target, source): data for path, data in content.items()}
            dirs = {_moved(path, target, source) for path in dirs}
        return self._copy(content, dirs)

    def _copy(self, content: dict[str, bytes], dirs: set[str]) -> "SimDisk":
        disk = SimDisk(room=self.room)
        disk.broken_below = self.broken_below
        for path, data in content.items():
            inode = Inode()
            inode.data, inode.durable = bytearray(data), data
            disk.names[path] = disk.durable_names[path] = inode
            disk.used += len(data)
        disk.dirs = dirs | {parent(path) for path in content}
        disk.durable_dirs = set(disk.dirs)
        return disk

    # -- Filesystem ----------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> SimFile:
        inode = self.names.get(path)
        if inode is None:
            if not create or parent(path) not in self.dirs:
                raise FileNotFoundError(errno.ENOENT, "no such simulated file", path)
            self.step("create", path)
            inode = self.names[path] = Inode()
            self.pending.append(Rename(path, inode))
        return SimFile(self, path, inode)

    def read(self, path: str) -> bytes:
        return bytes(self.open(path)._inode.data)

    def list(self, path: str) -> list[Entry]:
        if path not in self.dirs:
            raise FileNotFoundError(errno.ENOENT, "no such simulated directory", path)
        files = [
            Entry(file_name(name), False, len(inode.data), inode.modified_ms)
            for name, inode in self.names.items()
            if parent(name) == path
        ]
        return files + [
            Entry(file_name(name), True, 0, 0) for name in sorted(self.dirs) if parent(name) == path != name
        ]

    def exists(self, path: str) -> bool:
        return path in self.names or path in self.dirs

    def mkdir(self, path: str) -> None:
        while path not in self.dirs:
            self.step("mkdir", path)
            self.dirs.add(path)
            path = parent(path)

    def rename(self, source: str, target: str) -> None:
        if source in self.dirs:
            self._rename_dir(source, target)
            return
        if source not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such simulated file", source)
        self.step("rename", source)
        replaced = self.names.get(target)
        if replaced is not None:
            self.used -= len(replaced.data)
        inode = self.names.pop(source)
        self.names[target] = inode
        self.pending += [Rename(target, inode), Rename(source, None)]

    def _rename_dir(self, source: str, target: str) -> None:
        self.step("rename", source)
        self.dirs = {_moved(path, source, target) for path in self.dirs}
        self.names = {_moved(path, source, target): inode for path, inode in self.names.items()}
        self.durable_names = {_moved(path, source, target): inode for path, inode in self.durable_names.items()}
        self.pending = [Rename(_moved(path, source, target), inode) for path, inode in self.pending]
        self.moved_dirs.append((source, target))

    def remove(self, path: str) -> None:
        if path in self.names:
            self.step("remove", path)
            self.used -= len(self.names.pop(path).data)
            self.pending.append(Rename(path, None))

    def rmdir(self, path: str) -> None:
        self.step("rmdir", path)
        self.dirs.discard(path)

    def sync_dir(self, path: str) -> None:
        if path not in self.dirs:
            raise FileNotFoundError(errno.ENOENT, "no such simulated directory", path)
        self.step("sync_dir", path)
        if self.failing_sync(path):
            raise OSError(errno.EIO, "simulated fsync failure")
        rest = []
        for change in self.pending:
            if parent(change.path) != path:
                rest.append(change)
            elif change.inode is None:
                self.durable_names.pop(change.path, None)
            else:
                self.durable_names[change.path] = change.inode
        self.pending = rest
        self.moved_dirs = [(source, target) for source, target in self.moved_dirs if parent(target) != path]

    def lock(self, path: str) -> object | None:
        if path in self.locked:
            return None
        self.open(path, create=True)
        self.locked.add(path)
        return _Lock(self, path)

    def reserve(self, path: str, size: int) -> None:
        file = self.open(path, create=True)
        file.truncate(0)
        file.pwrite(bytes(size), 0)

    def space(self, path: str) -> tuple[int, int]:
        total = 1 << 40 if self.room is None else self.room
        return total - self.used, total


class _Lock:
    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def __del__(self) -> None:
        self._disk.locked.discard(self._path)


def _torn(inode: Inode, dice: Random) -> bytes:
    """Synced bytes stay; of what was appended since, a prefix, its rest gone or zeroed."""
    data, durable = bytes(inode.data), inode.durable
    if data == durable:
        return data
    if not data.startswith(durable):  # truncated or overwritten since: either version
        return dice.choice((data, durable))
    cut = dice.randint(len(durable), len(data))
    return data[:cut] + bytes(dice.choice((0, 0, len(data) - cut)))
