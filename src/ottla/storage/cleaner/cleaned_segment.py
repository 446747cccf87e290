"""The segment that takes the place of a group: written beside it as `.cleaned`, durable before anyone hears of it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ottla.storage import names
from ottla.storage.cleaner.facts import Replacement
from ottla.storage.fs import Buffer, File, Filesystem, parent
from ottla.storage.index import NO_TIMESTAMP, AbortedTxn, OffsetIndex, TimeIndex, pack_aborted

_WRITE_BYTES: Final = 256 << 10
_SYNC_BYTES: Final = 16 << 20
"""Synced as it grows: one big fsync at the end would hold up the appends of every log on the disk."""


class CleanedSegment:
    __slots__ = (
        "_buffered",
        "_file",
        "_fs",
        "_index_interval",
        "_pieces",
        "_prefix",
        "_since_index",
        "_size",
        "_unsynced",
        "base_offset",
        "latest",
        "offsets",
        "times",
    )

    def __init__(self, fs: Filesystem, directory: str, base_offset: int, index_interval: int) -> None:
        self._fs = fs
        self._prefix = names.segment_prefix(directory, base_offset)
        self._index_interval = index_interval
        self.base_offset = base_offset
        self.offsets = OffsetIndex(base_offset)
        self.times = TimeIndex(base_offset)
        self.latest = (NO_TIMESTAMP, base_offset)
        """Greatest timestamp, and the last offset of the batch that brought it."""
        self._file = self._empty_file(names.LOG)
        self._pieces: list[Buffer] = []
        self._buffered = self._size = self._since_index = self._unsynced = 0

    def _empty_file(self, suffix: str) -> File:
        file = self._fs.open(self._prefix + suffix + names.CLEANED, create=True)
        file.truncate(0)
        return file

    def add(self, batch: Buffer, last_offset: int, max_timestamp: int) -> int:
        """Returns how many bytes went to the disk."""
        if max_timestamp > self.latest[0]:
            self.latest = (max_timestamp, last_offset)
        if self._since_index > self._index_interval:
            self.offsets.append(last_offset, self._size + self._buffered)
            self.times.maybe_append(*self.latest)
            self._since_index = 0
        size = len(batch)
        self._since_index += size
        self._buffered += size
        self._pieces.append(batch)
        return self._write() if self._buffered >= _WRITE_BYTES else 0

    def _write(self) -> int:
        written = self._buffered
        self._file.pwrite(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces), self._size)
        self._pieces = []
        self._buffered = 0
        self._size += written
        self._unsynced += written
        if self._unsynced >= _SYNC_BYTES:
            self._file.sync()
            self._unsynced = 0
        return written

    def finish(self, aborted: Sequence[AbortedTxn]) -> Replacement:
        if self._pieces:
            self._write()
        self.times.maybe_append(*self.latest)
        files = [self._file]
        suffixes = [names.LOG]
        contents = [(names.INDEX, self.offsets.pending()[0]), (names.TIME_INDEX, self.times.pending()[0])]
        if aborted:
            contents.append((names.TXN_INDEX, b"".join(pack_aborted(txn) for txn in aborted)))
        for suffix, data in contents:
            file = self._empty_file(suffix)
            file.pwrite(data, 0)
            files.append(file)
            suffixes.append(suffix)
        sync_together(self._fs, files)
        self._fs.sync_dir(parent(self._prefix))
        return Replacement(self.base_offset, self._size, *self.latest, tuple(suffixes))


def sync_together(fs: Filesystem, files: Sequence[File]) -> None:
    """File systems write down in one go what is asked of them at once; one after the other each wait is a whole one."""
    if fs.concurrency == 1:
        for file in files:
            file.sync()
        return
    with ThreadPoolExecutor(len(files)) as threads:
        list(threads.map(_sync, files))


def _sync(file: File) -> None:
    file.sync()


def discard(fs: Filesystem, directory: str, base_offset: int) -> None:
    """Removes what a round that came to nothing has written."""
    prefix = names.segment_prefix(directory, base_offset)
    for suffix in names.SEGMENT_SUFFIXES:
        fs.remove(prefix + suffix + names.CLEANED)
