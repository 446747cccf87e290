"""Joins of two tables by their keys: the nodes of both directions and the one in which they meet, by Kafka's names."""

from typing import TYPE_CHECKING

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.steps import Step
from ottla.streams.dsl.table_logic import OldValues, TableLogic, View
from ottla.streams.topology.operations import Function, Operation, TableMerge, TableTableJoin
from ottla.streams.topology.stores import StoreKind, StoreSpec

if TYPE_CHECKING:
    from ottla.streams.topology.topology import Topology


class JoinedTable(TableLogic):
    """Without a store of its own it is computed from both tables whenever it is looked at."""

    __slots__ = ("_how", "_outer", "_send_old", "_store", "_tables", "_views")

    def __init__(
        self,
        tables: tuple[OldValues, OldValues],
        store: StoreSpec | None,
        how: tuple[Function, bool],
        outer: tuple[bool, bool],
    ) -> None:
        """`how`: the joiner and whether it is given the key. `outer`: whether rows of each side come out alone, too."""
        self._tables = tables
        self._store = store
        self._how = how
        self._outer = outer
        self._send_old = False
        for table, alone in zip(tables, outer, strict=True):
            if alone:
                table.enable(True)
        self._views: tuple[View, View] = (tables[0].logic.view(), tables[1].logic.view())

    def operation(self) -> Operation:
        return TableMerge(self._store.name if self._store else None, self._send_old)

    def direction(self, side: int, *, versioned: bool = False) -> Operation:
        other, (joiner, with_key) = self._views[1 - side], self._how
        return TableTableJoin(
            other.store,
            other.operations(),
            joiner,
            is_left_side=side == 0,
            outer=self._outer[side],
            other_outer=self._outer[1 - side],
            with_key=with_key,
            send_old=self._send_old,
            versioned=versioned,
        )

    def looked_into(self, side: int) -> tuple[str, ...]:
        """Stores of the other side."""
        return self._views[1 - side].stores

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,) if self._store else ()

    def wants_old(self, force: bool) -> bool:
        for table in self._tables:
            table.enable(True)
        self._send_old = True
        return True

    def view(self) -> View:
        if self._store is not None:
            return View((self._store.name,), self._store.name)
        left, right = self._views
        stores = tuple(dict.fromkeys((*left.stores, *right.stores)))
        return View(stores, left.store, (*left.steps, lambda: self.direction(0)))

    def stored(self) -> StoreSpec | None:
        """Versions of both tables do not make versions of the join, unless it keeps its own."""
        return self._store


class TableJoinStep(Step):
    __slots__ = ("logic", "names", "parent_tables")

    def __init__(self, name: str, names: tuple[str, str], parent_tables: tuple[str, str], logic: JoinedTable) -> None:
        store = logic.stored()
        super().__init__(name, is_versioned=store is not None and store.kind is StoreKind.VERSIONED)
        self.names = names
        self.parent_tables = parent_tables
        self.logic = logic

    def write(self, topology: "Topology") -> None:
        versioned = {parent.name: parent.gives_versions() for parent in self.parents}
        for side, (name, parent) in enumerate(zip(self.names, self.parent_tables, strict=True)):
            topology.add_operation(name, self.logic.direction(side, versioned=versioned[parent]), parent)
        topology.add_operation(self.name, self.logic.operation(), *self.names)
        for store in self.logic.stores():
            topology.add_state_store(store, self.name)
        for side, name in enumerate(self.names):
            topology.connect_processor_and_state_stores(name, *self.logic.looked_into(side))


def add_table_join(draft: Draft, sides: tuple[Step, Step], name: str | None, logic: JoinedTable) -> TableJoinStep:
    merge = draft.named(name, "KTABLE-MERGE-")
    names = (draft.named(name, "KTABLE-JOINTHIS-", "-join-this"), draft.named(name, "KTABLE-JOINOTHER-", "-join-other"))
    step = TableJoinStep(merge, names, (sides[0].name, sides[1].name), logic)
    draft.add(step, *sides)
    return step
