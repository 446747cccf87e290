"""What a StreamsBuilder remembers until `build`: operations in the order they were said, not yet nodes of a topology.

One operation may become several nodes, and some things are known only at the end: whether a table needs a store, who
wants old values, which sources are the same. Names are numbered here, as Kafka does: every name burns a number, also
where the user gave one, so that a topology keeps its numbers when names are added.
"""

from collections.abc import Sequence
from copy import copy
from heapq import heappop, heappush

from ottla.streams.dsl.options import checked_name
from ottla.streams.dsl.steps import REPARTITION, OperationStep, RepartitionNames, Root, SourceStep, Step
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import SourceNode
from ottla.streams.topology.operations import (
    Operation,
)
from ottla.streams.topology.topology import Topology


class Draft:
    """All steps of a builder. Streams and tables add to it; `write` makes the topology."""

    __slots__ = ("_copartitioned", "_merged", "_next_number", "_next_priority", "added", "root")

    def __init__(self) -> None:
        self.root = Root("root")
        self._next_number = 0
        self._next_priority = 0
        self._copartitioned: list[tuple[str, ...]] = []
        self._merged: dict[str, str] = {}
        """Which source stands for which other one."""
        self.added: dict[Step, None] = {}
        """All steps, in the order in which they were first added."""

    def copied(self) -> "Draft":
        """With steps of its own, so that a rule may change them."""
        result = Draft()
        result._next_number, result._next_priority = self._next_number, self._next_priority
        result._copartitioned, result._merged = list(self._copartitioned), dict(self._merged)
        mine: dict[Step, Step] = {self.root: result.root} | {step: copy(step) for step in self.added}
        for old, new in mine.items():
            new.parents = [mine[parent] for parent in old.parents]
            new.children = [mine[child] for child in old.children]
        result.added = {mine[step]: None for step in self.added}
        return result

    def rename_source(self, name: str, other: str) -> None:
        self._merged[name] = other

    def new_name(self, prefix: str) -> str:
        name = f"{prefix}{self._next_number:010d}"
        self._next_number += 1
        return name

    def new_store_name(self, prefix: str) -> str:
        return self.new_name(f"{prefix}STATE-STORE-")

    def named(self, name: str | None, prefix: str, suffix: str = "") -> str:
        """The user's name, or a new one; a number is burned either way."""
        generated = self.new_name(prefix)
        return generated if name is None else (checked_name(name + suffix) or generated)

    def add(self, step: Step, *parents: Step) -> None:
        self.added.setdefault(step)
        for parent in parents:
            parent.attach(step)
            step.priority = self._next_priority
            self._next_priority += 1

    def copartition(self, *sources: Sequence[str]) -> tuple[str, ...]:
        """Says that the topics of these sources must have equally many partitions. Gives all of them."""
        together = tuple(dict.fromkeys(name for names in sources for name in names))
        self._copartitioned.append(together)
        return together

    def repartition_names(self, prefix: str) -> RepartitionNames:
        topic = prefix if prefix.endswith(REPARTITION) else prefix + REPARTITION
        sink = self.new_name("KSTREAM-SINK-")
        null_filter = self.new_name("KSTREAM-FILTER-")
        source = self.new_name("KSTREAM-SOURCE-")
        if _is_generated(prefix):
            return RepartitionNames(topic, sink, null_filter, source)
        return RepartitionNames(topic, f"{topic}-sink", f"{topic}-filter", f"{topic}-source")

    def write(self, topology: Topology) -> Topology:
        """Into an empty topology. May be called again, also after more has been said."""
        self.merge_sources()
        for step in self._in_order():
            step.write(topology)
        groups = [tuple(self._merged.get(name, name) for name in group) for group in self._copartitioned]
        topology.declared.copartitioned = _topic_groups(topology, groups)
        _check_fixed_counts(topology)
        return topology

    def merge_sources(self) -> None:
        """Of equal topics."""
        by_topic: dict[tuple[str | None, str], SourceStep] = {}
        for step in list(self.root.children):
            if not isinstance(step, SourceStep):
                continue
            for key in [(step.pattern, "")] if step.pattern is not None else [(None, topic) for topic in step.topics]:
                first = by_topic.setdefault(key, step)
                if first is step:
                    continue
                if set(first.topics) != set(step.topics):
                    raise TopologyError(
                        f"{first.name} and {step.name} read overlapping topics ({', '.join(first.topics)} and "
                        f"{', '.join(step.topics)}): the same ones are expected, or wholly different ones"
                    )
                first.absorb(step)
                self._merged[step.name] = first.name
                if step in self.root.children:
                    self.root.detach(step)

    def _in_order(self) -> list[Step]:
        """The order in which Kafka writes them: what was said first, once all its parents are written."""
        pending: list[tuple[int, int, Step]] = [(-1, 0, self.root)]
        done: list[Step] = []
        pushed = 0
        written: set[int] = set()
        while pending:
            step = heappop(pending)[2]
            if id(step) in written or any(id(parent) not in written for parent in step.parents):
                continue
            written.add(id(step))
            done.append(step)
            for child in step.children:
                pushed += 1
                heappush(pending, (child.priority, pushed, child))
        return done[1:]


def _is_generated(name: str) -> bool:
    return name.startswith("KSTREAM") and name[-11:-10] == "-" and name[-10:].isdigit()


def _topic_groups(topology: Topology, groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Topics in place of sources; groups that share a topic are one."""
    result: list[tuple[str, ...]] = []
    for group in groups:
        sources = [node for name in group if isinstance(node := topology.declared.nodes.get(name), SourceNode)]
        topics = tuple(dict.fromkeys(topic for source in sources for topic in source.topics))
        shared = [other for other in result if any(topic in other for topic in topics)]
        result = [other for other in result if other not in shared]
        result.append(tuple(dict.fromkeys(topic for part in (*shared, topics) for topic in part)))
    return [group for group in result if len(group) > 1]


def _check_fixed_counts(topology: Topology) -> None:
    known = topology.declared.repartition_topics
    for group in topology.declared.copartitioned:
        counts = {topic: known[topic].partitions for topic in group if topic in known}
        if len(counts) == len(group) and None not in counts.values() and len(set(counts.values())) > 1:
            listed = ", ".join(f"{topic} has {number}" for topic, number in sorted(counts.items()))
            raise TopologyError(f"repartition topics that are joined must have equally many partitions, but: {listed}")


def step_of(
    draft: Draft, name: str | None, prefix: str, operation: Operation, parent: Step, *, connected: Sequence[str] = ()
) -> OperationStep:
    """A processor with one parent, added to the draft."""
    step = OperationStep(draft.named(name, prefix), lambda: operation, connected=connected)
    draft.add(step, parent)
    return step
