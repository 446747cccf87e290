"""Lines joined with a table by a Python callable."""

from os import environ

from ottla.streams import Consumed, Joined, Produced, Serdes, StreamsApp, StreamsBuilder

builder = StreamsBuilder()
table = builder.table(environ["BENCH_TABLE"], Consumed(Serdes.string, Serdes.string))
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .join(table, lambda line, row: f"{line}|{row}", joined=Joined(Serdes.string, Serdes.string, Serdes.string))
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.string))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
