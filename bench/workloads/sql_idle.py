"""Ten persistent queries of one SQL server that have nothing to do: the CPU of the server and its Spark host, together.

Five filters, four counts and a windowed one, over one stream. Each has written a row before it is taken for idle; then
the CPU of all processes is taken over 30 s.
"""

import time

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.process_cost import Meter, memory_of
from bench.servers import Ottla
from bench.sql_processes import SqlServer, running

METRICS = (
    Metric("cpu", "ten idle queries, CPU", "% of a core", value_at_most(25)),
    Metric("memory", "server and Spark host", "MB"),
)
SETTLED_SECONDS = 20.0
LOOK_SECONDS = 0.25
START_SECONDS = 300.0
CREATE = "CREATE STREAM S (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=2, VALUE_FORMAT='JSON');"
QUERIES = (
    *(f"CREATE STREAM F{n} AS SELECT ID, N * {n + 2} AS N FROM S WHERE N > 0;" for n in range(5)),
    *(f"CREATE TABLE C{n} AS SELECT ID, COUNT(*) AS C, SUM(N) AS T FROM S GROUP BY ID;" for n in range(4)),
    "CREATE TABLE W AS SELECT ID, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY ID;",
)
SINKS = (*(f"F{n}" for n in range(5)), *(f"C{n}" for n in range(4)), "W")


def run(context: Context) -> list[Measure]:
    taken = [trial(context) for _ in range(1 if context.quick else min(context.rounds, 2))]
    return measures("SQL, idle queries", METRICS, ([], taken))


def trial(context: Context) -> Trial:
    node = context.new_server(Ottla)
    node.start()
    with running(node, {"sql.state.dir": str(node.directory / "sql")}) as server:
        server.ksql(CREATE + "".join(QUERIES))
        server.ksql("INSERT INTO S VALUES ('a', 1);")
        _all_wrote(server)
        time.sleep(SETTLED_SECONDS)
        seconds = context.amount(30, 10)
        used = _used(Meter(server.process.pid), seconds)
        memory = memory_of(server.process.pid).resident / 1e6
    context.discard(node)
    return {"cpu": used / seconds * 100, "memory": memory}


def _all_wrote(server: SqlServer) -> None:
    deadline = time.monotonic() + START_SECONDS
    for sink in SINKS:
        while not server.rows(f"SELECT * FROM {sink};"):
            if time.monotonic() > deadline:
                raise ToolFailed(f"nothing came into {sink}: {server.ksql('SHOW QUERIES;')}")
            time.sleep(1)


def _used(meter: Meter, seconds: float) -> float:
    before, until = meter.total(), time.monotonic() + seconds
    after = before
    while time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        after = meter.total()
    return after - before
