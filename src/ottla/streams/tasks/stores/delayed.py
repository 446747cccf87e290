"""The buffer of a join with a versioned table: records of the stream wait until the table's late records are there."""

from collections.abc import Iterator
from typing import Final

from ottla.streams.record import Headers, Record, RecordMetadata
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.codec import INT, LONG, nullable, read_nullable, read_record_context, record_context
from ottla.streams.tasks.stores.waiting import InTime
from ottla.streams.topology.stores import StoreSpec

_STREAM_TIME: Final = 0
_SEQUENCE: Final = 1
_LARGEST_SEQUENCE: Final = 0x7FFF_FFFF
_NOTHING: Final = nullable(None)
_TIME_FIRST: Final = b"\x00"
_NO_TIME: Final = LONG.pack(0)


class Delayed:
    """By time, then key, then number: the order of Kafka's RocksDBTimeOrderedKeyValueBuffer, and its changelog."""

    __slots__ = ("_entries", "_grace_ms", "_key", "_key_of", "_log", "_value", "_value_of", "spec")

    def __init__(self, spec: StoreSpec, context: StoreContext, grace_ms: int, slice_ms: int) -> None:
        self.spec = spec
        self._key = context.key_serde.encode
        self._key_of = context.key_serde.decode
        self._value = context.value_serde.encode
        self._value_of = context.value_serde.decode
        self._log = context.log
        self._grace_ms = grace_ms
        self._entries = InTime(context, slice_ms, first=(-1, 0))

    def add(self, record: Record, metadata: RecordMetadata | None, now: int) -> bool:
        """False: it is late, and must not wait."""
        key, value, timestamp, headers = record
        if key is None or value is None:
            raise ValueError(f"a record of a join with grace needs a key and a value: the buffer is {self.spec.name}")
        cells = self._entries.cells
        numbers = cells.numbers
        if numbers[_STREAM_TIME] - self._grace_ms > timestamp:
            return False
        numbers[_STREAM_TIME] = max(numbers[_STREAM_TIME], timestamp)
        numbers[_SEQUENCE] = (numbers[_SEQUENCE] + 1) & _LARGEST_SEQUENCE
        cells.touch()
        name = self._key(key) + INT.pack(numbers[_SEQUENCE])
        data = _origin(timestamp, metadata, headers) + _NOTHING + _NOTHING + nullable(self._value(value))
        self._entries.put(timestamp, 0, name, data)
        if self._log is not None:
            self._log(_TIME_FIRST + LONG.pack(timestamp) + name, data + _NO_TIME, now, ())
        return True

    def take_due(self, now: int) -> Iterator[tuple[Record, RecordMetadata | None]]:
        """Those whose grace is over, the oldest first; each is gone once the next is asked for."""
        due = self._entries.cells.numbers[_STREAM_TIME] - self._grace_ms
        for timestamp, _, name in self._entries.in_order():
            if timestamp > due:
                return
            yield self._waited(name, self._entries.get(timestamp, 0, name) or b"")
            self._entries.remove(timestamp, 0, name)
            if self._log is not None:
                self._log(_TIME_FIRST + LONG.pack(timestamp) + name, None, now, ())

    def flush(self) -> None:
        self._entries.cells.flush()

    def forget(self) -> None:
        self._entries.forget()

    def restore(self, key: bytes, value: bytes | None, _timestamp: int, _headers: Headers = ()) -> None:
        """One record of the changelog. Its key has the time and the number: the record's own time says nothing."""
        when, name = LONG.unpack_from(key, 1)[0], key[9:]
        if value is None:
            self._entries.remove(when, 0, name)
            return
        cells = self._entries.cells
        cells.numbers[_STREAM_TIME] = max(cells.numbers[_STREAM_TIME], when)
        cells.numbers[_SEQUENCE] = INT.unpack(name[-4:])[0]
        cells.touch()
        self._entries.put(when, 0, name, value[:-8])

    def _waited(self, name: bytes, data: bytes) -> tuple[Record, RecordMetadata | None]:
        timestamp, offset, topic, partition, headers, at = read_record_context(data, 0)
        for _ in range(2):
            _, at = read_nullable(data, at)
        value, _ = read_nullable(data, at)
        assert value is not None, "a record without a value does not wait"
        origin = RecordMetadata(topic, partition, offset) if topic else None
        return Record(self._key_of(name[:-4]), self._value_of(value), timestamp, headers), origin


def _origin(timestamp: int, metadata: RecordMetadata | None, headers: Headers) -> bytes:
    topic, partition, offset = metadata or ("", -1, -1)
    return record_context(timestamp, offset, topic, partition, headers)
