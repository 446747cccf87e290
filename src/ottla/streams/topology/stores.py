"""Stores: what a topology declares, and what processors do with them. Keys and values are deserialized here.

`StoreBackend` is what a store lies on: a map of bytes. The test driver has one in memory, a Spark task one over its
MapState. The stores themselves (ottla.streams.tasks.stores) are written once, on top of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.streams.record import Headers
from ottla.streams.windows import Windowed

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


class StoreKind(Enum):
    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A store as a topology declares it."""

    name: str
    kind: StoreKind
    key_serde: "Serde[Any] | None" = None
    value_serde: "Serde[Any] | None" = None
    timestamped: bool = True
    """Values carry their record's timestamp, 8 bytes in front, as Kafka's DSL stores do."""
    logged: bool = True
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    window_size_ms: int = 0
    retention_ms: int = 0
    retain_duplicates: bool = False
    """Several values under one key and timestamp: the buffers of stream-stream joins."""
    source_topic: str | None = None
    """Set when an input topic itself is the changelog (builder.table without a repartition, when optimised)."""


class ValueAndTimestamp(NamedTuple):
    value: Any
    timestamp: int


class StoreBackend(Protocol):
    """A map of bytes to bytes. Stores keep what they read and write during a batch, and come here few times.

    A call may cost a round trip, so stores never look up what they know already, and write in `flush` only. `scan` may
    cost a pass over everything; it happens for ranges of key-value stores and for nothing else.
    """

    def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, value: bytes) -> None: ...
    def delete(self, key: bytes) -> None: ...
    def scan(self, first: bytes | None = None, last: bytes | None = None) -> Iterable[tuple[bytes, bytes]]:
        """In the order of keys, both ends inclusive; None is open."""


ChangeLog = Callable[[bytes, bytes | None, int, Headers], None]
"""Given key, value, timestamp and headers of a record for the changelog topic."""


class Store(Protocol):
    """What whoever runs a task does with every store, whatever its kind."""

    def flush(self) -> None:
        """Writes to the backend what changed since the last time: at the end of a batch."""

    def forget(self) -> None:
        """Drops what was read: the backend may have been set back. After `flush` only."""


class KeyValueStore(Protocol):
    """For a timestamped store values are `ValueAndTimestamp`. None deletes. Iteration is in the order of key bytes."""

    def get(self, key: Any) -> Any: ...
    def put(self, key: Any, value: Any) -> None: ...
    def put_if_absent(self, key: Any, value: Any) -> Any: ...
    def delete(self, key: Any) -> Any: ...
    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Both ends inclusive; None is open."""

    def reverse_range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]: ...
    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]: ...
    def all(self) -> Iterator[tuple[Any, Any]]: ...
    def approximate_num_entries(self) -> int: ...


class WindowStore(Protocol):
    """For a timestamped store values are `ValueAndTimestamp`. None deletes. What is past retention is not there."""

    def put(self, key: Any, value: Any, window_start: int) -> None: ...
    def fetch(self, key: Any, window_start: int) -> Any: ...
    def fetch_range(self, key: Any, first_start: int, last_start: int) -> Iterator[tuple[int, Any]]:
        """(window start, value) with both ends inclusive, the oldest first."""

    def fetch_all(self, first_start: int, last_start: int) -> Iterator[tuple[Windowed, Any]]: ...
    def all(self) -> Iterator[tuple[Windowed, Any]]: ...


class SessionStore(Protocol):
    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch_session(self, key: Any, start: int, end: int) -> Any: ...
    def put(self, session: Windowed, value: Any) -> None: ...
    def remove(self, session: Windowed) -> None: ...
    def all(self) -> Iterator[tuple[Windowed, Any]]: ...
