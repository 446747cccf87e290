"""Aggregates that are given the records of a key at once: they wait until the batch ends, or there are many.

One result for each key (and window) goes out then, with the headers of the last record that led to it, as with a cache.
Where the store has none every update goes out, so nothing waits. In the test driver a batch is a record.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.streams.record import Change, Headers, Record, RecordMetadata
from ottla.streams.tasks.operators.aggregates import (
    Aggregating,
    Batches,
    Folding,
    Native,
    WindowAggregating,
)
from ottla.streams.tasks.operators.base import LATE, NULL_KEY, NULL_KEY_OR_VALUE, Operator, OperatorContext
from ottla.streams.topology.operations import Fold, StreamAggregate, UnlimitedAggregate, WindowAggregate
from ottla.streams.topology.stores import IS_LATEST, NOT_PUT, StoreSpec
from ottla.streams.windows import Window, Windowed

MOST_WAITING: Final = 100_000
"""Records that a task holds in memory for one aggregate."""


@dataclass(slots=True)
class _Group:
    """What waits for one key, or for one key and window."""

    key: Any
    timestamp: int
    headers: Headers = ()
    metadata: RecordMetadata | None = None
    several: list[Any] = field(default_factory=list)


class _Waiting:
    """Groups in the order of their first record."""

    def __init__(
        self, context: OperatorContext, batches: Batches, fold: Callable[[Any, _Group], None], store: StoreSpec
    ) -> None:
        self._most = MOST_WAITING if store.caching else 1
        self._groups: dict[Any, _Group] = {}
        self._count = 0
        self._fold = fold
        self._seen = batches.seen
        self._metadata = context.record_metadata
        self._set_metadata = context.set_record_metadata
        context.at_batch_end(self.fold_all)

    def add(self, place: Any, record: Record) -> None:
        group = self._groups.get(place)
        if group is None:
            group = self._groups[place] = _Group(record.key, record.timestamp)
        group.several.append(self._seen(record))
        group.timestamp = max(group.timestamp, record.timestamp)
        group.headers, group.metadata = record.headers, self._metadata()
        self._count += 1

    @property
    def is_full(self) -> bool:
        return self._count >= self._most

    def fold_all(self) -> bool:
        """Says whether there were any."""
        groups, self._groups, self._count = self._groups, {}, 0
        before = self._metadata()
        for place, group in groups.items():
            self._set_metadata(group.metadata)
            self._fold(place, group)
        self._set_metadata(before)
        return bool(groups)


def _folded(folding: Folding, group: _Group, old: Any, kept: Any) -> tuple[Any, Any, Any]:
    """New result, old result, new state."""
    native, batches = folding.native, folding.batches
    assert isinstance(native, Native) and batches is not None
    if kept is not None:
        state = kept[0]
    else:
        state = folding.initial() if old is None or native.resume is None else native.resume(old)
    added = batches.add_all(state, group.several)
    return native.shown(added), native.shown(state) if old is None else old, added


class BatchAggregating(Aggregating):
    _waiting: _Waiting

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        assert self._folding.batches is not None
        self._waiting = _Waiting(context, self._folding.batches, self._fold, self._store.spec)

    def process(self, record: Record) -> None:
        if record.key is None or record.value is None:
            self._dropped(NULL_KEY_OR_VALUE)
            return
        self._waiting.add(self._store.key_bytes(record.key), record)
        if self._waiting.is_full:
            self._waiting.fold_all()

    def _fold(self, name: bytes, group: _Group) -> None:
        store, states = self._store, self._states
        found = store.read(name)
        old = None if found is None else found[0]
        at = group.timestamp if found is None else max(group.timestamp, found[1])
        new, old, state = _folded(self._folding, group, old, None if states is None else states.read(name))
        if states is not None:
            states.write(name, state, at)
        written = store.write(name, new, at)
        if written != NOT_PUT:
            change = Change(new, old if self._send_old else None, written == IS_LATEST)
            self._forward(Record(group.key, change, at, group.headers))


class BatchWindowAggregating(WindowAggregating):
    _waiting: _Waiting

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        assert self._folding.batches is not None
        self._waiting = _Waiting(context, self._folding.batches, self._fold, self._store.spec)

    def process(self, record: Record) -> None:
        key, timestamp = record.key, record.timestamp
        if key is None:
            self._dropped(NULL_KEY)
            return
        self._stream_time = max(self._stream_time, timestamp)
        windows = self._windows
        close = self._stream_time - windows.grace_ms
        size, advance = windows.size_ms, windows.advance_ms
        if self._before_record:
            self._emit_closed(record.headers, close)
        name = self._store.key_bytes(key)
        start = self._origin + max(0, timestamp - size + advance) // advance * advance
        while start <= timestamp:
            if start + size > close:
                self._waiting.add((name, start), record)
            else:
                self._dropped(LATE)
            start += advance
        if self._on_close or self._waiting.is_full:
            self._waiting.fold_all()
        if self._on_close and not self._before_record:
            self._emit_closed(record.headers, close)

    def _fold(self, place: tuple[bytes, int], group: _Group) -> None:
        (name, start), store, states = place, self._store, self._states
        found = store.read(name, start)
        old = None if found is None else found[0]
        at = group.timestamp if found is None else max(group.timestamp, found[1])
        new, old, state = _folded(self._folding, group, old, None if states is None else states.read(name, start))
        if states is not None:
            states.write(name, state, at, start)
        store.write(name, new, at, start)
        if not self._on_close:
            window = Windowed(group.key, Window(start, start + self._windows.size_ms))
            self._forward(Record(window, Change(new, old if self._operation.send_old else None), at, group.headers))


def stream_aggregating(operation: StreamAggregate) -> Operator:
    return BatchAggregating(operation) if _batched(operation.fold) else Aggregating(operation)


def window_aggregating(operation: WindowAggregate | UnlimitedAggregate) -> Operator:
    return BatchWindowAggregating(operation) if _batched(operation.fold) else WindowAggregating(operation)


def _batched(fold: Fold) -> bool:
    return fold.native is not None and fold.native.batched
