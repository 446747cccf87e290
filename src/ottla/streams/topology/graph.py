"""The topology itself: sources, processors, sinks and stores, by name, in the order they were added. Pure data.

Names and order are Kafka Streams' own, so that `describe` gives the same text and internal topics have the same names.
Internal topics are written without the application id; whoever runs the topology puts it in front (`decorated`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ottla.streams.topology.operations import Function, Operation
from ottla.streams.topology.processor import Processor
from ottla.streams.topology.stores import StoreSpec

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


Partitioner = Callable[..., "int | Collection[int] | None"]
"""(topic, key, value, number of partitions) -> partition, or None for the default: murmur2 of the key. Several
partitions get a record each, and with none of them it is dropped (KIP-837)."""


class Form(Enum):
    """How the values of an internal topic are wrapped; the serde beside it is that of what is inside."""

    PLAIN = "plain"
    CHANGE = "change"
    """A table's old and new value: the repartition of KTable.group_by."""
    SUBSCRIPTION = "subscription"
    """A key, and what it wants to hear of a foreign key."""
    RESPONSE = "response"
    """The value of a foreign key, and the hash of the value for which it was asked."""


class Reset(Enum):
    """Where an input begins that the group has no offset of."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    """Nowhere: it is an error."""

    @staticmethod
    def by_duration(milliseconds: int) -> "ResetByDuration":
        """With the first record that is no older (KIP-1106)."""
        return ResetByDuration(milliseconds)


@dataclass(frozen=True, slots=True)
class ResetByDuration:
    milliseconds: int

    def __post_init__(self) -> None:
        if self.milliseconds < 0:
            raise ValueError(f"a duration of {self.milliseconds} ms: records of the future are not there yet")


class InvalidTimestamp(Enum):
    """What happens to a record whose extracted timestamp is negative."""

    FAIL = "fail"
    SKIP = "skip"
    PARTITION_TIME = "partition_time"


@dataclass(frozen=True, slots=True)
class TimestampExtractor:
    """Event time of a record. No function: the record's own timestamp (create or append time, as the topic says)."""

    function: Function | None = None  # (key, value, timestamp, partition_time) -> milliseconds
    on_invalid: InvalidTimestamp | None = None
    """None: as Kafka does. A record without a timestamp of its own ends the application; one for which a function gives
    none is skipped and counted."""
    wall_clock: bool = False
    """Processing time: the moment at which the record is processed."""

    def __post_init__(self) -> None:
        if self.on_invalid is None:
            chosen = InvalidTimestamp.FAIL if self.function is None else InvalidTimestamp.SKIP
            object.__setattr__(self, "on_invalid", chosen)

    @property
    def is_plain(self) -> bool:
        """As if nobody had said anything. Not compared as a whole: an expression's == makes an expression."""
        return self.function is None and not self.wall_clock and self.on_invalid is InvalidTimestamp.FAIL


@dataclass(frozen=True, slots=True)
class SourceNode:
    name: str
    topics: tuple[str, ...]
    pattern: str | None = None
    key_serde: "Serde[Any] | None" = None
    value_serde: "Serde[Any] | None" = None
    extractor: TimestampExtractor = TimestampExtractor()
    reset: Reset | ResetByDuration | None = None
    parents: tuple[str, ...] = ()
    form: Form = Form.PLAIN


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    name: str
    operation: Operation
    parents: tuple[str, ...]
    stores: tuple[str, ...] = ()
    """Those it reads or writes, in the order they were connected."""


@dataclass(frozen=True, slots=True)
class SinkNode:
    name: str
    topic: str | None
    parents: tuple[str, ...]
    chooser: Function | None = None  # dynamic topic: (key, value, record metadata or None) -> topic
    key_serde: "Serde[Any] | None" = None
    value_serde: "Serde[Any] | None" = None
    partitioner: Partitioner | None = None
    repartition: bool = False
    form: Form = Form.PLAIN

    @property
    def partitions_by_inner_key(self) -> bool:
        """A windowed key goes where its key alone would go, so that all windows of a key share a partition. Not so in a
        repartition topic, and not if there is a partitioner."""
        return not self.repartition and self.partitioner is None and hasattr(self.key_serde, "inner")


Node = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True, slots=True)
class RepartitionTopic:
    """Written by one sub-topology and read by another."""

    name: str
    partitions: int | None = None
    """None: as many as the widest source of the sub-topology that writes it."""
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GlobalTable:
    """A topic that every task has in whole."""

    store: StoreSpec
    topic: str
    source: str
    processor: str
    key_serde: "Serde[Any] | None" = None
    value_serde: "Serde[Any] | None" = None
    extractor: TimestampExtractor = TimestampExtractor()
    supplier: Callable[[], Processor] | None = None
    """Of the processor that fills the store; None where the topic itself is the table."""
    position: int = 0
    """How many nodes had been added before it: it takes a number among the sub-topologies."""


@dataclass(frozen=True, slots=True)
class SubTopology:
    """Nodes that are connected by edges or by stores, cut at repartition topics. One becomes one Spark query."""

    number: int
    nodes: tuple[Node, ...]
    stores: tuple[StoreSpec, ...]


@dataclass(slots=True)
class Graph:
    """Grows while a topology is built; nobody changes it afterwards."""

    nodes: dict[str, Node] = field(default_factory=dict)
    stores: dict[str, StoreSpec] = field(default_factory=dict)
    repartition_topics: dict[str, RepartitionTopic] = field(default_factory=dict)
    global_tables: dict[str, GlobalTable] = field(default_factory=dict)
    copartitioned: list[tuple[str, ...]] = field(default_factory=list)
    """Groups of source topics that must have equally many partitions."""

    def children(self, name: str) -> list[Node]:
        """In the order they were added."""
        return [node for node in self.nodes.values() if name in node.parents]


def decorated(application_id: str, internal_topic: str) -> str:
    return f"{application_id}-{internal_topic}"


def changelog_topic(application_id: str, store: str) -> str:
    return f"{application_id}-{store}-changelog"
