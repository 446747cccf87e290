"""Key-value stores."""

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.streams.record import Headers
from ottla.streams.tasks.stores.base import StoreContext, to_write
from ottla.streams.tasks.stores.codec import LONG
from ottla.streams.tasks.stores.record_cache import UNREAD
from ottla.streams.topology.stores import IS_LATEST, StoreSpec, ValueAndTimestamp


class KeyValues:
    """A store over a backend. Operators use the byte keys (`key_bytes`, `read`, `write`) to serialize a key once.

    Values are deserialized at each read: a function may change what it is given, and must not change the store by it.
    """

    __slots__ = (
        "_backend",
        "_cache",
        "_changed",
        "_known",
        "_log",
        "_moment",
        "_value",
        "_value_of",
        "key_bytes",
        "key_of",
        "spec",
    )

    def __init__(self, spec: StoreSpec, context: StoreContext) -> None:
        self.spec = spec
        self.key_bytes = context.key_serde.encode
        self.key_of = context.key_serde.decode
        self._value = context.value_serde.encode
        self._value_of = context.value_serde.decode
        self._backend = context.backend
        self._cache = context.cache
        self._log = context.log
        self._moment = context.moment
        self._known: dict[bytes, bytes | None] = {}
        self._changed: dict[bytes, None] = {}

    # ---- with byte keys

    def raw(self, key: bytes) -> bytes | None:
        try:
            return self._known[key]
        except KeyError:
            found = self._known[key] = self._backend.get(key)
            return found

    def read(self, key: bytes) -> tuple[Any, int] | None:
        """Value and timestamp of a timestamped store."""
        found = self.raw(key)
        if found is None:
            return None
        return self._value_of(found[8:]), LONG.unpack_from(found)[0]

    def write(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> int:
        """To a timestamped store. The changelog has the plain value; its record's timestamp is the value's. `headers`
        go to the changelog alone. What is written is the latest, whatever its time: other than a versioned store this
        one knows no order."""
        data = None if value is None else self._value(value)
        if self._cache is not None:
            self._cache.found = self._known.get(key, UNREAD)
        self._known[key] = None if data is None else LONG.pack(timestamp) + data
        self._changed[key] = None
        if self._log is not None:
            self._log(key, data, self._moment.timestamp if data is None else timestamp, headers)
        return IS_LATEST

    def write_plain(self, key: bytes, data: bytes | None) -> None:
        if self._cache is not None:
            self._cache.found = self._known.get(key, UNREAD)
        self._known[key] = data
        self._changed[key] = None
        if self._log is not None:
            self._log(key, data, self._moment.timestamp, ())

    # ---- for processors

    def get(self, key: Any) -> Any:
        return self._seen(self.raw(self._named(key)))

    def put(self, key: Any, value: Any) -> None:
        if self.spec.timestamped and value is not None:
            self.write(self._named(key), value[0], value[1])
        elif self.spec.timestamped:
            self.write(self._named(key), None, 0)
        else:
            self.write_plain(self._named(key), None if value is None else self._value(value))

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def delete(self, key: Any) -> Any:
        found = self.get(key)
        self.write_plain(self._named(key), None)
        return found

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        return self._pairs(self._entries(first, last))

    def reverse_range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        return self._pairs(self._entries(first, last)[::-1])

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Keys whose bytes begin with the prefix."""
        self.flush()
        behind = _behind(prefix)
        return self._pairs([entry for entry in self._backend.scan(prefix, behind) if entry[0] != behind])

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        return self.reverse_range()

    def approximate_num_entries(self) -> int:
        self.flush()
        return sum(1 for _ in self._backend.scan())

    # ---- for whoever runs the task

    def flush(self) -> None:
        if self._cache is not None:
            self._cache.settle(self._changed)
        for key in to_write(self._changed):
            value = self._known[key]
            if value is None:
                self._backend.delete(key)
            else:
                self._backend.put(key, value)
        self._changed.clear()

    def forget(self) -> None:
        self._known.clear()

    def restore(self, key: bytes, value: bytes | None, timestamp: int, _headers: Headers = ()) -> None:
        """One record of the changelog, or of a global table's topic."""
        timed = value is not None and self.spec.timestamped
        self._known[key] = LONG.pack(timestamp) + value if timed and value is not None else value
        self._changed[key] = None

    def _named(self, key: Any) -> bytes:
        if key is None:
            raise ValueError(f"a key of the store {self.spec.name} must not be None")
        return self.key_bytes(key)

    def _seen(self, found: bytes | None) -> Any:
        if found is None:
            return None
        if self.spec.timestamped:
            return ValueAndTimestamp(self._value_of(found[8:]), LONG.unpack_from(found)[0])
        return self._value_of(found)

    def _entries(self, first: Any, last: Any) -> list[tuple[bytes, bytes]]:
        self.flush()
        low = None if first is None else self._named(first)
        high = None if last is None else self._named(last)
        if low is not None and high is not None and low > high:
            return []
        return list(self._backend.scan(low, high))

    def _pairs(self, entries: list[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for key, value in entries:
            yield self.key_of(key), self._seen(value)


def _behind(prefix: bytes) -> bytes | None:
    """The first key behind all that begin so; None if there is none."""
    rest = prefix.rstrip(b"\xff")
    return rest[:-1] + bytes((rest[-1] + 1,)) if rest else None
