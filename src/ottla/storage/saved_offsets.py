"""The offsets that a log directory keeps in files of their own, for all of its logs together.

Recovery points and log starts are promises, of which this module takes care; high watermarks and how far logs are clean
are worth what the broker makes of them.

A promise is written after what it promises, and taken back before that goes. A file is written by whichever thread has
the time for it, one at a time.
"""

from collections.abc import Collection, Mapping
from threading import Lock

from ottla.model.ids import TopicPartition
from ottla.storage import checkpoints, names
from ottla.storage.fs import Filesystem, Latch, replace_file
from ottla.storage.log import Log


class Checkpoint:
    """Checkpoint files to write: `run` may happen in any thread, and does not look at the logs again."""

    __slots__ = ("_saved", "files", "recovery_points", "stale")

    def __init__(
        self, saved: "SavedOffsets", files: list[tuple[str, bytes]], recovery_points: dict[TopicPartition, int]
    ) -> None:
        self._saved = saved
        self.files = files
        self.recovery_points = recovery_points
        self.stale = False
        """A truncation has overtaken it: what it would write promises too much."""

    def run(self) -> None:
        saved = self._saved
        saved.latch.check()
        try:
            for path, data in self.files:
                with saved.mutex:
                    if not self.stale:
                        replace_file(saved.fs, path, data)
        except OSError as error:
            saved.latch.fail("cannot write a checkpoint", error)


class SavedOffsets:
    __slots__ = (
        "_path",
        "_pending",
        "cleaned_to",
        "fs",
        "high_watermarks",
        "latch",
        "log_starts",
        "mutex",
        "recovery_points",
    )

    def __init__(self, fs: Filesystem, path: str, latch: Latch) -> None:
        self.fs = fs
        self._path = path
        self.latch = latch
        self.mutex = Lock()
        """Around every write of a checkpoint file: the only thing two threads of a node may do at once."""
        self._pending: Checkpoint | None = None
        self.recovery_points: dict[TopicPartition, int] = {}
        """As the disk has them."""
        self.log_starts: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        """As last checkpointed."""
        self.cleaned_to: dict[TopicPartition, int] = {}
        """How far each compacted log is clean, as of its last round."""

    def begin(self, logs: Mapping[TopicPartition, Log], refused: Collection[TopicPartition]) -> Checkpoint:
        """What the logs are sure of now; damaged ones, which are `refused`, keep their old entries."""
        self.latch.check()
        recovery_points = {tp: self.recovery_points[tp] for tp in refused if tp in self.recovery_points}
        starts = {tp: self.log_starts[tp] for tp in refused if tp in self.log_starts}
        for partition, log in logs.items():
            recovery_points[partition] = log.recovery_point
            if log.log_start_offset > log.segments[0].base_offset:
                starts[partition] = log.log_start_offset
        self.log_starts = starts
        files = [
            (f"{self._path}/{names.RECOVERY_POINTS}", checkpoints.encode_offsets(recovery_points)),
            (f"{self._path}/{names.LOG_STARTS}", checkpoints.encode_offsets(starts)),
        ]
        self._pending = Checkpoint(self, files, recovery_points)
        return self._pending

    def done(self, checkpoint: Checkpoint) -> None:
        if not checkpoint.stale:
            self.recovery_points = checkpoint.recovery_points

    def lower_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Before data goes, the promise about it goes: else recovery would take a torn tail for damage."""
        pending = self._pending
        if pending is not None and pending.recovery_points.get(partition, 0) > offset:
            pending.stale = True
            self.recovery_points[partition] = pending.recovery_points[partition]
            self._pending = None
        if self.recovery_points.get(partition, 0) > offset:
            self.recovery_points[partition] = offset
            self.replace(names.RECOVERY_POINTS, checkpoints.encode_offsets(self.recovery_points))

    def forget(self, partition: TopicPartition) -> None:
        """A new log is to begin under this name."""
        self.lower_recovery_point(partition, 0)
        if self.log_starts.pop(partition, 0):
            self.replace(names.LOG_STARTS, checkpoints.encode_offsets(self.log_starts))

    def replace(self, name: str, data: bytes) -> None:
        self.latch.check()
        try:
            with self.mutex:
                replace_file(self.fs, f"{self._path}/{name}", data)
        except OSError as error:
            self.latch.fail(f"cannot write {name}", error)
