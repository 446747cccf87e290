"""StreamsBuilder: where a topology begins."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.kstream import SOURCE, KStream
from ottla.streams.dsl.ktable import GlobalKTable, KTable
from ottla.streams.dsl.optimizing import optimized
from ottla.streams.dsl.options import Consumed, Materialized, checked_name, renamed
from ottla.streams.dsl.steps import GlobalTableStep, SourceStep, StateStoreStep, TableSourceStep
from ottla.streams.dsl.table_logic import SourceTable
from ottla.streams.dsl.table_stores import as_materialized, key_value_store, named_store
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import GlobalTable
from ottla.streams.topology.optimization import rules_of
from ottla.streams.topology.processor import Processor
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.topology.topology import Topology, user_processor

if TYPE_CHECKING:
    from ottla.serdes.base import Serde

K = TypeVar("K")
V = TypeVar("V")


class StreamsBuilder:
    """Says what a topology does, operation by operation; `build` gives it.

    The default serdes are taken wherever nothing else says how keys and values lie in a topic or a store.
    """

    __slots__ = ("_default_key_serde", "_default_value_serde", "_draft")

    def __init__(
        self, *, default_key_serde: "Serde[Any] | None" = None, default_value_serde: "Serde[Any] | None" = None
    ) -> None:
        self._draft = Draft()
        self._default_key_serde = default_key_serde
        self._default_value_serde = default_value_serde

    @overload
    def stream(
        self, topics: "str | Sequence[str] | re.Pattern[str]", consumed: None = None, *, name: str | None = None
    ) -> KStream[Any, Any]: ...
    @overload
    def stream(
        self, topics: "str | Sequence[str] | re.Pattern[str]", consumed: "Consumed[K, V]", *, name: str | None = None
    ) -> KStream[K, V]: ...
    def stream(
        self,
        topics: "str | Sequence[str] | re.Pattern[str]",
        consumed: "Consumed[Any, Any] | None" = None,
        *,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """A topic, several, or all that match a compiled pattern, as a stream. The topics have to exist; those that
        come to match a pattern are found while the application runs."""
        said = renamed(consumed or Consumed(), name)
        pattern = topics.pattern if isinstance(topics, re.Pattern) else None
        if isinstance(topics, str):
            read: tuple[str, ...] = (topics,)
        else:
            read = () if isinstance(topics, re.Pattern) else tuple(topics)
        if not read and pattern is None:
            raise TopologyError("a stream of no topic: at least one is expected")
        step = SourceStep(self._draft.named(said.name, SOURCE), read, pattern, said)
        self._draft.add(step, self._draft.root)
        return KStream(self._draft, step, (step.name,), key_serde=said.key_serde, value_serde=said.value_serde)

    @overload
    def table(
        self,
        topic: str,
        consumed: None = None,
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> KTable[Any, Any]: ...
    @overload
    def table(
        self,
        topic: str,
        consumed: "Consumed[K, V]",
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> KTable[K, V]: ...
    def table(
        self,
        topic: str,
        consumed: "Consumed[Any, Any] | None" = None,
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """A topic as a table: the last value per key, None deletes. Records without a key are dropped."""
        said, stored, kept = self._table_options(topic, consumed, materialized)
        source, processor = self._table_names(checked_name(name) or said.name)
        logic = SourceTable(key_value_store(stored, said.key_serde, said.value_serde), kept=kept)
        step = TableSourceStep(processor, source, topic, said, logic)
        self._draft.add(step, self._draft.root)
        return KTable(
            self._draft,
            step,
            (source,),
            logic,
            key_serde=said.key_serde,
            value_serde=said.value_serde,
            store_name=stored.name if kept else None,
        )

    @overload
    def global_table(
        self,
        topic: str,
        consumed: None = None,
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> GlobalKTable[Any, Any]: ...
    @overload
    def global_table(
        self,
        topic: str,
        consumed: "Consumed[K, V]",
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> GlobalKTable[K, V]: ...
    def global_table(
        self,
        topic: str,
        consumed: "Consumed[Any, Any] | None" = None,
        materialized: "Materialized[Any, Any] | str | None" = None,
        *,
        name: str | None = None,
    ) -> GlobalKTable[Any, Any]:
        """A topic that every task has in whole. Its changes take effect at batches, in no time order with streams."""
        said, stored, _ = self._table_options(topic, consumed, materialized)
        if stored.history_retention_ms is not None:
            raise TopologyError(f"the global table of {topic} cannot be versioned: leave history_retention_ms out")
        source, processor = self._table_names(checked_name(name) or said.name)
        store = replace(
            key_value_store(stored, said.key_serde, said.value_serde), logged=False, caching=False, source_topic=topic
        )
        table = GlobalTable(store, topic, source, processor, said.key_serde, said.value_serde, said.extractor)
        self._draft.add(GlobalTableStep(table), self._draft.root)
        return GlobalKTable(store.name, said.key_serde, said.value_serde)

    def add_state_store(self, store: StoreSpec) -> "StreamsBuilder":
        """A store for processors, made by `Stores`; `process(..., stores=[name])` connects it."""
        self._draft.add(StateStoreStep(store), self._draft.root)
        return self

    def add_global_store(
        self,
        store: StoreSpec,
        topic: str,
        supplier: Callable[[], Processor],
        consumed: "Consumed[Any, Any] | None" = None,
        *,
        name: str | None = None,
    ) -> "StreamsBuilder":
        """A store that every task has in whole, filled by a processor from a topic. It forwards nothing."""
        said = renamed(consumed or Consumed(), name)
        source, processor = self._table_names(said.name)
        user_processor(processor, supplier)
        serdes = said.key_serde or store.key_serde, said.value_serde or store.value_serde
        kept = replace(store, logged=False)
        table = GlobalTable(kept, topic, source, processor, *serdes, said.extractor, supplier)
        self._draft.add(GlobalTableStep(table), self._draft.root)
        return self

    def build(self, *, topology_optimization: str = "none") -> Topology:
        """The topology. Raises TopologyError for what cannot be: unknown stores, names or topics taken twice, and
        expressions that do not fit the records that reach them.

        `topology_optimization` is Kafka's setting: none, all, or some of its rules. An application whose settings have
        it optimizes its topology itself.
        """
        try:
            rules = rules_of(topology_optimization)
        except ValueError as error:
            raise TopologyError(f"topology.optimization: {error}") from None
        draft = optimized(self._draft, rules) if rules else self._draft
        topology = draft.write(Topology(self._default_key_serde, self._default_value_serde, self._rebuilt))
        topology.is_written()
        return topology.check_expressions(sure=False)

    def _rebuilt(self, topology_optimization: str) -> Topology:
        return self.build(topology_optimization=topology_optimization)

    def _table_options(
        self, topic: str, consumed: "Consumed[Any, Any] | None", materialized: "Materialized[Any, Any] | str | None"
    ) -> "tuple[Consumed[Any, Any], Materialized[Any, Any], bool]":
        """Serdes that the one lacks are taken from the other. A store without a name is called after the topic."""
        given = as_materialized(materialized) or Materialized()
        said = consumed or Consumed()
        said = replace(
            said,
            key_serde=said.key_serde or given.key_serde,
            value_serde=said.value_serde or given.value_serde,
        )
        stored, kept = named_store(self._draft, given, f"{topic}-")
        return said, stored, kept

    def _table_names(self, name: str | None) -> tuple[str, str]:
        return self._draft.named(name, SOURCE, "-source"), self._draft.named(name, "KTABLE-SOURCE-")
