"""What has to reach the disk, noted on the loop and carried out by a thread that only waits for the disk."""

from contextlib import suppress

from ottla.storage.fs import File, Filesystem, Latch, StorageError


class Flush:
    """What has to reach the disk before the recovery point may move to `offset`."""

    __slots__ = ("dirs", "files", "fs", "generation", "latch", "offset", "paths")

    def __init__(self, fs: Filesystem, latch: Latch, offset: int, generation: int) -> None:
        self.fs = fs
        self.latch = latch
        self.offset = offset
        self.generation = generation
        self.files: list[File] = []
        self.paths: list[str] = []
        self.dirs: list[str] = []

    def run(self) -> None:
        """May run in any thread. Log first, then indexes and snapshots, then the directories that name them."""
        try:
            for file in self.files:
                file.sync()
            for path in self.paths:
                with suppress(FileNotFoundError):  # deleted since the flush began
                    self.fs.open(path).sync()
            for directory in self.dirs:
                with suppress(FileNotFoundError):
                    self.fs.sync_dir(directory)
        except OSError as error:
            failure = StorageError(self.latch.directory, "fsync failed", error)
            self.latch.take_offline(failure)  # even for ENOSPC: a failed fsync is never retried
            raise failure from error
