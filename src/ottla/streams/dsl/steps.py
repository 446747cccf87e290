"""The operations of a draft: each remembers what was said, and writes its nodes into a topology at the end."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.dsl.options import Consumed
from ottla.streams.dsl.table_logic import SourceTable
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import Form, GlobalTable, Partitioner, RepartitionTopic, SinkNode, SourceNode
from ottla.streams.topology.operations import (
    DropNullKeys,
    Operation,
    PassThrough,
    StreamSelfJoin,
    StreamStreamJoin,
)
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.topology.topology import Topology

if TYPE_CHECKING:
    from ottla.serdes.base import Serde

REPARTITION: Final = "-repartition"


class Step:
    """Something that was said: it becomes one node or more."""

    __slots__ = ("children", "grace_ms", "is_versioned", "keeps_null_keys", "name", "parents", "priority")

    def __init__(
        self,
        name: str,
        *,
        grace_ms: int | None = None,
        keeps_null_keys: bool = False,
        is_versioned: bool | None = None,
    ) -> None:
        self.name = name
        self.parents: list[Step] = []
        self.children: list[Step] = []
        self.priority = 0
        self.grace_ms = grace_ms
        """Of the windows that it aggregates over."""
        self.keeps_null_keys = keeps_null_keys
        """Left and outer joins hand on what has no key, so a repartition in front of one must not drop it (KIP-962)."""

        self.is_versioned = is_versioned
        """Whether it is a versioned table; None where it has no store of its own, and is what its parents are."""

    def gives_versions(self) -> bool:
        if self.is_versioned is not None:
            return self.is_versioned
        return bool(self.parents) and all(parent.gives_versions() for parent in self.parents)

    @abstractmethod
    def write(self, topology: Topology) -> None: ...

    def parent_names(self) -> tuple[str, ...]:
        return tuple(parent.name for parent in self.parents)

    def attach(self, child: "Step") -> None:
        if child not in self.children:
            self.children.append(child)
        if self not in child.parents:
            child.parents.append(self)

    def detach(self, child: "Step") -> None:
        self.children.remove(child)
        child.parents.remove(self)


class Root(Step):
    __slots__ = ()

    def write(self, topology: Topology) -> None:
        pass


class SourceStep(Step):
    __slots__ = ("consumed", "pattern", "topics")

    def __init__(self, name: str, topics: tuple[str, ...], pattern: str | None, consumed: Consumed[Any, Any]) -> None:
        super().__init__(name)
        self.topics = topics
        self.pattern = pattern
        self.consumed = consumed

    def write(self, topology: Topology) -> None:
        said = self.consumed
        topology.add_node(
            SourceNode(
                self.name, self.topics, self.pattern, said.key_serde, said.value_serde, said.extractor, said.start
            )
        )

    def absorb(self, other: "SourceStep") -> None:
        """Two streams of the same topics are one source."""
        if self.consumed.start != other.consumed.start:
            raise TopologyError(
                f"{', '.join(self.topics) or self.pattern} is read twice, with different places to begin (reset)"
            )
        for child in list(other.children):
            other.detach(child)
            self.attach(child)


class StateStoreStep(Step):
    __slots__ = ("store",)

    def __init__(self, store: StoreSpec) -> None:
        super().__init__(store.name)
        self.store = store

    def write(self, topology: Topology) -> None:
        topology.add_state_store(self.store)


class OperationStep(Step):
    """One processor. What it does, and which stores it brings, is asked for when it is written."""

    __slots__ = ("connected", "operation", "own_stores")

    def __init__(
        self,
        name: str,
        operation: Callable[[], Operation],
        *,
        own_stores: Callable[[], Sequence[StoreSpec]] = tuple,
        connected: Sequence[str] = (),
        grace_ms: int | None = None,
        keeps_null_keys: bool = False,
        is_versioned: bool | None = None,
    ) -> None:
        super().__init__(name, grace_ms=grace_ms, keeps_null_keys=keeps_null_keys, is_versioned=is_versioned)
        self.operation = operation
        self.own_stores = own_stores
        self.connected = connected

    def write(self, topology: Topology) -> None:
        topology.add_operation(self.name, self.operation(), *self.parent_names())
        for store in self.own_stores():
            topology.add_state_store(store, self.name)
        if self.connected:
            topology.connect_processor_and_state_stores(self.name, *self.connected)


class MergeStep(OperationStep):
    """KStream.merge."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, PassThrough)


class SinkStep(Step):
    __slots__ = ("sink",)

    def __init__(self, sink: SinkNode) -> None:
        super().__init__(sink.name)
        self.sink = sink

    def write(self, topology: Topology) -> None:
        topology.add_node(replace(self.sink, parents=self.parent_names()))


class TableSourceStep(Step):
    """A topic as a table: a source and the processor that fills its store."""

    __slots__ = ("consumed", "reuses_topic", "source_name", "supplier", "topic")

    def __init__(
        self, name: str, source_name: str, topic: str, consumed: Consumed[Any, Any], supplier: SourceTable
    ) -> None:
        super().__init__(name, is_versioned=supplier.is_versioned)
        self.source_name = source_name
        self.topic = topic
        self.consumed = consumed
        self.supplier = supplier
        self.reuses_topic = False
        """Whether the topic itself is the changelog of the table's store."""

    def write(self, topology: Topology) -> None:
        said = self.consumed
        source = SourceNode(
            self.source_name, (self.topic,), None, said.key_serde, said.value_serde, said.extractor, said.start
        )
        topology.add_node(source)
        topology.add_operation(self.name, self.supplier.operation(), self.source_name)
        for store in self.supplier.stores():
            kept = replace(store, logged=False, source_topic=self.topic) if self.reuses_topic else store
            topology.add_state_store(kept, self.name)


class GlobalTableStep(Step):
    __slots__ = ("table",)

    def __init__(self, table: GlobalTable) -> None:
        super().__init__(table.processor)
        self.table = table

    def write(self, topology: Topology) -> None:
        topology.add_global_table(self.table)


@dataclass(frozen=True, slots=True)
class RepartitionNames:
    topic: str
    sink: str
    filter: str
    source: str


class RepartitionStep(Step):
    """A hop over an internal topic: filter, sink, source. Behind KTable.group_by there is no filter."""

    __slots__ = ("changes", "is_mergeable", "key_serde", "names", "partitioner", "partitions", "value_serde")

    def __init__(
        self,
        names: RepartitionNames,
        key_serde: "Serde[Any] | None",
        value_serde: "Serde[Any] | None",
        *,
        partitions: int | None = None,
        partitioner: Partitioner | None = None,
        changes: bool = False,
        is_mergeable: bool = True,
    ) -> None:
        """`is_mergeable`: nobody asked for this very topic, so another one will do."""
        super().__init__(names.source)
        self.names = names
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.partitions = partitions
        self.partitioner = partitioner
        self.changes = changes
        self.is_mergeable = is_mergeable and not changes

    def write(self, topology: Topology) -> None:
        names = self.names
        topology.add_repartition_topic(RepartitionTopic(names.topic, self.partitions))
        parents = self.parent_names()
        if not self.changes:
            operation = PassThrough() if self._feeds_relaxed_join() else DropNullKeys()
            topology.add_operation(names.filter, operation, *parents)
            parents = (names.filter,)
        serdes = (self.key_serde, self.value_serde)
        form = Form.CHANGE if self.changes else Form.PLAIN
        topology.add_node(SinkNode(names.sink, names.topic, parents, None, *serdes, self.partitioner, True, form=form))
        topology.add_node(SourceNode(names.source, (names.topic,), None, *serdes, form=form))

    def _feeds_relaxed_join(self) -> bool:
        below = list(self.children)
        for step in below:
            if step.keeps_null_keys:
                return True
            below += [child for child in step.children if child not in below]
        return False


class StreamJoinStep(Step):
    """Both directions of a windowed join, and the node in which they meet."""

    __slots__ = ("is_self_join", "joins", "outer_store", "windowed")

    def __init__(
        self,
        name: str,
        windowed: tuple[str, str],
        joins: Sequence[tuple[str, Operation, StoreSpec]],
        outer_store: StoreSpec | None,
        *,
        keeps_null_keys: bool,
    ) -> None:
        super().__init__(name, keeps_null_keys=keeps_null_keys)
        self.windowed = windowed
        self.joins = joins
        """Name, operation, and the store of the other side, of this direction and of the other one."""
        self.outer_store = outer_store
        self.is_self_join = False
        """Whether both sides are the same stream and share one buffer."""

    def write(self, topology: Topology) -> None:
        if self.is_self_join:
            _, operation, store = self.joins[1]
            assert isinstance(operation, StreamStreamJoin)
            joining = StreamSelfJoin(store.name, operation.joiner, operation.windows, operation.with_key)
            topology.add_operation(self.name, joining, self.windowed[0])
            topology.add_state_store(store, self.name)
            return
        for (name, operation, store), parent in zip(self.joins, self.windowed, strict=True):
            topology.add_operation(name, operation, parent)
            topology.add_state_store(store, name)
            if self.outer_store is not None:
                topology.add_state_store(self.outer_store, name)
        topology.add_operation(self.name, PassThrough(), *(name for name, _, _ in self.joins))
