"""The nodes of a task, connected: each holds the calls of its children."""

import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ottla.registry.lookup import RegistryUnavailable
from ottla.serdes.base import Serde, Where, placed
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import Expression
from ottla.streams.own_lines import own_lines
from ottla.streams.record import Raw, Record, RecordMetadata
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.current import TaskState, new
from ottla.streams.tasks.failures import TaskErrors
from ottla.streams.tasks.inputs import Source, looks_at_place
from ottla.streams.tasks.operators import processor_for
from ottla.streams.tasks.operators.aggregates import FOLD_SUFFIX
from ottla.streams.tasks.operators.base import Downstream, Operator, inputs
from ottla.streams.tasks.punctuation import Schedule
from ottla.streams.tasks.sensors import TaskMetrics
from ottla.streams.tasks.stores.base import Moment
from ottla.streams.tasks.stores.record_cache import RecordCache
from ottla.streams.tasks.wrapping import wrapped
from ottla.streams.topology.graph import Graph, ProcessorNode, SinkNode, SourceNode, SubTopology, decorated
from ottla.streams.topology.node_types import NodeTypes
from ottla.streams.topology.operations import TableSource
from ottla.streams.topology.processor import Processor, PunctuationType, Punctuator
from ottla.streams.windows import Emit

NO_PARTITION: Final = "no-partition"
"""A record that its partitioner gave to none."""


class TaskNodes:
    """`stores` are all that a processor may ask for: the task's and those of global tables."""

    def __init__(
        self,
        state: TaskState,
        errors: TaskErrors,
        sub_topology: SubTopology,
        graph: Graph,
        stores: Mapping[str, Any],
        caches: Mapping[str, RecordCache],
    ) -> None:
        self.state = state
        self.stores = stores
        self.global_stores = frozenset(graph.global_tables)
        self._caches = caches
        self.types = NodeTypes(graph)
        self._processors: dict[str, Processor] = {}
        self._sinks: dict[str, Sink] = {}
        self._entries: dict[str, Downstream] = {}
        self._children = _children(sub_topology)
        self._sources: dict[str, Source] = {}
        self._patterns: list[tuple[re.Pattern[str], Source]] = []
        for node in sub_topology.nodes:
            if isinstance(node, ProcessorNode):
                self._enter(node, errors)
            elif isinstance(node, SinkNode):
                sink = self._sinks[node.name] = Sink(node, state, errors, self.types)
                self._entries[node.name] = sink.entry
        self._add_sources(sub_topology, graph)
        for node in sub_topology.nodes:
            if isinstance(node, ProcessorNode):
                self._begin(node)

    def find_source(self, topic: str) -> Source | None:
        source = self._sources.get(topic)
        if source is None:
            for pattern, candidate in self._patterns:
                if pattern.fullmatch(topic):
                    return candidate
        return source

    def source(self, topic: str) -> Source:
        source = self.find_source(topic)
        if source is not None:
            return source
        known = ", ".join(self._sources) or "none"
        raise StreamsError(f"no source of this task reads topic {topic}; there are {known}")

    def downstream(self, name: str) -> Downstream:
        entries = tuple(self._entries[child] for child in self._children.get(name, ()))
        if len(entries) == 1:
            return entries[0]

        def forward(record: Record) -> None:
            for entry in entries:
                entry(record)

        return forward

    def child(self, name: str, child: str) -> Downstream:
        if child not in self._children.get(name, ()):
            known = ", ".join(self._children.get(name, ())) or "none"
            raise StreamsError(f"{child} is no child of {name}; its children are {known}")
        return self._entries[child]

    def processor(self, name: str) -> Processor:
        return self._processors[name]

    def failed(self, error: BaseException) -> str | None:
        """The innermost node in which an exception was raised. Looking for it now spares every node a try."""
        names = {id(processor): name for name, processor in self._processors.items()}
        names.update((id(sink), name) for name, sink in self._sinks.items())
        found = None
        trace = error.__traceback__
        while trace is not None:
            found = names.get(id(trace.tb_frame.f_locals.get("self")), found)
            trace = trace.tb_next
        return found

    def saved(self) -> dict[str, list[int]]:
        operators = {name: node for name, node in self._processors.items() if isinstance(node, Operator)}
        return {name: saved for name, operator in operators.items() if (saved := operator.saved())}

    def restore(self, saved: Mapping[str, list[int]]) -> None:
        for name, numbers in saved.items():
            operator = self._processors.get(name)
            if isinstance(operator, Operator):
                operator.restore(numbers)

    def resume(self, latest: Mapping[str, int]) -> None:
        for processor in self._processors.values():
            if isinstance(processor, Operator):
                processor.resume(latest)

    def close(self) -> None:
        for processor in self._processors.values():
            processor.close()

    def _enter(self, node: ProcessorNode, errors: TaskErrors) -> None:
        processor = self._processors[node.name] = processor_for(node.operation)
        entry: Downstream = processor.process
        if node.stores:
            entry = _stamped(entry, self.state.moment)
        if not errors.always_fails:
            entry = _guarded(entry, node.name, self.state.moment, errors)
        self._entries[node.name] = entry

    def _begin(self, node: ProcessorNode) -> None:
        try:
            self._processors[node.name].init(NodeContext(self, node.name, node.stores, self._behind(node)))
        except StreamsError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}{own_lines(error)}"
            raise StreamsError(f"{node.name} could not be started in task {self.state.task_id}: {why}") from error

    def _behind(self, node: ProcessorNode) -> Downstream:
        """All children; what a table writes to a store with a cache reaches them from there. Results of closed windows
        do not wait."""
        forward = self.downstream(node.name)
        operation: Any = node.operation
        cache = self._caches.get(getattr(operation, "store", None) or "")
        if cache is None or getattr(operation, "emit", Emit.ON_UPDATE).waits:
            return forward
        return cache.feed(forward, send_old=getattr(operation, "send_old", False))

    def _add_sources(self, sub_topology: SubTopology, graph: Graph) -> None:
        default = self.state.config.get("default.timestamp.extractor")
        tables = _table_sources(sub_topology)
        for node in sub_topology.nodes:
            if not isinstance(node, SourceNode):
                continue
            source = Source(node, self.downstream(node.name), default, is_table=node.name in tables)
            for topic in node.topics:
                internal = topic in graph.repartition_topics
                self._sources[decorated(self.state.application_id, topic) if internal else topic] = source
            if node.pattern is not None:
                self._patterns.append((re.compile(node.pattern), source))


def _children(sub_topology: SubTopology) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for node in sub_topology.nodes:
        for parent in dict.fromkeys(node.parents):
            found.setdefault(parent, []).append(node.name)
    return {name: tuple(children) for name, children in found.items()}


def _table_sources(sub_topology: SubTopology) -> frozenset[str]:
    """Sources that are read as tables."""
    processors = [node for node in sub_topology.nodes if isinstance(node, ProcessorNode)]
    tables = [node for node in processors if isinstance(node.operation, TableSource)]
    return frozenset(parent for table in tables for parent in table.parents)


def _stamped(process: Downstream, moment: Moment) -> Downstream:
    """A node with stores: changes of theirs carry the timestamp of the record that reached the node."""

    def stamped(record: Record) -> None:
        before, headers = moment.timestamp, moment.headers
        moment.timestamp, moment.headers = record[2], record[3]
        process(record)
        moment.timestamp, moment.headers = before, headers

    return stamped


def _guarded(process: Downstream, name: str, moment: Moment, errors: TaskErrors) -> Downstream:
    """A node of a task that may go on after an exception: its parent does not hear of it."""

    def guarded(record: Record) -> None:
        before, headers = moment.timestamp, moment.headers
        try:
            process(record)
        except StreamsError:
            raise
        except Exception as error:  # noqa: BLE001  the handler decides
            moment.timestamp, moment.headers = before, headers
            errors.in_processing(name, error, timestamp=record.timestamp, record=record)

    return guarded


class Sink:
    """Serializes records for a topic."""

    __slots__ = ("_choose", "_errors", "_key", "_name", "_partitioner", "_state", "_topic", "_value", "_where")

    def __init__(self, node: SinkNode, state: TaskState, errors: TaskErrors, types: NodeTypes) -> None:
        self._name = node.name
        self._state = state
        self._errors = errors
        self._where = Where() if looks_at_place(node) else None
        where = self._where or Where()
        value_serde = placed(node.value_serde or Serdes.bytes, where)
        self._key = placed(node.key_serde or Serdes.bytes, where).encode
        self._value: Callable[[Any], bytes] = wrapped(value_serde, node.form).encode
        self._partitioner = node.partitioner
        self._topic = node.topic
        if node.topic is not None and node.repartition:
            self._topic = decorated(state.application_id, node.topic)
        self._choose = None if node.chooser is None else _chooser(node, state, types)

    @property
    def entry(self) -> Downstream:
        """Nearly all sinks have one topic, and leave the partition to others."""
        named = self._choose is None and self._partitioner is None and self._where is None and self._topic
        return self._process_named if named else self.process

    def _process_named(self, record: Record) -> None:
        key, value, timestamp, headers = record
        try:
            key_bytes = None if key is None else self._key(key)
            value_bytes = None if value is None else self._value(value)
        except Exception as error:  # noqa: BLE001  the handler decides
            self._not_written(record, error)
            return
        self._state.outputs.append(new(Raw, (self._topic, -1, -1, key_bytes, value_bytes, timestamp, headers)))

    def _not_written(self, record: Record, error: Exception) -> None:
        """Raises RegistryUnavailable, which is no fault of the record's."""
        if isinstance(error, RegistryUnavailable):
            raise error
        self._errors.in_production(self._name, self._topic or "", record, error)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        topic = self._topic if self._choose is None else self._choose(record)
        if not topic or not isinstance(topic, str):
            raise ValueError(f"the function that chooses the topic gave {topic!r}: the name of a topic is expected")
        places = (-1,) if self._partitioner is None else self._places(topic, key, value)
        if not places:
            self._state.drop(NO_PARTITION)
            return
        where = self._where
        if where is not None:
            where.topic, where.headers = topic, list(headers)
        try:
            key_bytes = None if key is None else self._key(key)
            value_bytes = None if value is None else self._value(value)
        except RegistryUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  the handler decides
            self._errors.in_production(self._name, topic, record, error)
            return
        if where is not None:
            headers = tuple(where.headers)
        for partition in places:
            self._state.outputs.append(new(Raw, (topic, partition, -1, key_bytes, value_bytes, timestamp, headers)))

    def _places(self, topic: str, key: Any, value: Any) -> tuple[int, ...]:
        """-1: nobody chose one."""
        assert self._partitioner is not None
        known = self._state.partition_count
        # Kafka's test driver tells partitioners of one partition too, and takes whatever number they give.
        count = 1 if known is None else known(topic)
        chosen = self._partitioner(topic, key, value, count)
        if chosen is None:
            return (-1,)
        several = chosen if isinstance(chosen, Collection) else (chosen,)
        places = tuple(sorted({operator.index(each) for each in several}))
        for place in places:
            if place < 0 or (known is not None and place >= count):
                raise ValueError(
                    f"the partitioner chose partition {place} of topic {topic}, which has {count}, numbered from 0"
                )
        return places


def _chooser(node: SinkNode, state: TaskState, types: NodeTypes) -> Callable[[Record], str | None]:
    function = node.chooser
    if isinstance(function, Expression):
        run = function.compile(types.given[node.name].named())
        return lambda record: run(inputs(record, state.metadata, state.now))
    if function is None:
        raise TypeError(f"{node.name} has neither a topic nor a function for one")
    call = function
    return lambda record: call(record.key, record.value, state.metadata)


class NodeContext:
    """What a node is given at the start (see `ProcessorContext` and `OperatorContext`)."""

    __slots__ = ("_nodes", "_state", "_stores", "downstream", "node_name", "types")

    def __init__(self, nodes: TaskNodes, name: str, stores: tuple[str, ...], downstream: Downstream) -> None:
        self._nodes = nodes
        self._state = nodes.state
        self._stores = stores
        self.node_name = name
        self.types = nodes.types
        self.downstream = downstream

    @property
    def application_id(self) -> str:
        return self._state.application_id

    @property
    def task_id(self) -> str:
        return self._state.task_id

    @property
    def app_configs(self) -> Mapping[str, Any]:
        return self._state.config

    @property
    def key_serde(self) -> Serde[Any] | None:
        return self._state.config.get("default.key.serde")

    @property
    def value_serde(self) -> Serde[Any] | None:
        return self._state.config.get("default.value.serde")

    def forward(self, record: Record, child: str | None = None) -> None:
        if record.timestamp < 0:
            raise ValueError(f"{self.node_name} forwards a record with the negative timestamp {record.timestamp}")
        if child is None:
            self.downstream(record)
        else:
            self._nodes.child(self.node_name, child)(record)

    def child(self, name: str) -> Downstream:
        return self._nodes.child(self.node_name, name)

    def state_store(self, name: str) -> Any:
        found = self._nodes.stores.get(name)
        if found is None or not self._reaches(name):
            known = ", ".join(self._stores) or "none"
            raise StreamsError(f"{self.node_name} has no store {name}; it is connected with: {known}")
        return found

    def _reaches(self, name: str) -> bool:
        """A store has to be connected, for a processor that is not would work where it shares a task with one that is,
        and fail elsewhere. Global tables are everybody's; a second store goes with the one it serves."""
        return name.removesuffix(FOLD_SUFFIX) in self._stores or name in self._nodes.global_stores

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator, *, start_ms: int | None = None
    ) -> Schedule:
        return self._state.schedule(self.node_name, interval_ms, kind, punctuator, start_ms)

    def commit(self) -> None:
        """A batch commits when it ends."""

    def record_metadata(self) -> RecordMetadata | None:
        return self._state.metadata

    def set_record_metadata(self, metadata: RecordMetadata | None) -> None:
        self._state.origin = metadata

    def current_stream_time_ms(self) -> int:
        return self._state.stream_time

    def current_system_time_ms(self) -> int:
        return self._state.now

    @property
    def metrics(self) -> TaskMetrics:
        return TaskMetrics(self._state)

    def dropped(self, reason: str) -> None:
        self._state.drop(reason)

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        return self._state.shared.setdefault(name, make())

    def at_batch_end(self, action: Callable[[], bool]) -> None:
        self._state.at_batch_end.append(action)

    def at_commit(self, action: Callable[[], None]) -> None:
        self._state.at_commit.append(action)
