"""The schema registry beside a node, on a topic of 10,000 subjects: its first answer, cached lookups, registrations.

The topic is there before anybody asks: the first answer is that of a process that has just started and read it. Then 8
connections ask without pause, in a process of their own: schemas by id, a version by its schema, and new Avro schemas
of ten fields, each of a new subject, acknowledged by the topic. The CPU is that of node and registry together. Apache
Kafka has no counterpart; Confluent's registry, on a machine in use, gave 90 to 920 lookups and 16 to 68 registrations.
"""

import http.client
import json
import subprocess
import sys
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target, value_at_most
from bench.process_cost import cpu_of
from bench.servers import REPOSITORY, Ottla, Server, free_ports, settle
from ottla.registry.entities import SchemaValue
from ottla.registry.journal.codec import encode
from ottla.registry.machine.records import SchemaPut

METRICS = (
    Metric("first", "first answer of a process that starts and reads 10,000 subjects", "s", value_at_most(3)),
    Metric("first_cpu", "CPU of that", "s"),
    Metric("by_id", "schemas by id", "1/s", Target(2_000, of_ratio=False, at_least=True)),
    Metric("by_id_cpu", "CPU of one", "µs"),
    Metric("find", "versions by schema", "1/s", Target(2_000, of_ratio=False, at_least=True)),
    Metric("find_cpu", "CPU of one", "µs"),
    Metric("register", "registrations", "1/s", Target(200, of_ratio=False, at_least=True)),
    Metric("register_cpu", "CPU of one", "µs"),
)
TOPIC = "_schemas"
PATIENCE_SECONDS = 120.0


def run(context: Context) -> list[Measure]:
    subjects = context.amount(10_000, 1_000)
    trials = [trial(context, subjects) for _ in range(min(3, context.rounds))]
    name = f"schema registry, {subjects:,} subjects"
    return [Measure(name, metric, (), tuple(found[metric.key] for found in trials)) for metric in METRICS]


def trial(context: Context, subjects: int) -> dict[str, float]:
    (port,) = free_ports(1)
    server = context.new_server(Ottla)
    with server.properties.open("a") as file:
        file.write(f"registry.listeners=http://127.0.0.1:{port}\n")
    server.start()
    fill(server, subjects)
    before = cpu_of(server.pid)
    found = {"first": first_answer(port, subjects)}
    found["first_cpu"] = cpu_of(server.pid).since(before).total
    for what, requests in (("by_id", 8_000), ("find", 6_000), ("register", 1_500)):
        before = cpu_of(server.pid)
        took = asked(port, what, context.amount(requests, requests // 10), subjects)
        amount = context.amount(requests, requests // 10)
        found[what] = amount / took
        found[f"{what}_cpu"] = cpu_of(server.pid).since(before).total * 1e6 / amount
    context.discard(server)
    return found


def fill(server: Server, subjects: int) -> None:
    """As a registry would have written them."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topic = NewTopic(TOPIC, 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])[TOPIC].result(PATIENCE_SECONDS)
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(subjects):
        key, value = encode(SchemaPut(SchemaValue(f"s{number}", 1, number + 1, schema=schema_of(number))))
        producer.produce(TOPIC, key=key, value=value)
        producer.poll(0)
    producer.flush(PATIENCE_SECONDS)
    settle()


def schema_of(number: int) -> str:
    """Canonical, so that it is found."""
    fields = [{"name": f"f{each}", "type": "string"} for each in range(10)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, separators=(",", ":"))


def first_answer(port: int, subjects: int) -> float:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/subjects")
    told = json.loads(connection.getresponse().read())
    took = time.perf_counter() - began
    connection.close()
    if len(told) != subjects:
        raise ToolFailed(f"the registry tells {len(told)} of {subjects} subjects")
    return took


def asked(port: int, what: str, requests: int, subjects: int) -> float:
    """How long it took, in seconds."""
    command = [sys.executable, "-m", "bench.registry_clients", str(port), what, str(requests), str(subjects)]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"the registry's client failed: {done.stderr[-1000:]}")
    return float(done.stdout)
