"""Stores that Kafka has in memory only. Here state lies where it always does; what shows of theirs is kept: windows and
sessions come in the order of time and expire to the millisecond, and a store of bounded size forgets the key that was
not used for the longest time."""

from collections.abc import Iterator
from typing import Any

from ottla.streams.record import Headers
from ottla.streams.tasks.stores.base import EXPIRED, StoreContext
from ottla.streams.tasks.stores.codec import LONG, session_key
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.stores import StoreBackend, StoreSpec
from ottla.streams.windows import Windowed


class InMemoryWindows(Windows):
    __slots__ = ()

    def __init__(self, spec: StoreSpec, context: StoreContext) -> None:
        super().__init__(spec, context)
        self._time_ordered = True

    def in_time_order(self) -> None:
        """It is."""

    def _set(self, key: bytes, data: bytes | None, start: int) -> int:
        if start <= self.stream_time - self.spec.retention_ms:
            self._dropped(EXPIRED)
            return self._next_sequence()
        return super()._set(key, data, start)


class InMemorySessions(Sessions):
    __slots__ = ()

    def write(self, key: bytes, start: int, end: int, value: Any) -> None:
        if end > self.stream_time - self.spec.retention_ms:
            super().write(key, start, end, value)
            return
        self._dropped(EXPIRED)
        if self._log is not None:
            data = None if value is None else self._value(value)
            self._log(session_key(key, start, end), data, self._moment.timestamp, ())

    def around(self, key: bytes, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        """Of those with the same end the one that started last comes first."""
        found = super().around(key, earliest_end, latest_start)
        return sorted(found, key=lambda session: (session[1], -session[0]))

    def ended_between(self, first: int, last: int) -> list[tuple[int, int, bytes, Any]]:
        """None that has expired: an aggregate that emits on close may come too late for it."""
        found = super().ended_between(max(first, self.stream_time - self.spec.retention_ms + 1), last)
        return sorted(found, key=lambda session: (session[0], session[2], -session[1]))

    def _of_keys(
        self, first_key: Any, last_key: Any, earliest_end: int, latest_start: int
    ) -> list[tuple[Windowed, Any]]:
        found = super()._of_keys(first_key, last_key, earliest_end, latest_start)
        return sorted(found, key=self._place)

    def _place(self, entry: tuple[Windowed, Any]) -> tuple[int, bytes, int]:
        session = entry[0]
        return session.window.end, self.key_bytes(session.key), -session.window.start


class _InOrder:
    """A backend whose values have a number in front: when their key was last used."""

    __slots__ = ("_backend", "_loaded", "_next")

    def __init__(self, backend: StoreBackend) -> None:
        self._backend = backend
        self._next = 0
        self._loaded: dict[bytes, int] | None = None

    @property
    def order(self) -> dict[bytes, int]:
        """The key that was not used for the longest time comes first."""
        if self._loaded is None:
            used = sorted((LONG.unpack_from(value)[0], key) for key, value in self._backend.scan())
            self._loaded = {key: number for number, key in used}
            self._next = used[-1][0] + 1 if used else 0
        return self._loaded

    def use(self, key: bytes) -> None:
        order = self.order
        order.pop(key, None)
        order[key] = self._next
        self._next += 1

    def forget(self) -> None:
        self._loaded = None

    def get(self, key: bytes) -> bytes | None:
        found = self._backend.get(key)
        return None if found is None else found[8:]

    def put(self, key: bytes, value: bytes) -> None:
        self._backend.put(key, LONG.pack(self.order[key]) + value)

    def delete(self, key: bytes) -> None:
        self._backend.delete(key)

    def scan(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._backend.scan(first, last):
            yield key, value[8:]


class LeastRecent(KeyValues):
    """Kafka's lruMap: at most so many keys. What has to go is deleted in the changelog as well."""

    __slots__ = ("_in_order", "_most")

    def __init__(self, spec: StoreSpec, context: StoreContext) -> None:
        assert spec.most_entries is not None
        self._most = spec.most_entries
        self._in_order = _InOrder(context.backend)
        super().__init__(
            spec,
            StoreContext(
                self._in_order,
                context.key_serde,
                context.value_serde,
                log=context.log,
                moment=context.moment,
                dropped=context.dropped,
            ),
        )

    def raw(self, key: bytes) -> bytes | None:
        found = super().raw(key)
        if found is not None:
            self._use(key)
        return found

    def write(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> int:
        self._make_room(key, value)
        return super().write(key, value, timestamp, headers)

    def write_plain(self, key: bytes, data: bytes | None) -> None:
        self._make_room(key, data)
        super().write_plain(key, data)

    def restore(self, key: bytes, value: bytes | None, timestamp: int, _headers: Headers = ()) -> None:
        log, self._log = self._log, None
        self._make_room(key, value)
        self._log = log
        super().restore(key, value, timestamp)

    def forget(self) -> None:
        super().forget()
        self._in_order.forget()

    def _use(self, key: bytes) -> None:
        self._in_order.use(key)
        self._changed[key] = None

    def _make_room(self, key: bytes, value: Any) -> None:
        order = self._in_order.order
        if value is None:
            order.pop(key, None)
            return
        self._in_order.use(key)
        while len(order) > self._most:
            eldest = next(iter(order))
            del order[eldest]
            super().write_plain(eldest, None)
