"""The stores of a task: which kind each is, what lies under it, where its changes go."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ottla.serdes.base import Serde
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.operators.aggregates import FOLD_SUFFIX, needs_states
from ottla.streams.tasks.stores.base import Moment, StoreContext
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.waiting import HeldBack, Waiting
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.graph import Graph, ProcessorNode, SubTopology
from ottla.streams.topology.operations import (
    SessionAggregate,
    StreamAggregate,
    StreamStreamJoin,
    Suppress,
    WindowAggregate,
)
from ottla.streams.topology.stores import ChangeLog, StoreBackend, StoreKind, StoreSpec

AnyStore = KeyValues | Windows | Sessions | Waiting | HeldBack

_SLICES_WAITING = 4
_SHORTEST_SLICE_MS = 1_000


class _StateSerde(Serde[Any]):
    """States of native aggregates: numbers, strings, None and lists."""

    name = "state"

    def encode(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def decode(self, data: bytes) -> Any:
        return json.loads(data)


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
    ) -> None:
        self._graph = graph
        self._backend = backend
        self._log = log
        self._moment = moment
        self._dropped = dropped

    def make(self, sub_topology: SubTopology) -> dict[str, AnyStore]:
        joins: dict[str, list[StreamStreamJoin]] = {}
        buffers: dict[str, Suppress] = {}
        for operation in _operations(sub_topology):
            if isinstance(operation, StreamStreamJoin) and operation.outer_store is not None:
                joins.setdefault(operation.outer_store, []).append(operation)
            elif isinstance(operation, Suppress):
                buffers[operation.store] = operation
        made: dict[str, AnyStore] = {}
        for spec in _specs(sub_topology):
            if spec.name in joins:
                made[spec.name] = self._waiting(spec, joins[spec.name])
            elif spec.name in buffers:
                slice_ms = max(buffers[spec.name].grace_ms, spec.window_size_ms) // _SLICES_WAITING
                made[spec.name] = HeldBack(spec, self._context(spec), max(slice_ms, _SHORTEST_SLICE_MS))
            else:
                made[spec.name] = self._plain(spec)
        return made

    def _plain(self, spec: StoreSpec) -> AnyStore:
        context = self._context(spec)
        match spec.kind:
            case StoreKind.KEY_VALUE:
                return KeyValues(spec, context)
            case StoreKind.WINDOW:
                return Windows(spec, context)
            case StoreKind.SESSION:
                return Sessions(spec, context)

    def _waiting(self, spec: StoreSpec, joins: list[StreamStreamJoin]) -> Waiting:
        """Each direction looks into the other side's buffer, whose serde is that side's."""
        serdes = {join.is_left_side: self._graph.stores[join.other_store].value_serde for join in joins}
        key = spec.key_serde or self._graph.stores[joins[0].other_store].key_serde
        windows = joins[0].windows
        slice_ms = max((windows.size_ms + windows.grace_ms) // _SLICES_WAITING, _SHORTEST_SLICE_MS)
        named = replace(spec, key_serde=key)
        left = self._context(replace(named, value_serde=serdes[False]))
        right = StoreContext(left.backend, left.key_serde, serdes[True] or Serdes.bytes)
        return Waiting(spec, left, right, slice_ms)

    def _context(self, spec: StoreSpec) -> StoreContext:
        return StoreContext(
            self._backend(spec.name),
            spec.key_serde or Serdes.bytes,
            spec.value_serde or Serdes.bytes,
            log=self._log(spec.name) if spec.logged and spec.source_topic is None else None,
            moment=self._moment,
            dropped=self._dropped,
        )


def _operations(sub_topology: SubTopology) -> Iterable[Any]:
    return (node.operation for node in sub_topology.nodes if isinstance(node, ProcessorNode))


def _specs(sub_topology: SubTopology) -> list[StoreSpec]:
    specs = list(sub_topology.stores)
    by_name = {spec.name: spec for spec in specs}
    for operation in _operations(sub_topology):
        if isinstance(operation, (StreamAggregate, WindowAggregate, SessionAggregate)) and needs_states(operation.fold):
            spec = by_name[operation.store]
            specs.append(replace(spec, name=spec.name + FOLD_SUFFIX, value_serde=_StateSerde(), logged=False))
    return specs
