"""How many partitions each repartition topic gets, and what is wrong with the topics that are there. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from re import fullmatch

from ottla.streams.topology.graph import Graph, SinkNode, SourceNode, SubTopology


class PartitionsError(Exception):
    """The topics do not fit the topology. The text names every topic and says what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(slots=True)
class _Counting:
    graph: Graph
    partitions: Mapping[str, int]
    internal: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def of(self, topic: str) -> int | None:
        if topic in self.graph.repartition_topics:
            return self.internal.get(topic)
        return self.partitions.get(topic)


def partition_counts(
    graph: Graph, sub_topologies: Sequence[SubTopology], partitions: Mapping[str, int]
) -> dict[str, int]:
    """Repartition topic -> number of partitions, by Kafka's rule; the names have no application id.

    `partitions` says how many the topics have that exist already: sources, and repartition topics of an earlier run
    (also without the application id). A repartition topic gets what `Repartitioned(partitions=...)` says, else as many
    as the widest source of the sub-topology that writes it; then those that are joined are made equal. Raises
    PartitionsError.
    """
    counting = _Counting(graph, partitions)
    _find_missing(counting)
    if counting.problems:
        raise PartitionsError(counting.problems)
    _count(counting, sub_topologies)
    for group in graph.copartitioned:
        _equalise(counting, group)
    _compare_with_existing(counting)
    if counting.problems:
        raise PartitionsError(counting.problems)
    return counting.internal


def matching_topics(source: SourceNode, topics: Iterable[str]) -> list[str]:
    """Those that a source reads: the ones it names, or those its pattern matches."""
    if source.pattern is None:
        return list(source.topics)
    return sorted(topic for topic in topics if fullmatch(source.pattern, topic))


def _find_missing(counting: _Counting) -> None:
    graph = counting.graph
    for node in graph.nodes.values():
        if not isinstance(node, SourceNode):
            continue
        if node.pattern is not None:
            if not matching_topics(node, counting.partitions):
                counting.problems.append(f"no topic matches the pattern {node.pattern} of source {node.name}")
            continue
        missing = [
            topic for topic in node.topics if counting.of(topic) is None and topic not in graph.repartition_topics
        ]
        counting.problems += [
            f"source topic {topic} (read by {node.name}) does not exist: create it" for topic in missing
        ]
    for table in graph.global_tables.values():
        if table.topic not in counting.partitions:
            counting.problems.append(
                f"topic {table.topic} of global table {table.store.name} does not exist: create it"
            )


def _count(counting: _Counting, sub_topologies: Sequence[SubTopology]) -> None:
    wanted = counting.graph.repartition_topics
    counting.internal = {name: topic.partitions for name, topic in wanted.items() if topic.partitions is not None}
    upstream = {name: _upstream(counting, sub_topologies, name) for name in wanted}
    unknown = [name for name in wanted if name not in counting.internal]
    while unknown:
        ready = [name for name in unknown if all(counting.of(topic) is not None for topic in upstream[name])]
        # Topics that feed each other have a known source somewhere; Kafka takes what it knows then.
        ready = ready or [name for name in unknown if any(counting.of(topic) is not None for topic in upstream[name])]
        if not ready:
            counting.problems.append(f"nothing says how many partitions these topics get: {', '.join(unknown)}")
            return
        found = {name: max(counting.of(topic) or 0 for topic in upstream[name]) for name in ready}
        counting.internal.update(found)
        unknown = [name for name in unknown if name not in found]


def _upstream(counting: _Counting, sub_topologies: Sequence[SubTopology], topic: str) -> list[str]:
    """What the sub-topologies read that write the topic."""
    writers = [
        sub for sub in sub_topologies if any(isinstance(node, SinkNode) and node.topic == topic for node in sub.nodes)
    ]
    sources = [node for sub in writers for node in sub.nodes if isinstance(node, SourceNode)]
    return [read for source in sources for read in matching_topics(source, counting.partitions)]


def _equalise(counting: _Counting, group: Sequence[str]) -> None:
    internal = counting.graph.repartition_topics
    given = {topic: counting.partitions[topic] for topic in group if topic not in internal}
    fixed = {topic: internal[topic].partitions for topic in group if topic in internal and internal[topic].partitions}
    decisive = given or fixed
    if len(set(decisive.values())) > 1:
        counting.problems.append(
            f"topics that are joined must have equally many partitions, but: {_counts_text(decisive)}. "
            "Recreate one, or put repartition(Repartitioned(partitions=...)) in front of the join"
        )
        return
    asked = next(iter(decisive.values()), None)
    number = asked or max(counting.internal.get(topic, 0) for topic in group)
    for topic, partitions in fixed.items():
        if partitions != number:
            counting.problems.append(
                f"repartition topic {topic} is asked to have {partitions} partitions, but it is joined with "
                f"{_counts_text(decisive)}"
            )
    counting.internal.update({topic: number for topic in group if topic in internal and topic not in fixed})


def _compare_with_existing(counting: _Counting) -> None:
    for topic, needed in counting.internal.items():
        existing = counting.partitions.get(topic)
        if existing is not None and existing != needed:
            fewer = "fewer" if existing < needed else "more"
            counting.problems.append(
                f"repartition topic {topic} exists with {existing} partitions, {fewer} than the {needed} needed: "
                "reset the application (`ottla streams reset`), or delete the topic"
            )


def _counts_text(counts: Mapping[str, int | None]) -> str:
    return ", ".join(f"{topic} has {number}" for topic, number in sorted(counts.items()))
