"""A task: the nodes of one sub-topology at work on one partition number. Records in, records out; no I/O, no clock.

Records of several input partitions are processed in the order of their timestamps, as far as they are here
(`PartitionGroup` in Kafka). A record runs through the whole sub-topology, depth first, before the next one starts.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ottla.streams.errors import FAIL, StreamsError
from ottla.streams.record import NO_TIMESTAMP, Raw, Record
from ottla.streams.tasks.bulk import Bulk, Run, Way
from ottla.streams.tasks.current import TaskState
from ottla.streams.tasks.failures import TaskErrors
from ottla.streams.tasks.inputs import Inputs, Queue, Source
from ottla.streams.tasks.nodes import TaskNodes
from ottla.streams.tasks.offset_metadata import PartitionTimes, latest
from ottla.streams.tasks.sensors import PUNCTUATE
from ottla.streams.tasks.store_maker import AnyStore, StoreMaker
from ottla.streams.tasks.stores.record_cache import RecordCache
from ottla.streams.topology.graph import Graph, SourceNode, SubTopology, changelog_topic
from ottla.streams.topology.processor import PunctuationType
from ottla.streams.topology.stores import StoreBackend

_OURS: Final = "ottla:"
_NTH: Final = "#"
"""Numbers of an operator are committed as `ottla:<node>#<place>`."""


class Task:
    """`stores` gives the map of bytes under each store (see `store_maker.backend_names`).

    A batch is `process`, then `commit`. Where a task does not outlive a batch, `save` tells what has to be given to
    `restore` of the next one; all the rest is in the stores.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        graph: Graph,
        application_id: str,
        partition: int,
        stores: Callable[[str], StoreBackend] | Mapping[str, StoreBackend],
        config: Mapping[str, Any] | None = None,
        *,
        global_stores: Mapping[str, AnyStore] | None = None,
        partition_count: Callable[[str], int] | None = None,
        now: int = 0,
    ) -> None:
        """`partition_count` tells a sink's own partitioner how many there are; `now` is the wall clock."""
        state = TaskState(application_id, sub_topology.number, partition, config or {}, partition_count)
        state.now = now
        self._state = state
        self._stream_punctuations = state.punctuations[PunctuationType.STREAM_TIME]
        maker = StoreMaker(
            graph,
            stores if callable(stores) else stores.__getitem__,
            log=state.changelog,
            moment=state.moment,
            dropped=state.drop,
            cache=partial(RecordCache, state),
            topic=partial(changelog_topic, application_id),
        )
        self.stores: dict[str, AnyStore] = maker.make(sub_topology)
        self._errors = TaskErrors(state)
        self._caches = maker.caches
        reachable = {**(global_stores or {}), **self.stores}
        self._nodes = TaskNodes(state, self._errors, sub_topology, graph, reachable, maker.caches)
        self._inputs = Inputs(state, self._errors, self._nodes.source)
        self._bulk = Bulk(state, self._nodes, sub_topology, self.stores)

    @property
    def partition(self) -> int:
        return self._state.partition

    @property
    def task_id(self) -> str:
        return self._state.task_id

    @property
    def dropped(self) -> dict[str, int]:
        """How many records were left out, by reason."""
        return self._state.dropped

    # ---- what goes in, what comes out

    def process(
        self,
        records: Iterable[Raw],
        now: int | None = None,
        *,
        left: Iterable[Raw] = (),
        awaited: Sequence[tuple[str, int]] = (),
    ) -> list[Raw]:
        """Takes records, each partition's in the order of offsets, and gives what comes out of them. When one of the
        partitions that are `awaited` runs dry, the records of others wait: a task that does not outlive a batch is
        given them again in the next one (`left`)."""
        if now is not None:
            self._state.now = now
        queues = self._inputs.fill(left)
        has_begun = self._state.stream_time != NO_TIMESTAMP
        # Of equal timestamps the record of a partition that waits goes first, as in Java's queue: then no result
        # depends on where batches end. Where none has waited a table's goes first, so that a stream's finds it.
        queues += sorted(self._inputs.fill(records), key=_tables_first)
        if not has_begun:
            queues.sort(key=_tables_first)
        needed = self._inputs.wait_for(awaited)
        if len(queues) == 1 and self._inputs.are_empty and all(each is queues[0] for each in needed):
            self._drain(queues[0])
        elif len(queues) == 2 and self._inputs.are_empty:
            self._take_turns(*queues)
        else:
            self._inputs.line_up(queues)
            while self.step():
                pass
        return self.take()

    def way_of(self, topic: str) -> Way | None:
        """For a batch of one partition alone, when nothing is left of another: what its records go through. None if
        they have to be `process`ed."""
        if self._stream_punctuations.next_ms() is not None or not self._inputs.are_empty:
            return None
        return self._bulk.way_of(self._nodes.source(topic))

    def passed(self, topic: str, latest: int, dropped: Mapping[str, int]) -> None:
        """Records of its partition of the topic have gone that way; `latest` is the latest time of them."""
        self._bulk.passed(self._inputs.queue(topic, self.partition), latest, dropped)

    def left(self) -> list[Raw]:
        """Records that wait for others, in the order in which their partitions stand in line."""
        return self._inputs.left()

    def add(self, records: Iterable[Raw]) -> None:
        """Takes records; `step` processes one at a time."""
        self._inputs.line_up(self._inputs.fill(records))

    def step(self) -> bool:
        """Processes the next record, of the partition whose first one is the oldest. False: there is none."""
        found = self._inputs.next()
        if found is None:
            return False
        self._run(*found)
        return True

    def advance_wall_clock(self, now: int) -> list[Raw]:
        """Runs the punctuators whose time has come."""
        self._state.now = max(self._state.now, now)
        self._punctuate(PunctuationType.WALL_CLOCK_TIME, self._state.now)
        return self.take()

    def commit(self, *, flush: bool = True) -> list[Raw]:
        """Ends a batch: caches are emptied, stores written to their backends. Gives what comes out only now."""
        waiting = True
        while waiting:
            waiting = any([action() for action in self._state.at_batch_end])
            for name, cache in self._caches.items():  # a store comes before those that it feeds
                self._flush(name, cache)
        for action in self._state.at_commit:
            action()
        if flush:
            for store in self.stores.values():
                store.flush()
        return self.take()

    def take(self) -> list[Raw]:
        """What came out since the last time."""
        return self._state.take()

    def close(self) -> None:
        self._nodes.close()

    def reads(self, topic: str) -> bool:
        return self._nodes.find_source(topic) is not None

    def source_of(self, topic: str) -> SourceNode:
        return self._nodes.source(topic).node

    def next_wall_clock_ms(self) -> int | None:
        """When the next punctuator by the wall clock is due."""
        return self._state.punctuations[PunctuationType.WALL_CLOCK_TIME].next_ms()

    # ---- from batch to batch

    def save(self) -> bytes:
        """Times: of the stream, of partitions, of operators, of punctuators."""
        return json.dumps(
            {
                "stream_time": self._state.stream_time,
                "partitions": self._inputs.times(),
                "nodes": self._nodes.saved(),
                "punctuations": {kind.value: due.saved() for kind, due in self._state.punctuations.items()},
            }
        ).encode()

    def restore(self, saved: bytes) -> None:
        told = json.loads(saved)
        self._state.stream_time = told["stream_time"]
        # A new version may not read what the one before it did.
        self._inputs.set_times([each for each in told["partitions"] if self.reads(each[0])])
        self._nodes.restore(told["nodes"])
        for kind, due in self._state.punctuations.items():
            due.restore(told["punctuations"][kind.value])

    def times(self) -> dict[tuple[str, int], PartitionTimes]:
        """What is committed with the offsets of its inputs, for a task that has lost its stores: see `resume`."""
        numbers = {
            f"{_OURS}{name}{_NTH}{place}": number
            for name, saved in self._nodes.saved().items()
            for place, number in enumerate(saved)
        }
        return {(topic, number): PartitionTimes(time, numbers) for topic, number, time in self._inputs.times()}

    def resume(
        self, times: Mapping[tuple[str, int], PartitionTimes], in_stores: Mapping[str, int] | None = None
    ) -> None:
        """After its stores were restored from changelogs: time goes on from where it was committed, and not before the
        latest record of each store. Punctuators begin anew, as in Kafka."""
        self._inputs.set_times([[*place, each.time] for place, each in times.items()])
        self._state.stream_time = max((each.time for each in times.values()), default=NO_TIMESTAMP)
        nodes: dict[str, dict[int, int]] = {}
        for name, number in latest(times.values()).items():
            if name.startswith(_OURS):
                node, _, place = name.removeprefix(_OURS).rpartition(_NTH)
                nodes.setdefault(node, {})[int(place)] = number
        self._nodes.restore({node: [saved[place] for place in sorted(saved)] for node, saved in nodes.items()})
        self._nodes.resume(in_stores or {})

    def forget(self) -> None:
        """Drops what the stores read: their backends may have changed."""
        for store in self.stores.values():
            store.forget()

    # ---- the run of a record

    def _flush(self, name: str, cache: RecordCache) -> None:
        try:
            cache.flush()
        except StreamsError:
            raise
        except Exception as error:  # noqa: BLE001  raised again with what it was about
            self._errors.in_processing(self._nodes.failed(error) or name, error, answered=FAIL)

    def _run_of(self, queue: Queue) -> Run | None:
        """None if its records have to go one by one; punctuators come between any two."""
        return self._bulk.run_of(queue) if self._stream_punctuations.next_ms() is None else None

    def _pass_on(self, queue: Queue, run: Run, end: int) -> None:
        for raw, record in self._bulk.pass_on(queue, run, end):
            queue.time = max(queue.time, record[2])
            self._run(queue.source, raw, record)

    def _drain(self, queue: Queue) -> None:
        """One partition alone needs no ordering."""
        bulk = self._run_of(queue)
        if bulk is not None:
            queue.raws.clear()
            self._pass_on(queue, bulk, len(bulk.raws))
            return
        source, raws = queue.source, queue.raws
        read, run = self._inputs.read, self._run
        while raws:
            raw = raws.popleft()
            record = read(queue, raw)
            if record is not None:
                queue.time = max(queue.time, record[2])
                run(source, raw, record)

    def _take_turns(self, first: Queue, second: Queue) -> None:
        """Two partitions need no heap: the one whose record has just gone stays in front only if its next one is
        older than the other's, which is what Java's queue comes to."""
        needed = self._inputs.awaited
        if any(each is not first and each is not second for each in needed):
            self._inputs.line_up((first, second))  # a third one that is awaited has nothing
            return
        for queue, other in ((first, second), (second, first)):
            bulk = self._run_of(queue)
            if bulk is not None:
                self._take_turns_in_bulk(queue, bulk, other, ahead=other is first)
                return
        read_head, run = self._inputs.read_head, self._run
        read_head(first)
        read_head(second)
        if any(each.head is None for each in needed):
            self._inputs.line_up((first, second))
            return
        if first.head is None or (second.head is not None and second.head[2] < first.head[2]):
            first, second = second, first
        while first.head is not None:
            head, raw = first.head, first.head_raw
            assert raw is not None
            first.head = None
            first.time = max(first.time, head[2])
            read_head(first)
            run(first.source, raw, head)
            if first.head is None and first in needed:
                self._inputs.line_up((second,))
                return
            behind = second.head
            if behind is not None and (first.head is None or first.head[2] >= behind[2]):
                first, second = second, first

    def _take_turns_in_bulk(self, queue: Queue, bulk: Run, other: Queue, *, ahead: bool) -> None:
        """As `_take_turns`. `ahead`: of equal timestamps the other's record goes first in the beginning."""
        queue.raws.clear()
        read_head, end = self._inputs.read_head, len(bulk.raws)
        needs_bulk, needs_other = queue in self._inputs.awaited, other in self._inputs.awaited
        read_head(other)
        if other.head is not None:
            ahead = other.head[2] < bulk.times[0] or (ahead and other.head[2] == bulk.times[0])
        while other.head is not None:
            if bulk.at < end and not ahead:
                self._pass_on(queue, bulk, bulk.until(other.head[2]))
            if needs_bulk and bulk.at == end:
                break
            head, raw = other.head, other.head_raw
            assert raw is not None
            other.head = None
            other.time = max(other.time, head[2])
            read_head(other)
            self._run(other.source, raw, head)
            ahead = bulk.at < end and other.head is not None and other.head[2] < bulk.times[bulk.at]
        if bulk.at < end and not (needs_other and other.head is None):
            self._pass_on(queue, bulk, end)
        queue.raws.extend(bulk.raws[bulk.at :])
        self._inputs.line_up((queue, other))

    def _run(self, source: Source, raw: Raw, record: Record) -> None:
        state = self._state
        timestamp = record[2]
        state.stream_time = max(state.stream_time, timestamp)
        state.raw = raw
        state.origin = None
        state.moment.timestamp = timestamp
        try:
            source.process(record)
        except StreamsError:
            raise
        except Exception as error:  # noqa: BLE001  raised again with what it was about
            self._errors.in_processing(self._nodes.failed(error) or source.name, error, answered=FAIL)
        state.raw = None
        if state.stream_time >= self._stream_punctuations.due_ms:
            self._punctuate(PunctuationType.STREAM_TIME, state.stream_time)

    def _punctuate(self, kind: PunctuationType, now: int) -> None:
        state = self._state
        punctuations = state.punctuations[kind]
        while (schedule := punctuations.due(now)) is not None:
            state.raw = state.origin = None
            state.moment.timestamp, state.moment.headers = now, ()
            try:
                schedule.punctuator(now)
            except StreamsError:
                raise
            except Exception as error:  # noqa: BLE001  the handler decides
                self._errors.in_processing(schedule.node, error, timestamp=now)
            punctuations.done(schedule, now)
            state.drop(PUNCTUATE)


def _tables_first(queue: Queue) -> tuple[bool, tuple[str, int]]:
    return not queue.source.is_table, queue.place
