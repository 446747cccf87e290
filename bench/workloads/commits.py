"""Ten groups commit without pause: each request (OffsetCommit v9) holds the offsets of 10 partitions, one is in flight.

A commit is one partition's new offset, acknowledged: ten of them to a request, as a consumer of ten partitions sends
them. A client process writes the frames by hand over one connection for each group, so that the server is the limit;
its share of one core is in the table. Every answer is compared, and afterwards librdkafka must be told the last offset
of each group.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least, ratio_at_most
from bench.process_cost import cpu_of
from bench.rounds import interleaved_when_warm
from bench.servers import REPOSITORY, Server

NAME = "commits"
METRICS = (
    Metric("rate", "commits per second", "1/s", ratio_at_least(1.0)),
    Metric("requests", "requests per second", "1/s"),
    Metric("cpu", "server CPU per commit", "µs", ratio_at_most(1.0)),
    Metric("user", "server user CPU per commit", "µs"),
    Metric("client", "client's share of a core", "%"),
)
COMMITTERS = 10
PARTITIONS = 10
PATIENCE_SECONDS = 60.0


def run(context: Context) -> list[Measure]:
    taken = interleaved_when_warm(context.pair(), context.rounds, trial(context, context.amount(6, 2)), context.warmups)
    return measures(NAME, METRICS, taken)


def trial(context: Context, seconds: int) -> Callable[[Server], Trial]:
    def one(server: Server) -> Trial:
        with context.topic(server, PARTITIONS) as topic:
            known_offsets(server, topic, topic)  # which makes the topic that holds them, where there is none yet
            before = cpu_of(server.pid)
            found = committed([str(server.port), topic, topic, str(COMMITTERS), str(PARTITIONS), str(seconds)])
            cpu = cpu_of(server.pid).since(before)
            for group, offset in found["offsets"].items():
                known = known_offsets(server, group, topic)
                if known != [offset] * PARTITIONS:
                    raise ToolFailed(f"{server.name} took {offset} as the last offset of {group} and tells {known}")
        commits = found["requests"] * PARTITIONS
        return {
            "rate": commits / found["seconds"],
            "requests": found["requests"] / found["seconds"],
            "cpu": cpu.total * 1e6 / commits,
            "user": cpu.user * 1e6 / commits,
            "client": found["client_cpu"] / found["seconds"] * 100,
        }

    return one


def committed(arguments: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.committers", *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"the committing client failed: {done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def known_offsets(server: Server, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    asked = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    offsets = [found.offset for found in consumer.committed(asked, PATIENCE_SECONDS)]
    consumer.close()
    return offsets
