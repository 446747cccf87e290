"""Replicas and logs of this broker, one by one and together; and what kafka_exporter tells of partitions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.metadata.image import MetadataImage, PartitionImage
from ottla.metrics import names
from ottla.metrics.text import SLICE, Family, Sample, labels, many, one, some
from ottla.node.monitoring.watched import Watched
from ottla.replication.leader import PartitionLeader
from ottla.storage.log import Log

Led = tuple[str, Partition, PartitionImage]
Kept = tuple[str, Log]
Leaderless = tuple[str, PartitionImage]


@dataclass(slots=True)
class Found:
    """One walk over the replicas: sums over all of them, rows of as many as may have series of their own."""

    led: list[Led] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    leaderless: list[Leaderless] = field(default_factory=list)
    """Of the whole cluster, on the active controller: nobody else could tell of them."""
    total: int = 0
    leaders: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    offline: int = 0
    reassigning: int = 0

    def add_leader(self, leader: PartitionLeader, placed: PartitionImage) -> None:
        in_sync = len(leader.isr)
        self.leaders += 1
        self.under_replicated += in_sync < _wanted(placed)
        self.under_min_isr += leader.under_min_isr
        self.at_min_isr += leader.is_at_min_isr
        self.reassigning += bool(placed.adding_replicas or placed.removing_replicas)


def _wanted(placed: PartitionImage) -> int:
    """Replicas that are only being added are not missed yet."""
    return len(placed.replicas) - len(placed.adding_replicas)


def mark(topic: str, index: int) -> str:
    return f'{{topic="{topic}",partition="{index}"}}'  # letters, digits, dots, dashes: nothing to escape in a topic


def walk(watched: Watched, replicas: Replicas, found: Found) -> Iterator[str]:
    """Fills `found`. What it gives are pauses."""
    image = watched.control_plane.image
    most = watched.max_partitions
    for at, partition in enumerate(list(replicas.all())):
        if at % SLICE == SLICE - 1:
            yield ""
        found.total += 1
        found.offline += partition.offline
        log, leader = partition.log, partition.leader
        if log is None:
            continue
        told = mark(partition.topic, partition.index)
        if len(found.kept) < most:
            found.kept.append((told, log))
        placed = image.partition(partition.topic, partition.index)
        if leader is not None and placed is not None:
            found.add_leader(leader, placed)
            if len(found.led) < most:
                found.led.append((told, partition, placed))


def walk_leaderless(image: MetadataImage, most: int, found: Found) -> Iterator[str]:
    at = 0
    for topic in image.topics.values():
        for index, placed in topic.partitions.items():
            at += 1
            if at % SLICE == 0:
                yield ""
            if placed.leader < 0 and len(found.leaderless) < most:
                found.leaderless.append((mark(topic.name, index), placed))


# ---- Kafka's own names


def pieces(watched: Watched, replicas: Replicas, found: Found) -> Iterator[str]:
    counts = replicas.counts
    yield "".join(
        [
            one(names.LEADERS, found.leaders),
            one(names.PARTITIONS, found.total),
            one(names.UNDER_REPLICATED, found.under_replicated),
            one(names.UNDER_MIN_ISR, found.under_min_isr),
            one(names.AT_MIN_ISR, found.at_min_isr),
            one(names.OFFLINE_REPLICAS, found.offline),
            one(names.REASSIGNING, found.reassigning),
            one(names.ISR_SHRINKS, counts.isr_shrinks),
            one(names.ISR_EXPANDS, counts.isr_expands),
            one(names.FAILED_ISR_UPDATES, counts.failed_isr_updates),
            one(names.OFFLINE_DIRECTORIES, sum(not each.is_online for each in replicas.directories)),
            some(
                names.DIRECTORY_OFFLINE,
                [(labels(logDirectory=each.path), int(not each.is_online)) for each in replicas.directories],
            ),
            one(names.LEFT_OUT, found.total - len(found.kept)),
        ]
    )
    if found.total > len(found.kept) + found.offline:
        yield f"# {found.total} partitions, of which {len(found.kept)} are told: ottla.metrics.max.partitions\n"
    for family, of_leader in _OF_LEADERS:
        yield from many(family, _of_leaders(found.led, of_leader))
    for family, of_log in _OF_LOGS:
        yield from many(family, ((told, of_log(log)) for told, log in found.kept))


OfLeader = Callable[[PartitionLeader, PartitionImage], int]

_OF_LEADERS: Final[tuple[tuple[Family, OfLeader], ...]] = (
    (names.PARTITION_UNDER_REPLICATED, lambda leader, placed: int(len(leader.isr) < _wanted(placed))),
    (names.PARTITION_IN_SYNC, lambda leader, placed: len(leader.isr)),
    (names.PARTITION_REPLICAS, lambda leader, placed: len(placed.replicas)),
    (names.PARTITION_UNDER_MIN_ISR, lambda leader, placed: int(leader.under_min_isr)),
    (names.PARTITION_AT_MIN_ISR, lambda leader, placed: int(leader.is_at_min_isr)),
)
_OF_LOGS: Final[tuple[tuple[Family, Callable[[Log], int]], ...]] = (
    (names.LOG_SIZE, lambda log: log.size),
    (names.LOG_SEGMENTS, lambda log: len(log.segments)),
    (names.LOG_START, lambda log: log.log_start_offset),
    (names.LOG_END, lambda log: log.log_end_offset),
)


def _of_leaders(led: list[Led], of_leader: OfLeader) -> Iterator[Sample]:
    for told, partition, placed in led:
        leader = partition.leader
        if leader is not None:  # it may have moved since the walk
            yield told, of_leader(leader, placed)


# ---- kafka_exporter's names

OfPartition = Callable[[Partition, PartitionLeader, PartitionImage], int]

_EXPORTED: Final[tuple[tuple[Family, OfPartition, Callable[[PartitionImage], int] | None], ...]] = (
    (names.CURRENT_OFFSET, lambda partition, leader, placed: leader.high_watermark, None),
    (names.OLDEST_OFFSET, lambda partition, leader, placed: _log_start(partition), None),
    (names.LEADER, lambda partition, leader, placed: leader.broker_id, lambda placed: -1),
    (names.REPLICAS, lambda partition, leader, placed: len(placed.replicas), lambda placed: len(placed.replicas)),
    (names.IN_SYNC, lambda partition, leader, placed: len(leader.isr), lambda placed: len(placed.isr)),
    (
        names.IS_PREFERRED,
        lambda partition, leader, placed: int(placed.replicas[0] == leader.broker_id),
        lambda placed: 0,
    ),
    (
        names.EXPORTED_UNDER_REPLICATED,
        lambda partition, leader, placed: int(len(leader.isr) < _wanted(placed)),
        lambda placed: 1,
    ),
)
"""Family; of a partition that is led here; of one that has no leader, None where nobody could know."""


def _log_start(partition: Partition) -> int:
    return partition.log.log_start_offset if partition.log is not None else -1


def exported(watched: Watched, found: Found) -> Iterator[str]:
    yield from many(names.TOPIC_PARTITIONS, _topics(watched))
    for family, of_led, of_leaderless in _EXPORTED:
        yield from many(family, _exported(found, of_led, of_leaderless))


def _topics(watched: Watched) -> Iterator[Sample]:
    """By the leader of a topic's first partition."""
    active = watched.control_plane.is_active
    for topic in watched.control_plane.image.topics.values():
        first = topic.partitions.get(0)
        if first is not None and (first.leader == watched.node_id or (first.leader < 0 and active)):
            yield f'{{topic="{topic.name}"}}', len(topic.partitions)


def _exported(
    found: Found, of_led: OfPartition, of_leaderless: Callable[[PartitionImage], int] | None
) -> Iterator[Sample]:
    for told, partition, placed in found.led:
        leader = partition.leader
        if leader is not None:
            yield told, of_led(partition, leader, placed)
    if of_leaderless is not None:
        for told, placed in found.leaderless:
            yield told, of_leaderless(placed)
