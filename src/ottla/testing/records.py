"""Topics and records for a test that has no Kafka client at hand, or does not want to set one up. Each function is
given a client that is not connected yet, and closes it."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client import admin
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.client.errors import KafkaError
from ottla.client.fetching import Fetched
from ottla.client.offsets import EARLIEST, LATEST, Found, list_offsets
from ottla.client.producing import Delivered
from ottla.model.ids import TopicPartition

Text = bytes | str | None
_POLL_SECONDS = 0.5


class Record(NamedTuple):
    """As a consumer sees it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def create_topic(
    reached: Client, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """Raises KafkaError, for a topic that is there already too."""
    with reached as client:
        outcome = admin.create_topics(client, [admin.NewTopic(name, partitions, replication_factor, configs)])[name]
    if isinstance(outcome, KafkaError):
        raise outcome


def produce(
    reached: Client,
    topic: str,
    values: Sequence[Text],
    key: Text,
    partition: int | None,
    headers: Mapping[str, Text],
    timestamp_ms: int | None,
) -> list[Record]:
    """Acknowledged by all in-sync replicas. Raises KafkaError."""
    written: list[Record] = []

    def delivered(batch: Delivered) -> None:
        written.extend(
            Record(
                topic,
                batch.place.partition,
                batch.offset_at(index),
                batch.timestamp_of(record),
                record.key,
                record.value,
                tuple(record.headers),
            )
            for index, record in enumerate(batch.records)
        )

    with reached as client:
        producer = Producer(client, on_delivery=delivered)
        for value in values:
            producer.send(
                topic,
                _bytes(value),
                key=_bytes(key),
                headers=[(name, _bytes(content)) for name, content in headers.items()],
                partition=partition,
                timestamp=timestamp_ms,
            )
        producer.flush()
    return written


def consume(reached: Client, topic: str, count: int | None, timeout_s: float) -> list[Record]:
    """By partition and offset. Raises TimeoutError when `count` records have not come in time."""
    with reached as client:
        places = [TopicPartition(topic, number) for number in client.partitions(topic, auto_create=count is not None)]
        begin, end = (_offsets(client, places, which) for which in (EARLIEST, LATEST))
        spans = {place: (begin[place], end[place] if count is None else None) for place in places}
        consumer = Consumer(client, spans)
        found: list[Record] = []
        deadline = time.monotonic() + timeout_s
        while consumer.active if count is None else len(found) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                wanted = "all that were there" if count is None else str(count)
                raise TimeoutError(f"{len(found)} records of {topic} came within {timeout_s:g} s, not {wanted}")
            for fetched in consumer.poll(min(left, _POLL_SECONDS)):
                found += _records(fetched)
    return sorted(found, key=lambda record: (record.partition, record.offset))


def _records(fetched: Fetched) -> list[Record]:
    place = fetched.place
    return [
        Record(place.topic, place.partition, r.offset, r.timestamp, r.key, r.value, r.headers) for r in fetched.records
    ]


def _offsets(client: Client, places: Sequence[TopicPartition], which: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for place, outcome in list_offsets(client, dict.fromkeys(places, which)).items():
        if not isinstance(outcome, Found):
            raise outcome
        found[place] = outcome.offset
    return found


def _bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
