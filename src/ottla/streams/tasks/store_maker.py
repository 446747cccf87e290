"""The stores of a task: which kind each is, what lies under it, where its changes go."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ottla.serdes.base import kept
from ottla.streams.expressions.fold_states import StateSerde
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.operators.aggregates import FOLD_SUFFIX, needs_states
from ottla.streams.tasks.stores.base import Moment, StoreContext
from ottla.streams.tasks.stores.delayed import Delayed
from ottla.streams.tasks.stores.in_memory import InMemorySessions, InMemoryWindows, LeastRecent
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.own import own_store
from ottla.streams.tasks.stores.record_cache import RecordCache
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.tasks.stores.waiting import HeldBack, Waiting
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.tasks.stores.with_headers import KeyValuesWithHeaders, with_headers
from ottla.streams.topology.graph import Graph, ProcessorNode, SubTopology
from ottla.streams.topology.operations import (
    SessionAggregate,
    SlidingAggregate,
    StreamAggregate,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    UnlimitedAggregate,
    WindowAggregate,
)
from ottla.streams.topology.stores import ChangeLog, StateStore, StoreBackend, StoreKind, StoreSpec

UserStore = KeyValues | Windows | Sessions | Versions | StateStore
"""What processors use."""
AnyStore = UserStore | Waiting | HeldBack | Delayed

_FOLDING = (StreamAggregate, WindowAggregate, UnlimitedAggregate, SlidingAggregate, SessionAggregate)
_SLICES_WAITING = 4
_SHORTEST_SLICE_MS = 1_000


def made_store(spec: StoreSpec, context: StoreContext) -> UserStore:
    """By its kind alone."""
    if spec.headers:
        context = with_headers(context, sessions=spec.kind is StoreKind.SESSION)
    match spec.kind:
        case StoreKind.KEY_VALUE if spec.headers:
            return KeyValuesWithHeaders(spec, context)
        case StoreKind.KEY_VALUE:
            return KeyValues(spec, context) if spec.most_entries is None else LeastRecent(spec, context)
        case StoreKind.WINDOW:
            return InMemoryWindows(spec, context) if spec.in_memory else Windows(spec, context)
        case StoreKind.SESSION:
            return InMemorySessions(spec, context) if spec.in_memory else Sessions(spec, context)
        case StoreKind.VERSIONED:
            return Versions(spec, context)
        case StoreKind.OWN:
            return own_store(spec, context)


def backend_names(sub_topology: SubTopology) -> tuple[str, ...]:
    """Of each map of bytes that a task of the sub-topology needs: its stores, and some that hold states beside them."""
    return tuple(spec.name for spec in _specs(sub_topology))


class StoreMaker:
    """Makes the stores of one task."""

    def __init__(
        self,
        graph: Graph,
        backend: Callable[[str], StoreBackend],
        *,
        log: Callable[[str], ChangeLog],
        moment: Moment,
        dropped: Callable[[str], None],
        cache: Callable[[StoreSpec, StoreBackend, ChangeLog | None], RecordCache],
        topic: Callable[[str], str],
    ) -> None:
        """`topic`: of a store's changelog, for serdes that look at it."""
        self._graph = graph
        self._backend = backend
        self._log = log
        self._moment = moment
        self._dropped = dropped
        self._cache = cache
        self._topic = topic
        self.caches: dict[str, RecordCache] = {}
        """Of the stores that have one."""

    def make(self, sub_topology: SubTopology) -> dict[str, AnyStore]:
        joins: dict[str, list[StreamStreamJoin]] = {}
        buffers: dict[str, Suppress] = {}
        delays: dict[str, int] = {}
        for operation in _operations(sub_topology):
            if isinstance(operation, StreamStreamJoin) and operation.outer_store is not None:
                joins.setdefault(operation.outer_store, []).append(operation)
            elif isinstance(operation, Suppress):
                buffers[operation.store] = operation
            elif isinstance(operation, StreamTableJoin) and operation.buffer is not None:
                delays[operation.buffer] = operation.grace_ms or 0
        made: dict[str, AnyStore] = {}
        for spec in _specs(sub_topology):
            if spec.name in joins:
                made[spec.name] = self._waiting(spec, joins[spec.name])
            elif spec.name in buffers:
                made[spec.name] = self._held_back(spec, buffers[spec.name])
            elif spec.name in delays:
                grace_ms = delays[spec.name]
                slice_ms = max(grace_ms // _SLICES_WAITING, _SHORTEST_SLICE_MS)
                made[spec.name] = Delayed(spec, self._context(spec), grace_ms, slice_ms)
            else:
                made[spec.name] = made_store(spec, self._context(spec))
        return made

    def _held_back(self, spec: StoreSpec, suppress: Suppress) -> HeldBack:
        slice_ms = max(suppress.wait_ms, spec.window_size_ms) // _SLICES_WAITING
        context = self._context(spec)
        return HeldBack(spec, context, max(slice_ms, _SHORTEST_SLICE_MS), by_window=suppress.until_closed)

    def _waiting(self, spec: StoreSpec, joins: list[StreamStreamJoin]) -> Waiting:
        """Each direction looks into the other side's buffer, whose serde is that side's."""
        serdes = {join.is_left_side: self._graph.stores[join.other_store].value_serde for join in joins}
        key = spec.key_serde or self._graph.stores[joins[0].other_store].key_serde
        windows = joins[0].windows
        slice_ms = max((windows.size_ms + windows.grace_ms) // _SLICES_WAITING, _SHORTEST_SLICE_MS)
        named = replace(spec, key_serde=key)
        left = self._context(replace(named, value_serde=serdes[False]))
        right = StoreContext(left.backend, left.key_serde, kept(serdes[True] or Serdes.bytes, self._topic(spec.name)))
        return Waiting(spec, left, right, slice_ms)

    def _context(self, spec: StoreSpec) -> StoreContext:
        backend = self._backend(spec.name)
        log = self._log(spec.name) if spec.logged and spec.source_topic is None else None
        if spec.caching:
            self.caches[spec.name] = self._cache(spec, backend, log)
        topic = spec.source_topic or self._topic(spec.name)
        return StoreContext(
            backend,
            kept(spec.key_serde or Serdes.bytes, topic),
            kept(spec.value_serde or Serdes.bytes, topic),
            log=log,
            moment=self._moment,
            dropped=self._dropped,
            cache=self.caches.get(spec.name),
        )


def _operations(sub_topology: SubTopology) -> Iterable[Any]:
    return (node.operation for node in sub_topology.nodes if isinstance(node, ProcessorNode))


def _keeps_states(operation: Any) -> bool:
    if isinstance(operation, TableAggregate):
        return operation.native is not None and operation.native.keeps_state(undo=True)
    return isinstance(operation, _FOLDING) and needs_states(operation.fold)


def _specs(sub_topology: SubTopology) -> list[StoreSpec]:
    specs = list(sub_topology.stores)
    by_name = {spec.name: spec for spec in specs}
    for operation in _operations(sub_topology):
        if _keeps_states(operation):
            spec = by_name[operation.store]
            specs.append(
                replace(spec, name=spec.name + FOLD_SUFFIX, value_serde=StateSerde(), logged=False, caching=False)
            )
    return specs
