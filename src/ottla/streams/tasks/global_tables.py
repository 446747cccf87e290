"""Global tables: each task has them in whole, fed record by record from their topics."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.registry.lookup import RegistryUnavailable
from ottla.serdes.base import Serde, Where, kept, placed
from ottla.streams.errors import FAIL, ErrorContext, StreamsError, handlers_of, verdict
from ottla.streams.own_lines import own_lines
from ottla.streams.record import Raw, Record, RecordMetadata
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR, PROCESSING_ERROR
from ottla.streams.tasks.operators.base import NULL_KEY
from ottla.streams.tasks.sensors import TaskMetrics
from ottla.streams.tasks.store_maker import UserStore, made_store
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.graph import GlobalTable, Graph
from ottla.streams.topology.processor import Cancellable, Processor, PunctuationType, Punctuator
from ottla.streams.topology.stores import StoreBackend


class GlobalTables:
    """`stores` go to the tasks. Kafka synchronises them with nothing, and a join looks up what is there."""

    def __init__(
        self, graph: Graph, stores: Callable[[str], StoreBackend], config: Mapping[str, Any] | None = None
    ) -> None:
        self._deserialization, processing, _ = handlers_of(config or {})
        asks = (config or {}).get("processing.exception.handler.global.enabled", False)
        self._processing = processing if asks else FAIL
        self._tables: dict[str, list[GlobalTable]] = {}
        self.stores: dict[str, UserStore] = {}
        self.config = config or {}
        self.current: Raw | None = None
        """The record that a processor is at work on."""
        self._processors: dict[str, Processor] = {}
        self.dropped: dict[str, int] = {}
        for name, table in graph.global_tables.items():
            self._tables.setdefault(table.topic, []).append(table)
            context = StoreContext(
                stores(name),
                kept(table.store.key_serde or Serdes.bytes, table.topic),
                kept(table.store.value_serde or Serdes.bytes, table.topic),
            )
            self.stores[name] = made_store(table.store, context)
        for name, table in graph.global_tables.items():
            if table.supplier is not None:
                processor = self._processors[name] = table.supplier()
                processor.init(GlobalContext(self, table))

    def reads(self, topic: str) -> bool:
        return topic in self._tables

    def update(self, raw: Raw) -> None:
        for table in self._tables[raw.topic]:
            self._update(table, raw)

    def _update(self, table: GlobalTable, raw: Raw) -> None:
        try:
            where = Where(raw.topic)
            where.headers = list(raw.headers)
            key = placed(table.key_serde or Serdes.bytes, where).deserialize(raw.key)
            value = placed(table.value_serde or Serdes.bytes, where).deserialize(raw.value)
        except RegistryUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  whatever a serde raises, the handler decides
            self._refused(table, raw, error)
            return
        record = Record(key, value, raw.timestamp, raw.headers)
        try:
            self._processed(table, raw, record)
        except (StreamsError, RegistryUnavailable):
            raise
        except Exception as error:  # noqa: BLE001  the handler decides
            self._failed(table, raw, record, error)

    def _processed(self, table: GlobalTable, raw: Raw, record: Record) -> None:
        processor = self._processors.get(table.store.name)
        if processor is not None:
            self.current = raw
            processor.process(record)
            return
        if record.key is None:
            self.drop(NULL_KEY)
            return
        store = self.stores[table.store.name]
        assert isinstance(store, KeyValues), "a global table lies in a key-value store"
        store.write(store.key_bytes(record.key), record.value, raw.timestamp)

    def _refused(self, table: GlobalTable, raw: Raw, error: Exception) -> None:
        """Kafka writes no dead letters for global tables."""
        context = _context(table.source, raw)
        if verdict(self._deserialization, context, error, None).fails:
            raise StreamsError(f"a record of a global table could not be read {context}: {error}") from error
        self.drop(DESERIALIZATION_ERROR)

    def _failed(self, table: GlobalTable, raw: Raw, record: Record, error: Exception) -> None:
        context = _context(table.processor, raw)._replace(record=record)
        if verdict(self._processing, context, error, None).fails:
            why = f"{type(error).__name__}: {error}{own_lines(error)}"
            raise StreamsError(f"processing failed {context}: {why}") from error
        self.drop(PROCESSING_ERROR)

    def drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def _context(node: str, raw: Raw) -> ErrorContext:
    return ErrorContext(node, "global", *raw[:3], raw.timestamp, raw.headers, raw.key, raw.value)


class GlobalContext:
    """What the processor of a global store is given: it fills stores, and no record goes on from there."""

    __slots__ = ("_table", "_tables")

    def __init__(self, tables: GlobalTables, table: GlobalTable) -> None:
        self._tables = tables
        self._table = table

    @property
    def application_id(self) -> str:
        return str(self.app_configs.get("application.id", ""))

    @property
    def task_id(self) -> str:
        return "-1_-1"  # as in Kafka: it belongs to no task

    @property
    def app_configs(self) -> Mapping[str, Any]:
        return self._tables.config

    @property
    def key_serde(self) -> Serde[Any] | None:
        return self._tables.config.get("default.key.serde")

    @property
    def value_serde(self) -> Serde[Any] | None:
        return self._tables.config.get("default.value.serde")

    @property
    def metrics(self) -> TaskMetrics:
        return TaskMetrics(self._tables)

    def forward(self, record: Record, child: str | None = None) -> None:
        raise StreamsError(
            f"{self._table.processor} fills the global store {self._table.store.name}: nothing follows it"
        )

    def state_store(self, name: str) -> Any:
        found = self._tables.stores.get(name)
        if found is None:
            known = ", ".join(self._tables.stores)
            raise StreamsError(f"{self._table.processor} has no store {name}; global ones are {known}")
        return found

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator, *, start_ms: int | None = None
    ) -> Cancellable:
        raise StreamsError(f"{self._table.processor} fills a global store: there is no task whose time could come")

    def commit(self) -> None:
        """What it writes is there at once."""

    def record_metadata(self) -> RecordMetadata | None:
        raw = self._tables.current
        return None if raw is None else RecordMetadata(raw.topic, raw.partition, raw.offset)

    def current_stream_time_ms(self) -> int:
        raise StreamsError(f"{self._table.processor} fills a global store, which has no stream time")

    def current_system_time_ms(self) -> int:
        raise StreamsError(f"{self._table.processor} fills a global store by what lies in its topic, by no clock")

    def dropped(self, reason: str) -> None:
        self._tables.drop(reason)
