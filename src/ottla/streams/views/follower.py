"""Keeps views up to date: one thread reads the committed records of all changelog topics of an application.

A topic that is not there yet is looked for again; a broker that goes away is waited for. What stands in the way is
told by `trouble`, and nothing here ever ends the application.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client import groups
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.errors import ClientError, KafkaError
from ottla.client.fetching import Fetched
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from ottla.client.reach import Reach
from ottla.model.ids import TopicPartition
from ottla.streams.views.view import BadKey, Change, View

POLL_S: Final = 0.25
PATIENCE_S: Final = 5.0
"""With a broker that does not answer, before it is told as trouble; `stop` may have to wait for it."""
LOOK_AGAIN_S: Final = 1.0
"""After trouble, for topics that are not there yet, and for the ends of those that are."""


class Progress(NamedTuple):
    """Of one partition of a changelog."""

    partition: int
    position: int
    end: int | None
    """As of a moment ago; None when it is not known yet."""

    @property
    def lag(self) -> int | None:
        return None if self.end is None else max(self.end - self.position, 0)


class _Look(NamedTuple):
    processed: dict[TopicPartition, int]
    """What the group had committed."""
    written: Mapping[TopicPartition, int]
    """Where changelogs ended after that."""


class Follower:
    """`views` by changelog topic. `start` it once; `stop` waits for the thread and leaves the views open."""

    def __init__(self, reach: Reach, views: Mapping[str, View], *, group: str) -> None:
        """`group` is the application's, whose offsets tell which input is behind what the changelogs hold."""
        self._reach = reach
        self._group = group
        self._views = dict(views)
        self._processed: dict[TopicPartition, int] = {}
        self._looked: list[_Look] = []
        self._hurries = 0
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ottla-queries-follower", daemon=True)
        self.trouble: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    # ---- what others ask, from their threads

    def progress(self, topic: str) -> list[Progress]:
        with self._changed:
            return [
                Progress(place.partition, position, self._ends.get(place))
                for place, position in sorted(self._positions.items())
                if place.topic == topic
            ]

    @property
    def caught_up(self) -> bool:
        """Whether every view had reached the end of its changelog when that was last looked at."""
        with self._changed:
            return self._caught_up()

    def wait_until_caught_up(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(self._caught_up, timeout_s)

    def processed(self) -> dict[TopicPartition, int]:
        """The next offset of each input partition: the effects of everything below are in the views."""
        with self._changed:
            return dict(self._processed)

    def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Until something holds that depends on `progress` and `processed`, which are looked at more often then."""
        with self._changed:
            self._hurries += 1
            try:
                return self._changed.wait_for(holds, timeout_s)
            finally:
                self._hurries -= 1

    def _caught_up(self) -> bool:
        known = {place.topic for place in self._ends}
        return known >= self._views.keys() and all(
            self._positions.get(place, -1) >= end for place, end in self._ends.items()
        )

    # ---- the thread

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow()
            except (ClientError, OSError, BadKey, sqlite3.Error) as error:
                self.trouble = str(error)
                with self._changed:
                    self._ends = {}  # nobody knows any more
                self._stopped.wait(LOOK_AGAIN_S)

    def _follow(self) -> None:
        """Until a topic appears that was missing, or something goes wrong."""
        self._looked = []
        with self._reach.cluster(client_id=f"{self._group}-queries", timeout_s=PATIENCE_S) as cluster:
            there = self._existing(cluster)
            missing = self._views.keys() - there
            starts = self._starts(cluster, there)
            self.trouble = f"waiting for the topic {min(missing)}" if missing else None
            spans = {place: (offset, None) for place, offset in starts.items()}
            consumer = Consumer(cluster, spans, isolation=READ_COMMITTED, max_wait_ms=int(POLL_S * 1000))
            applied: dict[TopicPartition, int] = {}
            looked = 0.0
            while not self._stopped.is_set():
                if self._hurries or time.monotonic() - looked >= LOOK_AGAIN_S:
                    if missing and self._existing(cluster) != there:
                        return
                    self._look_at_ends(cluster, starts)
                    looked = time.monotonic()
                if not starts:
                    self._stopped.wait(LOOK_AGAIN_S)
                    continue
                self._apply(consumer.poll(POLL_S), consumer.positions(), applied)

    def _existing(self, cluster: Cluster) -> set[str]:
        answer = cluster.metadata(sorted(self._views))
        return {topic.name for topic in answer.topics if not topic.error_code and topic.name is not None}

    def _starts(self, cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, int]:
        starts: dict[TopicPartition, int] = {}
        for topic in sorted(topics):
            view = self._views[topic]
            partitions = cluster.partitions(topic)
            view.begin_with(topic, cluster.topic_ids.get(topic, b""))
            known = view.positions()
            fresh = [TopicPartition(topic, partition) for partition in partitions if partition not in known]
            starts |= {TopicPartition(topic, p): known[p] for p in partitions if p in known}
            starts |= _offsets(cluster, fresh, EARLIEST)
        return starts

    def _look_at_ends(self, cluster: Cluster, places: Iterable[TopicPartition]) -> None:
        """The order matters: what the group has committed lies in the changelogs below the ends that are read after it,
        committed or about to be. Once a view is there, it knows that input."""
        try:
            processed = {place: each.offset for place, each in groups.committed(cluster, self._group).items()}
        except KafkaError:
            processed = {}  # not ours to read, or not there yet: the views can do without
        written = _offsets(cluster, places, LATEST, READ_UNCOMMITTED)
        ends = _offsets(cluster, places, LATEST)
        with self._changed:
            # Between the oldest look that is waited for and this one the others have nothing to tell.
            self._looked = [*self._looked[:1], _Look(processed, written)]
            self._ends = ends
            self._settle()
            self._changed.notify_all()

    def _settle(self) -> None:
        for look in list(self._looked):
            if all(self._positions.get(place, -1) >= end for place, end in look.written.items()):
                self._processed = look.processed
                self._looked.remove(look)

    def _apply(
        self, fetched: list[Fetched], positions: Mapping[TopicPartition, int], applied: dict[TopicPartition, int]
    ) -> None:
        moved = {place: offset for place, offset in positions.items() if applied.get(place) != offset}
        for topic in sorted({place.topic for place in moved}):
            changes = (
                Change(part.place.partition, record.key, record.value, record.timestamp, record.headers)
                for part in fetched
                if part.place.topic == topic
                for record in part.records
                if record.key is not None
            )
            self._views[topic].apply(changes, {at.partition: to for at, to in moved.items() if at.topic == topic})
        applied.update(moved)
        if moved:
            with self._changed:
                self._positions.update(moved)
                self._settle()
                self._changed.notify_all()


def _offsets(
    cluster: Cluster, places: Iterable[TopicPartition], which: int, isolation: int = READ_COMMITTED
) -> dict[TopicPartition, int]:
    """The end that a committed reader can reach is the last stable offset."""
    offsets: dict[TopicPartition, int] = {}
    for place, found in list_offsets(cluster, dict.fromkeys(places, which), isolation=isolation).items():
        if isinstance(found, KafkaError):
            raise found
        offsets[place] = found.offset
    return offsets
