"""Tables: a record replaces the one before it with the same key, and None deletes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from ottla.streams.dsl.draft import (
    DerivedTable,
    Draft,
    OldValues,
    OperationStep,
    Step,
    SuppressedTable,
    TableLogic,
    View,
    checked,
    checked_callable,
    step_of,
)
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.options import Grouped, Materialized, Suppressed, checked_name, renamed
from ottla.streams.dsl.table_stores import as_materialized, key_value_store
from ottla.streams.expressions import Expression
from ottla.streams.topology.graph import TopologyError
from ottla.streams.topology.operations import Suppress, TableFilter, TableMapValues, TableRepartitionMap, TableToStream
from ottla.streams.topology.stores import StoreKind, StoreSpec

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.dsl.grouped import KGroupedTable

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class KTable(Generic[K, V]):
    """A table that changes. It has a store if it was given one by name, or if an operation behind it needs one."""

    __slots__ = ("_draft", "_old_values", "_step", "_store_name", "key_serde", "name", "sources", "value_serde")

    def __init__(
        self,
        draft: Draft,
        step: Step,
        sources: Sequence[str],
        logic: TableLogic,
        *,
        key_serde: "Serde[K] | None" = None,
        value_serde: "Serde[V] | None" = None,
        store_name: str | None = None,
    ) -> None:
        self.name = step.name
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.sources = tuple(sources)
        self._draft = draft
        self._step = step
        self._old_values = OldValues(logic)
        self._store_name = store_name

    @property
    def queryable_store_name(self) -> str | None:
        """The store to ask in interactive queries; None if it was given no name."""
        return self._store_name

    def view(self) -> View:
        """How a join looks a key up. The table gets a store by that, if it had none."""
        return self._old_values.logic.view()

    # ---- one value at a time

    def filter(
        self,
        predicate: Expression | Callable[[K, V], bool],
        materialized: "Materialized[K, V] | str | None" = None,
        *,
        name: str | None = None,
    ) -> "KTable[K, V]":
        """The rows for which the predicate holds. A row that no longer passes is deleted downstream by a tombstone."""
        return self._filtered(predicate, materialized, name, negated=False)

    def filter_not(
        self,
        predicate: Expression | Callable[[K, V], bool],
        materialized: "Materialized[K, V] | str | None" = None,
        *,
        name: str | None = None,
    ) -> "KTable[K, V]":
        """The rows for which the predicate does not hold; see filter."""
        return self._filtered(predicate, materialized, name, negated=True)

    def _filtered(
        self, predicate: Any, materialized: "Materialized[K, V] | str | None", name: str | None, *, negated: bool
    ) -> "KTable[K, V]":
        function = checked(predicate, "the predicate of filter")
        said, store = self._derived_store(materialized, "KTABLE-FILTER-", self.value_serde)
        step_name = self._draft.named(name, "KTABLE-FILTER-")
        # With old values at hand it need not send tombstones for rows that never passed; it asks for no store though.
        send_old = self._old_values.enable(False)
        logic = DerivedTable(
            self._old_values,
            store,
            lambda kept, old: TableFilter(function, negated, kept, old),
            send_old=send_old,
        )
        return self._derived(step_name, logic, said, store, self.value_serde)

    @overload
    def map_values(
        self,
        function: Expression,
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> "KTable[K, Any]": ...
    @overload
    def map_values(
        self,
        function: Callable[[V], V2],
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> "KTable[K, V2]": ...
    @overload
    def map_values(
        self,
        function: Callable[[K, V], V2],
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        with_key: Literal[True],
        name: str | None = None,
    ) -> "KTable[K, V2]": ...
    def map_values(
        self,
        function: Expression | Callable[..., Any],
        materialized: "Materialized[K, Any] | str | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KTable[K, Any]":
        """A new value for each row. The function is not called for deletions: they stay deletions."""
        mapper = checked(function, "the function of map_values")
        said, store = self._derived_store(materialized, "KTABLE-MAPVALUES-", None)
        step_name = self._draft.named(name, "KTABLE-MAPVALUES-")
        logic = DerivedTable(self._old_values, store, lambda kept, old: TableMapValues(mapper, with_key, kept, old))
        return self._derived(step_name, logic, said, store, None)

    def _derived_store(
        self, materialized: "Materialized[K, Any] | str | None", prefix: str, value_serde: "Serde[Any] | None"
    ) -> "tuple[Materialized[K, Any], StoreSpec | None]":
        """None unless a name was given. Kafka burns a number for options without a name."""
        given = as_materialized(materialized)
        if given is None:
            return Materialized(), None
        if given.name is None:
            self._draft.new_store_name(prefix)
            return given, None
        return given, key_value_store(given, given.key_serde or self.key_serde, given.value_serde or value_serde)

    def _derived(
        self,
        name: str,
        logic: DerivedTable,
        said: "Materialized[K, Any]",
        store: StoreSpec | None,
        value_serde: "Serde[Any] | None",
    ) -> "KTable[K, Any]":
        step = OperationStep(name, logic.operation, own_stores=logic.stores)
        self._draft.add(step, self._step)
        return KTable(
            self._draft,
            step,
            self.sources,
            logic,
            key_serde=said.key_serde or self.key_serde,
            value_serde=said.value_serde or value_serde,
            store_name=store.name if store else None,
        )

    # ---- into streams and groups

    @overload
    def to_stream(self, select_key: None = None, *, name: str | None = None) -> "KStream[K, V]": ...
    @overload
    def to_stream(
        self, select_key: Expression | Callable[[K, V], Any], *, name: str | None = None
    ) -> "KStream[Any, V]": ...
    def to_stream(
        self, select_key: Expression | Callable[[K, V], Any] | None = None, *, name: str | None = None
    ) -> "KStream[Any, V]":
        """The changes as records; a deletion is a record with value None. A function gives them another key."""
        step = step_of(self._draft, name, "KTABLE-TOSTREAM-", TableToStream(), self._step)
        stream: KStream[Any, V] = KStream(
            self._draft, step, self.sources, key_serde=self.key_serde, value_serde=self.value_serde
        )
        return stream if select_key is None else stream.select_key(select_key)

    def group_by(
        self,
        selector: Callable[[K, V], tuple[K2, V2]],
        grouped: "Grouped[Any, Any] | None" = None,
        *,
        name: str | None = None,
    ) -> "KGroupedTable[K2, V2]":
        """Groups rows anew: the function gives each a new (key, value). Always over a repartition topic."""
        from ottla.streams.dsl.grouped import KGroupedTable  # noqa: PLC0415  tables and groups make each other

        said = renamed(grouped or Grouped(), name)
        operation = TableRepartitionMap(checked_callable(selector, "the selector of group_by"))
        step = step_of(self._draft, said.name, "KTABLE-SELECT-", operation, self._step)
        self._old_values.enable(True)
        return KGroupedTable(
            self._draft, step, key_serde=said.key_serde, value_serde=said.value_serde, repartition_name=said.name
        )

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> "KTable[K, V]":
        """Only the final result of each window, once it has closed. The table has to be a windowed aggregate."""
        if not isinstance(suppressed, Suppressed):
            raise TopologyError("suppress takes Suppressed.until_window_closes()")
        given = checked_name(name) or suppressed.name
        step_name = given or self._draft.new_name("KTABLE-SUPPRESS-")
        grace_ms = window_grace(self._step)
        store = StoreSpec(
            f"{given}-store" if given else self._draft.new_store_name("KTABLE-SUPPRESS-"),
            StoreKind.KEY_VALUE,
            self.key_serde,
            self.value_serde,
            timestamped=False,
            logged=suppressed.logging is not False,
            changelog_config={} if isinstance(suppressed.logging, bool) else suppressed.logging,
        )
        operation = Suppress(store.name, grace_ms, suppressed.max_records, suppressed.max_bytes)
        logic = SuppressedTable(self._old_values, store, operation)
        step = OperationStep(step_name, logic.operation, own_stores=logic.stores)
        self._draft.add(step, self._step)
        return KTable(self._draft, step, self.sources, logic, key_serde=self.key_serde, value_serde=self.value_serde)


class GlobalKTable(Generic[K, V]):
    """A table that every task has in whole: to be joined with any stream by any key, without co-partitioning."""

    __slots__ = ("key_serde", "store_name", "value_serde")

    def __init__(
        self, store_name: str, key_serde: "Serde[K] | None" = None, value_serde: "Serde[V] | None" = None
    ) -> None:
        self.store_name = store_name
        self.key_serde = key_serde
        self.value_serde = value_serde

    @property
    def queryable_store_name(self) -> str:
        return self.store_name


def window_grace(step: Step) -> int:
    """How long after its end a window is still open: the longest grace of the aggregates that feed the step."""
    steps = [step]
    found: list[int] = []
    for each in steps:
        if each.grace_ms is not None:
            found.append(each.grace_ms)
        elif not any(parent.parents for parent in each.parents):  # only the root has none
            raise TopologyError(f"only windows close, but {step.name} is no aggregate over windows")
        else:
            steps += [parent for parent in each.parents if parent not in steps]
    return max(found)
