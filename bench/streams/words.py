"""Words counted by column expressions."""

from os import environ

from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import value

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .flat_map_values(value.split(" "))
    .group_by(value)
    .count()
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.long))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
