"""Asking the cluster: which partitions there are, where a query begins, how far it could read now."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ottla.client import groups
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.partition_reader import PartitionReader
from ottla.client.errors import ClientError, KafkaError
from ottla.client.offsets import Found, list_offsets
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.source.columns import read_columns
from ottla.pipelines.source.offsets import EARLIEST, LATEST, Offsets, from_json, share, to_json
from ottla.pipelines.source.options import Position, SourceOptions, matching

METADATA_AGE_S: Final = 2.0
"""How late a new partition may be noticed by a query that runs."""
ROUNDS: Final = 4
"""Of finding out how much of each partition makes a batch full. Each asks the brokers twice."""
ANSWER_S: Final = 1.0
"""How much longer than it was to wait the answer of a broker may take."""
CLIENT_ID: Final = "ottla-spark"

logger = logging.getLogger(__name__)


def open_cluster(options: SourceOptions) -> Cluster:
    """With `brokerTimeoutMillis` brokers that are away are waited for, also by who has never seen them: whoever sets it
    has talked to them before."""
    if options.broker_timeout_ms is None:
        return options.reach.cluster(client_id=CLIENT_ID)
    timeout_s = options.broker_timeout_ms / 1000
    return options.reach.cluster(client_id=CLIENT_ID, timeout_s=timeout_s, patient=True)


class Positions:
    """One cluster, one choice of topics."""

    __slots__ = ("_cluster", "_found", "_found_at", "_ids", "_options", "_weights")

    def __init__(self, cluster: Cluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._found: list[TopicPartition] = []
        self._found_at = float("-inf")
        self._ids: dict[str, bytes] = {}
        self._weights: dict[TopicPartition, float] = {}

    @property
    def topic_ids(self) -> Mapping[str, bytes]:
        return self._ids

    def close(self) -> None:
        self._cluster.close()

    def partitions(self, *, fresh: bool = True) -> list[TopicPartition]:
        """Sorted. Raises KafkaError for a topic that was named and is not there."""
        if fresh or time.monotonic() - self._found_at > METADATA_AGE_S:
            self._found = sorted(self._find())
            self._require_same_topics({place.topic for place in self._found})
            self._found_at = time.monotonic()
        return self._found

    def _find(self) -> Iterable[TopicPartition]:
        topics = self._options.topics
        if topics.pattern is not None:
            wanted = matching(topics.pattern)
            for topic in self._cluster.metadata().topics:
                if topic.name is not None and not topic.is_internal and wanted.fullmatch(topic.name):
                    yield from (TopicPartition(topic.name, p.partition_index) for p in topic.partitions)
            return
        named = topics.names or tuple(dict.fromkeys(place.topic for place in topics.assigned))
        there = {TopicPartition(topic, each) for topic in named for each in self._cluster.partitions(topic)}
        for place in topics.assigned:
            if place not in there:
                raise KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, str(place))
        yield from topics.assigned or there

    def _require_same_topics(self, topics: Iterable[str]) -> None:
        """Offsets of a topic that was deleted and made anew mean other records, even where they are as large."""
        for topic in topics:
            new = self._cluster.topic_ids.get(topic, b"")
            if self._ids.setdefault(topic, new) != new:
                lost = f"topic {topic} was deleted and made anew while it was being read"
                if self._options.fail_on_data_loss:
                    raise ValueError(lost)
                logger.warning("%s; going on, as failOnDataLoss=false asks for", lost)
                self._ids[topic] = new

    def latest(self, *, fresh: bool = True) -> Offsets:
        """How far each partition can be read: with read_committed up to the first open transaction."""
        return self._offsets(dict.fromkeys(self.partitions(fresh=fresh), LATEST))

    def await_news(self, known: Offsets, seconds: float) -> None:
        """Waits for so long, or until a partition has something behind what is known: by a fetch that the broker keeps
        open. Where several brokers lead it returns at once: what is asked next would wait for those with no news."""
        leaders = {self._cluster.leaders.get(place) for place in known}
        if len(leaders) != 1 or None in leaders:
            return
        spans = {place: (offset, None) for place, offset in known.items()}
        waiting = Consumer(
            self._cluster, spans, isolation=self._options.isolation, max_wait_ms=max(1, int(seconds * 1000))
        )
        with suppress(ClientError):  # whoever asks next for offsets hears of it
            waiting.poll(seconds + ANSWER_S)

    def _offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """EARLIEST, LATEST or a time for each partition; -1 where no record is as new."""
        found: Offsets = {}
        for place, outcome in list_offsets(self._cluster, times, isolation=self._options.isolation).items():
            if not isinstance(outcome, Found):
                raise outcome
            found[place] = outcome.offset
        return found

    # Where to begin and end.

    def starting(self, position: Position) -> Offsets:
        """Of a query that has no checkpoint: the first answer is kept in a file, if one was named."""
        file = self._options.initial_offsets_file
        if file is not None and os.path.exists(file):
            return from_json(Path(file).read_text(encoding="utf-8"))
        found = self.resolve("startingOffsets", position)
        if file is not None:
            _write(Path(file), json.dumps(to_json(found)))
        return found

    def resolve(self, name: str, position: Position) -> Offsets:
        places = self.partitions()
        if position.exactly is not None:
            return self._exactly(name, places, position.exactly)
        if position.group is not None:
            return self._committed(places, position.group)
        if position.timestamps is not None:
            self._require_all(name, places, position.timestamps)
            return self._by_time(position.timestamps, position.must_exist)
        if position.timestamp is not None:
            return self._by_time(dict.fromkeys(places, position.timestamp), position.must_exist)
        return self._offsets(dict.fromkeys(places, position.offset))

    def _exactly(self, name: str, places: list[TopicPartition], given: Offsets) -> Offsets:
        if self._options.topics.pattern is not None:  # a topic that came after they were named begins at its start
            given = {**dict.fromkeys((place for place in places if place not in given), EARLIEST), **given}
        self._require_all(name, places, given)
        by_name = {place: offset for place, offset in given.items() if offset in (EARLIEST, LATEST)}
        return {**given, **self._offsets(by_name)}

    def _require_all(self, name: str, places: list[TopicPartition], given: Offsets) -> None:
        missing = [place for place in places if place not in given]
        unknown = sorted(place for place in given if place not in places)
        if missing:
            raise ValueError(f"{name} says nothing about {missing[0]}: every partition has to be told")
        if unknown:
            raise ValueError(f"{name} names {unknown[0]}, which is not read")

    def _committed(self, places: list[TopicPartition], group: str) -> Offsets:
        """Partitions that the group never committed are read from the beginning, as Kafka Streams does by default."""
        committed = groups.committed(self._cluster, group)
        found = {place: committed[place].offset for place in places if place in committed}
        return {**self._offsets({place: EARLIEST for place in places if place not in found}), **found}

    def _by_time(self, times: Mapping[TopicPartition, int], must_exist: bool) -> Offsets:
        found = self._offsets(times)
        after_all = [place for place, offset in found.items() if offset < 0]
        if after_all and must_exist:
            place = after_all[0]
            raise ValueError(
                f"no record of {place} has a timestamp of {times[place]} or later; "
                "with startingOffsetsByTimestampStrategy=latest it would be read from its end"
            )
        return {**found, **self._offsets(dict.fromkeys(after_all, LATEST))}

    def time_at(self, place: TopicPartition, offset: int, end: int) -> int | None:
        """The timestamp of the first record from `offset` on; None where there is none before `end`."""
        reader = PartitionReader(
            self._cluster, place, offset, min(end, offset + 64), isolation=self._options.isolation, skip_lost=True
        )
        for low, batches in reader:
            for columns in read_columns(str(place), batches[:1], low, end, omitted=frozenset(("key", "value"))):
                return int(columns.timestamps[0])
        return None

    def first_from(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset of each partition with a timestamp that is not before a time; -1 if there is none."""
        return self._offsets(times)

    # What one offset weighs.

    def weights(
        self, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, float]:
        """Bytes per offset, measured on the first batches of each backlog."""
        for place, end in latest.items():
            begin = start.get(place, 0)
            if end > begin:
                self._weights[place] = self._weigh(place, begin, end)
        return self._weights

    def _weigh(self, place: TopicPartition, begin: int, end: int) -> float:
        sample = min(end, begin + 64)
        reader = PartitionReader(self._cluster, place, begin, sample, isolation=self._options.isolation, skip_lost=True)
        weight = offsets = 0
        for _, batches in reader:
            weight += sum(header.size for header, _ in batches)
            offsets += sum(header.last_offset_delta + 1 for header, _ in batches)
        return weight / offsets if offsets else self._weights.get(place, 0.0)


def together(begin: Offsets, end: Offsets, latest: Offsets, positions: Positions) -> Offsets:
    """`in_time`, and about as many records as there are between `begin` and `end`: what partitions that are ahead may
    not give is given by those that are behind. A table of a thousand rows, all older than a stream's backlog of
    millions, was read in some seventy batches: a share of each is a few rows, and the stream waits for all of them."""
    most = _records(begin, end)
    found = in_time(begin, end, latest, positions)
    for _ in range(ROUNDS):
        left = most - _records(begin, found)
        behind = {place for place, offset in found.items() if offset == end[place] < latest[place]}
        if 2 * left < most or not behind:
            break
        end = share(found, {place: latest[place] if place in behind else end[place] for place in end}, left)
        found = in_time(begin, end, latest, positions)
    return found


def _records(begin: Offsets, end: Offsets) -> int:
    return sum(max(offset - begin.get(place, 0), 0) for place, offset in end.items())


def in_time(begin: Offsets, end: Offsets, latest: Offsets, positions: Positions) -> Offsets:
    """Where a batch ends that holds what belongs together: of partitions of one number none is read beyond the time up
    to which the one that is cut first is read. A record that is ahead would only wait for the next batch; where times
    are not in order it may still be, and tasks see to it."""
    found = dict(end)
    numbers: dict[int, list[TopicPartition]] = {}
    for place, offset in end.items():
        if offset > begin.get(place, 0):
            numbers.setdefault(place.partition, []).append(place)
    for places in numbers.values():
        cut = [place for place in places if end[place] < latest[place]]
        if len(places) < 2 or not cut:
            continue
        times = {
            place: time for place in cut if (time := positions.time_at(place, end[place], latest[place])) is not None
        }
        if not times:
            continue
        first = min(times, key=lambda place: times[place])
        until = times[first]
        limits = positions.first_from({place: until for place in places if place != first})
        for place, limit in limits.items():
            start = begin.get(place, 0)
            if limit > start:
                found[place] = min(end[place], limit)
            elif limit >= 0 and (positions.time_at(place, start, end[place]) or 0) >= until:
                # All of it is ahead. One record has to be known, or nobody could tell that it is.
                found[place] = start + 1
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
