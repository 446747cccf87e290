"""Lines counted by key and window."""

from os import environ

from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder, TimeWindows

WINDOW_MS = 10_000

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .group_by_key()
    .windowed_by(TimeWindows.of(WINDOW_MS, grace_ms=1_000))
    .count()
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.time_windowed(Serdes.string, WINDOW_MS), Serdes.long))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
