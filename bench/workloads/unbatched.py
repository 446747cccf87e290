"""One record of 100 B per Produce request (v12, acks=all): what a request costs when batching does not hide it.

A client process replays a prepared frame over 6 connections, one partition each, with 5 requests in flight per
connection (the clients' own default). It parses nothing, so that the server is the limit; its share of one core is in
the table to show that it is. Afterwards the log must hold exactly one record per answered request.
"""

import json
import subprocess
import sys
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.process_cost import cpu_of
from bench.rounds import interleaved_when_warm
from bench.servers import REPOSITORY, Server

NAME = "unbatched"
METRICS = (
    Metric("rate", "requests per second", "1/s", ratio_at_least(1.0)),
    Metric("cpu", "server CPU per request", "µs", ratio_at_most(1.0)),
    Metric("user", "server user CPU per request", "µs"),
    Metric("system", "server system CPU per request", "µs"),
    Metric("client", "client's share of a core", "%"),
)
PARTITIONS = 6
DEPTH = 5
PATIENCE_SECONDS = 60.0


def run(context: Context) -> list[Measure]:
    taken = interleaved_when_warm(context.pair(), context.rounds, trial(context, context.amount(8, 3)), context.warmups)
    return measures(NAME, METRICS, taken)


def trial(context: Context, seconds: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        with context.topic(server, PARTITIONS) as topic:
            before = cpu_of(server.pid)
            arguments = [str(server.port), topic, str(PARTITIONS), str(DEPTH), str(seconds)]
            found = replayed(arguments)
            cpu = cpu_of(server.pid).since(before)
            stored = records_in(server, topic)
        requests = found["requests"]
        # One more per connection: the request that told the size of a reply.
        if stored != requests + PARTITIONS:
            raise ToolFailed(f"{server.name} answered {requests + PARTITIONS:.0f} requests and holds {stored} records")
        return {
            "rate": requests / found["seconds"],
            "cpu": cpu.total * 1e6 / requests,
            "user": cpu.user * 1e6 / requests,
            "system": cpu.system * 1e6 / requests,
            "client": found["client_cpu"] / found["seconds"] * 100,
        }

    return one


def replayed(arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.replay", *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"the replaying client failed: {done.stderr[-1000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def records_in(server: Server, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "bench"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, index), 10.0) for index in range(PARTITIONS)]
    consumer.close()
    return sum(end for _, end in ends)
