"""Cogrouped streams: records of several grouped streams are folded into one aggregate, each by its own function."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.function_checks import checked_callable
from ottla.streams.dsl.grouped import Grouping, KGroupedStream, checked_windows, time_aggregate
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.options import Materialized
from ottla.streams.dsl.steps import OperationStep, RepartitionStep, Step
from ottla.streams.dsl.table_logic import CogroupedTable
from ottla.streams.dsl.table_stores import TimeWindow, key_value_store, named_store, session_store, time_store
from ottla.streams.serdes import Serdes
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.operations import Fold, Operation, SessionAggregate, StreamAggregate
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.windows import Emit, SessionWindows, Windowed

if TYPE_CHECKING:
    from ottla.serdes.base import Serde

    Stored = Materialized[Any, Any] | str | None

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

_AGGREGATE: Final = "COGROUPKSTREAM-AGGREGATE-"
_MERGE: Final = "COGROUPKSTREAM-MERGE-"

Make = Callable[[Fold, bool], Operation]
"""(fold, whether old values are wanted) -> one of the aggregates"""


class _Cogroup:
    """The grouped streams with their functions, and where each is read. All windowed forms share it."""

    __slots__ = ("_parents", "draft", "parts")

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.parts: dict[Grouping, Callable[..., Any]] = {}
        self._parents: dict[Grouping, tuple[Step, tuple[str, ...]]] = {}

    @property
    def key_serde(self) -> "Serde[Any] | None":
        return next((grouping.key_serde for grouping in self.parts if grouping.key_serde is not None), None)

    def table(
        self,
        name: str | None,
        first: tuple[Callable[[], Any], Callable[..., Any] | None],
        store: StoreSpec,
        make: Make,
        *,
        kept: bool,
        key_serde: "Serde[Any] | None",
        grace_ms: int | None = None,
    ) -> KTable[Any, Any]:
        """`first`: the initializer, and for sessions the merger."""
        self._repartition(store.name)
        draft, logic = self.draft, CogroupedTable(store)
        steps: list[OperationStep] = []
        for number, (grouping, aggregator) in enumerate(self.parts.items()):
            fold = Fold("aggregate", first[0], aggregator, first[1])
            step = OperationStep(
                draft.named(name, _AGGREGATE, f"-cogroup-agg-{number}"),
                lambda fold=fold: make(fold, logic.send_old),  # type: ignore[misc]
                own_stores=lambda: (store,),
                grace_ms=grace_ms,
            )
            draft.add(step, self._parents[grouping][0])
            steps.append(step)
        merge = OperationStep(draft.named(name, _MERGE, "-cogroup-merge"), logic.operation)
        draft.add(merge, *steps)
        return KTable(
            draft,
            merge,
            draft.copartition(*(self._parents[grouping][1] for grouping in self.parts)),
            logic,
            key_serde=key_serde,
            value_serde=store.value_serde,
            store_name=store.name if kept else None,
        )

    def _repartition(self, store_name: str) -> None:
        """Streams whose key was changed go over a topic each, which serves all aggregates of this cogroup. Kafka burns
        the numbers of its nodes each time."""
        for grouping in self.parts:
            if not grouping.needs_repartition:
                self._parents[grouping] = (grouping.step, grouping.sources)
                continue
            names = self.draft.repartition_names(grouping.repartition_name or store_name)
            if grouping not in self._parents:
                step = RepartitionStep(names, grouping.key_serde, grouping.value_serde)
                self.draft.add(step, grouping.step)
                self._parents[grouping] = (step, (names.source,))


class CogroupedKStream(Generic[K, A]):
    """Grouped streams that are to become one aggregate. Records without key or value are left out."""

    __slots__ = ("_cogroup",)

    def __init__(self, draft: Draft) -> None:
        self._cogroup = _Cogroup(draft)

    def cogroup(
        self, grouped: KGroupedStream[K, V], aggregator: Callable[[K, V, A], A | None]
    ) -> "CogroupedKStream[K, A]":
        """One stream more, with its own function (key, value, aggregate). Changes this object, as in Java."""
        if not isinstance(grouped, KGroupedStream) or grouped.grouping.draft is not self._cogroup.draft:
            raise TopologyError("cogroup takes a grouped stream of the same builder")
        self._cogroup.parts[grouped.grouping] = checked_callable(
            aggregator, "the aggregator of cogroup", "key, value, aggregate"
        )
        return self

    def aggregate(
        self, initializer: Callable[[], A], materialized: "Stored" = None, *, name: str | None = None
    ) -> KTable[K, A]:
        """The table of all of them."""
        cogroup = self._cogroup
        said, kept = named_store(cogroup.draft, materialized, _AGGREGATE)
        key_serde = said.key_serde or cogroup.key_serde
        store = key_value_store(said, key_serde, said.value_serde)
        first = checked_callable(initializer, "the initializer of aggregate", "")

        def make(fold: Fold, old: bool) -> Operation:
            return StreamAggregate(store.name, fold, old)

        return cogroup.table(name, (first, None), store, make, kept=kept, key_serde=key_serde)

    @overload
    def windowed_by(self, windows: TimeWindow) -> "TimeWindowedCogroupedKStream[K, A]": ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedCogroupedKStream[K, A]": ...
    def windowed_by(
        self, windows: TimeWindow | SessionWindows
    ) -> "TimeWindowedCogroupedKStream[K, A] | SessionWindowedCogroupedKStream[K, A]":
        """Aggregates per window of event time."""
        checked = checked_windows(windows)
        if isinstance(checked, SessionWindows):
            return SessionWindowedCogroupedKStream(self._cogroup, checked)
        return TimeWindowedCogroupedKStream(self._cogroup, checked)


class TimeWindowedCogroupedKStream(Generic[K, A]):
    """Per key and window: tumbling, hopping, sliding or unlimited. Results go out at every update, as in Java."""

    __slots__ = ("_cogroup", "_windows")

    def __init__(self, cogroup: _Cogroup, windows: TimeWindow) -> None:
        self._cogroup = cogroup
        self._windows = windows

    def aggregate(
        self, initializer: Callable[[], A], materialized: "Stored" = None, *, name: str | None = None
    ) -> KTable[Windowed, A]:
        """As CogroupedKStream.aggregate, per window."""
        cogroup, windows = self._cogroup, self._windows
        said, kept = named_store(cogroup.draft, materialized, _AGGREGATE)
        key_serde = said.key_serde or cogroup.key_serde
        store = time_store(said, windows, key_serde, said.value_serde)
        first = checked_callable(initializer, "the initializer of aggregate", "")

        def make(fold: Fold, old: bool) -> Operation:
            return time_aggregate(store.name, fold, windows, Emit.ON_UPDATE, old)

        return cogroup.table(
            name,
            (first, None),
            store,
            make,
            kept=kept,
            key_serde=Serdes.time_windowed(key_serde, windows.size_ms) if key_serde else None,
            grace_ms=windows.grace_ms,
        )


class SessionWindowedCogroupedKStream(Generic[K, A]):
    """Per key and session. Results go out at every update, as in Java."""

    __slots__ = ("_cogroup", "_windows")

    def __init__(self, cogroup: _Cogroup, windows: SessionWindows) -> None:
        self._cogroup = cogroup
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[K, A, A], A],
        materialized: "Stored" = None,
        *,
        name: str | None = None,
    ) -> KTable[Windowed, A]:
        """As CogroupedKStream.aggregate, per session. `merger` (key, aggregate, aggregate) unites two sessions."""
        cogroup, windows = self._cogroup, self._windows
        said, kept = named_store(cogroup.draft, materialized, _AGGREGATE)
        key_serde = said.key_serde or cogroup.key_serde
        store = session_store(said, windows, key_serde, said.value_serde)
        first = checked_callable(initializer, "the initializer of aggregate", "")
        merge = checked_callable(merger, "the merger of a session aggregate", "key, left, right")

        def make(fold: Fold, old: bool) -> Operation:
            return SessionAggregate(store.name, fold, windows, Emit.ON_UPDATE, old)

        return cogroup.table(
            name,
            (first, merge),
            store,
            make,
            kept=kept,
            key_serde=Serdes.session_windowed(key_serde) if key_serde else None,
            grace_ms=windows.grace_ms + windows.gap_ms,
        )
