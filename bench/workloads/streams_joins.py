"""A stream joined with a table, by Java's Kafka Streams and by ottla's streams on Spark, both on one ottla node.

As in streams_counts: exactly once, 2 partitions, the input lies in the topics before the application starts, the rate
is that of committed lines after the first third. The table has 1,000 rows, all of them older than the lines, and each
line finds its row. What comes out is both in one string: made by a column expression once, by a Python callable once.
Then the lines are a table themselves, of which each update is joined by the key that its first word names (foreign
key), by Python callables.
"""

from bench.context import Context
from bench.measures import Measure, ratio_at_least
from bench.servers import Ottla
from bench.streams_compared import PARTITIONS, QUICK_SHARE, Case, compared
from bench.streams_runs import feed, feed_table

LINES = 3_000_000
CASES = (
    Case("stream-table join, column expressions", "joined", "joined.py", LINES, ratio_at_least(1.0)),
    Case("stream-table join, Python callables", "joined", "joined_in_python.py", LINES, ratio_at_least(0.6)),
    Case("foreign-key join, Python callables", "foreign", "foreign.py", 600_000, ratio_at_least(0.5)),
)


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    found = []
    with context.topic(server, PARTITIONS, kept=True) as source, context.topic(server, PARTITIONS, kept=True) as table:
        feed(server, source, context.amount(LINES, LINES // QUICK_SHARE), PARTITIONS)
        feed_table(server, table, PARTITIONS)
        for case in CASES:
            found += compared(context, server, case, source, table)
    context.discard(server)
    return found
