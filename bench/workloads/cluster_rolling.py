"""Each of three nodes in turn is stopped by SIGTERM and started again while librdkafka writes.

Replication factor 3, min.insync.replicas 2, 6 partitions, acks=all, idempotent, 1,000 records of 1 KB a second, the
client's defaults. The next node is stopped when the one before it serves again and all replicas are in sync. The time
of a send is from when it was due until it is acknowledged, over the whole rolling restart. A send fails when it is not
acknowledged within two minutes or is refused for good.
"""

import time
from statistics import quantiles

from bench.clusters import three
from bench.context import Context, Factory
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import interleaved
from bench.steady_writer import SteadyWriter

NAME = "3 nodes, rolling restart"
METRICS = (
    Metric("failed", "failed sends", "", value_at_most(0)),
    Metric("p99", "acknowledged in, p99", "ms", value_at_most(1000)),
    Metric("p50", "acknowledged in, p50", "ms"),
    Metric("longest", "acknowledged in, longest", "ms"),
    Metric("seconds", "the whole restart", "s"),
)
PARTITIONS = 6
RATE = 1000
RECORD_SIZE = 1024
QUIET_SECONDS = 2.0
MOST_ROUNDS = 2


def run(context: Context) -> list[Measure]:
    rounds = 1 if context.quick else min(context.rounds, MOST_ROUNDS)

    def one(factory: Factory) -> Trial:
        return trial(context, factory)

    return measures(NAME, METRICS, interleaved(context.factories, rounds, one))


def trial(context: Context, factory: Factory) -> Trial:
    with three(context, factory) as cluster, cluster.topic(PARTITIONS) as topic:
        writer = SteadyWriter(cluster.bootstrap, topic, partitions=PARTITIONS, rate=RATE, size=RECORD_SIZE)
        with writer:
            writer.wait_written_since(time.perf_counter())
            time.sleep(QUIET_SECONDS)
            began = time.perf_counter()
            for node in cluster.nodes:
                node.stop()
                node.spawn()
                cluster.wait("the node is back", lambda: cluster.whole([topic], PARTITIONS))
            ended = time.perf_counter()
    meanwhile = [one for one in writer.sent if began <= one.began <= ended]
    taken = [one.seconds * 1e3 for one in meanwhile if one.error is None]
    if len(taken) < RATE:
        raise ToolFailed(f"{cluster.name} acknowledged only {len(taken)} records")
    percentiles = quantiles(taken, n=100)
    return {
        "failed": sum(one.error is not None for one in writer.sent),
        "p99": percentiles[98],
        "p50": percentiles[49],
        "longest": max(taken),
        "seconds": ended - began,
    }
