"""From words about partitions and offsets to numbers: what `consume` and `topics trim` ask the cluster first."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.offsets import BadOffset, Bounds, OffsetRange, Span, parse_partitions, parse_range
from ottla.cli.parser import UsageError
from ottla.client.errors import KafkaError
from ottla.client.offsets import EARLIEST, LATEST, READ_UNCOMMITTED, list_offsets
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster


def range_of(text: str) -> OffsetRange:
    try:
        return parse_range(text, time.time_ns() // 1_000_000)
    except BadOffset as error:
        raise UsageError(str(error)) from error


def choose_partitions(server: "Cluster", topics: Sequence[str], words: list[str]) -> list[TopicPartition]:
    """All partitions of the topics, or the named ones. Raises KafkaError for a topic, UsageError for a partition."""
    try:
        wanted = parse_partitions(words)
    except BadOffset as error:
        raise UsageError(str(error)) from error
    places: list[TopicPartition] = []
    for topic in topics:
        existing = server.partitions(topic)
        absent = [partition for partition in wanted if partition not in existing]
        if absent:
            raise UsageError(f"{topic} has no partition {absent[0]}: it has 0 to {len(existing) - 1}")
        places += [TopicPartition(topic, partition) for partition in wanted or existing]
    return places


def resolve(
    server: "Cluster", places: Sequence[TopicPartition], offsets: str | OffsetRange, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, Span]:
    wanted = range_of(offsets) if isinstance(offsets, str) else offsets
    starts = _offsets(server, places, EARLIEST, isolation)
    ends = _offsets(server, places, LATEST, isolation)
    by_time = {moment: _offsets(server, places, moment, isolation) for moment in wanted.times}
    spans: dict[TopicPartition, Span] = {}
    for place in places:

        def at_time(moment: int, place: TopicPartition = place) -> int:
            found = by_time[moment][place]
            return ends[place] if found < 0 else found  # -1: every record is older

        spans[place] = wanted.resolve(Bounds(starts[place], ends[place]), at_time)
    return spans


def _offsets(
    server: "Cluster", places: Sequence[TopicPartition], moment: int, isolation: int
) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for place, outcome in list_offsets(server, dict.fromkeys(places, moment), isolation=isolation).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        offsets[place] = outcome.offset
    return offsets
