"""Apache's ProducerPerformance with its defaults (acks=all, idempotent, 16 KiB batches), 6 partitions, no throttle.

Throughput and latency are the tool's own, after the first fifth of the records. Server CPU is what the kernel billed
to the server while the tool ran, per gigabyte of record values.
"""

from collections.abc import Callable

from bench.context import Context
from bench.java_tools import producer_performance
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.process_cost import cpu_of
from bench.rounds import interleaved_when_warm
from bench.servers import Server

NAME = "produce"
METRICS = (
    Metric("rate", "throughput", "MB/s", ratio_at_least(1.0)),
    Metric("cpu", "server CPU per GB", "s", ratio_at_most(0.7)),
    Metric("user", "server user CPU per GB", "s", ratio_at_most(0.5)),
    Metric("system", "server system CPU per GB", "s"),
    Metric("p50", "acknowledged in, p50", "ms"),
    Metric("p99", "acknowledged in, p99", "ms"),
)
WARM_UP_SHARE = 5


def run(context: Context) -> list[Measure]:
    sizes = (
        ("1 KB records", 1024, context.amount(1_500_000, 300_000)),
        ("100 B records", 100, context.amount(8_000_000, 1_500_000)),
    )
    found = []
    for title, size, records in sizes:
        taken = interleaved_when_warm(context.pair(), context.rounds, trial(context, size, records), context.warmups)
        found += measures(f"{NAME}, {title}", METRICS, taken)
    return found


def trial(context: Context, size: int, records: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        with context.topic(server) as topic:
            before = cpu_of(server.pid)
            tool = producer_performance(server.bootstrap, topic, records, size, records // WARM_UP_SHARE)
            cpu = cpu_of(server.pid).since(before)
        gigabytes = records * size / 1e9
        return {
            "rate": tool.rate * size / 1e6,
            "cpu": cpu.total / gigabytes,
            "user": cpu.user / gigabytes,
            "system": cpu.system / gigabytes,
            "p50": tool.p50,
            "p99": tool.p99,
        }

    return one
