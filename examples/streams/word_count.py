r"""Counts words: Kafka's own quick start.

    ottla topics create streams-plaintext-input streams-wordcount-output
    echo 'all streams lead to kafka' | ottla produce streams-plaintext-input
    ottla streams run examples/streams/word_count.py --once
    ottla consume streams-wordcount-output -o start -e -f '%k %v{long}\n'

Without --once it runs until Ctrl-C. Each word comes out with its count so far, as a string and a long of 8 bytes.
"""

from ottla.streams import Consumed, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import value

builder = StreamsBuilder()
(
    builder.stream("streams-plaintext-input", Consumed(Serdes.string, Serdes.string))
    .flat_map_values(value.lower().split(r"\W+"))
    .group_by(value)
    .count(Materialized("counts"))
    .to_stream()
    .to("streams-wordcount-output", Produced(Serdes.string, Serdes.long))
)

app = StreamsApp("streams-wordcount", builder.build())
