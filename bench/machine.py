"""The facts about the machine that a reader needs to judge the numbers, and nothing that names it."""

import os
import platform
import subprocess
import time
from pathlib import Path

import confluent_kafka

from bench.java_tools import java_version
from bench.kafka_jars import KAFKA_VERSION
from bench.servers import Ottla


def facts() -> list[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        f"{len(os.sched_getaffinity(0))} cores ({processor()}), {memory / 1e9:.0f} GB of memory, {platform.system()}",
        f"Python {platform.python_version()} ({platform.python_implementation()}), Java {java_version()}",
        f"Apache Kafka {KAFKA_VERSION}, librdkafka {confluent_kafka.libversion()[0]}",
        f"ottla {form_of_ottla()}",
    ]


def form_of_ottla() -> str:
    """Whether the server that is measured runs from its sources or compiled (`make wheel`)."""
    asked = [str(Ottla.executable.parent / "python"), "-c", "import ottla.storage.log as log; print(log.__file__)"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return "from its sources" if found.endswith(".py") else "from its wheel, the path of a record compiled"


def busy_share(seconds: float = 3.0) -> float:
    """How much of the machine others use, asked before a workload starts its servers."""
    idle, total = _ticks()
    time.sleep(seconds)
    idle_after, total_after = _ticks()
    return 1 - (idle_after - idle) / (total_after - total)


def _ticks() -> tuple[int, int]:
    fields = [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str:
    """The sources that are measured."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown sources"
