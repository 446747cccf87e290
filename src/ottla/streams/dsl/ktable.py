"""Tables: a record replaces the one before it with the same key, and None deletes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from ottla.streams.dsl.draft import Draft, step_of
from ottla.streams.dsl.foreign_key_join import ForeignKeyLogic, TableSide, add_foreign_key_join
from ottla.streams.dsl.function_checks import checked, checked_callable, of_value
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.options import Grouped, Joined, Materialized, Suppressed, TableJoined, checked_name, renamed
from ottla.streams.dsl.steps import OperationStep, Step
from ottla.streams.dsl.table_join import JoinedTable, add_table_join
from ottla.streams.dsl.table_logic import DerivedTable, OldValues, SuppressedTable, TableLogic, View
from ottla.streams.dsl.table_stores import as_materialized, key_value_store, named_store
from ottla.streams.expressions import Expression
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.operations import (
    Function,
    Suppress,
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableToStream,
    TableTransformValues,
)
from ottla.streams.topology.processor import ValueTransformerWithKey
from ottla.streams.topology.stores import StoreKind, StoreSpec
from ottla.streams.topology.topology import used_stores

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

    def join_buffer(
        self,
        join: str,
        said: "Joined[Any, Any, Any]",
        key_serde: "Serde[Any] | None",
        value_serde: "Serde[Any] | None",
    ) -> StoreSpec:
        """Where records of a stream wait for late records of this table, which has to be versioned."""
        view = self.view()
        store = self._old_values.logic.stored()
        if store is None or store.kind is not StoreKind.VERSIONED:
            raise TopologyError(
                f"{join} has a grace, but {view.store} is not versioned: materialize it with history_retention_ms"
            )
        if said.grace_ms is not None and said.grace_ms > store.retention_ms:
            raise TopologyError(
                f"{join} waits {said.grace_ms} ms, but {view.store} keeps a history of {store.retention_ms} ms only"
            )
        return StoreSpec(f"{join}-Buffer", StoreKind.KEY_VALUE, key_serde, value_serde, timestamped=False)

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
        function = checked(predicate, "the predicate of filter", "key, value")
        said, store = self._derived_store(materialized, "KTABLE-FILTER-", self.value_serde)
        step_name = self._draft.named(name, "KTABLE-FILTER-")
        # With old values at hand it need not send tombstones for rows that never passed; it asks for no store though.
        send_old = self._old_values.enable(False)
        logic = DerivedTable(
            self._old_values,
            store,
            lambda kept, old: TableFilter(function, negated, kept, old, versioned=self._step.gives_versions()),
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
        mapper = checked(function, "the function of map_values", of_value(with_key))
        said, store = self._derived_store(materialized, "KTABLE-MAPVALUES-", None)
        step_name = self._draft.named(name, "KTABLE-MAPVALUES-")
        logic = DerivedTable(self._old_values, store, lambda kept, old: TableMapValues(mapper, with_key, kept, old))
        return self._derived(step_name, logic, said, store, None)

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformerWithKey],
        materialized: "Materialized[K, Any] | str | None" = None,
        *,
        stores: Sequence[StoreSpec | str] = (),
        name: str | None = None,
    ) -> "KTable[K, Any]":
        """A new value for each row, deleted ones too, by a transformer that may keep state. `supplier` makes one per
        task; `stores` are names, or specs to add. A table of a transformer with stores can be joined only if it has a
        name (`materialized`): it is kept then, not computed anew."""
        if isinstance(supplier, ValueTransformerWithKey) or not callable(supplier):
            raise TopologyError(
                f"transform_values is given {supplier!r}, but every task needs a transformer of its own: pass the "
                "class, or a function that makes one"
            )
        stores = used_stores(supplier, stores)
        said, store = self._derived_store(materialized, "KTABLE-TRANSFORMVALUES-", None)
        step_name = self._draft.named(name, "KTABLE-TRANSFORMVALUES-")
        logic = DerivedTable(
            self._old_values,
            store,
            lambda kept, old: TableTransformValues(supplier, kept, old),
            unseen=f"{step_name} transforms values with stores" if stores else None,
        )
        return self._derived(step_name, logic, said, store, None, stores)

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
        used: Sequence[StoreSpec | str] = (),
    ) -> "KTable[K, Any]":
        own = tuple(each for each in used if isinstance(each, StoreSpec))
        connected = tuple(each for each in used if isinstance(each, str))
        versioned = None if store is None else store.kind is StoreKind.VERSIONED
        step = OperationStep(
            name,
            logic.operation,
            own_stores=lambda: (*logic.stores(), *own),
            connected=connected,
            is_versioned=versioned,
        )
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

    # ---- joins

    def join(
        self,
        other: "KTable[Any, Any]",
        joiner: Function,
        materialized: "Materialized[K, Any] | str | None" = None,
        *,
        foreign_key: Function | None = None,
        foreign_key_with_key: bool = False,
        joined: "TableJoined[K, Any] | None" = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KTable[K, Any]":
        """The rows that have a partner: under the same key, or under the key that `foreign_key` finds in the value.

        The joiner is given (this value, other value), or the key first. By key both topics need equally many
        partitions; by foreign key (given the value, or key and value) they need not, and `joined` has options.
        """
        how = (joiner, with_key, foreign_key, foreign_key_with_key)
        return self._joined(other, how, materialized, joined, name, "join")

    def left_join(
        self,
        other: "KTable[Any, Any]",
        joiner: Function,
        materialized: "Materialized[K, Any] | str | None" = None,
        *,
        foreign_key: Function | None = None,
        foreign_key_with_key: bool = False,
        joined: "TableJoined[K, Any] | None" = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KTable[K, Any]":
        """As join, but a row of this table without a partner, or without a foreign key, comes out with None."""
        how = (joiner, with_key, foreign_key, foreign_key_with_key)
        return self._joined(other, how, materialized, joined, name, "left_join")

    def outer_join(
        self,
        other: "KTable[Any, Any]",
        joiner: Function,
        materialized: "Materialized[K, Any] | str | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KTable[K, Any]":
        """As left_join by key, and rows of the other table without a partner come out as well."""
        return self._joined(other, (joiner, with_key, None, False), materialized, None, name, "outer_join")

    def _joined(
        self,
        other: "KTable[Any, Any]",
        how: tuple[Function, bool, Function | None, bool],
        materialized: "Materialized[K, Any] | str | None",
        joined: "TableJoined[Any, Any] | None",
        name: str | None,
        kind: str,
    ) -> "KTable[K, Any]":
        joiner, with_key, foreign_key, foreign_key_with_key = how
        checked(joiner, f"the joiner of {kind}", "key, left, right" if with_key else "left, right")
        if not isinstance(other, KTable):
            raise TopologyError(f"{kind} of a table with {type(other).__name__}: there is no such join")
        if joined is not None and not isinstance(joined, TableJoined):
            raise TopologyError(f"{kind} of two tables takes TableJoined, not {type(joined).__name__}")
        if foreign_key is None:
            if joined is not None:
                raise TopologyError(f"TableJoined is for joins by foreign key: {kind} has no foreign_key")
            return self._join_by_key(other, (joiner, with_key), materialized, name, kind)
        logic = ForeignKeyLogic(
            checked(foreign_key, "the foreign_key", of_value(foreign_key_with_key)),
            foreign_key_with_key,
            joiner,
            with_key,
            kind == "left_join",
        )
        said = renamed(joined or TableJoined(), name)
        return self._join_by_foreign_key(other, logic, as_materialized(materialized) or Materialized(), said)

    def _join_by_key(
        self,
        other: "KTable[Any, Any]",
        how: tuple[Function, bool],
        materialized: "Materialized[K, Any] | str | None",
        name: str | None,
        kind: str,
    ) -> "KTable[K, Any]":
        given = as_materialized(materialized)
        said: Materialized[K, Any] = Materialized()
        store = None
        if given is not None:  # kept with or without a name, as nowhere else
            said, _ = named_store(self._draft, given, "KTABLE-MERGE-")
            store = key_value_store(said, said.key_serde or self.key_serde, said.value_serde)
        outer = (kind != "join", kind == "outer_join")
        logic = JoinedTable((self._old_values, other._old_values), store, how, outer)
        step = add_table_join(self._draft, (self._step, other._step), checked_name(name), logic)
        return KTable(
            self._draft,
            step,
            self._draft.copartition(self.sources, other.sources),
            logic,
            key_serde=said.key_serde or self.key_serde or other.key_serde,
            value_serde=said.value_serde,
            store_name=store.name if store else None,
        )

    def _join_by_foreign_key(
        self,
        other: "KTable[Any, Any]",
        how: ForeignKeyLogic,
        said: "Materialized[K, Any]",
        joined: "TableJoined[Any, Any]",
    ) -> "KTable[K, Any]":
        other._old_values.enable(True)
        # The old value tells which subscription has to be taken back.
        self._old_values.enable(True)
        result = add_foreign_key_join(self._draft, self._side(), other._side(), how, joined, said)
        return KTable(
            self._draft,
            result.step,
            result.sources,
            result.logic,
            key_serde=self.key_serde,
            value_serde=said.value_serde,
            store_name=result.store_name,
        )

    def _side(self) -> TableSide:
        return TableSide(self._step, self.sources, self.view(), self.key_serde, self.value_serde)

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
        function = checked_callable(selector, "the selector of group_by", "key, value")
        step = OperationStep(
            self._draft.named(said.name, "KTABLE-SELECT-"),
            lambda: TableRepartitionMap(function, versioned=self._step.gives_versions()),
        )
        self._draft.add(step, self._step)
        self._old_values.enable(True)
        return KGroupedTable(
            self._draft, step, key_serde=said.key_serde, value_serde=said.value_serde, repartition_name=said.name
        )

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> "KTable[K, V]":
        """Fewer changes: the final result of each window once it has closed (the table has to be a windowed aggregate),
        or the last change of each key within a time limit."""
        if not isinstance(suppressed, Suppressed):
            raise TopologyError("suppress takes Suppressed.until_window_closes() or Suppressed.until_time_limit(...)")
        if self._step.gives_versions():
            raise TopologyError(f"suppress is for tables without versions, but {self.name} is versioned")
        given = checked_name(name) or suppressed.name
        step_name = given or self._draft.new_name("KTABLE-SUPPRESS-")
        until_closed = suppressed.limit_ms is None
        wait_ms = window_grace(self._step) if suppressed.limit_ms is None else suppressed.limit_ms
        store = StoreSpec(
            f"{given}-store" if given else self._draft.new_store_name("KTABLE-SUPPRESS-"),
            StoreKind.KEY_VALUE,
            self.key_serde,
            self.value_serde,
            timestamped=False,
            logged=suppressed.logging is not False,
            changelog_config={} if isinstance(suppressed.logging, bool) else suppressed.logging,
        )
        operation = Suppress(
            store.name,
            wait_ms,
            suppressed.max_records,
            suppressed.max_bytes,
            until_closed,
            emit_early=not suppressed.shut_down_when_full,
        )
        logic = SuppressedTable(self._old_values, store, operation)
        step = OperationStep(step_name, logic.operation, own_stores=logic.stores, is_versioned=False)
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
