"""What is known of a table only at the end: whether it has a store, and who wants old values."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.operations import (
    Operation,
    PassThrough,
    TableSource,
)
from ottla.streams.topology.stores import StoreKind, StoreSpec


@dataclass(frozen=True, slots=True)
class View:
    """How to look a key up in a table: in which store, and what happens to what lies there."""

    stores: tuple[str, ...]
    store: str
    steps: tuple[Callable[[], Operation], ...] = ()

    def operations(self) -> tuple[Operation, ...]:
        return tuple(step() for step in self.steps)


class TableLogic:
    """The part of a table that is decided by what comes after it (Kafka's KTableProcessorSupplier)."""

    @abstractmethod
    def operation(self) -> Operation: ...

    @abstractmethod
    def stores(self) -> tuple[StoreSpec, ...]: ...

    @abstractmethod
    def wants_old(self, force: bool) -> bool:
        """Asks for old values downstream. Without force a table does not get a store for it. Says whether they come."""

    @abstractmethod
    def view(self) -> View: ...

    @abstractmethod
    def stored(self) -> StoreSpec | None:
        """The store that its view looks into."""


class SourceTable(TableLogic):
    """A topic or a stream. It has a store if it was named, or if somebody needs it."""

    __slots__ = ("_kept", "_send_old", "_store", "is_versioned")

    def __init__(self, store: StoreSpec, *, kept: bool) -> None:
        self._store = store
        self._kept = kept
        self._send_old = False
        self.is_versioned = store.kind is StoreKind.VERSIONED

    def operation(self) -> Operation:
        return TableSource(self._store.name if self._kept else None, self._send_old)

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,) if self._kept else ()

    def wants_old(self, force: bool) -> bool:
        if not (force or self._kept):
            return False
        self._kept = self._send_old = True
        return True

    def view(self) -> View:
        self._kept = True
        return View((self._store.name,), self._store.name)

    def stored(self) -> StoreSpec:
        return self._store


class AggregateTable(TableLogic):
    """Of a stream or of a table; always has a store."""

    __slots__ = ("_make", "_send_old", "_store")

    def __init__(self, store: StoreSpec, make: Callable[[bool], Operation]) -> None:
        self._store = store
        self._make = make  # send_old -> operation
        self._send_old = False

    def operation(self) -> Operation:
        return self._make(self._send_old)

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,)

    def wants_old(self, force: bool) -> bool:
        self._send_old = True
        return True

    def view(self) -> View:
        return View((self._store.name,), self._store.name)

    def stored(self) -> StoreSpec:
        return self._store


class CogroupedTable(TableLogic):
    """Several aggregates write one store, and meet in a node that hands on what they send."""

    __slots__ = ("send_old", "store")

    def __init__(self, store: StoreSpec) -> None:
        self.store = store
        self.send_old = False

    def operation(self) -> Operation:
        return PassThrough()

    def stores(self) -> tuple[StoreSpec, ...]:
        return ()

    def wants_old(self, force: bool) -> bool:
        self.send_old = True
        return True

    def view(self) -> View:
        return View((self.store.name,), self.store.name)

    def stored(self) -> StoreSpec:
        return self.store


class DerivedTable(TableLogic):
    """filter, map_values, transform_values: without a store of its own it is computed from its parent whenever it is
    looked at."""

    __slots__ = ("_make", "_parent", "_send_old", "_store", "_unseen")

    def __init__(
        self,
        parent: "OldValues",
        store: StoreSpec | None,
        make: Callable[[str | None, bool], Operation],
        *,
        send_old: bool = False,
        unseen: str | None = None,
    ) -> None:
        """`unseen`: why it cannot be computed by others."""
        self._parent = parent
        self._store = store
        self._make = make  # (store, send_old) -> operation
        self._send_old = send_old
        self._unseen = unseen

    def operation(self) -> Operation:
        return self._make(self._store.name if self._store else None, self._send_old)

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,) if self._store else ()

    def wants_old(self, force: bool) -> bool:
        if self._store is not None or self._parent.enable(force):
            self._send_old = True
        return self._send_old

    def view(self) -> View:
        if self._store is not None:
            return View((self._store.name,), self._store.name)
        if self._unseen is not None:
            raise TopologyError(
                f"{self._unseen}, to which a join has no access: give the table a name (materialized), so that the "
                "join looks into its own store"
            )
        below = self._parent.logic.view()
        return View(below.stores, below.store, (*below.steps, self.operation))

    def stored(self) -> StoreSpec | None:
        return self._store or self._parent.logic.stored()


class SuppressedTable(TableLogic):
    __slots__ = ("_operation", "_parent", "_store")

    def __init__(self, parent: "OldValues", store: StoreSpec, operation: Operation) -> None:
        self._parent = parent
        self._store = store
        self._operation = operation
        parent.enable(True)  # the buffer answers with the value from before while it holds a key back

    def operation(self) -> Operation:
        return self._operation

    def stores(self) -> tuple[StoreSpec, ...]:
        return (self._store,)

    def wants_old(self, force: bool) -> bool:
        return self._parent.enable(force)

    def view(self) -> View:
        below = self._parent.logic.view()
        return View((self._store.name, *below.stores), below.store, (*below.steps, self.operation))

    def stored(self) -> StoreSpec | None:
        return self._parent.logic.stored()


class OldValues:
    """A table's logic and whether old values were asked of it already."""

    __slots__ = ("_enabled", "logic")

    def __init__(self, logic: TableLogic) -> None:
        self.logic = logic
        self._enabled = False

    def enable(self, force: bool) -> bool:
        self._enabled = self._enabled or self.logic.wants_old(force)
        return self._enabled
