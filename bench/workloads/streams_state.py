"""A processor with state: a number per key is read, added to, written and sent on, for every line.

Java's Kafka Streams and ottla's streams on Spark, both on one ottla node. As in streams_counts: exactly once, 2
partitions, the input lies in the topic before the application starts, the rate is that of committed lines after the
first third. 1,000 keys; the store has a changelog.
"""

from bench.context import Context
from bench.measures import Measure, Target
from bench.servers import Ottla
from bench.streams_compared import PARTITIONS, QUICK_SHARE, Case, compared
from bench.streams_runs import feed

CASE = Case("state per key in Python", "state", "state.py", 2_000_000, Target(100_000, of_ratio=False, at_least=True))


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    with context.topic(server, PARTITIONS, kept=True) as source:
        feed(server, source, context.amount(CASE.lines, CASE.lines // QUICK_SHARE), PARTITIONS)
        found = compared(context, server, CASE, source)
    context.discard(server)
    return found
