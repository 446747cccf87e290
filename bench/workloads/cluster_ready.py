"""`ottla.testing.Cluster()` inside a running interpreter: from the call until a client has an answer to Metadata.

Twenty clusters, one after the other, in one process; importing ottla.testing is not counted, as a suite pays it once.
Apache Kafka has no counterpart.
"""

import json
import subprocess
import sys

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, value_at_most
from bench.servers import REPOSITORY

NAME = "cluster"
METRIC = Metric("seconds", "Cluster() ready", "ms", value_at_most(150))
PATIENCE_SECONDS = 120.0


def run(context: Context) -> list[Measure]:
    command = [sys.executable, "-m", "bench.cluster_clock", str(context.amount(20, 5))]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"Cluster() failed: {done.stderr[-1000:]}")
    taken = tuple(seconds * 1e3 for seconds in json.loads(done.stdout))
    return [Measure(NAME, METRIC, (), taken)]
