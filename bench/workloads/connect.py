"""The Connect worker beside a node: what it costs with nothing to run, and with 20 connectors that run and wait.

The first of the connectors starts Spark: how long until its first record is committed is the cold start, that of the
second the warm one. When all 20 run, idle, the REST API is asked for a status and for the list of all with theirs, one
request after another; then nobody asks for a while, for what idle ones cost. Memory is proportional (shared pages by
share), of everything below the node but the node; CPU is that of node, worker and Spark together.
"""

import http.client
import json
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, value_at_most
from bench.process_cost import Meter, memory_of
from bench.servers import Ottla, Server, free_ports

CONNECTORS = 20
METRICS = (
    Metric("worker", "memory of the worker, nothing to run", "MB", value_at_most(120)),
    Metric("cold", "first record of the first connector, Spark's start in it", "s", value_at_most(15)),
    Metric("cold_cpu", "CPU of that", "s"),
    Metric("warm", "first record of the second one", "s", value_at_most(2)),
    Metric("status_p99", "GET of a status, 20 connectors running, p99", "ms", value_at_most(50)),
    Metric("list_p99", "GET of all with their status, p99", "ms", value_at_most(50)),
    Metric("idle", "CPU of 20 idle connectors", "% of a core", value_at_most(20)),
    Metric("memory", "memory of each of 20", "MB", value_at_most(60)),
)
PATIENCE_SECONDS = 300.0
GLANCE_SECONDS = 0.05
MEGA = 1e6


def run(context: Context) -> list[Measure]:
    trials = [trial(context) for _ in range(min(2, context.rounds))]
    name = f"Connect worker, {CONNECTORS} connectors"
    return [Measure(name, metric, (), tuple(found[metric.key] for found in trials)) for metric in METRICS]


def trial(context: Context) -> dict[str, float]:
    (port,) = free_ports(1)
    server = context.new_server(Ottla)
    with server.properties.open("a") as file:
        file.write(f"connect.listeners=http://127.0.0.1:{port}\n")
    server.start()
    node = memory_of(server.pid).proportional
    worker = Worker(port)
    worker.until("/health", lambda status, _: status == 200)
    time.sleep(2)
    found = {"worker": (memory_of(server.pid).proportional - node) / MEGA}
    meter = Meter(server.pid)
    before = meter.total()
    found["cold"] = first_record(server, worker, 0, meter)
    found["cold_cpu"] = meter.total() - before
    found["warm"] = first_record(server, worker, 1, meter)
    one = memory_of(server.pid).proportional
    for number in range(2, CONNECTORS):
        worker.create(number, server.directory)
    for number in range(CONNECTORS):
        worker.until(f"/connectors/c{number}/status", _is_running)
    requests = context.amount(1_000, 200)
    found["status_p99"] = percentile(
        [worker.timed(f"/connectors/c{each % CONNECTORS}/status") for each in range(requests)]
    )
    found["list_p99"] = percentile([worker.timed("/connectors?expand=status") for _ in range(requests)])
    found["idle"] = idle(meter, context.amount(30, 10))
    found["memory"] = (memory_of(server.pid).proportional - one) / MEGA / (CONNECTORS - 2)
    context.discard(server)
    return found


class Worker:
    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
            return answer.status, json.loads(said) if said else None
        finally:
            connection.close()

    def timed(self, path: str) -> float:
        """Milliseconds."""
        began = time.perf_counter()
        status, _ = self.ask("GET", path)
        if status != 200:
            raise ToolFailed(f"{path} is answered {status}")
        return (time.perf_counter() - began) * 1000

    def until(self, path: str, holds: Any) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds(*self.ask("GET", path)):
            if time.monotonic() > deadline:
                raise ToolFailed(f"{path} never was as it should be: {self.ask('GET', path)}")
            time.sleep(GLANCE_SECONDS)

    def create(self, number: int, directory: Path) -> None:
        """A source over a file of one line, behind which nothing comes."""
        path = directory / f"{number}.txt"
        path.write_text("a line\n")
        config = {
            "connector.class": "FileStreamSource",
            "file": str(path),
            "topic": f"lines-{number}",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }
        status, said = self.ask("PUT", f"/connectors/c{number}/config", config)
        if status != 201:
            raise ToolFailed(f"a connector was not created: {said}")


def _is_running(status: int, body: Any) -> bool:
    return status == 200 and body["connector"]["state"] == "RUNNING"


def first_record(server: Server, worker: Worker, number: int, meter: Meter) -> float:
    settings = {"bootstrap.servers": server.bootstrap, "group.id": f"first-{number}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "allow.auto.create.topics": True, "topic.metadata.refresh.interval.ms": 100})
    consumer.subscribe([f"lines-{number}"])
    consumer.poll(1.0)
    began = time.perf_counter()
    worker.create(number, server.directory)
    try:
        while time.perf_counter() - began < PATIENCE_SECONDS:
            record = consumer.poll(GLANCE_SECONDS)
            meter.total()
            if record is not None and record.error() is None:
                return time.perf_counter() - began
    finally:
        consumer.close()
    raise ToolFailed(f"no record came by connector c{number}")


def idle(meter: Meter, seconds: int) -> float:
    before, began = meter.total(), time.perf_counter()
    while time.perf_counter() - began < seconds:
        time.sleep(0.25)
        meter.total()
    return 100 * (meter.total() - before) / (time.perf_counter() - began)


def percentile(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]
