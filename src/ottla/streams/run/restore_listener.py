"""What calls a StateRestoreListener while stores are restored."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping

from ottla.model.ids import TopicPartition
from ottla.streams.run.changelogs import Note, Progress, Span, progress_file, read_progress
from ottla.streams.run.life import StateRestoreListener

logger = logging.getLogger(__name__)


class RestoreLines:
    """Tells people: a line when a store begins and ends, and one now and then in between."""

    def __init__(self, tell: Callable[[str], None] = logger.info, every_s: float = 2.0) -> None:
        self._tell = tell
        self._every_s = every_s
        self._begun: dict[TopicPartition, tuple[Span, float]] = {}
        self._restored: dict[TopicPartition, int] = {}
        self._last = time.monotonic()

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        self._begun[topic_partition] = (Span(starting_offset, ending_offset), time.monotonic())
        self._tell(f"restoring {store_name} from {topic_partition}: {ending_offset - starting_offset} offsets")

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        self._restored[topic_partition] = self._restored.get(topic_partition, 0) + num_restored
        if time.monotonic() - self._last < self._every_s:
            return
        self._last = time.monotonic()
        (start, end), _ = self._begun[topic_partition]
        share = (batch_end_offset + 1 - start) * 100 // max(1, end - start)
        self._tell(
            f"restoring {store_name} from {topic_partition}: {share} %, {self._restored[topic_partition]} records"
        )

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        _, began = self._begun.pop(topic_partition)
        took = time.monotonic() - began
        self._tell(f"restored {store_name} from {topic_partition}: {total_restored} records in {took:.1f} s")


class RestoreWatch:
    """Looks at what tasks tell of their progress. They run in other processes, where a listener cannot be called."""

    def __init__(self, folder: str, listener: StateRestoreListener) -> None:
        self._folder = folder
        self._listener = listener
        self._waiting: dict[TopicPartition, tuple[str, Span]] = {}
        self._seen: dict[TopicPartition, Progress] = {}

    def expect(self, note: Note) -> None:
        """Before the first task begins with it."""
        for store, topic in note.changelogs.items():
            for place, span in note.spans.items():
                if place.topic == topic:
                    self._waiting[place] = (store, span)

    def forget(self) -> None:
        """What a former run left."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def look(self) -> None:
        for place, (store, span) in list(self._waiting.items()):
            now = read_progress(progress_file(self._folder, store, place.partition))
            if now is not None:
                self._tell(place, store, span, now)

    def _tell(self, place: TopicPartition, store: str, span: Span, now: Progress) -> None:
        before = self._seen.get(place)
        self._seen[place] = now
        if before is None:
            self._listener.on_restore_start(place, store, span.start, span.end)
            before = Progress(span.start, 0)
        if now.restored > before.restored:
            self._listener.on_batch_restored(place, store, now.position - 1, now.restored - before.restored)
        if now.position >= span.end:
            del self._waiting[place]
            self._listener.on_restore_end(place, store, now.restored)

    def figures(self) -> tuple[int, int]:
        """How many records were restored, and how many offsets are still to come. From any thread."""
        waiting, seen = dict(self._waiting), dict(self._seen)
        to_come = sum(
            max(span.end - seen.get(place, Progress(span.start, 0)).position, 0) for place, (_, span) in waiting.items()
        )
        return sum(each.restored for each in seen.values()), to_come

    @property
    def waiting(self) -> Mapping[TopicPartition, tuple[str, Span]]:
        """Those that are not restored yet."""
        return self._waiting
