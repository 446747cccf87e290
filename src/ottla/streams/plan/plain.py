"""How sub-topologies without a native aggregate run: as columns, as a Python stage, or as tasks with state."""

from typing import Final

from ottla.streams.expressions import Aggregate, count
from ottla.streams.plan.columns import WINDOWED_SERDES, functions_of, obstacles_of
from ottla.streams.plan.extractors import needs_partition_time
from ottla.streams.plan.plan import SPARK_OPERATOR, Mode, NodePlan
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import Node, ProcessorNode, SinkNode, SourceNode, SubTopology
from ottla.streams.topology.stores import StoreKind


def why_stateful(sub: SubTopology) -> dict[str, str] | None:
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
        case op.WindowAggregate(emit=emit) if emit.waits:
            return "results go out when a window closes, which each task decides by its own stream time"
        case op.StreamAggregate(store=store, fold=fold) | op.WindowAggregate(store=store, fold=fold):
            return _why_no_native_aggregate(node, sub, store, fold)
    return _NEVER_NATIVE.get(type(node.operation))


_NEVER_NATIVE: Final[dict[type[op.Operation], str]] = {
    op.SessionAggregate: "Spark's sessions give no tombstones and test lateness otherwise than Kafka",
    op.SlidingAggregate: "Spark has no windows that begin and end with records",
    op.UnlimitedAggregate: "its window never ends",
    op.StreamStreamJoin: "Spark's own joins drop late records that Kafka joins",
    op.StreamSelfJoin: "Spark's own joins drop late records that Kafka joins",
    op.BufferSide: "Spark's own joins drop late records that Kafka joins",
    op.StreamTableJoin: "the table has to be read as of the stream's record",
    op.TableTableJoin: "the other table has to be read as of the change of this one",
    op.SubscriptionReceive: "it keeps who wants to hear of which foreign key",
    op.ForeignTableJoin: "it keeps who wants to hear of which foreign key",
    op.SubscriptionJoin: "the table has to be read as of the record that asks",
    op.ResponseJoin: "the table has to be read as of the record that asks",
    op.Suppress: "changes are held back by the stream time of the task",
    op.TableAggregate: "old values have to be subtracted",
}


def _why_no_native_aggregate(node: ProcessorNode, sub: SubTopology, store: str, fold: op.Fold) -> str:
    if any(spec.name == store and spec.kind is StoreKind.VERSIONED for spec in sub.stores):
        return "its store keeps versions"
    if fold.native is not None and (reason := fold.native.why_not_native()) is not None:
        return reason
    if as_native(fold) is None:
        return f"its {fold.kind} is a Python function"
    if any(spec.name == store and not spec.caching for spec in sub.stores):
        return "its store has no cache, so every update goes out and not the last one of a batch"
    others = [each.name for each in sub.nodes if is_stateful(each) and each is not node]
    return f"it shares its task with {others[0]}" if others else "what is around it cannot be one native plan"


def is_stateful(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and (bool(node.stores) or isinstance(node.operation, op.UserProcessor))


def stateless(sub: SubTopology, python: str | None) -> tuple[Mode, tuple[NodePlan, ...]]:
    """Native when all of it can be; one Python function makes a Python stage of the whole."""
    obstacles = obstacles_of(sub, python)
    for node in sub.nodes:
        if isinstance(node, SinkNode) and isinstance(node.key_serde, WINDOWED_SERDES):
            obstacles.setdefault(node.name, "its records go to the partition of the key inside the windowed key")
    if not obstacles:
        return Mode.NATIVE, tuple(node_plan(node, Mode.NATIVE, native_reason(node)) for node in sub.nodes)
    first = next(iter(obstacles))
    nodes = tuple(
        node_plan(node, Mode.PYTHON, obstacles.get(node.name) or f"in one stage with {first}") for node in sub.nodes
    )
    return Mode.PYTHON, nodes


def node_plan(node: Node, mode: Mode, reason: str) -> NodePlan:
    operator = SPARK_OPERATOR[mode]
    if isinstance(node, SourceNode):
        operator = f"source, then {operator}"
    elif isinstance(node, SinkNode):
        operator = f"{operator}, then the transactional sink"
    return NodePlan(node.name, mode, operator, reason)


def native_reason(node: Node) -> str:
    match node:
        case SourceNode() | SinkNode():
            return "its serdes have column types"
    return "column expressions only" if functions_of(node) else "nothing to compute"


def as_native(fold: op.Fold) -> Aggregate | None:
    if fold.native is not None:
        return fold.native if fold.native.why_not_native() is None else None
    return count() if fold.kind == "count" else None
