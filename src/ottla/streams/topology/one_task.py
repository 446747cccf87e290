"""A topology for one task that has all records: without the topics that bring equal keys together."""

from collections.abc import Iterable
from dataclasses import replace

from ottla.streams.topology.graph import Form, Graph, Node, SinkNode, SourceNode


def in_one_task(graph: Graph) -> Graph:
    """What stands behind such a topic follows upon what stands in front of it, and no record is written and read again.
    Topics with something else in them than records (a table's old values, what foreign keys ask) stay."""
    nodes = graph.nodes.values()
    through: dict[str, tuple[str, ...]] = {}
    left: set[str] = set()
    for topic in graph.repartition_topics:
        sinks = [node for node in nodes if isinstance(node, SinkNode) and node.topic == topic]
        sources = [node for node in nodes if isinstance(node, SourceNode) and topic in node.topics]
        ends: list[Node] = [*sinks, *sources]
        if len(sources) == 1 and all(map(_is_plain, ends)):
            through[sources[0].name] = tuple(parent for sink in sinks for parent in sink.parents)
            left.update((topic, sources[0].name, *(sink.name for sink in sinks)))
    kept = (node for node in nodes if node.name not in left)
    return replace(
        graph,
        nodes={node.name: replace(node, parents=_parents(node.parents, through)) for node in kept},
        repartition_topics={name: each for name, each in graph.repartition_topics.items() if name not in left},
        copartitioned=[tuple(name for name in group if name not in left) for group in graph.copartitioned],
    )


def _is_plain(node: Node) -> bool:
    if isinstance(node, SinkNode):
        return node.form is Form.PLAIN and node.partitioner is None
    return (
        isinstance(node, SourceNode) and node.form is Form.PLAIN and node.extractor.is_plain and len(node.topics) == 1
    )


def _parents(names: Iterable[str], through: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    found = [up for name in names for up in (_parents(through[name], through) if name in through else (name,))]
    return tuple(dict.fromkeys(found))
