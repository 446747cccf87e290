"""Java's Kafka Streams beside ottla's streams on Spark, both on one ottla node: words counted, and lines by window.

Both write their output exactly once (exactly_once_v2), with two threads or local[*] on 2 cores, and the defaults
otherwise. The input of 2 partitions lies in the topic before the application starts: lines of five words out of 10,000
(and 1,000 keys, 5,000 lines per second of event time, for the windows of 10 s). The rate is that of committed input
lines after the first third, until two million lines of words, or twelve million for the windows, are committed. Words
are split by a column expression once, by Python callables once.
"""

from bench.context import Context
from bench.measures import Measure, ratio_at_least
from bench.servers import Ottla
from bench.streams_compared import PARTITIONS, QUICK_SHARE, Case, compared
from bench.streams_runs import feed

CASES = (
    Case("words, column expressions", "words", "words.py", 2_000_000, ratio_at_least(2.0)),
    Case("words, Python callables", "words", "words_in_python.py", 2_000_000, ratio_at_least(1.0)),
    Case("windows, column expressions", "windows", "windows.py", 12_000_000, ratio_at_least(2.0)),
)


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    found = []
    with context.topic(server, PARTITIONS, kept=True) as source:
        most = max(case.lines for case in CASES)
        feed(server, source, context.amount(most, most // QUICK_SHARE), PARTITIONS)
        for case in CASES:
            found += compared(context, server, case, source)
    context.discard(server)
    return found
