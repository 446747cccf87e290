"""Versioned key-value stores: each key with its history, for as long as the store keeps it.

A version is valid from its own timestamp until that of the next one. The latest version of a key never expires; older
ones do when stream time has passed their end by the history retention. A record that is older than that is not taken.
"""

from typing import Any, Final

from ottla.streams.record import Headers
from ottla.streams.tasks.stores.base import EXPIRED, StoreContext
from ottla.streams.tasks.stores.cells import HOME, Cells, Entry
from ottla.streams.tasks.stores.history import History, Version
from ottla.streams.topology.stores import NOT_PUT, StoreSpec, VersionedRecord

_STREAM_TIME: Final = 0


class Versions:
    """All versions of a key lie in one cell. Operators use the byte keys (`key_bytes`, `read`, `write`)."""

    __slots__ = (
        "_cells",
        "_dropped",
        "_log",
        "_retention_ms",
        "_segment_ms",
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
        self._log = context.log
        self._dropped = context.dropped
        self._retention_ms = spec.retention_ms
        self._segment_ms = spec.segment_interval_ms
        self._cells = Cells(context.backend, (-1,))

    # ---- with byte keys

    def read(self, key: bytes) -> tuple[Any, int] | None:
        """Value and timestamp of the latest version."""
        found = self._history(key).latest()
        return None if found is None else (self._value_of(found.data), found.valid_from)

    def read_as_of(self, key: bytes, timestamp: int) -> tuple[Any, int] | None:
        found = self._as_of(key, timestamp)
        return None if found is None else (self._value_of(found.data), found.valid_from)

    def write(self, key: bytes, value: Any, timestamp: int) -> int:
        """Until when the version is valid: IS_LATEST, the time of the next one, or NOT_PUT for one that is too old. The
        changelog has that one as well, as Kafka's has."""
        data = None if value is None else self._value(value)
        valid_to = self._put(key, data, timestamp)
        if valid_to == NOT_PUT:
            self._dropped(EXPIRED)
        if self._log is not None:
            self._log(key, data, timestamp, ())
        return valid_to

    # ---- for processors

    def get(self, key: Any, as_of: int | None = None) -> VersionedRecord | None:
        name = self._named(key)
        return self._seen(self._history(name).latest() if as_of is None else self._as_of(name, as_of))

    def history(self, key: Any, first: int, last: int) -> list[VersionedRecord]:
        """The versions that were valid at some moment between the two, the oldest first."""
        history = self._history(self._named(key))
        if last < self._cells.numbers[_STREAM_TIME] - self._retention_ms:
            latest = history.latest()
            found = [latest] if latest is not None and latest.valid_from <= last else []
        else:
            found = history.between(first, last)
        return [VersionedRecord(self._value_of(each.data), each.valid_from, each.valid_to) for each in found]

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        return self.write(self._named(key), value, timestamp)

    def delete(self, key: Any, timestamp: int) -> VersionedRecord | None:
        name = self._named(key)
        expired = timestamp < self._cells.numbers[_STREAM_TIME] - self._retention_ms
        found = None if expired else self._as_of(name, timestamp)
        self.write(name, None, timestamp)
        return self._seen(found)

    # ---- for whoever runs the task

    def flush(self) -> None:
        self._cells.flush()

    def forget(self) -> None:
        self._cells.forget()

    def restore(self, key: bytes, value: bytes | None, timestamp: int, _headers: Headers = ()) -> None:
        """One record of the changelog."""
        self._put(key, value, timestamp)

    def _put(self, key: bytes, data: bytes | None, timestamp: int) -> int:
        cells = self._cells
        stream_time = cells.numbers[_STREAM_TIME]
        if timestamp < stream_time - self._retention_ms:
            return NOT_PUT
        if timestamp > stream_time:
            self._advance(timestamp)
        address = Cells.address(HOME, key)
        entries = cells.cell(address)
        history = self._history_of(cells.create(address) if entries is None else entries)
        valid_to = history.put(data, timestamp)
        for segment in history.entered:
            cells.enter(segment, key)
        if history.entries:
            cells.changed(address)
        else:
            cells.remove(address)
        return valid_to

    def _advance(self, timestamp: int) -> None:
        cells = self._cells
        cells.numbers[_STREAM_TIME] = timestamp
        cells.touch()
        first_alive = (timestamp - self._retention_ms) // self._segment_ms
        for segment in [segment for segment in cells.slices if segment < first_alive]:
            for key in cells.keys(segment):
                address = Cells.address(HOME, key)
                entries = cells.cell(address)
                assert entries is not None, "the index of a segment knows a key that is not there"
                self._history_of(entries).expire(segment)
                if entries:
                    cells.changed(address)
                else:
                    cells.remove(address)
            cells.forget_slice(segment)

    def _as_of(self, key: bytes, timestamp: int) -> Version | None:
        history = self._history(key)
        if timestamp < self._cells.numbers[_STREAM_TIME] - self._retention_ms:
            latest = history.latest()
            return latest if latest is not None and latest.valid_from <= timestamp else None
        return history.at(timestamp)

    def _history(self, key: bytes) -> History:
        return self._history_of(self._cells.cell(Cells.address(HOME, key)) or [])

    def _history_of(self, entries: list[Entry]) -> History:
        first_alive = (self._cells.numbers[_STREAM_TIME] - self._retention_ms) // self._segment_ms
        return History(entries, self._segment_ms, first_alive)

    def _named(self, key: Any) -> bytes:
        if key is None:
            raise ValueError(f"a key of the store {self.spec.name} must not be None")
        return self.key_bytes(key)

    def _seen(self, found: Version | None) -> VersionedRecord | None:
        if found is None:
            return None
        return VersionedRecord(self._value_of(found.data), found.valid_from, found.valid_to)
