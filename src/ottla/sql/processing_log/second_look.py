"""Beside a query on Spark: what it left out is read once more, and told in the processing log.

The query counts what it leaves out and tells how far it has read; `Looks` decides by that what has to be looked at. A
look is bounded in records, entries and time; what it did not come to is told as a number. What was found between the
last look and the death of the process is not told: the log is for people, the dead letter topic is exact.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.client.errors import ClientError
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.sql.processing_log.entries import DESERIALIZATION, SOURCE_STEP, Problem, entry
from ottla.sql.processing_log.review import Review
from ottla.streams.record import Raw
from ottla.streams.run.topics import committed
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR
from ottla.streams.tasks.inputs import INVALID_TIMESTAMP

logger = logging.getLogger(__name__)

EVERY_S: Final = 2.0
_LEFT_OUT: Final = (DESERIALIZATION_ERROR, INVALID_TIMESTAMP)
_POLL_S: Final = 0.2
_SHOWN_SPANS: Final = 10
Offsets = dict[TopicPartition, int]


class Limits(NamedTuple):
    """Of one look."""

    records: int = 200_000
    entries: int = 1_000
    seconds: float = 5.0
    sample: int = 2_000
    """Records, where nothing was left out and only expressions may have failed."""


class Look(NamedTuple):
    spans: dict[TopicPartition, tuple[int, int]]
    records: int
    """At most."""
    missing: int
    """That many records of these were left out, and are to be found."""


@dataclass(slots=True)
class Looks:
    """What of what a query has read is to be looked at. Decides, and does nothing."""

    positions: Offsets
    """Up to where everything was looked at, or needed no look."""
    fallible: bool
    limits: Limits = field(default_factory=Limits)
    counted: int = 0

    def decide(self, status: Mapping[str, Any]) -> Look | None:
        """None: there is nothing to see. `status`: of the application."""
        ends, left_out = ends_of(status), left_out_of(status)
        missing, self.counted = max(left_out - self.counted, 0), max(left_out, self.counted)
        spans = {
            place: (self.positions[place], end)
            for place, end in ends.items()
            if place in self.positions and self.positions[place] < end
        }
        self.positions |= {place: end for place, (_, end) in spans.items()}
        if not spans or not (missing or self.fallible):
            return None
        return Look(spans, self.limits.records if missing else self.limits.sample, missing)


def ends_of(status: Mapping[str, Any]) -> Offsets:
    found: Offsets = {}
    for query in status.get("queries", ()):
        for document in query.get("offsets") or ():
            places = json.loads(document) if isinstance(document, str) else document
            if isinstance(places, dict):
                for topic, parts in places.items():
                    found |= {TopicPartition(topic, int(number)): int(at) for number, at in parts.items()}
    return found


def left_out_of(status: Mapping[str, Any]) -> int:
    counts = [query.get("dropped-by-reason") or {} for query in status.get("queries", ())]
    return sum(int(each.get(reason, 0)) for each in counts for reason in _LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Writing:
    """Where the entries of a query go."""

    query_id: str
    topic: str
    rows: bool
    """Whether they show what records hold."""


class SecondLook:
    """A thread beside a run. `status`: how the run stands."""

    def __init__(
        self,
        review: Review,
        writing: Writing,
        connect: Callable[[], Cluster],
        status: Callable[[], Mapping[str, Any]],
        limits: Limits | None = None,
    ) -> None:
        self._review = review
        self._writing = writing
        self._connect = connect
        self._status = status
        self._limits = limits or Limits()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"log-{writing.query_id}", daemon=True)
        self._looks: Looks | None = None

    def begin(self, group: str, topics: list[str], *, from_beginning: bool) -> None:
        """Before the query reads anything. A log that cannot be written stops no query."""
        try:
            with self._connect() as cluster:
                positions = starts(cluster, group, topics, from_beginning=from_beginning)
        except ClientError as error:
            logger.warning("%s: nothing of it will be in the processing log: %s", self._writing.query_id, error)
            return
        self._looks = Looks(positions, self._review.fallible, self._limits)
        self._thread.start()

    def end(self) -> None:
        """After a last look."""
        self._over.set()
        if self._looks is not None:
            self._thread.join()

    def _work(self) -> None:
        assert self._looks is not None
        while True:
            over = self._over.wait(EVERY_S)
            try:
                look = self._looks.decide(self._status())
                if look is not None:
                    with self._connect() as cluster:
                        self._take(look, cluster)
            except ClientError as error:
                logger.warning("%s: the processing log was not written: %s", self._writing.query_id, error)
            except Exception:
                logger.exception("%s: a look at what was left out failed", self._writing.query_id)
            if over:
                return

    def _take(self, look: Look, cluster: Cluster) -> None:
        producer, told = Producer(cluster), 0
        for problem in islice(self._problems(look, cluster), self._limits.entries):
            self._send(producer, problem)
            told += problem.step == SOURCE_STEP
        untold = look.missing - told
        if untold > 0:
            self._send(producer, _more(look, untold))
        producer.flush()

    def _send(self, producer: Producer, problem: Problem) -> None:
        now = time.time_ns() // 1_000_000
        writing = self._writing
        told = entry(writing.query_id, problem, now, rows=writing.rows)
        producer.send(writing.topic, told, key=writing.query_id.encode())

    def _problems(self, look: Look, cluster: Cluster) -> Iterator[Problem]:
        deadline = time.monotonic() + self._limits.seconds
        for looked, raw in enumerate(_records(cluster, look)):
            if looked >= look.records or time.monotonic() > deadline:
                return
            yield from self._review.problems(raw, time.time_ns() // 1_000_000)


def starts(cluster: Cluster, group: str, topics: list[str], *, from_beginning: bool) -> Offsets:
    """Where a query will begin. Raises ClientError."""
    found = {each.name: len(each.partitions) for each in cluster.metadata(topics).topics}
    places = [TopicPartition(topic, number) for topic, count in found.items() if topic for number in range(count)]
    first = list_offsets(cluster, dict.fromkeys(places, EARLIEST if from_beginning else LATEST))
    known = committed(cluster, group, places)
    return {place: known[place].offset if place in known else offset_of(first[place]) for place in places}


def _records(cluster: Cluster, look: Look) -> Iterator[Raw]:
    consumer = Consumer(cluster, look.spans, isolation=READ_COMMITTED)
    while consumer.active:
        for fetched in consumer.poll(_POLL_S):
            topic, partition = fetched.place
            for each in fetched.records:
                yield Raw(topic, partition, each.offset, each.key, each.value, each.timestamp, tuple(each.headers))


def _more(look: Look, untold: int) -> Problem:
    topics = sorted({place.topic for place in look.spans})
    spans = [f"{place.topic}-{place.partition} {start} to {end - 1}" for place, (start, end) in look.spans.items()]
    where = ", ".join(spans[:_SHOWN_SPANS]) + (", ..." if len(spans) > _SHOWN_SPANS else "")
    message = f"{untold} more records were left out among the offsets {where}: no look was taken at each of them"
    return Problem(DESERIALIZATION, SOURCE_STEP, message, topic=topics[0])
