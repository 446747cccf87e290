"""The partitions of this node: follows the metadata image, appends, and tells who waits what has become visible."""

import logging
from collections.abc import Callable, Iterable

from ottla.broker.configs import Configs
from ottla.broker.partition import Partition, TopicPartitions
from ottla.broker.waiting import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId, LeaderEpoch, Offset, TopicPartition
from ottla.model.ports import Clock, Ids
from ottla.protocol.batch import Buffer
from ottla.replication.leader import PartitionLeader
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import CorruptLog, StorageError
from ottla.storage.log import CLIENT, COORDINATOR, Appended, Deletion, Log, Origin, Rejected
from ottla.storage.producer_state import UNCHECKED, Verification

log = logging.getLogger(__name__)

_OFFLINE = Rejected(Errors.KAFKA_STORAGE_ERROR, "the log directory of this partition is offline")
_FULL = Rejected(
    Errors.KAFKA_STORAGE_ERROR, "the disk of this partition is nearly full: see ottla.disk.low.water.bytes"
)


class Replicas:
    __slots__ = (
        "_clock",
        "_configs",
        "_directories",
        "_ids",
        "_waiting",
        "broker_id",
        "by_id",
        "by_name",
        "deletions",
        "flush_wanted",
        "log_start_moved",
    )

    def __init__(
        self,
        broker_id: BrokerId,
        directories: list[LogDirectory],
        configs: Configs,
        waiting: WaitingRequests,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.broker_id = broker_id
        self._directories = directories
        self._configs = configs
        self._waiting = waiting
        self._clock = clock
        self._ids = ids
        self.by_name: dict[str, TopicPartitions] = {}
        self.by_id: dict[bytes, TopicPartitions] = {}
        self.flush_wanted: Callable[[Partition], None] = lambda _: None
        """Told of every partition whose topic asks for an fsync now; housekeeping listens."""
        self.log_start_moved: Callable[[], None] = lambda: None
        """Told when records were deleted on request: housekeeping checkpoints soon, so that they stay deleted."""
        self.deletions: list[tuple[LogDirectory, Deletion]] = []
        """Files to remove once they are due: housekeeping takes them from here."""

    # ---- looking up

    def find(self, topic: str, index: int) -> Partition | None:
        known = self.by_name.get(topic)
        return known.partitions.get(index) if known is not None else None

    def all(self) -> Iterable[Partition]:
        for topic in self.by_name.values():
            yield from topic.partitions.values()

    @property
    def directories(self) -> list[LogDirectory]:
        return self._directories

    # ---- records

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
            return _FULL
        try:
            outcome = log_.append_as_leader(records, leader.leader_epoch, now, origin=origin, verification=verification)
        except StorageError as error:
            self.storage_failed(directory, error)
            return _OFFLINE
        if isinstance(outcome, Rejected) or outcome.duplicate:
            return outcome
        return self._appended(partition, log_, leader, outcome, len(records))

    def append_internal(self, partition: Partition, batches: Buffer, now: int) -> Appended | Rejected:
        """Records of a coordinator, all of the batches or none. Groups keep working on a disk that is nearly full."""
        return self.append_marker(partition, batches, now, transaction_version=0)

    def append_marker(
        self, partition: Partition, marker: Buffer, now: int, transaction_version: int
    ) -> Appended | Rejected:
        """The end of a transaction. A disk that is nearly full still takes it: readers wait for it."""
        log_, leader, directory = partition.log, partition.leader, partition.directory
        assert log_ is not None and leader is not None and directory is not None
        try:
            outcome = log_.append_as_leader(
                marker, leader.leader_epoch, now, origin=COORDINATOR, transaction_version=transaction_version
            )
        except StorageError as error:
            self.storage_failed(directory, error)
            return _OFFLINE
        if isinstance(outcome, Rejected):
            return outcome
        self._appended(partition, log_, leader, outcome, len(marker))
        log_.last_stable_offset(leader.high_watermark)  # forgets the ends that are replicated
        return outcome

    def _appended(
        self, partition: Partition, log_: Log, leader: PartitionLeader, outcome: Appended, size: int
    ) -> Appended:
        flush_messages = log_.config.flush_messages
        if flush_messages <= outcome.last_offset + 1 - log_.recovery_point:
            self.flush_wanted(partition)
        # With flush.messages=1 the leader counts its own copy only once it is on the disk: see `flushed`.
        if flush_messages != 1 and leader.log_end_moved(log_.log_end_offset):
            waiting = self._waiting
            if waiting.fetches.waiting or waiting.produces.waiting:
                waiting.records_visible(partition, size)
        return outcome

    def flushed(self, partition: Partition) -> None:
        """The log of a partition that acknowledges only what is on the disk has been flushed."""
        if partition.log is None or partition.leader is None:
            return
        if partition.log.config.flush_messages == 1:
            behind = partition.log.recovery_point - partition.leader.high_watermark
            if partition.leader.log_end_moved(Offset(partition.log.recovery_point)):
                self._waiting.records_visible(partition, max(1, behind))

    def delete_records_before(self, partition: Partition, offset: int) -> Errors:
        log_, leader, directory = partition.log, partition.leader, partition.directory
        assert log_ is not None and leader is not None and directory is not None
        try:
            error = log_.delete_records_before(offset, leader.high_watermark)
            self.log_start_moved()
            return error
        except StorageError as error:
            self.storage_failed(directory, error)
            return Errors.KAFKA_STORAGE_ERROR

    # ---- what the metadata says

    def load(self, image: MetadataImage) -> None:
        """At start: takes the logs that the image places here, makes those that are missing, sets strangers aside."""
        self._set_strays_aside(image)
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                if self.broker_id in partition.replicas:
                    self._place(topic.name, topic.id, index, partition)

    def _set_strays_aside(self, image: MetadataImage) -> None:
        """A log whose topic is gone, or was made again under its name: kept under another name, never guessed at."""
        for directory in self._directories:
            for name, found in list(directory.logs.items()):
                topic = image.topics.get(name.topic)
                placed = topic.partitions.get(name.partition) if topic is not None else None
                known_id = topic is not None and found.topic_id in (None, topic.id)
                if placed is None or not known_id or self.broker_id not in placed.replicas:
                    where = directory.set_aside(name, self._ids.uuid().hex())
                    log.warning("the metadata does not know the log of %s: it was set aside as %s", name, where)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, *, settings_changed: bool) -> None:
        for topic_id in delta.deleted_topics:
            self._remove_topic(topic_id)
        for topic_id, partitions in delta.changed_partitions.items():
            name = image.topics_by_id[topic_id].name
            for index, partition in partitions.items():
                if self.broker_id in partition.replicas:
                    self._place(name, topic_id, index, partition)
        if settings_changed:
            for topic in self.by_name:
                self._reconfigure(topic)
        for kind, name in delta.changed_configs:
            if kind == TOPIC_RESOURCE and name in self.by_name:
                self._reconfigure(name)

    def _reconfigure(self, topic: str) -> None:
        config = self._configs.log_config(topic)
        for partition in self.by_name[topic].partitions.values():
            if partition.log is not None:
                partition.log.update_config(config)

    def _place(self, topic: str, topic_id: bytes, index: int, placed: PartitionImage) -> None:
        known = self.by_id.get(topic_id)
        if known is None:
            known = self.by_id[topic_id] = self.by_name[topic] = TopicPartitions(topic, topic_id)
        partition = known.partitions.get(index)
        if partition is None:
            partition = known.partitions[index] = Partition(topic, topic_id, index)
            self._open(partition)
        self._lead(partition, placed)

    def _open(self, partition: Partition) -> None:
        name = TopicPartition(partition.topic, partition.index)
        config = self._configs.log_config(partition.topic)
        directory = next((d for d in self._directories if name in d.logs), None)
        try:
            refused = next((d.refused[name] for d in self._directories if name in d.refused), None)
            if refused is not None:
                raise refused
            if directory is None:
                directory = self._emptiest()
                partition.log = directory.create_log(name, partition.topic_id, config, self._clock.wall())
            else:
                partition.log = directory.logs[name]
                partition.log.assign_topic_id(partition.topic_id)
                partition.log.update_config(config)
        except (StorageError, CorruptLog) as error:
            log.error(
                "%s is offline and untouched: %s. Restore its directory from a copy, or move it away and restart to "
                "begin with an empty one.",
                name,
                error,
            )
            partition.offline = True
            return
        partition.directory = directory

    def _emptiest(self) -> LogDirectory:
        online = [directory for directory in self._directories if directory.is_online]
        if not online:
            raise StorageError(self._directories[0].path, "no log directory of this node is online")
        return min(online, key=lambda directory: len(directory.logs))

    def _lead(self, partition: Partition, placed: PartitionImage) -> None:
        log_ = partition.log
        if placed.leader != self.broker_id or log_ is None:
            partition.leader = None
            self._waiting.partition_changed(partition)
            return
        leader = partition.leader
        if leader is not None and leader.leader_epoch == placed.leader_epoch:
            leader.partition_epoch, leader.isr = placed.partition_epoch, tuple(map(BrokerId, placed.isr))
            return
        partition.leader = PartitionLeader(
            self.broker_id,
            LeaderEpoch(placed.leader_epoch),
            placed.partition_epoch,
            tuple(map(BrokerId, placed.isr)),
            high_watermark=Offset(log_.log_end_offset),
            log_end_offset=Offset(log_.log_end_offset),
        )
        self._waiting.partition_changed(partition)

    def _remove_topic(self, topic_id: bytes) -> None:
        topic = self.by_id.pop(topic_id, None)
        if topic is None:
            return
        if self.by_name.get(topic.name) is topic:
            del self.by_name[topic.name]
        for partition in topic.partitions.values():
            if partition.log is not None and partition.directory is not None:
                try:
                    deletion = partition.directory.delete_log(
                        partition.log.topic_partition, self._ids.uuid().hex(), self._clock.wall()
                    )
                    self.deletions.append((partition.directory, deletion))
                except StorageError as error:
                    self.storage_failed(partition.directory, error)
            partition.log = partition.leader = None
            self._waiting.partition_changed(partition)

    # ---- when a disk fails

    def storage_failed(self, directory: LogDirectory, error: StorageError) -> None:
        log.error("%s", error)
        if not directory.is_online:
            self.take_offline(directory)

    def read_failed(self, partition: Partition, error: StorageError) -> None:
        if partition.directory is not None:
            self.storage_failed(partition.directory, error)

    def take_offline(self, directory: LogDirectory) -> None:
        """Drops every leadership in a failed directory; its partitions answer KAFKA_STORAGE_ERROR from now on."""
        for partition in self.all():
            if partition.directory is directory and not partition.offline:
                partition.offline = True
                partition.log = partition.leader = None
                self._waiting.partition_changed(partition)
