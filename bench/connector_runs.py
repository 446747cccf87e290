"""A connector of ours at work: a job on Spark that ends when there is nothing left to carry."""

import os
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any

from bench.process_cost import Meter
from bench.streams_runs import Progress
from ottla.connect.jobs.query import ConnectorWork
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.start import delivery

GLANCE_SECONDS = 0.02


def job(name: str, config: Mapping[str, str], bootstrap: str, tasks: int = 1) -> JobSpec:
    return JobSpec(name, config, bootstrap, "bench", "bench-offsets", tempfile.mkdtemp(), once=True, tasks=tasks)


def carried(spark: Any, spec: JobSpec) -> list[Progress]:
    """From the start of its query to its end: what was committed when, and the CPU of Spark and all its workers."""
    meter = Meter(os.getpid())
    before, began = meter.total(), time.perf_counter()
    work = ConnectorWork(spark.newSession(), spec, delivery(spec))
    seen, ended = [Progress(began, 0, 0.0)], threading.Event()

    def look() -> None:
        written = work.progress()["counts"].get("written", 0)
        if written > seen[-1].committed:
            seen.append(Progress(time.perf_counter(), written, meter.total() - before))

    def follow() -> None:
        while not ended.wait(GLANCE_SECONDS):
            look()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        work.run()
    finally:
        ended.set()
        follower.join()
    look()
    return seen
