"""The metadata log on the disk: `__cluster_metadata-0` with Kafka's segments, snapshots and quorum-state file.

It is also what the quorum's core reads of the log (`raft.core.LogView`). What may be appended is decided elsewhere.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla.metadata.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    CorruptMetadata,
    decode_batch,
    encode_batches,
    encode_control_batch,
)
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import image_records
from ottla.metadata.replay import image_of
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.codec import Message, MetadataRecord
from ottla.raft import election
from ottla.raft.election import CorruptQuorumState, ElectionState
from ottla.raft.exchange import EpochEnd
from ottla.raft.follower import leads_to
from ottla.raft.snapshots import (
    PARTIAL_SUFFIX,
    SUFFIX,
    Snapshot,
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    log_start_after_cleaning,
    parse_name,
)
from ottla.raft.voters import VoterHistory, VoterSet, voters_of
from ottla.raft.wire import TOPIC_ID
from ottla.runtime.formatting import METADATA_LOG
from ottla.runtime.runner import Placed
from ottla.storage.answers import RAFT, Appended, Deletion, FileSlice, Rejected
from ottla.storage.config import LogConfig
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.flush import Flush
from ottla.storage.following import append_as_follower
from ottla.storage.fs import NO_ROOM, File, Filesystem, Latch, StorageError, replace_file
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.names import LEADER_EPOCHS, RESERVE, parse_file
from ottla.storage.names import SNAPSHOT as PRODUCER_SNAPSHOT
from ottla.storage.opening import create_log, open_log
from ottla.storage.reading import batches_of, read
from ottla.storage.retention import apply_retention, delete_records_before
from ottla.storage.segment import OpenFiles

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOPIC_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
_LONG_TAIL_BYTES: Final = 1 << 20


class MetadataLogError(Exception):
    """The metadata log cannot be used; the text says why and what to do."""


class QuorumFacts(NamedTuple):
    """What the log itself says about its quorum (KIP-853)."""

    kraft_version: int = 0
    voters: VoterSet | None = None
    voters_offset: int = -1


class Witness(NamedTuple):
    """A file beside the log that says how far it went at least: a clean stop leaves one, and so does a new epoch."""

    end: int
    path: str
    content: bytes


class MetadataLogSettings(NamedTuple):
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
        "_download",
        "_files",
        "_latch",
        "_snapshot_bytes",
        "_unsaved_bytes",
        "_without_room",
        "epoch",
        "history",
        "log",
        "metadata_version",
        "settings",
        "snapshots",
        "witness",
    )

    def __init__(self, settings: MetadataLogSettings, files: OpenFiles, clock: Clock) -> None:
        self.settings = settings
        self._files = files
        self._clock = clock
        self._latch = Latch(settings.path.rpartition("/")[0])
        self.witness = self._find_witness()
        self.log = self._open_log()
        self.snapshots: list[SnapshotId] = []
        self._snapshot_bytes: dict[SnapshotId, tuple[int, int]] = {}
        """Size and the time of the last record in it, of each snapshot."""
        self._unsaved_bytes = 0
        self._without_room = False
        self.epoch = 0
        self.metadata_version = 0
        self.history = VoterHistory()
        """Voters and kraft.version as far as the log goes; complete after `load`."""
        self._download: _Download | None = None

    @property
    def fs(self) -> Filesystem:
        return self._files.fs

    def _names(self) -> list[str]:
        path = self.settings.path
        return [entry.name for entry in self.fs.list(path)] if self.fs.exists(path) else []

    def _find_witness(self) -> Witness:
        """Asked before the log is opened, which brings these files into line with what it finds. An epoch is noted
        before its first batch is written, so that one may be missing."""
        epochs = LeaderEpochs(self.fs, self.settings.path)
        epochs.load()
        found = [(start, LEADER_EPOCHS) for start in epochs.starts[-1:]]
        for name in self._names():
            parsed = parse_file(name)
            if parsed is not None and parsed[1] == PRODUCER_SNAPSHOT:
                found.append((parsed[0], name))
        if not found:
            return Witness(0, "", b"")
        end, name = max(found)
        path = f"{self.settings.path}/{name}"
        return Witness(end, path, self.fs.read(path))

    def keep_witness(self) -> None:
        """For the next start: it is to find what this one has found."""
        replace_file(self.fs, self.witness.path, self.witness.content)

    def _open_log(self) -> Log:
        path, config, now = self.settings.path, self.settings.log_config, self._clock.wall()
        names = self._names()
        if not any(name.endswith(".log") for name in names):
            newest = max((f.id for n in names if (f := parse_name(n)) and f.suffix == SUFFIX), default=None)
            return create_log(
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
        return open_log(
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

    def load(self, cluster_id: str) -> MetadataImage:
        """The image of the latest snapshot. What the log holds after it may not be committed: only the quorum knows."""
        self.snapshots.clear()
        self._unsaved_bytes = 0
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
        for data in batches_of(self.log, start):
            self._note_batch(data)
        return image

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
        try:
            loaded = decode_snapshot(self.fs.read(self._snapshot_path(snapshot)))
        except CorruptMetadata as error:
            raise MetadataLogError(
                f"{self._snapshot_path(snapshot)} is damaged: {error}. {self._remedy(snapshot)}"
            ) from error
        self._restart_history(snapshot, loaded)
        if snapshot.offset == 0:
            return image_of(loaded.records, cluster_id)
        return image_of(
            loaded.records,
            cluster_id,
            offset=snapshot.offset - 1,
            epoch=snapshot.epoch,
            timestamp=loaded.last_contained_timestamp,
        )

    def _remedy(self, damaged: SnapshotId) -> str:
        start = self.start_offset
        if damaged.offset > 0 and (start == 0 or any(start <= s.offset < damaged.offset for s in self.snapshots)):
            return "Move the file away: older files have all that is in it."
        return (
            "Restore the file. Without it, a broker can fetch everything anew if its "
            f"{METADATA_LOG} is moved away; one of several controllers has to leave the quorum before that."
        )

    def _restart_history(self, snapshot: SnapshotId, loaded: Snapshot) -> None:
        self.history.restart(snapshot.offset - 1, loaded.voters, loaded.kraft_version)

    def _skip_to_snapshot(self) -> None:
        """A snapshot that the log does not lead to: it was fetched, and the log was still to be replaced by it."""
        latest = self.snapshots[-1]
        if latest.offset > 0 and not leads_to(self, latest):
            self.remove(self.log.truncate_fully_and_start_at(latest.offset, self._clock.wall()).paths)

    def _note_batch(self, data: memoryview) -> None:
        self._unsaved_bytes += len(data)
        if b.read_header(data).is_control:
            batch = decode_batch(data)
            self._note_quorum(batch.records, batch.last_offset)

    def _note_quorum(self, records: Sequence[Message], offset: int) -> None:
        for record in records:
            if isinstance(record, messages.KRaftVersionRecord):
                self.history.add(offset, kraft_version=record.kraft_version)
            elif isinstance(record, messages.VotersRecord):
                self.history.add(offset, voters=voters_of(record))

    # What the core reads

    @property
    def quorum(self) -> QuorumFacts:
        return QuorumFacts(self.history.kraft_version, self.history.voters, self.history.offset)

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def flushed(self) -> int:
        return self.log.recovery_point

    @property
    def last_epoch(self) -> int:
        if self.log.latest_epoch >= 0:
            return self.log.latest_epoch
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0] if self.snapshots else None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        found = self.log.offset_for_leader_epoch(epoch)
        if found.epoch < 0:
            return EpochEnd(self.last_epoch, self.end_offset)
        earliest = self.earliest_snapshot
        if earliest is not None and found == (epoch, earliest.offset):
            return EpochEnd(earliest.epoch, earliest.offset)  # the snapshot has it, the log no longer does
        return EpochEnd(found.epoch, found.end_offset)

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        return self._snapshot_facts(snapshot)[0] if snapshot in self.snapshots else None

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches for a replica that has everything below `offset`; the last one may be cut off."""
        piece = read(self.log, offset, max_bytes, upper_bound=self.end_offset)
        return piece.read() if isinstance(piece, FileSlice) else b""

    def read_snapshot(self, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self.fs.open(self._snapshot_path(snapshot)).pread(max_bytes, position)

    def read_election(self) -> ElectionState:
        path = f"{self.settings.path}/{election.FILE_NAME}"
        try:
            return election.decode(self.fs.read(path))
        except FileNotFoundError:
            return ElectionState()
        except CorruptQuorumState as error:
            raise MetadataLogError(
                f"{path} is damaged: {error}. Restore the file, or remove it if this node is the only controller, or "
                "none. One of several controllers may have voted: it has to leave the quorum before that."
            ) from error

    def write_election(self, state: ElectionState) -> None:
        """Durable when it returns; may run in any thread."""
        facts = self.quorum
        data = election.encode(state, min(facts.kraft_version, 1), facts.voters.ids if facts.voters else ())
        path = f"{self.settings.path}/{election.FILE_NAME}"
        self._on_reserve(lambda: replace_file(self.fs, path, data))

    # Appending

    def append(self, records: Sequence[MetadataRecord]) -> Placed:
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
        types = {
            messages.LeaderChangeMessage: LEADER_CHANGE,
            messages.KRaftVersionRecord: KRAFT_VERSION,
            messages.VotersRecord: KRAFT_VOTERS,
        }
        batch = encode_control_batch(
            [(types[type(record)], record) for record in records],
            base_offset=base_offset,
            epoch=self.epoch,
            timestamp=now,
        )
        self._write(batch, now)
        self._note_quorum(records, base_offset + len(records) - 1)
        return Placed(base_offset, base_offset + len(records) - 1, self.epoch, now)

    def _write(self, data: bytearray, now: int) -> None:
        outcome = self._on_reserve(lambda: append_as_leader(self.log, memoryview(data), self.epoch, now, origin=RAFT))
        if isinstance(outcome, Rejected):
            raise StorageError(self._latch.directory, f"the metadata log refuses a batch: {outcome.message}")
        self._unsaved_bytes += len(data)

    def flush_begin(self) -> Flush | None:
        return self._on_reserve(self.log.flush_begin)

    def _on_reserve(self, write: Callable[[], T]) -> T:
        """Metadata is written to a full disk too, on the room that is held back for it."""
        try:
            return write()
        except OSError as error:
            if not self._releases_reserve(error):
                raise
            return write()

    def _releases_reserve(self, error: OSError) -> bool:
        reserve = f"{self._latch.directory}/{RESERVE}"
        if error.errno not in NO_ROOM or not self.fs.exists(reserve):
            return False
        logger.warning("%s is full: metadata goes on, on what was held back for it", self._latch.directory)
        self.fs.remove(reserve)
        return True

    # As the leader of the quorum says

    def append_replicated(self, batches: bytes, epoch: int) -> Rejected | None:
        """What the leader sent; a batch of a later epoch than its own is left out, and so is one that is cut off.

        On a full disk it is asked for again and again: to stop would help nobody, and there may be room soon.
        """
        before = self.end_offset
        outcome: Appended | Rejected
        try:
            outcome = append_as_follower(self.log, batches, epoch, self._clock.wall())
            self._without_room = False
        except StorageError as error:
            if error.errno not in NO_ROOM:
                raise
            if not self._releases_reserve(error) and not self._without_room:
                logger.error("%s. The node is blind to the cluster until there is room.", error)
                self._without_room = True
            outcome = Rejected(Errors.KAFKA_STORAGE_ERROR, "the disk is full")
        for data in batches_of(self.log, before):
            self._note_batch(data)
        return outcome if isinstance(outcome, Rejected) else None

    def truncate_to(self, offset: int) -> None:
        deletion = self.log.truncate_to(offset, self._clock.wall())
        self.history.truncate_to(offset)
        if deletion is not None:
            self.remove(deletion.paths)

    def store_snapshot(self, snapshot: SnapshotId, position: int, data: bytes) -> None:
        """One piece of a snapshot from the leader, in order."""
        if self._download is None or self._download.id != snapshot or position == 0:
            path = f"{self.settings.path}/{snapshot.stem}{PARTIAL_SUFFIX}"
            file = self.fs.open(path, create=True)
            file.truncate(0)
            self._download = _Download(snapshot, path, file)
        self._download.file.pwrite(data, position)

    def finish_download(self, snapshot: SnapshotId) -> None:
        """Whole and durable when it returns; may run in any thread. Raises CorruptMetadata if it is not whole."""
        download = self._download
        assert download is not None
        download.file.sync()
        download.content = decode_snapshot(self.fs.read(download.path))
        self.fs.rename(download.path, self._snapshot_path(snapshot))
        self.fs.sync_dir(self.settings.path)

    def install_snapshot(self, snapshot: SnapshotId) -> None:
        """The log begins anew at the end of a snapshot that was downloaded before."""
        assert self._download is not None
        assert self._download.content is not None
        older, self.snapshots = self.snapshots, [snapshot]
        content, self._download = self._download.content, None
        self.remove(self.log.truncate_fully_and_start_at(snapshot.offset, self._clock.wall()).paths)
        self._restart_history(snapshot, content)
        self._unsaved_bytes = 0
        self.remove([self._snapshot_path(s) for s in older if s != snapshot])

    def discard_download(self, snapshot: SnapshotId) -> None:
        """It came too late to be of use."""
        self._download = None
        if snapshot not in self.snapshots:
            self.remove([self._snapshot_path(snapshot)])

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
        known = self.history.at(image.offset + 1)
        return SnapshotJob(self, image, QuorumFacts(known.kraft_version, known.voters), self._clock.wall())

    def finish_snapshot(self, job: "SnapshotJob") -> list[str]:
        """Takes the snapshot into account. Gives files that may be removed after the usual delay."""
        if job.id.offset < self.start_offset:
            return [self._snapshot_path(job.id)]  # overtaken by a snapshot from the leader
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
        self.history.forget_before(start.offset)
        delete_records_before(self.log, start.offset)
        deletion: Deletion | None = apply_retention(self.log, self._clock.wall())
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


class _Download:
    """A snapshot on its way from the leader."""

    __slots__ = ("content", "file", "id", "path")

    def __init__(self, snapshot: SnapshotId, path: str, file: File) -> None:
        self.id = snapshot
        self.path = path
        self.file = file
        self.content: Snapshot | None = None


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
        for batch in encode_snapshot(
            image_records(self.image),
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
