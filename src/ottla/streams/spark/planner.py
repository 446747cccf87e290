"""Which Spark operator each node of a topology becomes, and why. Pure: no Spark here, only data in and data out.

A sub-topology becomes one query in one of three ways (`Mode`). A native aggregate behind a repartition takes the
sub-topology in front of it into its own query: Spark's shuffle then stands in for the repartition topic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from ottla.streams import operations as op
from ottla.streams import serdes
from ottla.streams.errors import AGGREGATE_RESULT
from ottla.streams.expressions import Aggregate, Expression, ExpressionError, count
from ottla.streams.graph import Node, ProcessorNode, SinkNode, SourceNode, SubTopology
from ottla.streams.options import TopologyError
from ottla.streams.serdes import Serdes
from ottla.streams.spark.counting_source import REASON, source_can_count
from ottla.streams.spark.partition_time import needs_partition_time
from ottla.streams.stores import StoreSpec
from ottla.streams.types import Type, windowed
from ottla.streams.windows import Emit

AGGREGATE_INPUT: Final = "ottla-aggregate-input"
"""Stands for a topic that is never written: what a Python stage hands to a native aggregate."""


class Mode(Enum):
    NATIVE = "N"
    PYTHON = "P"
    TASK = "T"


SPARK_OPERATOR: Final = {
    Mode.NATIVE: "Spark columns",
    Mode.PYTHON: "mapInArrow",
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
    counted_by_source: bool = False
    """The source counts by key and window itself, and hands on counts."""

    @property
    def windowed(self) -> bool:
        return isinstance(self.node.operation, op.WindowAggregate)


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


def plan(subs: Sequence[SubTopology], python: str | None = None, no_windows: str | None = None) -> Plan:
    """Serdes have to be filled in already (`Topology.with_default_serdes`). `python` is a reason why records have to be
    read by Python, if there is one, `no_windows` why windows cannot be native."""
    aggregates = {
        sub.number: found
        for sub in subs
        if (found := _native_aggregate(sub, python)) is not None and not (no_windows and found_windows(found))
    }
    feeders = {
        number: feeder
        for number, found in aggregates.items()
        if (feeder := _feeder(subs, found, aggregates)) is not None
    }
    absorbed = {feeder.number for feeder in feeders.values()}
    queries = []
    for sub in subs:
        if sub.number in absorbed:
            continue
        if sub.number in feeders:
            queries.append(_fused(feeders[sub.number], sub, aggregates[sub.number]))
        elif sub.number in aggregates:
            queries.append(_aggregated(sub, aggregates[sub.number]))
        else:
            queries.append(_plain(sub, python, no_windows))
    for query in queries:
        _check_columns(query)
    return Plan(tuple(queries))


def _check_columns(query: QueryPlan) -> None:
    """Raises TopologyError for a `spark(...)` that would have to run in Python."""
    reasons = {node.name: node.reason for node in query.nodes}
    for stage in (query.first, query.tail):
        if stage is None or stage.mode is Mode.NATIVE:
            continue
        for node in stage.sub.nodes:
            if any(isinstance(each, (Expression, Aggregate)) and each.needs_spark for each in _functions(node)):
                raise TopologyError(
                    f"{node.name} uses spark(...), which only columns of Spark can compute, but has to run in Python: "
                    f"{reasons.get(node.name, 'it stands behind a Python function')}. "
                    "Say one of the two in another way, or put a topic (repartition) between them"
                )


def in_order(queries: Sequence[QueryPlan]) -> list[QueryPlan]:
    """Those that write a repartition topic before those that read it."""
    left = list(queries)
    done: list[QueryPlan] = []
    while left:
        ready = [each for each in left if not any(_feeds(other, each) for other in left if other is not each)]
        # A circle of topics has no beginning: any order will do.
        chosen = ready or left[:1]
        done += chosen
        left = [each for each in left if each not in chosen]
    return done


def _feeds(writer: QueryPlan, reader: QueryPlan) -> bool:
    read = {topic for source in reader.sources for topic in source.topics}
    return any(topic in read for topic in writer.written_internally)


# ---- sub-topologies without a native aggregate


def _plain(sub: SubTopology, python: str | None, no_windows: str | None) -> QueryPlan:
    stateful = _why_stateful(sub)
    if stateful is not None:
        if no_windows is not None and (found := _native_aggregate(sub, python)) is not None:
            stateful[found.node.name] = no_windows
        nodes = tuple(
            _node_plan(node, Mode.TASK, stateful.get(node.name) or f"in the same task as {next(iter(stateful))}")
            for node in sub.nodes
        )
        return QueryPlan(sub.number, (sub.number,), Stage(Mode.TASK, sub), None, None, nodes)
    mode, nodes = _stateless(sub, python)
    return QueryPlan(sub.number, (sub.number,), Stage(mode, sub), None, None, nodes)


def _why_stateful(sub: SubTopology) -> dict[str, str] | None:
    """Nodes that need a task, each with a reason; None when there are none."""
    reasons = {}
    for node in sub.nodes:
        if isinstance(node, SourceNode) and needs_partition_time(node.extractor):
            reasons[node.name] = "its timestamps depend on those of records before, which a task keeps"
        if not isinstance(node, ProcessorNode):
            continue
        if isinstance(node.operation, op.UserProcessor):
            reasons[node.name] = "a processor may schedule punctuators and see the stream's time"
        elif node.stores:
            reasons[node.name] = _why_not_native(node, sub) or f"it keeps state in {', '.join(node.stores)}"
    return reasons or None


def _why_not_native(node: ProcessorNode, sub: SubTopology) -> str | None:
    match node.operation:
        case op.SessionAggregate():
            return "Spark's sessions give no tombstones and test lateness otherwise than Kafka"
        case op.WindowAggregate(emit=Emit.ON_CLOSE):
            return "results go out when a window closes, which each task decides by its own stream time"
        case op.StreamAggregate(fold=fold) | op.WindowAggregate(fold=fold) if _as_native(fold) is None:
            return f"its {fold.kind} is a Python function"
        case op.StreamAggregate() | op.WindowAggregate():
            others = [each.name for each in sub.nodes if _is_stateful(each) and each is not node]
            return f"it shares its task with {others[0]}" if others else "what is around it cannot be one native plan"
        case op.StreamStreamJoin() | op.BufferSide():
            return "Spark's own joins drop late records that Kafka joins"
        case op.StreamTableJoin():
            return "the table has to be read as of the stream's record"
        case op.Suppress():
            return "windows close by the stream time of the task"
        case op.TableAggregate():
            return "old values have to be subtracted"
    return None


def _is_stateful(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and (bool(node.stores) or isinstance(node.operation, op.UserProcessor))


def _stateless(sub: SubTopology, python: str | None) -> tuple[Mode, tuple[NodePlan, ...]]:
    """Native when all of it can be; one Python function makes a Python stage of the whole."""
    obstacles = _obstacles(sub, python)
    for node in sub.nodes:
        if isinstance(node, SinkNode) and isinstance(node.key_serde, _WINDOWED_SERDES):
            obstacles.setdefault(node.name, "its records go to the partition of the key inside the windowed key")
    if not obstacles:
        return Mode.NATIVE, tuple(_node_plan(node, Mode.NATIVE, _native_reason(node)) for node in sub.nodes)
    first = next(iter(obstacles))
    nodes = tuple(
        _node_plan(node, Mode.PYTHON, obstacles.get(node.name) or f"in one stage with {first}") for node in sub.nodes
    )
    return Mode.PYTHON, nodes


def _node_plan(node: Node, mode: Mode, reason: str) -> NodePlan:
    operator = SPARK_OPERATOR[mode]
    if isinstance(node, SourceNode):
        operator = f"source, then {operator}"
    elif isinstance(node, SinkNode):
        operator = f"{operator}, then the transactional sink"
    return NodePlan(node.name, mode, operator, reason)


def _native_reason(node: Node) -> str:
    match node:
        case SourceNode():
            return "its serdes have column types"
        case SinkNode():
            return "its serdes have column types"
    return "column expressions only" if _functions(node) else "nothing to compute"


# ---- what can be columns


Types = Mapping[str, tuple[Type, Type]]
"""Of key and value behind each node."""


def _obstacles(sub: SubTopology, python: str | None) -> dict[str, str]:
    """Nodes that cannot be columns, each with the reason. Without obstacles the whole is native."""
    found: dict[str, str] = {}
    if python is not None:
        found = {node.name: python for node in sub.nodes if isinstance(node, SourceNode)}
    try:
        types_behind(sub.nodes)
    except NotNative as error:
        found.setdefault(error.node, error.reason)
    for node in sub.nodes:
        reason = _obstacle(node)
        if reason is not None:
            found.setdefault(node.name, reason)
    shape = _shape_obstacle(sub.nodes)
    if shape is not None:
        found.setdefault(*shape)
    return {node.name: found[node.name] for node in sub.nodes if node.name in found}


class NotNative(Exception):
    """Why a node cannot be a column."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"{node}: {reason}")
        self.node = node
        self.reason = reason


def _obstacle(node: Node) -> str | None:
    match node:
        case SourceNode(changes=True) | SinkNode(changes=True):
            return "old and new values travel together"
        case SourceNode(extractor=extractor) if extractor.function is not None:
            return "its timestamps come from a function"
        case SourceNode(extractor=extractor) if extractor.wall_clock:
            return "its timestamps are those of the wall clock"
        case SinkNode(partitioner=partitioner) if partitioner is not None:
            return "its partitions are chosen by a Python function"
        case ProcessorNode(operation=op.Peek() | op.FlatMap()):
            return "it calls a Python function"
        case ProcessorNode(operation=op.StreamGlobalJoin()):
            return "the table's replica lies in the Python worker"
    if any(not isinstance(function, Expression) for function in _functions(node)):
        return "it calls a Python function"
    if isinstance(node, ProcessorNode) and not isinstance(node.operation, _NATIVE_OPERATIONS):
        return "there is no column expression for it"
    return None


_NATIVE_OPERATIONS: Final = (
    op.PassThrough,
    op.Filter,
    op.MapValues,
    op.MapPairs,
    op.FlatMapValues,
    op.SelectKey,
    op.Branch,
    op.DropNullKeys,
    op.TableToStream,
    op.TableMapValues,
)


def _functions(node: Node) -> list[object]:
    match node:
        case SinkNode(chooser=chooser):
            return [] if chooser is None else [chooser]
        case SourceNode():
            return []
    match node.operation:
        case op.Filter(predicate=function) | op.TableFilter(predicate=function):
            return [function]
        case op.MapValues(function=function) | op.FlatMapValues(function=function) | op.SelectKey(function=function):
            return [function]
        case op.TableMapValues(function=function):
            return [function]
        case op.MapPairs(function=function, key=key, value=value):
            return [each for each in (function, key, value) if each is not None]
        case op.Branch(predicates=predicates):
            return list(predicates)
        case op.TableToStream(select_key=function):
            return [] if function is None else [function]
        case op.StreamAggregate(fold=fold) | op.WindowAggregate(fold=fold) if fold.native is not None:
            return [fold.native]
    return []


def uses_headers(nodes: Sequence[Node]) -> bool:
    """Whether an expression of theirs reads the headers of records."""
    functions = [function for node in nodes for function in _functions(node)]
    return any("headers" in function.leaves() for function in functions if isinstance(function, Expression))


def unread_fields(nodes: Sequence[Node], aggregate: NativeAggregate) -> list[str]:
    """What of `key` and `value` no node needs on the way to the aggregate, so that the source may leave it out. What
    might turn out to be unreadable has to be looked at, needed or not."""
    functions = [*(each for node in nodes for each in _functions(node)), *aggregate.aggregate.expressions()]
    expressions = [each for each in functions if isinstance(each, Expression)]
    if any(each.needs_spark for each in expressions):
        return []  # it may name any column
    read = {leaf for each in expressions for leaf in each.leaves()}
    needed = {
        "key": "key" in read or _keeps_key(nodes),
        "value": "value" in read or not aggregate.windowed,  # where null values do not count
    }
    (source,) = [node for node in nodes if isinstance(node, SourceNode)]
    serde_of = {"key": source.key_serde, "value": source.value_serde}
    certain = (serdes.StringSerde, serdes.BytesSerde)
    return [name for name, wanted in needed.items() if not wanted and isinstance(serde_of[name], certain)]


def _keeps_key(nodes: Sequence[Node]) -> bool:
    """Whether the key of the record matters before, or unless, it gets another one."""
    for node in nodes:
        match node:
            case ProcessorNode(operation=op.DropNullKeys()):
                return True
            case ProcessorNode(operation=op.SelectKey()):
                return False
            case ProcessorNode(operation=op.MapPairs(key=key)) if key is not None:
                return False
    return True


def _shape_obstacle(nodes: Sequence[Node]) -> tuple[str, str] | None:
    """Columns branch at one place only, and rows multiply before it: a plan that branches earlier reads twice."""
    by_name = {node.name: node for node in nodes}
    children = {name: [node for node in nodes if name in node.parents] for name in by_name}
    for node in nodes:
        if not isinstance(node, ProcessorNode):
            continue
        if isinstance(node.operation, op.FlatMapValues) and _branches_above(node, by_name, children):
            return node.name, "it multiplies records behind a branch"
        if len(node.parents) > 1 and _branches_above(node, by_name, children):
            return node.name, "branches meet again here"
    if sum(isinstance(node, SourceNode) for node in nodes) > 1:
        return next(node.name for node in nodes if isinstance(node, SourceNode)), "several sources are read together"
    return None


def _branches_above(node: Node, by_name: Mapping[str, Node], children: Mapping[str, Sequence[Node]]) -> bool:
    todo = list(node.parents)
    while todo:
        name = todo.pop()
        if len(children[name]) > 1:
            return True
        todo += by_name[name].parents
    return False


def types_behind(nodes: Sequence[Node], seeds: Types | None = None) -> dict[str, tuple[Type, Type]]:
    """Types of key and value that each node hands on. Raises NotNative where a type is not known or does not fit."""
    found: dict[str, tuple[Type, Type]] = dict(seeds or {})
    for node in nodes:
        if node.name in found:
            continue
        if isinstance(node, SourceNode):
            found[node.name] = _serde_types(node)
            continue
        inputs = {found[parent] for parent in node.parents if parent in found}
        if len(inputs) != 1:
            raise NotNative(node.name, "what reaches it has different types")
        (before,) = inputs
        if isinstance(node, SinkNode):
            _check_sink(node, before)
            continue
        try:
            found[node.name] = _types_after(node.operation, *before)
        except ExpressionError as error:
            raise NotNative(node.name, str(error)) from error
    return found


def _serde_types(node: SourceNode | SinkNode) -> tuple[Type, Type]:
    types = []
    for part, serde in (("keys", node.key_serde), ("values", node.value_serde)):
        if serde is not None and not _is_native(serde):
            raise NotNative(node.name, f"the serde of its {part} is Python code")
        types.append(Serdes.bytes.type if serde is None else serde.type)
    return types[0], types[1]


_NATIVE_SERDES: Final = (
    serdes.StringSerde,
    serdes.BytesSerde,
    serdes.IntSerde,
    serdes.LongSerde,
    serdes.DoubleSerde,
    serdes.BooleanSerde,
    serdes.JsonSerde,
)


_WINDOWED_SERDES: Final = (serdes.TimeWindowedSerde, serdes.SessionWindowedSerde)


def _is_native(serde: serdes.Serde[Any] | None) -> bool:
    """Whether there are columns for it: exactly these classes, since a subclass may read and write otherwise."""
    if isinstance(serde, _WINDOWED_SERDES):
        return _is_native(serde.inner)
    return type(serde) in _NATIVE_SERDES


def _check_sink(node: SinkNode, before: tuple[Type, Type]) -> None:
    wanted = _serde_types(node)
    for part, have, want in zip(("key", "value"), before, wanted, strict=True):
        if not _fits(have, want):
            raise NotNative(node.name, f"a {part} of type {have} is to be written as {want}")
    if isinstance(node.chooser, Expression):
        node.chooser.bind({"key": before[0], "value": before[1]})


def _fits(have: Type, want: Type) -> bool:
    """Whether the sink's serde can write such a column. JSON takes everything but bytes."""
    if have.name == want.name == "windowed":
        return True
    if want.name in ("any", "struct", "array"):
        return have.name not in ("binary", "windowed")
    return have == want or have.name == "null" or (have.name == "int" and want.name == "long")


def _types_after(operation: op.Operation, key: Type, value: Type) -> tuple[Type, Type]:
    types = {"key": key, "value": value}

    def typed(function: object) -> Type:
        if not isinstance(function, Expression):
            raise ExpressionError("it calls a Python function")
        return function.bind(types).type

    match operation:
        case op.Filter(predicate=function):
            typed(function)
        case op.Branch(predicates=predicates):
            for each in predicates:
                typed(each)
        case op.MapValues(function=function) | op.TableMapValues(function=function):
            return key, typed(function)
        case op.FlatMapValues(function=function):
            several = typed(function)
            if several.name != "array" or several.element is None:
                raise ExpressionError(f"flat_map_values needs an array, not {several}")
            return key, several.element
        case op.SelectKey(function=function):
            return typed(function), value
        case op.MapPairs(function=None, key=new_key, value=new_value):
            return (
                key if new_key is None else typed(new_key),
                value if new_value is None else typed(new_value),
            )
        case op.TableToStream(select_key=function) if function is not None:
            return typed(function), value
        case op.PassThrough() | op.DropNullKeys() | op.TableToStream():
            pass
        case _:
            raise ExpressionError("there is no column expression for it")
    return key, value


# ---- native aggregates


@dataclass(frozen=True, slots=True)
class _Found:
    """A native aggregate and its surroundings inside its sub-topology."""

    node: ProcessorNode
    aggregate: Aggregate
    store: StoreSpec
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    python: str | None


def _as_native(fold: op.Fold) -> Aggregate | None:
    if fold.native is not None:
        return fold.native
    return count() if fold.kind == "count" else None


def _native_aggregate(sub: SubTopology, python: str | None) -> _Found | None:
    stateful = [node for node in sub.nodes if _is_stateful(node)]
    if len(stateful) != 1 or not isinstance(stateful[0], ProcessorNode):
        return None
    node = stateful[0]
    match node.operation:
        case (
            op.StreamAggregate(fold=fold, send_old=False)
            | op.WindowAggregate(fold=fold, send_old=False, emit=Emit.ON_UPDATE)
        ):
            aggregate = _as_native(fold)
        case _:
            return None
    if aggregate is None or len(sub.stores) != 1:
        return None
    if any(isinstance(each, SourceNode) and needs_partition_time(each.extractor) for each in sub.nodes):
        return None
    before, after = _around(sub, node)
    if len(before) + len(after) + 1 != len(sub.nodes):
        return None  # a branch in front of it goes elsewhere: one plan would read the source twice
    if uses_headers(after):
        return None  # they are known to the sink only
    found = _Found(node, aggregate, sub.stores[0], before, after, python)
    return found if _can_be_native(found) else None


def _around(sub: SubTopology, node: ProcessorNode) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    above, todo = set(), list(node.parents)
    by_name = {each.name: each for each in sub.nodes}
    while todo:
        name = todo.pop()
        above.add(name)
        todo += by_name[name].parents
    below = {node.name}
    for each in sub.nodes:
        if any(parent in below for parent in each.parents):
            below.add(each.name)
    below.discard(node.name)
    return (
        tuple(each for each in sub.nodes if each.name in above),
        tuple(each for each in sub.nodes if each.name in below),
    )


def _can_be_native(found: _Found) -> bool:
    """Keys have to be columns; a windowed aggregate needs one order of its input, which only one source has."""
    sources = [node for node in found.before if isinstance(node, SourceNode)]
    if not _is_native(found.store.key_serde) or not _is_native(found.store.value_serde) or not found.store.timestamped:
        return False
    if len(sources) != 1 or (found_windows(found) and (len(sources[0].topics) != 1 or sources[0].pattern)):
        return False
    if found.aggregate.needs_spark:
        return not _obstacles_before(found)
    if not _obstacles_before(found):
        return True
    # Behind a Python function the values have no type: counting is all that can be done with them.
    return found.aggregate.kind == "count" and found.aggregate.expression is None


def found_windows(found: "_Found") -> bool:
    return isinstance(found.node.operation, op.WindowAggregate)


def _obstacles_before(found: _Found) -> dict[str, str]:
    sub = SubTopology(0, found.before, ())
    source = found.before[0]
    internal = len(found.before) == 1 and isinstance(source, SourceNode) and source.name.endswith("-repartition-source")
    # What the application wrote itself can be read.
    obstacles = _obstacles(sub, None if internal else found.python)
    if not obstacles:
        types = types_behind(found.before)
        key, value = types[found.node.parents[0]]
        try:
            found.aggregate.bind({"key": key, "value": value})
        except ExpressionError as error:
            obstacles[found.node.name] = str(error)
    return obstacles


def _feeder(subs: Sequence[SubTopology], found: _Found, aggregates: Mapping[int, _Found]) -> SubTopology | None:
    """The stateless sub-topology that writes the repartition topic this aggregate reads, and nothing else."""
    source = found.before[0]
    if len(found.before) != 1 or not isinstance(source, SourceNode) or len(source.topics) != 1:
        return None
    if not _is_native(source.key_serde):
        return None
    (topic,) = source.topics
    writers = [sub for sub in subs if any(_writes_repartition(node, topic) for node in sub.nodes)]
    if len(writers) != 1:
        return None
    (writer,) = writers
    sinks = [node for node in writer.nodes if isinstance(node, SinkNode)]
    sources = [node for node in writer.nodes if isinstance(node, SourceNode)]
    several_inputs = len(sources) != 1 or len(sources[0].topics) != 1 or sources[0].pattern is not None
    if len(sinks) != 1 or _why_stateful(writer) or writer.number in aggregates:
        return None
    if found_windows(found) and several_inputs:
        return None
    return writer


def _writes_repartition(node: Node, topic: str) -> bool:
    return isinstance(node, SinkNode) and node.repartition and node.topic == topic


def _fused(writer: SubTopology, sub: SubTopology, found: _Found) -> QueryPlan:
    source = found.before[0]
    assert isinstance(source, SourceNode)
    mode, first_nodes = _stateless(writer, found.python)
    # A count looks at no value: those of a serde that Spark cannot read stay bytes.
    readable = source if _is_native(source.value_serde) else replace(source, value_serde=Serdes.bytes)
    native = NativeAggregate(found.node, found.aggregate, found.store, readable, source.topics[0])
    tail, tail_nodes = _tail(found)
    middle = (
        NodePlan(source.name, Mode.NATIVE, "Spark's shuffle", "a native aggregate follows"),
        _aggregate_plan(found),
    )
    return QueryPlan(
        writer.number,
        (writer.number, sub.number),
        Stage(mode, writer),
        native,
        tail,
        (*first_nodes, *middle, *tail_nodes),
    )


def _aggregated(sub: SubTopology, found: _Found) -> QueryPlan:
    obstacles = _obstacles_before(found)
    if obstacles:
        first = Stage(Mode.PYTHON, _counted_input(sub.number, found))
        source: SourceNode | None = SourceNode(
            AGGREGATE_INPUT, (AGGREGATE_INPUT,), key_serde=found.store.key_serde, value_serde=Serdes.bytes
        )
        first_nodes = tuple(
            _node_plan(node, Mode.PYTHON, obstacles.get(node.name) or f"in one stage with {next(iter(obstacles))}")
            for node in found.before
        )
    else:
        first = Stage(Mode.NATIVE, SubTopology(sub.number, found.before, ()))
        source = None
        first_nodes = tuple(_node_plan(node, Mode.NATIVE, _native_reason(node)) for node in found.before)
    native = NativeAggregate(found.node, found.aggregate, found.store, source, None)
    if not obstacles and source_can_count(found.before, found.node, found.aggregate, found.store):
        native = replace(native, counted_by_source=True)
        counting = (*found.before, found.node)
        first_nodes = tuple(NodePlan(node.name, Mode.NATIVE, "source of counts", REASON) for node in counting)
    else:
        first_nodes = (*first_nodes, _aggregate_plan(found))
    tail, tail_nodes = _tail(found)
    return QueryPlan(sub.number, (sub.number,), first, native, tail, (*first_nodes, *tail_nodes))


def _counted_input(number: int, found: _Found) -> SubTopology:
    """The nodes before a count, and a sink that stands for it. Only the key goes there."""
    blank = ProcessorNode(f"{AGGREGATE_INPUT}-blank", op.MapValues(_blank), found.node.parents)
    sink = SinkNode(
        AGGREGATE_INPUT, AGGREGATE_INPUT, (blank.name,), key_serde=found.store.key_serde, value_serde=Serdes.bytes
    )
    return SubTopology(number, (*found.before, blank, sink), ())


def _blank(value: object) -> bytes | None:
    return None if value is None else b""


def _tail(found: _Found) -> tuple[Stage | None, tuple[NodePlan, ...]]:
    if not found.after:
        return None, ()
    key, value = result_types(found.store, found.node)
    nodes = (replace_source(found), *found.after)
    sub = SubTopology(0, nodes, ())
    obstacles = _tail_obstacles(found, key, value)
    if not obstacles:
        plans = tuple(_node_plan(node, Mode.NATIVE, _native_reason(node)) for node in found.after)
        return Stage(Mode.NATIVE, sub), plans
    plans = tuple(
        _node_plan(node, Mode.PYTHON, obstacles.get(node.name) or f"in one stage with {next(iter(obstacles))}")
        for node in found.after
    )
    return Stage(Mode.PYTHON, _python_tail(found)), plans


def _tail_obstacles(found: _Found, key: Type, value: Type) -> dict[str, str]:
    sub = SubTopology(0, found.after, ())
    obstacles: dict[str, str] = {}
    try:
        types_behind(found.after, {found.node.name: (key, value)})
    except NotNative as error:
        obstacles[error.node] = error.reason
    for node in found.after:
        reason = _obstacle(node)
        if reason is not None:
            obstacles.setdefault(node.name, reason)
    stand_in = SourceNode(found.node.name, (AGGREGATE_RESULT,))
    shape = _shape_obstacle((stand_in, *found.after))
    if shape is not None:
        obstacles.setdefault(*shape)
    return {node.name: obstacles[node.name] for node in sub.nodes if node.name in obstacles}


def replace_source(found: _Found) -> SourceNode:
    """Stands where the aggregate stood, so that what follows it is a whole from source to sinks."""
    return SourceNode(found.node.name, (AGGREGATE_RESULT,))


def _python_tail(found: _Found) -> SubTopology:
    """What follows the aggregate as a topology of its own: results come in as records and become changes again."""
    key_serde = found.store.key_serde
    operation = found.node.operation
    if isinstance(operation, op.WindowAggregate) and key_serde is not None:
        key_serde = serdes.TimeWindowedSerde(key_serde, operation.windows.size_ms)
    source = SourceNode(AGGREGATE_RESULT, (AGGREGATE_RESULT,), key_serde=key_serde, value_serde=found.store.value_serde)
    changes = ProcessorNode(found.node.name, op.TableSource(None), (source.name,))
    return SubTopology(0, (source, changes, *found.after), ())


def result_types(store: StoreSpec, node: ProcessorNode) -> tuple[Type, Type]:
    assert store.key_serde is not None and store.value_serde is not None
    key, value = store.key_serde.type, store.value_serde.type
    return (windowed(key) if isinstance(node.operation, op.WindowAggregate) else key), value


def _aggregate_plan(found: _Found) -> NodePlan:
    operation = found.node.operation
    windows = ""
    if isinstance(operation, op.WindowAggregate):
        windows = f", window of {operation.windows.size_ms} ms"
    return NodePlan(
        found.node.name,
        Mode.NATIVE,
        f"groupBy(key{windows}).agg({found.aggregate!r})",
        "an aggregate that Spark has itself, one update per key and batch",
    )
