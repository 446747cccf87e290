"""State that is lost comes back from changelogs: what there is to restore, and the tasks that do it.

A batch's changelog records, its output and the group's offsets are one transaction, so while no other instance runs
the committed end of the changelogs is the state at the group's offsets. Where that end was is noted beside the
checkpoint when a query begins without one (`Note`); a task that meets its first records without any state reads its
partitions of the changelogs up to there, puts them into its stores, and goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.partition_reader import PartitionReader
from ottla.client.offsets import READ_COMMITTED
from ottla.client.reach import Reach
from ottla.model.ids import TopicPartition
from ottla.pipelines.rows import headers_of
from ottla.pipelines.source.columns import read_columns
from ottla.streams.record import NO_TIMESTAMP, Headers
from ottla.streams.tasks.offset_metadata import decode
from ottla.streams.tasks.task import Task
from ottla.streams.topology.stores import Store

TELLING_S: Final = 0.2
"""How often a task tells how far it has come."""
MOST_RECORDS: Final = 500_000
"""That a store takes before it writes them away. In the order of keys, so that each page of a large store is read and
written once for so many."""
MOST_BYTES: Final = 64 << 20


class Span(NamedTuple):
    """What there is of one partition of a changelog."""

    start: int
    end: int


class Note(NamedTuple):
    """What a query that began without a checkpoint found."""

    changelogs: Mapping[str, str]
    """By store: its topic."""
    spans: Mapping[TopicPartition, Span]
    metadata: Mapping[TopicPartition, str]
    """Of the group's offsets."""

    @property
    def stores(self) -> list[str]:
        """Those of which there is something."""
        topics = {place.topic for place in self.spans}
        return [store for store, topic in self.changelogs.items() if topic in topics]

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": 1,
                "changelogs": dict(self.changelogs),
                "spans": [[*place, *span] for place, span in self.spans.items()],
                "metadata": [[*place, said] for place, said in self.metadata.items()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Note:
        told = json.loads(text)
        return cls(
            told["changelogs"],
            {TopicPartition(topic, number): Span(start, end) for topic, number, start, end in told["spans"]},
            {TopicPartition(topic, number): said for topic, number, said in told["metadata"]},
        )


class Restore(NamedTuple):
    """What travels to the tasks."""

    note: Note
    reach: Reach
    timeout_s: float
    folder: str | None
    """Where tasks tell how far they are, a file for each partition; None where the driver could not read it."""


class Progress(NamedTuple):
    """Of one partition: the next offset, and how many records were taken."""

    position: int
    restored: int


def progress_file(folder: str, store: str, partition: int) -> Path:
    return Path(folder, f"{store}-{partition}")


def read_progress(path: Path) -> Progress | None:
    """None before a task has begun with it."""
    try:
        return Progress(*map(int, path.read_text(encoding="utf-8").split()))
    except (FileNotFoundError, ValueError, TypeError):  # or half written
        return None


def restore(task: Task, what: Restore, write_away: Callable[[], None]) -> None:
    """Fills the stores of a task that has nothing yet, and sets its time. `write_away` is for what lies under the
    stores: a changelog may hold more than memory does."""
    reach, timeout_s = what.reach, what.timeout_s
    with reach.cluster(client_id="ottla-streams-restore", timeout_s=timeout_s, patient=True) as cluster:
        latest: dict[str, int] = {}
        for name, topic in what.note.changelogs.items():
            place = TopicPartition(topic, task.partition)
            store, span = task.stores.get(name), what.note.spans.get(place)
            if store is not None and span is not None:
                latest[name] = _restore_store(
                    cluster, Filling(store, write_away), place, span, _Telling(what, name, place)
                )
    mine = {
        (place.topic, place.partition): decode(said)
        for place, said in what.note.metadata.items()
        if place.partition == task.partition and task.reads(place.topic)
    }
    task.resume(mine, latest)


class Filling:
    """Puts records of a changelog into a store. It has in memory what it has not written, so it writes now and then."""

    __slots__ = ("_bytes", "_most_bytes", "_most_records", "_records", "_store", "_write_away", "latest", "restored")

    def __init__(
        self,
        store: Store,
        write_away: Callable[[], None],
        most_records: int = MOST_RECORDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._store = store
        self._write_away = write_away
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._records = self._bytes = 0
        self.restored = 0
        self.latest = NO_TIMESTAMP

    def add(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        self._store.restore(key, value, timestamp, headers)
        self.latest = max(self.latest, timestamp)
        self.restored += 1
        self._records += 1
        self._bytes += len(key) + (0 if value is None else len(value))
        if self._records >= self._most_records or self._bytes >= self._most_bytes:
            self.write()

    def write(self) -> None:
        """At the end too."""
        self._store.flush()
        self._store.forget()
        self._write_away()
        self._records = self._bytes = 0


def _restore_store(cluster: Cluster, store: Filling, place: TopicPartition, span: Span, telling: _Telling) -> int:
    """Gives the latest timestamp."""
    telling.tell(span.start, 0, at_once=True)
    for position, key, value, timestamp, headers in _records(cluster, place, span):
        if key is not None:
            store.add(key, value, timestamp, headers)
        if not store.restored % 1000:
            telling.tell(position + 1, store.restored)
    store.write()
    telling.tell(span.end, store.restored, at_once=True)
    return store.latest


def _records(
    cluster: Cluster, place: TopicPartition, span: Span
) -> Iterator[tuple[int, bytes | None, bytes | None, int, Headers]]:
    reader = PartitionReader(cluster, place, span.start, span.end, isolation=READ_COMMITTED, skip_lost=True)
    for low, batches in reader:
        for columns in read_columns(str(place), batches, low, span.end, with_headers=True):
            headers = [()] * len(columns) if columns.headers is None else headers_of(columns.headers)
            yield from zip(
                columns.offsets.tolist(),
                columns.keys.to_pylist(),
                columns.values.to_pylist(),
                columns.timestamps.tolist(),
                headers,
                strict=True,
            )


class _Telling:
    """Leaves word for the driver, now and then."""

    __slots__ = ("_last", "_path")

    def __init__(self, what: Restore, store: str, place: TopicPartition) -> None:
        self._path = None if what.folder is None else progress_file(what.folder, store, place.partition)
        self._last = 0.0

    def tell(self, position: int, restored: int, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._path is None or (now - self._last < TELLING_S and not at_once):
            return
        self._last = now
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(f"{position} {restored}", encoding="utf-8")
