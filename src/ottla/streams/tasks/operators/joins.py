"""Joins of streams: with each other within windows, with tables, with global tables."""

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.record import NO_TIMESTAMP, Record, RecordMetadata
from ottla.streams.tasks.operators.base import (
    NULL_KEY_OR_VALUE,
    Downstream,
    Joiner,
    Operator,
    OperatorContext,
    joiner_of,
    of_key_and_value,
)
from ottla.streams.tasks.operators.lookup import Lookup, lookup
from ottla.streams.tasks.stores.base import Moment
from ottla.streams.tasks.stores.delayed import Delayed
from ottla.streams.tasks.stores.waiting import Waiting
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.operations import (
    BufferSide,
    StreamGlobalJoin,
    StreamSelfJoin,
    StreamStreamJoin,
    StreamTableJoin,
)
from ottla.streams.windows import LONGEST_MS

EMIT_INTERVAL: Final = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"


def _joiner(
    context: OperatorContext, operation: StreamStreamJoin | StreamSelfJoin | StreamTableJoin | StreamGlobalJoin
) -> Joiner:
    types = context.types.joined(context.node_name, operation)
    return joiner_of(context, operation.joiner, operation.with_key, types)


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
        self._join = _joiner(context, operation)
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


class SelfJoining(Operator):
    """A stream with itself: both directions in one, in the order in which two joins would send."""

    _forward: Downstream
    _store: Windows
    _dropped: Callable[[str], None]
    _join: Joiner

    def __init__(self, operation: StreamSelfJoin) -> None:
        self._operation = operation
        self._stream_time = NO_TIMESTAMP

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        self._store = context.state_store(self._operation.other_store)
        self._join = _joiner(context, self._operation)

    def saved(self) -> list[int]:
        return [self._stream_time]

    def restore(self, saved: list[int]) -> None:
        (self._stream_time,) = saved

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None or value is None:
            self._dropped(NULL_KEY_OR_VALUE)
            return
        windows, join, forward = self._operation.windows, self._join, self._forward
        self._stream_time = max(self._stream_time, timestamp)
        kept_ms = windows.size_ms + windows.grace_ms
        meets_itself = timestamp > self._stream_time - kept_ms + 1
        name = self._store.key_bytes(key)
        for other_time, other in self._around(name, timestamp - windows.before_ms, timestamp + windows.after_ms):
            forward(Record(key, join(record, value, other), max(timestamp, other_time), headers))
        for other_time, other in self._around(name, timestamp - windows.after_ms, timestamp + windows.before_ms):
            if meets_itself and other_time > timestamp:
                meets_itself = False
                forward(record.with_value(join(record, value, value)))
            forward(Record(key, join(record, other, value), max(timestamp, other_time), headers))
        if meets_itself:
            forward(record.with_value(join(record, value, value)))

    def _around(self, name: bytes, first: int, last: int) -> list[tuple[int, Any]]:
        return self._store.values_between(name, max(0, first), max(0, last))


class TableJoining(Operator):
    """A stream with a table, or with a global table by a key of the stream's choice. The table's side sends nothing."""

    _forward: Downstream
    _dropped: Callable[[str], None]
    _join: Joiner
    find: Lookup
    _table_key: Callable[[Record], Any] | None

    def __init__(self, operation: StreamTableJoin | StreamGlobalJoin) -> None:
        self._operation = operation
        self._left = operation.left
        self._moment = Moment()
        """As of when a versioned table is looked at."""

    def begin(self, context: OperatorContext) -> None:
        operation = self._operation
        self._forward = context.downstream
        self._dropped = context.dropped
        self._join = _joiner(context, operation)
        self._table_key = None
        if isinstance(operation, StreamTableJoin):
            self.find = lookup(context, operation.table_store, operation.view, self._moment)
        else:
            self.find = lookup(context, operation.table_store, ())
            self._table_key = of_key_and_value(context, operation.key_mapper)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        table_key = key if self._table_key is None else self._table_key(record)
        if value is None or (table_key is None and not self._left):
            self._dropped(NULL_KEY_OR_VALUE)
            return
        self._moment.timestamp = timestamp
        found = None if table_key is None else self.find(table_key)
        if found is not None or self._left:
            joined = self._join(record, value, None if found is None else found[0])
            self._forward(Record(key, joined, timestamp, headers))


def table_joining(operation: StreamTableJoin) -> Operator:
    return TableJoining(operation) if operation.buffer is None else DelayedTableJoining(operation)


class DelayedTableJoining(TableJoining):
    """With a versioned table and a grace: a record waits until stream time has passed it by the grace, and then meets
    the version that was valid at its own time. A record that is late already does not wait (KIP-923)."""

    _buffer: Delayed
    _metadata: Callable[[], RecordMetadata | None]
    _set_metadata: Callable[[RecordMetadata | None], None]
    _now: Callable[[], int]

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        assert isinstance(self._operation, StreamTableJoin) and self._operation.buffer is not None
        self._buffer = context.state_store(self._operation.buffer)
        self._metadata = context.record_metadata
        self._set_metadata = context.set_record_metadata
        self._now = context.current_system_time_ms

    def process(self, record: Record) -> None:
        if record.value is None or (record.key is None and not self._left):
            self._dropped(NULL_KEY_OR_VALUE)
            return
        here, now = self._metadata(), self._now()
        if not self._buffer.add(record, here, now):
            super().process(record)
            return
        for waited, origin in self._buffer.take_due(now):
            self._set_metadata(origin)
            super().process(waited)
        self._set_metadata(here)
