"""Counts and sums by key and minute by the DSL; `sql_windows.py` is the same in SQL."""

from os import environ

from ottla.streams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import aggregates, count, ksql_sum, value
from ottla.streams.windows import TimeWindows

ORDER = Serdes.json("CUSTOMER STRING, ITEM STRING, PRICE DOUBLE, N INT")
SUMS = Serdes.json("ORDERS LONG, ITEMS INT")
MINUTE_MS = 60_000

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, ORDER))
    .group_by_key(Grouped(Serdes.string, ORDER))
    .windowed_by(TimeWindows.of(MINUTE_MS, grace_ms=10_000))
    .aggregate(
        aggregates(ORDERS=count(), ITEMS=ksql_sum(value["N"])),
        materialized=Materialized(key_serde=Serdes.string, value_serde=SUMS),
    )
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.time_windowed(Serdes.string, MINUTE_MS), SUMS))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
