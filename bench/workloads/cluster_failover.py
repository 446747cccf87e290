"""kill -9 of a partition's leader while librdkafka writes: how long until every partition is written to again.

Three nodes, replication factor 3, min.insync.replicas 2, 6 partitions, acks=all, idempotent, 300 records of 1 KB a
second, the client's defaults. Counted from the kill until each partition has acknowledged a record that was sent after
it, and the slowest partition counts: those the dead node led need a new leader, the others must not wait for it any
longer. The leader of another partition is killed each time, and so now and then the active controller; the next kill
comes ten seconds after the node is back and in sync: librdkafka doubles its pause before it connects to a broker anew,
up to ten seconds, and forgets that only after ten seconds, whoever the server is. Judged is the longest of all kills.
"""

import time
from statistics import median

from bench.clusters import Cluster, three
from bench.context import Context, Factory
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import progress
from bench.steady_writer import SteadyWriter

NAME = "3 nodes, kill -9 of a leader"
METRICS = (
    Metric("longest", "all partitions written again, longest", "s", value_at_most(1.0)),
    Metric("median", "all partitions written again, median", "s"),
    Metric("back", "the dead node in sync again, median", "s"),
    Metric("failed", "failed sends", "", value_at_most(0)),
)
PARTITIONS = 6
RATE = 300
RECORD_SIZE = 1024
QUIET_SECONDS = 10.0


def run(context: Context) -> list[Measure]:
    kills = context.amount(5, 3)
    return measures(NAME, METRICS, [[trial(context, factory, kills)] for factory in context.factories])


def trial(context: Context, factory: Factory, kills: int) -> Trial:
    taken: list[float] = []
    back: list[float] = []
    with three(context, factory) as cluster, cluster.topic(PARTITIONS) as topic:
        writer = SteadyWriter(cluster.bootstrap, topic, partitions=PARTITIONS, rate=RATE, size=RECORD_SIZE)
        with writer:
            writer.wait_written_since(time.perf_counter())
            for number in range(kills):
                time.sleep(QUIET_SECONDS)
                outage, returned = one_kill(cluster, writer, topic, number % PARTITIONS)
                taken.append(outage)
                back.append(returned)
                progress(f"kill {number + 1}", cluster.name, {"seconds": outage, "back": returned})
    failed = sum(one.error is not None for one in writer.sent)
    return {"longest": max(taken), "median": median(taken), "back": median(back), "failed": failed}


def one_kill(cluster: Cluster, writer: SteadyWriter, topic: str, partition: int) -> tuple[float, float]:
    """Seconds until all is written to again, and until the dead node, started after that, is in sync."""
    leaders = {one.number: one.leader for one in cluster.partitions([topic])}
    if leaders.get(partition, -1) < 0:
        raise ToolFailed(f"{cluster.name} shows no leader for partition {partition}")
    victim = cluster.node(leaders[partition])
    killed = time.perf_counter()
    victim.kill()
    outage = max(writer.wait_written_since(killed).values())
    victim.spawn()
    return outage, cluster.wait("the dead node is back", lambda: cluster.whole([topic], PARTITIONS))
