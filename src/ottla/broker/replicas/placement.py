"""Which partitions are here, and in which role: makes, opens and deletes logs as the metadata image says."""

import logging
from typing import Final

from ottla.broker.partition import FutureReplica, Partition, TopicPartitions
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY, TOPIC_RESOURCE, MetadataImage, PartitionImage
from ottla.model.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, TopicPartition, Uuid, uuid_text
from ottla.model.ports import Clock, Ids
from ottla.replication.directory_move import DirectoryMove
from ottla.replication.follower import PartitionFollower
from ottla.replication.leader import PartitionLeader
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import ROOM_ERRORS, CorruptLog, StorageError
from ottla.storage.log import Log

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 16
"""New logs of one change of the metadata that are made at once. A file system takes milliseconds for each, and a topic
of a thousand partitions must not hold up heartbeats: the others come a few in each turn of the loop."""
_TURN_MS: Final = 10
_TRY_AGAIN_S: Final = 1.0


class Placement:
    __slots__ = (
        "_clock",
        "_configs",
        "_ids",
        "_image",
        "_replicas",
        "_unopened",
        "_waiting",
        "_without_room",
    )

    def __init__(self, replicas: Replicas, configs: Configs, waiting: WaitingRequests, clock: Clock, ids: Ids) -> None:
        self._replicas = replicas
        self._configs = configs
        self._waiting = waiting
        self._clock = clock
        self._ids = ids
        self._image = EMPTY
        self._unopened: dict[tuple[bytes, int], None] = {}
        """Partitions whose turn to get a log has not come yet."""
        self._without_room: dict[Partition, None] = {}
        """Those that got none for lack of room or of descriptors: tried again until there is."""

    def load(self, image: MetadataImage) -> None:
        """At start: takes the logs that the image places here, makes those that are missing, sets strangers aside.

        The image has to contain the registration of this run of the broker. An older one may call it the leader of an
        epoch it led before a power cut, in which it would write new records at offsets that it has used already.
        """
        self._replicas.brokers.registered = image.brokers
        self._image = image
        self._set_strays_aside(image)
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                if self._replicas.broker_id in partition.replicas:
                    self._place(topic.name, topic.id, index, partition)

    def _set_strays_aside(self, image: MetadataImage) -> None:
        """A log whose topic is gone, or was made again under its name: kept under another name, never guessed at."""
        for directory in self._replicas.directories:
            if not directory.is_online:
                continue
            for name, found in list(directory.logs.items()):
                topic = image.topics.get(name.topic)
                placed = topic.partitions.get(name.partition) if topic is not None else None
                known_id = topic is not None and found.topic_id in (None, topic.id)
                if placed is None or not known_id or self._replicas.broker_id not in placed.replicas:
                    self._set_aside(directory, name, "the metadata does not know the log of %s: it was set aside as %s")
            for name, found in list(directory.futures.items()):
                topic = image.topics.get(name.topic)
                if topic is None or topic.id != found.topic_id or self._placed_here(topic.id, name.partition) is None:
                    where = directory.set_aside(name, self._ids.uuid().hex(), future=True)
                    logger.warning("nobody needs the copy of %s that was begun: it was set aside as %s", name, where)

    def _set_aside(self, directory: LogDirectory, name: TopicPartition, why: str) -> None:
        logger.warning(why, name, directory.set_aside(name, self._ids.uuid().hex()))

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, *, settings_changed: bool) -> None:
        self._replicas.brokers.registered = image.brokers
        self._image = image
        for topic_id in delta.deleted_topics:
            self._remove_topic(topic_id)
        at_once = _AT_ONCE
        for topic_id, partitions in delta.changed_partitions.items():
            name = image.topics_by_id[topic_id].name
            known = self._replicas.by_id.get(topic_id)
            for index, partition in partitions.items():
                if self._replicas.broker_id not in partition.replicas:
                    self._leave(topic_id, index)
                elif known is not None and index in known.partitions:
                    self._place(name, topic_id, index, partition)
                elif at_once > 0 or name in INTERNAL_TOPICS:  # for these the coordinators wait
                    at_once -= 1
                    self._place(name, topic_id, index, partition)
                else:
                    self._place_later(topic_id, index)
        if settings_changed:
            for topic in self._replicas.by_name:
                self._reconfigure(topic)
        for kind, name in delta.changed_configs:
            if kind == TOPIC_RESOURCE and name in self._replicas.by_name:
                self._reconfigure(name)
        if delta.changed_brokers:
            self._replicas.look_again()

    def _place_later(self, topic_id: bytes, index: int) -> None:
        """Until then clients are told to come again, as by a broker that has not heard of the partition yet."""
        if not self._unopened:
            self._waiting.loop.call_soon(self._open_some)
        self._unopened[topic_id, index] = None

    def _open_some(self) -> None:
        until = self._clock.monotonic() + _TURN_MS
        for topic_id, index in list(self._unopened):
            if self._clock.monotonic() > until:
                break
            del self._unopened[topic_id, index]
            placed = self._placed_here(Uuid(topic_id), index)
            if placed is not None:
                self._place(self._image.topics_by_id[Uuid(topic_id)].name, topic_id, index, placed)
        if self._unopened:
            self._waiting.loop.call_soon(self._open_some)

    def _reconfigure(self, topic: str) -> None:
        config = self._configs.log_config(topic)
        now = self._clock.monotonic()
        for partition in self._replicas.by_name[topic].partitions.values():
            if partition.log is not None:
                partition.log.update_config(config)
            leader = partition.leader
            if leader is not None and leader.reconfigure(config.min_insync_replicas, self._max_lag_ms, now):
                self._replicas.show(partition, leader)

    @property
    def _max_lag_ms(self) -> int:
        return self._configs.settings.get_int("replica.lag.time.max.ms")

    def _place(self, topic: str, topic_id: bytes, index: int, placed: PartitionImage) -> None:
        known = self._replicas.by_id.get(topic_id)
        if known is None:
            known = self._replicas.by_id[topic_id] = self._replicas.by_name[topic] = TopicPartitions(topic, topic_id)
        partition = known.partitions.get(index)
        if partition is None:
            partition = known.partitions[index] = Partition(topic, topic_id, index, known.counts)
            self._replicas.events.came.tell()
            self._open(partition, placed)
        if partition.log is None or partition.directory is None:
            return
        self._compare_directory(partition, partition.directory.id, placed.directory(self._replicas.broker_id))
        if placed.leader == self._replicas.broker_id:
            self._lead(partition, partition.log, placed)
        else:
            self._follow(partition, partition.log, placed)

    def _compare_directory(self, partition: Partition, own: Uuid | None, placed: Uuid) -> None:
        """A replica that moves is said to be at its goal a little before it is there."""
        future = partition.future
        if future is not None:
            future.placed(placed)
        if own is not None and own != placed and (future is None or future.directory.id != placed):
            self._replicas.events.lies_in.tell(partition, own)

    def _open(self, partition: Partition, placed: PartitionImage) -> None:
        recorded = placed.directory(self._replicas.broker_id)
        # What never had a log was not lost with any directory.
        assigned = UNASSIGNED_DIRECTORY if partition in self._without_room else recorded
        name = TopicPartition(partition.topic, partition.index)
        config = self._configs.log_config(partition.topic)
        holding = [d for d in self._replicas.directories if d.is_online and name in d.logs]
        # A directory that was away may come back with a log that has been made anew elsewhere.
        directory = next((d for d in holding if d.id == assigned), holding[0] if holding else None)
        try:
            refused = next((d.refused[name] for d in self._replicas.directories if name in d.refused), None)
            if refused is not None:
                raise refused
            if directory is None:
                directory = self._arrived(name, assigned)
            if directory is None:
                directory = self._directory_for(name, assigned, placed)
                partition.log = directory.create_log(name, partition.topic_id, config, self._clock.wall())
            else:
                partition.log = directory.logs[name]
                partition.log.assign_topic_id(partition.topic_id)
                partition.log.update_config(config)
        except (StorageError, CorruptLog) as error:
            partition.offline = True
            self._not_opened(partition, placed, error)
            if len(placed.replicas) > 1 and recorded in (UNASSIGNED_DIRECTORY, *self._online()):
                self._replicas.events.lies_in.tell(partition, LOST_DIRECTORY)  # so that another one leads
            return
        partition.offline = False
        partition.directory = directory
        for other in holding:
            if other is not directory:
                try:
                    self._set_aside(other, name, f"%s lies in {directory.path}: another log of it was set aside as %s")
                except StorageError as error:
                    self._replicas.storage_failed(other, error)
        self._go_on_moving(partition, name, directory)

    def _arrived(self, name: TopicPartition, assigned: Uuid) -> LogDirectory | None:
        """Of a move that was all but done there may be the copy alone: the metadata says that it is the log."""
        directories = self._replicas.directories
        for directory in directories:
            is_told = assigned == directory.id or (
                assigned in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) and all(each.is_online for each in directories)
            )
            if is_told and directory.is_online and name in directory.futures:
                directory.promote(name)
                return directory
        return None

    def _go_on_moving(self, partition: Partition, name: TopicPartition, directory: LogDirectory) -> None:
        """A stop has interrupted a move. Of several copies, which only a directory that was away can leave behind, one
        is enough."""
        for other in self._replicas.directories:
            future = other.futures.get(name) if other.is_online else None
            if future is None:
                continue
            replica = FutureReplica(future, other, DirectoryMove())
            if other is directory or partition.future is not None:
                self._replicas.delete_future(replica, self._ids.uuid().hex())
                continue
            logger.info("%s goes on moving to %s, from offset %d", name, other.path, future.log_end_offset)
            partition.future = replica
            self._replicas.events.moving.tell(partition)

    def _online(self) -> list[Uuid | None]:
        return [each.id for each in self._replicas.directories if each.is_online]

    def _not_opened(self, partition: Partition, placed: PartitionImage, error: StorageError | CorruptLog) -> None:
        if isinstance(error, StorageError) and error.errno in ROOM_ERRORS:
            if partition in self._without_room:
                return  # has been said
            logger.error("%s-%d is offline until there is room: %s", partition.topic, partition.index, error)
            if not self._without_room:
                self._waiting.loop.call_later(_TRY_AGAIN_S, self._try_again)
            self._without_room[partition] = None
            return
        remedy = "Make that directory usable and restart"
        if isinstance(error, CorruptLog):
            then = "have it copied from its leader" if len(placed.replicas) > 1 else "begin with an empty one"
            remedy = f"Restore its directory from a copy, or move it away and restart to {then}"
        logger.error("%s-%d is offline and untouched: %s. %s.", partition.topic, partition.index, error, remedy)

    def _try_again(self) -> None:
        before = len(self._without_room)
        for partition in list(self._without_room):
            placed = self._placed_here(Uuid(partition.topic_id), partition.index)
            if placed is not None:
                self._open(partition, placed)
            if placed is None or partition.log is not None:
                del self._without_room[partition]
            if placed is not None and partition.log is not None:
                logger.warning("%s-%d is online, as there is room again", partition.topic, partition.index)
                self._place(partition.topic, partition.topic_id, partition.index, placed)
        if len(self._without_room) < before:
            self._replicas.events.came_late.tell()
        if self._without_room:
            self._waiting.loop.call_later(_TRY_AGAIN_S, self._try_again)

    def _placed_here(self, topic_id: Uuid, index: int) -> PartitionImage | None:
        topic = self._image.topics_by_id.get(topic_id)
        placed = topic.partitions.get(index) if topic is not None else None
        return placed if placed is not None and self._replicas.broker_id in placed.replicas else None

    def _directory_for(self, name: TopicPartition, assigned: Uuid, placed: PartitionImage) -> LogDirectory:
        """Where to make a log: where somebody has asked for it, or where the controller has."""
        preferred = self._replicas.preferred.pop(name, None)
        if preferred is not None and preferred.is_online:
            return preferred
        return self._assigned_directory(assigned, placed)

    def _assigned_directory(self, assigned: Uuid, placed: PartitionImage) -> LogDirectory:
        """Where to make a log. Raises StorageError if one was made already, where this node cannot see it now, and
        nobody else has its records: an empty one would take its place for good."""
        for directory in self._replicas.directories:
            if directory.id == assigned:
                directory.latch.check()  # a log made elsewhere would hide the one that is there
                return directory
        if assigned not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            offline = [each for each in self._replicas.directories if not each.is_online]
            if offline or all(replica == self._replicas.broker_id for replica in placed.isr):
                where = (offline or self._replicas.directories)[0]
                raise StorageError(where.path, f"directory {uuid_text(assigned)}, which has its log, is not there")
        online = [directory for directory in self._replicas.directories if directory.is_online]
        if not online:
            raise StorageError(self._replicas.directories[0].path, "no log directory of this node is online")
        return min(online, key=lambda directory: len(directory.logs))

    def _lead(self, partition: Partition, log_: Log, placed: PartitionImage) -> None:
        now = self._clock.monotonic()
        leader = partition.leader
        if leader is None:
            partition.leader = leader = PartitionLeader(
                self._replicas.broker_id,
                placed,
                self._replicas.brokers,
                min_isr=log_.config.min_insync_replicas,
                max_lag_ms=self._max_lag_ms,
                high_watermark=self._last_high_watermark(partition, log_),
                log_end_offset=log_.log_end_offset,
                now=now,
            )
            partition.follower = None
            self._replicas.events.followed.tell(partition)
            self._waiting.partition_changed(partition)
            return
        epoch, isr = leader.leader_epoch, leader.isr
        moved = leader.updated(placed, log_.log_end_offset, now)
        if leader.leader_epoch != epoch:
            self._replicas.note_news(partition, leader.followers)
            self._waiting.partition_changed(partition)
            self._replicas.counts.isr_changed(len(isr), len(leader.isr))
        elif leader.isr != isr:
            self._replicas.counts.isr_changed(len(isr), len(leader.isr))
            # Whoever was put out of sync while it had everything, fenced by mistake, wants to come back: its fetches
            # have to be looked at again, though nothing is written.
            self._replicas.note_news(partition, leader.followers)
        if moved:
            self._replicas.show(partition, leader)

    def _follow(self, partition: Partition, log_: Log, placed: PartitionImage) -> None:
        follower, leader = partition.follower, partition.leader
        if follower is not None:
            if follower.updated(placed.leader, placed.leader_epoch, placed.partition_epoch):
                self._waiting.partition_changed(partition)
                self._replicas.events.followed.tell(partition)
            return
        partition.follower = PartitionFollower(
            placed.leader, placed.leader_epoch, placed.partition_epoch, self._last_high_watermark(partition, log_)
        )
        partition.leader = None
        self._waiting.partition_changed(partition)
        if leader is not None:
            self._replicas.note_news(partition, leader.followers)
            self._waiting.followers_changed(leader.followers)
        self._replicas.events.followed.tell(partition)

    def _last_high_watermark(self, partition: Partition, log_: Log) -> int:
        """Of this node, in its last role or before its last stop: whatever it knew to be committed still is."""
        role = partition.role
        if role is not None:
            return role.high_watermark
        assert partition.directory is not None
        saved = partition.directory.saved.high_watermarks.get(log_.topic_partition, 0)
        return max(log_.log_start_offset, min(saved, log_.log_end_offset))

    # ---- leaving

    def _remove_topic(self, topic_id: bytes) -> None:
        topic = self._replicas.by_id.get(topic_id)
        if topic is None:
            return
        self._replicas.forget(topic)
        for partition in topic.partitions.values():
            self._delete(partition)

    def _leave(self, topic_id: bytes, index: int) -> None:
        """A reassignment has given the partition to others."""
        topic = self._replicas.by_id.get(topic_id)
        partition = topic.partitions.pop(index, None) if topic is not None else None
        if topic is None or partition is None:
            return
        if not topic.partitions:
            self._replicas.forget(topic)
        logger.info("%s-%d has moved to other brokers: it is deleted here", partition.topic, index)
        self._delete(partition)

    def _delete(self, partition: Partition) -> None:
        if partition.log is not None and partition.directory is not None:
            try:
                deletion = partition.directory.delete_log(partition.log.topic_partition, self._ids.uuid().hex())
                self._replicas.deletions.append((partition.directory, deletion))
            except StorageError as error:
                self._replicas.storage_failed(partition.directory, error)
        if partition.future is not None:
            future, partition.future = partition.future, None
            self._replicas.delete_future(future, self._ids.uuid().hex())
        self._replicas.drop(partition)
