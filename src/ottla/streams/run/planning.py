"""From an application to the plan of its Spark queries: its topology with its defaults, and what its folder allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.pipelines.source.connector import FASTER
from ottla.pipelines.source.data_source import FORMAT
from ottla.streams.plan.plan import Plan
from ottla.streams.plan.planner import plan
from ottla.streams.run.config import IN_MEMORY
from ottla.streams.run.recovery import seen_without_spark
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.graph import SourceNode, SubTopology, TimestampExtractor

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp
    from ottla.streams.topology.topology import Topology


def resolved(app: StreamsApp) -> Topology:
    """The topology with the application's defaults filled in: serdes, timestamp extractor. Raises TopologyError."""
    config = app.config
    topology = app.topology if config["statestore.cache.max.bytes"] else app.topology.without_caches()
    if (config["dsl.store.suppliers.class"] or config["default.dsl.store"]) == IN_MEMORY:
        topology = topology.with_stores_in_memory()
    topology = topology.with_default_serdes(config["default.key.serde"], config["default.value.serde"])
    extractor = config["default.timestamp.extractor"]
    if extractor is None:
        return topology
    chosen = extractor if isinstance(extractor, TimestampExtractor) else TimestampExtractor(extractor)
    graph = topology.graph
    for name, node in graph.nodes.items():
        # Records between sub-topologies have their timestamps already.
        external = isinstance(node, SourceNode) and not any(topic in graph.repartition_topics for topic in node.topics)
        if isinstance(node, SourceNode) and external and node.extractor.is_plain:
            graph.nodes[name] = replace(node, extractor=chosen)
    return topology


def plan_of(app: StreamsApp) -> Plan:
    return planned(app, resolved(app).sub_topologies(), seen_without_spark(StateDirectory.of(app)))


def planned(app: StreamsApp, subs: Sequence[SubTopology], restored: frozenset[str] = frozenset()) -> Plan:
    by_function = callable(app.config["deserialization.exception.handler"])
    return plan(
        subs,
        "a Python function decides about records that cannot be read" if by_function else None,
        None
        if StateDirectory.of(app).is_local
        else "stream time in front of Spark's own is kept in files of state.dir, "
        "which has to be a folder for that, not a URL",
        restored,
        dead_letters=app.config["errors.dead.letter.queue.topic.name"] is not None,
    )


def explain(app: StreamsApp) -> str:
    """Which Spark operator each node becomes, and why; and what reads its input."""
    return f"{plan_of(app).text()}\nInput is read by the data source {FORMAT}: {FASTER}"
