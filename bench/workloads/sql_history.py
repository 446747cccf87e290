"""SELECTs over history by a SQL server: a count, a GROUP BY and a rank over 1 M records of JSON of about 100 bytes.

Asked over HTTP, computed by the server's Spark host, which is warm: each is asked once before it is measured. Rows per
second are records read by the time until the answer is there, so a question's fixed cost is in it.
"""

import time

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target, Trial, measures
from bench.servers import Ottla, Server
from bench.sql_compared import feed_orders
from bench.sql_processes import SqlServer, running
from bench.streams_compared import PARTITIONS

RECORDS = 1_000_000
FAST_ENOUGH = Target(150_000, of_ratio=False, at_least=True)
METRICS = (
    Metric("count", "COUNT(*)", "rows/s", FAST_ENOUGH),
    Metric("group", "GROUP BY with COUNT and SUM", "rows/s", FAST_ENOUGH),
    Metric("rank", "RANK() OVER (PARTITION BY ... ORDER BY ...)", "rows/s", FAST_ENOUGH),
)
QUESTIONS = {
    "count": "SELECT COUNT(*) AS N FROM {};",
    "group": "SELECT CUSTOMER, COUNT(*) AS N, SUM(PRICE) AS TOTAL FROM {} GROUP BY CUSTOMER ORDER BY CUSTOMER;",
    "rank": "WITH R AS (SELECT RANK() OVER (PARTITION BY CUSTOMER ORDER BY PRICE DESC) AS PLACE FROM {}) "
    "SELECT COUNT(*) AS N, MAX(PLACE) AS LAST FROM R;",
}
ROWS = {"count": 1, "group": 977, "rank": 1}


def run(context: Context) -> list[Measure]:
    node = context.new_server(Ottla)
    node.start()
    records = context.amount(RECORDS, RECORDS // 10)
    with context.topic(node, PARTITIONS, kept=True) as topic:
        feed_orders(node, topic, records)
        taken = [trial(node, topic, records) for _ in range(1 if context.quick else min(context.rounds, 3))]
    context.discard(node)
    return measures("SQL over history", METRICS, ([], taken))


def trial(node: Server, topic: str, records: int) -> Trial:
    with running(node, {"sql.state.dir": str(node.directory / "sql")}) as server:
        server.ksql(
            "CREATE OR REPLACE STREAM ORDERS (ID STRING KEY, CUSTOMER STRING, ITEM STRING, PRICE DOUBLE, N INT) "
            f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');"
        )
        return {what: records / _asked(server, what, records) for what in QUESTIONS}


def _asked(server: SqlServer, what: str, records: int) -> float:
    sql = QUESTIONS[what].format("ORDERS")
    for _ in range(2):
        began = time.perf_counter()
        rows = server.rows(sql)
        took = time.perf_counter() - began
        if len(rows) != ROWS[what] or (what != "group" and rows[0][0] != records):
            raise ToolFailed(f"{sql} gave {rows[:3]}")
    return took
