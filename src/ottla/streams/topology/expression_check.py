"""Whether every expression of a topology fits the records that reach it: told when it is built, before all else."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from ottla.serdes.types import Type
from ottla.streams.expressions import Aggregate, Expression, ExpressionError
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import GlobalTable, Graph, Node, ProcessorNode, SinkNode, SourceNode
from ottla.streams.topology.node_types import Join, NodeTypes, Types, type_of
from ottla.streams.topology.operations import Fold, Operation


def check_expressions(graph: Graph, types: NodeTypes) -> None:
    """Serdes have to be filled in. Raises TopologyError, which names the node and the part that is wrong."""
    try:
        for node in graph.nodes.values():
            for expression, names in _bound_at(node, types):
                _bind(node, expression, names)
    except ExpressionError as error:
        raise TopologyError(str(error)) from None


def all_sources_say_how(graph: Graph, key: object, value: object) -> bool:
    """Whether what is read from topics has a type already; else an application's defaults will say."""
    internal = graph.repartition_topics
    sources = [node for node in graph.nodes.values() if isinstance(node, SourceNode)]
    outer: list[SourceNode | GlobalTable] = [
        *(each for each in sources if not any(topic in internal for topic in each.topics)),
        *graph.global_tables.values(),
    ]
    return all((each.key_serde or key) and (each.value_serde or value) for each in outer)


def _bind(node: Node, expression: Expression | Aggregate, types: Mapping[str, Type]) -> None:
    try:
        expression.bind(types)
    except ExpressionError as error:
        raise ExpressionError(f"{node.name}: {error}") from None


def _bound_at(node: Node, types: NodeTypes) -> Iterator[tuple[Expression | Aggregate, Mapping[str, Type]]]:
    match node:
        case SourceNode(extractor=extractor):
            if isinstance(extractor.function, Expression):
                yield extractor.function, Types(type_of(node.key_serde), type_of(node.value_serde)).named()
        case SinkNode(chooser=chooser):
            if isinstance(chooser, Expression):
                yield chooser, types.given[node.name].named()
        case ProcessorNode(operation=operation):
            for name, expression in _expressions(operation):
                if name == "joiner" and isinstance(operation, Join):
                    yield expression, types.joined(node.name, operation)
                else:
                    yield expression, types.given[node.name].named()


def _expressions(operation: Operation | Fold) -> Iterator[tuple[str, Expression | Aggregate]]:
    for field in fields(operation):
        yield from _within(field.name, getattr(operation, field.name))


def _within(name: str, held: Any) -> Iterator[tuple[str, Expression | Aggregate]]:
    match held:
        case Expression() | Aggregate():
            yield name, held
        case Fold():
            yield from _expressions(held)
        case tuple():
            for each in held:
                yield from _within(name, each)
