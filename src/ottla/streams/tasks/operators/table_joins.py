"""Joins of tables by their keys: each change of one side is joined with the row that the other side has now."""

from collections.abc import Callable
from typing import Any

from ottla.streams.record import NO_TIMESTAMP, Change, Record
from ottla.streams.tasks.operators.base import NULL_KEY, Downstream, Joiner, Operator, OperatorContext, joiner_of
from ottla.streams.tasks.operators.lookup import Lookup, lookup
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.topology.operations import TableMerge, TableTableJoin
from ottla.streams.topology.stores import IS_LATEST, NOT_PUT


class TableTableJoining(Operator):
    """One direction. A result is as young as the younger of its two rows."""

    _forward: Downstream
    _dropped: Callable[[str], None]
    _join: Joiner
    _lookup: Lookup

    def __init__(self, operation: TableTableJoin) -> None:
        self._operation = operation
        self._is_left = operation.is_left_side
        self._outer = operation.outer
        self._other_outer = operation.other_outer
        self._send_old = operation.send_old

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        self._forward = context.downstream
        self._dropped = context.dropped
        types = context.types.joined(context.node_name, operation)
        self._join = joiner_of(context, operation.joiner, operation.with_key, types)
        self._lookup = lookup(context, operation.other_store, operation.other_view)

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        if key is None:
            self._dropped(NULL_KEY)
            return
        new, old, is_latest = change
        if self._operation.versioned and not is_latest:
            return
        other, other_time = self._lookup(key) or (None, NO_TIMESTAMP)
        if other is None and (not self._outer or (new is None and old is None)):
            return
        at = max(timestamp, other_time)
        joined_new = self._joined(record, new, other)
        joined_old = self._joined(record, old, other) if self._send_old else None
        self._forward(Record(key, Change(joined_new, joined_old, is_latest), at, headers))

    def _joined(self, record: Record, value: Any, other: Any) -> Any:
        if value is None and (other is None or not self._other_outer):
            return None
        if self._is_left:
            return self._join(record.with_value(value), value, other)
        return self._join(record.with_value(value), other, value)


class Merging(Operator):
    """Both directions, one after the other as changes come."""

    _forward: Downstream

    def __init__(self, operation: TableMerge) -> None:
        self._operation = operation
        self._send_old = operation.send_old
        self._store: KeyValues | Versions | None = None

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        if self._operation.store is not None:
            self._store = context.state_store(self._operation.store)

    def process(self, record: Record) -> None:
        key, (new, old, is_latest), timestamp, headers = record
        store = self._store
        if store is not None:
            written = store.write(store.key_bytes(key), new, timestamp)
            if written == NOT_PUT:
                return
            is_latest = written == IS_LATEST
        self._forward(Record(key, Change(new, old if self._send_old else None, is_latest), timestamp, headers))
