"""Resident memory of a new server: 3 s after its first record, and after 1 GB was produced and read back.

From /proc/PID/status, children included; 1 MB is 1,000,000 bytes. Resident counts shared libraries and mapped files in
full and is what is judged; the proportional share (PSS) is beside it. Kafka runs with its start script's 1 GB heap.
"""

import time

from bench.context import Context, Factory
from bench.java_tools import consumer_performance, producer_performance
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import cpu_of, memory_of
from bench.rounds import interleaved

NAME = "memory"
METRICS = (
    Metric("idle", "idle, resident", "MB", value_at_most(60)),
    Metric("idle_share", "idle, proportional", "MB"),
    Metric("idle_cpu", "idle, CPU", "ms/s"),
    Metric("loaded", "after 1 GB, resident", "MB", value_at_most(120)),
    Metric("peak", "highest until then, resident", "MB"),
)
RECORD_SIZE = 1024
SETTLE_SECONDS = 3.0


def run(context: Context) -> list[Measure]:
    # A quick run still moves the whole gigabyte: less would measure something else.
    rounds = 1 if context.quick else min(context.rounds, 3)
    records = 10**9 // RECORD_SIZE

    def one(factory: Factory) -> Trial:
        server = context.new_server(factory)
        server.start()
        idle_from = cpu_of(server.pid)
        time.sleep(SETTLE_SECONDS)
        idle_cpu = cpu_of(server.pid).since(idle_from)
        idle = memory_of(server.pid)
        with context.topic(server) as topic:
            producer_performance(server.bootstrap, topic, records, RECORD_SIZE, 0)
            consumer_performance(server.bootstrap, topic, records, groups=False)
            loaded = memory_of(server.pid)
        context.discard(server)
        return {
            "idle": idle.resident / 1e6,
            "idle_share": idle.proportional / 1e6,
            "idle_cpu": idle_cpu.total * 1e3 / SETTLE_SECONDS,
            "loaded": loaded.resident / 1e6,
            "peak": loaded.peak / 1e6,
        }

    return measures(NAME, METRICS, interleaved(context.factories, rounds, one))
