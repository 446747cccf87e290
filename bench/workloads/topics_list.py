"""Wall time of `ottla topics list` beside Kafka's TopicCommand --list, each a new process against its own server."""

import subprocess
import time

from bench.context import Context
from bench.java_tools import ToolFailed, list_topics
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import interleaved
from bench.servers import Ottla, Server

NAME = "command line"
METRICS = (Metric("ms", "topics list", "ms", value_at_most(200)),)
CALLS_PER_TRIAL = 3


def run(context: Context) -> list[Measure]:
    return measures(NAME, METRICS, interleaved(context.pair(), context.rounds, trial, warmups=1))


def trial(server: Server) -> Trial:
    began = time.perf_counter()
    for _ in range(CALLS_PER_TRIAL):
        if isinstance(server, Ottla):
            ottla_topics_list(server)
        else:
            list_topics(server.bootstrap)
    return {"ms": (time.perf_counter() - began) * 1e3 / CALLS_PER_TRIAL}


def ottla_topics_list(server: Server) -> None:
    command = [str(Ottla.executable), "topics", "list", "--bootstrap-server", server.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolFailed(f"ottla topics list failed: {done.stderr[-1000:]}")
