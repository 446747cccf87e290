"""Leader epochs of one log: at which offset each began. Kafka's LeaderEpochFileCache.

The file is written on the first append of a new epoch and when entries go, never merely because a log was opened. It is
made durable by the flush that lets the recovery point pass; every batch carries its epoch, so recovery can rebuild it.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from ottla.storage import names
from ottla.storage.checkpoints import CorruptCheckpoint, decode_epochs, encode_epochs
from ottla.storage.fs import Filesystem, replace_file

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEnd(NamedTuple):
    """The greatest epoch that is not above the one asked for, and where it ends."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    __slots__ = ("_fs", "_path", "dirty", "epochs", "latest", "starts")

    def __init__(self, fs: Filesystem, directory: str) -> None:
        self._fs = fs
        self._path = f"{directory}/{names.LEADER_EPOCHS}"
        self.epochs: list[int] = []
        self.starts: list[int] = []
        self.latest = NO_EPOCH
        self.dirty = False
        """The file has changed since it was last synced."""

    def load(self) -> bool:
        """False when there is no readable file: the caller knows whether the log should have one."""
        try:
            entries = decode_epochs(self._fs.read(self._path))
        except (FileNotFoundError, CorruptCheckpoint):
            return False
        for epoch, start in entries:
            self._place(epoch, start)
        return bool(entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        if self._place(epoch, start_offset):
            self.write()

    def _place(self, epoch: int, start_offset: int) -> bool:
        """Epochs and offsets both grow; an entry that contradicts the newer one goes."""
        if epoch < 0 or (self.epochs and epoch == self.latest and start_offset >= self.starts[-1]):
            return False
        keep = min(bisect_left(self.epochs, epoch), bisect_left(self.starts, start_offset))
        del self.epochs[keep:]
        del self.starts[keep:]
        self.epochs.append(epoch)
        self.starts.append(start_offset)
        self.latest = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        if epoch == NO_EPOCH or not self.epochs or epoch > self.latest:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(self.epochs, epoch)
        if above == 0:
            # Older than anything known: its data is gone, so the follower starts where the first known epoch does.
            return EpochEnd(epoch, self.starts[0])
        return EpochEnd(self.epochs[above - 1], self.starts[above])

    def epoch_for(self, offset: int) -> int:
        slot = bisect_right(self.starts, offset)
        return self.epochs[slot - 1] if slot else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        keep = bisect_left(self.starts, end_offset)
        if keep == len(self.starts):
            return False
        del self.epochs[keep:]
        del self.starts[keep:]
        self.latest = self.epochs[-1] if self.epochs else NO_EPOCH
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """The epoch in force at `start_offset` now begins there."""
        gone = bisect_right(self.starts, start_offset)
        if gone == 0 or (gone == 1 and self.starts[0] == start_offset):
            return False
        del self.epochs[: gone - 1]
        del self.starts[: gone - 1]
        self.starts[0] = start_offset
        return True

    def clear(self) -> None:
        self.epochs, self.starts, self.latest = [], [], NO_EPOCH

    def write(self) -> None:
        self.dirty = True  # before: a write that failed for lack of room is made good by the next flush
        replace_file(self._fs, self._path, encode_epochs(zip(self.epochs, self.starts, strict=True)), sync=False)

    @property
    def path(self) -> str:
        return self._path

    def moved(self, directory: str) -> None:
        """The log's directory has another name."""
        self._path = f"{directory}/{names.LEADER_EPOCHS}"
