"""A metadata log for the simulation: one record per offset, a disk that loses what was not synced."""

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from ottla.raft.exchange import EpochEnd
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import VoterHistory, VoterSet

Entry = tuple[int, object, int]
"""Epoch, value (voters if it changes them), and the hash of everything up to and including it."""


class SimSnapshot(NamedTuple):
    id: SnapshotId
    hash: int
    """Of all records it stands for."""
    voters: VoterSet | None
    kraft_version: int


class SimLog:
    __slots__ = (
        "_entries",
        "_epoch_starts",
        "_epochs",
        "_ghost",
        "base_hash",
        "durable",
        "end_offset",
        "flushed",
        "generation",
        "history",
        "last_epoch",
        "snapshots",
        "start_offset",
    )

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []
        self._ghost: list[Entry] = []
        """A truncated tail that a crash can bring back."""
        self.base_hash = 0
        self.start_offset = 0
        self.end_offset = 0
        self.flushed = -1
        self.durable = 0
        """What the disk really has; `flushed` is what the node was told since it started."""
        self.generation = 0
        self.last_epoch = 0
        self.history = VoterHistory()
        self.snapshots: list[SimSnapshot] = []

    # What the core reads

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1].id if self.snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0].id if self.snapshots else None

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        return _SNAPSHOT_BYTES if any(s.id == snapshot for s in self.snapshots) else None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        if epoch >= self.last_epoch:
            return EpochEnd(self.last_epoch, self.end_offset)
        slot = bisect_right(self._epochs, epoch)
        if slot == 0:
            if self.snapshots:
                return EpochEnd(*reversed(self.snapshots[0].id))
            return EpochEnd(epoch, self.start_offset)
        return EpochEnd(self._epochs[slot - 1], self._epoch_starts[slot])

    # What the checkers read

    def entry(self, offset: int) -> Entry:
        return self._entries[offset - self.start_offset]

    def prefix_hash(self, offset: int) -> int:
        index = offset - self.start_offset
        return self.base_hash if index == 0 else self._entries[index - 1][2]

    def has_durably(self, offset: int, prefix: int) -> bool:
        if offset > self.durable:
            return False
        return offset < self.start_offset or self.prefix_hash(offset) == prefix

    def is_voters(self, offset: int) -> bool:
        return isinstance(self.entry(offset)[1], VoterSet)

    def voter_changes_from(self, offset: int) -> int:
        first = max(offset - self.start_offset, 0)
        return sum(isinstance(e[1], VoterSet) for e in self._entries[first:])

    # What happens to it

    def append(self, epoch: int, value: object) -> None:
        before = self._entries[-1][2] if self._entries else self.base_hash
        mark = value if isinstance(value, int) else -1
        self.put((epoch, value, hash((before, epoch, mark))))

    def put(self, entry: Entry) -> None:
        self._entries.append(entry)
        if entry[0] > self.last_epoch or not self._epochs:
            self._epochs.append(entry[0])
            self._epoch_starts.append(self.end_offset)
            self.last_epoch = entry[0]
        if type(entry[1]) is VoterSet:
            self.history.add(self.end_offset, voters=entry[1], kraft_version=1)
        self.end_offset += 1

    def read(self, offset: int, limit: int) -> tuple[int, list[Entry]]:
        first = offset - self.start_offset
        return offset, self._entries[first : first + limit]

    def truncate_to(self, offset: int) -> None:
        keep = offset - self.start_offset
        self._ghost = self._entries[keep : self.durable - self.start_offset] + self._ghost
        del self._entries[keep:]
        self.end_offset = offset
        self._forget_epochs()
        self.durable = min(self.durable, offset)
        self.flushed = min(self.flushed, offset)
        self.generation += 1
        self.history.truncate_to(offset)

    def _forget_epochs(self) -> None:
        while self._epoch_starts and self._epoch_starts[-1] >= self.end_offset:
            self._epochs.pop()
            self._epoch_starts.pop()
        snapshot_epoch = self.snapshots[-1].id.epoch if self.snapshots else 0
        self.last_epoch = self._epochs[-1] if self._epochs else snapshot_epoch

    def synced(self, end_offset: int, generation: int) -> None:
        if generation == self.generation:
            self.flushed = max(self.flushed, end_offset)
            self.durable = max(self.durable, end_offset)
            self._ghost = []

    def take_snapshot(self, offset: int) -> SimSnapshot:
        """Everything below `offset` may go from the log."""
        known = self.history.at(offset)
        voters = known.voters if known.kraft_version else None
        epoch = self.entry(offset - 1)[0]
        taken = SimSnapshot(SnapshotId(offset, epoch), self.prefix_hash(offset), voters, known.kraft_version)
        self.snapshots = [taken]
        del self._entries[: offset - self.start_offset]
        self.base_hash = taken.hash
        self.start_offset = offset
        slot = bisect_right(self._epoch_starts, offset)
        if slot:
            del self._epochs[: slot - 1]
            del self._epoch_starts[: slot - 1]
            self._epoch_starts[0] = offset
        self._ghost = []
        self.durable = max(self.durable, offset)  # the snapshot has it now
        if self.flushed >= 0:
            self.flushed = max(self.flushed, offset)
        if not self._entries:
            self._epochs.clear()
            self._epoch_starts.clear()
            self.last_epoch = epoch
        self.history.forget_before(offset)
        return taken

    def install(self, snapshot: SimSnapshot) -> None:
        self._entries.clear()
        self._epochs.clear()
        self._epoch_starts.clear()
        self._ghost = []
        self.snapshots = [snapshot]
        self.base_hash = snapshot.hash
        self.start_offset = self.end_offset = self.durable = self.flushed = snapshot.id.offset
        self.last_epoch = snapshot.id.epoch
        self.generation += 1
        self.history.restart(snapshot.id.offset - 1, snapshot.voters, snapshot.kraft_version)

    def crash(self, draw: Callable[[int, int], int]) -> None:
        """What was not synced is lost from a random record on; a truncation that was not synced may be undone."""
        survivors = draw(self.durable, self.end_offset)
        if survivors == self.durable and self._ghost and self.end_offset == self.durable and draw(0, 1):
            for entry in self._ghost:
                self.put(entry)
            survivors = self.end_offset
        self._ghost = []
        del self._entries[survivors - self.start_offset :]
        self.end_offset = self.durable = survivors
        self._forget_epochs()
        self.history.truncate_to(survivors)
        self.flushed = -1
        self.generation += 1


_SNAPSHOT_BYTES = 30
