r"""Statistics of trades: minimum, count and average price per ticker, over five seconds, every second.

    ottla topics create stock-trades stock-statistics
    echo 'ACME:{"price": 21.5, "size": 100}' | ottla produce stock-trades --key-separator :
    ottla streams run examples/streams/stock_statistics.py --once
    ottla consume stock-statistics -o start -e -f '%v\n'

The windows hop: a trade is part of five of them. All of it runs as Spark's own operators. While it runs with
`--queries-port 8088`, `curl http://127.0.0.1:8088/stores/statistics/windows/ACME` shows the windows of one ticker.
"""

from ottla.streams import Consumed, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder, TimeWindows
from ottla.streams.expressions import aggregates, avg, count, min_, value

SIZE_MS = 5_000
STATISTICS = Serdes.json("minimum DOUBLE, trades LONG, average DOUBLE")

builder = StreamsBuilder()
(
    builder.stream("stock-trades", Consumed(Serdes.string, Serdes.json("price DOUBLE, size INT")))
    .filter(value["price"] > 0)
    .group_by_key()
    .windowed_by(TimeWindows.of(SIZE_MS, advance_ms=1_000, grace_ms=1_000))
    .aggregate(
        aggregates(minimum=min_(value["price"]), trades=count(), average=avg(value["price"])),
        materialized=Materialized("statistics", Serdes.string, STATISTICS),
    )
    .to_stream()
    .to("stock-statistics", Produced(Serdes.time_windowed(Serdes.string, SIZE_MS), STATISTICS))
)

app = StreamsApp("stock-statistics", builder.build())
