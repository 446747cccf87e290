"""Which Spark operator each node of a topology becomes, and why. Pure: no Spark here, only data in and data out.

A sub-topology becomes one query in one of three ways (`Mode`). A native aggregate behind a repartition takes the
sub-topology in front of it into its own query: Spark's shuffle then stands in for the repartition topic.
"""

from collections.abc import Sequence
from typing import Final

from ottla.streams.expressions import Aggregate, Expression
from ottla.streams.plan.aggregates import aggregated, feeder_of, fused, is_windowed, native_aggregate
from ottla.streams.plan.columns import functions_of
from ottla.streams.plan.plain import node_plan, stateless, why_stateful
from ottla.streams.plan.plan import Mode, Plan, QueryPlan, Stage
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import SubTopology

RESTORED: Final = "its state came from the changelog, which Spark's own aggregates cannot take up"


def plan(
    subs: Sequence[SubTopology],
    python: str | None = None,
    no_windows: str | None = None,
    restored: frozenset[str] = frozenset(),
    *,
    dead_letters: bool = False,
) -> Plan:
    """Serdes have to be filled in already (`Topology.with_default_serdes`). `python` is a reason why records have to be
    read by Python, if there is one, `no_windows` why windows cannot be native; `restored` are stores whose state comes
    from their changelogs; `dead_letters` says that what cannot be read goes to a topic."""
    aggregates = {
        sub.number: found
        for sub in subs
        if (found := native_aggregate(sub, python)) is not None
        and not (no_windows and is_windowed(found))
        and found.store.name not in restored
    }
    feeders = {
        number: feeder
        for number, found in aggregates.items()
        if (feeder := feeder_of(subs, found, aggregates)) is not None
    }
    absorbed = {feeder.number for feeder in feeders.values()}
    queries = []
    for sub in subs:
        if sub.number in absorbed:
            continue
        if sub.number in feeders:
            queries.append(fused(feeders[sub.number], sub, aggregates[sub.number], dead_letters=dead_letters))
        elif sub.number in aggregates:
            queries.append(aggregated(sub, aggregates[sub.number], dead_letters=dead_letters))
        else:
            queries.append(_plain(sub, python, no_windows, restored))
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
            if any(isinstance(each, (Expression, Aggregate)) and each.needs_spark for each in functions_of(node)):
                raise TopologyError(
                    f"{node.name} uses spark(...), which only columns of Spark can compute, but has to run in Python: "
                    f"{reasons.get(node.name, 'it stands behind a Python function')}. "
                    "Say one of the two in another way, or put a topic (repartition) between them"
                )


def _plain(sub: SubTopology, python: str | None, no_windows: str | None, restored: frozenset[str]) -> QueryPlan:
    stateful = why_stateful(sub)
    if stateful is not None:
        if (found := native_aggregate(sub, python)) is not None:
            # One of the two is why it did not become native.
            stateful[found.node.name] = RESTORED if found.store.name in restored else no_windows or ""
        nodes = tuple(
            node_plan(node, Mode.TASK, stateful.get(node.name) or f"in the same task as {next(iter(stateful))}")
            for node in sub.nodes
        )
        return QueryPlan(sub.number, (sub.number,), Stage(Mode.TASK, sub), None, None, nodes)
    mode, nodes = stateless(sub, python)
    return QueryPlan(sub.number, (sub.number,), Stage(mode, sub), None, None, nodes)
