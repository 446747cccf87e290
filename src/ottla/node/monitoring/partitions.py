"""Replicas and logs of this broker, one by one and together; and what kafka_exporter tells of partitions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.metadata.image import MetadataImage, PartitionImage
from ottla.metrics import names
from ottla.metrics.text import SLICE, Family, Sample, head, labels, listed, many, one, some
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
    for family, of_led in _OF_LEADERS:
        yield from listed(family, found.led, of_led)
    for family, of_log in _OF_LOGS:
        yield from listed(family, found.kept, of_log)


def _of_leader(value: Callable[[PartitionLeader, PartitionImage], int]) -> Callable[[Led], int | None]:
    """None if the leader has moved since the walk."""

    def of_led(row: Led) -> int | None:
        leader = row[1].leader
        return None if leader is None else value(leader, row[2])

    return of_led


def _under_replicated(leader: PartitionLeader, placed: PartitionImage) -> int:
    return int(len(leader.isr) < _wanted(placed))


_OF_LEADERS: Final = (
    (names.PARTITION_UNDER_REPLICATED, _of_leader(_under_replicated)),
    (names.PARTITION_IN_SYNC, _of_leader(lambda leader, placed: len(leader.isr))),
    (names.PARTITION_REPLICAS, _of_leader(lambda leader, placed: len(placed.replicas))),
    (names.PARTITION_UNDER_MIN_ISR, _of_leader(lambda leader, placed: int(leader.under_min_isr))),
    (names.PARTITION_AT_MIN_ISR, _of_leader(lambda leader, placed: int(len(leader.isr) == leader.effective_min_isr))),
)
_OF_LOGS: Final[tuple[tuple[Family, Callable[[Kept], int]], ...]] = (
    (names.LOG_SIZE, lambda row: row[1].size),
    (names.LOG_SEGMENTS, lambda row: len(row[1].segments)),
    (names.LOG_START, lambda row: row[1].log_start_offset),
    (names.LOG_END, lambda row: row[1].log_end_offset),
)


# ---- kafka_exporter's names


def exported(watched: Watched, found: Found) -> Iterator[str]:
    """Partitions that nobody leads are told by the active controller, as far as it can know."""
    yield from many(names.TOPIC_PARTITIONS, _topics(watched))
    yield from listed(names.CURRENT_OFFSET, found.led, _of_leader(lambda leader, placed: leader.high_watermark))
    yield from listed(names.OLDEST_OFFSET, found.led, _log_start)
    for family, of_led, of_leaderless in _EXPORTED:
        told = False
        for piece in listed(family, found.led, of_led):
            yield piece
            told = True
        for piece in listed(family, found.leaderless, of_leaderless):
            yield piece.removeprefix(head(family)) if told else piece


def _log_start(row: Led) -> int | None:
    log = row[1].log
    return None if log is None else log.log_start_offset


_EXPORTED: Final[tuple[tuple[Family, Callable[[Led], int | None], Callable[[Leaderless], int]], ...]] = (
    (names.LEADER, _of_leader(lambda leader, placed: leader.broker_id), lambda row: -1),
    (names.REPLICAS, _of_leader(lambda leader, placed: len(placed.replicas)), lambda row: len(row[1].replicas)),
    (names.IN_SYNC, _of_leader(lambda leader, placed: len(leader.isr)), lambda row: len(row[1].isr)),
    (
        names.IS_PREFERRED,
        _of_leader(lambda leader, placed: int(placed.replicas[0] == leader.broker_id)),
        lambda row: 0,
    ),
    (names.EXPORTED_UNDER_REPLICATED, _of_leader(_under_replicated), lambda row: 1),
)
"""Family; of a partition that is led here; of one that has no leader."""


def _topics(watched: Watched) -> Iterator[Sample]:
    """By the leader of a topic's first partition."""
    active = watched.control_plane.is_active
    for topic in watched.control_plane.image.topics.values():
        first = topic.partitions.get(0)
        if first is not None and (first.leader == watched.node_id or (first.leader < 0 and active)):
            yield f'{{topic="{topic.name}"}}', len(topic.partitions)
