"""What somebody writes who wants a connector: a config and one function.

    class Config(spi.Config):
        city: str
        topic: str = "weather"

    class Weather(spi.Source[Config]):
        def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
            now = ask(self.config.city)
            return spi.Read([spi.Row(self.config.topic, now)], end={"seen": now["time"]})

    class Chat(spi.Sink[ChatConfig]):
        def write(self, batch: spi.Batch) -> spi.Verdicts:
            for record in batch.records:
                post(record.value)
            return ()

A source is asked again and again for what comes behind `start`, which is the `end` of the read before. What it gave and
that end are written in one transaction, so whatever dies in between, nothing is lost and nothing is there twice. A sink
is given the records of some partitions in order; those that it names in its verdicts become dead letters.

Neither knows of Spark or of Kafka: `ottla.testing.connect` runs them without both. They are found by the entry point
group `ottla.connectors`, or by `module:Class` in `connector.class`.

`config` turns the strings of a connector's JSON into the model and tells which keys there are; `source` and `sink` are
the two contracts; `measures` are metrics of its own that a source may have; `failures` has the exceptions that mean
something to whoever runs a connector.
"""

from ottla.connect.spi.config import Config as Config
from ottla.connect.spi.config import ConfigRefused as ConfigRefused
from ottla.connect.spi.config import Everything as Everything
from ottla.connect.spi.config import Foreign as Foreign
from ottla.connect.spi.config import Key as Key
from ottla.connect.spi.config import Secret as Secret
from ottla.connect.spi.config import keys_of as keys_of
from ottla.connect.spi.config import parse as parse
from ottla.connect.spi.failures import BadRecord as BadRecord
from ottla.connect.spi.failures import ConnectorFailed as ConnectorFailed
from ottla.connect.spi.failures import TryAgain as TryAgain
from ottla.connect.spi.measures import METER as METER
from ottla.connect.spi.measures import VALUE as VALUE
from ottla.connect.spi.measures import Observed as Observed
from ottla.connect.spi.measures import gauge as gauge
from ottla.connect.spi.positions import number_of as number_of
from ottla.connect.spi.positions import text_of as text_of
from ottla.connect.spi.sink import Batch as Batch
from ottla.connect.spi.sink import Columns as Columns
from ottla.connect.spi.sink import OneByOne as OneByOne
from ottla.connect.spi.sink import Refused as Refused
from ottla.connect.spi.sink import Sink as Sink
from ottla.connect.spi.sink import Span as Span
from ottla.connect.spi.sink import Verdicts as Verdicts
from ottla.connect.spi.source import Copies as Copies
from ottla.connect.spi.source import JsonForm as JsonForm
from ottla.connect.spi.source import Lines as Lines
from ottla.connect.spi.source import Offset as Offset
from ottla.connect.spi.source import Partition as Partition
from ottla.connect.spi.source import Prepared as Prepared
from ottla.connect.spi.source import Read as Read
from ottla.connect.spi.source import Row as Row
from ottla.connect.spi.source import Source as Source
from ottla.connect.spi.source import Table as Table
from ottla.connect.spi.source import Texts as Texts
from ottla.connect.spi.source import Unreadable as Unreadable
