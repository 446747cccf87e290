"""What the parts of a task share: which task it is, what time it is, which record is at work, what came out so far."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.streams.record import NO_TIMESTAMP, Headers, Raw, RecordMetadata
from ottla.streams.tasks.punctuation import Punctuations, Schedule
from ottla.streams.tasks.stores.base import Moment
from ottla.streams.topology.graph import changelog_topic
from ottla.streams.topology.processor import PunctuationType, Punctuator
from ottla.streams.topology.stores import ChangeLog

new: Final[Any] = tuple.__new__
"""Makes a named tuple without the detour over its own __new__: several are made for each record."""


class TaskState:
    __slots__ = (
        "application_id",
        "at_batch_end",
        "at_commit",
        "config",
        "dropped",
        "moment",
        "now",
        "origin",
        "outputs",
        "partition",
        "partition_count",
        "punctuations",
        "raw",
        "shared",
        "stream_time",
        "task_id",
    )

    def __init__(
        self,
        application_id: str,
        number: int,
        partition: int,
        config: Mapping[str, Any],
        partition_count: Callable[[str], int] | None,
    ) -> None:
        """`partition_count`: of a topic; None where topics have no number, in the test driver."""
        self.application_id = application_id
        self.task_id = f"{number}_{partition}"
        self.partition = partition
        self.config = config
        self.partition_count = partition_count
        self.now = 0
        self.stream_time = NO_TIMESTAMP
        self.outputs: list[Raw] = []
        self.dropped: dict[str, int] = {}
        self.raw: Raw | None = None
        self.origin: RecordMetadata | None = None
        """Set while a record that came earlier is handed on; else `raw` is where the record came from."""
        self.moment = Moment()
        self.at_batch_end: list[Callable[[], bool]] = []
        self.at_commit: list[Callable[[], None]] = []
        self.shared: dict[str, Any] = {}
        self.punctuations = {kind: Punctuations() for kind in PunctuationType}

    @property
    def metadata(self) -> RecordMetadata | None:
        raw = self.raw
        if self.origin is not None or raw is None:
            return self.origin
        return RecordMetadata(raw[0], raw[1], raw[2])

    def drop(self, reason: str) -> None:
        """Counts a record that is left out, or what a sensor counts."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def take(self) -> list[Raw]:
        taken, self.outputs = self.outputs, []
        return taken

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, punctuator: Punctuator, start_ms: int | None
    ) -> Schedule:
        if interval_ms < 1:
            raise ValueError(f"a punctuator needs an interval of at least 1 ms, not {interval_ms}")
        by_stream = kind is PunctuationType.STREAM_TIME
        now = self.stream_time if by_stream else self.now
        due = start_ms
        if due is None:
            due = 0 if by_stream else now + interval_ms
        schedule = Schedule(node, due, interval_ms, punctuator)
        if start_ms is not None and start_ms < now:
            schedule.move_on(now)
        self.punctuations[kind].add(schedule)
        return schedule

    def changelog(self, store: str) -> ChangeLog:
        topic, partition = changelog_topic(self.application_id, store), self.partition

        def log(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
            self.outputs.append(new(Raw, (topic, partition, -1, key, value, timestamp, headers)))

        return log
