"""Lines counted by key and session, by Java's Kafka Streams and by ottla's streams on Spark, both on one ottla node.

As in streams_counts: exactly once, 2 partitions, the input lies in the topic before the application starts, the rate is
that of committed lines after the first third. Of 1,000 keys a hundred are active at a time, for four seconds of event
time with 5,000 lines per second; a session ends after a second without lines.
"""

from bench.context import Context
from bench.measures import Measure, ratio_at_least
from bench.servers import Ottla
from bench.streams_compared import PARTITIONS, QUICK_SHARE, Case, compared
from bench.streams_runs import feed, in_sessions

CASE = Case("sessions, column expressions", "sessions", "sessions.py", 2_000_000, ratio_at_least(1.0))


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    with context.topic(server, PARTITIONS, kept=True) as source:
        feed(server, source, context.amount(CASE.lines, CASE.lines // QUICK_SHARE), PARTITIONS, in_sessions)
        found = compared(context, server, CASE, source)
    context.discard(server)
    return found
