"""Window stores: values by key and window start, kept for the retention time.

What is past retention is not found any more, by the clock of the window starts that were put in. Kafka drops whole
segments of at least a minute; that shows only in what it counts as dropped, so the counting follows its segments.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

from ottla.streams.record import Headers
from ottla.streams.tasks.stores.base import EXPIRED, StoreContext
from ottla.streams.tasks.stores.cells import Cells, Entry, pack_cell
from ottla.streams.tasks.stores.codec import LONG, unwindowed, window_key
from ottla.streams.tasks.stores.with_headers import packed
from ottla.streams.topology.stores import StoreSpec, ValueAndTimestamp
from ottla.streams.windows import LONGEST_MS, Window, Windowed

_SHORTEST_SEGMENT_MS: Final = 60_000
_SHORTEST_SLICE_MS: Final = 1_000
_MOST_SLICES: Final = 64
_LARGEST_SEQUENCE: Final = 0x7FFF_FFFF

_STREAM_TIME: Final = 0
_SEQUENCE: Final = 1


def segment_ms(retention_ms: int) -> int:
    return max(retention_ms // 2, _SHORTEST_SEGMENT_MS)


class Windows:
    """A store over a backend. Operators use the byte keys (`key_bytes`, `read`, `write`)."""

    __slots__ = (
        "_cache",
        "_cells",
        "_dropped",
        "_kept_ms",
        "_log",
        "_moment",
        "_place",
        "_segment_ms",
        "_slice_ms",
        "_time_ordered",
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
        # A fetch around a record reaches over a window, so into two slices at most; and the directory stays short.
        # Slices shorter than a second would make a cell of every record.
        self._slice_ms = max(spec.window_size_ms, spec.retention_ms // _MOST_SLICES, _SHORTEST_SLICE_MS)
        self._cells = Cells(context.backend, (-1, 0))
        self._time_ordered = False
        self._kept_ms = spec.retention_ms - 1
        self._place: tuple[bytes, int, bytes, list[Entry], int] | None = None
        """Where the last read found its window: an aggregate writes what it has just read."""

    def in_time_order(self) -> None:
        """As Kafka's store of an aggregate that emits on close: ordered by time, and kept one millisecond longer."""
        self._time_ordered = True
        self._kept_ms = self.spec.retention_ms

    @property
    def stream_time(self) -> int:
        return self._cells.numbers[_STREAM_TIME]

    # ---- with byte keys

    def raw(self, key: bytes, start: int) -> bytes | None:
        if start < self._cells.numbers[_STREAM_TIME] - self._kept_ms:
            return None
        address = pack_cell(b"c", start // self._slice_ms) + key
        cell = self._cells.cell(address)
        if cell:
            at = bisect_left(cell, (start,)) if len(cell) > 1 else int(cell[0][0] < start)
            if at < len(cell) and cell[at][0] == start:
                if not self.spec.retain_duplicates:
                    self._place = (key, start, address, cell, at)
                return cell[at][2]
        return None

    def read(self, key: bytes, start: int) -> tuple[Any, int] | None:
        """Value and timestamp of a timestamped store."""
        found = self.raw(key, start)
        if found is None:
            return None
        return self._value_of(found[8:]), LONG.unpack_from(found)[0]

    def write(self, key: bytes, value: Any, timestamp: int, start: int) -> None:
        """To a timestamped store."""
        data = None if value is None else self._value(value)
        if self._cache is not None and window_key(key, start, 0) not in self._cache.updates:
            self._cache.found = self.raw(key, start)
        sequence = self._set(key, None if data is None else LONG.pack(timestamp) + data, start)
        if self._log is not None:
            at = self._moment.timestamp if data is None else timestamp
            self._log(window_key(key, start, sequence), data, at, ())

    def write_plain(self, key: bytes, value: Any, start: int, timestamp: int, headers: Headers = ()) -> None:
        data = None if value is None else self._value(value)
        sequence = self._set(key, data, start)
        if self._log is not None:
            self._log(window_key(key, start, sequence), data, timestamp, headers)

    def values_between(self, key: bytes, first: int, last: int) -> list[tuple[int, Any]]:
        """(start, value) of a plain store, the oldest first."""
        value_of = self._value_of
        return [(start, value_of(data)) for start, data in self._between(key, first, last)]

    def raw_between(self, key: bytes, first: int, last: int) -> list[tuple[int, bytes]]:
        """(start, data), the oldest first; of a timestamped store `time_in` and `value_in` tell what the data say."""
        return self._between(key, first, last)

    @staticmethod
    def time_in(data: bytes) -> int:
        time: int = LONG.unpack_from(data)[0]
        return time

    def value_in(self, data: bytes) -> Any:
        return self._value_of(data[8:])

    # ---- for processors

    def put(self, key: Any, value: Any, window_start: int) -> None:
        if not self.spec.timestamped:
            self.write_plain(self._named(key), value, window_start, self._moment.timestamp)
        elif value is None:
            self.write(self._named(key), None, 0, window_start)
        else:
            self.write(self._named(key), value[0], value[1], window_start)

    def fetch(self, key: Any, window_start: int) -> Any:
        found = self.raw(self._named(key), window_start)
        return None if found is None else self._seen(found)

    def fetch_range(self, key: Any, first_start: int, last_start: int) -> Iterator[tuple[int, Any]]:
        for start, data in self._between(self._named(key), first_start, last_start):
            yield start, self._seen(data)

    def backward_fetch_range(self, key: Any, first_start: int, last_start: int) -> Iterator[tuple[int, Any]]:
        for start, data in reversed(self._between(self._named(key), first_start, last_start)):
            yield start, self._seen(data)

    def fetch_all(self, first_start: int, last_start: int) -> Iterator[tuple[Windowed, Any]]:
        return self._windowed(self._all(first_start, last_start))

    def backward_fetch_all(self, first_start: int, last_start: int) -> Iterator[tuple[Windowed, Any]]:
        return self._windowed(self._all(first_start, last_start)[::-1])

    def fetch_keys(
        self, first_key: Any, last_key: Any, first_start: int, last_start: int
    ) -> Iterator[tuple[Windowed, Any]]:
        return self._windowed(self._of_keys(first_key, last_key, first_start, last_start))

    def backward_fetch_keys(
        self, first_key: Any, last_key: Any, first_start: int, last_start: int
    ) -> Iterator[tuple[Windowed, Any]]:
        return self._windowed(self._of_keys(first_key, last_key, first_start, last_start)[::-1])

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_all(0, LONGEST_MS)

    def backward_all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.backward_fetch_all(0, LONGEST_MS)

    # ---- for whoever runs the task

    def flush(self) -> None:
        self._cells.flush()

    def forget(self) -> None:
        self._place = None
        self._cells.forget()

    def _oldest(self) -> int:
        return self._cells.numbers[_STREAM_TIME] - self._kept_ms

    def _set(self, key: bytes, data: bytes | None, start: int) -> int:
        """Gives the sequence number, which is zero unless duplicates are kept."""
        cells = self._cells
        numbers = cells.numbers
        place, self._place = self._place, None
        if place is not None and place[0] is key and place[1] == start and data is not None:
            place[3][place[4]] = (start, 0, data)
            cells.changed(place[2])
            return 0
        duplicates = self.spec.retain_duplicates
        sequence = self._next_sequence()
        if data is None and duplicates:
            return sequence  # nothing to delete: each value has its own sequence number
        if start > numbers[_STREAM_TIME]:
            self._advance(start)
        limit = numbers[_STREAM_TIME] - self.spec.retention_ms
        if start >= limit:
            self._enter(key, data, start, sequence)
        elif start // self._segment_ms < limit // self._segment_ms:
            self._dropped(EXPIRED)
        return sequence

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        self._place = None
        if self.spec.headers and value is not None:
            value = packed(value, timestamp, headers)
        key, start, sequence = unwindowed(key)
        numbers = self._cells.numbers
        if start > numbers[_STREAM_TIME]:
            self._advance(start)
        if self.spec.retain_duplicates and sequence != numbers[_SEQUENCE]:
            numbers[_SEQUENCE] = sequence
            self._cells.touch()
        if start >= numbers[_STREAM_TIME] - self.spec.retention_ms:
            timed = value is not None and self.spec.timestamped
            data = LONG.pack(timestamp) + value if timed and value is not None else value
            self._enter(key, data, start, sequence)

    def _enter(self, key: bytes, data: bytes | None, start: int, sequence: int) -> None:
        cells = self._cells
        slice_ = start // self._slice_ms
        address = Cells.address(slice_, key)
        cell = cells.cell(address)
        if cell is None:
            if data is None:
                return
            cell = cells.create(address)
            cells.enter(slice_, key)
        at = bisect_left(cell, (start, sequence))
        present = at < len(cell) and cell[at][0] == start and cell[at][1] == sequence
        if data is None:
            del cell[at : at + present]
        else:
            cell[at : at + present] = [(start, sequence, data)]
        cells.changed(address)

    def _next_sequence(self) -> int:
        """Zero unless duplicates are kept."""
        cells = self._cells
        if self.spec.retain_duplicates:
            cells.numbers[_SEQUENCE] = (cells.numbers[_SEQUENCE] + 1) & _LARGEST_SEQUENCE
            cells.touch()
        return cells.numbers[_SEQUENCE]

    def _advance(self, start: int) -> None:
        cells = self._cells
        cells.numbers[_STREAM_TIME] = start
        cells.touch()
        first_alive = (start - self.spec.retention_ms) // self._slice_ms
        for slice_ in [slice_ for slice_ in cells.slices if slice_ < first_alive]:
            cells.drop(slice_)

    def _between(self, key: bytes, first: int, last: int) -> list[tuple[int, bytes]]:
        first = max(first, self._oldest(), 0)
        found: list[tuple[int, bytes]] = []
        if last < first:
            return found
        cells = self._cells
        for slice_ in self._slices(first, last):
            cell = cells.cell(Cells.address(slice_, key))
            if cell:
                begin = bisect_left(cell, (first,))
                end = bisect_right(cell, (last, LONGEST_MS))
                found += [(start, data) for start, _, data in cell[begin:end]]
        return found

    def _slices(self, first: int, last: int) -> list[int]:
        """Those that exist, in order."""
        low, high = first // self._slice_ms, last // self._slice_ms
        slices = self._cells.slices
        if high - low < len(slices):
            return [slice_ for slice_ in range(low, high + 1) if slice_ in slices]
        return sorted(slice_ for slice_ in slices if low <= slice_ <= high)

    def _all(self, first: int, last: int) -> list[tuple[int, bytes, bytes]]:
        """(start, key, data), in the order in which Kafka's store has them."""
        first = max(first, self._oldest(), 0)
        found = []
        cells = self._cells
        for slice_ in self._slices(first, last) if last >= first else ():
            for key in cells.keys(slice_):
                for start, sequence, data in cells.cell(Cells.address(slice_, key)) or ():
                    if first <= start <= last:
                        order = (start, key) if self._time_ordered else (start // self._segment_ms, key)
                        found.append((*order, window_key(key, start, sequence), start, key, data))
        if self._time_ordered:
            found.sort(key=lambda entry: (entry[0], entry[1], entry[2]))
        else:
            # Within a segment Kafka's keys are key, start, sequence in one string of bytes.
            found.sort(key=lambda entry: (entry[0], entry[2]))
        return [entry[3:] for entry in found]

    def _of_keys(self, first_key: Any, last_key: Any, first: int, last: int) -> list[tuple[int, bytes, bytes]]:
        low = b"" if first_key is None else self.key_bytes(first_key)
        high = None if last_key is None else self.key_bytes(last_key)
        found = self._all(first, last)
        return [entry for entry in found if entry[1] >= low and (high is None or entry[1] <= high)]

    def _windowed(self, entries: list[tuple[int, bytes, bytes]]) -> Iterator[tuple[Windowed, Any]]:
        size = self.spec.window_size_ms
        for start, key, data in entries:
            yield Windowed(self.key_of(key), Window(start, start + size)), self._seen(data)

    def _named(self, key: Any) -> bytes:
        if key is None:
            raise ValueError(f"a key of the store {self.spec.name} must not be None")
        return self.key_bytes(key)

    def _seen(self, data: bytes) -> Any:
        if self.spec.timestamped:
            return ValueAndTimestamp(self._value_of(data[8:]), LONG.unpack_from(data)[0])
        return self._value_of(data)
