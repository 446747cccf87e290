"""Memory of three nodes of one cluster, added up, 3 s after the first record to a topic with three replicas.

From /proc/PID, children included; 1 MB is 1,000,000 bytes. Resident counts what the nodes share in full for each of
them and is what is judged; the proportional share (PSS) is beside it. Kafka runs with its start script's 1 GB heap.
"""

import time

from bench.clusters import three
from bench.context import Context, Factory
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import interleaved
from bench.steady_writer import SteadyWriter

NAME = "3 nodes, idle"
METRICS = (
    Metric("resident", "resident, together", "MB", value_at_most(200)),
    Metric("share", "proportional, together", "MB"),
    Metric("cpu", "CPU, together", "ms/s"),
    Metric("ready", "started until all know each other", "s"),
)
SETTLE_SECONDS = 3.0
MOST_ROUNDS = 2


def run(context: Context) -> list[Measure]:
    rounds = 1 if context.quick else min(context.rounds, MOST_ROUNDS)

    def one(factory: Factory) -> Trial:
        return trial(context, factory)

    return measures(NAME, METRICS, interleaved(context.factories, rounds, one))


def trial(context: Context, factory: Factory) -> Trial:
    with three(context, factory) as cluster:
        ready = cluster.ready_seconds
        with cluster.topic(1) as topic:
            with SteadyWriter(cluster.bootstrap, topic, partitions=1, rate=1, size=1024) as writer:
                writer.wait_written_since(0.0)
            idle_from = cluster.cpu()
            time.sleep(SETTLE_SECONDS)
            cpu = cluster.cpu().since(idle_from)
            memory = cluster.memory()
    return {
        "resident": memory.resident / 1e6,
        "share": memory.proportional / 1e6,
        "cpu": cpu.total * 1e3 / SETTLE_SECONDS,
        "ready": ready,
    }
