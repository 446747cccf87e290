"""Tables: their nodes hand on `Change`s, with the old value where somebody downstream wants it."""

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.record import NO_TIMESTAMP, Change, Record, RecordMetadata
from ottla.streams.tasks.operators.base import (
    NULL_KEY,
    Downstream,
    Operator,
    OperatorContext,
    of_key_and_value,
    of_value,
    predicate,
)
from ottla.streams.tasks.operators.transforming import transformer
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.tasks.stores.waiting import Held, HeldBack
from ottla.streams.topology.operations import (
    Suppress,
    TableAggregate,
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableSource,
    TableToStream,
    TableTransformValues,
)
from ottla.streams.topology.processor import ValueTransformerWithKey
from ottla.streams.topology.stores import IS_LATEST, NOT_PUT
from ottla.streams.windows import Windowed

TableStore = KeyValues | Versions

_new: Final[Any] = tuple.__new__
"""Makes a named tuple without the detour over its own __new__."""


class Reading(Operator):
    """A topic, or a stream, as a table."""

    _forward: Downstream
    _dropped: Callable[[str], None]

    def __init__(self, operation: TableSource) -> None:
        self._operation = operation
        self._send_old = operation.send_old
        self._store: TableStore | None = None

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        if self._operation.store is not None:
            self._store = context.state_store(self._operation.store)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None:
            self._dropped(NULL_KEY)
            return
        store, old = self._store, None
        if store is not None:
            name = store.key_bytes(key)
            if self._send_old:
                found = store.read(name)
                old = None if found is None else found[0]
            written = store.write(name, value, timestamp)
            if written != IS_LATEST:
                if written != NOT_PUT:
                    self._forward(Record(key, Change(value, old, False), timestamp, headers))
                return
        self._forward(Record(key, Change(value, old), timestamp, headers))


class _Computing(Operator):
    """A table made from another one, row by row; with a store of its own if it is materialized."""

    _forward: Downstream
    _compute: Callable[[Record, Any], Any]

    def __init__(self, operation: TableFilter | TableMapValues | TableTransformValues) -> None:
        self._operation = operation
        self._send_old = operation.send_old
        self._store: TableStore | None = None

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        if self._operation.store is not None:
            self._store = context.state_store(self._operation.store)

    def _old(self, record: Record) -> Any:
        if not self._send_old:
            return None
        store = self._store
        if store is None:
            return self._compute(record, record.value.old)
        found = store.read(store.key_bytes(record.key))
        return None if found is None else found[0]

    def _send(self, record: Record, new: Any, old: Any) -> None:
        key, change, timestamp, headers = record
        store = self._store
        if store is None:
            self._forward(Record(key, Change(new, old, change.is_latest), timestamp, headers))
            return
        written = store.write(store.key_bytes(key), new, timestamp)
        if written != NOT_PUT:
            self._forward(Record(key, Change(new, old, written == IS_LATEST), timestamp, headers))


class TableFiltering(_Computing):
    _versioned: bool

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        operation = self._operation
        assert isinstance(operation, TableFilter)
        holds = predicate(context, operation.predicate, operation.negated)
        self._versioned = operation.versioned

        def compute(record: Record, value: Any) -> Any:
            return value if value is not None and holds(record.with_value(value)) else None

        self._compute = compute

    def process(self, record: Record) -> None:
        new = self._compute(record, record.value.new)
        old = self._old(record)
        if self._send_old and new is None and old is None and not self._versioned:
            return  # the row was not in this table before, and is not now
        self._send(record, new, old)


class TableMappingValues(_Computing):
    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        operation = self._operation
        call = of_value(context, operation.function, operation.with_key)  # type: ignore[union-attr]

        def compute(record: Record, value: Any) -> Any:
            return None if value is None else call(record.with_value(value))

        self._compute = compute

    def process(self, record: Record) -> None:
        new = self._compute(record, record.value.new)
        self._send(record, new, self._old(record))


class TransformingValues(_Computing):
    """Deleted rows are transformed as well, and may come out with a value."""

    _transformer: ValueTransformerWithKey

    def __init__(self, operation: TableTransformValues) -> None:
        super().__init__(operation)
        self._supplier = operation.supplier

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        self._transformer = transformer(self._supplier, context)
        transform = self._transformer.transform
        self._compute = lambda record, value: transform(record.key, value)

    def process(self, record: Record) -> None:
        new = self._compute(record, record.value.new)
        self._send(record, new, self._old(record))

    def close(self) -> None:
        self._transformer.close()


class Streaming(Operator):
    """to_stream: of a change the new value, which is None for a deleted row."""

    _forward: Downstream

    def __init__(self, operation: TableToStream) -> None:
        self._operation = operation
        self._key: Callable[[Record], Any] | None = None

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        if self._operation.select_key is not None:
            self._key = of_key_and_value(context, self._operation.select_key)

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        sent = _new(Record, (key, change[0], timestamp, headers))
        self._forward(sent if self._key is None else sent.with_key(self._key(sent)))


class Regrouping(Operator):
    """group_by of a table: takes the old row back from its group and gives the new one to its own."""

    _forward: Downstream

    def __init__(self, operation: TableRepartitionMap) -> None:
        self._selector = operation.selector
        self._versioned = operation.versioned

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        if key is None:
            raise ValueError("a record of a table that is grouped anew has no key")
        if self._versioned and not change.is_latest:
            return  # the row that counts is a later one (KIP-914)
        new = self._pair(key, change.new)
        old = self._pair(key, change.old)
        latest = change.is_latest
        # One record when the group stays the same, so that no reader sees the aggregate without the row in between.
        if old is not None and new is not None and old[0] == new[0]:
            self._forward(Record(old[0], Change(new[1], old[1], latest), timestamp, headers))
            return
        if old is not None:
            self._forward(Record(old[0], Change(None, old[1], latest), timestamp, headers))
        if new is not None:
            self._forward(Record(new[0], Change(new[1], None, latest), timestamp, headers))

    def _pair(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        new_key, new_value = self._selector(key, value)
        return None if new_key is None or new_value is None else (new_key, new_value)


class TableAggregating(Operator):
    """Of a grouped table: subtracts what a row was, adds what it is."""

    _forward: Downstream
    _store: TableStore
    _add: Callable[..., Any]
    _subtract: Callable[..., Any]

    def __init__(self, operation: TableAggregate) -> None:
        self._operation = operation
        self._send_old = operation.send_old
        self._initial = operation.initializer or (lambda: 0 if operation.kind == "count" else None)

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._store = context.state_store(self._operation.store)
        self._add, self._subtract = _steps(self._operation)

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        if key is None:
            raise ValueError(f"a record for the aggregate {self._operation.store} of a table has no key")
        name = self._store.key_bytes(key)
        found = self._store.read(name)
        old_aggregate = aggregate = None if found is None else found[0]
        at = timestamp
        if change.old is not None and found is not None and aggregate is not None:
            aggregate = self._subtract(key, change.old, aggregate)
            at = max(timestamp, found[1])
        if change.new is not None:
            started = aggregate is None
            if started:
                aggregate = self._initial()
            aggregate = self._add(key, change.new, aggregate)
            # A reduce that starts anew takes the record's time alone, as Kafka's does.
            if found is not None and not (started and self._operation.kind == "reduce"):
                at = max(timestamp, found[1])
        written = self._store.write(name, aggregate, at)
        if written != NOT_PUT:
            old = old_aggregate if self._send_old else None
            self._forward(Record(key, Change(aggregate, old, written == IS_LATEST), at, headers))


def _steps(operation: TableAggregate) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Adder and subtractor, both as (key, value, aggregate)."""
    assert operation.adder is not None and operation.subtractor is not None
    if operation.kind == "count":
        return lambda _key, _value, count: count + 1, lambda _key, _value, count: count - 1
    if operation.kind == "reduce":
        add, subtract = operation.adder, operation.subtractor
        return (
            lambda _, value, aggregate: value if aggregate is None else add(aggregate, value),
            lambda _, value, aggregate: subtract(aggregate, value),
        )
    return operation.adder, operation.subtractor


class Suppressing(Operator):
    """Holds results back until stream time is far enough past their time; then the last one of each key goes out."""

    _forward: Downstream
    _buffer: HeldBack
    _metadata: Callable[[], RecordMetadata | None]
    _set_metadata: Callable[[RecordMetadata | None], None]

    _NOTHING: Final = 0x7FFF_FFFF_FFFF_FFFF

    def __init__(self, operation: Suppress) -> None:
        self._operation = operation
        self._stream_time = NO_TIMESTAMP
        self._earliest = self._NOTHING
        self._node = ""

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._buffer = context.state_store(self._operation.store)
        self._metadata = context.record_metadata
        self._set_metadata = context.set_record_metadata
        self._node = context.node_name
        context.at_commit(lambda: self._buffer.log_changes(context.current_system_time_ms()))

    def saved(self) -> list[int]:
        return [self._stream_time, self._earliest]

    def restore(self, saved: list[int]) -> None:
        self._stream_time, self._earliest = saved

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        self._stream_time = max(self._stream_time, timestamp)
        time = timestamp
        if self._operation.until_closed:
            if not isinstance(key, Windowed):
                raise TypeError(f"suppress until a window closes needs windowed keys, not {key!r}")
            time = key.window.end
        held = Held(change.new, change.old, timestamp, headers, self._metadata())
        self._buffer.put(time, self._buffer.key_bytes(key), held)
        self._earliest = min(self._earliest, time)
        expiry = self._stream_time - self._operation.wait_ms
        if self._earliest <= expiry:
            self._release(lambda when: when <= expiry)
        if self._is_full():
            if not self._operation.emit_early:
                raise OverflowError(self._story())
            self._release(lambda _: self._is_full())

    def _release(self, goes: Callable[[int], bool]) -> None:
        before = self._metadata()
        for name, held in self._buffer.take_while(goes):
            if held.new is None and self._operation.until_closed:
                continue
            self._set_metadata(held.metadata)
            try:
                change = Change(held.new, held.old)
                self._forward(Record(self._buffer.key_of(name), change, held.timestamp, held.headers))
            finally:
                self._set_metadata(before)
        earliest = self._buffer.earliest()
        self._earliest = self._NOTHING if earliest is None else earliest

    def _is_full(self) -> bool:
        most, largest = self._operation.max_records, self._operation.max_bytes
        return (most is not None and self._buffer.count > most) or (largest is not None and self._buffer.size > largest)

    def _story(self) -> str:
        operation, buffer = self._operation, self._buffer
        return (
            f"the buffer of {self._node} is full: {buffer.count} records (at most {operation.max_records}), "
            f"{buffer.size} bytes (at most {operation.max_bytes})"
        )
