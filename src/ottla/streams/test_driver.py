"""Topologies in a test: one record in, what comes of it out. No broker, no Spark, no threads, no waiting.

    with TopologyTestDriver(topology) as driver:
        lines = driver.create_input_topic("lines", Serdes.string, Serdes.string)
        counts = driver.create_output_topic("counts", Serdes.string, Serdes.long)
        lines.pipe_input(None, "hello kafka")
        assert counts.read_key_values() == [("hello", 1), ("kafka", 1)]

As Java's driver does, it runs the whole topology as one task with one partition: repartition topics and every topic
that is written and read lead back in, stream time is one for all, and all is done when `pipe_input` returns.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from ottla.serdes.base import Serde, Where, placed
from ottla.streams.record import NO_TIMESTAMP, Headers, Raw
from ottla.streams.run.config import IN_MEMORY, Config
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.global_tables import GlobalTables
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.sensors import LATENCY, SENSOR
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.tasks.task import Task
from ottla.streams.topology.graph import SinkNode, SubTopology, decorated
from ottla.streams.topology.stores import StateStore, ValueAndTimestamp

if TYPE_CHECKING:
    from ottla.streams.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")


class TestRecord(NamedTuple):
    """What lies in an output topic."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()


TestRecord.__test__ = False  # type: ignore[attr-defined]
"""Not a test class, whatever its name: pytest asks for this."""


class EmptyTopicError(LookupError):
    """Nothing (more) was written to the topic."""


class TestInputTopic(Generic[K, V]):
    """Where records are put in. Without a timestamp they get `start_timestamp` and from there on `auto_advance_ms`."""

    __test__ = False

    def __init__(
        self,
        driver: "TopologyTestDriver",
        topic: str,
        serdes: "tuple[Serde[K], Serde[V]]",
        start_timestamp: int,
        auto_advance_ms: int,
    ) -> None:
        self._driver = driver
        self._topic = topic
        self._key_serde, self._value_serde = serdes
        self._time = start_timestamp
        self._advance_ms = auto_advance_ms

    def pipe_input(
        self, key: K | None, value: V | None, timestamp: int | None = None, headers: Headers | Mapping[str, bytes] = ()
    ) -> None:
        """Returns when the topology is done with the record. None as value is a tombstone."""
        if timestamp is None:
            timestamp = self._time
            self._time += self._advance_ms
        pairs = tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)
        where = Where(self._topic)
        where.headers = list(pairs)
        data = (
            placed(self._key_serde, where).serialize(key),
            placed(self._value_serde, where).serialize(value),
        )
        self._driver.pipe_raw(self._topic, *data, timestamp, tuple(where.headers))

    def pipe_many(self, records: "Iterable[tuple[Any, ...]]") -> None:
        """Of (key, value) or (key, value, timestamp) or (key, value, timestamp, headers)."""
        for record in records:
            self.pipe_input(*record)

    def pipe_values(self, values: Iterable[V | None]) -> None:
        """Without keys."""
        for value in values:
            self.pipe_input(None, value)

    def advance_time(self, milliseconds: int) -> None:
        if milliseconds < 0:
            raise ValueError(f"time does not go back: {milliseconds} ms")
        self._time += milliseconds


class TestOutputTopic(Generic[K, V]):
    """Where results come out, each once."""

    __test__ = False

    def __init__(self, driver: "TopologyTestDriver", topic: str, serdes: "tuple[Serde[K], Serde[V]]") -> None:
        self._topic = topic
        self._records = driver.output(topic)
        self._key_serde, self._value_serde = serdes

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[TestRecord]:
        while self._records:
            yield self.read_record()

    def read_record(self) -> TestRecord:
        if not self._records:
            raise EmptyTopicError(f"nothing (more) was written to {self._topic}")
        raw = self._records.popleft()
        where = Where(self._topic)
        where.headers = list(raw.headers)
        key = placed(self._key_serde, where).deserialize(raw.key)
        value = placed(self._value_serde, where).deserialize(raw.value)
        return TestRecord(key, value, raw.timestamp, raw.headers)

    def read_value(self) -> V | None:
        value: V | None = self.read_record().value
        return value

    def read_key_value(self) -> tuple[K | None, V | None]:
        record = self.read_record()
        return record.key, record.value

    def read_all(self) -> list[TestRecord]:
        return list(self)

    def read_key_values(self) -> list[tuple[K | None, V | None]]:
        return [(record.key, record.value) for record in self]

    def read_values(self) -> list[V | None]:
        return [record.value for record in self]

    def read_to_dict(self) -> dict[K | None, V | None]:
        """The last value of each key."""
        return {record.key: record.value for record in self}

    def is_empty(self) -> bool:
        return not self._records


class TopologyTestDriver:
    """Runs a topology in this process. `config` has Kafka's names, as an application's."""

    __test__ = False

    def __init__(
        self,
        topology: "Topology",
        application_id: str = "test",
        config: Mapping[str, Any] | None = None,
        initial_wall_clock_ms: int = 0,
    ) -> None:
        self._config = _settings(config or {})
        if self._config["topology.optimization"] != "none":
            topology = topology.optimized(self._config["topology.optimization"])
        if not self._config["statestore.cache.max.bytes"]:
            topology = topology.without_caches()
        if (self._config["dsl.store.suppliers.class"] or self._config["default.dsl.store"]) == IN_MEMORY:
            topology = topology.with_stores_in_memory()
        resolved = topology.with_default_serdes(
            self._config.get("default.key.serde"), self._config.get("default.value.serde")
        )
        self._graph = resolved.graph
        self._application_id = application_id
        self._now = initial_wall_clock_ms
        self._offsets: dict[str, int] = {}
        self._outputs: dict[str, deque[Raw]] = {}
        self._backends: list[MemoryBackend] = []
        self._globals = GlobalTables(self._graph, self._backend, self._config)
        whole = SubTopology(0, tuple(self._graph.nodes.values()), tuple(self._graph.stores.values()))
        self._task = Task(
            whole,
            self._graph,
            application_id,
            0,
            self._backend,
            self._config,
            global_stores=self._globals.stores,
            now=initial_wall_clock_ms,
        )
        self._complete()

    def __enter__(self) -> "TopologyTestDriver":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._task.close()

    def _backend(self, _: object) -> MemoryBackend:
        self._backends.append(MemoryBackend())
        return self._backends[-1]

    def entries(self) -> int:
        """How many entries all stores have together, all written down."""
        self._capture(self._task.commit(flush=True))
        return sum(map(len, self._backends))

    def stored_bytes(self) -> int:
        """Of keys and values in all stores, as far as they are written down: all of them, right after `entries`."""
        return sum(each.size for each in self._backends)

    # ---- topics

    @overload
    def create_input_topic(
        self, topic: str, *, start_timestamp: int | None = None, auto_advance_ms: int = 0
    ) -> "TestInputTopic[Any, Any]": ...
    @overload
    def create_input_topic(
        self,
        topic: str,
        key_serde: "Serde[K]",
        value_serde: "Serde[V]",
        *,
        start_timestamp: int | None = None,
        auto_advance_ms: int = 0,
    ) -> "TestInputTopic[K, V]": ...
    def create_input_topic(
        self,
        topic: str,
        key_serde: "Serde[Any] | None" = None,
        value_serde: "Serde[Any] | None" = None,
        *,
        start_timestamp: int | None = None,
        auto_advance_ms: int = 0,
    ) -> "TestInputTopic[Any, Any]":
        """Serdes that are not given are those with which the topology reads. Time starts at the wall clock."""
        known = self._serdes_of_source(topic)
        serdes = (key_serde or known[0], value_serde or known[1])
        start = self._now if start_timestamp is None else start_timestamp
        return TestInputTopic(self, topic, serdes, start, auto_advance_ms)

    @overload
    def create_output_topic(self, topic: str) -> "TestOutputTopic[Any, Any]": ...
    @overload
    def create_output_topic(
        self, topic: str, key_serde: "Serde[K]", value_serde: "Serde[V]"
    ) -> "TestOutputTopic[K, V]": ...
    def create_output_topic(
        self, topic: str, key_serde: "Serde[Any] | None" = None, value_serde: "Serde[Any] | None" = None
    ) -> "TestOutputTopic[Any, Any]":
        """Serdes that are not given are those with which the topology writes the topic."""
        known = self._serdes_of_sink(topic)
        return TestOutputTopic(self, topic, (key_serde or known[0], value_serde or known[1]))

    def produced_topic_names(self) -> set[str]:
        """All that something was written to, internal topics among them."""
        return {topic for topic, records in self._outputs.items() if topic in self._offsets or records}

    def pipe_raw(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> None:
        """A record as bytes: what cannot be deserialized, too."""
        self._route(Raw(topic, 0, -1, key, value, timestamp, headers), known=False)
        self._complete()

    def pipe_batch(self, records: Iterable[Raw]) -> None:
        """Records as bytes with their places, all before the next commit: of changes of one key that are in a cache the
        last one comes out, as in an application."""
        self._task.add(records)
        outputs = True
        while outputs:
            while self._task.step():
                pass
            found = self._task.take() or self._task.commit(flush=False)
            self._capture(found)
            outputs = bool(found)

    def output(self, topic: str) -> deque[Raw]:
        """The records of an output topic or an internal one, as bytes; whoever reads them takes them out."""
        return self._outputs.setdefault(topic, deque())

    # ---- time

    def advance_wall_clock_time(self, milliseconds: int) -> None:
        """Runs punctuators by the wall clock. Stream time moves with records only."""
        if milliseconds < 0:
            raise ValueError(f"time does not go back: {milliseconds} ms")
        self._now += milliseconds
        self._capture(self._task.advance_wall_clock(self._now))
        self._capture(self._task.commit(flush=False))
        self._complete()

    # ---- stores

    def get_key_value_store(self, name: str) -> "PlainKeyValues":
        """With plain values, timestamped or not."""
        return PlainKeyValues(self._store(name, KeyValues))

    def get_timestamped_key_value_store(self, name: str) -> KeyValues:
        """With `ValueAndTimestamp` values."""
        store = self._store(name, KeyValues)
        if not store.spec.timestamped:
            raise LookupError(f"the values of store {name} have no timestamps")
        return store

    def get_window_store(self, name: str) -> "PlainWindows":
        return PlainWindows(self._store(name, Windows))

    def get_timestamped_window_store(self, name: str) -> Windows:
        store = self._store(name, Windows)
        if not store.spec.timestamped:
            raise LookupError(f"the values of store {name} have no timestamps")
        return store

    def get_session_store(self, name: str) -> Sessions:
        return self._store(name, Sessions)

    def get_state_store(self, name: str) -> Any:
        """Of any kind, also one of your own."""
        found = self._task.stores.get(name) or self._globals.stores.get(name)
        if found is None:
            raise LookupError(f"there is no store {name}")
        return found

    def get_versioned_key_value_store(self, name: str) -> Versions:
        return self._store(name, Versions)

    # ---- metrics

    @property
    def dropped_records(self) -> dict[str, int]:
        """How many records were left out, by reason."""
        return {name: count for name, count in self._counted().items() if not name.startswith(SENSOR)}

    def metrics(self) -> dict[str, int]:
        """Under Kafka Streams' names; those of sensors of your own without their scopes and entities."""
        sensors = {
            f"{name.rpartition('/')[2].removeprefix(SENSOR)}-total": count
            for name, count in self._counted().items()
            if name.startswith(SENSOR) and not name.endswith(LATENCY)
        }
        return {"dropped-records-total": sum(self.dropped_records.values()), **sensors}

    def _counted(self) -> dict[str, int]:
        found = dict(self._task.dropped)
        for reason, count in self._globals.dropped.items():
            found[reason] = found.get(reason, 0) + count
        return found

    def _store(self, name: str, kind: "type[S]") -> "S":
        found = self._task.stores.get(name) or self._globals.stores.get(name)
        if found is None:
            known = ", ".join((*self._task.stores, *self._globals.stores)) or "none"
            raise LookupError(f"there is no store {name}; there are {known}")
        if not isinstance(found, kind):
            told = type(found).__name__ if isinstance(found, StateStore) else found.spec.kind.value
            raise LookupError(f"store {name} is of another kind: {told}")
        return found

    # ---- the loop

    def _complete(self) -> None:
        self._capture(self._task.take())
        task = self._task
        while task.step():
            self._capture(task.take())
            self._capture(task.commit(flush=False))

    def _capture(self, outputs: list[Raw]) -> None:
        for raw in outputs:
            self.output(raw.topic).append(raw._replace(partition=0))
            self._route(raw, known=True)

    def _route(self, raw: Raw, *, known: bool) -> None:
        is_source, is_global = self._task.reads(raw.topic), self._globals.reads(raw.topic)
        if not known and not is_source and not is_global:
            raise LookupError(f"the topology does not read the topic {raw.topic}")
        if is_source or is_global or known:
            offset = self._offsets.get(raw.topic, 0)
            self._offsets[raw.topic] = offset + 1
            placed = raw._replace(partition=0, offset=offset)
            if is_source:
                self._task.add((placed,))
            if is_global:
                self._globals.update(placed)

    def _serdes_of_source(self, topic: str) -> "tuple[Serde[Any], Serde[Any]]":
        for table in self._graph.global_tables.values():
            if table.topic == topic:
                return table.key_serde or Serdes.bytes, table.value_serde or Serdes.bytes
        if not self._task.reads(topic):
            raise LookupError(f"the topology does not read the topic {topic}")
        node = self._task.source_of(topic)
        return node.key_serde or Serdes.bytes, node.value_serde or Serdes.bytes

    def _serdes_of_sink(self, topic: str) -> "tuple[Serde[Any], Serde[Any]]":
        for node in self._graph.nodes.values():
            if isinstance(node, SinkNode) and node.topic is not None:
                name = decorated(self._application_id, node.topic) if node.repartition else node.topic
                if name == topic:
                    return node.key_serde or Serdes.bytes, node.value_serde or Serdes.bytes
        return Serdes.bytes, Serdes.bytes


S = TypeVar("S", KeyValues, Windows, Sessions, Versions)


class PlainKeyValues:
    """A store's values without their timestamps."""

    def __init__(self, store: KeyValues) -> None:
        self._store = store

    def get(self, key: Any) -> Any:
        return _plain(self._store.get(key))

    def put(self, key: Any, value: Any) -> None:
        timed = self._store.spec.timestamped and value is not None
        self._store.put(key, ValueAndTimestamp(value, NO_TIMESTAMP) if timed else value)

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        return ((key, _plain(value)) for key, value in self._store.range(first, last))

    def reverse_range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        return ((key, _plain(value)) for key, value in self._store.reverse_range(first, last))

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        return ((key, _plain(value)) for key, value in self._store.prefix_scan(prefix))

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range()

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()


class PlainWindows:
    """A window store's values without their timestamps."""

    def __init__(self, store: Windows) -> None:
        self._store = store

    def put(self, key: Any, value: Any, window_start: int) -> None:
        timed = self._store.spec.timestamped and value is not None
        self._store.put(key, ValueAndTimestamp(value, NO_TIMESTAMP) if timed else value, window_start)

    def fetch(self, key: Any, window_start: int) -> Any:
        return _plain(self._store.fetch(key, window_start))

    def fetch_range(self, key: Any, first_start: int, last_start: int) -> Iterator[tuple[int, Any]]:
        return ((start, _plain(value)) for start, value in self._store.fetch_range(key, first_start, last_start))

    def fetch_all(self, first_start: int, last_start: int) -> Iterator[tuple[Any, Any]]:
        return ((key, _plain(value)) for key, value in self._store.fetch_all(first_start, last_start))

    def all(self) -> Iterator[tuple[Any, Any]]:
        return ((key, _plain(value)) for key, value in self._store.all())


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, ValueAndTimestamp) else value


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Checked as an application's; Kafka's internal settings, which begin with __, pass as they are."""
    internal = {name: value for name, value in config.items() if name.startswith("__")}
    return {**Config({name: value for name, value in config.items() if name not in internal}), **internal}
