"""Kafka Streams for Python: a topology that runs on Spark Structured Streaming.

    from ottla.streams import Serdes, Consumed, StreamsApp, StreamsBuilder

Importing this package is cheap: everything is loaded when it is first used, and Spark only when an application runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.serdes.base import ContextSerde as ContextSerde
    from ottla.serdes.base import Serde as Serde
    from ottla.serdes.base import SerdeError as SerdeError
    from ottla.streams.app import StreamsApp as StreamsApp
    from ottla.streams.dsl.builder import StreamsBuilder as StreamsBuilder
    from ottla.streams.dsl.cogrouped import CogroupedKStream as CogroupedKStream
    from ottla.streams.dsl.cogrouped import SessionWindowedCogroupedKStream as SessionWindowedCogroupedKStream
    from ottla.streams.dsl.cogrouped import TimeWindowedCogroupedKStream as TimeWindowedCogroupedKStream
    from ottla.streams.dsl.grouped import KGroupedStream as KGroupedStream
    from ottla.streams.dsl.grouped import KGroupedTable as KGroupedTable
    from ottla.streams.dsl.grouped import SessionWindowedKStream as SessionWindowedKStream
    from ottla.streams.dsl.grouped import TimeWindowedKStream as TimeWindowedKStream
    from ottla.streams.dsl.kstream import BranchedKStream as BranchedKStream
    from ottla.streams.dsl.kstream import KStream as KStream
    from ottla.streams.dsl.ktable import GlobalKTable as GlobalKTable
    from ottla.streams.dsl.ktable import KTable as KTable
    from ottla.streams.dsl.options import Branched as Branched
    from ottla.streams.dsl.options import Consumed as Consumed
    from ottla.streams.dsl.options import Grouped as Grouped
    from ottla.streams.dsl.options import Joined as Joined
    from ottla.streams.dsl.options import Materialized as Materialized
    from ottla.streams.dsl.options import Printed as Printed
    from ottla.streams.dsl.options import Produced as Produced
    from ottla.streams.dsl.options import Repartitioned as Repartitioned
    from ottla.streams.dsl.options import StreamJoined as StreamJoined
    from ottla.streams.dsl.options import Suppressed as Suppressed
    from ottla.streams.dsl.options import TableJoined as TableJoined
    from ottla.streams.errors import ErrorContext as ErrorContext
    from ottla.streams.errors import HandlerResponse as HandlerResponse
    from ottla.streams.errors import NeedsSparkError as NeedsSparkError
    from ottla.streams.errors import ProducerRecord as ProducerRecord
    from ottla.streams.errors import StreamsError as StreamsError
    from ottla.streams.record import Record as Record
    from ottla.streams.record import RecordMetadata as RecordMetadata
    from ottla.streams.run.life import StateRestoreListener as StateRestoreListener
    from ottla.streams.run.life import StreamThreadExceptionResponse as StreamThreadExceptionResponse
    from ottla.streams.serdes import Serdes as Serdes
    from ottla.streams.test_driver import TopologyTestDriver as TopologyTestDriver
    from ottla.streams.topology.errors import TopologyError as TopologyError
    from ottla.streams.topology.graph import InvalidTimestamp as InvalidTimestamp
    from ottla.streams.topology.graph import Reset as Reset
    from ottla.streams.topology.graph import TimestampExtractor as TimestampExtractor
    from ottla.streams.topology.partition_counts import PartitionsError as PartitionsError
    from ottla.streams.topology.processor import Cancellable as Cancellable
    from ottla.streams.topology.processor import FixedKeyProcessor as FixedKeyProcessor
    from ottla.streams.topology.processor import Processor as Processor
    from ottla.streams.topology.processor import ProcessorContext as ProcessorContext
    from ottla.streams.topology.processor import PunctuationType as PunctuationType
    from ottla.streams.topology.processor import ValueTransformerWithKey as ValueTransformerWithKey
    from ottla.streams.topology.stores import AggregationWithHeaders as AggregationWithHeaders
    from ottla.streams.topology.stores import StateStore as StateStore
    from ottla.streams.topology.stores import StateStoreContext as StateStoreContext
    from ottla.streams.topology.stores import ValueAndTimestamp as ValueAndTimestamp
    from ottla.streams.topology.stores import ValueTimestampHeaders as ValueTimestampHeaders
    from ottla.streams.topology.stores import VersionedRecord as VersionedRecord
    from ottla.streams.topology.topology import Stores as Stores
    from ottla.streams.topology.topology import Topology as Topology
    from ottla.streams.views.lookups import QueryableStores as QueryableStores
    from ottla.streams.views.queries import FailureReason as FailureReason
    from ottla.streams.views.queries import KeyQuery as KeyQuery
    from ottla.streams.views.queries import KeyQueryMetadata as KeyQueryMetadata
    from ottla.streams.views.queries import LagInfo as LagInfo
    from ottla.streams.views.queries import MultiVersionedKeyQuery as MultiVersionedKeyQuery
    from ottla.streams.views.queries import Position as Position
    from ottla.streams.views.queries import PositionBound as PositionBound
    from ottla.streams.views.queries import PrefixQuery as PrefixQuery
    from ottla.streams.views.queries import QueryResult as QueryResult
    from ottla.streams.views.queries import RangeQuery as RangeQuery
    from ottla.streams.views.queries import ResultOrder as ResultOrder
    from ottla.streams.views.queries import StateQueryRequest as StateQueryRequest
    from ottla.streams.views.queries import StateQueryResult as StateQueryResult
    from ottla.streams.views.queries import TimestampedKeyQuery as TimestampedKeyQuery
    from ottla.streams.views.queries import TimestampedRangeQuery as TimestampedRangeQuery
    from ottla.streams.views.queries import VersionedKeyQuery as VersionedKeyQuery
    from ottla.streams.views.queries import WindowKeyQuery as WindowKeyQuery
    from ottla.streams.views.queries import WindowRangeQuery as WindowRangeQuery
    from ottla.streams.windows import Emit as Emit
    from ottla.streams.windows import JoinWindows as JoinWindows
    from ottla.streams.windows import SessionWindows as SessionWindows
    from ottla.streams.windows import SlidingWindows as SlidingWindows
    from ottla.streams.windows import TimeWindows as TimeWindows
    from ottla.streams.windows import UnlimitedWindows as UnlimitedWindows
    from ottla.streams.windows import Window as Window
    from ottla.streams.windows import Windowed as Windowed

_WHERE = {
    "app": ("StreamsApp",),
    "dsl.builder": ("StreamsBuilder",),
    "errors": ("ErrorContext", "HandlerResponse", "NeedsSparkError", "ProducerRecord", "StreamsError"),
    "topology.errors": ("TopologyError",),
    "topology.graph": ("InvalidTimestamp", "Reset", "TimestampExtractor"),
    "dsl.cogrouped": ("CogroupedKStream", "SessionWindowedCogroupedKStream", "TimeWindowedCogroupedKStream"),
    "dsl.grouped": ("KGroupedStream", "KGroupedTable", "SessionWindowedKStream", "TimeWindowedKStream"),
    "dsl.kstream": ("BranchedKStream", "KStream"),
    "dsl.ktable": ("GlobalKTable", "KTable"),
    "dsl.options": (
        "Branched",
        "Consumed",
        "Grouped",
        "Joined",
        "Materialized",
        "Printed",
        "Produced",
        "Repartitioned",
        "StreamJoined",
        "Suppressed",
        "TableJoined",
    ),
    "topology.partition_counts": ("PartitionsError",),
    "topology.processor": (
        "Cancellable",
        "FixedKeyProcessor",
        "Processor",
        "ProcessorContext",
        "PunctuationType",
        "ValueTransformerWithKey",
    ),
    "record": ("Record", "RecordMetadata"),
    "run.life": ("StateRestoreListener", "StreamThreadExceptionResponse"),
    "serdes": ("Serdes",),
    "views.lookups": ("QueryableStores",),
    "views.queries": (
        "FailureReason",
        "KeyQuery",
        "KeyQueryMetadata",
        "LagInfo",
        "MultiVersionedKeyQuery",
        "Position",
        "PositionBound",
        "PrefixQuery",
        "QueryResult",
        "RangeQuery",
        "ResultOrder",
        "StateQueryRequest",
        "StateQueryResult",
        "TimestampedKeyQuery",
        "TimestampedRangeQuery",
        "VersionedKeyQuery",
        "WindowKeyQuery",
        "WindowRangeQuery",
    ),
    "topology.stores": (
        "AggregationWithHeaders",
        "StateStore",
        "StateStoreContext",
        "ValueAndTimestamp",
        "ValueTimestampHeaders",
        "VersionedRecord",
    ),
    "test_driver": ("TopologyTestDriver",),
    "topology.topology": ("Stores", "Topology"),
    "windows": (
        "Emit",
        "JoinWindows",
        "SessionWindows",
        "SlidingWindows",
        "TimeWindows",
        "UnlimitedWindows",
        "Window",
        "Windowed",
    ),
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _WHERE.items() for name in names}
_MODULE_OF |= dict.fromkeys(("ContextSerde", "Serde", "SerdeError"), "ottla.serdes.base")

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  the table above says it


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
