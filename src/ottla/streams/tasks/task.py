"""A task: the nodes of one sub-topology at work on one partition number. Records in, records out; no I/O, no clock.

Records of several input partitions are processed in the order of their timestamps, as far as they are here
(`PartitionGroup` in Kafka). A record runs through the whole sub-topology, depth first, before the next one starts.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.streams.errors import FAIL, StreamsError
from ottla.streams.record import Raw, Record
from ottla.streams.tasks.current import TaskState
from ottla.streams.tasks.failures import TaskErrors
from ottla.streams.tasks.inputs import Inputs, Queue, Source
from ottla.streams.tasks.nodes import TaskNodes
from ottla.streams.tasks.store_maker import AnyStore, StoreMaker
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.graph import Graph, SourceNode, SubTopology
from ottla.streams.topology.processor import PunctuationType
from ottla.streams.topology.stores import StoreBackend


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
        global_stores: Mapping[str, KeyValues] | None = None,
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
        )
        self.stores: dict[str, AnyStore] = maker.make(sub_topology)
        self._errors = TaskErrors(state)
        self._nodes = TaskNodes(state, self._errors, sub_topology, graph, {**(global_stores or {}), **self.stores})
        self._inputs = Inputs(state, self._errors, self._nodes.source)

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

    def process(self, records: Iterable[Raw], now: int | None = None) -> list[Raw]:
        """Takes records, each partition's in the order of offsets, and gives what comes out of them."""
        if now is not None:
            self._state.now = now
        queues = self._inputs.fill(records)
        if len(queues) == 1 and self._inputs.are_empty:
            self._drain(queues[0])
        else:
            # Of equal timestamps a table's record goes first, so that a stream's finds it.
            self._inputs.line_up(sorted(queues, key=lambda queue: not queue.source.is_table))
            while self.step():
                pass
        return self.take()

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
        """Ends a batch: stores are written to their backends. Gives the changelog records that come only now."""
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
        self._inputs.set_times(told["partitions"])
        self._nodes.restore(told["nodes"])
        for kind, due in self._state.punctuations.items():
            due.restore(told["punctuations"][kind.value])

    def forget(self) -> None:
        """Drops what the stores read: their backends may have changed."""
        for store in self.stores.values():
            store.forget()

    # ---- the run of a record

    def _drain(self, queue: Queue) -> None:
        """One partition alone needs no ordering."""
        source, raws = queue.source, queue.raws
        read, run = self._inputs.read, self._run
        while raws:
            raw = raws.popleft()
            record = read(queue, raw)
            if record is not None:
                queue.time = max(queue.time, record[2])
                run(source, raw, record)

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
            state.moment.timestamp = now
            try:
                schedule.punctuator(now)
            except StreamsError:
                raise
            except Exception as error:  # noqa: BLE001  the handler decides
                self._errors.in_processing(schedule.node, error, timestamp=now)
            punctuations.done(schedule, now)
