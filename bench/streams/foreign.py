"""Lines as a table, joined with another one by the key that their first word names."""

from os import environ

from ottla.streams import Consumed, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder

ROWS = 1_000


def row_of(line: str) -> str:
    return f"key{int(line[4 : line.index(' ')]) % ROWS}"


builder = StreamsBuilder()
table = builder.table(environ["BENCH_TABLE"], Consumed(Serdes.string, Serdes.string))
(
    builder.table(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .join(
        table,
        lambda line, row: f"{line}|{row}",
        Materialized(key_serde=Serdes.string, value_serde=Serdes.string),
        foreign_key=row_of,
    )
    .to_stream()
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.string))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
