"""Push queries: 5,000 records a second, from a record's timestamp to its row at the client.

A SQL server without Spark in front of a node; one client at a time, over HTTP/1.1. First a filter and a projection of a
stream, then a count by key, which the server computes, too. Measured for 20 s after a warm-up of 5 s.
"""

import json
import threading
import time
from statistics import quantiles

from confluent_kafka import Producer

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import cpu_of
from bench.servers import Ottla, Server
from bench.sql_processes import SqlServer, running

RATE = 5_000
KEYS = 200
WARM_SECONDS = 5.0
ENOUGH = 100
"""Rows: fewer say nothing about percentiles."""
METRICS = (
    Metric("plain_p50", "record in to push row out, p50", "ms", value_at_most(1000)),
    Metric("plain_p99", "record in to push row out, p99", "ms"),
    Metric("plain_cpu", "server, CPU", "% of a core"),
    Metric("counted_p50", "record in to count out, p50", "ms", value_at_most(1000)),
    Metric("counted_p99", "record in to count out, p99", "ms"),
    Metric("counted_cpu", "server, CPU", "% of a core"),
)
QUERIES = {
    "plain": "SELECT ROWTIME AS AT, UCASE(ITEM) AS ITEM FROM {} WHERE N > 0 EMIT CHANGES;",
    "counted": "SELECT ITEM, MAX(ROWTIME) AS AT, COUNT(*) AS C FROM {} GROUP BY ITEM EMIT CHANGES;",
}
PLACES = {"plain": 0, "counted": 1}
"""Of the time in a row."""


def run(context: Context) -> list[Measure]:
    node = context.new_server(Ottla)
    node.start()
    taken = [trial(context, node) for _ in range(1 if context.quick else min(context.rounds, 3))]
    context.discard(node)
    return measures("SQL, push", METRICS, ([], taken))


def trial(context: Context, node: Server) -> Trial:
    found: dict[str, float] = {}
    with running(node) as server, context.topic(node, 2) as topic:
        name = topic.upper().replace("-", "_")
        server.ksql(f"CREATE STREAM {name} (ITEM STRING, N INT) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');")
        for what, sql in QUERIES.items():
            orders = Orders(node, topic)
            orders.start()
            try:
                ages, cpu = seen(server, sql.format(name), PLACES[what], context.amount(20, 5))
            finally:
                orders.ending.set()
                orders.join()
            if len(ages) < ENOUGH:
                raise ToolFailed(f"only {len(ages)} rows of {sql} came")
            percentiles = quantiles(ages, n=100)
            found |= {f"{what}_p50": percentiles[49], f"{what}_p99": percentiles[98], f"{what}_cpu": cpu * 100}
    return found


def seen(server: SqlServer, sql: str, place: int, seconds: float) -> tuple[list[float], float]:
    """Ages of rows in ms, and the share of a core that the server took."""
    ages: list[float] = []
    with server.pushed(sql) as rows:
        warm = time.monotonic() + WARM_SECONDS
        before, began = cpu_of(server.process.pid), warm
        for row in rows:
            now = time.monotonic()
            if now < warm:
                before, began = cpu_of(server.process.pid), now
                continue
            ages.append(time.time() * 1000 - row[place])
            if now > began + seconds:
                return ages, cpu_of(server.process.pid).since(before).total / (now - began)
    return ages, 0.0


class Orders(threading.Thread):
    """Sends records at an even pace, each with the moment at which it was due as its timestamp."""

    def __init__(self, node: Server, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5})
        self._topic = topic
        self.ending = threading.Event()

    def run(self) -> None:
        began, sent = time.time(), 0
        while not self.ending.is_set():
            due = int((time.time() - began) * RATE)
            for number in range(sent, due):
                at = int((began + number / RATE) * 1000)
                value = json.dumps({"ITEM": f"item{number % KEYS}", "N": number % 9 + 1})
                self._producer.produce(self._topic, value, timestamp=at)
            sent = due
            self._producer.poll(0)
            time.sleep(0.005)
        self._producer.flush(30)
