"""From the command to the first result: `ottla streams run` of a word count whose input lies in its topic already.

The disk is warm, and what is done once for an installation (`ottla streams prepare`) has been done: a first run that is
not counted sees to both. The result is read with read_committed. Then the application has nothing to do: its memory and
its CPU, all processes together, over 20 s.
"""

import subprocess
import sys
import time

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import Meter, memory_of
from bench.servers import Ottla, Server
from bench.streams_runs import Topics, feed, ottla_application, running
from bench.workloads.streams_latency import ages, reader_of, used

METRICS = (
    Metric("seconds", "start to first result", "s", value_at_most(5)),
    Metric("cpu", "start to first result, CPU", "s"),
    Metric("memory", "idle application, memory", "MB", value_at_most(700)),
    Metric("idle", "idle application, CPU", "% of a core", value_at_most(2)),
)
LINES = 1_000
PATIENCE_SECONDS = 120.0
SETTLED_SECONDS = 5.0


def run(context: Context) -> list[Measure]:
    prepare = [sys.executable, "-m", "ottla", "streams", "prepare"]
    subprocess.run(prepare, check=True, capture_output=True, timeout=600)
    server = context.new_server(Ottla)
    server.start()
    trial(context, server)
    taken = [trial(context, server) for _ in range(1 if context.quick else min(context.rounds, 3))]
    context.discard(server)
    return measures("streams, start", METRICS, ([], taken))


def trial(context: Context, server: Server) -> Trial:
    seconds = context.amount(20, 5)
    with context.topic(server, 1, kept=True) as source, context.topic(server, 1, kept=True) as target:
        feed(server, source, LINES, 1)
        name = f"start-{target}"
        log = context.directory / f"{name}.log"
        reader = reader_of(server, target)
        command = ottla_application("words.py", server, context.directory / name)
        began = time.perf_counter()
        with running(command, name, Topics(source, target), log) as process:
            meter = Meter(process.pid)
            while not ages(reader, 0.25, first=True):
                meter.total()
                if process.poll() is not None or time.perf_counter() - began > PATIENCE_SECONDS:
                    raise ToolFailed(f"no result came: {log.read_text(errors='replace')[-2000:]}")
            taken, cpu = time.perf_counter() - began, meter.total()
            time.sleep(SETTLED_SECONDS)
            memory = memory_of(process.pid).proportional / 1e6
            idle = used(Meter(process.pid), seconds) / seconds
            reader.close()
    return {"seconds": taken, "cpu": cpu, "memory": memory, "idle": idle * 100}
