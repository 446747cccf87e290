"""What a plan is: queries, their stages, and for each node the Spark operator it becomes, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.streams.expressions import Aggregate
from ottla.streams.expressions.parts import Part
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import ProcessorNode, SinkNode, SourceNode, SubTopology
from ottla.streams.topology.stores import StoreSpec


class Mode(Enum):
    NATIVE = "N"
    PYTHON = "P"
    TASK = "T"


SPARK_OPERATOR: Final = {
    Mode.NATIVE: "Spark columns",
    Mode.PYTHON: "a Python stage",
    Mode.TASK: "transformWithState keyed by task",
}


@dataclass(frozen=True, slots=True)
class NodePlan:
    name: str
    mode: Mode
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stage:
    """Nodes that run together, from sources to sinks. Those at a seam between stages may be synthetic."""

    mode: Mode
    sub: SubTopology


@dataclass(frozen=True, slots=True)
class NativeAggregate:
    """One `groupBy().agg`, between a stage that feeds it and one that takes its results."""

    node: ProcessorNode
    aggregate: Aggregate
    store: StoreSpec
    source: SourceNode | None
    """How its input is to be decoded, when that comes as bytes; None: it comes as columns."""
    repartitioned: str | None
    """The repartition topic that it stands behind, which is not needed."""
    parts: tuple[Part, ...] = ()
    """Of results, which come to Spark to be merged; none: it takes records."""
    in_source: bool = False
    """Parts are made in the tasks that read, with all that is done before."""

    @property
    def windowed(self) -> bool:
        return isinstance(self.node.operation, op.WindowAggregate)

    @property
    def kept_in_source(self) -> bool:
        """Windows are whole in the tasks that read, which keep them while they are open."""
        return self.in_source and self.windowed and self.repartitioned is None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One Spark query. `first`, then the aggregate if there is one, then what follows it."""

    number: int
    members: tuple[int, ...]
    first: Stage
    aggregate: NativeAggregate | None
    tail: Stage | None
    nodes: tuple[NodePlan, ...]

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        return tuple(node for node in self.first.sub.nodes if isinstance(node, SourceNode))

    @property
    def keeps_state(self) -> bool:
        return self.aggregate is not None or self.first.mode is Mode.TASK

    @property
    def written_internally(self) -> tuple[str, ...]:
        """Repartition topics, as the topology names them."""
        stages = [self.first] if self.tail is None else [self.first, self.tail]
        nodes = [node for stage in stages for node in stage.sub.nodes]
        return tuple(node.topic for node in nodes if isinstance(node, SinkNode) and node.repartition and node.topic)

    @property
    def stores(self) -> tuple[StoreSpec, ...]:
        return self.first.sub.stores if self.aggregate is None else (self.aggregate.store,)


@dataclass(frozen=True, slots=True)
class Plan:
    queries: tuple[QueryPlan, ...]

    @property
    def unneeded_topics(self) -> frozenset[str]:
        """Repartition topics that a query does without."""
        found = [query.aggregate.repartitioned for query in self.queries if query.aggregate is not None]
        return frozenset(topic for topic in found if topic is not None)

    def text(self) -> str:
        return "\n".join(line for query in self.queries for line in _query_lines(query))


def _query_lines(query: QueryPlan) -> list[str]:
    members = " and ".join(str(number) for number in query.members)
    lines = [f"Query {query.name} (sub-topology {members})"]
    width = max(len(node.name) for node in query.nodes)
    for node in query.nodes:
        lines.append(f"  {node.mode.value} {node.name:<{width}}  {node.operator}: {node.reason}")
    if query.aggregate is not None and query.aggregate.repartitioned is not None:
        lines.append(f"  Spark's shuffle stands in for the topic {query.aggregate.repartitioned}")
    return lines


def in_order(queries: Sequence[QueryPlan]) -> list[tuple[QueryPlan, ...]]:
    """Those that write a repartition topic before those that read it. Queries that feed each other, as both sides of a
    join by foreign key do, stand together."""
    left = list(queries)
    done: list[tuple[QueryPlan, ...]] = []
    while left:
        # Whoever waits for nobody but those who wait for him as well; somebody always does.
        chosen = next(circle for each in left if (circle := _upstream(each, left)) and _all_wait(circle, left))
        done.append(tuple(each for each in left if each in chosen))
        left = [each for each in left if each not in chosen]
    return done


def _upstream(query: QueryPlan, among: Sequence[QueryPlan]) -> list[QueryPlan]:
    """Itself, and whoever feeds it, also by way of others."""
    found = [query]
    for reader in found:
        found += [each for each in among if each not in found and _feeds(each, reader)]
    return found


def _all_wait(circle: Sequence[QueryPlan], among: Sequence[QueryPlan]) -> bool:
    return all(len(_upstream(each, among)) == len(circle) for each in circle)


def _feeds(writer: QueryPlan, reader: QueryPlan) -> bool:
    read = {topic for source in reader.sources for topic in source.topics}
    return any(topic in read for topic in writer.written_internally)
