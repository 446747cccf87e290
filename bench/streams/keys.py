"""How often each key came, for very many keys."""

from os import environ

from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .group_by_key()
    .count()
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.long))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
