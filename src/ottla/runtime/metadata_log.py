"""The metadata log on the disk: `__cluster_metadata-0` with Kafka's segments, snapshots and quorum-state file.

Loading gives the image; afterwards this is a `runner.Journal`. What may be appended is decided elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.metadata.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    decode_batch,
    encode_batches,
    encode_control_batch,
)
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import image_records
from ottla.metadata.replay import Replayer, image_of
from ottla.model.ids import TopicPartition, Uuid
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.raft import election
from ottla.raft.election import ElectionState
from ottla.raft.snapshots import (
    PARTIAL_SUFFIX,
    SUFFIX,
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    log_start_after_cleaning,
    parse_name,
)
from ottla.raft.voters import VoterSet, voters_of
from ottla.runtime.formatting import METADATA_LOG
from ottla.runtime.runner import Placed
from ottla.storage.config import LogConfig
from ottla.storage.fs import Filesystem, Latch, StorageError, replace_file
from ottla.storage.log import RAFT, Deletion, Log, Rejected
from ottla.storage.segment import OpenFiles

TOPIC_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
TOPIC_ID: Final = Uuid((1).to_bytes(16, "big"))
_LONG_TAIL_BYTES: Final = 1 << 20
_CONTROL_TYPES: Final = {
    "LeaderChangeMessage": LEADER_CHANGE,
    "KRaftVersionRecord": KRAFT_VERSION,
    "VotersRecord": KRAFT_VOTERS,
}


class MetadataLogError(Exception):
    """The metadata log cannot be used; the text says why and what to do."""


class QuorumFacts(NamedTuple):
    """What the log itself says about its quorum (KIP-853)."""

    kraft_version: int = 0
    voters: VoterSet | None = None
    voters_offset: int = -1


@dataclass(frozen=True, slots=True)
class MetadataLogSettings:
    path: str
    segment_bytes: int
    segment_ms: int
    retention_bytes: int
    retention_ms: int
    snapshot_bytes: int
    snapshot_interval_ms: int

    @classmethod
    def of(cls, settings: Settings) -> "MetadataLogSettings":
        return cls(
            path=f"{settings.metadata_log_dir}/{METADATA_LOG}",
            segment_bytes=settings.get_int("metadata.log.segment.bytes"),
            segment_ms=settings.get_int("metadata.log.segment.ms"),
            retention_bytes=settings.get_int("metadata.max.retention.bytes"),
            retention_ms=settings.get_int("metadata.max.retention.ms"),
            snapshot_bytes=settings.get_int("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_interval_ms=settings.get_int("metadata.log.max.snapshot.interval.ms"),
        )

    @property
    def log_config(self) -> LogConfig:
        """Retention is a matter of snapshots, never of the log alone."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
            max_message_bytes=8 << 20,
        )


class MetadataLog:
    __slots__ = (
        "_clock",
        "_files",
        "_latch",
        "_snapshot_bytes",
        "_unsaved_bytes",
        "epoch",
        "log",
        "metadata_version",
        "quorum",
        "settings",
        "snapshots",
    )

    def __init__(self, settings: MetadataLogSettings, files: OpenFiles, clock: Clock) -> None:
        self.settings = settings
        self._files = files
        self._clock = clock
        self._latch = Latch(settings.path.rpartition("/")[0])
        self.log = self._open_log()
        self.snapshots: list[SnapshotId] = []
        self._snapshot_bytes: dict[SnapshotId, tuple[int, int]] = {}
        """Size and the time of the last record in it, of each snapshot."""
        self._unsaved_bytes = 0
        self.epoch = 0
        self.metadata_version = 0
        self.quorum = QuorumFacts()

    @property
    def fs(self) -> Filesystem:
        return self._files.fs

    def _open_log(self) -> Log:
        path, config, now = self.settings.path, self.settings.log_config, self._clock.wall()
        names = [entry.name for entry in self.fs.list(path)] if self.fs.exists(path) else []
        if not any(name.endswith(".log") for name in names):
            newest = max((f.id for n in names if (f := parse_name(n)) and f.suffix == SUFFIX), default=None)
            return Log.create(
                self._files,
                path,
                TOPIC_PARTITION,
                TOPIC_ID,
                config,
                now=now,
                log_start_offset=newest.offset if newest else 0,
                latch=self._latch,
            )
        # Like Kafka we check the whole log at each start: it is small, and nothing else says how far it was flushed.
        return Log.open(
            self._files,
            path,
            TOPIC_PARTITION,
            TOPIC_ID,
            config,
            now=now,
            clean=False,
            recovery_point=0,
            log_start_offset=0,
            latch=self._latch,
        )

    # Loading

    def load(self, cluster_id: str) -> Replayer:
        """Latest snapshot and what the log holds after it."""
        self._find_snapshots()
        image = MetadataImage(cluster_id=cluster_id)
        start = 0
        if self.snapshots:
            image = self._load_snapshot(self.snapshots[-1], cluster_id)
            start = self.snapshots[-1].offset
            self._skip_to_snapshot()
        elif self.log.log_start_offset > 0:
            raise MetadataLogError(
                f"{self.settings.path} begins at offset {self.log.log_start_offset} and no snapshot holds what came "
                "before. Restore the .checkpoint file."
            )
        replayer = Replayer(image)
        for data in self.log.batches(start):
            self._unsaved_bytes += len(data)
            batch = decode_batch(data)
            if batch.is_control:
                self._note_quorum(batch.records, batch.last_offset)
                replayer.control_batch(batch.last_offset, batch.epoch, batch.timestamp)
            else:
                replayer.batch(batch.records, batch.base_offset, batch.epoch, batch.timestamp)
        return replayer

    def _find_snapshots(self) -> None:
        """Leftovers of interrupted writes go, and so do snapshots the log has moved past."""
        for entry in sorted(self.fs.list(self.settings.path)):
            found = parse_name(entry.name)
            if found is None:
                continue
            if found.suffix != SUFFIX or found.id.offset < self.log.log_start_offset:
                self.fs.remove(f"{self.settings.path}/{entry.name}")
            else:
                self.snapshots.append(found.id)
        self.snapshots.sort()

    def _load_snapshot(self, snapshot: SnapshotId, cluster_id: str) -> MetadataImage:
        loaded = decode_snapshot(self.fs.read(self._snapshot_path(snapshot)))
        self.quorum = QuorumFacts(loaded.kraft_version, loaded.voters, snapshot.offset - 1)
        if snapshot.offset == 0:
            return image_of(loaded.records, cluster_id)
        return image_of(
            loaded.records,
            cluster_id,
            offset=snapshot.offset - 1,
            epoch=snapshot.epoch,
            timestamp=loaded.last_contained_timestamp,
        )

    def _skip_to_snapshot(self) -> None:
        """A snapshot beyond the end of the log: the log stopped short while it was being replaced."""
        latest = self.snapshots[-1]
        if latest.offset > self.log.log_end_offset:
            self.log.truncate_fully_and_start_at(latest.offset, self._clock.wall())

    def _note_quorum(self, records: Sequence[Message], offset: int) -> None:
        for record in records:
            if isinstance(record, messages.KRaftVersionRecord):
                self.quorum = self.quorum._replace(kraft_version=record.kraft_version)
            elif isinstance(record, messages.VotersRecord):
                self.quorum = self.quorum._replace(voters=voters_of(record), voters_offset=offset)

    @property
    def last_epoch(self) -> int:
        if self.log.latest_epoch >= 0:
            return self.log.latest_epoch
        return self.snapshots[-1].epoch if self.snapshots else 0

    def read_election(self) -> ElectionState:
        try:
            return election.decode(self.fs.read(f"{self.settings.path}/{election.FILE_NAME}"))
        except FileNotFoundError:
            return ElectionState()

    def write_election(self, state: ElectionState, voter_ids: Sequence[int]) -> None:
        """Durable when it returns; may run in any thread."""
        data = election.encode(state, min(self.quorum.kraft_version, 1), voter_ids)
        replace_file(self.fs, f"{self.settings.path}/{election.FILE_NAME}", data)

    # Appending

    def append(self, records: Sequence[Message]) -> Placed:
        now = self._clock.wall()
        base_offset = self.log.log_end_offset
        batches = encode_batches(
            records,
            base_offset=base_offset,
            epoch=self.epoch,
            timestamp=now,
            metadata_version=self.metadata_version,
        )
        self._write(batches[0] if len(batches) == 1 else bytearray().join(batches), now)
        return Placed(base_offset, base_offset + len(records) - 1, self.epoch, now)

    def append_control(self, records: Sequence[Message]) -> Placed:
        now = self._clock.wall()
        base_offset = self.log.log_end_offset
        batch = encode_control_batch(
            [(_CONTROL_TYPES[type(r).__name__], r) for r in records],
            base_offset=base_offset,
            epoch=self.epoch,
            timestamp=now,
        )
        self._write(batch, now)
        self._note_quorum(records, base_offset + len(records) - 1)
        return Placed(base_offset, base_offset + len(records) - 1, self.epoch, now)

    def _write(self, data: bytearray, now: int) -> None:
        outcome = self.log.append_as_leader(memoryview(data), self.epoch, now, origin=RAFT)
        if isinstance(outcome, Rejected):
            raise StorageError(self._latch.directory, f"the metadata log refuses a batch: {outcome.message}")
        self._unsaved_bytes += len(data)

    # Snapshots

    @property
    def wants_snapshot(self) -> bool:
        return self._unsaved_bytes >= self.settings.snapshot_bytes

    @property
    def has_unsaved(self) -> bool:
        return self._unsaved_bytes > 0

    @property
    def is_long(self) -> bool:
        """So much lies behind the last snapshot that the next start would feel it."""
        return self._unsaved_bytes >= _LONG_TAIL_BYTES

    def begin_snapshot(self, image: MetadataImage) -> "SnapshotJob":
        """`image` must be committed. The job may run in any thread; `finish_snapshot` belongs to the loop again."""
        self._unsaved_bytes = 0
        return SnapshotJob(self, image, self.quorum, self._clock.wall())

    def finish_snapshot(self, job: "SnapshotJob") -> list[str]:
        """Takes the snapshot into account. Gives files that may be removed after the usual delay."""
        if job.id not in self.snapshots:
            self.snapshots.append(job.id)
            self.snapshots.sort()
            self._snapshot_bytes[job.id] = (job.size, job.image.timestamp)
        return self.clean()

    def clean(self) -> list[str]:
        start = log_start_after_cleaning(
            self.snapshots,
            size_of=lambda s: self._snapshot_facts(s)[0],
            timestamp_of=lambda s: self._snapshot_facts(s)[1],
            log_size_from=self._log_size_from,
            retention_bytes=self.settings.retention_bytes,
            retention_ms=self.settings.retention_ms,
            now=self._clock.wall(),
        )
        if start is None:
            return []
        doomed: list[str] = []
        self.log.delete_records_before(start.offset)
        deletion: Deletion | None = self.log.apply_retention(self._clock.wall())
        if deletion is not None:
            doomed += deletion.paths
        for snapshot in [s for s in self.snapshots if s < start]:
            self.snapshots.remove(snapshot)
            self._snapshot_bytes.pop(snapshot, None)
            path = self._snapshot_path(snapshot)
            self.fs.rename(path, path + ".deleted")
            doomed.append(path + ".deleted")
        return doomed

    def _snapshot_facts(self, snapshot: SnapshotId) -> tuple[int, int]:
        found = self._snapshot_bytes.get(snapshot)
        if found is None:
            data = self.fs.read(self._snapshot_path(snapshot))
            found = self._snapshot_bytes[snapshot] = (len(data), decode_snapshot(data).last_contained_timestamp)
        return found

    def _log_size_from(self, offset: int) -> int:
        """Bytes of the segments that stay when the log starts at `offset`: the one that holds it stays whole."""
        segments = self.log.segments
        ends = [s.base_offset for s in segments[1:]] + [self.log.log_end_offset + 1]
        return sum(s.size for s, end in zip(segments, ends, strict=True) if end > offset)

    def _snapshot_path(self, snapshot: SnapshotId) -> str:
        return f"{self.settings.path}/{snapshot.stem}{SUFFIX}"

    def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.fs.remove(path)


class SnapshotJob:
    """Writes one snapshot: `.part` first, renamed when it is whole and on the disk."""

    __slots__ = ("_log", "_now", "_quorum", "id", "image", "size")

    def __init__(self, log: MetadataLog, image: MetadataImage, quorum: QuorumFacts, now: int) -> None:
        self._log = log
        self._quorum = quorum
        self._now = now
        self.image = image
        self.id = SnapshotId(image.offset + 1, image.epoch)
        self.size = 0

    def run(self) -> None:
        fs, directory = self._log.fs, self._log.settings.path
        temporary = f"{directory}/{self.id.stem}{PARTIAL_SUFFIX}"
        file = fs.open(temporary, create=True)
        file.truncate(0)
        records: list[Message] = [r for r in image_records(self.image) if isinstance(r, Message)]
        for batch in encode_snapshot(
            records,
            epoch=self.id.epoch,
            now=self._now,
            last_contained_timestamp=self.image.timestamp,
            metadata_version=self.image.metadata_version,
            kraft_version=self._quorum.kraft_version,
            voters=self._quorum.voters,
        ):
            file.pwrite(batch, self.size)
            self.size += len(batch)
        file.sync()
        del file
        fs.rename(temporary, f"{directory}/{self.id.stem}{SUFFIX}")
        fs.sync_dir(directory)
