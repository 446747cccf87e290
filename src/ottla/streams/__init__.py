"""Kafka Streams for Python: a topology that runs on Spark Structured Streaming.

    from ottla.streams import Serdes, Consumed, StreamsApp, StreamsBuilder

Importing this package is cheap: everything is loaded when it is first used, and Spark only when an application runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp as StreamsApp
    from ottla.streams.builder import StreamsBuilder as StreamsBuilder
    from ottla.streams.errors import NeedsSparkError as NeedsSparkError
    from ottla.streams.errors import StreamsError as StreamsError
    from ottla.streams.graph import InvalidTimestamp as InvalidTimestamp
    from ottla.streams.graph import Reset as Reset
    from ottla.streams.graph import TimestampExtractor as TimestampExtractor
    from ottla.streams.grouped import KGroupedStream as KGroupedStream
    from ottla.streams.grouped import KGroupedTable as KGroupedTable
    from ottla.streams.grouped import SessionWindowedKStream as SessionWindowedKStream
    from ottla.streams.grouped import TimeWindowedKStream as TimeWindowedKStream
    from ottla.streams.kstream import BranchedKStream as BranchedKStream
    from ottla.streams.kstream import KStream as KStream
    from ottla.streams.ktable import GlobalKTable as GlobalKTable
    from ottla.streams.ktable import KTable as KTable
    from ottla.streams.options import Branched as Branched
    from ottla.streams.options import Consumed as Consumed
    from ottla.streams.options import Grouped as Grouped
    from ottla.streams.options import Joined as Joined
    from ottla.streams.options import Materialized as Materialized
    from ottla.streams.options import Produced as Produced
    from ottla.streams.options import Repartitioned as Repartitioned
    from ottla.streams.options import StreamJoined as StreamJoined
    from ottla.streams.options import Suppressed as Suppressed
    from ottla.streams.options import TopologyError as TopologyError
    from ottla.streams.partition_counts import PartitionsError as PartitionsError
    from ottla.streams.processor import Cancellable as Cancellable
    from ottla.streams.processor import FixedKeyProcessor as FixedKeyProcessor
    from ottla.streams.processor import Processor as Processor
    from ottla.streams.processor import ProcessorContext as ProcessorContext
    from ottla.streams.processor import PunctuationType as PunctuationType
    from ottla.streams.record import Record as Record
    from ottla.streams.record import RecordMetadata as RecordMetadata
    from ottla.streams.serdes import Serde as Serde
    from ottla.streams.serdes import SerdeError as SerdeError
    from ottla.streams.serdes import Serdes as Serdes
    from ottla.streams.stores import ValueAndTimestamp as ValueAndTimestamp
    from ottla.streams.test_driver import TopologyTestDriver as TopologyTestDriver
    from ottla.streams.topology import Stores as Stores
    from ottla.streams.topology import Topology as Topology
    from ottla.streams.windows import Emit as Emit
    from ottla.streams.windows import JoinWindows as JoinWindows
    from ottla.streams.windows import SessionWindows as SessionWindows
    from ottla.streams.windows import TimeWindows as TimeWindows
    from ottla.streams.windows import Window as Window
    from ottla.streams.windows import Windowed as Windowed

_WHERE = {
    "app": ("StreamsApp",),
    "builder": ("StreamsBuilder",),
    "errors": ("NeedsSparkError", "StreamsError"),
    "graph": ("InvalidTimestamp", "Reset", "TimestampExtractor"),
    "grouped": ("KGroupedStream", "KGroupedTable", "SessionWindowedKStream", "TimeWindowedKStream"),
    "kstream": ("BranchedKStream", "KStream"),
    "ktable": ("GlobalKTable", "KTable"),
    "options": (
        "Branched",
        "Consumed",
        "Grouped",
        "Joined",
        "Materialized",
        "Produced",
        "Repartitioned",
        "StreamJoined",
        "Suppressed",
        "TopologyError",
    ),
    "partition_counts": ("PartitionsError",),
    "processor": ("Cancellable", "FixedKeyProcessor", "Processor", "ProcessorContext", "PunctuationType"),
    "record": ("Record", "RecordMetadata"),
    "serdes": ("Serde", "SerdeError", "Serdes"),
    "stores": ("ValueAndTimestamp",),
    "test_driver": ("TopologyTestDriver",),
    "topology": ("Stores", "Topology"),
    "windows": ("Emit", "JoinWindows", "SessionWindows", "TimeWindows", "Window", "Windowed"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
