"""The facts about the machine that a reader needs to judge the numbers, and nothing that names it."""

import os
import platform
from pathlib import Path

import confluent_kafka

from bench.java_tools import java_version
from bench.kafka_jars import KAFKA_VERSION


def facts() -> list[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        f"{len(os.sched_getaffinity(0))} cores ({processor()}), {memory / 1e9:.0f} GB of memory, {platform.system()}",
        f"Python {platform.python_version()} ({platform.python_implementation()}), Java {java_version()}",
        f"Apache Kafka {KAFKA_VERSION}, librdkafka {confluent_kafka.libversion()[0]}",
    ]


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
