"""Records and requests of clients, by topic and over all."""

from collections.abc import Iterator
from typing import Final

from ottla.broker.replicas.replicas import Replicas
from ottla.metrics import names
from ottla.metrics.counts import TopicCounts
from ottla.metrics.text import Family, Sample, many

BY_TOPIC: Final[tuple[tuple[Family, str], ...]] = (
    (names.MESSAGES_IN, "messages_in"),
    (names.BYTES_IN, "bytes_in"),
    (names.BYTES_OUT, "bytes_out"),
    (names.PRODUCES, "produces"),
    (names.FETCHES, "fetches"),
    (names.FAILED_PRODUCES, "failed_produces"),
    (names.FAILED_FETCHES, "failed_fetches"),
    (names.REPLICATION_BYTES_IN, "replication_bytes_in"),
    (names.REPLICATION_BYTES_OUT, "replication_bytes_out"),
)


def pieces(replicas: Replicas, most: int) -> Iterator[str]:
    topics = [(f'{{topic="{topic.name}"}}', topic.counts) for topic in replicas.by_name.values()]
    for family, field in BY_TOPIC:
        yield from many(family, _samples(topics, replicas.forgotten, field, most))


def _samples(topics: list[tuple[str, TopicCounts]], forgotten: TopicCounts, field: str, most: int) -> Iterator[Sample]:
    everything: int = getattr(forgotten, field)
    for at, (mark, counts) in enumerate(topics):
        value: int = getattr(counts, field)
        everything += value
        if at < most:
            yield mark, value
    yield "", everything
