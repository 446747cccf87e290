r"""Alerts about cards that are used too often: a processor with a store, and a punctuator that looks every minute.

    ottla topics create payments fraud-alerts
    for n in 1 2 3 4 5; do echo 'card-1:{"amount": 90}'; done | ottla produce payments --key-separator :
    echo 'card-2:{"amount": 5}' | ottla produce payments --key-separator : --timestamp $(($(date +%s) + 90))000
    ottla streams run examples/streams/fraud_alerts.py --once
    ottla consume fraud-alerts -o start -e -f '%k %v\n'

The minute is one of event time: it passes when a payment comes that is so much later, as that of card-2 above. Then
every card that had more than three payments, or more than 1,000 in sum, is told, and counting begins anew. As in Kafka
Streams, the first record of all makes the punctuator run at once: of the five payments above four are told.
"""

from typing import Any

from ottla.streams import (
    Consumed,
    Processor,
    ProcessorContext,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsApp,
    StreamsBuilder,
)

MINUTE_MS = 60_000
MOST_PAYMENTS = 3
HIGHEST_SUM = 1_000


class Watch(Processor):
    """Counts payments per card, and tells of those that are too many."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._spent: Any = context.state_store("spent")
        context.schedule(MINUTE_MS, PunctuationType.STREAM_TIME, self._look)

    def process(self, record: Record) -> None:
        if record.key is None or record.value is None:
            return
        so_far = self._spent.get(record.key) or {"payments": 0, "sum": 0}
        amount = record.value["amount"]
        self._spent.put(record.key, {"payments": so_far["payments"] + 1, "sum": so_far["sum"] + amount})

    def _look(self, now_ms: int) -> None:
        for card, spent in list(self._spent.all()):
            if spent["payments"] > MOST_PAYMENTS or spent["sum"] > HIGHEST_SUM:
                self._context.forward(Record(card, spent, now_ms))
            self._spent.delete(card)


builder = StreamsBuilder()
builder.add_state_store(Stores.key_value("spent", Serdes.string, Serdes.json))
(
    builder.stream("payments", Consumed(Serdes.string, Serdes.json))
    .process(Watch, stores=["spent"])
    .to("fraud-alerts", Produced(Serdes.string, Serdes.json))
)

app = StreamsApp("fraud-alerts", builder.build())
