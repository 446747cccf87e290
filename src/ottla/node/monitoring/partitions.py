"""Replicas and logs of this broker, one by one and together; and what kafka_exporter tells of partitions.

Each partition is looked at once, for a row of all that is told of it; a family is a column of those rows. To ask each
partition anew for each of its sixteen families takes longer than to write them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ottla.broker.replicas.replicas import Replicas
from ottla.metadata.image import MetadataImage, PartitionImage
from ottla.metrics import names
from ottla.metrics.text import SLICE, Family, Row, Sample, labels, listed, many, one, some
from ottla.node.monitoring.watched import Watched
from ottla.replication.leader import PartitionLeader
from ottla.storage.log import Log

_UNDER_REPLICATED, _IN_SYNC, _REPLICAS, _UNDER_MIN_ISR, _AT_MIN_ISR = range(1, 6)
_LEADER, _IS_PREFERRED, _HIGH_WATERMARK, _OLDEST = range(6, 10)
_OF_LEADERS: Final[tuple[tuple[Family, int], ...]] = (
    (names.PARTITION_UNDER_REPLICATED, _UNDER_REPLICATED),
    (names.PARTITION_IN_SYNC, _IN_SYNC),
    (names.PARTITION_REPLICAS, _REPLICAS),
    (names.PARTITION_UNDER_MIN_ISR, _UNDER_MIN_ISR),
    (names.PARTITION_AT_MIN_ISR, _AT_MIN_ISR),
)
_OF_LOGS: Final = (names.LOG_SIZE, names.LOG_SEGMENTS, names.LOG_START, names.LOG_END)
_EXPORTED_OF_LEADERS: Final[tuple[tuple[Family, int], ...]] = (
    (names.CURRENT_OFFSET, _HIGH_WATERMARK),
    (names.OLDEST_OFFSET, _OLDEST),
)
_EXPORTED: Final[tuple[tuple[Family, int], ...]] = (
    (names.LEADER, _LEADER),
    (names.REPLICAS, _REPLICAS),
    (names.IN_SYNC, _IN_SYNC),
    (names.IS_PREFERRED, _IS_PREFERRED),
    (names.EXPORTED_UNDER_REPLICATED, _UNDER_REPLICATED),
)


@dataclass(slots=True)
class Found:
    """One walk over the replicas: sums over all of them, rows of as many as may have series of their own."""

    led: list[Row] = field(default_factory=list)
    kept: list[Row] = field(default_factory=list)
    """Logs: a column for each of `_OF_LOGS`."""
    leaderless: list[Row] = field(default_factory=list)
    """Of the whole cluster, on the active controller: nobody else could tell of them."""
    total: int = 0
    leaders: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    offline: int = 0
    reassigning: int = 0

    def add_leader(self, row: Row, placed: PartitionImage, most: int) -> None:
        self.leaders += 1
        self.under_replicated += row[_UNDER_REPLICATED]
        self.under_min_isr += row[_UNDER_MIN_ISR]
        self.at_min_isr += row[_AT_MIN_ISR]
        self.reassigning += bool(placed.adding_replicas or placed.removing_replicas)
        if len(self.led) < most:
            self.led.append(row)


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
            found.kept.append((told, log.size, len(log.segments), log.log_start_offset, log.log_end_offset))
        placed = image.partition(partition.topic, partition.index)
        if leader is not None and placed is not None:
            found.add_leader(_led(told, leader, placed, log), placed, most)


def _led(told: str, leader: PartitionLeader, placed: PartitionImage, log: Log) -> Row:
    in_sync, replicas = len(leader.isr), len(placed.replicas)
    return (
        told,
        int(in_sync < replicas - len(placed.adding_replicas)),  # those that are only being added are not missed yet
        in_sync,
        replicas,
        int(leader.under_min_isr),
        int(leader.is_at_min_isr),
        leader.broker_id,
        int(placed.replicas[0] == leader.broker_id),
        leader.high_watermark,
        log.log_start_offset,
    )


def walk_leaderless(image: MetadataImage, most: int, found: Found) -> Iterator[str]:
    at = 0
    for topic in image.topics.values():
        for index, placed in topic.partitions.items():
            at += 1
            if at % SLICE == 0:
                yield ""
            if placed.leader < 0 and len(found.leaderless) < most:
                told = mark(topic.name, index)
                found.leaderless.append((told, 1, len(placed.isr), len(placed.replicas), 0, 0, -1, 0))


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
    for family, column in _OF_LEADERS:
        yield from listed(family, found.led, column)
    for column, family in enumerate(_OF_LOGS, 1):
        yield from listed(family, found.kept, column)


# ---- kafka_exporter's names


def exported(watched: Watched, found: Found) -> Iterator[str]:
    """Partitions that nobody leads are told by the active controller, as far as it can know."""
    yield from many(names.TOPIC_PARTITIONS, _topics(watched))
    for family, column in _EXPORTED_OF_LEADERS:
        yield from listed(family, found.led, column)
    rows = [*found.led, *found.leaderless]
    for family, column in _EXPORTED:
        yield from listed(family, rows, column)


def _topics(watched: Watched) -> Iterator[Sample]:
    """By the leader of a topic's first partition."""
    active = watched.control_plane.is_active
    for topic in watched.control_plane.image.topics.values():
        first = topic.partitions.get(0)
        if first is not None and (first.leader == watched.node_id or (first.leader < 0 and active)):
            yield f'{{topic="{topic.name}"}}', len(topic.partitions)
