"""Aggregates of streams: without windows, over time windows, over sessions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.streams.expressions import Aggregate
from ottla.streams.record import NO_TIMESTAMP, Change, Record
from ottla.streams.tasks.operators.base import (
    IN_A_RECORD,
    LATE,
    NULL_KEY,
    NULL_KEY_OR_VALUE,
    Downstream,
    Operator,
    OperatorContext,
    inputs,
)
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.operations import (
    Fold,
    SessionAggregate,
    SlidingAggregate,
    StreamAggregate,
    UnlimitedAggregate,
    WindowAggregate,
)
from ottla.streams.topology.stores import IS_LATEST, NOT_PUT
from ottla.streams.windows import Emit, UnlimitedWindows, Window, Windowed

FOLD_SUFFIX: Final = "-fold"
"""Of the name of a second store, for the states of an aggregate that cannot be told from its results (an average)."""

EMIT_INTERVAL: Final = "__emit.interval.ms.kstreams.windowed.aggregation__"

_new: Final[Any] = tuple.__new__
"""Makes a named tuple without the detour over its own __new__: each record makes several."""


class Folding(NamedTuple):
    """An aggregate as calls."""

    initial: Callable[[], Any]
    add: Callable[[Record, Any], Any]
    merge: Callable[[Any, Any, Any], Any]
    """(key, aggregate, aggregate)"""
    native: "Native | None" = None
    batches: "Batches | None" = None


class Native(NamedTuple):
    """What is stored and sent is the result of a state. `resume` leads back, if the result tells the state."""

    shown: Callable[[Any], Any]
    resume: Callable[[Any], Any] | None


class Batches(NamedTuple):
    """Of an aggregate that would rather have many records at once."""

    seen: Callable[[Record], Any]
    """What is to be kept of a record until then."""
    add_all: Callable[[Any, Sequence[Any]], Any]


def folding_of(fold: Fold, context: OperatorContext) -> Folding:
    if fold.native is not None:
        return _native(fold.native, context)
    function = fold.function
    if fold.kind == "count":
        return Folding(lambda: 0, lambda _, count: count + 1, lambda _, left, right: left + right)
    if function is None:
        raise TypeError(f"an aggregate of the kind {fold.kind} needs a function")
    call = function
    if fold.kind == "reduce":

        def reduced(value: Any, so_far: Any) -> Any:
            return value if so_far is None else call(so_far, value)

        # Kafka merges two sessions of a reduce in the same way; the first merge meets no aggregate yet.
        return Folding(_nothing, lambda record, so_far: reduced(record[1], so_far), lambda _, a, b: reduced(b, a))
    return Folding(
        fold.initializer or _nothing,
        lambda record, so_far: call(record[0], record[1], so_far),
        fold.merger or _no_merger,
    )


def _native(aggregate: Aggregate, context: OperatorContext) -> Folding:
    functions = aggregate.bind(context.types.given[context.node_name].named()).fold()
    add, metadata, now = functions.add, context.record_metadata, context.current_system_time_ms
    needed = frozenset().union(*(expression.leaves() for expression in aggregate.expressions()))

    def add_record(record: Record, state: Any) -> Any:
        return add(state, record)

    def add_with_origin(record: Record, state: Any) -> Any:
        return add(state, inputs(record, metadata(), now()))

    plain = needed <= IN_A_RECORD
    seen = (lambda record: record) if plain else (lambda record: inputs(record, metadata(), now()))
    return Folding(
        functions.initial,
        add_record if plain else add_with_origin,
        lambda _, left, right: functions.merge(left, right),
        Native(functions.result, None if aggregate.keeps_state() else functions.resume),
        Batches(seen, functions.add_all) if functions.batched else None,
    )


def folded_natively(folding: Folding, native: Native, record: Record, old: Any, kept: Any) -> tuple[Any, Any, Any]:
    """New result, old result, new state. `kept` is (state, timestamp) of the second store, if there is one."""
    if kept is not None:
        state = kept[0]
    elif old is None or native.resume is None:
        state = folding.initial()
    else:
        state = native.resume(old)
    added = folding.add(record, state)
    return native.shown(added), native.shown(state) if old is None else old, added


def needs_states(fold: Fold) -> bool:
    """Whether the aggregate has a second store."""
    return fold.native is not None and fold.native.keeps_state()


def _nothing() -> None:
    return None


def _no_merger(_key: Any, _left: Any, _right: Any) -> Any:
    raise TypeError("an aggregate over sessions needs a merger")


class Aggregating(Operator):
    """group_by_key().count(), reduce() and aggregate()."""

    _forward: Downstream
    _store: KeyValues | Versions
    _dropped: Callable[[str], None]
    _folding: Folding

    def __init__(self, operation: StreamAggregate) -> None:
        self._operation = operation
        self._send_old = operation.send_old
        self._states: KeyValues | None = None

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        self._store = context.state_store(self._operation.store)
        self._folding = folding_of(self._operation.fold, context)
        if needs_states(self._operation.fold):
            self._states = context.state_store(self._operation.store + FOLD_SUFFIX)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None or value is None:
            self._dropped(NULL_KEY_OR_VALUE)
            return
        store = self._store
        name = store.key_bytes(key)
        found = store.read(name)
        if found is None:
            old = None
        else:
            old = found[0]
            timestamp = max(timestamp, found[1])
        folding = self._folding
        if folding.native is not None:
            new, old = self._fold_natively(folding.native, record, name, old)
        else:
            if old is None:
                old = folding.initial()
            new = folding.add(record, old)
        written = store.write(name, new, timestamp)
        if written == NOT_PUT:
            return
        change = _new(Change, (new, old if self._send_old else None, written == IS_LATEST))
        self._forward(_new(Record, (key, change, timestamp, headers)))

    def _fold_natively(self, native: Native, record: Record, name: bytes, old: Any) -> tuple[Any, Any]:
        states = self._states
        kept = None if states is None else states.read(name)
        new, old, state = folded_natively(self._folding, native, record, old, kept)
        if states is not None:
            states.write(name, state, record.timestamp)
        return new, old


class TimeTracker:
    """When closed windows are looked for: at most once per interval of the wall clock, which is none by default."""

    __slots__ = ("interval_ms", "next_ms")

    def __init__(self, interval_ms: int) -> None:
        self.interval_ms = interval_ms
        self.next_ms = 0

    def is_time(self, now: int) -> bool:
        if now < self.next_ms:
            return False
        self.next_ms = now + self.interval_ms
        return True


StoreT = TypeVar("StoreT", Windows, Sessions)


class Windowing(Operator, Generic[StoreT]):
    """What windows and sessions have in common: a store, a fold, the stream time seen, and when results go out."""

    _forward: Downstream
    _store: StoreT
    _states: StoreT | None
    _dropped: Callable[[str], None]
    _folding: Folding
    _now: Callable[[], int]
    _tracker: TimeTracker

    def __init__(self, operation: WindowAggregate | UnlimitedAggregate | SlidingAggregate | SessionAggregate) -> None:
        self._operation = operation
        self._on_close = operation.emit.waits
        self._before_record = operation.emit is Emit.EACH_ON_CLOSE
        self._stream_time = NO_TIMESTAMP
        self._last_close = NO_TIMESTAMP
        self._states = None

    def begin(self, context: OperatorContext) -> None:
        self._forward = context.downstream
        self._dropped = context.dropped
        self._now = context.current_system_time_ms
        self._store = context.state_store(self._operation.store)
        self._folding = folding_of(self._operation.fold, context)
        self._tracker = TimeTracker(int(context.app_configs.get(EMIT_INTERVAL, 0)))
        if needs_states(self._operation.fold):
            self._states = context.state_store(self._operation.store + FOLD_SUFFIX)

    def saved(self) -> list[int]:
        return [self._stream_time, self._last_close]

    def restore(self, saved: list[int]) -> None:
        self._stream_time, self._last_close = saved

    def resume(self, latest: Mapping[str, int]) -> None:
        # A record that moves the time is never late, so it has left its timestamp in the changelog.
        self._stream_time = max(self._stream_time, latest.get(self._operation.store, NO_TIMESTAMP))


class TimeWindowing(Windowing[Windows]):
    """Over windows by their start, whose results may wait until they close."""

    def begin(self, context: OperatorContext) -> None:
        super().begin(context)
        if self._on_close:
            self._store.in_time_order()
            if self._states is not None:
                self._states.in_time_order()

    def _may_emit(self, close: int) -> bool:
        """Whether it is time to look for closed windows, and time has gone on since the last look."""
        if not self._tracker.is_time(self._now()):
            return False
        return self._last_close == NO_TIMESTAMP or self._last_close < close

    def _emit(self, headers: Any, close: int, first: int, last: int) -> None:
        """The windows that begin in between, oldest first. Kafka does not see those past retention."""
        for window, (value, timestamp) in self._store.fetch_all(first, last):
            self._forward(Record(window, Change(value, None), timestamp, headers))
        self._last_close = close


class WindowAggregating(TimeWindowing):
    """Over tumbling and hopping windows, or the unlimited one. A window takes records until stream time passes its end
    by the grace."""

    def __init__(self, operation: WindowAggregate | UnlimitedAggregate) -> None:
        super().__init__(operation)
        self._windows = operation.windows
        self._origin = operation.windows.start_ms if isinstance(operation.windows, UnlimitedWindows) else 0

    def process(self, record: Record) -> None:
        key, _, timestamp, headers = record
        if key is None:
            self._dropped(NULL_KEY)
            return
        self._stream_time = max(self._stream_time, timestamp)
        windows = self._windows
        close = self._stream_time - windows.grace_ms
        size, advance = windows.size_ms, windows.advance_ms
        if self._before_record:
            self._emit_closed(headers, close)
        name = self._store.key_bytes(key)
        start = self._origin + max(0, timestamp - size + advance) // advance * advance
        while start <= timestamp:
            if start + size > close:
                new, old, at = self._update(record, name, start)
                if not self._on_close:
                    window = _new(Windowed, (key, _new(Window, (start, start + size))))
                    self._forward(_new(Record, (window, _new(Change, (new, old, True)), at, headers)))
            else:
                self._dropped(LATE)
            start += advance
        if self._on_close and not self._before_record:
            self._emit_closed(headers, close)

    def _update(self, record: Record, name: bytes, start: int) -> tuple[Any, Any, int]:
        """New result, old result (None unless somebody wants it), timestamp."""
        store, folding = self._store, self._folding
        found = store.read(name, start)
        at = record.timestamp
        old = None
        if found is not None:
            old = found[0]
            at = max(at, found[1])
        if folding.native is not None:
            new, old = self._fold_natively(folding.native, record, name, start, old)
        else:
            if old is None:
                old = folding.initial()
            new = folding.add(record, old)
        store.write(name, new, at, start)
        return new, old if self._operation.send_old else None, at

    def _fold_natively(self, native: Native, record: Record, name: bytes, start: int, old: Any) -> tuple[Any, Any]:
        states = self._states
        kept = None if states is None else states.read(name, start)
        new, old, state = folded_natively(self._folding, native, record, old, kept)
        if states is not None:
            states.write(name, state, record.timestamp, start)
        return new, old

    def _emit_closed(self, headers: Any, close: int) -> None:
        """All windows that ended since the last time."""
        if not self._may_emit(close):
            return
        last, size = self._last_close, self._windows.size_ms
        upper = close - size
        if upper < 0:
            return
        lower = 0 if last == NO_TIMESTAMP else max(0, last - size) + 1
        if last != NO_TIMESTAMP and self._first_starts(upper) == self._first_starts(lower - 1):
            return
        self._emit(headers, close, lower, upper)

    def _first_starts(self, timestamp: int) -> tuple[int, int]:
        """The first and the last start of the windows that hold a timestamp: equal if the windows are."""
        size, advance = self._windows.size_ms, self._windows.advance_ms
        first = max(0, timestamp - size + advance) // advance * advance
        return first, timestamp // advance * advance


class SessionAggregating(Windowing[Sessions]):
    """Sessions grow and merge: the old one is taken back (None) before the merged one is sent."""

    def __init__(self, operation: SessionAggregate) -> None:
        super().__init__(operation)
        self._windows = operation.windows

    def process(self, record: Record) -> None:
        key, _, timestamp, headers = record
        if key is None:
            self._dropped(NULL_KEY)
            return
        self._stream_time = max(self._stream_time, timestamp)
        gap = self._windows.gap_ms
        close = self._stream_time - self._windows.grace_ms - gap
        if self._before_record:
            self._emit_closed(headers, close)
        folding = self._folding
        name = self._store.key_bytes(key)
        start = end = timestamp
        merged = self._store.around(name, timestamp - gap, timestamp + gap)
        state = folding.initial()
        for found_start, found_end, value in merged:
            state = folding.merge(key, state, self._state(name, found_start, found_end, value))
            start, end = min(start, found_start), max(end, found_end)
        if end < close:
            self._dropped(LATE)
        else:
            if start != timestamp or end != timestamp:
                self._take_back(key, name, merged)
            self._grow(record, name, Window(start, end), state)
        if self._on_close and not self._before_record:
            self._emit_closed(headers, close)

    def _take_back(self, key: Any, name: bytes, merged: list[tuple[int, int, Any]]) -> None:
        send_old = self._operation.send_old
        for start, end, value in merged:
            self._store.erase(name, start, end)
            if self._states is not None:
                self._states.erase(name, start, end)
            if not self._on_close:
                session = _new(Windowed, (key, _new(Window, (start, end))))
                change = _new(Change, (None, value if send_old else None, True))
                self._forward(_new(Record, (session, change, end, ())))

    def _grow(self, record: Record, name: bytes, window: Window, state: Any) -> None:
        folding = self._folding
        state = folding.add(record, state)
        value = state if folding.native is None else folding.native.shown(state)
        self._store.write(name, window.start, window.end, value)
        if self._states is not None:
            self._states.write(name, window.start, window.end, state)
        if not self._on_close:
            session, change = _new(Windowed, (record[0], window)), _new(Change, (value, None, True))
            self._forward(_new(Record, (session, change, window[1], ())))

    def _state(self, name: bytes, start: int, end: int, value: Any) -> Any:
        native = self._folding.native
        if native is None:
            return value
        if self._states is not None:
            for found_start, found_end, state in self._states.around(name, end, start):
                if found_start == start and found_end == end:
                    return state
        return self._folding.initial() if native.resume is None else native.resume(value)

    def _emit_closed(self, headers: Any, close: int) -> None:
        if not self._tracker.is_time(self._now()):
            return
        if self._last_close != NO_TIMESTAMP and self._last_close >= close:
            return
        upper, lower = close - 1, max(0, self._last_close)
        if upper < 0 or upper < lower:
            return
        key_of = self._store.key_of
        for end, start, name, value in self._store.ended_between(lower, upper):
            self._forward(Record(Windowed(key_of(name), Window(start, end)), Change(value, None), end, headers))
        self._last_close = close
