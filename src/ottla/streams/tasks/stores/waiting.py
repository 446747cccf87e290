"""Stores in the order of time: records that wait for a match in an outer join, results that wait for their window."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ottla.streams.record import Headers, RecordMetadata
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.cells import Cells
from ottla.streams.tasks.stores.codec import (
    INT,
    LONG,
    SAME_AS_PRIOR,
    listed,
    nullable,
    read_nullable,
    read_record_context,
    record_context,
    unlisted,
    unwaiting,
    waiting_key,
)
from ottla.streams.topology.stores import StoreBackend, StoreSpec

_COUNT: Final = 0
_BYTES: Final = 1
_PLACE: Final = b"t"
_CHANGELOG_HEADERS: Final[Headers] = (("v", b"\x03"),)


class InTime:
    """Values by time, tag and key, one of each; a slice of time goes when its last value does."""

    __slots__ = ("_order", "_slice_ms", "cells")

    def __init__(self, context: StoreContext, slice_ms: int, first: tuple[int, ...] = (0, 0)) -> None:
        """`first`: the store's numbers to begin with."""
        self.cells = Cells(context.backend, first)
        self._slice_ms = max(1, slice_ms)
        self._order: dict[int, list[tuple[int, int, bytes]]] = {}
        """Of the slices somebody asked for: what is in them, sorted."""

    def get(self, time: int, tag: int, key: bytes) -> bytes | None:
        cell = self.cells.cell(Cells.address(time // self._slice_ms, key))
        if cell:
            at = bisect_left(cell, (time, tag))
            if at < len(cell) and cell[at][0] == time and cell[at][1] == tag:
                return cell[at][2]
        return None

    def put(self, time: int, tag: int, key: bytes, value: bytes) -> None:
        slice_ = time // self._slice_ms
        cells = self.cells
        address = Cells.address(slice_, key)
        cell = cells.cell(address)
        if cell is None:
            cell = cells.create(address)
            cells.enter(slice_, key)
        at = bisect_left(cell, (time, tag))
        present = at < len(cell) and cell[at][0] == time and cell[at][1] == tag
        cell[at : at + present] = [(time, tag, value)]
        cells.changed(address)
        if not present:
            cells.slices[slice_][1] += 1
            cells.touch()
            order = self._order.get(slice_)
            if order is not None:
                insort(order, (time, tag, key))

    def remove(self, time: int, tag: int, key: bytes) -> bool:
        slice_ = time // self._slice_ms
        cells = self.cells
        address = Cells.address(slice_, key)
        cell = cells.cell(address)
        at = bisect_left(cell, (time, tag)) if cell else 0
        if not cell or at == len(cell) or cell[at][0] != time or cell[at][1] != tag:
            return False
        del cell[at]
        cells.changed(address)
        order = self._order.get(slice_)
        if order is not None:
            del order[bisect_left(order, (time, tag, key))]
        counts = cells.slices[slice_]
        counts[1] -= 1
        cells.touch()
        if counts[1] == 0:
            cells.drop(slice_)
            self._order.pop(slice_, None)
        return True

    def in_order(self) -> Iterator[tuple[int, int, bytes]]:
        """(time, tag, key). Those that have been given may be removed before the next is asked for."""
        for slice_ in sorted(self.cells.slices):
            order = self._ordered(slice_)
            at = 0
            while at < len(order):
                entry = order[at]
                yield entry
                at = bisect_right(order, entry)

    def forget(self) -> None:
        self._order.clear()
        self.cells.forget()

    def _ordered(self, slice_: int) -> list[tuple[int, int, bytes]]:
        order = self._order.get(slice_)
        if order is None:
            cells = self.cells
            order = self._order[slice_] = sorted(
                (time, tag, key)
                for key in cells.keys(slice_)
                for time, tag, _ in cells.cell(Cells.address(slice_, key)) or ()
            )
        return order


class Waiting:
    """The records of both sides of an outer join that have no match yet. One key, time and side may have several."""

    __slots__ = (
        "_entries",
        "_left",
        "_left_of",
        "_log",
        "_moment",
        "_right",
        "_right_of",
        "key_bytes",
        "key_of",
        "spec",
    )

    def __init__(self, spec: StoreSpec, left: StoreContext, right: StoreContext, slice_ms: int) -> None:
        """The two differ in their value serdes only."""
        self.spec = spec
        self.key_bytes = left.key_serde.encode
        self.key_of = left.key_serde.decode
        self._left, self._left_of = left.value_serde.encode, left.value_serde.decode
        self._right, self._right_of = right.value_serde.encode, right.value_serde.decode
        self._log = left.log
        self._moment = left.moment
        self._entries = InTime(left, slice_ms)

    def add(self, key: bytes, timestamp: int, is_left: bool, value: Any) -> None:
        data = self._left(value) if is_left else self._right(value)
        side = b"\x01" if is_left else b"\x00"
        found = self._entries.get(timestamp, is_left, key)
        values = [] if found is None else unlisted(found)
        values.append(side + (data or b""))
        self._entries.put(timestamp, is_left, key, listed(values))
        if self._log is not None:
            self._log(waiting_key(timestamp, is_left, key), listed(values), self._moment.timestamp, ())

    def remove(self, key: bytes, timestamp: int, is_left: bool) -> None:
        if self._entries.remove(timestamp, is_left, key) and self._log is not None:
            self._log(waiting_key(timestamp, is_left, key), None, self._moment.timestamp, ())

    def in_order(self) -> Iterator[tuple[int, bool, bytes]]:
        """(timestamp, whether of the left side, key), by time, then right before left, then key bytes."""
        for timestamp, tag, key in self._entries.in_order():
            yield timestamp, bool(tag), key

    def values(self, key: bytes, timestamp: int, is_left: bool) -> list[Any]:
        value_of = self._left_of if is_left else self._right_of
        data = self._entries.get(timestamp, is_left, key)
        return [] if data is None else [value_of(value[1:]) for value in unlisted(data)]

    def restore(self, key: bytes, value: bytes | None, _timestamp: int, _headers: Headers = ()) -> None:
        timestamp, is_left, key = unwaiting(key)
        if value is None:
            self._entries.remove(timestamp, is_left, key)
        else:
            self._entries.put(timestamp, is_left, key, value)

    def flush(self) -> None:
        self._entries.cells.flush()

    def forget(self) -> None:
        self._entries.forget()


class Held(NamedTuple):
    """A result that waits, and where the record came from that gave it."""

    new: Any
    old: Any
    timestamp: int
    headers: Headers
    metadata: RecordMetadata | None


class HeldBack:
    """The buffer of suppress. Its changelog gets the last state of each key that changed, when a batch ends.

    A key that is held back keeps its place when it changes. Where the time is that of a record, the place of each key
    has to be remembered; the end of a window is in the key itself.
    """

    __slots__ = (
        "_changed", "_entries", "_log", "_places", "_restored", "_value", "_value_of", "key_bytes", "key_of", "spec",
    )  # fmt: skip

    def __init__(self, spec: StoreSpec, context: StoreContext, slice_ms: int, *, by_window: bool = True) -> None:
        self.spec = spec
        self.key_bytes = context.key_serde.encode
        self.key_of = context.key_serde.decode
        self._value = context.value_serde.encode
        self._value_of = context.value_serde.decode
        self._log = context.log
        self._entries = InTime(context, slice_ms)
        self._places = None if by_window else _Places(context.backend)
        self._changed: dict[bytes, int] = {}
        self._restored: dict[bytes, int] = {}

    @property
    def count(self) -> int:
        return self._entries.cells.numbers[_COUNT]

    @property
    def size(self) -> int:
        """In bytes, as Kafka estimates it."""
        return self._entries.cells.numbers[_BYTES]

    def put(self, time: int, key: bytes, held: Held) -> None:
        """`time` counts for a key that is not held back yet."""
        new = None if held.new is None else self._value(held.new)
        old = None if held.old is None else self._value(held.old)
        if self._places is not None:
            time = self._places.take(key, time)
        before = self._entries.get(time, 0, key)
        prior = old if before is None else _prior(before)
        where = held.metadata or RecordMetadata("", -1, -1)
        parts = [record_context(held.timestamp, where.offset, where.topic, where.partition, held.headers)]
        parts.append(nullable(prior))
        parts.append(INT.pack(SAME_AS_PRIOR) if old is not None and old == prior else nullable(old))
        parts.append(nullable(new))
        data = b"".join(parts)
        numbers = self._entries.cells.numbers
        numbers[_COUNT] += before is None
        numbers[_BYTES] += _estimate(key, data) - (0 if before is None else _estimate(key, before))
        self._entries.put(time, 0, key, data)
        self._entries.cells.touch()
        self._changed[key] = time

    def take_while(self, goes: Callable[[int], bool]) -> Iterator[tuple[bytes, Held]]:
        """The oldest first, for as long as their time says so; each is gone once the next is asked for."""
        for when, _, key in self._entries.in_order():
            if not goes(when):
                return
            data = self._entries.get(when, 0, key) or b""
            yield key, self._held(data)
            self._drop(when, key, data)
            self._changed[key] = when

    def _drop(self, time: int, key: bytes, data: bytes) -> None:
        numbers = self._entries.cells.numbers
        numbers[_COUNT] -= 1
        numbers[_BYTES] -= _estimate(key, data)
        self._entries.remove(time, 0, key)
        if self._places is not None:
            self._places.leave(key)

    def prior(self, key: bytes, window_end: int | None) -> tuple[bool, Any]:
        """Whether the key is held back, and the value it had before."""
        time = window_end if self._places is None else self._places.get(key)
        data = None if time is None else self._entries.get(time, 0, key)
        if data is None:
            return False, None
        value = _prior(data)
        return True, None if value is None else self._value_of(value)

    def earliest(self) -> int | None:
        for time, _, _ in self._entries.in_order():
            return time
        return None

    def restore(self, key: bytes, value: bytes | None, _timestamp: int, headers: Headers = ()) -> None:
        """A tombstone tells the key and not the time that it waited for: that is remembered while restoring, also when
        what was restored is written away."""
        known = self._restored.pop(key, None)
        if known is not None:
            self._drop(known, key, self._entries.get(known, 0, key) or b"")
        if value is None:
            return
        if headers != _CHANGELOG_HEADERS:
            raise ValueError(
                f"the changelog of {self.spec.name} has a record of another version than Kafka 4.3 writes: {headers}"
            )
        (time,) = LONG.unpack_from(value, len(value) - 8)
        data = value[:-8]
        if self._places is not None:
            self._places.take(key, time)
        numbers = self._entries.cells.numbers
        numbers[_COUNT] += 1
        numbers[_BYTES] += _estimate(key, data)
        self._entries.put(time, 0, key, data)
        self._entries.cells.touch()
        self._restored[key] = time

    def log_changes(self, now: int) -> None:
        """At a commit: what each changed key has now."""
        changed, self._changed = self._changed, {}
        if self._log is None:
            return
        for key, time in changed.items():
            data = self._entries.get(time, 0, key)
            if data is None:
                self._log(key, None, now, ())
            else:
                self._log(key, data + LONG.pack(time), now, _CHANGELOG_HEADERS)

    def flush(self) -> None:
        self._entries.cells.flush()
        if self._places is not None:
            self._places.flush()

    def forget(self) -> None:
        self._entries.forget()
        if self._places is not None:
            self._places.forget()

    def _held(self, data: bytes) -> Held:
        timestamp, offset, topic, partition, headers, at = read_record_context(data, 0)
        prior, at = read_nullable(data, at)
        (length,) = INT.unpack_from(data, at)
        old, at = (prior, at + 4) if length == SAME_AS_PRIOR else read_nullable(data, at)
        new, at = read_nullable(data, at)
        return Held(
            None if new is None else self._value_of(new),
            None if old is None else self._value_of(old),
            timestamp,
            headers,
            RecordMetadata(topic, partition, offset) if topic else None,
        )


class _Places:
    """Under which time each key is held back."""

    __slots__ = ("_backend", "_changed", "_known")

    def __init__(self, backend: StoreBackend) -> None:
        self._backend = backend
        self._known: dict[bytes, int | None] = {}
        self._changed: dict[bytes, None] = {}

    def get(self, key: bytes) -> int | None:
        try:
            return self._known[key]
        except KeyError:
            data = self._backend.get(_PLACE + key)
            found = self._known[key] = None if data is None else LONG.unpack(data)[0]
            return found

    def take(self, key: bytes, time: int) -> int:
        """The place it has, or else this one."""
        found = self.get(key)
        if found is not None:
            return found
        self._known[key] = time
        self._changed[key] = None
        return time

    def leave(self, key: bytes) -> None:
        self._known[key] = None
        self._changed[key] = None

    def flush(self) -> None:
        for key in self._changed:
            time = self._known[key]
            if time is None:
                self._backend.delete(_PLACE + key)
            else:
                self._backend.put(_PLACE + key, LONG.pack(time))
        self._changed.clear()

    def forget(self) -> None:
        self._known.clear()


def _prior(data: bytes) -> bytes | None:
    *_, at = read_record_context(data, 0)
    return read_nullable(data, at)[0]


def _estimate(key: bytes, data: bytes) -> int:
    """The time, the key, the values once, and of the record's origin all but the lengths."""
    _, _, topic, _, headers, at = read_record_context(data, 0)
    prior, at = read_nullable(data, at)
    (length,) = INT.unpack_from(data, at)
    old, at = (None, at + 4) if length == SAME_AS_PRIOR else read_nullable(data, at)
    new, at = read_nullable(data, at)
    origin = 8 + 8 + 4 + len(topic) + sum(len(name) + len(value or b"") for name, value in headers)
    return 8 + len(key) + sum(len(value) for value in (prior, old, new) if value is not None) + origin
