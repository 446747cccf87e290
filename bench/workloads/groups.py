"""100 members share 1,000 partitions; one more comes, and leaves again, three times. With both protocols.

Timed from the first request of the one that comes, or the word of the one that leaves, until every member has its final
assignment: all in one generation or member epoch, every partition with one owner, shares that differ by one at most.
Classic members join, sync (the leader deals out) and heartbeat; consumer members (KIP-848) let go and take over as they
are told. All of them live in one client process (bench/members.py), heartbeat ten times a second so that the server is
measured and not the pause between heartbeats, and rest for 1.2 s between changes. The slowest of the three counts;
group.initial.rebalance.delay.ms is 0 and would concern only the forming of the group.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from itertools import count
from statistics import median
from typing import Any

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import interleaved
from bench.servers import REPOSITORY, Server
from bench.workloads.commits import known_offsets

NAME = "groups"
METRICS = (
    Metric("comes", "one comes, slowest of three", "s", value_at_most(2.0)),
    Metric("leaves", "one leaves, slowest of three", "s", value_at_most(2.0)),
    Metric("typical", "median of all six", "s"),
    Metric("formed", "100 come at once", "s"),
    Metric("client", "client's share of a core", "%"),
)
MEMBERS = 100
PARTITIONS = 1_000
CHANGES = 3
PATIENCE_SECONDS = 300.0


def run(context: Context) -> list[Measure]:
    servers = context.pair()
    numbers = count()
    found = []
    with ExitStack() as stack:
        topics = {server: stack.enter_context(context.topic(server, PARTITIONS)) for server in servers}
        for protocol in ("classic", "consumer"):

            def one(server: Server, protocol: str = protocol) -> Trial:
                return trial(server, topics[server], protocol, f"{topics[server]}-{protocol}-{next(numbers)}")

            taken = interleaved(servers, context.rounds, one, warmups=context.amount(1, 0))
            found += measures(f"{NAME}, {protocol}", METRICS, taken)
    return found


def trial(server: Server, topic: str, protocol: str, group: str) -> Trial:
    known_offsets(server, group, topic)  # which makes the topic that holds groups, where there is none yet
    found = rebalanced([str(server.port), topic, str(PARTITIONS), str(MEMBERS), str(CHANGES), protocol, group])
    return {
        "comes": max(found["comes"]),
        "leaves": max(found["leaves"]),
        "typical": median(found["comes"] + found["leaves"]),
        "formed": found["formed"],
        "client": found["client_share"] * 100,
    }


def rebalanced(arguments: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.members", *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"the members failed: {done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
