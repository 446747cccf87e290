"""MirrorMaker 2 beside `ottla mirror`, one after the other from one ottla node to another: records of 1 KB, 2 cores.

4 partitions, 600 MB in the source before the mirror starts, two tasks each, one file for both with the defaults of
either. Ours copies in transactions, MirrorMaker does not. The rate is that of what has arrived on the target, after the
first third of it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.context import Context
from bench.java_tools import ToolFailed, producer_performance
from bench.kafka_jars import java_command, mirror_jars
from bench.measures import Measure, Metric, Trial, measures, ratio_at_least
from bench.process_cost import Meter
from bench.rounds import interleaved
from bench.servers import Ottla, Server
from bench.streams_runs import POLL_SECONDS, Progress, behind_the_start

PARTITIONS = 4
SIZE = 1_000
MOST_ROUNDS = 3
PATIENCE_SECONDS = 300.0
METRICS = (
    Metric("rate", "records of 1 KB per second", "1/s", ratio_at_least(1.0)),
    Metric("cpu", "mirror's CPU per million records", "s"),
    Metric("first", "from the start to the first records", "s"),
)
FILE = """\
clusters = {alias}, eu
{alias}.bootstrap.servers = {source}
eu.bootstrap.servers = {target}
{alias}->eu.enabled = true
topics = {topic}
tasks.max = 2
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
config.storage.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
"""


class Contender(NamedTuple):
    name: str
    command: Callable[[Path, Path], list[str]]
    """Given the file and a directory for what it keeps."""


def _mirror_maker(file: Path, state: Path) -> list[str]:
    return java_command("org.apache.kafka.connect.mirror.MirrorMaker", str(file), heap="-Xmx1g", jars=mirror_jars())


def _ottla(file: Path, state: Path) -> list[str]:
    return [sys.executable, "-m", "ottla", "mirror", str(file), "--state-dir", str(state)]


CONTENDERS = (Contender("mirrormaker", _mirror_maker), Contender("ottla", _ottla))


def run(context: Context) -> list[Measure]:
    source, target = context.new_server(Ottla), context.new_server(Ottla)
    for server in (source, target):
        server.start()
    records = context.amount(600_000, 60_000)
    rounds = 1 if context.quick else min(context.rounds, MOST_ROUNDS)
    with context.topic(source, PARTITIONS) as topic:
        producer_performance(source.bootstrap, topic, records, SIZE, records // 10)
        numbers = iter(range(100))
        taken = interleaved(
            CONTENDERS,
            rounds,
            lambda contender: _trial(context, (source, target), topic, f"us{next(numbers)}", records, contender),
        )
    for server in (source, target):
        context.discard(server)
    return measures("mirror, 1 KB", METRICS, taken)


def _trial(
    context: Context, servers: tuple[Server, Server], topic: str, alias: str, records: int, contender: Contender
) -> Trial:
    source, target = servers
    file, log = context.directory / f"{alias}.properties", context.directory / f"{alias}.log"
    addresses = {"source": source.bootstrap, "target": target.bootstrap}
    file.write_text(FILE.format(alias=alias, topic=topic, **addresses))
    # To ask for the end of a topic that is not there takes seconds, in which much is copied.
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    for done in admin.create_topics([NewTopic(f"{alias}.{topic}", PARTITIONS, 1)]).values():
        done.result(PATIENCE_SECONDS)
    command = contender.command(file, context.directory / alias)
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, process_group=0) as process:
        try:
            seen = _observed(process, target, f"{alias}.{topic}", records, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
    rate, cpu = behind_the_start(seen, records)
    return {"rate": rate, "cpu": cpu, "first": seen[1].at - seen[0].at}


def _observed(process: "subprocess.Popen[bytes]", target: Server, topic: str, goal: int, log: Path) -> list[Progress]:
    """Until all has arrived."""
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    seen = [Progress(time.perf_counter(), 0, 0.0)]
    meter = Meter(process.pid)
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "bench", "log_level": 0})
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while seen[-1].committed < goal:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log.read_text(errors="replace")[-2000:]
                raise ToolFailed(f"{seen[-1].committed} of {goal} records were copied:\n{tail}")
            time.sleep(POLL_SECONDS)
            used = meter.total()
            found = sum(consumer.get_watermark_offsets(place, timeout=5)[1] for place in places)
            if found > seen[-1].committed:
                seen.append(Progress(time.perf_counter(), found, used))
    finally:
        consumer.close()
    return seen
