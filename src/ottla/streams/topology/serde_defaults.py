"""Serdes where the user named none: by the type that records are known to have there, else the application's default.

A source without serdes gives bytes. From there types are followed through the topology: filters keep them, expressions
say what they make, a Python function's result is not known. Where something is written of which nothing is known,
`missing` says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ottla.serdes.base import Serde
from ottla.serdes.by_name import serde_for
from ottla.serdes.types import ANY, Type
from ottla.streams.serdes import Serdes
from ottla.streams.topology.graph import Form, Graph, ProcessorNode, SinkNode, SourceNode
from ottla.streams.topology.node_types import NodeTypes, Types
from ottla.streams.topology.operations import (
    BufferSide,
    ForeignKeyJoin,
    ForeignKeySerdes,
    ForeignTableJoin,
    SessionAggregate,
    SlidingAggregate,
    StreamAggregate,
    StreamStreamJoin,
    StreamTableJoin,
    SubscriptionSend,
    Suppress,
    TableAggregate,
    TableFilter,
    TableMapValues,
    TableMerge,
    TableSource,
    TableTableJoin,
    TableTransformValues,
    UnlimitedAggregate,
    WindowAggregate,
)
from ottla.streams.topology.stores import StoreKind, StoreSpec

_Windowed = WindowAggregate | UnlimitedAggregate | SlidingAggregate | SessionAggregate
_RESULT_KEPT = StreamAggregate | _Windowed | TableMapValues | TableTransformValues | TableAggregate
_INPUT_KEPT = (TableSource, TableFilter, TableMerge, BufferSide, Suppress)


def with_serdes(graph: Graph, key: Serde[Any] | None, value: Serde[Any] | None) -> tuple[Graph, NodeTypes]:
    """A copy with as many serdes as can be told, and its types."""
    resolving = _Resolving(_with_sources(graph, key, value), key, value)
    for default in (False, True):  # what is known goes first: a default might be wrong further down
        while resolving.fill(default=default):
            pass
    return resolving.graph, resolving.known()


def missing(graph: Graph) -> Iterator[str]:
    """Where something would be written and nothing says how, with what to do."""
    for node in graph.nodes.values():
        if isinstance(node, SinkNode) and node.form is Form.RESPONSE and node.value_serde is None:
            yield f"no value serde for the table that {node.name} tells of: {_ADVICE['foreign_value']}"
        elif isinstance(node, SinkNode) and node.form not in (Form.SUBSCRIPTION, Form.RESPONSE):
            what = f"repartition topic {node.topic}" if node.repartition else f"topic {node.topic or '(by function)'}"
            option = "Grouped, Joined or Repartitioned" if node.repartition else "Produced or add_sink"
            for part in _lacking(node):
                yield f"no {part} serde for {what}, written by {node.name}: {_advice(option, part)}"
        elif isinstance(node, ProcessorNode) and isinstance(node.operation, SubscriptionSend):
            for part in node.operation.serdes.lacking:
                yield f"no {part} serde for the join by foreign key of {node.name}: {_ADVICE[part]}"
    waiting = _outer_stores(graph)
    for store in graph.stores.values():
        for part in () if store.kind is StoreKind.OWN else _lacking(store):
            if part == "key" or store.name not in waiting:
                yield f"no {part} serde for store {store.name}: {_advice('Materialized or StreamJoined', part)}"


_ADVICE = {
    "key": "give the table a Materialized or Consumed with a key_serde",
    "value": "give the table a Materialized or Consumed with a value_serde, by which its values are hashed",
    "foreign_value": "give it a Materialized or Consumed with a value_serde",
    "foreign_key": "give the other table a Materialized or Consumed with a key_serde",
}


def mismatched(graph: Graph) -> Iterator[str]:
    """Joins of what has keys of different types: their bytes differ, so that no key would ever meet its like."""
    types = NodeTypes(graph)
    for node in graph.nodes.values():
        if not isinstance(node, ProcessorNode):
            continue
        given = types.given[node.name].key
        match node.operation:
            case StreamTableJoin(table_store=store, view=view):
                other = types.table(store, view).key
            case TableTableJoin(other_store=store, other_view=view):
                other = types.table(store, view).key
            case StreamStreamJoin(other_store=store):
                other = types.store(store).key
            case SubscriptionSend(foreign_key=function, foreign_store=store):
                given = types.made(function, types.given[node.name])
                other = types.table(store, ()).key
            case _:
                continue
        if ANY not in (given, other) and given != other:
            yield f"{node.name} joins keys of type {given} with keys of type {other}: they would never be equal"


def _advice(option: str, part: str) -> str:
    return f"give {option} a {part}_serde, or StreamsBuilder a default_{part}_serde"


def _lacking(part: SinkNode | StoreSpec) -> list[str]:
    return [name for name, serde in (("key", part.key_serde), ("value", part.value_serde)) if serde is None]


def _outer_stores(graph: Graph) -> set[str | None]:
    """Their values belong to either side of a join; the serdes of the two buffers write them."""
    nodes = (node for node in graph.nodes.values() if isinstance(node, ProcessorNode))
    return {node.operation.outer_store for node in nodes if isinstance(node.operation, StreamStreamJoin)}


def _reduces(operation: Any) -> bool:
    """What a reducer makes has the type of what it is given."""
    fold = getattr(operation, "fold", operation)
    return getattr(fold, "kind", None) == "reduce"


def _with_sources(graph: Graph, key: Serde[Any] | None, value: Serde[Any] | None) -> Graph:
    def filled(part: Any) -> Any:
        return replace(
            part,
            key_serde=part.key_serde or key or Serdes.bytes,
            value_serde=part.value_serde or value or Serdes.bytes,
        )

    nodes = {
        name: filled(node) if isinstance(node, SourceNode) and not _is_internal(graph, node) else node
        for name, node in graph.nodes.items()
    }
    tables = {name: replace(filled(table), store=filled(table.store)) for name, table in graph.global_tables.items()}
    return Graph(nodes, dict(graph.stores), dict(graph.repartition_topics), tables, list(graph.copartitioned))


def _is_internal(graph: Graph, source: SourceNode) -> bool:
    return any(topic in graph.repartition_topics for topic in source.topics)


@dataclass(slots=True)
class _Resolving:
    graph: Graph
    key: Serde[Any] | None
    value: Serde[Any] | None
    types: NodeTypes | None = None
    """Of the graph as it is, if that has been asked."""

    def known(self) -> NodeTypes:
        if self.types is None:
            self.types = NodeTypes(self.graph)
        return self.types

    def fill(self, *, default: bool) -> bool:
        """One pass. Says whether it found something: then types further down may be known now."""
        types = self.known()
        found = False
        for node in list(self.graph.nodes.values()):
            if isinstance(node, SinkNode):
                found |= self._fill_sink(node, types.given[node.name], default)
            elif isinstance(node, ProcessorNode):
                found |= self._fill_stores(node, types, default)
        if found:
            self.types = None
        return found

    def _fill_sink(self, node: SinkNode, types: Types, default: bool) -> bool:
        if not _lacking(node):
            return False
        serdes = self._serdes(node, types, node.parents[0], default)
        if serdes == (node.key_serde, node.value_serde):
            return False
        self.graph.nodes[node.name] = replace(node, key_serde=serdes[0], value_serde=serdes[1])
        if node.repartition:
            for name, source in self.graph.nodes.items():
                if isinstance(source, SourceNode) and node.topic in source.topics:
                    self.graph.nodes[name] = replace(source, key_serde=serdes[0], value_serde=serdes[1])
        return True

    def _fill_stores(self, node: ProcessorNode, types: NodeTypes, default: bool) -> bool:
        operation: Any = node.operation
        given, result = types.given[node.name], types.result[node.name]
        if isinstance(operation, _RESULT_KEPT):
            value = given.value if _reduces(operation) else result.value
            return self._fill_store(operation.store, node, Types(given.key, value), default)
        if isinstance(operation, _INPUT_KEPT):
            return self._fill_store(operation.store, node, given, default)
        if isinstance(operation, StreamStreamJoin):
            return self._fill_store(operation.outer_store, node, Types(given.key, ANY), default)
        if isinstance(operation, SubscriptionSend) and operation.serdes.lacking:
            return self._fill_join(operation, node.name, types, default)
        if isinstance(operation, StreamTableJoin):
            return self._fill_store(operation.buffer, node, given, default)
        return False

    def _fill_join(self, send: SubscriptionSend, name: str, types: NodeTypes, default: bool) -> bool:
        """All nodes of a join by foreign key have the same serdes."""
        given, had = types.given[name], send.serdes
        members = [
            (node, node.operation)
            for node in self.graph.nodes.values()
            if isinstance(node, ProcessorNode)
            and isinstance(node.operation, ForeignKeyJoin)
            and node.operation.store == send.store
        ]
        (foreign,) = (node.name for node, operation in members if isinstance(operation, ForeignTableJoin))
        foreign_key = types.given[foreign].key
        stored = self.graph.stores[send.foreign_store].key_serde if foreign_key.name != "windowed" else None
        found = ForeignKeySerdes(
            had.key or self._serde(given.key, self.key, name, default),
            had.value or self._serde(given.value, self.value, name, default),
            had.foreign_key or stored or self._serde(foreign_key, self.key, foreign, default),
        )
        if found == had:
            return False
        for node, operation in members:
            self.graph.nodes[node.name] = replace(node, operation=replace(operation, serdes=found))
        return True

    def _fill_store(self, name: str | None, node: ProcessorNode, types: Types, default: bool) -> bool:
        store = None if name is None else self.graph.stores[name]
        if store is None or not _lacking(store):
            return False
        key, value = self._serdes(store, types, node.name, default)
        if store.name in _outer_stores(self.graph):
            value = None
        if (key, value) == (store.key_serde, store.value_serde):
            return False
        self.graph.stores[store.name] = replace(store, key_serde=key, value_serde=value)
        return True

    def _serdes(
        self, part: SinkNode | StoreSpec, types: Types, name: str, default: bool
    ) -> tuple[Serde[Any] | None, Serde[Any] | None]:
        return (
            part.key_serde or self._serde(types.key, self.key, name, default),
            part.value_serde or self._serde(types.value, self.value, name, default),
        )

    def _serde(self, kind: Type, fallback: Serde[Any] | None, name: str, default: bool) -> Serde[Any] | None:
        if kind.name == "windowed":
            return self._windowed(kind.element or ANY, fallback, name, default)
        if kind == ANY:
            return fallback if default else None
        # A default that writes something else would fail at the first record.
        return fallback if fallback is not None and fallback.type in (kind, ANY) else serde_for(kind)

    def _windowed(self, kind: Type, fallback: Serde[Any] | None, name: str, default: bool) -> Serde[Any] | None:
        inner = self._serde(kind, fallback, name, default)
        aggregate = self._windows_above(name)
        if inner is None or aggregate is None:
            return None
        if isinstance(aggregate, SessionAggregate):
            return Serdes.session_windowed(inner)
        return Serdes.time_windowed(inner, aggregate.windows.size_ms)

    def _windows_above(self, name: str) -> _Windowed | None:
        """The nearest: its windows are in the key."""
        names = [name]
        for each in names:
            node = self.graph.nodes[each]
            if isinstance(node, ProcessorNode) and isinstance(node.operation, _Windowed):
                return node.operation
            names += [parent for parent in node.parents if parent not in names]
        return None
