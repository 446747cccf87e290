"""Aggregates over sliding windows, by Kafka's algorithm (KIP-450).

Each record has a left window, which ends with it, and a right one, which begins a millisecond after it and is there
only if a later record falls into it. A window's timestamp is that of its latest record: that tells, without keeping
the records, where the record before this one was and whether its right window would be empty.
"""

from typing import Any, NamedTuple

from ottla.streams.record import Change, Record
from ottla.streams.tasks.operators.aggregates import TimeWindowing
from ottla.streams.tasks.operators.base import LATE, NULL_KEY_OR_VALUE
from ottla.streams.topology.operations import SlidingAggregate
from ottla.streams.windows import Window, Windowed


class _Found(NamedTuple):
    """A window of the store. Its value is read again by each who needs it: a function may change what it is given."""

    start: int
    latest: int
    """The timestamp of its latest record."""
    data: bytes


class SlidingAggregating(TimeWindowing):
    """Per key and set of records that are within the time difference of each other."""

    def __init__(self, operation: SlidingAggregate) -> None:
        super().__init__(operation)
        self._windows = operation.windows
        self._send_old = operation.send_old

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None or value is None:
            self._dropped(NULL_KEY_OR_VALUE)
            return
        self._stream_time = max(self._stream_time, timestamp)
        difference = self._windows.difference_ms
        close = self._stream_time - self._windows.grace_ms
        if timestamp + difference < close:
            self._dropped(LATE)
            return
        name = self._store.key_bytes(key)
        if timestamp < difference:
            self._enter_early(record, name, close)
            return  # Kafka looks for closed windows at other records only
        self._enter(record, name, close)
        if self._on_close and self._may_emit(close):
            last = close - difference - 1
            if last >= 0:
                self._emit(headers, close, max(0, self._last_close - difference), last)

    def _enter(self, record: Record, name: bytes, close: int) -> None:
        """Into the windows that hold it, from the latest; then those are made which begin or end with it."""
        timestamp, difference = record.timestamp, self._windows.difference_ms
        right: _Found | None = None
        left: _Found | None = None
        previous: int | None = None
        has_left = has_right = False
        starts: set[int] = set()
        for found in reversed(self._between(name, max(0, timestamp - 2 * difference), timestamp + 1)):
            starts.add(found.start)
            end = found.start + difference
            if found.start == timestamp + 1:
                has_right = True
            elif end > timestamp:
                right = right or found
                self._update(record, name, found.start, close, found)
            elif end == timestamp:
                has_left = True
                self._update(record, name, found.start, close, found)
                if found.latest >= timestamp:
                    return  # another record of the same time made all windows already
                previous = found.latest
            else:
                left, previous = found, found.latest
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + difference >= timestamp:
            self._update(record, name, previous + 1, close)
        if not has_left:
            holds_previous = previous is not None and timestamp - difference <= previous
            self._update(record, name, timestamp - difference, close, base=left if holds_previous else None)
        if not has_right:
            self._begin_right(record, name, right)

    def _enter_early(self, record: Record, name: bytes, close: int) -> None:
        """A record whose left window would begin before time did: all those share the window that begins at zero."""
        timestamp = record.timestamp
        combined: _Found | None = None
        right: _Found | None = None
        previous: int | None = None
        has_right = False
        starts: set[int] = set()
        for found in self._between(name, 0, timestamp + 1):
            starts.add(found.start)
            if found.start == 0:
                combined = found
                if found.latest < timestamp:
                    previous = found.latest
            elif found.start <= timestamp:
                right = found
                self._update(record, name, found.start, close, found)
            else:
                has_right = True
        if right is None and combined is not None and combined.latest > timestamp:
            right = combined  # everything in it is later than this record, or there would be a right window
        if not has_right:
            self._begin_right(record, name, right)
        if previous is not None and previous + 1 not in starts:
            self._update(record, name, previous + 1, close)
        self._update(record, name, 0, close, combined)

    def _begin_right(self, record: Record, name: bytes, found: _Found | None) -> None:
        """The right window of a record, if later records are known: it has what was in `found` without this record."""
        if found is None or found.latest <= record.timestamp:
            return
        start = record.timestamp + 1
        value, state = self._aggregate(name, found)
        self._store.write(name, value, found.latest, start)
        if self._states is not None:
            self._states.write(name, state, found.latest, start)
        self._send(record, start, value, None, found.latest)

    def _update(
        self,
        record: Record,
        name: bytes,
        start: int,
        close: int,
        found: _Found | None = None,
        *,
        base: _Found | None = None,
    ) -> None:
        """Adds the record to a window: one that was found, or a new one, empty or with what is in `base`."""
        if start + self._windows.difference_ms < close:
            self._dropped(LATE)
            return
        folding = self._folding
        known = found or base
        if known is not None:
            old, state = self._aggregate(name, known)
        else:
            state = folding.initial()
            old = state if folding.native is None else folding.native.shown(state)
        at = record.timestamp if found is None or old is None else max(record.timestamp, found.latest)
        state = folding.add(record, state)
        new = state if folding.native is None else folding.native.shown(state)
        self._store.write(name, new, at, start)
        if self._states is not None:
            self._states.write(name, state, at, start)
        self._send(record, start, new, old if self._send_old else None, at)

    def _aggregate(self, name: bytes, found: _Found) -> tuple[Any, Any]:
        """A window's value, and the state to go on from."""
        value, native = self._store.value_in(found.data), self._folding.native
        if native is None:
            return value, value
        kept = None if self._states is None else self._states.read(name, found.start)
        if kept is not None:
            return value, kept[0]
        return value, self._folding.initial() if native.resume is None else native.resume(value)

    def _between(self, name: bytes, first: int, last: int) -> list[_Found]:
        store = self._store
        return [_Found(start, store.time_in(data), data) for start, data in store.raw_between(name, first, last)]

    def _send(self, record: Record, start: int, new: Any, old: Any, at: int) -> None:
        if not self._on_close:
            window = Windowed(record.key, Window(start, start + self._windows.difference_ms))
            self._forward(Record(window, Change(new, old), at, record.headers))
