"""One partition's log: an ordered list of segments with what must agree with them.

The log assigns offsets, keeps producers and leader epochs in step with the batches, rolls, reads, truncates, flushes.
It never looks inside a batch unless the topic's configuration demands it, never asks the time, and never retries a disk
error. All calls belong to the thread of the node's loop, except `Flush.run`, which may run in any thread.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from struct import Struct
from typing import Final, NoReturn, TypeVar

from crc32c import crc32c

from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol.ordinary_produce import Header
from ottla.storage import admission, names, recovery, retention, times
from ottla.storage.answers import (
    CLIENT,
    COORDINATOR,
    RAFT,
    SIEVED,
    ActiveProducer,
    Appended,
    Deletion,
    FileSlice,
    FoundOffset,
    Origin,
    Rejected,
)
from ottla.storage.chain import Chain
from ottla.storage.checkpoints import CorruptCheckpoint, decode_partition_metadata, encode_partition_metadata
from ottla.storage.cleaner.facts import LastRecord, LastRecords, Replacement
from ottla.storage.config import LogConfig
from ottla.storage.epochs import EpochEnd, LeaderEpochs
from ottla.storage.flush import Flush
from ottla.storage.fs import CorruptLog, File, Filesystem, Latch, StorageError, parent, replace_file
from ottla.storage.index import AbortedTxn, CorruptIndex
from ottla.storage.lookup import end_position, find, segment_index, upper_offset
from ottla.storage.marker import Marker, marker_of
from ottla.storage.producer_state import (
    SEQUENCE_MASK,
    UNCHECKED,
    CachedBatch,
    Completed,
    Producer,
    ProducerStates,
    Refusal,
    Verification,
)
from ottla.storage.segment import OpenFiles, Segment

__all__ = [
    "CLIENT",
    "COORDINATOR",
    "RAFT",
    "ActiveProducer",
    "Admitted",
    "Appended",
    "Deletion",
    "FileSlice",
    "Flush",
    "FoundOffset",
    "LastRecord",
    "Log",
    "Origin",
    "Rejected",
    "Replacement",
    "withdraw_each",
    "write_each",
]
"""A log and all that is said to it and by it: whoever uses one imports from here."""

_ASSIGN = Struct(">qii")
_assign: Final = _ASSIGN.pack_into
_HEADER_SIZE: Final = b.HEADER_SIZE
_OVERHEAD: Final = b.LOG_OVERHEAD
_CRC_START: Final = b.CRC_START
_LAST_CODEC: Final = 4
"""Zstd. Of an ordinary batch the codec is all that its attributes say."""
_new_tuple: Final = tuple.__new__
"""Makes a NamedTuple for a third of what its constructor costs."""

T = TypeVar("T")

Placed = tuple[int, int, int, int, int]
"""The fields of a CachedBatch."""
Admitted = tuple[File, memoryview, Segment, Placed, Producer | None]
"""A batch between its check and its place in the log: the file it goes to, its bytes, the segment, what the log is to
remember of it, and its producer if it has one. Plain tuples: they are taken apart at once, and nothing is cheaper."""


def write_each(admitted: Mapping[T, Admitted]) -> tuple[T, OSError] | None:
    """The second step, for batches of different logs. Ends at the first that the disk refuses, and tells which: that
    one and those behind it are not to be settled, and its log has to hear of it by `append_failed`."""
    try:
        for key, (file, batch, segment, _, _) in admitted.items():  # noqa: B007 - used when a write fails
            file.pwrite(batch, segment.size)
    except OSError as error:
        return key, error
    return None


def withdraw_each(admitted: Mapping[T, Admitted]) -> None:
    """Instead of the second step: the batches are as they came, and may be appended by the long way."""
    for _, batch, _, _, _ in admitted.values():
        _assign(batch, 0, 0, len(batch) - _OVERHEAD, -1)


class Log:
    __slots__ = (
        "_before_truncate",
        "_chain",
        "_generation",
        "_latch",
        "_producers",
        "config",
        "epochs",
        "log_end_offset",
        "log_start_offset",
        "recovery_point",
        "segments",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        files: OpenFiles,
        latch: Latch,
        path: str,
        *,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        loaded: recovery.Loaded,
    ) -> None:
        self._chain = Chain(files, path, loaded.segments, loaded.snapshots)
        self._latch = latch
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments = loaded.segments
        self.epochs: LeaderEpochs = loaded.epochs
        self._producers = loaded.producers
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self._generation = 0
        """Counts truncations: a flush begun before one says nothing about what was written after it."""
        self._before_truncate: Callable[[int], None] | None = None

    # -- opening -------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        files: OpenFiles | Filesystem,
        path: str,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        *,
        now: int,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        latch: Latch | None = None,
    ) -> "Log":
        """Raises CorruptLog if committed data is damaged, StorageError if the disk fails."""
        files = files if isinstance(files, OpenFiles) else OpenFiles(files)
        latch = latch or Latch(parent(path))
        try:
            stored = _stored_topic_id(files.fs, path)
            if stored is not None and topic_id is not None and stored != topic_id:
                raise CorruptLog(path, "partition.metadata names another topic id")
            loaded = recovery.load(
                files,
                path,
                config,
                now=now,
                clean=clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
            )
            log = cls(
                files,
                latch,
                path,
                topic_partition=topic_partition,
                topic_id=stored or topic_id,
                config=config,
                loaded=loaded,
            )
            if stored is None and topic_id is not None:
                log._write_partition_metadata()
        except OSError as error:
            latch.fail(f"cannot open {path}", error)
        return log

    @classmethod
    def create(
        cls,
        files: OpenFiles | Filesystem,
        path: str,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        *,
        now: int,
        log_start_offset: int = 0,
        latch: Latch | None = None,
    ) -> "Log":
        files = files if isinstance(files, OpenFiles) else OpenFiles(files)
        latch = latch or Latch(parent(path))
        latch.check()
        try:
            files.fs.mkdir(path)
            segment = Segment.create(files, path, log_start_offset, now)
            epochs = LeaderEpochs(files.fs, path)
            loaded = recovery.Loaded(
                [segment],
                [],
                epochs,
                ProducerStates(log_start_offset),
                log_start_offset,
                log_start_offset,
                log_start_offset,
            )
            log = cls(
                files,
                latch,
                path,
                topic_partition=topic_partition,
                topic_id=topic_id,
                config=config,
                loaded=loaded,
            )
            log._write_partition_metadata()
            log._chain.unsynced += [path, parent(path)]
        except OSError as error:
            latch.fail(f"cannot create {path}", error)
        return log

    def _write_partition_metadata(self) -> None:
        if self.topic_id is None:
            return
        path = f"{self.path}/{names.PARTITION_METADATA}"
        # Not synced here: it is durable before the recovery point moves, and a lost one is written again on open.
        replace_file(self._chain.fs, path, encode_partition_metadata(self.topic_id), sync=False)
        self._chain.unsynced += [path, self.path]

    def assign_topic_id(self, topic_id: bytes) -> None:
        if self.topic_id is None:
            self.topic_id = topic_id
            self._guarded(self._write_partition_metadata, "partition.metadata")

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self.active.doubt_room()

    @property
    def path(self) -> str:
        return self._chain.path

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def latest_epoch(self) -> int:
        """-1 before the first append."""
        return self.epochs.latest

    @property
    def producers(self) -> ProducerStates:
        return self._producers or self._load_producers()

    def _load_producers(self) -> ProducerStates:
        self._producers = recovery.load_producers(
            self._chain.fs,
            self.path,
            self.segments,
            self._chain.snapshots,
            self.config,
            log_start_offset=self.log_start_offset,
            end_offset=self.log_end_offset,
            now=0,
        )
        return self._producers

    @property
    def is_online(self) -> bool:
        return self._latch.error is None

    @property
    def filesystem(self) -> Filesystem:
        return self._chain.fs

    @property
    def generation(self) -> int:
        """Changes with every truncation."""
        return self._generation

    # -- appending -----------------------------------------------------------------------------------------------

    def admit(self, batch: memoryview, header: Header, leader_epoch: int, now: int) -> Admitted | None:
        """The first of three steps that append an ordinary batch of a client; `write_each` or `withdraw_each`, and
        `settle` follow. The header is that of the batch, which can be written to.

        None if anything about it is out of the ordinary, be it wrong or merely rare (the first batch of a producer, a
        full segment, a transaction). Nothing has changed then, and `append_as_leader` knows what to make of it.
        """
        (
            _, offset, length, magic, crc, attributes, delta, timestamp, producer_id, producer_epoch, sequence, count,
        ) = header  # fmt: skip
        size = length + _OVERHEAD
        config = self.config
        segment = self.segments[-1]
        base_offset = self.log_end_offset
        last_offset = base_offset + delta
        file = segment.file
        if (
            size != len(batch)
            or magic != 2
            or offset
            or not 0 <= attributes <= _LAST_CODEC
            or count != delta + 1
            or delta < 0
            or size > config.max_message_bytes
            or not config.is_plain
            or timestamp - now > config.message_timestamp_after_max_ms
            or leader_epoch != self.epochs.latest
            or segment.size + size > segment.sure_size
            or timestamp > segment.sure_timestamp
            or last_offset > segment.sure_offset
            or file is None
            or self._latch.error is not None
            or crc != crc32c(batch[_CRC_START:])
        ):
            return None
        producer: Producer | None = None
        if producer_id >= 0:
            producers = self._producers
            if producers is None:
                return None
            producer = producers.in_order(producer_id, producer_epoch, sequence)
            if producer is None:
                return None
        _assign(batch, 0, base_offset, length, leader_epoch)
        placed = (sequence, (sequence + delta) & SEQUENCE_MASK, base_offset, last_offset, timestamp)
        return file, batch, segment, placed, producer

    def settle(self, admitted: Admitted) -> int:
        """The last step: an admitted batch has been written, and is part of the log. Returns its base offset."""
        _, batch, segment, placed, producer = admitted
        _, _, base_offset, last_offset, timestamp = placed
        assert base_offset == self.log_end_offset, "another batch came between"
        segment.written(len(batch), base_offset, last_offset, timestamp, self.config.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        if producer is not None:
            producer.remember(_new_tuple(CachedBatch, placed))
        return base_offset

    def append_as_leader(
        self,
        batch: b.Buffer,
        leader_epoch: int,
        now: int,
        *,
        origin: Origin = CLIENT,
        transaction_version: int = 0,
        verification: Verification | None = UNCHECKED,
    ) -> Appended | Rejected:
        """Checks one batch, patches offset and epoch into it and writes it. Internal callers may pass several batches.

        `batch` is written to if it can be. `verification` is what `begin_verification` gave; None if it said that none
        was needed. Raises StorageError if the disk refuses.
        """
        self._latch.check()
        if type(batch) is not memoryview or batch.readonly:
            batch = memoryview(batch if type(batch) is bytearray else bytearray(batch))
        if origin != CLIENT and admission.holds_several(batch):
            return self._append_several(batch, leader_epoch, now, origin, transaction_version)
        taken = admission.examine(batch, self.config, origin, now)
        if isinstance(taken, Rejected):
            return taken
        header = b.read_header(taken)
        marker = marker_of(taken) if header.is_control and header.producer_id >= 0 else None
        if header.producer_id >= 0:
            verdict = self._producers_verdict(header, marker, origin, transaction_version, verification)
            if verdict is not None:
                return self._not_appended(verdict)
        base_offset = self._write(taken, header.last_offset_delta, header.max_timestamp, leader_epoch, now)
        if header.producer_id >= 0:
            self._remember(header, marker, base_offset)
        append_time = header.max_timestamp if header.attributes & b.LOG_APPEND_TIME else -1
        return Appended(base_offset, self.log_end_offset - 1, append_time, self.log_start_offset)

    def _producers_verdict(
        self,
        header: b.BatchHeader,
        marker: Marker | None,
        origin: Origin,
        transaction_version: int,
        verification: Verification | None,
    ) -> CachedBatch | Refusal | None:
        """None if the batch is what its producer may send next; a CachedBatch if it is in the log already."""
        producers = self.producers
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        verdict: CachedBatch | Refusal | None
        if origin in (CLIENT, SIEVED):
            verdict = producers.check_client(
                producer_id, epoch, sequence, header.last_sequence, header.is_transactional
            )
        else:
            verdict = producers.check_coordinator(
                producer_id, epoch, header.is_transactional, marker, transaction_version
            )
        if header.is_transactional and marker is None and not isinstance(verdict, CachedBatch):
            return producers.check_verified(producer_id, epoch, sequence, verification) or verdict
        return verdict

    def append_own(self, batch: bytearray, count: int, timestamp: int, leader_epoch: int) -> int:
        """A batch of this node's own making, just sealed, of records that all bear `timestamp` and have no producer.

        Returns its base offset. Raises StorageError if the disk refuses.
        """
        self._latch.check()
        return self._write(memoryview(batch), count - 1, timestamp, leader_epoch, timestamp)

    def _write(self, batch: memoryview, last_offset_delta: int, timestamp: int, leader_epoch: int, now: int) -> int:
        """Gives the batch its place at the log's end. Returns its base offset."""
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        segment = self.active
        try:
            if segment.is_full(len(batch), last_offset, timestamp, self.config, now):
                segment = self._roll(now, base_offset)
            b.assign(batch, base_offset, leader_epoch)
            if leader_epoch != self.epochs.latest:
                self.epochs.assign(leader_epoch, base_offset)
            segment.append(batch, base_offset, last_offset, timestamp, self.config.index_interval_bytes)
        except OSError as error:
            self.append_failed(error)
        self.log_end_offset = last_offset + 1
        return base_offset

    def _remember(self, header: b.BatchHeader, marker: Marker | None, base_offset: int) -> None:
        """Tells the producers of a batch that has been written."""
        producers = self.producers
        producer_id, epoch, timestamp = header.producer_id, header.producer_epoch, header.max_timestamp
        if marker is None:
            producers.record_batch(
                producer_id, epoch, header.base_sequence, header.last_sequence, base_offset,
                base_offset + header.last_offset_delta, timestamp, header.is_transactional,
            )  # fmt: skip
            return
        completed = producers.record_marker(producer_id, epoch, marker, base_offset, timestamp)
        if completed is not None:
            self._end_transaction(producers, completed)

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, epoch_bump: bool, now: int
    ) -> Verification | Refusal | None:
        """Before the coordinator is asked: see ProducerStates. `sequence` is -1 for what coordinators write."""
        return self.producers.begin_verification(producer_id, epoch, sequence, epoch_bump, now)

    def _append_several(
        self, batches: memoryview, leader_epoch: int, now: int, origin: Origin, transaction_version: int
    ) -> Appended | Rejected:
        """All of them or none: what was written of a run that fails is cut off again."""
        start = self.log_end_offset
        position, last = 0, start - 1
        try:
            while position < len(batches):
                size = b.read_frame(batches, position)[1] if len(batches) - position >= _OVERHEAD else 0
                one = batches[position : position + size] if size >= _HEADER_SIZE else batches[position:]
                outcome = self.append_as_leader(
                    one, leader_epoch, now, origin=origin, transaction_version=transaction_version
                )
                if isinstance(outcome, Rejected):
                    if last >= start:
                        self.truncate_to(start, now)
                    return outcome
                position, last = position + len(one), outcome.last_offset
        except StorageError:
            if self.is_online and last >= start:
                self.truncate_to(start, now)
            raise
        return Appended(start, last, now if self.config.log_append_time else -1, self.log_start_offset)

    def _not_appended(self, verdict: CachedBatch | Refusal) -> Appended | Rejected:
        if isinstance(verdict, Refusal):
            return Rejected(verdict.error, f"{self.topic_partition}: {verdict.message}")
        append_time = verdict.timestamp if self.config.log_append_time else -1
        return Appended(verdict.first_offset, verdict.last_offset, append_time, self.log_start_offset, True)

    def append_failed(self, error: OSError) -> NoReturn:
        """Rolls a partial write back. If that fails too, or the error is more than lack of room: offline."""
        if isinstance(error, StorageError):
            raise error
        try:
            self.active.rollback()
        except OSError as second:
            self._latch.take_offline(StorageError(self._latch.directory, "a partial append stays behind", second))
        self._latch.fail(f"cannot append to {self.topic_partition}", error)

    def _end_transaction(self, producers: ProducerStates, completed: Completed) -> None:
        if completed.aborted:
            stable = producers.last_stable_offset_after(completed)
            txn = AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            self._note_aborted(txn)
        producers.complete(completed)

    def _note_aborted(self, txn: AbortedTxn) -> None:
        """The marker is in the log already, so a missing entry would show aborted records: no room is fatal here."""
        try:
            self.active.append_aborted(txn)
        except OSError as error:
            failure = StorageError(self._latch.directory, "cannot write a transaction index", error)
            self._latch.take_offline(failure)
            raise failure from error

    def append_as_follower(self, batches: b.Buffer, leader_epoch: int, now: int) -> Appended | Rejected:
        """Takes batches as the leader wrote them: offsets and epochs are kept, gaps are allowed.

        A batch of a later epoch than `leader_epoch` and what follows it are left out: the sender had lost the lead.
        """
        self._latch.check()
        view = memoryview(batches)
        run: list[b.BatchHeader] = []
        run_start = position = greatest = 0
        first, last = -1, self.log_end_offset - 1
        try:
            while position + _HEADER_SIZE <= len(view):
                header = b.read_header(view, position)
                if position and header.size > len(view) - position:
                    break  # the leader's answer ends anywhere; the rest of this batch comes with the next one
                batch = view[position : position + header.size]
                refused = admission.misreplicated(header, batch, last)
                if refused is not None:
                    return refused
                if header.leader_epoch > leader_epoch:
                    break
                size = position - run_start + header.size
                if run and self.active.is_full(size, header.last_offset, greatest, self.config, now):
                    self._write_run(view[run_start:position], run, now)
                    run, run_start = [], position
                greatest = max(greatest, header.max_timestamp) if run else header.max_timestamp
                run.append(header)
                first = header.base_offset if first < 0 else first
                last, position = header.last_offset, position + header.size
            if run:
                self._write_run(view[run_start:position], run, now)
        except OSError as error:
            self.append_failed(error)
        return Appended(first, last, -1, self.log_start_offset)

    def _write_run(self, data: memoryview, run: list[b.BatchHeader], now: int) -> None:
        assert run[0].base_offset >= self.log_end_offset, "a copied batch would lie over one that is there"
        segment = self.active
        greatest = max(header.max_timestamp for header in run)
        if segment.is_full(len(data), run[-1].last_offset, greatest, self.config, now):
            segment = self._roll(now, run[0].base_offset)
        for header in run:
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        segment.append_run(data, run, self.config.index_interval_bytes)
        producers = self._producers or self._load_producers()
        self.log_end_offset = run[-1].last_offset + 1
        position = 0
        for header in run:
            if header.producer_id >= 0:
                txn = recovery.replay(producers, data[position : position + header.size], header)
                if txn is not None:
                    self._note_aborted(txn)
            position += header.size

    # -- rolling -------------------------------------------------------------------------------------------------

    def roll(self, now: int) -> None:
        """Begins a new segment at the log end; an empty active one is left as it is."""
        self._latch.check()
        if self.active.size:
            self._guarded(lambda: self._roll(now, self.log_end_offset), "cannot roll")

    def _roll(self, now: int, base_offset: int) -> Segment:
        old = self.active
        if old.size == 0:
            return old if old.base_offset == base_offset else self._chain.move_empty(base_offset, now)
        old.finish()
        self._take_snapshot(base_offset)
        return self._chain.begin(base_offset, now)

    def _take_snapshot(self, offset: int) -> None:
        """Producers as of `offset`."""
        if self._chain.lacks_snapshot(offset):
            self._chain.write_snapshot(offset, self.producers.encode_snapshot())

    # -- reading -------------------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int, min_one_message: bool = True
    ) -> FileSlice | Errors | None:
        """Bytes from the batch that holds `offset`, none at or beyond `upper_bound`; None when there is nothing yet.

        At the tail this needs no system call. The slice ends with a whole batch where an index knows one, else
        anywhere, as Kafka's does.
        """
        end_offset = self.log_end_offset
        if offset < self.log_start_offset or offset > end_offset:
            return Errors.OFFSET_OUT_OF_RANGE
        if offset >= upper_bound or offset == end_offset:
            return None
        try:
            found = find(self.segments, offset)
            if found is None:
                return None
            segment, index, position, size = found
            end = end_position(self.segments, index, upper_bound, end_offset)
            length = end - position
            if length <= 0:
                return None
            if length > max_bytes:
                if size > max_bytes:
                    if not min_one_message:
                        return None
                    length = size
                else:
                    length = segment.cut(position, max_bytes)
            return FileSlice(segment.file or segment.files.open(segment), position, length, segment)
        except (OSError, CorruptLog) as error:
            self._unreadable(error)

    def read_bytes(self, piece: FileSlice) -> bytes:
        return piece.file.pread(piece.length, piece.position)

    def batches(self, offset: int, upper_bound: int | None = None) -> Iterator[memoryview]:
        """Every whole batch from the one that holds `offset` to the one before `upper_bound` (the log end)."""
        upper_bound = self.log_end_offset if upper_bound is None else upper_bound
        found = find(self.segments, offset) if offset < upper_bound else None
        if found is None:
            return
        while found is not None:
            segment, _, start, _ = found
            for _, batch in segment.batches(start):
                if b.read_frame(batch)[0] >= upper_bound:
                    return
                yield batch
                offset = b.read_header(batch).last_offset + 1
            # Looked up anew: the cleaner may have swapped segments while the caller was busy with the last one.
            found = find(self.segments, offset) if offset < upper_bound else None

    def upper_offset(self, piece: FileSlice) -> int:
        """An offset no record of the slice reaches: the bound for its aborted transactions."""
        return upper_offset(self.segments, piece, self.log_end_offset)

    # -- looking things up ---------------------------------------------------------------------------------------

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record at or after the log start whose timestamp is >= `timestamp`."""
        try:
            return times.first_at_or_after(self.segments, timestamp, self.log_start_offset, self.config.unpacking)
        except (OSError, CorruptLog) as error:
            self._unreadable(error)

    def max_timestamp_offset(self) -> FoundOffset | None:
        """The first record that bears the log's greatest timestamp."""
        try:
            return times.greatest(self.segments, self.config.unpacking)
        except (OSError, CorruptLog) as error:
            self._unreadable(error)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in force at `offset`; -1 if none is known."""
        return self.epochs.epoch_for(offset)

    def offset_for_leader_epoch(self, epoch: int) -> EpochEnd:
        """(-1, -1) when the epoch is unknown here."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def aborted_transactions(self, fetch_offset: int, upper_bound: int) -> list[tuple[int, int]]:
        """Producer id and first offset of each aborted transaction that touches [fetch_offset, upper_bound)."""
        aborted = []
        for segment in self.segments[segment_index(self.segments, fetch_offset) :]:
            txns = self._aborted_of(segment)
            for txn in txns[bisect_left(txns, fetch_offset, key=_last_offset) :]:
                if txn.first_offset < upper_bound:
                    aborted.append((txn.producer_id, txn.first_offset))
                if txn.last_stable_offset >= upper_bound:
                    return aborted
        return aborted

    def _aborted_of(self, segment: Segment) -> list[AbortedTxn]:
        try:
            try:
                return segment.aborted_txns()
            except CorruptIndex:
                before = recovery.load_producers(
                    self._chain.fs,
                    self.path,
                    self.segments,
                    self._chain.snapshots,
                    self.config,
                    log_start_offset=self.segments[0].base_offset,
                    end_offset=segment.base_offset,
                    now=0,
                )
                return recovery.rebuild_aborted(segment, before)
        except (OSError, CorruptLog) as error:
            self._unreadable(error)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        first = self.producers.first_ongoing
        return None if first is None else max(first, self.log_start_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it every transaction is decided, and its marker replicated."""
        producers = self._producers or self._load_producers()
        if not producers.ongoing and not producers.unreplicated:
            return high_watermark
        unstable = producers.first_unstable(high_watermark)
        if unstable is None:
            return high_watermark
        return min(high_watermark, max(unstable, self.log_start_offset))

    def forget_replicated_ends(self, high_watermark: int) -> None:
        """A follower nobody reads from asks for no stable offset: the ends of transactions must not pile up there."""
        if self._producers is not None and self._producers.unreplicated:
            self._producers.first_unstable(high_watermark)

    def active_producers(self) -> list[ActiveProducer]:
        return [
            ActiveProducer(
                producer_id, p.epoch, p.last_sequence, p.last_timestamp, p.coordinator_epoch, p.txn_first_offset
            )
            for producer_id, p in self.producers.producers.items()
        ]

    def last_records(self, *, below: int) -> LastRecords:
        """Of every active producer: batches below an offset that the cleaner must not let go."""
        return {
            producer_id: LastRecord(p.batches[-1].last_offset if p.batches else -1, p.epoch)
            for producer_id, p in self.producers.producers.items()
            if not p.batches or p.batches[-1].last_offset < below
        }

    @property
    def producers_remembered(self) -> int:
        """Those in memory: a log nobody writes to has not loaded any."""
        return 0 if self._producers is None else len(self._producers.producers)

    def expire_producers(self, now: int) -> None:
        if self._producers is not None:
            self._producers.expire(now, self.config.producer_id_expiration_ms)

    # -- making room ---------------------------------------------------------------------------------------------

    def delete_records_before(self, offset: int, high_watermark: int | None = None) -> Errors:
        """Moves the log start. Segments below it go with the next retention run."""
        limit = self.log_end_offset if high_watermark is None else high_watermark
        if offset < 0 or offset > limit:
            return Errors.OFFSET_OUT_OF_RANGE
        self._latch.check()
        if offset > self.log_start_offset:
            self._guarded(lambda: self._raise_log_start(offset), "cannot move the log start")
        return Errors.NONE

    def _raise_log_start(self, offset: int) -> None:
        # The recovery point stays, unlike Kafka's: the segment that holds `offset` may have unflushed batches below it.
        self.log_start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self.epochs.write()

    def apply_retention(self, now: int, high_watermark: int | None = None) -> Deletion | None:
        """Renames what the plan gives up, moves the log start over it and returns the files to remove later."""
        self._latch.check()
        count = retention.plan(
            self.segments,
            self.config,
            log_start_offset=self.log_start_offset,
            high_watermark=self.log_end_offset if high_watermark is None else high_watermark,
            log_end_offset=self.log_end_offset,
            now=now,
        )
        if count == 0:
            return None
        return self._guarded(lambda: self._delete_oldest(count, now), "cannot delete old segments")

    def _delete_oldest(self, count: int, now: int) -> Deletion:
        if count == len(self.segments):
            self._roll(now, self.log_end_offset)
        # The log start moves first: a crash in between leaves files below it, never a hole above it.
        start = self.segments[count].base_offset
        if start > self.log_start_offset:
            self._raise_log_start(start)
        return self._deletion(self._chain.drop_oldest(count))

    def _deletion(self, paths: list[str]) -> Deletion:
        return Deletion(tuple(paths), self.config.file_delete_delay_ms)

    def replace_segments(self, old: Sequence[tuple[Segment, int]], new: Replacement) -> Deletion | None:
        """Puts a cleaned segment in the place of `old` ones, each given with the size it had when it was read.

        None if the log has changed there since: the caller discards its work. What is returned may be removed only
        after the directory has been synced, for until then a power cut can bring the old names back.
        """
        self._latch.check()
        start = self._chain.place_of(old)
        if start is None:
            return None
        try:
            return self._deletion(self._chain.swap(start, start + len(old), new))
        except OSError as error:
            # Half a swap is finished by the next start, and by nothing else: lack of room is no excuse here.
            failure = StorageError(self._latch.directory, f"cannot swap segments of {self.topic_partition}", error)
            self._latch.take_offline(failure)
            raise failure from error

    # -- truncating ----------------------------------------------------------------------------------------------

    def before_truncate(self, callback: Callable[[int], None]) -> None:
        """Called with the new end before any byte goes: a recovery point on disk must never lie beyond the data."""
        self._before_truncate = callback

    def truncate_to(self, offset: int, now: int) -> Deletion | None:
        """The log ends at `offset` afterwards; None if it did not reach that far."""
        assert offset >= 0
        self._latch.check()
        if offset >= self.log_end_offset:
            if self.epochs.truncate_from_end(self.log_end_offset):
                self._guarded(self.epochs.write, "cannot write leader epochs")
            return None
        if offset < self.segments[0].base_offset:
            return self.truncate_fully_and_start_at(offset, now)
        return self._guarded(lambda: self._truncate(offset), f"cannot truncate {self.topic_partition}")

    def _truncate(self, offset: int) -> Deletion:
        assert offset <= self.log_end_offset
        if self._before_truncate is not None:
            self._before_truncate(offset)
        self._generation += 1
        self.recovery_point = min(self.recovery_point, offset)
        paths = self._chain.cut(offset)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        if self.epochs.truncate_from_end(offset):
            self.epochs.write()
        self._chain.remove_snapshots(lambda at: at > offset)
        self._producers = None  # read again from the last snapshot and the log when next needed
        self._chain.unsynced.append(self.path)
        return self._deletion(paths)

    def truncate_fully_and_start_at(self, offset: int, now: int) -> Deletion:
        self._latch.check()
        return self._guarded(lambda: self._restart_at(offset, now), f"cannot truncate {self.topic_partition}")

    def _restart_at(self, offset: int, now: int) -> Deletion:
        if self._before_truncate is not None:
            self._before_truncate(min(offset, self.log_start_offset))
        self._generation += 1
        paths = self._chain.restart(offset, now)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self.epochs.clear()
        self.epochs.write()
        self._producers = ProducerStates(offset)
        self._chain.unsynced.append(self.path)
        return self._deletion(paths)

    # -- making durable ------------------------------------------------------------------------------------------

    def flush_begin(self) -> Flush | None:
        """Notes what `Flush.run` has to sync; None when everything below the log end is durable already."""
        if self.recovery_point >= self.log_end_offset and not self._chain.unsynced and not self.epochs.dirty:
            return None
        if self.log_end_offset == 0:
            # Nothing was ever written: if a power cut takes the empty files, they are made again, just as empty.
            return None
        self._latch.check()
        return self._guarded(self._plan_flush, "cannot write indexes")

    def _plan_flush(self) -> Flush:
        flush = Flush(self._chain.fs, self._latch, self.log_end_offset, self._generation)
        self._chain.plan_segments(flush, self.recovery_point)
        if self.epochs.dirty:
            self.epochs.write()
            self.epochs.dirty = False
            self._chain.unsynced += [self.epochs.path, self.path]
        self._chain.plan_rest(flush)
        return flush

    def flush_done(self, flush: Flush) -> None:
        """`flush.run` has succeeded: the recovery point follows."""
        if flush.generation == self._generation:
            self.recovery_point = max(self.recovery_point, min(flush.offset, self.log_end_offset))

    def flush(self) -> None:
        """All three steps at once, in this thread."""
        flush = self.flush_begin()
        if flush is not None:
            flush.run()
            self.flush_done(flush)

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    # -- leaving -------------------------------------------------------------------------------------------------

    def close(self, *, clean: bool = True) -> None:
        """A clean close leaves nothing to recover: snapshot at the log end, exact indexes, all of it synced."""
        if clean:
            flush = self.close_begin()
            if flush is not None:
                flush.run()
                self.flush_done(flush)
        self._chain.close()

    def close_begin(self) -> Flush | None:
        """Writes what a clean close leaves behind; `Flush.run`, `flush_done` and `close(clean=False)` follow."""
        self._latch.check()
        self._guarded(self._settle, f"cannot close {self.topic_partition}")
        return self.flush_begin()

    def _settle(self) -> None:
        self._take_snapshot(self.log_end_offset)
        self._chain.finish()

    def delete(self, unique: str) -> Deletion:
        """Renames the directory so that the topic may be created again at once; the rest is removed later."""
        self._latch.check()
        self._chain.close()
        target = f"{parent(self.path)}/{names.marked_dir_name(self.topic_partition, unique, names.DELETE_DIR)}"
        self._guarded(lambda: self._chain.rename(target), f"cannot delete {self.topic_partition}")
        return Deletion((), self.config.file_delete_delay_ms, target)

    def _unreadable(self, error: OSError | CorruptLog) -> NoReturn:
        """A disk that fails goes offline; a damaged log is unreadable alone."""
        what = f"cannot read {self.topic_partition}"
        if isinstance(error, CorruptLog):
            raise StorageError(self._latch.directory, f"{what}: {error}") from error
        self._latch.fail(what, error)

    def _guarded(self, action: Callable[[], T], what: str) -> T:
        try:
            return action()
        except OSError as error:
            self._latch.fail(what, error)


_last_offset = attrgetter("last_offset")
"""What a transaction index is ordered by: where its markers are."""


def _stored_topic_id(fs: Filesystem, path: str) -> bytes | None:
    try:
        return decode_partition_metadata(fs.read(f"{path}/{names.PARTITION_METADATA}"))
    except (FileNotFoundError, CorruptCheckpoint):
        return None
