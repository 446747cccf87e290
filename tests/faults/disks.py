"""What nodes write to: a plain directory, or a disk of their own that can fill up and lose power.

`LoopDisk` is ext4 on a sparse image (root). Its power cut is the file system's own shutdown call: everything that was
not synced is gone, what was synced is there at the next mount, as after a pulled plug.
"""

import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final, Protocol

# linux/fs/ext4: _IOR('X', 125, __u32), with the flag that leaves the journal unflushed
_EXT4_IOC_SHUTDOWN: Final = 0x8004587D
_NO_LOG_FLUSH: Final = struct.pack("I", 2)
LOOP_BYTES: Final = 2 << 30


class Disk(Protocol):
    directory: Path

    def settle(self) -> None:
        """Syncs what is there. Kafka's format tool does not, and what it wrote is gone after a power cut soon after."""

    def close(self) -> None: ...


class PlainDisk:
    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class LoopDisk:
    def __init__(self, directory: Path, size: int = LOOP_BYTES) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._image = directory.with_suffix(".img")
        with self._image.open("wb") as image:
            image.truncate(size)
        _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1", str(self._image))
        self._mount()

    def settle(self) -> None:
        _run("sync", "-f", str(self.directory))

    def fill(self) -> None:
        """Takes all the space that is left."""
        free = os.statvfs(self.directory)
        piece, size = free.f_bavail * free.f_bsize, 0
        with (self.directory / "ballast").open("wb") as ballast:
            while piece >= free.f_bsize:
                try:
                    os.posix_fallocate(ballast.fileno(), size, piece)
                    size += piece
                except OSError:
                    piece //= 2  # the file system needs some room for its own notes

    def free(self) -> None:
        (self.directory / "ballast").unlink(missing_ok=True)

    def cut_power(self) -> None:
        """From here on nothing reaches the disk, and nothing unsynced will ever be seen again."""
        root = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.ioctl(root, _EXT4_IOC_SHUTDOWN, _NO_LOG_FLUSH)
        finally:
            os.close(root)

    def restore_power(self) -> None:
        """Mounts what survived. Nobody may have a file open there."""
        _run("umount", str(self.directory))
        self._mount()

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.directory)], capture_output=True, check=False)

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.directory))


def loop_disks_work() -> bool:
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("mkfs.ext4", "mount", "umount"))


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
