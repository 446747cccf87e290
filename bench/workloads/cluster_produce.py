"""Three nodes, replication factor 3, min.insync.replicas 2: Apache's ProducerPerformance, 1 KB records, 6 partitions.

The tool's defaults (acks=all, idempotent, 16 KiB batches), no throttle. Throughput and latency are the tool's own,
after the first fifth of the records. Server CPU is what the kernel billed to the three nodes together while the tool
ran, per gigabyte of record values: each is written three times. Both clusters are up and take turns.
"""

from collections.abc import Callable

from bench.clusters import Cluster, both
from bench.context import Context
from bench.java_tools import producer_performance
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.rounds import interleaved_when_warm

NAME = "3 nodes, produce"
METRICS = (
    Metric("rate", "throughput", "MB/s", ratio_at_least(1.0)),
    Metric("cpu", "server CPU per GB", "s", ratio_at_most(0.8)),
    Metric("user", "server user CPU per GB", "s"),
    Metric("system", "server system CPU per GB", "s"),
    Metric("p50", "acknowledged in, p50", "ms"),
    Metric("p99", "acknowledged in, p99", "ms"),
)
PARTITIONS = 6
RECORD_SIZE = 1024
WARM_UP_SHARE = 5
MOST_ROUNDS = 3


def run(context: Context) -> list[Measure]:
    records = context.amount(750_000, 200_000)
    with both(context) as clusters:
        rounds = min(context.rounds, MOST_ROUNDS)
        return measures(NAME, METRICS, interleaved_when_warm(clusters, rounds, trial(records), context.warmups))


def trial(records: int) -> Callable[[Cluster], Trial]:
    def one(cluster: Cluster) -> Trial:
        with cluster.topic(PARTITIONS) as topic:
            before = cluster.cpu()
            tool = producer_performance(cluster.bootstrap, topic, records, RECORD_SIZE, records // WARM_UP_SHARE)
            cpu = cluster.cpu().since(before)
        gigabytes = records * RECORD_SIZE / 1e9
        return {
            "rate": tool.rate * RECORD_SIZE / 1e6,
            "cpu": cpu.total / gigabytes,
            "user": cpu.user / gigabytes,
            "system": cpu.system / gigabytes,
            "p50": tool.p50,
            "p99": tool.p99,
        }

    return one
