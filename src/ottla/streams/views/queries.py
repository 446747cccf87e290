"""Interactive queries, version 2 (KIP-796): what may be asked of a store, as values, and what an answer is.

    request = StateQueryRequest("counts", KeyQuery("kafka"), position_bound=PositionBound.at(position))
    stores.query(request).only_partition_result.result

A `Position` says how far into its input a store is: the offset of the last record of each partition whose effect is in
it. Whoever has written a record at an offset and asks with that as bound reads its own write, or is told that it is not
there yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from ottla.streams.windows import LONGEST_MS


class ResultOrder(Enum):
    """ANY: keys ascending, versions with the newest first."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class Query:
    """The base of all."""


@dataclass(frozen=True, slots=True)
class KeyQuery(Query):
    """The value of a key, None if there is none."""

    key: Any


@dataclass(frozen=True, slots=True)
class TimestampedKeyQuery(Query):
    """The same as `ValueAndTimestamp`."""

    key: Any


@dataclass(frozen=True, slots=True)
class RangeQuery(Query):
    """(key, value) in the order of serialized keys, both ends inclusive; None is open."""

    lower: Any = None
    upper: Any = None
    order: ResultOrder = ResultOrder.ANY


@dataclass(frozen=True, slots=True)
class TimestampedRangeQuery(Query):
    """The same with `ValueAndTimestamp`."""

    lower: Any = None
    upper: Any = None
    order: ResultOrder = ResultOrder.ANY


@dataclass(frozen=True, slots=True)
class PrefixQuery(Query):
    """(key, value) of the keys whose bytes begin so."""

    prefix: bytes
    order: ResultOrder = ResultOrder.ANY


@dataclass(frozen=True, slots=True)
class WindowKeyQuery(Query):
    """(window start, value) of one key: the windows that begin between the two times, both inclusive."""

    key: Any
    time_from_ms: int = 0
    time_to_ms: int = LONGEST_MS


@dataclass(frozen=True, slots=True)
class WindowRangeQuery(Query):
    """(Windowed, value). Of a session store all sessions of `key`; of a window store the windows of all keys that begin
    between the two times."""

    key: Any = None
    time_from_ms: int = 0
    time_to_ms: int = LONGEST_MS


@dataclass(frozen=True, slots=True)
class VersionedKeyQuery(Query):
    """The `VersionedRecord` that is valid now, or was at a time."""

    key: Any
    as_of_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MultiVersionedKeyQuery(Query):
    """Every `VersionedRecord` that was valid at some moment between the two times; None is open."""

    key: Any
    from_ms: int | None = None
    to_ms: int | None = None
    order: ResultOrder = ResultOrder.ANY


@dataclass(frozen=True, slots=True)
class Position:
    """Offsets by topic and partition, each that of the last record that is in."""

    components: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def with_component(self, topic: str, partition: int, offset: int) -> "Position":
        known = self.components.get(topic, {})
        return Position({**self.components, topic: {**known, partition: offset}})

    def merge(self, other: "Position") -> "Position":
        """Of both the further."""
        merged = {topic: dict(offsets) for topic, offsets in self.components.items()}
        for topic, offsets in other.components.items():
            mine = merged.setdefault(topic, {})
            for partition, offset in offsets.items():
                mine[partition] = max(offset, mine.get(partition, offset))
        return Position(merged)

    def reaches(self, bound: "Position", partition: int | None = None) -> bool:
        """Whether everything in `bound` is in this one; of one partition number, if one is given."""
        return all(
            self.components.get(topic, {}).get(number, -1) >= offset
            for topic, offsets in bound.components.items()
            for number, offset in offsets.items()
            if partition is None or number == partition
        )


@dataclass(frozen=True, slots=True)
class PositionBound:
    position: Position = field(default_factory=Position)

    @classmethod
    def at(cls, position: Position) -> "PositionBound":
        """Answers that know less are refused."""
        return cls(position)

    @classmethod
    def unbounded(cls) -> "PositionBound":
        return cls()


@dataclass(frozen=True, slots=True)
class StateQueryRequest:
    """`partitions` are those of the store to be asked; None asks all."""

    store: str
    query: Query
    position_bound: PositionBound = field(default_factory=PositionBound)
    partitions: frozenset[int] | None = None


class FailureReason(Enum):
    UNKNOWN_QUERY_TYPE = "the store cannot answer such a query"
    NOT_UP_TO_BOUND = "the store is not yet where the position bound asks for"
    NOT_PRESENT = "the partition is not here yet"
    DOES_NOT_EXIST = "the store has no such partition"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Of one partition: a result, which may be None, or a reason why there is none."""

    result: Any = None
    position: Position = field(default_factory=Position)
    failure_reason: FailureReason | None = None
    failure_message: str = ""

    @property
    def is_success(self) -> bool:
        return self.failure_reason is None


@dataclass(frozen=True, slots=True)
class StateQueryResult:
    partition_results: Mapping[int, QueryResult]

    @property
    def only_partition_result(self) -> QueryResult | None:
        """The one that has a result, where a key lies in one partition only; None if no partition has one.

        Raises ValueError when several have."""
        found = [each for each in self.partition_results.values() if each.is_success and each.result is not None]
        if len(found) > 1:
            raise ValueError(f"{len(found)} partitions have a result: look at partition_results")
        return found[0] if found else None

    @property
    def position(self) -> Position:
        """Of all partitions together."""
        whole = Position()
        for result in self.partition_results.values():
            whole = whole.merge(result.position)
        return whole


class KeyQueryMetadata(NamedTuple):
    """Who answers for a key. Every view has all partitions, so that nobody has to be asked but the one that is near."""

    active_host: str | None
    """application.server, HOST:PORT; None where it is not set."""
    standby_hosts: frozenset[str]
    """None: other instances have their views as well, but do not tell where."""
    partition: int


class LagInfo(NamedTuple):
    """How far a view is in one partition of its changelog."""

    current_offset_position: int
    end_offset_position: int
    offset_lag: int
