"""What a StreamsBuilder remembers until `build`: operations in the order they were said, not yet nodes of a topology.

One operation may become several nodes, and some things are known only at the end: whether a table needs a store, who
wants old values, which sources are the same. Names are numbered here, as Kafka does: every name burns a number, also
where the user gave one, so that a topology keeps its numbers when names are added.
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.dsl.options import Consumed, checked_name
from ottla.streams.expressions import Expression
from ottla.streams.topology.graph import (
    Form,
    GlobalTable,
    Partitioner,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    TopologyError,
)
from ottla.streams.topology.operations import (
    DropNullKeys,
    Function,
    Operation,
    PassThrough,
    StreamSelfJoin,
    StreamStreamJoin,
    TableSource,
)
from ottla.streams.topology.stores import StoreKind, StoreSpec
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
        self, name: str, source_name: str, topic: str, consumed: Consumed[Any, Any], supplier: "SourceTable"
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


# ---- tables: whether they have a store, and who wants old values


@dataclass(frozen=True, slots=True)
class View:
    """How to look a key up in a table: in which store, and what happens to what lies there."""

    stores: tuple[str, ...]
    store: str
    steps: tuple[Callable[[], Operation], ...] = ()

    def operations(self) -> tuple[Operation, ...]:
        return tuple(step() for step in self.steps)


class TableLogic:
    """The part of a table that is decided by what comes after it (Kafka's KTableProcessorSupplier)."""

    @abstractmethod
    def operation(self) -> Operation: ...

    @abstractmethod
    def stores(self) -> tuple[StoreSpec, ...]: ...

    @abstractmethod
    def wants_old(self, force: bool) -> bool:
        """Asks for old values downstream. Without force a table does not get a store for it. Says whether they come."""

    @abstractmethod
    def view(self) -> View: ...

    @abstractmethod
    def stored(self) -> StoreSpec | None:
        """The store that its view looks into."""


class SourceTable(TableLogic):
    """A topic or a stream. It has a store if it was named, or if somebody needs it."""

    __slots__ = ("_kept", "_send_old", "_store", "is_versioned")

    def __init__(self, store: StoreSpec, *, kept: bool) -> None:
        self._store = store
        self._kept = kept
        self._send_old = False
        self.is_versioned = store.kind is StoreKind.VERSIONED

    def operation(self) -> Operation:
        return TableSource(self._store.name if self._kept else None, self._send_old)

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,) if self._kept else ()

    def wants_old(self, force: bool) -> bool:
        if not (force or self._kept):
            return False
        self._kept = self._send_old = True
        return True

    def view(self) -> View:
        self._kept = True
        return View((self._store.name,), self._store.name)

    def stored(self) -> StoreSpec:
        return self._store


class AggregateTable(TableLogic):
    """Of a stream or of a table; always has a store."""

    __slots__ = ("_make", "_send_old", "_store")

    def __init__(self, store: StoreSpec, make: Callable[[bool], Operation]) -> None:
        self._store = store
        self._make = make  # send_old -> operation
        self._send_old = False

    def operation(self) -> Operation:
        return self._make(self._send_old)

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,)

    def wants_old(self, force: bool) -> bool:
        self._send_old = True
        return True

    def view(self) -> View:
        return View((self._store.name,), self._store.name)

    def stored(self) -> StoreSpec:
        return self._store


class CogroupedTable(TableLogic):
    """Several aggregates write one store, and meet in a node that hands on what they send."""

    __slots__ = ("send_old", "store")

    def __init__(self, store: StoreSpec) -> None:
        self.store = store
        self.send_old = False

    def operation(self) -> Operation:
        return PassThrough()

    def stores(self) -> tuple[StoreSpec, ...]:
        return ()

    def wants_old(self, force: bool) -> bool:
        self.send_old = True
        return True

    def view(self) -> View:
        return View((self.store.name,), self.store.name)

    def stored(self) -> StoreSpec:
        return self.store


class DerivedTable(TableLogic):
    """filter, map_values, transform_values: without a store of its own it is computed from its parent whenever it is
    looked at."""

    __slots__ = ("_make", "_parent", "_send_old", "_store", "_unseen")

    def __init__(
        self,
        parent: "OldValues",
        store: StoreSpec | None,
        make: Callable[[str | None, bool], Operation],
        *,
        send_old: bool = False,
        unseen: str | None = None,
    ) -> None:
        """`unseen`: why it cannot be computed by others."""
        self._parent = parent
        self._store = store
        self._make = make  # (store, send_old) -> operation
        self._send_old = send_old
        self._unseen = unseen

    def operation(self) -> Operation:
        return self._make(self._store.name if self._store else None, self._send_old)

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,) if self._store else ()

    def wants_old(self, force: bool) -> bool:
        if self._store is not None or self._parent.enable(force):
            self._send_old = True
        return self._send_old

    def view(self) -> View:
        if self._store is not None:
            return View((self._store.name,), self._store.name)
        if self._unseen is not None:
            raise TopologyError(
                f"{self._unseen}, to which a join has no access: give the table a name (materialized), so that the "
                "join looks into its own store"
            )
        below = self._parent.logic.view()
        return View(below.stores, below.store, (*below.steps, self.operation))

    def stored(self) -> StoreSpec | None:
        return self._store or self._parent.logic.stored()


class SuppressedTable(TableLogic):
    __slots__ = ("_operation", "_parent", "_store")

    def __init__(self, parent: "OldValues", store: StoreSpec, operation: Operation) -> None:
        self._parent = parent
        self._store = store
        self._operation = operation
        parent.enable(True)  # the buffer answers with the value from before while it holds a key back

    def operation(self) -> Operation:
        return self._operation

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,)

    def wants_old(self, force: bool) -> bool:
        return self._parent.enable(force)

    def view(self) -> View:
        below = self._parent.logic.view()
        return View((self._store.name, *below.stores), below.store, (*below.steps, self.operation))

    def stored(self) -> StoreSpec | None:
        return self._parent.logic.stored()


class OldValues:
    """A table's logic and whether old values were asked of it already."""

    __slots__ = ("_enabled", "logic")

    def __init__(self, logic: TableLogic) -> None:
        self.logic = logic
        self._enabled = False

    def enable(self, force: bool) -> bool:
        self._enabled = self._enabled or self.logic.wants_old(force)
        return self._enabled


# ---- the draft itself


class Draft:
    """All steps of a builder. Streams and tables add to it; `write` makes the topology."""

    __slots__ = ("_copartitioned", "_merged", "_next_number", "_next_priority", "added", "root")

    def __init__(self) -> None:
        self.root = Root("root")
        self._next_number = 0
        self._next_priority = 0
        self._copartitioned: list[tuple[str, ...]] = []
        self._merged: dict[str, str] = {}
        """Which source stands for which other one."""
        self.added: dict[Step, None] = {}
        """All steps, in the order in which they were first added."""

    def copied(self) -> "Draft":
        """With steps of its own, so that a rule may change them."""
        result = Draft()
        result._next_number, result._next_priority = self._next_number, self._next_priority
        result._copartitioned, result._merged = list(self._copartitioned), dict(self._merged)
        mine: dict[Step, Step] = {self.root: result.root} | {step: copy(step) for step in self.added}
        for old, new in mine.items():
            new.parents = [mine[parent] for parent in old.parents]
            new.children = [mine[child] for child in old.children]
        result.added = {mine[step]: None for step in self.added}
        return result

    def rename_source(self, name: str, other: str) -> None:
        self._merged[name] = other

    def new_name(self, prefix: str) -> str:
        name = f"{prefix}{self._next_number:010d}"
        self._next_number += 1
        return name

    def new_store_name(self, prefix: str) -> str:
        return self.new_name(f"{prefix}STATE-STORE-")

    def named(self, name: str | None, prefix: str, suffix: str = "") -> str:
        """The user's name, or a new one; a number is burned either way."""
        generated = self.new_name(prefix)
        return generated if name is None else (checked_name(name + suffix) or generated)

    def add(self, step: Step, *parents: Step) -> None:
        self.added.setdefault(step)
        for parent in parents:
            parent.attach(step)
            step.priority = self._next_priority
            self._next_priority += 1

    def copartition(self, *sources: Sequence[str]) -> tuple[str, ...]:
        """Says that the topics of these sources must have equally many partitions. Gives all of them."""
        together = tuple(dict.fromkeys(name for names in sources for name in names))
        self._copartitioned.append(together)
        return together

    def repartition_names(self, prefix: str) -> RepartitionNames:
        topic = prefix if prefix.endswith(REPARTITION) else prefix + REPARTITION
        sink = self.new_name("KSTREAM-SINK-")
        null_filter = self.new_name("KSTREAM-FILTER-")
        source = self.new_name("KSTREAM-SOURCE-")
        if _is_generated(prefix):
            return RepartitionNames(topic, sink, null_filter, source)
        return RepartitionNames(topic, f"{topic}-sink", f"{topic}-filter", f"{topic}-source")

    def write(self, topology: Topology) -> Topology:
        """Into an empty topology. May be called again, also after more has been said."""
        self.merge_sources()
        for step in self._in_order():
            step.write(topology)
        groups = [tuple(self._merged.get(name, name) for name in group) for group in self._copartitioned]
        topology.declared.copartitioned = _topic_groups(topology, groups)
        _check_fixed_counts(topology)
        return topology

    def merge_sources(self) -> None:
        """Of equal topics."""
        by_topic: dict[tuple[str | None, str], SourceStep] = {}
        for step in list(self.root.children):
            if not isinstance(step, SourceStep):
                continue
            for key in [(step.pattern, "")] if step.pattern is not None else [(None, topic) for topic in step.topics]:
                first = by_topic.setdefault(key, step)
                if first is step:
                    continue
                if set(first.topics) != set(step.topics):
                    raise TopologyError(
                        f"{first.name} and {step.name} read overlapping topics ({', '.join(first.topics)} and "
                        f"{', '.join(step.topics)}): the same ones are expected, or wholly different ones"
                    )
                first.absorb(step)
                self._merged[step.name] = first.name
                if step in self.root.children:
                    self.root.detach(step)

    def _in_order(self) -> list[Step]:
        """The order in which Kafka writes them: what was said first, once all its parents are written."""
        pending: list[tuple[int, int, Step]] = [(-1, 0, self.root)]
        done: list[Step] = []
        pushed = 0
        written: set[int] = set()
        while pending:
            step = heappop(pending)[2]
            if id(step) in written or any(id(parent) not in written for parent in step.parents):
                continue
            written.add(id(step))
            done.append(step)
            for child in step.children:
                pushed += 1
                heappush(pending, (child.priority, pushed, child))
        return done[1:]


def _is_generated(name: str) -> bool:
    return name.startswith("KSTREAM") and name[-11:-10] == "-" and name[-10:].isdigit()


def _topic_groups(topology: Topology, groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Topics in place of sources; groups that share a topic are one."""
    result: list[tuple[str, ...]] = []
    for group in groups:
        sources = [node for name in group if isinstance(node := topology.declared.nodes.get(name), SourceNode)]
        topics = tuple(dict.fromkeys(topic for source in sources for topic in source.topics))
        shared = [other for other in result if any(topic in other for topic in topics)]
        result = [other for other in result if other not in shared]
        result.append(tuple(dict.fromkeys(topic for part in (*shared, topics) for topic in part)))
    return [group for group in result if len(group) > 1]


def _check_fixed_counts(topology: Topology) -> None:
    known = topology.declared.repartition_topics
    for group in topology.declared.copartitioned:
        counts = {topic: known[topic].partitions for topic in group if topic in known}
        if len(counts) == len(group) and None not in counts.values() and len(set(counts.values())) > 1:
            listed = ", ".join(f"{topic} has {number}" for topic, number in sorted(counts.items()))
            raise TopologyError(f"repartition topics that are joined must have equally many partitions, but: {listed}")


def step_of(
    draft: Draft, name: str | None, prefix: str, operation: Operation, parent: Step, *, connected: Sequence[str] = ()
) -> OperationStep:
    """A processor with one parent, added to the draft."""
    step = OperationStep(draft.named(name, prefix), lambda: operation, connected=connected)
    draft.add(step, parent)
    return step


def of_value(with_key: bool) -> str:
    """What a function of values is called with."""
    return "key, value" if with_key else "value"


def checked(function: Function | None, what: str, given: str) -> Function:
    """What is neither a callable nor an expression is most likely a result, or an argument in the wrong place.

    `given` names what the callable is called with: `key, value`.
    """
    if isinstance(function, Expression):
        return function
    if function is None or not callable(function):
        raise TopologyError(f"{what} is {function!r}: a function or a column expression is expected")
    _check_parameters(function, what, given)
    return function


def checked_callable(function: Any, what: str, given: str) -> Callable[..., Any]:
    """For what Spark has no column for."""
    if isinstance(function, Expression):
        raise TopologyError(f"{what} is an expression, but here a function is expected")
    if not callable(function):
        raise TopologyError(f"{what} is {function!r}: a function is expected")
    _check_parameters(function, what, given)
    return function  # type: ignore[no-any-return]


def _check_parameters(function: Callable[..., Any], what: str, given: str) -> None:
    """A function with other parameters would fail at the first record, long after it was written."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some that are written in C do not tell
    try:
        signature.bind(*given.split(", ") if given else ())
    except TypeError:
        code = getattr(function, "__code__", None)
        where = "" if code is None else f" ({code.co_filename.rpartition('/')[2]}, line {code.co_firstlineno})"
        raise TopologyError(f"{what} is called with ({given}), but takes {signature}{where}") from None
