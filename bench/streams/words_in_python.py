"""Words counted by Python callables."""

from os import environ

from ottla.streams import Consumed, Grouped, Produced, Serdes, StreamsApp, StreamsBuilder

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .flat_map_values(lambda line: line.split(" "))
    .group_by(lambda key, word: word, Grouped(key_serde=Serdes.string, value_serde=Serdes.string))
    .count()
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.long))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
