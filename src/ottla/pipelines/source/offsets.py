"""Offsets of a micro-batch: the JSON that Spark keeps in its checkpoint, and how much of a backlog one batch takes.

The form is that of Spark's own Kafka source, `{"topic": {"0": 17}}`, so that one reader serves both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.model.ids import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1

Offsets = dict[TopicPartition, int]
OffsetJson = dict[str, dict[str, int]]


MORE: Final = "#more/"
"""In front of a topic's name, which cannot begin so: partitions of which more lies at the brokers than is read."""


def to_json(offsets: Mapping[TopicPartition, int], more: Iterable[TopicPartition] = ()) -> OffsetJson:
    """Always in the same order: Spark compares offsets as text."""
    out: OffsetJson = {}
    for place in sorted(offsets):
        out.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    for place in sorted(more):
        out.setdefault(f"{MORE}{place.topic}", {})[str(place.partition)] = 1
    return out


def more_of(found: Mapping[str, Any]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.removeprefix(MORE), int(partition))
        for topic, partitions in found.items()
        if topic.startswith(MORE)
        for partition in partitions
    )


def from_json(found: str | Mapping[str, Any]) -> Offsets:
    """Raises ValueError for anything but topics with numbered partitions."""
    try:
        topics = json.loads(found) if isinstance(found, str) else found
        return {
            TopicPartition(topic, int(partition)): _offset(offset)
            for topic, partitions in topics.items()
            if not topic.startswith(MORE)
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(
            f'{found!r} does not tell offsets; {{"topic": {{"0": 17, "1": -2}}}} is expected '
            "(-2 stands for the earliest offset, -1 for the latest)"
        ) from error


def _offset(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < EARLIEST:
        raise ValueError(f"{value!r} is no offset")
    return value


def share(
    start: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    most: int,
    weights: Mapping[TopicPartition, float] | None = None,
) -> Offsets:
    """Where a batch of about `most` offsets ends, or of so many bytes, with what an offset of each partition weighs.
    Each gives in proportion to its backlog, as Spark's own source decides, and at least one, so that none starves."""
    backlog = {place: end - start.get(place, 0) for place, end in latest.items() if end > start.get(place, 0)}
    total = sum(count * (1.0 if weights is None else weights.get(place, 0.0)) for place, count in backlog.items())
    if total <= most:
        return dict(latest)
    taken = {place: start.get(place, 0) + _part(count, most / total) for place, count in backlog.items()}
    return {**latest, **taken}


def _part(backlog: int, fraction: float) -> int:
    part = backlog * fraction
    return min(backlog, math.ceil(part) if part < 1 else math.floor(part))
