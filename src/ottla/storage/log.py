"""One partition's log: an ordered list of segments with what must agree with them.

Here are its state and the moves that keep all of it in agreement: a batch is placed, a segment rolled, the start
raised, the end cut, what was written flushed. Who makes these moves lives next door: `ordinary`, `leading` and
`following` append, `reading` reads, `retention` deletes, `opening` makes a log.

The log never looks inside a batch, never asks the time, and never retries a disk error. All calls belong to the thread
of the node's loop, except `Flush.run`, which may run in any thread.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.storage import names, recovery
from ottla.storage.answers import ActiveProducer, Deletion
from ottla.storage.chain import Chain
from ottla.storage.cleaner.facts import LastRecord, LastRecords, Replacement
from ottla.storage.config import LogConfig
from ottla.storage.epochs import EpochEnd, LeaderEpochs
from ottla.storage.flush import Flush
from ottla.storage.fs import Filesystem, Latch, StorageError, parent
from ottla.storage.index import AbortedTxn
from ottla.storage.producer_state import ProducerStates
from ottla.storage.segment import OpenFiles, Segment

T = TypeVar("T")


class Log:
    __slots__ = (
        "before_truncate",
        "chain",
        "config",
        "epochs",
        "generation",
        "is_plain",
        "known_producers",
        "latch",
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
        self.chain = Chain(files, path, loaded.segments, loaded.snapshots)
        self.latch = latch
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.is_plain = config.is_plain
        """Asked for each batch."""
        self.segments = loaded.segments
        self.epochs: LeaderEpochs = loaded.epochs
        self.known_producers = loaded.producers
        """None until somebody needs them: `producers` reads them from the last snapshot and the log."""
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.generation = 0
        """Counts truncations: a flush begun before one says nothing about what was written after it."""
        self.before_truncate: Callable[[int], None] | None = None
        """Called with the new end before any byte goes: a recovery point on disk must never lie beyond the data."""

    def assign_topic_id(self, topic_id: bytes) -> None:
        if self.topic_id is None:
            self.topic_id = topic_id
            self.guarded(lambda: self.chain.write_topic_id(topic_id), "partition.metadata")

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self.is_plain = config.is_plain
        self.active.doubt_room()

    @property
    def path(self) -> str:
        return self.chain.path

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
    def is_online(self) -> bool:
        return self.latch.error is None

    @property
    def filesystem(self) -> Filesystem:
        return self.chain.fs

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in force at `offset`; -1 if none is known."""
        return self.epochs.epoch_for(offset)

    def offset_for_leader_epoch(self, epoch: int) -> EpochEnd:
        """(-1, -1) when the epoch is unknown here."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    # -- producers and transactions ------------------------------------------------------------------------------------

    @property
    def producers(self) -> ProducerStates:
        return self.known_producers or self.load_producers()

    def load_producers(self) -> ProducerStates:
        self.known_producers = recovery.load_producers(
            self.chain.fs,
            self.path,
            self.segments,
            self.chain.snapshots,
            self.config,
            log_start_offset=self.log_start_offset,
            end_offset=self.log_end_offset,
            now=0,
        )
        return self.known_producers

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it every transaction is decided, and its marker replicated."""
        producers = self.known_producers or self.load_producers()
        if not producers.ongoing and not producers.unreplicated:
            return high_watermark
        unstable = producers.first_unstable(high_watermark)
        if unstable is None:
            return high_watermark
        return min(high_watermark, max(unstable, self.log_start_offset))

    def forget_replicated_ends(self, high_watermark: int) -> None:
        """A follower nobody reads from asks for no stable offset: the ends of transactions must not pile up there."""
        if self.known_producers is not None and self.known_producers.unreplicated:
            self.known_producers.first_unstable(high_watermark)

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
        return 0 if self.known_producers is None else len(self.known_producers.producers)

    def expire_producers(self, now: int) -> None:
        if self.known_producers is not None:
            self.known_producers.expire(now, self.config.producer_id_expiration_ms)

    # -- the end: records are appended ---------------------------------------------------------------------------------

    def place(self, batch: memoryview, last_offset_delta: int, timestamp: int, leader_epoch: int, now: int) -> int:
        """Gives the batch its place at the log's end. Returns its base offset."""
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        segment = self.active
        try:
            if segment.is_full(len(batch), last_offset, timestamp, self.config, now):
                segment = self.roll_to(now, base_offset)
            b.assign(batch, base_offset, leader_epoch)
            if leader_epoch != self.epochs.latest:
                self.epochs.assign(leader_epoch, base_offset)
            segment.append(batch, base_offset, last_offset, timestamp, self.config.index_interval_bytes)
        except OSError as error:
            self.append_failed(error)
        self.log_end_offset = last_offset + 1
        return base_offset

    def append_own(self, batch: bytearray, count: int, timestamp: int, leader_epoch: int) -> int:
        """A batch of this node's own making, just sealed, of records that all bear `timestamp` and have no producer.

        Returns its base offset. Raises StorageError if the disk refuses.
        """
        self.latch.check()
        return self.place(memoryview(batch), count - 1, timestamp, leader_epoch, timestamp)

    def append_failed(self, error: OSError) -> NoReturn:
        """Rolls a partial write back. If that fails too, or the error is more than lack of room: offline."""
        if isinstance(error, StorageError):
            raise error
        try:
            self.active.rollback()
        except OSError as second:
            self.latch.take_offline(StorageError(self.latch.directory, "a partial append stays behind", second))
        self.latch.fail(f"cannot append to {self.topic_partition}", error)

    def note_aborted(self, txn: AbortedTxn) -> None:
        """The marker is in the log already, so a missing entry would show aborted records: no room is fatal here."""
        try:
            self.active.append_aborted(txn)
        except OSError as error:
            failure = StorageError(self.latch.directory, "cannot write a transaction index", error)
            self.latch.take_offline(failure)
            raise failure from error

    def roll(self, now: int) -> None:
        """Begins a new segment at the log end; an empty active one is left as it is."""
        self.latch.check()
        if self.active.size:
            self.guarded(lambda: self.roll_to(now, self.log_end_offset), "cannot roll")

    def roll_to(self, now: int, base_offset: int) -> Segment:
        old = self.active
        if old.size == 0:
            return old if old.base_offset == base_offset else self.chain.move_empty(base_offset, now)
        old.finish()
        self._take_snapshot(base_offset)
        return self.chain.begin(base_offset, now)

    def _take_snapshot(self, offset: int) -> None:
        """Producers as of `offset`."""
        if self.chain.lacks_snapshot(offset):
            self.chain.write_snapshot(offset, self.producers.encode_snapshot())

    # -- the beginning: records are let go -----------------------------------------------------------------------------

    def raise_start(self, offset: int) -> None:
        # The recovery point stays, unlike Kafka's: the segment that holds `offset` may have unflushed batches below it.
        self.log_start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self.epochs.write()

    def deletion(self, paths: list[str]) -> Deletion:
        return Deletion(tuple(paths), self.config.file_delete_delay_ms)

    def replace_segments(self, old: Sequence[tuple[Segment, int]], new: Replacement) -> Deletion | None:
        """Puts a cleaned segment in the place of `old` ones, each given with the size it had when it was read.

        None if the log has changed there since: the caller discards its work. What is returned may be removed only
        after the directory has been synced, for until then a power cut can bring the old names back.
        """
        self.latch.check()
        start = self.chain.place_of(old)
        if start is None:
            return None
        try:
            return self.deletion(self.chain.swap(start, start + len(old), new))
        except OSError as error:
            # Half a swap is finished by the next start, and by nothing else: lack of room is no excuse here.
            failure = StorageError(self.latch.directory, f"cannot swap segments of {self.topic_partition}", error)
            self.latch.take_offline(failure)
            raise failure from error

    # -- the end: records are taken back -------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now: int) -> Deletion | None:
        """The log ends at `offset` afterwards; None if it did not reach that far."""
        assert offset >= 0
        self.latch.check()
        if offset >= self.log_end_offset:
            if self.epochs.truncate_from_end(self.log_end_offset):
                self.guarded(self.epochs.write, "cannot write leader epochs")
            return None
        if offset < self.segments[0].base_offset:
            return self.truncate_fully_and_start_at(offset, now)
        return self.guarded(lambda: self._truncate(offset), f"cannot truncate {self.topic_partition}")

    def _truncate(self, offset: int) -> Deletion:
        assert offset <= self.log_end_offset
        if self.before_truncate is not None:
            self.before_truncate(offset)
        self.generation += 1
        self.recovery_point = min(self.recovery_point, offset)
        paths = self.chain.cut(offset)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        if self.epochs.truncate_from_end(offset):
            self.epochs.write()
        self.chain.remove_snapshots(lambda at: at > offset)
        self.known_producers = None  # read again from the last snapshot and the log when next needed
        self.chain.unsynced.append(self.path)
        return self.deletion(paths)

    def truncate_fully_and_start_at(self, offset: int, now: int) -> Deletion:
        self.latch.check()
        return self.guarded(lambda: self._restart_at(offset, now), f"cannot truncate {self.topic_partition}")

    def _restart_at(self, offset: int, now: int) -> Deletion:
        if self.before_truncate is not None:
            self.before_truncate(min(offset, self.log_start_offset))
        self.generation += 1
        paths = self.chain.restart(offset, now)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self.epochs.clear()
        self.epochs.write()
        self.known_producers = ProducerStates(offset)
        self.chain.unsynced.append(self.path)
        return self.deletion(paths)

    def begin_at(self, offset: int, now: int) -> None:
        """An empty log begins there instead."""
        if self.before_truncate is not None:
            self.before_truncate(offset)
        self.generation += 1
        self.chain.move_empty(offset, now)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self.known_producers = ProducerStates(offset)

    # -- making durable ------------------------------------------------------------------------------------------------

    def flush_begin(self) -> Flush | None:
        """Notes what `Flush.run` has to sync; None when everything below the log end is durable already."""
        if self.recovery_point >= self.log_end_offset and not self.chain.unsynced and not self.epochs.dirty:
            return None
        if self.log_end_offset == 0:
            # Nothing was ever written: if a power cut takes the empty files, they are made again, just as empty.
            return None
        self.latch.check()
        return self.guarded(self._plan_flush, "cannot write indexes")

    def _plan_flush(self) -> Flush:
        flush = Flush(self.chain.fs, self.latch, self.log_end_offset, self.generation)
        self.chain.plan_segments(flush, self.recovery_point)
        if self.epochs.dirty:
            self.epochs.write()
            self.epochs.dirty = False
            self.chain.unsynced += [self.epochs.path, self.path]
        self.chain.plan_rest(flush)
        return flush

    def flush_done(self, flush: Flush) -> None:
        """`flush.run` has succeeded: the recovery point follows."""
        if flush.generation == self.generation:
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

    # -- leaving -------------------------------------------------------------------------------------------------------

    def close(self, *, clean: bool = True) -> None:
        """A clean close leaves nothing to recover: snapshot at the log end, exact indexes, all of it synced."""
        if clean:
            flush = self.close_begin()
            if flush is not None:
                flush.run()
                self.flush_done(flush)
        self.chain.close()

    def close_begin(self) -> Flush | None:
        """Writes what a clean close leaves behind; `Flush.run`, `flush_done` and `close(clean=False)` follow."""
        self.latch.check()
        self.guarded(self._settle, f"cannot close {self.topic_partition}")
        return self.flush_begin()

    def _settle(self) -> None:
        self._take_snapshot(self.log_end_offset)
        self.chain.finish()

    def delete(self, unique: str) -> Deletion:
        """Renames the directory so that the topic may be created again at once; the rest is removed later."""
        self.latch.check()
        self.chain.close()
        target = f"{parent(self.path)}/{names.marked_dir_name(self.topic_partition, unique, names.DELETE_DIR)}"
        self.guarded(lambda: self.chain.rename(target), f"cannot delete {self.topic_partition}")
        return Deletion((), self.config.file_delete_delay_ms, target)

    # -- taking the place of another -----------------------------------------------------------------------------------

    def rename(self, target: str) -> None:
        """To another name in the same directory. No flush may be under way."""
        self.latch.check()
        self.guarded(lambda: self.chain.rename(target), f"cannot rename {self.path}")
        self.epochs.moved(target)
        self.chain.unsynced += [target, parent(target)]

    def succeed(self, other: "Log") -> None:
        """This log is a copy of the whole of the other, and takes its place: what the other knows of producers beyond
        its records, such as verifications under way (KIP-890), goes over."""
        assert self.log_end_offset == other.log_end_offset, "a copy that is not whole"
        self.known_producers = other.known_producers

    def guarded(self, action: Callable[[], T], what: str) -> T:
        try:
            return action()
        except OSError as error:
            self.latch.fail(what, error)
