"""Lines joined with a table by a column expression."""

from os import environ

from ottla.streams import Consumed, Joined, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import concat, left, right

builder = StreamsBuilder()
table = builder.table(environ["BENCH_TABLE"], Consumed(Serdes.string, Serdes.string))
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .join(table, concat(left, "|", right), joined=Joined(Serdes.string, Serdes.string, Serdes.string))
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.string))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
