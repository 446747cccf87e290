"""Stores: what a topology declares, and what processors do with them. Keys and values are deserialized here.

`StoreBackend` is what a store lies on: a map of bytes. The test driver has one in memory, a Spark task one over its
MapState. The stores themselves (ottla.streams.tasks.stores) are written once, on top of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.streams.record import Headers
from ottla.streams.windows import Windowed

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


class StoreKind(Enum):
    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"
    VERSIONED = "versioned"
    OWN = "own"
    """A class of the user's."""


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
    """Of windows and sessions; of a versioned store its history."""
    segment_interval_ms: int = 0
    """Of a versioned store: old versions are forgotten in steps of this time."""
    retain_duplicates: bool = False
    """Several values under one key and timestamp: the buffers of stream-stream joins."""
    caching: bool = False
    """Whether of several updates of a key between two commits the last one goes out, instead of each."""
    headers: bool = False
    """Values carry headers (KIP-1271), those of key-value and window stores a timestamp too."""
    in_memory: bool | None = None
    """As Kafka's stores in memory: windows and sessions in the order of time. None: as default.dsl.store says."""
    most_entries: int | None = None
    """Of a key-value store: the keys that were used last, so many at most."""
    supplier: "Callable[[StateStoreContext], StateStore] | None" = None
    """Of a store of the user's own."""
    source_topic: str | None = None
    """Set when an input topic itself is the changelog (builder.table without a repartition, when optimised)."""


class ValueAndTimestamp(NamedTuple):
    value: Any
    timestamp: int


class ValueTimestampHeaders(NamedTuple):
    """What a store with headers holds under a key."""

    value: Any
    timestamp: int
    headers: Headers = ()


class AggregationWithHeaders(NamedTuple):
    """What a session store with headers holds."""

    aggregation: Any
    headers: Headers = ()


class VersionedRecord(NamedTuple):
    """A version of a key: its value, since when it is valid, and until when (None if it is the latest)."""

    value: Any
    timestamp: int
    valid_to: int | None = None


IS_LATEST: Final = -1
"""What `put` of a versioned store gives when the version has no end yet (Kafka's VALID_TO_UNDEFINED)."""
NOT_PUT: Final = -0x8000_0000_0000_0000
"""What it gives when the version is older than the store's history."""


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

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        """Takes a record of the changelog, in the order of offsets: nothing is logged or counted as dropped."""


class StateStoreContext(Protocol):
    """What a store of the user's own is given when a task begins."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> StoreBackend:
        """A map of bytes that outlives the task: what the store keeps has to be in it."""

    @property
    def timestamp(self) -> int:
        """Of the record that is being processed."""

    def log_change(self, key: bytes, value: bytes | None, timestamp: int | None = None) -> None:
        """Writes a record to the changelog, if the store has one."""

    def dropped(self, reason: str) -> None: ...


class StateStore(ABC):
    """A store of your own: `Stores.own(name, supplier)`, where the supplier is given a StateStoreContext.

    A task may end after any batch, on another machine go on: whatever has to be known then is in `context.state` when
    `flush` returns. What is written to the changelog comes back by `restore`.
    """

    @abstractmethod
    def flush(self) -> None:
        """Writes what changed into the state, at the end of a batch."""

    @abstractmethod
    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        """A record of the changelog."""

    def forget(self) -> None:  # noqa: B027  most keep nothing beside the state
        """Drops what was read from the state, which may have been set back. After `flush` only."""


class KeyValueStore(Protocol):
    """For a timestamped store values are `ValueAndTimestamp`. None deletes. Iteration is in the order of key bytes."""

    def get(self, key: Any) -> Any: ...
    def put(self, key: Any, value: Any) -> None: ...
    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None: ...
    def put_if_absent(self, key: Any, value: Any) -> Any: ...
    def delete(self, key: Any) -> Any: ...
    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Both ends inclusive; None is open."""

    def reverse_range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]: ...
    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]: ...
    def all(self) -> Iterator[tuple[Any, Any]]: ...
    def reverse_all(self) -> Iterator[tuple[Any, Any]]: ...
    def approximate_num_entries(self) -> int: ...


class WindowStore(Protocol):
    """For a timestamped store values are `ValueAndTimestamp`. None deletes. What is past retention is not there.

    All spans include both ends; a key that is None is an open end. The backward ones give the same from the other end.
    """

    def put(self, key: Any, value: Any, window_start: int) -> None: ...
    def fetch(self, key: Any, window_start: int) -> Any: ...
    def fetch_range(self, key: Any, first_start: int, last_start: int) -> Iterator[tuple[int, Any]]:
        """(window start, value) with both ends inclusive, the oldest first."""

    def backward_fetch_range(self, key: Any, first_start: int, last_start: int) -> Iterator[tuple[int, Any]]: ...
    def fetch_keys(
        self, first_key: Any, last_key: Any, first_start: int, last_start: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_fetch_keys(
        self, first_key: Any, last_key: Any, first_start: int, last_start: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch_all(self, first_start: int, last_start: int) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_fetch_all(self, first_start: int, last_start: int) -> Iterator[tuple[Windowed, Any]]: ...
    def all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed, Any]]: ...


class SessionStore(Protocol):
    """Sessions of a key with the one that ends first in front; the backward ones give the same from the other end."""

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_find_sessions(
        self, key: Any, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def find_sessions_of_keys(
        self, first_key: Any, last_key: Any, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_find_sessions_of_keys(
        self, first_key: Any, last_key: Any, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch_keys(self, first_key: Any, last_key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_fetch_keys(self, first_key: Any, last_key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch_session(self, key: Any, start: int, end: int) -> Any: ...
    def put(self, session: Windowed, value: Any) -> None: ...
    def remove(self, session: Windowed) -> None: ...
    def all(self) -> Iterator[tuple[Windowed, Any]]: ...


class VersionedKeyValueStore(Protocol):
    """Values with the time from which they are valid. A version ends where the next one of its key begins."""

    def get(self, key: Any, as_of: int | None = None) -> VersionedRecord | None:
        """The latest version, or the one that was valid at a time. None also for a time that history forgot."""

    def history(self, key: Any, first: int, last: int) -> list[VersionedRecord]:
        """The versions that were valid at some moment between the two, the oldest first."""

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """Gives until when the version is valid: IS_LATEST, the time of the next one, or NOT_PUT. None deletes."""

    def delete(self, key: Any, timestamp: int) -> VersionedRecord | None:
        """Gives what was valid at that time."""
