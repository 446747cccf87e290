"""Filter, arithmetic and functions of texts by the DSL; `sql_select.py` is the same in SQL."""

from os import environ

from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import concat, struct, upper, value

ORDER = Serdes.json("CUSTOMER STRING, ITEM STRING, PRICE DOUBLE, N INT")
TOTAL = Serdes.json("CUSTOMER STRING, ITEM STRING, TOTAL DOUBLE")

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, ORDER))
    .filter((value["PRICE"] > 10) & (value["N"] > 0))
    .map_values(
        struct(
            CUSTOMER=upper(value["CUSTOMER"]), ITEM=concat(value["ITEM"], "!"), TOTAL=value["PRICE"] * value["N"] + 1
        )
    )
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, TOTAL))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
