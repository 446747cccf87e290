"""The partitions of this node: appends, hears of followers, and tells who waits what has become visible.

Which partitions there are and who leads them is `placement`'s to say.
"""

import logging
from collections.abc import Iterable
from typing import Final

from ottla.broker.events import Events
from ottla.broker.partition import FutureReplica, Partition, TopicPartitions
from ottla.broker.replicas.fetch_sessions import FetchSession
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metrics.counts import ReplicaCounts, TopicCounts
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.ports import Clock
from ottla.protocol.batch import Buffer
from ottla.protocol.ordinary_produce import Batch, failed_row, row
from ottla.replication.leader import (
    HIGH_WATERMARK_MOVED,
    ISR_CHANGE_WANTED,
    LOG_START_MOVED,
    LONG_AGO,
    Brokers,
    IsrChange,
    PartitionLeader,
)
from ottla.storage.answers import CLIENT, COORDINATOR, Appended, Deletion, Origin, Rejected
from ottla.storage.config import NEVER
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import NO_ROOM, StorageError
from ottla.storage.leading import append_as_leader, append_end
from ottla.storage.log import Log
from ottla.storage.marker import Marker
from ottla.storage.ordinary import Admitted, admit, settle, withdraw_each, write_each
from ottla.storage.producer_state import UNCHECKED, Verification
from ottla.storage.retention import delete_records_before

logger = logging.getLogger(__name__)

OFFLINE = Rejected(Errors.KAFKA_STORAGE_ERROR, "the log directory of this partition is offline")
_FULL = Rejected(
    Errors.KAFKA_STORAGE_ERROR, "the disk of this partition is nearly full: see ottla.disk.low.water.bytes"
)
_TOO_FEW: Final = "fewer replicas are in sync than min.insync.replicas"
_SILENT_MS: Final = 10_000
"""After a directory has complained of something that passes, such as lack of room."""
_STAND_DOWN_AGAIN_MS: Final = 60_000
"""Where no replica has room, leaderships must not go round in circles."""
_MAX_PREFERRED: Final = 10_000
"""Wishes for replicas that may never come: the oldest is forgotten."""
_MANY: Final = 1 << 62
"""Bytes that became visible when nobody counted them: whoever waits looks for itself."""


class Replicas:
    __slots__ = (
        "_clock",
        "_directories",
        "_silent_until",
        "_waiting",
        "broker_id",
        "brokers",
        "by_id",
        "by_name",
        "copying",
        "counts",
        "deletions",
        "events",
        "forgotten",
        "preferred",
    )

    def __init__(
        self,
        broker_id: BrokerId,
        directories: list[LogDirectory],
        waiting: WaitingRequests,
        clock: Clock,
        events: Events,
    ) -> None:
        self.broker_id = broker_id
        self._directories = directories
        self._waiting = waiting
        self._clock = clock
        self.events = events
        self._silent_until: dict[tuple[str, int | None], int] = {}
        """When what a directory has complained of may be said again."""
        self.brokers = Brokers()
        self.by_name: dict[str, TopicPartitions] = {}
        self.by_id: dict[bytes, TopicPartitions] = {}
        self.copying: dict[int, list[FetchSession]] = {}
        """The sessions in which other brokers copy from this one, by broker id."""
        self.deletions: list[tuple[LogDirectory, Deletion]] = []
        """Files to remove once they are due: housekeeping takes them from here."""
        self.preferred: dict[TopicPartition, LogDirectory] = {}
        """Where replicas that are not here yet shall have their logs, if they come."""
        self.counts = ReplicaCounts()
        self.forgotten = TopicCounts()
        """What topics that are no longer here have counted."""

    # ---- looking up

    def find(self, topic: str, index: int) -> Partition | None:
        known = self.by_name.get(topic)
        return known.partitions.get(index) if known is not None else None

    def all(self) -> Iterable[Partition]:
        for topic in self.by_name.values():
            yield from topic.partitions.values()

    def forget(self, topic: TopicPartitions) -> None:
        self.forgotten.add(topic.counts)
        del self.by_id[topic.id]
        if self.by_name.get(topic.name) is topic:  # else the name belongs to one that was made since
            del self.by_name[topic.name]

    @property
    def directories(self) -> list[LogDirectory]:
        return self._directories

    def prefer(self, name: TopicPartition, directory: LogDirectory) -> None:
        """A replica that is to come here is told its place before it comes, as a reassignment of Kafka's tools does."""
        self.preferred.pop(name, None)
        self.preferred[name] = directory
        if len(self.preferred) > _MAX_PREFERRED:
            del self.preferred[next(iter(self.preferred))]

    # ---- records of leaders

    def append(
        self,
        partition: Partition,
        records: Buffer,
        now: int,
        *,
        origin: Origin = CLIENT,
        verification: Verification | None = UNCHECKED,
    ) -> Appended | Rejected:
        log_, leader, directory = partition.log, partition.leader, partition.directory
        assert log_ is not None and leader is not None and directory is not None
        if directory.low_on_space:
            self._stand_down(partition)
            return _FULL
        try:
            outcome = append_as_leader(
                log_, records, leader.leader_epoch, now, origin=origin, verification=verification
            )
        except StorageError as error:
            return self._append_failed(partition, directory, error)
        if not isinstance(outcome, Rejected) and not outcome.duplicate:
            partition.counts.messages_in += log_.log_end_offset - outcome.base_offset
            partition.counts.bytes_in += len(records)
            self._appended(partition, log_, leader, outcome.base_offset, len(records))
        return outcome

    def append_ordinary(
        self,
        topics: list[tuple[TopicPartitions, list[Batch]]],
        now: int,
        uncommitted: dict[object, int],
        *,
        by_all: bool,
    ) -> list[bytes] | None:
        """What clients send nearly always: the rows of the answer. None, and nothing has happened, if any of the
        batches needs the closer look of `append`. Where the producer wants its records held `by_all` in sync
        (acks=all), a partition with too few of these needs it as well.

        Three passes: every batch is checked, then every batch is written, then every batch is settled. A write leaves
        little of the interpreter in the processor's caches, and to warm them up again costs more than the work itself.
        """
        admitted: dict[Partition, Admitted] = {}
        for topic, batches in topics:
            partitions = topic.partitions
            for batch, header in batches:
                partition = partitions.get(header[0])
                if (
                    partition is None
                    or partition in admitted
                    or (log_ := partition.log) is None
                    or (leader := partition.leader) is None
                    or (directory := partition.directory) is None
                    or directory.low_on_space
                    or (by_all and leader.under_min_isr)
                    or (admission := admit(log_, batch, header, leader.leader_epoch, now)) is None
                ):
                    withdraw_each(admitted)
                    return None
                admitted[partition] = admission
        failure = write_each(admitted)
        refused = self._refused(admitted, *failure) if failure is not None else None
        rows: list[bytes] = []
        waiting = self._waiting
        for partition, admission in admitted.items():
            if refused is not None and partition in refused:
                partition.counts.produces += 1
                partition.counts.failed_produces += 1
                rows.append(failed_row(partition.index, Errors.KAFKA_STORAGE_ERROR))
                continue
            log_, leader = partition.log, partition.leader
            assert log_ is not None and leader is not None
            base_offset = settle(log_, admission)
            end = log_.log_end_offset
            counts = partition.counts
            counts.produces += 1
            counts.messages_in += end - base_offset
            counts.bytes_in += len(admission[1])
            if leader.followers or log_.config.flush_messages != NEVER:
                if not self._appended(partition, log_, leader, base_offset, len(admission[1])):
                    uncommitted[partition] = end
            elif leader.log_end_moved(end) and (waiting.fetches.waiting or waiting.produces.waiting):
                waiting.records_visible(partition, len(admission[1]))  # a leader without followers commits by itself
            rows.append(row(partition.index, base_offset, log_.log_start_offset))
        return rows

    def _refused(self, admitted: dict[Partition, Admitted], failed: Partition, error: OSError) -> list[Partition]:
        """Those that are not to be settled: the one that failed, those behind it that have not been written, and all
        whose directory is offline now."""
        assert failed.log is not None and failed.directory is not None
        try:
            failed.log.append_failed(error)
        except StorageError as failure:
            self._append_failed(failed, failed.directory, failure)
        partitions = list(admitted)
        written = partitions[: partitions.index(failed)]
        return [partition for partition in partitions if partition not in written or partition.log is None]

    def append_own(self, partition: Partition, batch: bytearray, count: int, timestamp: int) -> int | Rejected:
        """A batch that a coordinator of this node has just sealed: so many records of one timestamp without a producer.

        Gives its first offset. Nothing in it needs to be looked at, unless the topic's configuration is a rare one.
        """
        log_, leader, directory = partition.log, partition.leader, partition.directory
        assert log_ is not None and leader is not None and directory is not None
        config, size = log_.config, len(batch)
        if config.log_append_time or size > config.max_message_bytes or size > config.segment_bytes:
            outcome = self.append_internal(partition, batch, timestamp)
            return outcome if isinstance(outcome, Rejected) else outcome.base_offset
        if leader.under_min_isr:
            return Rejected(Errors.NOT_ENOUGH_REPLICAS, _TOO_FEW)
        try:
            base_offset = log_.append_own(batch, count, timestamp, leader.leader_epoch)
        except StorageError as error:
            return self._append_failed(partition, directory, error)
        counts = partition.counts
        counts.messages_in += count
        counts.bytes_in += size
        self._appended(partition, log_, leader, base_offset, size)
        log_.last_stable_offset(leader.high_watermark)  # forgets the ends that are replicated
        return base_offset

    def append_internal(self, partition: Partition, batches: Buffer, now: int) -> Appended | Rejected:
        """Records of a coordinator, all of the batches or none. Groups keep working on a disk that is nearly full."""
        log_, leader, directory = partition.log, partition.leader, partition.directory
        assert log_ is not None and leader is not None and directory is not None
        if leader.refusal:
            return Rejected(leader.refusal, _TOO_FEW)
        try:
            outcome = append_as_leader(log_, batches, leader.leader_epoch, now, origin=COORDINATOR)
        except StorageError as error:
            return self._append_failed(partition, directory, error)
        return self._appended_unasked(partition, log_, leader, outcome, len(batches))

    def append_end(
        self, partition: Partition, batch: bytearray, producer: tuple[int, int], marker: Marker, now: int, version: int
    ) -> Appended | Rejected:
        """The end of a transaction of this `version`, in a batch that this node has just sealed with the time `now`. A
        disk that is nearly full still takes it: readers wait for it."""
        log_, leader, directory = partition.log, partition.leader, partition.directory
        assert log_ is not None and leader is not None and directory is not None
        if leader.refusal:
            return Rejected(leader.refusal, _TOO_FEW)
        config, size, epoch = log_.config, len(batch), leader.leader_epoch
        try:
            if config.log_append_time or size > config.max_message_bytes or size > config.segment_bytes:
                outcome = append_as_leader(log_, batch, epoch, now, origin=COORDINATOR, transaction_version=version)
            else:
                outcome = append_end(log_, batch, *producer, marker, epoch, now, version)
        except StorageError as error:
            return self._append_failed(partition, directory, error)
        return self._appended_unasked(partition, log_, leader, outcome, size)

    def _appended_unasked(
        self, partition: Partition, log_: Log, leader: PartitionLeader, outcome: Appended | Rejected, size: int
    ) -> Appended | Rejected:
        if not isinstance(outcome, Rejected):
            partition.counts.messages_in += log_.log_end_offset - outcome.base_offset
            partition.counts.bytes_in += size
            self._appended(partition, log_, leader, outcome.base_offset, size)
            log_.last_stable_offset(leader.high_watermark)  # forgets the ends that are replicated
        return outcome

    def _appended(self, partition: Partition, log_: Log, leader: PartitionLeader, base_offset: int, size: int) -> bool:
        """Whether what was appended is committed."""
        end = log_.log_end_offset
        flush_messages = log_.config.flush_messages
        if flush_messages != NEVER and flush_messages <= end - log_.recovery_point:
            self.events.flush_wanted.tell(partition)
        now = self._tell_followers(partition, leader, base_offset, size) if leader.followers else 0
        if flush_messages == 1:  # the leader counts its own copy only once it is on the disk: see `flushed`
            return False
        if leader.log_end_moved(end, now):
            waiting = self._waiting
            if waiting.fetches.waiting or waiting.produces.waiting:
                waiting.records_visible(partition, size)
        return leader.high_watermark >= end  # it may have moved, and not as far as this

    def _tell_followers(self, partition: Partition, leader: PartitionLeader, base_offset: int, size: int) -> int:
        """There is something to copy. Gives the time, which the high watermark depends on where others count."""
        now = self._clock.monotonic()
        leader.appended(base_offset, now)
        self.note_news(partition, leader.followers)
        if self._waiting.copies.waiting:
            self._waiting.records_appended(leader.followers, size)
        return now

    def flushed(self, partition: Partition) -> None:
        """The log of a partition that acknowledges only what is on the disk has been flushed."""
        if partition.log is None or partition.log.config.flush_messages != 1:
            return
        if partition.leader is None:
            self.events.followed.tell(partition)  # it may ask its leader for more
        elif partition.leader.log_end_moved(partition.log.recovery_point, self._clock.monotonic()):
            self.show(partition, partition.leader)

    def delete_records_before(self, partition: Partition, offset: int) -> Errors:
        log_, directory = partition.log, partition.directory
        assert log_ is not None and directory is not None
        try:
            error = delete_records_before(log_, offset, partition.high_watermark)
            self.events.log_start_moved.tell()
            if partition.leader is not None:
                self.note_news(partition, partition.leader.followers)
            return error
        except StorageError as error:
            self.storage_failed(directory, error)
            return Errors.KAFKA_STORAGE_ERROR

    # ---- followers of ours

    def fetched_by(
        self,
        partition: Partition,
        replica_id: int,
        offset: int,
        log_start_offset: int,
        broker_epoch: int,
        *,
        takes_records: bool = True,
    ) -> None:
        """A follower asks for `offset`, which is in the log, and does not diverge."""
        log_, leader = partition.log, partition.leader
        assert log_ is not None and leader is not None
        now = self._clock.monotonic()
        moved = leader.fetched(
            replica_id,
            offset,
            log_start_offset,
            broker_epoch,
            log_.log_end_offset,
            now,
            takes_records=takes_records,
        )
        if not moved:
            return
        waiting = self._waiting
        if moved & HIGH_WATERMARK_MOVED:
            self.note_news(partition, leader.followers)
            if waiting.fetches.waiting or waiting.produces.waiting:
                waiting.records_visible(partition, _MANY)
        if moved & ISR_CHANGE_WANTED:
            self.events.isr_change_wanted.tell(partition)
        if moved & LOG_START_MOVED and waiting.deletes.waiting:
            waiting.low_watermark_moved(partition, leader.low_watermark(log_.log_start_offset))

    def attend(self, replica_id: int, session: FetchSession) -> None:
        """A broker has opened a session to copy from here: from now on it is told what is worth a look."""
        session.attention = dict.fromkeys(session.partitions)
        alive = [known for known in self.copying.get(replica_id, ()) if not known.ended]
        self.copying[replica_id] = [*alive, session]

    def note_news(self, partition: Partition, followers: Iterable[int]) -> None:
        key = partition.key
        for replica_id in followers:
            for session in self.copying.get(replica_id, ()):
                if session.attention is not None:
                    session.attention[key] = None

    def shrink_isrs(self) -> None:
        """Looks for followers that lag; called every now and then."""
        now = self._clock.monotonic()
        for partition in self.all():
            leader, log_ = partition.leader, partition.log
            if leader is not None and log_ is not None and leader.followers and leader.shrink(log_.log_end_offset, now):
                self.events.isr_change_wanted.tell(partition)
        self.look_again()

    def look_again(self, *partitions: Partition) -> None:
        """Whether something is committed of which nobody will tell, in these or in all: those who wait for it would be
        told by the next record, or never."""
        now = self._clock.monotonic()
        for partition in partitions or self.all():
            leader = partition.leader
            if leader is not None and leader.looked_at_again(now):
                self.show(partition, leader)

    def isr_agreed(
        self, partition: Partition, change: IsrChange, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]
    ) -> None:
        leader = partition.leader
        if leader is None:
            return
        before = len(leader.isr)
        if leader.agreed(change, leader_epoch, partition_epoch, isr, self._clock.monotonic()):
            self.show(partition, leader)
        self.counts.isr_changed(before, len(leader.isr))
        self.note_news(partition, leader.followers)

    def show(self, partition: Partition, leader: PartitionLeader) -> None:
        """The high watermark moved, and nobody counted over how many bytes."""
        self.note_news(partition, leader.followers)
        self._waiting.records_visible(partition, _MANY)

    def high_watermarks(self) -> dict[LogDirectory, dict[TopicPartition, int]]:
        """What each directory's checkpoint should say. Damaged logs keep what they had."""
        marks: dict[LogDirectory, dict[TopicPartition, int]] = {
            directory: {
                name: mark for name, mark in directory.saved.high_watermarks.items() if name in directory.refused
            }
            for directory in self._directories
        }
        for partition in self.all():
            role = partition.role
            if role is not None and partition.log is not None and partition.directory is not None:
                marks[partition.directory][partition.log.topic_partition] = role.high_watermark
        return marks

    def drop(self, partition: Partition) -> None:
        followers = partition.leader.followers if partition.leader is not None else ()
        partition.log = partition.leader = partition.follower = None
        self.note_news(partition, followers)
        self._waiting.partition_changed(partition)
        self._waiting.followers_changed(followers)
        self.events.followed.tell(partition)

    # ---- copies in other directories

    def drop_future(self, partition: Partition) -> None:
        """The partition stays where it is, and the metadata is to say so."""
        future, directory = partition.future, partition.directory
        partition.future = None
        if future is not None and future.move.is_known and directory is not None and directory.id is not None:
            self.events.lies_in.tell(partition, directory.id)

    def delete_future(self, future: FutureReplica, unique: str) -> None:
        directory = future.directory
        if directory.is_online:
            try:
                self.deletions.append((directory, directory.delete_future(future.log.topic_partition, unique)))
            except StorageError as error:
                self.storage_failed(directory, error)

    # ---- when a disk fails

    def storage_failed(self, directory: LogDirectory, error: StorageError) -> None:
        if not directory.is_online or self._is_news(directory, error):
            logger.error("%s", error)
        if not directory.is_online:
            self.take_offline(directory)
        elif error.errno in NO_ROOM and not directory.is_full:
            self.no_room(directory)

    def no_room(self, directory: LogDirectory) -> None:
        """From now on it takes only what coordinators and the controller write, on what was held back for them."""
        logger.error("%s is full: records are refused until there is room", directory.path)
        directory.is_full = directory.low_on_space = True
        try:
            directory.release_reserve()
        except StorageError as error:
            self.storage_failed(directory, error)
            return
        self._tell_leaders(directory)

    def room_again(self, directory: LogDirectory) -> None:
        logger.warning("%s has room again: records are taken", directory.path)
        directory.is_full = directory.low_on_space = False
        for partition in self.all():
            if partition.directory is directory:
                partition.stood_down_at = LONG_AGO
        self._tell_leaders(directory)

    def _tell_leaders(self, directory: LogDirectory) -> None:
        """Of the partitions there that we follow: whether we can take records is part of what we ask."""
        for partition in self.all():
            if partition.directory is directory and partition.follower is not None:
                self.events.followed.tell(partition)

    def _append_failed(self, partition: Partition, directory: LogDirectory, error: StorageError) -> Rejected:
        self.storage_failed(directory, error)
        self._stand_down(partition)
        return OFFLINE

    def _stand_down(self, partition: Partition) -> None:
        """There is no room here for what a client sends. Who is in sync may have it, and is to lead instead."""
        leader, log_, now = partition.leader, partition.log, self._clock.monotonic()
        if leader is None or log_ is None or now - partition.stood_down_at < _STAND_DOWN_AGAIN_MS:
            return
        if leader.stand_down(log_.log_end_offset):
            logger.info("%s: another leader is asked for, as there is no room here", log_.topic_partition)
            partition.stood_down_at = now
            self.events.isr_change_wanted.tell(partition)

    def _is_news(self, directory: LogDirectory, error: StorageError) -> bool:
        """Clients and followers of a disk without room come back at once and for ever, and what is printed about them
        may have to stand on the same disk."""
        now, kind = self._clock.monotonic(), (directory.path, error.errno)
        if now < self._silent_until.get(kind, now):
            return False
        self._silent_until[kind] = now + _SILENT_MS
        return True

    def read_failed(self, partition: Partition, error: StorageError) -> None:
        if partition.directory is not None:
            self.storage_failed(partition.directory, error)

    def take_offline(self, directory: LogDirectory) -> None:
        """Drops every leadership in a failed directory; its partitions answer KAFKA_STORAGE_ERROR from now on."""
        for partition in list(self.all()):
            if partition.directory is directory and not partition.offline:
                partition.offline = True
                partition.future = None  # what was copied of it is looked at by the next start
                self.drop(partition)
            elif partition.future is not None and partition.future.directory is directory:
                self.drop_future(partition)
