"""The input partitions of a task: how records are read, which event time they have, and in which order they go."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from ottla.registry.lookup import RegistryUnavailable
from ottla.serdes.base import Where, placed, sees_place
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import Expression
from ottla.streams.expressions import Inputs as Given
from ottla.streams.own_lines import own_lines
from ottla.streams.record import NO_TIMESTAMP, Raw, Record
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.current import TaskState, new
from ottla.streams.tasks.failures import TaskErrors
from ottla.streams.tasks.heap import Heap
from ottla.streams.tasks.operators.base import Downstream
from ottla.streams.tasks.wrapping import wrapped
from ottla.streams.topology.graph import InvalidTimestamp, SinkNode, SourceNode, TimestampExtractor
from ottla.streams.topology.node_types import type_of

INVALID_TIMESTAMP: Final = "invalid-timestamp"

Extract = Callable[[Raw, Any, Any, int, int], int]
"""(raw record, key, value, partition time, wall clock) -> timestamp"""


class Source:
    """A source node of a task: how its records are read."""

    __slots__ = ("extract", "is_table", "key_of", "name", "node", "on_invalid", "process", "value_of", "where")

    def __init__(
        self, node: SourceNode, process: Downstream, default: TimestampExtractor | None, *, is_table: bool
    ) -> None:
        """`default`: the extractor where the source has none of its own."""
        self.name = node.name
        self.node = node
        self.process = process
        self.is_table = is_table
        self.where = Where() if looks_at_place(node) else None
        """For serdes that look at topic and headers; None where they do not."""
        where = self.where or Where()
        value_serde = placed(node.value_serde or Serdes.bytes, where)
        self.key_of = placed(node.key_serde or Serdes.bytes, where).decode
        self.value_of: Callable[[bytes], Any] = wrapped(value_serde, node.form).decode
        extractor = default if default is not None and node.extractor.is_plain else node.extractor
        self.on_invalid = extractor.on_invalid
        self.extract = _extraction(node, extractor)


class Queue:
    """One input partition: records that wait, and the first of them, deserialized."""

    __slots__ = ("head", "head_raw", "place", "raws", "source", "time")

    def __init__(self, place: tuple[str, int], source: Source) -> None:
        self.place = place
        self.source = source
        self.raws: deque[Raw] = deque()
        self.head: Record | None = None
        self.head_raw: Raw | None = None
        self.time = NO_TIMESTAMP
        """The latest timestamp of the partition so far."""


class Inputs:
    """Kafka's PartitionGroup: the partition whose first record is the oldest goes next."""

    def __init__(self, state: TaskState, errors: TaskErrors, source_of: Callable[[str], Source]) -> None:
        self._state = state
        self._errors = errors
        self._source_of = source_of
        self._queues: dict[tuple[str, int], Queue] = {}
        self._waiting: Heap[Queue] = Heap()
        self.awaited: list[Queue] = []
        """Those that must not run dry: without their next record nobody knows which is the oldest."""

    @property
    def are_empty(self) -> bool:
        return not len(self._waiting)

    def fill(self, records: Iterable[Raw]) -> list[Queue]:
        """Gives the queues that were empty and have something now, in the order in which their first records came.

        They are not in line yet: see `line_up`.
        """
        filled: dict[tuple[str, int], Queue] = {}
        topic, partition = "", -1
        append = deque[Raw]().append
        for raw in records:
            if raw[1] != partition or raw[0] != topic:
                topic, partition = raw[0], raw[1]
                queue = self.queue(topic, partition)
                if queue.head is None and not queue.raws:
                    filled[topic, partition] = queue
                append = queue.raws.append
            append(raw)
        return list(filled.values())

    def line_up(self, queues: Iterable[Queue]) -> None:
        for queue in queues:
            self.read_head(queue)
            if queue.head is not None:
                self._waiting.add(queue.head.timestamp, queue)

    def wait_for(self, places: Iterable[tuple[str, int]]) -> list[Queue]:
        self.awaited = [self.queue(*place) for place in places]
        return self.awaited

    def left(self) -> list[Raw]:
        """What waits, each partition's in order. Partitions are in the order of the line, which they make up again."""
        found: list[Raw] = []
        for _, queue in self._waiting.items():
            if queue.head_raw is not None:
                found.append(queue.head_raw)
            found += queue.raws
        return found

    def next(self) -> tuple[Source, Raw, Record] | None:
        for awaited in self.awaited:
            if awaited.head is None:
                return None
        while len(self._waiting):
            _, queue = self._waiting.take()
            head, raw = queue.head, queue.head_raw
            queue.head = None
            if head is not None and raw is not None:
                queue.time = max(queue.time, head.timestamp)
                self.line_up((queue,))
                return queue.source, raw, head
        return None

    def read(self, queue: Queue, raw: Raw) -> Record | None:
        """None: it cannot be processed, and that is no reason to fail."""
        source = queue.source
        _, _, _, key_bytes, value_bytes, timestamp, headers = raw
        if source.where is not None:
            source.where.topic, source.where.headers = raw[0], list(headers)
        try:
            key = None if key_bytes is None else source.key_of(key_bytes)
            value = None if value_bytes is None else source.value_of(value_bytes)
        except RegistryUnavailable:
            raise  # no fault of the record: it is read again when somebody answers
        except Exception as error:  # noqa: BLE001  whatever a serde raises, the handler decides
            self._errors.in_deserialization(source.name, raw, error)
            return None
        if source.extract is not None:
            timestamp = self._extracted(source.extract, queue, raw, key, value)
        if timestamp < 0:
            timestamp = _instead(queue, raw, timestamp)
            if timestamp < 0:
                self._state.drop(INVALID_TIMESTAMP)
                return None
        record: Record = new(Record, (key, value, timestamp, headers))
        return record

    def times(self) -> list[list[Any]]:
        return [[*place, queue.time] for place, queue in self._queues.items()]

    def set_times(self, times: list[list[Any]]) -> None:
        for topic, partition, time in times:
            self.queue(topic, partition).time = time

    def queue(self, topic: str, partition: int) -> Queue:
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = self._queues[topic, partition] = Queue((topic, partition), self._source_of(topic))
        return queue

    def read_head(self, queue: Queue) -> None:
        while queue.head is None and queue.raws:
            queue.head_raw = queue.raws.popleft()
            queue.head = self.read(queue, queue.head_raw)

    def _extracted(self, extract: Extract, queue: Queue, raw: Raw, key: Any, value: Any) -> int:
        try:
            return extract(raw, key, value, queue.time, self._state.now)
        except Exception as error:
            raise StreamsError(
                f"the timestamp extractor of {queue.source.name} failed at {_place(raw)}: "
                f"{type(error).__name__}: {error}{own_lines(error)}"
            ) from error


def looks_at_place(node: SourceNode | SinkNode) -> bool:
    """Whether a serde of it has to be told the topic and the headers of each record."""
    return sees_place(node.key_serde) or sees_place(node.value_serde)


def _instead(queue: Queue, raw: Raw, timestamp: int) -> int:
    """The timestamp to take for an invalid one; negative to skip the record."""
    match queue.source.on_invalid:
        case InvalidTimestamp.SKIP:
            return timestamp
        case InvalidTimestamp.PARTITION_TIME if queue.time >= 0:
            return queue.time
        case InvalidTimestamp.PARTITION_TIME:
            raise StreamsError(
                f"no timestamp can be taken from partition time at {_place(raw)}: no record before it had a valid one"
            )
    raise StreamsError(
        f"the record at {_place(raw)} has the invalid timestamp {timestamp}; a TimestampExtractor can skip such "
        "records or take the partition's time"
    )


def _place(raw: Raw) -> str:
    return f"{raw.topic}-{raw.partition} offset {raw.offset}"


def _extraction(node: SourceNode, extractor: TimestampExtractor) -> Extract | None:
    """None: the record's own timestamp."""
    function = extractor.function
    if extractor.wall_clock:
        return lambda _raw, _key, _value, _time, now: now
    if function is None:
        return None
    if isinstance(function, Expression):
        run = function.compile({"key": type_of(node.key_serde), "value": type_of(node.value_serde)})

        def by_expression(raw: Raw, key: Any, value: Any, _time: int, now: int) -> int:
            place = raw.topic, raw.partition, raw.offset
            found = run(Given(key, value, raw.timestamp, raw.headers, *place, now=now))
            return NO_TIMESTAMP if found is None else int(found)

        return by_expression
    call = function

    def by_call(raw: Raw, key: Any, value: Any, time: int, _now: int) -> int:
        found = call(key, value, raw.timestamp, time)
        return NO_TIMESTAMP if found is None else int(found)

    return by_call
