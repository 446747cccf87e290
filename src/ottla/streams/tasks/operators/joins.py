"""Joins of streams: with each other within windows, with tables, with global tables."""

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.expressions import Expression
from ottla.streams.record import NO_TIMESTAMP, Record
from ottla.streams.tasks.operators.base import (
    NULL_KEY_OR_VALUE,
    Downstream,
    Operator,
    OperatorContext,
    inputs,
    of_key_and_value,
)
from ottla.streams.tasks.operators.lookup import Lookup, lookup
from ottla.streams.tasks.stores.waiting import Waiting
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.operations import BufferSide, StreamGlobalJoin, StreamStreamJoin, StreamTableJoin
from ottla.streams.windows import LONGEST_MS

EMIT_INTERVAL: Final = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"

Joiner = Callable[[Record, Any, Any], Any]
"""(record of this side, left value, right value)"""


def joiner_of(context: OperatorContext, operation: StreamStreamJoin | StreamTableJoin | StreamGlobalJoin) -> Joiner:
    function = operation.joiner
    if isinstance(function, Expression):
        run = function.compile(context.types.joined(context.node_name, operation))
        metadata = context.record_metadata
        return lambda record, left, right: run(inputs(record, metadata(), left, right))
    call = function
    if operation.with_key:
        return lambda record, left, right: call(record[0], left, right)
    return lambda _, left, right: call(left, right)


class Buffering(Operator):
    """A side's records, for the other side to find. The record goes on first, so that it never meets itself."""

    _forward: Downstream
    _store: Windows

    def __init__(self, operation: BufferSide) -> None:
        self._operation = operation

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._store = context.state_store(self._operation.store)

    def process(self, record: Record) -> None:
        self._forward(record)
        key, value, timestamp, headers = record
        if key is not None:
            store = self._store
            store.write_plain(store.key_bytes(key), value, timestamp, timestamp, headers)


class JoinTime:
    """What both directions of a join know: stream time, and the earliest record that may wait for its match."""

    __slots__ = ("earliest", "next_look_ms", "stream_time")

    def __init__(self) -> None:
        self.stream_time = NO_TIMESTAMP
        self.earliest = LONGEST_MS
        self.next_look_ms = 0


class Joining(Operator):
    """One direction of a join of two streams."""

    _forward: Downstream
    _other: Windows
    _waiting: Waiting | None
    _dropped: Callable[[str], None]
    _join: Joiner
    _time: JoinTime
    _now: Callable[[], int]

    def __init__(self, operation: StreamStreamJoin) -> None:
        self._operation = operation
        windows = operation.windows
        self._is_left = operation.is_left_side
        reach = (windows.before_ms, windows.after_ms)
        self._before, self._after = reach if operation.is_left_side else reach[::-1]
        self._interval_ms = 0
        self._waiting = None

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        self._forward = context.downstream
        self._dropped = context.dropped
        self._now = context.current_system_time_ms
        self._other = context.state_store(operation.other_store)
        self._join = joiner_of(context, operation)
        if operation.outer_store is not None:
            self._waiting = context.state_store(operation.outer_store)
        self._interval_ms = int(context.app_configs.get(EMIT_INTERVAL, 0))
        if operation.outer_store is None:
            self._time = JoinTime()  # an inner join keeps nobody waiting, so its directions need not agree on the time
        else:
            self._time = context.shared(operation.outer_store, JoinTime)

    def saved(self) -> list[int]:
        return [self._time.stream_time, self._time.earliest]

    def restore(self, saved: list[int]) -> None:
        self._time.stream_time, self._time.earliest = saved

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        time = self._time
        time.stream_time = max(time.stream_time, timestamp)
        if key is None or value is None:
            if self._operation.outer and value is not None:
                self._forward(record.with_value(self._alone(record, value)))
            else:
                self._dropped(NULL_KEY_OR_VALUE)
            return
        waiting = self._waiting
        if waiting is not None and timestamp == time.stream_time:
            self._emit_unmatched(waiting, record)
        name = self._other.key_bytes(key)
        last = max(0, timestamp + self._after)
        found = self._other.values_between(name, max(0, timestamp - self._before), last)
        is_left, join, forward = self._is_left, self._join, self._forward
        for other_time, other in found:
            if waiting is not None:
                waiting.remove(name, other_time, not is_left)
            joined = join(record, value, other) if is_left else join(record, other, value)
            forward(Record(key, joined, max(timestamp, other_time), headers))
        if found or not self._operation.outer:
            return
        # A match could still come for this record only from stream time on: one whose reach ended before is out of
        # order, and does not wait for the grace.
        if waiting is None or last < time.stream_time:
            forward(record.with_value(self._alone(record, value)))
        else:
            time.earliest = min(time.earliest, timestamp)
            waiting.add(name, timestamp, is_left, value)

    def _alone(self, record: Record, value: Any) -> Any:
        return self._join(record, value, None) if self._is_left else self._join(record, None, value)

    def _emit_unmatched(self, waiting: Waiting, record: Record) -> None:
        """Those of both sides whose window has closed, by time. Looked for only when there may be one."""
        time, grace = self._time, self._operation.windows.grace_ms
        if time.earliest + self._after + grace >= time.stream_time:
            return
        now = self._now()
        if now < time.next_look_ms:
            return
        time.next_look_ms = now + self._interval_ms
        time.earliest = LONGEST_MS
        windows = self._operation.windows
        open_sides: dict[bool, None] = {}
        emitted: tuple[bytes, int, bool] | None = None
        for timestamp, of_left, name in waiting.in_order():
            time.earliest = timestamp
            if len(open_sides) == 2:
                break
            reach = windows.after_ms if of_left else windows.before_ms
            if timestamp + reach + grace >= time.stream_time:
                open_sides[of_left] = None
                continue
            key = waiting.key_of(name)
            for value in waiting.values(name, timestamp, of_left):
                alone = Record(key, value, timestamp, record.headers)
                joined = self._join(alone, value, None) if of_left else self._join(alone, None, value)
                self._forward(alone.with_value(joined))
            if emitted is not None:
                waiting.remove(*emitted)
            emitted = (name, timestamp, of_left)
        if emitted is not None:
            waiting.remove(*emitted)


class TableJoining(Operator):
    """A stream with a table, or with a global table by a key of the stream's choice. The table's side sends nothing."""

    _forward: Downstream
    _dropped: Callable[[str], None]
    _join: Joiner
    _lookup: Lookup
    _table_key: Callable[[Record], Any] | None

    def __init__(self, operation: StreamTableJoin | StreamGlobalJoin) -> None:
        self._operation = operation
        self._left = operation.left

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        self._forward = context.downstream
        self._dropped = context.dropped
        self._join = joiner_of(context, operation)
        self._table_key = None
        if isinstance(operation, StreamTableJoin):
            self._lookup = lookup(context, operation.table_store, operation.view)
        else:
            self._lookup = lookup(context, operation.table_store, ())
            self._table_key = of_key_and_value(context, operation.key_mapper)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        table_key = key if self._table_key is None else self._table_key(record)
        if value is None or (table_key is None and not self._left):
            self._dropped(NULL_KEY_OR_VALUE)
            return
        found = None if table_key is None else self._lookup(table_key)
        if found is not None or self._left:
            self._forward(Record(key, self._join(record, value, found), timestamp, headers))
