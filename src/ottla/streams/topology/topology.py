"""A topology: what `StreamsBuilder.build` gives, and the door of the Processor API."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.topology.describe import describe
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import (
    GlobalTable,
    Graph,
    Node,
    Partitioner,
    ProcessorNode,
    RepartitionTopic,
    Reset,
    ResetByDuration,
    SinkNode,
    SourceNode,
    SubTopology,
    TimestampExtractor,
)
from ottla.streams.topology.one_task import in_one_task
from ottla.streams.topology.operations import Function, Operation, UserProcessor
from ottla.streams.topology.partition_counts import partition_counts
from ottla.streams.topology.processor import FixedKeyProcessor, Processor
from ottla.streams.topology.stores import StateStore, StateStoreContext, StoreKind, StoreSpec

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.topology.node_types import NodeTypes


_GENERATED: Final = re.compile(r"-\d{10}(-|$)")
"""The number in a name of the DSL's making."""


class Stores:
    """Stores for processors. Unlike those of the DSL their values carry no timestamp, unless asked to."""

    @staticmethod
    def key_value(
        name: str,
        key_serde: "Serde[Any]",
        value_serde: "Serde[Any]",
        *,
        timestamped: bool = False,
        headers: bool = False,
        logging: bool | Mapping[str, str] = True,
        most_entries: int | None = None,
    ) -> StoreSpec:
        """A KeyValueStore. With `headers` its values are `ValueTimestampHeaders` (KIP-1271). `logging` is off, on, or
        settings of the changelog topic. With `most_entries` it keeps so many keys, those that were used last, as
        Kafka's lruMap does."""
        if most_entries is not None and most_entries < 1:
            raise TopologyError(f"store {name} would keep {most_entries} entries: at least one is expected")
        return StoreSpec(
            name,
            StoreKind.KEY_VALUE,
            key_serde,
            value_serde,
            timestamped=timestamped and not headers,
            logged=logging is not False,
            changelog_config=_config(logging),
            headers=headers,
            most_entries=most_entries,
        )

    @staticmethod
    def own(
        name: str,
        supplier: Callable[[StateStoreContext], StateStore],
        *,
        logging: bool | Mapping[str, str] = True,
    ) -> StoreSpec:
        """A store of your own class: the supplier makes one for each task."""
        if not callable(supplier):
            raise TopologyError(f"store {name} is given {supplier!r}, which makes no stores when called")
        return StoreSpec(
            name,
            StoreKind.OWN,
            timestamped=False,
            logged=logging is not False,
            changelog_config=_config(logging),
            supplier=supplier,
        )

    @staticmethod
    def window(
        name: str,
        key_serde: "Serde[Any]",
        value_serde: "Serde[Any]",
        *,
        window_size_ms: int,
        retention_ms: int,
        retain_duplicates: bool = False,
        timestamped: bool = False,
        headers: bool = False,
        in_memory: bool = False,
        logging: bool | Mapping[str, str] = True,
    ) -> StoreSpec:
        """A WindowStore that keeps windows for at least `retention_ms` of stream time. `in_memory` has the manners of
        Kafka's store in memory: windows come in the order of time, and expire to the millisecond."""
        if window_size_ms < 0 or retention_ms < window_size_ms:
            raise TopologyError(
                f"store {name} would forget windows of {window_size_ms} ms before they end: "
                f"retention_ms is {retention_ms}"
            )
        return StoreSpec(
            name,
            StoreKind.WINDOW,
            key_serde,
            value_serde,
            timestamped=timestamped and not headers,
            headers=headers,
            logged=logging is not False,
            changelog_config=_config(logging),
            window_size_ms=window_size_ms,
            retention_ms=retention_ms,
            retain_duplicates=retain_duplicates,
            in_memory=in_memory,
        )

    @staticmethod
    def versioned_key_value(
        name: str,
        key_serde: "Serde[Any]",
        value_serde: "Serde[Any]",
        *,
        history_retention_ms: int,
        segment_interval_ms: int | None = None,
        logging: bool | Mapping[str, str] = True,
    ) -> StoreSpec:
        """A VersionedKeyValueStore that keeps old versions for at least `history_retention_ms` of stream time."""
        return StoreSpec(
            name,
            StoreKind.VERSIONED,
            key_serde,
            value_serde,
            logged=logging is not False,
            changelog_config=_config(logging),
            retention_ms=history_retention_ms,
            segment_interval_ms=segment_interval(name, history_retention_ms, segment_interval_ms),
        )

    @staticmethod
    def session(
        name: str,
        key_serde: "Serde[Any]",
        value_serde: "Serde[Any]",
        *,
        retention_ms: int,
        headers: bool = False,
        in_memory: bool = False,
        logging: bool | Mapping[str, str] = True,
    ) -> StoreSpec:
        """A SessionStore. With `headers` its values are `AggregationWithHeaders`. `in_memory`: see window."""
        return StoreSpec(
            name,
            StoreKind.SESSION,
            key_serde,
            value_serde,
            timestamped=False,
            logged=logging is not False,
            changelog_config=_config(logging),
            retention_ms=retention_ms,
            headers=headers,
            in_memory=in_memory,
        )


class Topology:
    """Sources, processors and sinks, connected by name. Parents have to be there before their children."""

    __slots__ = ("_default_key_serde", "_default_value_serde", "_rebuilt", "_resolved", "_written", "declared")

    def __init__(
        self,
        default_key_serde: "Serde[Any] | None" = None,
        default_value_serde: "Serde[Any] | None" = None,
        rebuilt: "Callable[[str], Topology] | None" = None,
    ) -> None:
        """`rebuilt` makes it again with a `topology.optimization`; what was added node by node has nobody for that."""
        self.declared = Graph()
        """As it was said, without the serdes that can be told from it; `graph` has those."""
        self._default_key_serde = default_key_serde
        self._default_value_serde = default_value_serde
        self._rebuilt = rebuilt
        self._written: frozenset[str] = frozenset()
        self._resolved: tuple[Graph, NodeTypes] | None = None

    @property
    def graph(self) -> Graph:
        """To be run: with a serde wherever one was given, follows from the types, or is the default."""
        return self._with_types()[0]

    def _with_types(self) -> "tuple[Graph, NodeTypes]":
        if self._resolved is None:
            from ottla.streams.topology.serde_defaults import with_serdes  # noqa: PLC0415  `describe` needs no serdes

            self._resolved = with_serdes(self.declared, self._default_key_serde, self._default_value_serde)
        return self._resolved

    # ---- the Processor API

    def add_source(
        self,
        name: str,
        *topics: str,
        pattern: "str | re.Pattern[str] | None" = None,
        key_serde: "Serde[Any] | None" = None,
        value_serde: "Serde[Any] | None" = None,
        timestamp_extractor: TimestampExtractor | Callable[..., int] | None = None,
        reset: Reset | ResetByDuration | str | None = None,
    ) -> "Topology":
        """Reads topics, or those that match a pattern. Without serdes keys and values are bytes."""
        extractor = timestamp_extractor or TimestampExtractor()
        if not isinstance(extractor, TimestampExtractor):
            extractor = TimestampExtractor(extractor)
        text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
        start = Reset(reset) if isinstance(reset, str) else reset
        return self.add_node(SourceNode(name, topics, text, key_serde, value_serde, extractor, start))

    def add_processor(
        self, name: str, supplier: Callable[[], Processor], *parents: str, stores: Sequence[StoreSpec | str] = ()
    ) -> "Topology":
        """`supplier` makes a new processor for each task: a class or a function, not a processor itself.

        `stores` are those it uses: specs are added to the topology, names have to be there already. So are those that
        the supplier names by a `stores()` of its own, a class by a class method or a static one.
        """
        self.add_node(ProcessorNode(name, user_processor(name, supplier), parents))
        for store in used_stores(supplier, stores):
            if isinstance(store, StoreSpec):
                self.add_state_store(store, name)
            else:
                self.connect_processor_and_state_stores(name, store)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | Function,
        *parents: str,
        key_serde: "Serde[Any] | None" = None,
        value_serde: "Serde[Any] | None" = None,
        partitioner: Partitioner | None = None,
    ) -> "Topology":
        """Writes to a topic, or to the one that a function (key, value, record metadata) names."""
        fixed = topic if isinstance(topic, str) else None
        chooser = None if isinstance(topic, str) else topic
        return self.add_node(SinkNode(name, fixed, parents, chooser, key_serde, value_serde, partitioner))

    def add_read_only_state_store(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor],
        *,
        timestamp_extractor: TimestampExtractor | Callable[..., int] | None = None,
    ) -> "Topology":
        """A store that one processor fills from a topic, and others only read (KIP-813). The topic is its changelog:
        keys and values lie in both alike."""
        kept = replace(store, logged=False, source_topic=topic)
        self.add_source(
            source,
            topic,
            key_serde=store.key_serde,
            value_serde=store.value_serde,
            timestamp_extractor=timestamp_extractor,
        )
        return self.add_processor(processor, supplier, source, stores=(kept,))

    def add_global_store(
        self,
        store: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor],
        *,
        key_serde: "Serde[Any] | None" = None,
        value_serde: "Serde[Any] | None" = None,
        timestamp_extractor: TimestampExtractor | Callable[..., int] | None = None,
    ) -> "Topology":
        """A store that every task has in whole, filled by a processor from a topic. It forwards nothing. Serdes are the
        topic's; the store's own where none are given."""
        user_processor(processor, supplier)
        extractor = timestamp_extractor or TimestampExtractor()
        if not isinstance(extractor, TimestampExtractor):
            extractor = TimestampExtractor(extractor)
        kept = replace(store, logged=False)
        serdes = key_serde or store.key_serde, value_serde or store.value_serde
        return self.add_global_table(GlobalTable(kept, topic, source, processor, *serdes, extractor, supplier))

    def add_state_store(self, store: StoreSpec, *processors: str) -> "Topology":
        """A store, and who uses it. The same one may be added again with more users."""
        self._resolved = None
        known = self.declared.stores.get(store.name)
        if store.name in self.declared.global_tables or (known is not None and known is not store):
            raise TopologyError(f"there is another store with the name {store.name} already")
        self.declared.stores[store.name] = store
        for processor in processors:
            self._connect(processor, store.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> "Topology":
        """Processors that share a store share a task, and so a sub-topology."""
        if not stores:
            raise TopologyError(f"no store is named that {processor} should be connected with")
        for store in stores:
            self._connect(processor, store)
        return self

    def _connect(self, processor: str, store: str) -> None:
        graph = self.declared
        self._resolved = None
        if store in graph.global_tables:
            raise TopologyError(
                f"{store} is a global table's store: every processor may use it without being connected"
            )
        if store not in graph.stores:
            known = ", ".join(graph.stores) or "none"
            raise TopologyError(f"{processor} uses store {store}, which has not been added (stores: {known})")
        node = graph.nodes.get(processor)
        if node is None:
            raise TopologyError(f"store {store} should be connected with {processor}, which has not been added")
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"{processor} is no processor: sources and sinks have no stores")
        if store not in node.stores:
            graph.nodes[processor] = replace(node, stores=(*node.stores, store))

    # ---- what the DSL needs besides

    def add_node(self, node: Node) -> "Topology":
        """Checks the name, the parents and, for a source, the topics."""
        self._resolved = None
        self._check_name(node.name)
        if isinstance(node, SourceNode):
            self._check_topics(node)
        else:
            self._check_parents(node)
        self.declared.nodes[node.name] = node
        return self

    def add_operation(self, name: str, operation: Operation, *parents: str) -> "Topology":
        return self.add_node(ProcessorNode(name, operation, parents))

    def add_repartition_topic(self, topic: RepartitionTopic) -> "Topology":
        self._resolved = None
        self.declared.repartition_topics[topic.name] = topic
        return self

    def add_global_table(self, table: GlobalTable) -> "Topology":
        self._resolved = None
        self._check_name(table.source)
        self._check_name(table.processor)
        self._check_topic_unread(table.topic)
        name = table.store.name
        if name in self.declared.stores or name in self.declared.global_tables:
            raise TopologyError(f"there is another store with the name {name} already")
        self.declared.global_tables[name] = replace(table, position=len(self.declared.nodes))
        return self

    def _check_name(self, name: str) -> None:
        taken = [part for table in self.declared.global_tables.values() for part in (table.source, table.processor)]
        if not name or name in self.declared.nodes or name in taken:
            raise TopologyError(f"there is another node with the name {name} already" if name else "a node has a name")

    def _check_parents(self, node: ProcessorNode | SinkNode) -> None:
        if not node.parents:
            raise TopologyError(f"{node.name} has no parent: nothing would ever reach it")
        for parent in node.parents:
            if parent not in self.declared.nodes:
                raise TopologyError(f"{node.name} has the parent {parent}, which has not been added")
            if isinstance(self.declared.nodes[parent], SinkNode):
                raise TopologyError(f"{node.name} has the sink {parent} as parent, but nothing comes out of a sink")

    def _check_topics(self, source: SourceNode) -> None:
        if source.pattern is None:
            if not source.topics:
                raise TopologyError(f"source {source.name} reads no topic")
            if len(set(source.topics)) < len(source.topics):
                raise TopologyError(f"source {source.name} names a topic twice: {', '.join(source.topics)}")
            for topic in source.topics:
                self._check_topic_unread(topic)
            return
        if source.topics:
            raise TopologyError(f"source {source.name} has topics and a pattern: one of the two is expected")
        for other in self._sources():
            for topic in other.topics:
                if re.fullmatch(source.pattern, topic):
                    raise TopologyError(
                        f"pattern {source.pattern} matches topic {topic}, which {other.name} reads already"
                    )

    def _check_topic_unread(self, topic: str) -> None:
        if any(table.topic == topic for table in self.declared.global_tables.values()):
            raise TopologyError(f"topic {topic} is read by a global table already")
        for source in self._sources():
            if topic in source.topics:
                raise TopologyError(
                    f"topic {topic} is read by {source.name} already: one topic is a stream or a table, and read once"
                )
            if source.pattern is not None and re.fullmatch(source.pattern, topic):
                raise TopologyError(f"topic {topic} matches the pattern {source.pattern} of {source.name}")

    def _sources(self) -> Iterator[SourceNode]:
        return (node for node in self.declared.nodes.values() if isinstance(node, SourceNode))

    # ---- what it is

    def sub_topologies(self) -> tuple[SubTopology, ...]:
        """Numbered as Kafka does. A global table takes a number too, but has no tasks and is left out."""
        graph = self.graph
        return tuple(
            SubTopology(number, tuple(graph.nodes[node.name] for node in group), _stores_of(graph, group))
            for number, group in enumerate(self._groups())
            if not isinstance(group, GlobalTable)
        )

    def describe(self) -> str:
        """The text of Java's `Topology.describe()`, byte for byte. Only a dynamic topic's function looks different."""
        return describe(self.declared, self._groups())

    def partition_counts(self, partitions: Mapping[str, int]) -> dict[str, int]:
        """How many partitions the repartition topics get, given those of the topics that exist; see that function."""
        return partition_counts(self.declared, self.sub_topologies(), partitions)

    def with_default_serdes(
        self, key_serde: "Serde[Any] | None" = None, value_serde: "Serde[Any] | None" = None
    ) -> "Topology":
        """The same topology for an application with these defaults; those of the builder go first.

        Raises TopologyError where something is written and nothing says how: run what this gives.
        """
        from ottla.streams.topology.serde_defaults import mismatched, missing  # noqa: PLC0415

        result = Topology(self._default_key_serde or key_serde, self._default_value_serde or value_serde)
        result.declared = self.declared
        problems = [*missing(result.graph), *mismatched(result.graph)]
        if problems:
            raise TopologyError("; ".join(problems))
        return result

    def check_expressions(
        self, key_serde: "Serde[Any] | None" = None, value_serde: "Serde[Any] | None" = None, *, sure: bool = True
    ) -> "Topology":
        """Raises TopologyError for an expression that does not fit the records that reach it: a field that there is
        not, a text where a number is needed. With these defaults; unless they are for `sure` only if none is needed.
        """
        from ottla.streams.topology.expression_check import all_sources_say_how, check_expressions  # noqa: PLC0415

        made = Topology(self._default_key_serde or key_serde, self._default_value_serde or value_serde)
        made.declared = self.declared
        if sure or all_sources_say_how(self.declared, made._default_key_serde, made._default_value_serde):
            try:
                check_expressions(*made._with_types())
            except TypeError as error:
                raise TopologyError(str(error)) from None
        return self

    def require_own_names(self) -> None:
        """Raises TopologyError if a store or an internal topic has a name that was made of a number (KIP-1111): one
        that is another when a node in front of it comes or goes, and then its state is lost."""
        graph = self.graph
        stores = [name for name in graph.stores if _GENERATED.search(name)]
        topics = [name for name in graph.repartition_topics if _GENERATED.search(name)]
        if not stores and not topics:
            return
        told = [f"the store {name}" for name in stores] + [f"the topic {name}" for name in topics]
        raise TopologyError(
            f"ensure.explicit.internal.resource.naming: nobody has named {', '.join(told)}. Materialized names the "
            "store of a table, StreamJoined those of a join; Grouped, Joined, Repartitioned and TableJoined name topics"
        )

    def is_written(self) -> None:
        """Nodes that come from now on are not the builder's."""
        self._written = frozenset(self.declared.nodes)

    def optimized(self, topology_optimization: str) -> "Topology":
        """As the DSL makes it under this setting; one of the Processor API stays as it is, as in Kafka."""
        if self._rebuilt is None:
            return self
        made = self._rebuilt(topology_optimization)
        added = [name for name in self.declared.nodes if name not in self._written]
        if added:
            raise TopologyError(
                f"topology.optimization={topology_optimization} would lose {', '.join(added)}, which came to the "
                "topology after build: give the setting to build(topology_optimization=...) instead"
            )
        return made

    def without_caches(self) -> "Topology":
        """The same topology with every update of its tables going out (`statestore.cache.max.bytes=0`)."""
        return self._with_stores(lambda store: replace(store, caching=False))

    def with_stores_in_memory(self) -> "Topology":
        """The same topology with stores that were not said to be otherwise as in memory (`default.dsl.store`)."""
        return self._with_stores(lambda store: replace(store, in_memory=store.in_memory is not False))

    def without_logs(self) -> "Topology":
        """The same topology without changelogs: for who ends with its state."""
        return self._with_stores(lambda store: replace(store, logged=False))

    def in_one_task(self) -> "Topology":
        """The same topology for who has all records in one task: without repartition topics."""
        result = Topology(self._default_key_serde, self._default_value_serde)
        result.declared = in_one_task(self.declared)
        return result

    def _with_stores(self, changed: Callable[[StoreSpec], StoreSpec]) -> "Topology":
        result = Topology(self._default_key_serde, self._default_value_serde)
        stores = {name: changed(store) for name, store in self.declared.stores.items()}
        result.declared = replace(self.declared, stores=stores)
        return result

    def _groups(self) -> list[tuple[Node, ...] | GlobalTable]:
        """Nodes connected by edges or stores, and global tables, in the order in which the first of each was added."""
        nodes = list(self.declared.nodes.values())
        members = _connected(nodes)
        tables = list(self.declared.global_tables.values())
        groups: list[tuple[Node, ...] | GlobalTable] = []
        seen: set[str] = set()
        for position, node in enumerate(nodes):
            while tables and tables[0].position <= position:
                groups.append(tables.pop(0))
            if node.name not in seen:
                group = members[node.name]
                seen.update(member.name for member in group)
                groups.append(tuple(group))
        return groups + tables


def segment_interval(store: str, history_retention_ms: int, given_ms: int | None = None) -> int:
    """By what steps a versioned store forgets; Kafka's choice where none is given."""
    if history_retention_ms < 0:
        raise TopologyError(f"store {store} cannot keep a history of {history_retention_ms} ms")
    if given_ms is not None:
        if given_ms < 1:
            raise TopologyError(f"segment_interval_ms of store {store} is {given_ms}: at least 1 ms is expected")
        return given_ms
    for longest_ms, parts, shortest_ms in ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, 60_000)):
        if history_retention_ms <= longest_ms:
            return max(history_retention_ms // parts, shortest_ms)
    return max(history_retention_ms // 24, 300_000)


def user_processor(name: str, supplier: Callable[[], Processor]) -> UserProcessor:
    """Fails for a processor in place of something that makes processors: tasks would share its fields."""
    if isinstance(supplier, Processor):
        raise TopologyError(
            f"{name} is given a processor, but every task needs its own: pass the class, or a function that makes one"
        )
    if not callable(supplier):
        raise TopologyError(f"{name} is given {supplier!r}, which does not make processors when called")
    fixed_key = isinstance(supplier, type) and issubclass(supplier, FixedKeyProcessor)
    return UserProcessor(supplier, fixed_key)


def used_stores(supplier: Callable[[], Any], named: Sequence[StoreSpec | str]) -> tuple[StoreSpec | str, ...]:
    """With those that it names itself, as Kafka's ConnectedStoreProvider does."""
    found = getattr_static(supplier, "stores", None)
    if isinstance(supplier, type) and not isinstance(found, classmethod | staticmethod):
        return tuple(named)  # what its processors have is no matter of the class
    own = getattr(supplier, "stores", None)
    return (*named, *(own() if callable(own) else ()))


def _stores_of(graph: Graph, nodes: tuple[Node, ...]) -> tuple[StoreSpec, ...]:
    names = dict.fromkeys(store for node in nodes if isinstance(node, ProcessorNode) for store in node.stores)
    return tuple(graph.stores[name] for name in names)


def _connected(nodes: list[Node]) -> dict[str, list[Node]]:
    """For each node those of its group, in the order of `nodes`; members of a group share one list."""
    leader = {node.name: node.name for node in nodes}

    def root(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    users: dict[str, str] = {}
    for node in nodes:
        for parent in node.parents:
            leader[root(node.name)] = root(parent)
        for store in node.stores if isinstance(node, ProcessorNode) else ():
            leader[root(node.name)] = root(users.setdefault(store, node.name))
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        groups.setdefault(root(node.name), []).append(node)
    return {node.name: groups[root(node.name)] for node in nodes}


def _config(logging: bool | Mapping[str, str]) -> Mapping[str, str]:
    return {} if isinstance(logging, bool) else logging
