"""Global tables: each task has them in whole, fed record by record from their topics."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.streams.errors import FAIL, ErrorContext, StreamsError, answer, handlers_of
from ottla.streams.record import Raw
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR
from ottla.streams.tasks.operators.base import NULL_KEY
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.graph import GlobalTable, Graph
from ottla.streams.topology.stores import StoreBackend


class GlobalTables:
    """`stores` go to the tasks. Kafka synchronises them with nothing, and a join looks up what is there."""

    def __init__(
        self, graph: Graph, stores: Callable[[str], StoreBackend], config: Mapping[str, Any] | None = None
    ) -> None:
        self._handler, _, _ = handlers_of(config or {})
        self._tables: dict[str, list[GlobalTable]] = {}
        self.stores: dict[str, KeyValues] = {}
        self.dropped: dict[str, int] = {}
        for name, table in graph.global_tables.items():
            self._tables.setdefault(table.topic, []).append(table)
            context = StoreContext(
                stores(name), table.store.key_serde or Serdes.bytes, table.store.value_serde or Serdes.bytes
            )
            self.stores[name] = KeyValues(table.store, context)

    def reads(self, topic: str) -> bool:
        return topic in self._tables

    def update(self, raw: Raw) -> None:
        for table in self._tables[raw.topic]:
            self._update(table, raw)

    def _update(self, table: GlobalTable, raw: Raw) -> None:
        try:
            key = (table.key_serde or Serdes.bytes).deserialize(raw.key)
            value = (table.value_serde or Serdes.bytes).deserialize(raw.value)
        except Exception as error:  # noqa: BLE001  whatever a serde raises, the handler decides
            self._refused(table, raw, error)
            return
        if key is None:
            self._drop(NULL_KEY)
            return
        store = self.stores[table.store.name]
        store.write(store.key_bytes(key), value, raw.timestamp)

    def _refused(self, table: GlobalTable, raw: Raw, error: Exception) -> None:
        """Kafka writes no dead letters for global tables."""
        context = ErrorContext(table.source, "global", *raw[:3], raw.timestamp, raw.headers, raw.key, raw.value)
        if answer(self._handler, context, error) == FAIL:
            raise StreamsError(f"a record of a global table could not be read {context}: {error}") from error
        self._drop(DESERIALIZATION_ERROR)

    def _drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
