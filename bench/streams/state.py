"""How many characters each key has had, by a processor with a store."""

from os import environ

from ottla.streams import (
    Consumed,
    Processor,
    ProcessorContext,
    Produced,
    Record,
    Serdes,
    Stores,
    StreamsApp,
    StreamsBuilder,
)


class Seen(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._seen = context.state_store("seen")

    def process(self, record: Record) -> None:
        now = (self._seen.get(record.key) or 0) + len(record.value)
        self._seen.put(record.key, now)
        self._context.forward(record.with_value(now))


builder = StreamsBuilder()
builder.add_state_store(Stores.key_value("seen", Serdes.string, Serdes.long))
(
    builder.stream(environ["BENCH_INPUT"], Consumed(Serdes.string, Serdes.string))
    .process(Seen, stores=["seen"])
    .to(environ["BENCH_OUTPUT"], Produced(Serdes.string, Serdes.long))
)

app = StreamsApp(environ["BENCH_APPLICATION"], builder.build())
