"""Session stores: aggregates by key, session start and session end, kept for the retention time after their end.

All sessions of a key lie in one cell: to find those around a record takes one lookup. For expiry the key is in the
index of each slice in which one of its sessions ends; an entry (-1, slice) in the cell says that it is there already.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final

from ottla.streams.record import Headers
from ottla.streams.tasks.stores.base import EXPIRED, StoreContext, nobody
from ottla.streams.tasks.stores.cells import HOME, Cells, Entry
from ottla.streams.tasks.stores.codec import session_key, unsessioned
from ottla.streams.tasks.stores.window import segment_ms
from ottla.streams.tasks.stores.with_headers import packed
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.windows import LONGEST_MS, Window, Windowed

_STREAM_TIME: Final = 0
_ALIVE_FROM: Final = 1


class Sessions:
    __slots__ = (
        "_cache",
        "_cells",
        "_dropped",
        "_log",
        "_moment",
        "_segment_ms",
        "_slice_ms",
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
        self._cache = context.cache
        self._log = context.log
        self._moment = context.moment
        self._dropped = context.dropped
        self._segment_ms = segment_ms(spec.retention_ms)
        self._slice_ms = self._segment_ms // 4
        self._cells = Cells(context.backend, (-1, 0))

    @property
    def stream_time(self) -> int:
        return self._cells.numbers[_STREAM_TIME]

    # ---- with byte keys

    def around(self, key: bytes, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        """(start, end, value) of the sessions that end at or after one moment and start at or before another."""
        cell = self._cells.cell(Cells.address(HOME, key))
        if not cell:
            return []
        oldest = self._cells.numbers[_STREAM_TIME] - self.spec.retention_ms + 1
        begin = bisect_left(cell, (max(earliest_end, oldest, 0),))
        value_of = self._value_of
        return [(start, end, value_of(data)) for end, start, data in cell[begin:] if start <= latest_start]

    def write(self, key: bytes, start: int, end: int, value: Any) -> None:
        data = None if value is None else self._value(value)
        self._remember(key, start, end)
        self._set(key, start, end, data, self._dropped)
        if self._log is not None:
            self._log(session_key(key, start, end), data, self._moment.timestamp, ())

    def erase(self, key: bytes, start: int, end: int) -> None:
        numbers = self._cells.numbers
        if end > numbers[_STREAM_TIME]:
            numbers[_STREAM_TIME] = end
            self._cells.touch()
        self._remember(key, start, end)
        self._delete(key, start, end)
        if self._log is not None:
            self._log(session_key(key, start, end), None, self._moment.timestamp, ())

    def ended_between(self, first: int, last: int) -> list[tuple[int, int, bytes, Any]]:
        """(end, start, key bytes, value) of all keys, in that order, also past retention while Kafka still has them."""
        first = max(first, self._cells.numbers[_ALIVE_FROM])
        found = []
        for key in self._keys(first, last):
            for end, start, data in self._cells.cell(Cells.address(HOME, key)) or ():
                if first <= end <= last:
                    found.append((end, start, key, data))
        found.sort()
        value_of = self._value_of
        return [(end, start, key, value_of(data)) for end, start, key, data in found]

    # ---- for processors

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        for start, end, value in self.around(self._named(key), earliest_end, latest_start):
            yield Windowed(key, Window(start, end)), value

    def backward_find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        for start, end, value in reversed(self.around(self._named(key), earliest_end, latest_start)):
            yield Windowed(key, Window(start, end)), value

    def find_sessions_of_keys(
        self, first_key: Any, last_key: Any, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Any]]:
        return iter(self._of_keys(first_key, last_key, earliest_end, latest_start))

    def backward_find_sessions_of_keys(
        self, first_key: Any, last_key: Any, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Any]]:
        return iter(self._of_keys(first_key, last_key, earliest_end, latest_start)[::-1])

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        return self.find_sessions(key, 0, LONGEST_MS)

    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        return self.backward_find_sessions(key, 0, LONGEST_MS)

    def fetch_keys(self, first_key: Any, last_key: Any) -> Iterator[tuple[Windowed, Any]]:
        return self.find_sessions_of_keys(first_key, last_key, 0, LONGEST_MS)

    def backward_fetch_keys(self, first_key: Any, last_key: Any) -> Iterator[tuple[Windowed, Any]]:
        return self.backward_find_sessions_of_keys(first_key, last_key, 0, LONGEST_MS)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        for found_start, found_end, value in self.around(self._named(key), end, start):
            if found_start == start and found_end == end:
                return value
        return None

    def put(self, session: Windowed, value: Any) -> None:
        self.write(self._named(session.key), session.window.start, session.window.end, value)

    def remove(self, session: Windowed) -> None:
        self.erase(self._named(session.key), session.window.start, session.window.end)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.find_sessions_of_keys(None, None, 0, LONGEST_MS)

    # ---- for whoever runs the task

    def flush(self) -> None:
        self._cells.flush()

    def forget(self) -> None:
        self._cells.forget()

    def restore(self, key: bytes, value: bytes | None, _timestamp: int, headers: Headers = ()) -> None:
        if self.spec.headers and value is not None:
            value = packed(value, -1, headers)
        self._set(*unsessioned(key), value, nobody)

    def _set(self, key: bytes, start: int, end: int, data: bytes | None, dropped: Callable[[str], None]) -> None:
        numbers = self._cells.numbers
        if end > numbers[_STREAM_TIME]:
            numbers[_STREAM_TIME] = end
            self._cells.touch()
        alive = (numbers[_STREAM_TIME] - self.spec.retention_ms) // self._segment_ms
        if end // self._segment_ms < alive:
            dropped(EXPIRED)
            return
        if alive * self._segment_ms > numbers[_ALIVE_FROM]:
            self._expire(alive * self._segment_ms)
        if data is None:
            self._delete(key, start, end)
            return
        address = Cells.address(HOME, key)
        cell = self._cells.cell(address)
        if cell is None:
            cell = self._cells.create(address)
        self._mark(cell, end // self._slice_ms, key)
        at = bisect_left(cell, (end, start))
        present = at < len(cell) and cell[at][0] == end and cell[at][1] == start
        cell[at : at + present] = [(end, start, data)]
        self._cells.changed(address)

    def _remember(self, key: bytes, start: int, end: int) -> None:
        """For the cache: what is there before it is first changed."""
        if self._cache is None or session_key(key, start, end) in self._cache.updates:
            return
        cell = self._cells.cell(Cells.address(HOME, key)) or []
        at = bisect_left(cell, (end, start))
        present = at < len(cell) and cell[at][0] == end and cell[at][1] == start
        self._cache.found = cell[at][2] if present else None

    def _delete(self, key: bytes, start: int, end: int) -> None:
        address = Cells.address(HOME, key)
        cell = self._cells.cell(address)
        if cell:
            at = bisect_left(cell, (end, start))
            if at < len(cell) and cell[at][0] == end and cell[at][1] == start:
                del cell[at]
                self._cells.changed(address)

    def _mark(self, cell: list[Entry], slice_: int, key: bytes) -> None:
        at = bisect_left(cell, (-1, slice_))
        if at == len(cell) or cell[at][0] != -1 or cell[at][1] != slice_:
            cell.insert(at, (-1, slice_, b""))
            self._cells.enter(slice_, key)

    def _expire(self, alive_from: int) -> None:
        cells = self._cells
        cells.numbers[_ALIVE_FROM] = alive_from
        cells.touch()
        for slice_ in [slice_ for slice_ in cells.slices if (slice_ + 1) * self._slice_ms <= alive_from]:
            for key in cells.keys(slice_):
                address = Cells.address(HOME, key)
                cell = cells.cell(address)
                if cell is None:
                    continue
                cell[:] = [entry for entry in cell if not self._is_of(entry, slice_)]
                if cell:
                    cells.changed(address)
                else:
                    cells.remove(address)
            cells.forget_slice(slice_)

    def _is_of(self, entry: Entry, slice_: int) -> bool:
        return entry[1] == slice_ if entry[0] == -1 else entry[0] // self._slice_ms == slice_

    def _keys(self, first: int, last: int) -> list[bytes]:
        """Of the sessions that end in this time, each once."""
        low, high = first // self._slice_ms, last // self._slice_ms
        found: dict[bytes, None] = {}
        for slice_ in sorted(self._cells.slices):
            if low <= slice_ <= high:
                found.update(dict.fromkeys(self._cells.keys(slice_)))
        return list(found)

    def _of_keys(
        self, first_key: Any, last_key: Any, earliest_end: int, latest_start: int
    ) -> list[tuple[Windowed, Any]]:
        """In the order in which Kafka's store has them; None is open."""
        low = b"" if first_key is None else self.key_bytes(first_key)
        high = None if last_key is None else self.key_bytes(last_key)
        oldest = max(0, earliest_end, self._cells.numbers[_STREAM_TIME] - self.spec.retention_ms + 1)
        found = []
        for key in self._keys(oldest, LONGEST_MS):
            if key < low or (high is not None and key > high):
                continue
            for end, start, data in self._cells.cell(Cells.address(HOME, key)) or ():
                if end >= oldest and start <= latest_start:
                    found.append((end // self._segment_ms, session_key(key, start, end), key, start, end, data))
        found.sort()
        value_of = self._value_of
        return [
            (Windowed(self.key_of(key), Window(start, end)), value_of(data)) for _, _, key, start, end, data in found
        ]

    def _named(self, key: Any) -> bytes:
        if key is None:
            raise ValueError(f"a key of the store {self.spec.name} must not be None")
        return self.key_bytes(key)
