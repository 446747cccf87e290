"""Which native aggregates begin in the tasks that read: those whose records can be columns of Arrow on all of the way.

Such a task decodes, filters and maps what it reads and hands on parts of results (`expressions.parts`), a row for each
key instead of one for each record. Spark merges the parts, by its own aggregate. Windows that no repartition stands
before are whole in their task: it keeps them while they are open, and Spark keeps nothing.

Pure: no Spark here.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from ottla.serdes import primitives
from ottla.serdes.base import Serde
from ottla.serdes.types import Type
from ottla.streams.expressions import BoundAggregate, Expression
from ottla.streams.expressions.bound import Bound
from ottla.streams.expressions.parts import parts_of, with_leaves
from ottla.streams.expressions.vectors import why_no_vector
from ottla.streams.plan.columns import types_behind
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import Node, ProcessorNode, SinkNode, SourceNode
from ottla.streams.topology.stores import StoreSpec

ALWAYS_READABLE: Final = (primitives.StringSerde, primitives.BytesSerde)
VECTOR_SERDES: Final = (*ALWAYS_READABLE, primitives.IntSerde, primitives.LongSerde, primitives.DoubleSerde)


def why_not_in_source(
    before: Sequence[Node], aggregate: BoundAggregate, store: StoreSpec, *, dead_letters: bool
) -> str | None:
    """None: the aggregate begins where records are read. `before` are the nodes in front of it, all of them native.
    `dead_letters`: what cannot be read has to go to a topic, which the reading task has no way to."""
    source = before[0]
    assert isinstance(source, SourceNode)
    serdes = {"keys": source.key_serde, "values": source.value_serde}
    reasons = [_why_serde(part, serde, dead_letters=dead_letters) for part, serde in serdes.items()]
    if not all(below.parents == (above.name,) for above, below in pairwise(before)):
        reasons.append("its input comes by several ways")
    if any(reasons):
        return next(filter(None, reasons))
    found = types_behind(before)
    for above, node in pairwise(before):
        if (reason := why_no_node(node, *found[above.name])) is not None:
            return f"{node.name}: {reason}"
    key, _ = found[last_of(before).name]
    if type(store.key_serde) not in VECTOR_SERDES or store.key_serde.type != key:  # type: ignore[union-attr]
        return f"its keys are of type {key}"
    return _why_aggregate(aggregate)


def last_of(before: Sequence[Node]) -> Node:
    """The one whose records the aggregate takes; a sink to a repartition topic is passed by."""
    return next(node for node in reversed(before) if not isinstance(node, SinkNode))


def _why_serde(part: str, serde: Serde[Any] | None, *, dead_letters: bool) -> str | None:
    if type(serde) not in VECTOR_SERDES:
        return f"its {part} are {serde!r}, which only Spark reads as columns"
    if dead_letters and not isinstance(serde, ALWAYS_READABLE):
        return f"{part} that cannot be read become dead letters"
    return None


def why_no_node(node: Node, key: Type, value: Type) -> str | None:
    """What Arrow cannot do of it; None: it can."""
    if isinstance(node, SinkNode):
        return None
    assert isinstance(node, ProcessorNode)
    types = {"key": key, "value": value}
    match node.operation:
        case op.PassThrough() | op.DropNullKeys():
            return None
        case op.Filter(predicate=Expression() as function) | op.FlatMapValues(function=Expression() as function):
            return why_no_vector(function.bind(types))
    functions = functions_of_pair(node.operation)
    if not functions:
        return "Arrow has no such operation"
    return next(filter(None, (why_no_vector(function.bind(types)) for function in functions.values())), None)


def functions_of_pair(operation: op.Operation) -> dict[str, Expression]:
    """What becomes of key and value, where an operation gives records others."""
    match operation:
        case op.MapValues(function=Expression() as function):
            return {"value": function}
        case op.SelectKey(function=Expression() as function):
            return {"key": function}
        case op.MapPairs(function=None, key=key, value=value):
            both = {"key": key, "value": value}
            return {name: function for name, function in both.items() if function is not None}
    return {}


def _why_aggregate(aggregate: BoundAggregate) -> str | None:
    leaves: dict[str, Bound] = {}
    if parts_of(with_leaves(aggregate, leaves)) is None:
        return "parts of it cannot be merged"
    return next(filter(None, map(why_no_vector, leaves.values())), None)
