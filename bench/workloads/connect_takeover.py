"""Two Connect workers, and the one that runs a connector killed: how long until it runs on the other, and until a line
written after the kill is in the topic. The other one has been idle, and stands by.

Java's is measured beside it, with the same file and kill, `scheduled.rebalance.max.delay.ms` at 3 s (its default is
five minutes) and `session.timeout.ms` at its 10 s.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.kafka_jars import connect_jars, java_command
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import process_tree
from bench.rounds import interleaved
from bench.servers import Ottla, Server, free_ports
from bench.workloads.connect import Worker

METRICS = (
    Metric("running", "until it runs elsewhere", "s", value_at_most(15)),
    Metric("first", "until a line written after the kill is committed", "s"),
)
PATIENCE_SECONDS = 300.0
GLANCE_SECONDS = 0.05
STANDBY_SECONDS = 30.0
"""For the other one to get ready."""
FILE = """\
bootstrap.servers={bootstrap}
group.id={name}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic={name}-configs
offset.storage.topic={name}-offsets
status.storage.topic={name}-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
offset.flush.interval.ms=1000
scheduled.rebalance.max.delay.ms=3000
listeners=http://127.0.0.1:{port}
"""


class Contender(NamedTuple):
    name: str
    command: Callable[[Path], list[str]]


def _java(file: Path) -> list[str]:
    return java_command("org.apache.kafka.connect.cli.ConnectDistributed", str(file), jars=connect_jars())


def _ottla(file: Path) -> list[str]:
    return [sys.executable, "-m", "ottla", "connect", str(file)]


CONTENDERS = (Contender("java", _java), Contender("ottla", _ottla))


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    numbers = iter(range(100))
    taken = interleaved(
        CONTENDERS, min(3, context.rounds), lambda contender: _trial(context, server, contender, next(numbers))
    )
    context.discard(server)
    return measures("Connect, a worker killed", METRICS, taken)


class _Running(NamedTuple):
    worker: Worker
    id: str
    process: "subprocess.Popen[bytes]"


def _trial(context: Context, server: Server, contender: Contender, number: int) -> Trial:
    name = f"{contender.name}-{number}"
    directory = context.directory / f"takeover-{name}"
    directory.mkdir()
    lines = directory / "lines.txt"
    lines.write_text("before\n")
    with ExitStack() as opened:
        both = [opened.enter_context(_Started(contender, server, name, directory, port)) for port in free_ports(2)]
        config = {"connector.class": "FileStreamSource", "file": str(lines), "topic": name, "tasks.max": "1"}
        status, said = both[0].worker.ask("PUT", "/connectors/c/config", config)
        if status != 201:
            raise ToolFailed(f"a connector was not created: {said}")
        works = _runs(both)
        _until(lambda: _committed(server, name) == 1, "the first line")
        time.sleep(STANDBY_SECONDS)
        other = next(each for each in both if each is not works)
        began = time.perf_counter()
        works.process.kill()
        with lines.open("a") as file:
            file.write("after\n")
        _until(lambda: _where(other) == ("RUNNING", other.id), "a take-over")
        running = time.perf_counter() - began
        _until(lambda: _committed(server, name) >= 2, "a line after it")
        return {"running": running, "first": time.perf_counter() - began}


class _Started:
    def __init__(self, contender: Contender, server: Server, name: str, directory: Path, port: int) -> None:
        file = directory / f"{port}.properties"
        file.write_text(FILE.format(bootstrap=server.bootstrap, name=name, port=port))
        self._command = contender.command(file)
        self._log = directory / f"{port}.log"
        self._port = port

    def __enter__(self) -> _Running:
        with self._log.open("wb") as out:
            process = subprocess.Popen(self._command, stdout=out, stderr=out)
        self._process = process
        worker = Worker(self._port)
        _until(lambda: _is_up(worker, process), f"a worker: {self._log.read_text(errors='replace')[-2000:]}")
        return _Running(worker, f"127.0.0.1:{self._port}", process)

    def __exit__(self, *_: object) -> None:
        for pid in process_tree(self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()


def _is_up(worker: Worker, process: "subprocess.Popen[bytes]") -> bool:
    if process.poll() is not None:
        raise ToolFailed(f"a worker ended with {process.returncode}")
    try:
        return worker.ask("GET", "/health")[0] == 200
    except (OSError, json.JSONDecodeError):
        return False


def _runs(both: list[_Running]) -> _Running:
    """Who has the connector and its task."""
    _until(lambda: _where(both[0])[0] == "RUNNING", "a connector that runs")
    id = _where(both[0])[1]
    return next(each for each in both if each.id == id)


def _where(running: _Running) -> tuple[str, str]:
    """Of the task: it is what carries records."""
    status, body = running.worker.ask("GET", "/connectors/c/status")
    tasks: list[Any] = body.get("tasks", []) if status == 200 else []
    return (tasks[0]["state"], tasks[0]["worker_id"]) if tasks else ("", "")


def _committed(server: Server, topic: str) -> int:
    settings = {"bootstrap.servers": server.bootstrap, "group.id": "bench", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 0, "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(10, timeout=0.5)
        return sum(1 for record in found if record.error() is None)
    finally:
        consumer.close()


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise ToolFailed(f"{what} never came")
        time.sleep(GLANCE_SECONDS)
