"""Grouped streams and tables: count, reduce, aggregate, over all time or per window.

On Spark `count()` and `aggregate` with an aggregate expression run natively; functions run in a Python task.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, overload

from ottla.serdes.base import Serde
from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.function_checks import checked_callable
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.options import Materialized
from ottla.streams.dsl.steps import OperationStep, RepartitionNames, RepartitionStep, Step
from ottla.streams.dsl.table_logic import AggregateTable
from ottla.streams.dsl.table_stores import (
    TimeWindow,
    as_materialized,
    key_value_store,
    named_store,
    session_store,
    time_store,
)
from ottla.streams.expressions import Aggregate
from ottla.streams.serdes import Serdes
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.operations import (
    Fold,
    Operation,
    SessionAggregate,
    SlidingAggregate,
    StreamAggregate,
    TableAggregate,
    UnlimitedAggregate,
    WindowAggregate,
)
from ottla.streams.topology.stores import StoreKind, StoreSpec
from ottla.streams.windows import Emit, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windowed

if TYPE_CHECKING:
    from ottla.streams.dsl.cogrouped import CogroupedKStream

    Stored = Materialized[Any, Any] | str | None

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_AGGREGATE: Final = "KSTREAM-AGGREGATE-"
_REDUCE: Final = "KSTREAM-REDUCE-"
_COUNT: Final = Fold("count")


@dataclass(slots=True, eq=False)
class Grouping:
    """What the windowed forms share with the plain one, the repartition topic among it."""

    draft: Draft
    step: Step
    sources: tuple[str, ...]
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    repartition_name: str | None
    needs_repartition: bool
    repartition: RepartitionStep | None = None

    def fold_store(
        self, fold: Fold, materialized: "Stored", *, sliding: bool = False
    ) -> tuple[Materialized[Any, Any], bool, Serde[Any] | None]:
        """The store's options, whether the user named it, and the serde of what is folded."""
        given = as_materialized(materialized)
        if fold.kind == "count" and given is not None and given.name is None and not sliding:
            self.draft.new_store_name(_AGGREGATE)  # burned since Kafka 0.11, and for ever
        said, kept = named_store(self.draft, given, _REDUCE if fold.kind == "reduce" else _AGGREGATE)
        inherited = {"count": Serdes.long, "reduce": self.value_serde}.get(fold.kind)
        return said, kept, said.value_serde or inherited

    def table(
        self,
        name: str,
        store: StoreSpec,
        make: Callable[[bool], Operation],
        *,
        kept: bool,
        key_serde: Serde[Any] | None,
        grace_ms: int | None = None,
    ) -> KTable[Any, Any]:
        parent, sources = self.step, self.sources
        if self.needs_repartition:
            parent = self._repartitioned(store.name)
            sources = (parent.names.source,)
        logic = AggregateTable(store, make)
        versioned = store.kind is StoreKind.VERSIONED
        step = OperationStep(name, logic.operation, own_stores=logic.stores, grace_ms=grace_ms, is_versioned=versioned)
        self.draft.add(step, parent)
        return KTable(
            self.draft,
            step,
            sources,
            logic,
            key_serde=key_serde,
            value_serde=store.value_serde,
            store_name=store.name if kept else None,
        )

    def _repartitioned(self, store_name: str) -> RepartitionStep:
        """A named topic serves all aggregates of the group, otherwise each has its own."""
        names = self.draft.repartition_names(self.repartition_name or store_name)
        if self.repartition is None or self.repartition_name is None:
            self.repartition = RepartitionStep(names, self.key_serde, self.value_serde)
        self.draft.add(self.repartition, self.step)
        return self.repartition


class KGroupedStream(Generic[K, V]):
    """A stream by key, ready to be aggregated. Records without key or value are left out of every aggregate."""

    __slots__ = ("grouping",)

    def __init__(
        self,
        draft: Draft,
        step: Step,
        sources: Sequence[str],
        *,
        key_serde: Serde[K] | None,
        value_serde: Serde[V] | None,
        repartition_name: str | None,
        needs_repartition: bool,
    ) -> None:
        self.grouping = Grouping(
            draft, step, tuple(sources), key_serde, value_serde, repartition_name, needs_repartition
        )

    def count(self, materialized: "Stored" = None, *, name: str | None = None) -> KTable[K, int]:
        """How many records each key has had: a long."""
        return self._folded(_COUNT, materialized, name)

    def reduce(
        self, reducer: Callable[[V, V], V | None], materialized: "Stored" = None, *, name: str | None = None
    ) -> KTable[K, V]:
        """Combines (so far, new) of one type. The first value of a key is taken as it is."""
        fold = Fold("reduce", function=checked_callable(reducer, "the reducer", "aggregate, value"))
        return self._folded(fold, materialized, name)

    @overload
    def aggregate(
        self, initializer: Aggregate, *, materialized: "Stored" = None, name: str | None = None
    ) -> KTable[K, Any]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[K, A]: ...
    def aggregate(
        self,
        initializer: Aggregate | Callable[[], Any],
        aggregator: Callable[[K, V, Any], Any] | None = None,
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[K, Any]:
        """An aggregate expression alone, which Spark computes itself, or two functions: one gives the first aggregate,
        the other (key, value, aggregate) the next."""
        return self._folded(_fold(initializer, aggregator), materialized, name)

    def _folded(self, fold: Fold, materialized: "Stored", name: str | None) -> KTable[Any, Any]:
        grouping = self.grouping
        said, kept, value_serde = grouping.fold_store(fold, materialized)
        key_serde = said.key_serde or grouping.key_serde
        step_name = grouping.draft.named(name, _REDUCE if fold.kind == "reduce" else _AGGREGATE)
        store = key_value_store(said, key_serde, value_serde)
        return grouping.table(
            step_name, store, lambda old: StreamAggregate(store.name, fold, old), kept=kept, key_serde=key_serde
        )

    @overload
    def windowed_by(self, windows: TimeWindow) -> "TimeWindowedKStream[K, V]": ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedKStream[K, V]": ...
    def windowed_by(
        self, windows: TimeWindow | SessionWindows
    ) -> "TimeWindowedKStream[K, V] | SessionWindowedKStream[K, V]":
        """Aggregates per window of event time."""
        checked = checked_windows(windows)
        if isinstance(checked, SessionWindows):
            return SessionWindowedKStream(self.grouping, checked)
        return TimeWindowedKStream(self.grouping, checked)

    def cogroup(self, aggregator: Callable[[K, V, A], A | None]) -> "CogroupedKStream[K, A]":
        """Aggregates this and other streams into one: the function (key, value, aggregate) is for records of this one,
        `.cogroup(other, aggregator)` adds more."""
        from ottla.streams.dsl.cogrouped import CogroupedKStream  # noqa: PLC0415  streams and groups make each other

        cogrouped: CogroupedKStream[K, A] = CogroupedKStream(self.grouping.draft)
        return cogrouped.cogroup(self, aggregator)


def checked_windows(windows: TimeWindow | SessionWindows) -> TimeWindow | SessionWindows:
    if not isinstance(windows, TimeWindow | SessionWindows):
        raise TopologyError(
            f"windowed_by takes TimeWindows, SlidingWindows, UnlimitedWindows or SessionWindows, not {windows!r}"
        )
    return windows


def time_aggregate(store: str, fold: Fold, windows: TimeWindow, emit: Emit, send_old: bool) -> Operation:
    match windows:
        case TimeWindows():
            return WindowAggregate(store, fold, windows, emit, send_old)
        case SlidingWindows():
            return SlidingAggregate(store, fold, windows, emit, send_old)
        case UnlimitedWindows():
            return UnlimitedAggregate(store, fold, windows, emit, send_old)


WindowsT = TypeVar("WindowsT", TimeWindow, SessionWindows)


class _WindowedKStream(Generic[K, V, WindowsT]):
    """What both kinds of windows offer."""

    __slots__ = ("_emit", "_grouping", "_windows")

    def __init__(self, grouping: Grouping, windows: WindowsT, emit: Emit = Emit.ON_UPDATE) -> None:
        self._grouping = grouping
        self._windows: WindowsT = windows
        self._emit = emit

    def emit_strategy(self, emit: Emit) -> Self:
        """Results at every update (the default), or one per window when it closes."""
        if emit.waits and isinstance(self._windows, UnlimitedWindows):
            raise TopologyError("an unlimited window never closes: its results can only be sent at every update")
        if emit is Emit.EACH_ON_CLOSE and isinstance(self._windows, SlidingWindows):
            raise TopologyError("EACH_ON_CLOSE is for tumbling, hopping and session windows")
        return type(self)(self._grouping, self._windows, Emit(emit))

    def count(self, materialized: "Stored" = None, *, name: str | None = None) -> "KTable[Windowed, int]":
        """How many records each key and window has had: a long."""
        return self._folded(_COUNT, materialized, name)

    def reduce(
        self, reducer: Callable[[V, V], V | None], materialized: "Stored" = None, *, name: str | None = None
    ) -> "KTable[Windowed, V]":
        """Combines (so far, new) of one type; also the parts of two sessions that become one."""
        fold = Fold("reduce", function=checked_callable(reducer, "the reducer", "aggregate, value"))
        return self._folded(fold, materialized, name)

    @abstractmethod
    def _folded(self, fold: Fold, materialized: "Stored", name: str | None) -> KTable[Any, Any]: ...


class TimeWindowedKStream(_WindowedKStream[K, V, TimeWindow]):
    """Per key and window: tumbling, hopping, sliding or unlimited. Records that come after a window's grace are dropped
    and counted."""

    __slots__ = ()

    @overload
    def aggregate(
        self, initializer: Aggregate, *, materialized: "Stored" = None, name: str | None = None
    ) -> KTable[Windowed, Any]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed, A]: ...
    def aggregate(
        self,
        initializer: Aggregate | Callable[[], Any],
        aggregator: Callable[[K, V, Any], Any] | None = None,
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> "KTable[Windowed, Any]":
        """As KGroupedStream.aggregate, per window."""
        return self._folded(_fold(initializer, aggregator), materialized, name)

    def _folded(self, fold: Fold, materialized: "Stored", name: str | None) -> KTable[Any, Any]:
        grouping, windows, emit = self._grouping, self._windows, self._emit
        sliding = isinstance(windows, SlidingWindows)
        said, kept, value_serde = grouping.fold_store(fold, materialized, sliding=sliding)
        key_serde = said.key_serde or grouping.key_serde
        step_name = grouping.draft.named(name, _REDUCE if fold.kind == "reduce" else _AGGREGATE)
        store = time_store(said, windows, key_serde, value_serde)
        store = _uncached_on_close(store, emit) if sliding else store
        return grouping.table(
            step_name,
            store,
            lambda old: time_aggregate(store.name, fold, windows, emit, old),
            kept=kept,
            key_serde=Serdes.time_windowed(key_serde, windows.size_ms) if key_serde else None,
            grace_ms=windows.grace_ms,
        )


class SessionWindowedKStream(_WindowedKStream[K, V, SessionWindows]):
    """Per key and session. When a session grows, the result of the old one is deleted: its key holds start and end."""

    __slots__ = ()

    @overload
    def aggregate(
        self, initializer: Aggregate, *, materialized: "Stored" = None, name: str | None = None
    ) -> KTable[Windowed, Any]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        merger: Callable[[K, A, A], A],
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed, A]: ...
    def aggregate(
        self,
        initializer: Aggregate | Callable[[], Any],
        aggregator: Callable[[K, V, Any], Any] | None = None,
        merger: Callable[[K, Any, Any], Any] | None = None,
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> "KTable[Windowed, Any]":
        """As KGroupedStream.aggregate, per session. `merger` (key, aggregate, aggregate) unites two sessions."""
        fold = _fold(initializer, aggregator)
        if fold.native is None:
            merge = checked_callable(merger, "the merger of a session aggregate", "key, left, right")
            fold = Fold(fold.kind, fold.initializer, fold.function, merge)
        return self._folded(fold, materialized, name)

    def _folded(self, fold: Fold, materialized: "Stored", name: str | None) -> KTable[Any, Any]:
        grouping, windows, emit = self._grouping, self._windows, self._emit
        said, kept, value_serde = grouping.fold_store(fold, materialized)
        key_serde = said.key_serde or grouping.key_serde
        step_name = grouping.draft.named(name, _REDUCE if fold.kind == "reduce" else _AGGREGATE)
        store = _uncached_on_close(session_store(said, windows, key_serde, value_serde), emit)
        return grouping.table(
            step_name,
            store,
            lambda old: SessionAggregate(store.name, fold, windows, emit, old),
            kept=kept,
            key_serde=Serdes.session_windowed(key_serde) if key_serde else None,
            grace_ms=windows.grace_ms + windows.gap_ms,
        )


def _uncached_on_close(store: StoreSpec, emit: Emit) -> StoreSpec:
    """What goes out once per window has nothing to wait for. Kafka caches time windows even so, for the changelog."""
    return replace(store, caching=False) if emit.waits else store


def _fold(initializer: Aggregate | Callable[[], Any], aggregator: Callable[..., Any] | None) -> Fold:
    if isinstance(initializer, Aggregate):
        if aggregator is not None:
            raise TopologyError("an aggregate expression needs no aggregator")
        return Fold("aggregate", native=initializer)
    return Fold(
        "aggregate",
        checked_callable(initializer, "the initializer of aggregate", ""),
        checked_callable(aggregator, "the aggregator of aggregate", "key, value, aggregate"),
    )


class KGroupedTable(Generic[K, V]):
    """A table grouped anew. When a row changes, its old value leaves the old group, then the new one enters."""

    __slots__ = ("_draft", "_key_serde", "_repartition", "_repartition_name", "_step", "_value_serde")

    def __init__(
        self,
        draft: Draft,
        step: Step,
        *,
        key_serde: Serde[K] | None,
        value_serde: Serde[V] | None,
        repartition_name: str | None,
    ) -> None:
        self._draft = draft
        self._step = step
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._repartition_name = repartition_name
        self._repartition: RepartitionStep | None = None

    def count(self, materialized: "Stored" = None, *, name: str | None = None) -> KTable[K, int]:
        """How many rows each group has now: a long."""
        return self._folded(("count", int, _one_more, _one_less), materialized, name, "KTABLE-AGGREGATE-", Serdes.long)

    def reduce(
        self,
        adder: Callable[[V, V], V | None],
        subtractor: Callable[[V, V], V | None],
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Both are given (so far, value) of one type."""
        add = checked_callable(adder, "the adder", "aggregate, value")
        subtract = checked_callable(subtractor, "the subtractor", "aggregate, value")
        return self._folded(("reduce", None, add, subtract), materialized, name, "KTABLE-REDUCE-", self._value_serde)

    @overload
    def aggregate(
        self, initializer: Aggregate, *, materialized: "Stored" = None, name: str | None = None
    ) -> KTable[K, Any]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A | None],
        subtractor: Callable[[K, V, A], A | None],
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[K, A]: ...
    def aggregate(
        self,
        initializer: Aggregate | Callable[[], Any],
        adder: Callable[[K, V, Any], Any] | None = None,
        subtractor: Callable[[K, V, Any], Any] | None = None,
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[K, Any]:
        """An aggregate expression alone, which has to be able to take a row back, or functions: one gives the first
        aggregate, the others are given (key, value, aggregate)."""
        if isinstance(initializer, Aggregate):
            if adder is not None or subtractor is not None:
                raise TopologyError("an aggregate expression needs no adder and no subtractor")
            _check_undo(initializer)
            return self._folded(
                ("aggregate", None, None, None), materialized, name, "KTABLE-AGGREGATE-", None, initializer
            )
        first = checked_callable(initializer, "the initializer", "")
        add = checked_callable(adder, "the adder", "key, value, aggregate")
        subtract = checked_callable(subtractor, "the subtractor", "key, value, aggregate")
        return self._folded(("aggregate", first, add, subtract), materialized, name, "KTABLE-AGGREGATE-", None)

    def _folded(
        self,
        how: tuple[str, Callable[[], Any] | None, Callable[..., Any] | None, Callable[..., Any] | None],
        materialized: "Stored",
        name: str | None,
        prefix: str,
        value_serde: Serde[Any] | None,
        native: Aggregate | None = None,
    ) -> KTable[Any, Any]:
        draft = self._draft
        said, kept = named_store(draft, materialized, "KTABLE-AGGREGATE-")
        store = key_value_store(said, said.key_serde or self._key_serde, said.value_serde or value_serde)
        sink = draft.named(name, "KSTREAM-SINK-", "-sink")
        source = draft.named(name, "KSTREAM-SOURCE-", "-source")
        step_name = draft.named(name, prefix)
        repartition = self._repartitioned(store.name, sink, source)
        kind, initializer, adder, subtractor = how
        logic = AggregateTable(
            store, lambda old: TableAggregate(store.name, kind, initializer, adder, subtractor, old, native)
        )
        versioned = store.kind is StoreKind.VERSIONED
        step = OperationStep(step_name, logic.operation, own_stores=logic.stores, is_versioned=versioned)
        draft.add(step, repartition)
        return KTable(
            draft,
            step,
            (repartition.names.source,),
            logic,
            key_serde=store.key_serde,
            value_serde=store.value_serde,
            store_name=store.name if kept else None,
        )

    def _repartitioned(self, store_name: str, sink: str, source: str) -> RepartitionStep:
        if self._repartition is None or self._repartition_name is None:
            names = RepartitionNames(f"{self._repartition_name or store_name}-repartition", sink, "", source)
            self._repartition = RepartitionStep(names, self._key_serde, self._value_serde, changes=True)
        self._draft.add(self._repartition, self._step)
        return self._repartition


def _check_undo(aggregate: Aggregate) -> None:
    """A row is taken back by what it was: its key and its value are all that is known of it then."""
    reason = aggregate.why_no_undo()
    if reason is not None:
        raise TopologyError(f"{reason}, so it cannot follow a table")
    for expression in aggregate.expressions():
        others = sorted(expression.leaves() - {"key", "value"})
        if others:
            raise TopologyError(f"{expression!r} reads {others[0]}, which is not known when a row is taken back")


def _one_more(_key: Any, _value: Any, count: int) -> int:
    return count + 1


def _one_less(_key: Any, _value: Any, count: int) -> int:
    return count - 1
