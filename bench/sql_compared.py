"""A statement beside the same topology by the DSL, over the same JSON, in turn."""

import json
from functools import partial

from bench.context import Context
from bench.measures import Measure, Metric, measures, ratio_at_least
from bench.rounds import interleaved
from bench.servers import Ottla, Server
from bench.streams_compared import MOST_ROUNDS, PARTITIONS, QUICK_SHARE, Contender, ottla, trial
from bench.streams_runs import BEGAN_MS, KEYS, LINES_PER_SECOND_OF_EVENT_TIME, produce

RECORDS = 4_000_000


def beside_the_dsl(context: Context, what: str) -> list[Measure]:
    """`sql_WHAT.py` and `dsl_WHAT.py` of bench/streams."""
    server = context.new_server(Ottla)
    server.start()
    records = context.amount(RECORDS, RECORDS // QUICK_SHARE)
    metrics = (
        Metric("rate", "records per second", "1/s", ratio_at_least(0.9)),
        Metric("cpu", "application CPU per million records", "s"),
    )
    with context.topic(server, PARTITIONS, kept=True) as source:
        feed_orders(server, source, records)
        contenders = (
            Contender("DSL", ottla(f"dsl_{what}.py").command),
            Contender("SQL", ottla(f"sql_{what}.py").command),
        )
        one = partial(trial, context, server, source, "", records)
        rounds = 1 if context.quick else min(context.rounds, MOST_ROUNDS)
        taken = measures(f"SQL, {what}", metrics, interleaved(contenders, rounds, one))
    context.discard(server)
    return taken


def feed_orders(server: Server, topic: str, records: int) -> None:
    """About 100 bytes each; keys repeat, and timestamps advance evenly."""
    rows = (
        (
            f"key{number % KEYS}",
            json.dumps(
                {
                    "CUSTOMER": f"customer {number % 977}",
                    "ITEM": f"item{number % 31}",
                    "PRICE": number % 500 / 4,
                    "N": number % 7,
                },
                separators=(",", ":"),
            ),
            number % PARTITIONS,
            BEGAN_MS + number * 1000 // LINES_PER_SECOND_OF_EVENT_TIME,
        )
        for number in range(records)
    )
    produce(server, topic, rows)
