"""Lines counted by key and session."""

from os import environ

from ottla.streams import Consumed, Produced, Serdes, SessionWindows, StreamsApp, StreamsBuilder

builder = StreamsBuilder()
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .group_by_key()
    .windowed_by(SessionWindows.of(gap_ms=1_000, grace_ms=1_000))
    .count()
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.session_windowed(Serdes.string), Serdes.long))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
