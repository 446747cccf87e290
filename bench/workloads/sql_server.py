"""A SQL server by itself in front of a node: its start, pull queries by key, rows in by /inserts-stream, planning.

The server is a process of its own without Spark; the client, another one, asks over one connection. Pulled is a table
of 10,000 keys, which the first question reads. CPU is that of the SQL server alone. Planning is done in this process: a
statement with a join, a window and functions, parsed, analysed and made a topology; the time is that of the CPU. Apache
Kafka has no counterpart.
"""

import gc
import json
import subprocess
import sys
import time

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target, value_at_most
from bench.process_cost import cpu_of, memory_of
from bench.servers import REPOSITORY, Ottla
from bench.sql_processes import PATIENCE_SECONDS, running
from ottla.sql.compile import topology
from ottla.sql.parser import parse
from ottla.sql.session import Session

METRICS = (
    Metric("start", "start of a SQL server, to its first answer", "s", value_at_most(1)),
    Metric("start_cpu", "CPU of that", "s"),
    Metric("memory", "memory then", "MB", value_at_most(90)),
    Metric("inserts", "rows by /inserts-stream", "1/s", Target(10_000, of_ratio=False, at_least=True)),
    Metric("inserts_cpu", "CPU of one", "µs"),
    Metric("pull_p50", "pull by key, p50", "ms", value_at_most(5)),
    Metric("pull_p99", "pull by key, p99", "ms", value_at_most(30)),
    Metric("pull", "pulls by key", "1/s", Target(500, of_ratio=False, at_least=True)),
    Metric("pull_cpu", "CPU of one", "µs"),
    Metric("plan_p99", "a statement parsed, analysed, planned: p99 of the CPU", "ms", value_at_most(20)),
    Metric("parse", "1,000 statements parsed, CPU", "s", value_at_most(1)),
)
CREATE = (
    "CREATE TABLE bench_items (id INT PRIMARY KEY, item STRING, price DECIMAL(6, 2)) "
    "WITH (KAFKA_TOPIC='bench_items', PARTITIONS=2, VALUE_FORMAT='JSON');"
)
PLANNED = (
    "CREATE TABLE t{} AS SELECT o.user_id, UCASE(u.city) AS city, COUNT(*) AS n, SUM(o.price * 2) AS total "
    "FROM orders o JOIN users u ON o.user_id = u.id WINDOW TUMBLING (SIZE 1 HOUR) WHERE o.price > 1 "
    "GROUP BY o.user_id, UCASE(u.city) HAVING COUNT(*) > 1;"
)


def run(context: Context) -> list[Measure]:
    trials = [trial(context) for _ in range(min(3, context.rounds))]
    return [Measure("SQL server", metric, (), tuple(each[metric.key] for each in trials)) for metric in METRICS]


def trial(context: Context) -> dict[str, float]:
    node = context.new_server(Ottla)
    node.start()
    with running(node) as server:
        pid = server.process.pid
        found = {"start": server.started_s, "start_cpu": cpu_of(pid).total, "memory": memory_of(pid).resident / 1e6}
        server.ksql(CREATE)
        amounts = {"inserts": context.amount(100_000, 20_000), "pull": context.amount(5_000, 500)}
        for what, count in amounts.items():
            before = cpu_of(pid)
            told = _clients(server.port, what, count)
            found[f"{what}_cpu"] = cpu_of(pid).since(before).total * 1e6 / count
            names = ("inserts",) if what == "inserts" else ("pull_p50", "pull_p99", "pull")
            found |= dict(zip(names, told, strict=True))
    context.discard(node)
    found["plan_p99"] = _planning(context.amount(500, 100))
    found["parse"] = _parsing()
    return found


def _clients(port: int, what: str, count: int) -> list[float]:
    command = [sys.executable, "-m", "bench.sql_clients", str(port), what, str(count)]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise ToolFailed(f"the client failed: {done.stderr[-1000:]}")
    found: list[float] = json.loads(done.stdout)
    return found


def _planning(count: int) -> float:
    session = Session()
    sources = (
        "CREATE STREAM orders (user_id STRING KEY, price INT) WITH (KAFKA_TOPIC='o', VALUE_FORMAT='JSON');"
        "CREATE TABLE users (id STRING PRIMARY KEY, city STRING) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');"
    )
    for statement, text in session.statements(sources):
        session.change(statement, text, {"ksql.persistence.default.format.key": "JSON"})
    took = []
    gc.collect()
    gc.freeze()  # as a server does when it is ready; what the bench itself holds is not looked at
    for number in range(count):
        began = time.process_time()
        for statement, text in session.statements(PLANNED.format(number)):
            session.change(statement, text, {"ksql.persistence.default.format.key": "JSON"})
        query = list(session.catalog.queries.values())[-1]
        topology(query.query, query.sink)
        took.append(time.process_time() - began)
    gc.unfreeze()
    return sorted(took)[count * 99 // 100] * 1e3


def _parsing() -> float:
    text = "\n".join(PLANNED.format(number) for number in range(1_000))
    gc.collect()
    gc.freeze()
    began = time.process_time()
    assert len(parse(text)) == 1_000
    took = time.process_time() - began
    gc.unfreeze()
    return took
