"""`/metrics` of a node with 10,000 partitions: how long a scrape takes, and how long it keeps others waiting.

One node, 100 topics of 100 partitions, each with its series. While one client scrapes, another asks for ApiVersions
again and again: the longest that it waits is the longest that the loop was held. The same without a scrape is beside
it, as the machine's own share. The first scrape of all, with which the server is loaded, stands by itself and counts as
well. Apache Kafka has no counterpart without an exporter.
"""

import http.client
import threading
import time
from collections.abc import Callable

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench import wire
from bench.context import Context
from bench.measures import Measure, Metric, value_at_most
from bench.process_cost import cpu_of, memory_of
from bench.servers import Ottla, Server, free_ports, settle

METRICS = (
    Metric("scrape", "/metrics", "ms", value_at_most(300)),
    Metric("hold", "longest wait of another client meanwhile", "ms", value_at_most(5)),
    Metric("first_hold", "the same with the first scrape of all", "ms", value_at_most(5)),
    Metric("rest", "the same without a scrape", "ms"),
    Metric("cpu", "server CPU per scrape", "ms"),
    Metric("samples", "samples", ""),
    Metric("resident", "resident, after them", "MB"),
)
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.001
"""Between two questions: the node is to be busy with the scrape, not with them."""


def run(context: Context) -> list[Measure]:
    topics = context.amount(100, 10)
    (port,) = free_ports(1)
    server = context.new_server(Ottla)
    with server.properties.open("a") as file:
        file.write(f"http.listeners=http://127.0.0.1:{port}\n")
    server.start()
    create(server, topics)
    first, *others = [trial(server, port) for _ in range(1 + max(3, context.rounds))]
    context.discard(server)
    name = f"metrics, {topics * PARTITIONS_PER_TOPIC:,} partitions"
    first_hold = (first["hold"],)
    return [
        Measure(name, metric, (), first_hold if metric.key == "first_hold" else tuple(t[metric.key] for t in others))
        for metric in METRICS
    ]


def create(server: Server, topics: int) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    names = [f"many-{number}" for number in range(topics)]
    for first in range(0, topics, TOPICS_PER_REQUEST):
        some = [NewTopic(name, PARTITIONS_PER_TOPIC, 1) for name in names[first : first + TOPICS_PER_REQUEST]]
        for done in admin.create_topics(some).values():
            done.result(PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(1 for _ in (server.directory / "data").glob("many-*")) < topics * PARTITIONS_PER_TOPIC:
        assert time.monotonic() < deadline, "the logs are not there"
        time.sleep(0.1)
    settle()


def trial(server: Server, port: int) -> dict[str, float]:
    rest, _ = longest_wait(server, lambda: time.sleep(0.3))
    before = cpu_of(server.pid)
    text = b""
    took = 0.0

    def work() -> None:
        nonlocal text, took
        began = time.perf_counter()
        text = scrape(port)
        took = time.perf_counter() - began

    hold, asked = longest_wait(server, work)
    cpu = cpu_of(server.pid).since(before)
    assert asked > 0
    return {
        "scrape": took * 1e3,
        "hold": hold * 1e3,
        "rest": rest * 1e3,
        "cpu": cpu.total * 1e3,
        "samples": sum(not line.startswith(b"#") for line in text.splitlines()),
        "resident": memory_of(server.pid).resident / 1e6,
    }


def scrape(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()
    finally:
        connection.close()


def longest_wait(server: Server, work: Callable[[], None]) -> tuple[float, int]:
    """Seconds, and how many were asked while `work` was done."""
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with server.connect() as connection:
            while not over.wait(PAUSE_SECONDS):
                began = time.perf_counter()
                connection.ask(wire.request(wire.API_VERSIONS, 0, b""))
                waits.append(time.perf_counter() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        work()
    finally:
        over.set()
        asking.join()
    return max(waits), len(waits)
