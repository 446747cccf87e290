"""Aggregates that Spark computes itself: where they are found, and the query that is made around each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ottla.serdes.types import Type, windowed
from ottla.streams.errors import AGGREGATE_RESULT
from ottla.streams.expressions import Aggregate, BoundAggregate, ExpressionError
from ottla.streams.expressions.parts import parts_of, with_leaves
from ottla.streams.plan.columns import (
    NotNative,
    has_columns,
    obstacle,
    obstacles_of,
    reads_columns,
    shape_obstacle,
    types_behind,
    uses_headers,
)
from ottla.streams.plan.extractors import needs_partition_time
from ottla.streams.plan.in_source import last_of, why_not_in_source
from ottla.streams.plan.plain import as_native, is_stateful, native_reason, node_plan, stateless, why_stateful
from ottla.streams.plan.plan import Mode, NativeAggregate, NodePlan, QueryPlan, Stage
from ottla.streams.serdes import Serdes, TimeWindowedSerde
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import Node, ProcessorNode, SinkNode, SourceNode, SubTopology
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.windows import Emit

AGGREGATE_INPUT: Final = "ottla-aggregate-input"
"""Stands for a topic that is never written: what a Python stage hands to a native aggregate."""

NATIVE: Final = "an aggregate that Spark has itself, one update per key and batch"
IN_SOURCE: Final = "Arrow columns in the reading tasks"
MERGED: Final = "the reading tasks aggregate what they read; Spark merges a row per key and task, one update per batch"
WHOLE: Final = "the reading tasks aggregate what they read and keep the open windows, so that records need not travel"


@dataclass(frozen=True, slots=True)
class FoundAggregate:
    """A native aggregate and its surroundings inside its sub-topology."""

    node: ProcessorNode
    aggregate: Aggregate
    store: StoreSpec
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    python: str | None


def native_aggregate(sub: SubTopology, python: str | None) -> FoundAggregate | None:
    stateful = [node for node in sub.nodes if is_stateful(node)]
    if len(stateful) != 1 or not isinstance(stateful[0], ProcessorNode):
        return None
    node = stateful[0]
    match node.operation:
        case (
            op.StreamAggregate(fold=fold, send_old=False)
            | op.WindowAggregate(fold=fold, send_old=False, emit=Emit.ON_UPDATE)
        ):
            aggregate = as_native(fold)
        case _:
            return None
    # Versions are not cached either.
    if aggregate is None or len(sub.stores) != 1 or not sub.stores[0].caching:
        return None
    if any(isinstance(each, SourceNode) and needs_partition_time(each.extractor) for each in sub.nodes):
        return None
    before, after = _around(sub, node)
    if len(before) + len(after) + 1 != len(sub.nodes):
        return None  # a branch in front of it goes elsewhere: one plan would read the source twice
    if uses_headers(after):
        return None  # they are known to the sink only
    found = FoundAggregate(node, aggregate, sub.stores[0], before, after, python)
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


def _can_be_native(found: FoundAggregate) -> bool:
    """Keys have to be columns; a windowed aggregate needs one order of its input, which only one source has."""
    sources = [node for node in found.before if isinstance(node, SourceNode)]
    if (
        not has_columns(found.store.key_serde)
        or not has_columns(found.store.value_serde)
        or not found.store.timestamped
    ):
        return False
    if len(sources) != 1 or (is_windowed(found) and (len(sources[0].topics) != 1 or sources[0].pattern)):
        return False
    if found.aggregate.needs_spark:
        return not _obstacles_before(found)
    if not _obstacles_before(found):
        return True
    # Behind a Python function the values have no type: counting is all that can be done with them.
    return found.aggregate.counts_records


def is_windowed(found: "FoundAggregate") -> bool:
    return isinstance(found.node.operation, op.WindowAggregate)


def _obstacles_before(found: FoundAggregate) -> dict[str, str]:
    sub = SubTopology(0, found.before, ())
    source = found.before[0]
    internal = len(found.before) == 1 and isinstance(source, SourceNode) and source.name.endswith("-repartition-source")
    # What the application wrote itself can be read.
    obstacles = obstacles_of(sub, None if internal else found.python)
    if not obstacles:
        types = types_behind(found.before)
        key, value = types[found.node.parents[0]]
        try:
            reason = _why_not_column(found.aggregate.bind({"key": key, "value": value}))
        except ExpressionError as error:
            reason = str(error)
        if reason is not None:
            obstacles[found.node.name] = reason
    return obstacles


def _why_not_column(aggregate: BoundAggregate) -> str | None:
    parts = () if aggregate.parts is None else aggregate.parts.values()
    reasons = [
        *(argument.why_not_column() for argument in aggregate.arguments),
        *map(_why_not_column, parts),
    ]
    return next((reason for reason in reasons if reason is not None), None)


def feeder_of(
    subs: Sequence[SubTopology], found: FoundAggregate, aggregates: Mapping[int, FoundAggregate]
) -> SubTopology | None:
    """The stateless sub-topology that writes the repartition topic this aggregate reads, and nothing else."""
    source = found.before[0]
    if len(found.before) != 1 or not isinstance(source, SourceNode) or len(source.topics) != 1:
        return None
    if not has_columns(source.key_serde):
        return None
    (topic,) = source.topics
    writers = [sub for sub in subs if any(_writes_repartition(node, topic) for node in sub.nodes)]
    if len(writers) != 1:
        return None
    (writer,) = writers
    sinks = [node for node in writer.nodes if isinstance(node, SinkNode)]
    sources = [node for node in writer.nodes if isinstance(node, SourceNode)]
    several_inputs = len(sources) != 1 or len(sources[0].topics) != 1 or sources[0].pattern is not None
    if len(sinks) != 1 or why_stateful(writer) or writer.number in aggregates:
        return None
    if is_windowed(found) and several_inputs:
        return None
    return writer


def _writes_repartition(node: Node, topic: str) -> bool:
    return isinstance(node, SinkNode) and node.repartition and node.topic == topic


def fused(writer: SubTopology, sub: SubTopology, found: FoundAggregate, *, dead_letters: bool) -> QueryPlan:
    source = found.before[0]
    assert isinstance(source, SourceNode)
    mode, first_nodes = stateless(writer, found.python)
    # A count looks at no value: those of a serde that Spark cannot read stay bytes.
    readable = source if reads_columns(source.value_serde) else replace(source, value_serde=Serdes.bytes)
    first = Stage(mode, writer)
    native = NativeAggregate(found.node, found.aggregate, found.store, readable, source.topics[0])
    native, first_nodes, aggregate = _begun(found, native, first, first_nodes, dead_letters=dead_letters)
    tail, tail_nodes = _tail(found)
    middle = (NodePlan(source.name, Mode.NATIVE, "Spark's shuffle", "a native aggregate follows"), aggregate)
    members = (writer.number, sub.number)
    return QueryPlan(writer.number, members, first, native, tail, (*first_nodes, *middle, *tail_nodes))


def aggregated(sub: SubTopology, found: FoundAggregate, *, dead_letters: bool) -> QueryPlan:
    obstacles = _obstacles_before(found)
    if obstacles:
        first = Stage(Mode.PYTHON, _counted_input(sub.number, found))
        source: SourceNode | None = SourceNode(
            AGGREGATE_INPUT, (AGGREGATE_INPUT,), key_serde=found.store.key_serde, value_serde=Serdes.bytes
        )
        first_nodes = tuple(
            node_plan(node, Mode.PYTHON, obstacles.get(node.name) or f"in one stage with {next(iter(obstacles))}")
            for node in found.before
        )
    else:
        first = Stage(Mode.NATIVE, SubTopology(sub.number, found.before, ()))
        source = None
        first_nodes = tuple(node_plan(node, Mode.NATIVE, native_reason(node)) for node in found.before)
    native = NativeAggregate(found.node, found.aggregate, found.store, source, None)
    native, first_nodes, aggregate = _begun(found, native, first, first_nodes, dead_letters=dead_letters)
    tail, tail_nodes = _tail(found)
    return QueryPlan(sub.number, (sub.number,), first, native, tail, (*first_nodes, aggregate, *tail_nodes))


def _begun(
    found: FoundAggregate,
    native: NativeAggregate,
    first: Stage,
    first_nodes: tuple[NodePlan, ...],
    *,
    dead_letters: bool,
) -> tuple[NativeAggregate, tuple[NodePlan, ...], NodePlan]:
    """Where the aggregate begins: in the tasks that read, in front of Spark's own by windows, or in Spark's own."""
    bound = _bound(native, first)
    if first.mode is Mode.NATIVE:
        reason = why_not_in_source(first.sub.nodes, bound, found.store, dead_letters=dead_letters)
    else:
        reason = "Python functions come before it"
    parts = parts_of(with_leaves(bound, {})) or ()
    if reason is not None:
        made = replace(native, parts=parts if native.windowed else ())
        return made, first_nodes, _aggregate_plan(found, f"{NATIVE}; it begins behind the reading tasks: {reason}")
    made = replace(native, parts=parts, in_source=True)
    in_task = tuple(replace(node, operator=IN_SOURCE) for node in first_nodes)
    return made, in_task, _aggregate_plan(found, WHOLE if made.kept_in_source else MERGED)


def _bound(native: NativeAggregate, first: Stage) -> BoundAggregate:
    if first.mode is Mode.NATIVE:
        nodes = first.sub.nodes
        key, value = types_behind(nodes)[last_of(nodes).name]
    else:
        assert native.source is not None
        key, value = types_behind([native.source])[native.source.name]
    return native.aggregate.bind({"key": key, "value": value})


def _counted_input(number: int, found: FoundAggregate) -> SubTopology:
    """The nodes before a count, and a sink that stands for it. Only the key goes there."""
    blank = ProcessorNode(f"{AGGREGATE_INPUT}-blank", op.MapValues(_blank), found.node.parents)
    sink = SinkNode(
        AGGREGATE_INPUT, AGGREGATE_INPUT, (blank.name,), key_serde=found.store.key_serde, value_serde=Serdes.bytes
    )
    return SubTopology(number, (*found.before, blank, sink), ())


def _blank(value: object) -> bytes | None:
    return None if value is None else b""


def _tail(found: FoundAggregate) -> tuple[Stage | None, tuple[NodePlan, ...]]:
    if not found.after:
        return None, ()
    key, value = result_types(found.store, found.node)
    nodes = (_replace_source(found), *found.after)
    sub = SubTopology(0, nodes, ())
    obstacles = _tail_obstacles(found, key, value)
    if not obstacles:
        plans = tuple(node_plan(node, Mode.NATIVE, native_reason(node)) for node in found.after)
        return Stage(Mode.NATIVE, sub), plans
    plans = tuple(
        node_plan(node, Mode.PYTHON, obstacles.get(node.name) or f"in one stage with {next(iter(obstacles))}")
        for node in found.after
    )
    return Stage(Mode.PYTHON, _python_tail(found)), plans


def _tail_obstacles(found: FoundAggregate, key: Type, value: Type) -> dict[str, str]:
    sub = SubTopology(0, found.after, ())
    obstacles: dict[str, str] = {}
    try:
        types_behind(found.after, {found.node.name: (key, value)})
    except NotNative as error:
        obstacles[error.node] = error.reason
    for node in found.after:
        reason = obstacle(node)
        if reason is not None:
            obstacles.setdefault(node.name, reason)
    stand_in = SourceNode(found.node.name, (AGGREGATE_RESULT,))
    shape = shape_obstacle((stand_in, *found.after))
    if shape is not None:
        obstacles.setdefault(*shape)
    return {node.name: obstacles[node.name] for node in sub.nodes if node.name in obstacles}


def _replace_source(found: FoundAggregate) -> SourceNode:
    """Stands where the aggregate stood, so that what follows it is a whole from source to sinks."""
    return SourceNode(found.node.name, (AGGREGATE_RESULT,))


def _python_tail(found: FoundAggregate) -> SubTopology:
    """What follows the aggregate as a topology of its own: results come in as records and become changes again."""
    key_serde = found.store.key_serde
    operation = found.node.operation
    if isinstance(operation, op.WindowAggregate) and key_serde is not None:
        key_serde = TimeWindowedSerde(key_serde, operation.windows.size_ms)
    source = SourceNode(AGGREGATE_RESULT, (AGGREGATE_RESULT,), key_serde=key_serde, value_serde=found.store.value_serde)
    changes = ProcessorNode(found.node.name, op.TableSource(None), (source.name,))
    return SubTopology(0, (source, changes, *found.after), ())


def result_types(store: StoreSpec, node: ProcessorNode) -> tuple[Type, Type]:
    assert store.key_serde is not None and store.value_serde is not None
    key, value = store.key_serde.type, store.value_serde.type
    return (windowed(key) if isinstance(node.operation, op.WindowAggregate) else key), value


def _aggregate_plan(found: FoundAggregate, reason: str) -> NodePlan:
    operation = found.node.operation
    windows = ""
    if isinstance(operation, op.WindowAggregate):
        windows = f", window of {operation.windows.size_ms} ms"
    return NodePlan(
        found.node.name,
        Mode.NATIVE,
        f"groupBy(key{windows}).agg({found.aggregate!r})",
        reason,
    )
