"""5,000 partitions with three replicas each (50 topics of 100) on three nodes; then kill -9 of one node.

Counted from the kill until both survivors' answers to Metadata (v4, all topics, every 50 ms) show a
living leader for every partition. Done once for each server, 5 s after every node has every log on its disk.
"""

import time

from bench import wire
from bench.clusters import PATIENCE_SECONDS, POLL_SECONDS, Cluster, three
from bench.context import Context, Factory
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import progress
from bench.servers import Server, ServerFailed, settle

METRICS = (
    Metric("seconds", "a dead node's leaders are elsewhere", "s", value_at_most(3)),
    Metric("moved", "leaders it had", ""),
    Metric("create", "creating them, until on all disks", "s"),
    Metric("resident", "resident, together", "MB"),
)
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
VICTIM = 1
NOBODY = -1
REST_SECONDS = 5.0


def run(context: Context) -> list[Measure]:
    topics = context.amount(50, 5)
    name = f"3 nodes, {topics * PARTITIONS_PER_TOPIC:,} partitions"
    return measures(name, METRICS, [[trial(context, factory, topics)] for factory in context.factories])


def trial(context: Context, factory: Factory, topics: int) -> Trial:
    with three(context, factory) as cluster:
        partitions = topics * PARTITIONS_PER_TOPIC
        created = create(cluster, topics)
        progress("created", cluster.name, {"seconds": created})
        moved = sum(one.leader == VICTIM for one in cluster.partitions(None))
        resident = cluster.memory().resident / 1e6
        killed = time.perf_counter()
        cluster.node(VICTIM).kill()
        survivors = [node for number, node in enumerate(cluster.nodes, 1) if number != VICTIM]
        seconds = max(first_led(survivor, partitions) for survivor in survivors) - killed
    found = {"seconds": seconds, "moved": moved, "create": created, "resident": resident}
    progress("kill", cluster.name, found)
    return found


def create(cluster: Cluster, topics: int) -> float:
    """Seconds until every node has the log of every partition and has come to rest.

    That all replicas are in sync says nothing yet: a new partition is born so, before its brokers have heard of it.
    """
    began = time.perf_counter()
    names = [f"many-{number}" for number in range(topics)]
    for first in range(0, topics, TOPICS_PER_REQUEST):
        cluster.create(names[first : first + TOPICS_PER_REQUEST], PARTITIONS_PER_TOPIC)
    partitions = topics * PARTITIONS_PER_TOPIC
    cluster.wait("every node has all logs", lambda: all(logs(node) >= partitions for node in cluster.nodes))
    cluster.wait("all is in sync", lambda: cluster.in_sync(None, partitions))
    seconds = time.perf_counter() - began
    settle()
    time.sleep(REST_SECONDS)
    return seconds


def logs(node: Server) -> int:
    return sum(1 for _ in (node.directory / "data").glob("many-*"))


def first_led(survivor: Server, partitions: int) -> float:
    """When the first answer of this node arrived that shows a living leader everywhere."""
    deadline = time.perf_counter() + PATIENCE_SECONDS
    with survivor.connect() as connection:
        while time.perf_counter() < deadline:
            reply = connection.ask(wire.metadata_request(None))
            arrived = time.perf_counter()
            known = wire.metadata_partitions(reply)
            if sum(one.error == 0 and one.leader not in (VICTIM, NOBODY) for one in known) >= partitions:
                return arrived
            time.sleep(POLL_SECONDS)
    raise ServerFailed(f"{survivor.name}: a dead node's leaders are not elsewhere after {PATIENCE_SECONDS:.0f} s")
