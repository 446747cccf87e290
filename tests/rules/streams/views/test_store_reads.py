"""Ranges and directions of stores, stores that others fill: what processors find."""

from typing import Any

import pytest

from ottla.streams import (
    AggregationWithHeaders,
    Processor,
    ProcessorContext,
    Record,
    Serdes,
    StateStore,
    StateStoreContext,
    Stores,
    Topology,
    TopologyTestDriver,
    ValueTimestampHeaders,
)
from ottla.streams.errors import StreamsError
from ottla.streams.record import Headers
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.store_maker import made_store
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.windows import Window, Windowed


def made(spec: StoreSpec) -> Any:
    return made_store(spec, StoreContext(MemoryBackend(), Serdes.string, Serdes.string))


def test_put_all_puts_each_and_reverse_all_gives_them_from_the_end() -> None:
    store = made(Stores.key_value("s", Serdes.string, Serdes.string))
    store.put_all([("b", "2"), ("a", "1"), ("c", None), ("ab", "3")])
    assert list(store.all()) == [("a", "1"), ("ab", "3"), ("b", "2")]
    assert list(store.reverse_all()) == [("b", "2"), ("ab", "3"), ("a", "1")]
    assert list(store.reverse_range("a", "ab")) == [("ab", "3"), ("a", "1")]
    assert store.approximate_num_entries() == 3


def windows() -> Any:
    store = made(Stores.window("s", Serdes.string, Serdes.string, window_size_ms=10, retention_ms=100_000))
    for key, start in (("a", 0), ("b", 5), ("a", 10), ("c", 10), ("a", 20)):
        store.put(key, f"{key}{start}", start)
    return store


def windowed(key: str, start: int) -> tuple[Windowed, str]:
    return Windowed(key, Window(start, start + 10)), f"{key}{start}"


def test_windows_of_a_key_come_from_either_end() -> None:
    store = windows()
    assert list(store.fetch_range("a", 0, 15)) == [(0, "a0"), (10, "a10")]
    assert list(store.backward_fetch_range("a", 5, 30)) == [(20, "a20"), (10, "a10")]


def test_windows_of_a_range_of_keys_have_both_ends_and_none_is_open() -> None:
    store = windows()
    forward = [windowed("a", 0), windowed("a", 10), windowed("a", 20), windowed("b", 5), windowed("c", 10)]
    assert list(store.fetch_keys("a", "b", 0, 10)) == [windowed("a", 0), windowed("a", 10), windowed("b", 5)]
    assert list(store.fetch_keys("b", None, 0, 99)) == [windowed("b", 5), windowed("c", 10)]
    assert list(store.backward_fetch_keys(None, None, 0, 99)) == forward[::-1]
    assert list(store.backward_fetch_all(5, 15)) == [windowed("c", 10), windowed("b", 5), windowed("a", 10)]
    assert list(store.backward_all()) == forward[::-1]


def test_sessions_of_a_range_of_keys_come_from_either_end() -> None:
    store = made(Stores.session("s", Serdes.string, Serdes.string, retention_ms=100_000))
    spans = [("a", 0, 5), ("a", 10, 30), ("b", 3, 4), ("c", 20, 40)]
    for key, start, end in spans:
        store.put(Windowed(key, Window(start, end)), f"{key}{start}")
    found = [(Windowed(key, Window(start, end)), f"{key}{start}") for key, start, end in spans]
    assert list(store.all()) == found
    assert list(store.backward_fetch("a")) == [found[1], found[0]]
    assert list(store.backward_find_sessions("a", 6, 99)) == [found[1]]
    assert list(store.fetch_keys("a", "b")) == found[:3]
    assert list(store.backward_fetch_keys("b", None)) == [found[3], found[2]]
    assert list(store.find_sessions_of_keys(None, None, 5, 15)) == [found[0], found[1]]
    assert list(store.backward_find_sessions_of_keys("a", "c", 0, 3)) == [found[2], found[0]]


class Fill(Processor):
    """Puts values in upper case."""

    def __init__(self, store: str, forwards: bool = False) -> None:
        self._name = store
        self._forwards = forwards
        self._context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._store = context.state_store(self._name)

    def process(self, record: Record) -> None:
        self._store.put(record.key, None if record.value is None else record.value.upper())
        if self._forwards:
            self._context.forward(record)


class Look(Processor):
    def __init__(self, store: str) -> None:
        self._name = store

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._store = context.state_store(self._name)

    def process(self, record: Record) -> None:
        self._context.forward(record.with_value(f"{record.value}:{self._store.get(record.key)}"))


STRINGS: dict[str, Any] = {"key_serde": Serdes.string, "value_serde": Serdes.string}


def looking(topology: Topology, **connected: Any) -> Topology:
    topology.add_source("in", "in", **STRINGS)
    topology.add_processor("look", lambda: Look("kept"), "in", **connected)
    return topology.add_sink("out", "out", "look", **STRINGS)


def asked(topology: Topology) -> list[Any]:
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("facts", Serdes.string, Serdes.string).pipe_many([("k", "v", 0), ("j", "w", 0)])
        driver.create_input_topic("in", Serdes.string, Serdes.string).pipe_many([("k", "x", 1), ("nobody", "y", 1)])
        assert "test-kept-changelog" not in driver.produced_topic_names()
        return driver.create_output_topic("out").read_key_values()


def test_a_global_store_is_filled_by_its_own_processor_and_read_by_all() -> None:
    topology = Topology()
    store = Stores.key_value("kept", Serdes.string, Serdes.string)
    topology.add_global_store(store, "facts", "facts", "fill", lambda: Fill("kept"))
    assert asked(looking(topology)) == [("k", "x:V"), ("nobody", "y:None")]


def test_the_processor_of_a_global_store_forwards_nothing() -> None:
    topology = Topology()
    store = Stores.key_value("kept", Serdes.string, Serdes.string)
    topology.add_global_store(store, "facts", "facts", "fill", lambda: Fill("kept", forwards=True))
    with pytest.raises(StreamsError, match="fill fills the global store kept: nothing follows it"):
        asked(looking(topology))


class Picky(Fill):
    def process(self, record: Record) -> None:
        super().process(record.with_value({"v": "good"}[record.value]))


def picky() -> Topology:
    topology = Topology()
    store = Stores.key_value("kept", Serdes.string, Serdes.string)
    topology.add_global_store(store, "facts", "facts", "fill", lambda: Picky("kept"))
    return looking(topology)


CONTINUE = {"processing.exception.handler": "continue"}


@pytest.mark.parametrize("config", [{}, CONTINUE, {"processing.exception.handler.global.enabled": True}])
def test_a_processor_of_a_global_store_that_raises_ends_the_application(config: dict[str, Any]) -> None:
    with TopologyTestDriver(picky(), config=config) as driver:
        facts = driver.create_input_topic("facts", Serdes.string, Serdes.string)
        with pytest.raises(StreamsError, match="processing failed at facts-0 offset 0, node fill, task global: KeyErr"):
            facts.pipe_input("j", "w")


def test_unless_its_handler_was_enabled_and_goes_on() -> None:
    config = {**CONTINUE, "processing.exception.handler.global.enabled": True}
    with TopologyTestDriver(picky(), config=config) as driver:
        facts = driver.create_input_topic("facts", Serdes.string, Serdes.string)
        facts.pipe_many([("j", "w", 0), ("k", "v", 0)])
        assert list(driver.get_key_value_store("kept").all()) == [("k", "GOOD")]
        assert driver.dropped_records == {"processing-error": 1}


def test_a_read_only_store_is_filled_from_its_topic_and_has_no_changelog() -> None:
    topology = Topology()
    store = Stores.key_value("kept", Serdes.string, Serdes.string)
    topology.add_read_only_state_store(store, "facts", "facts", "fill", lambda: Fill("kept"))
    assert asked(looking(topology, stores=["kept"])) == [("k", "x:V"), ("nobody", "y:None")]


def test_a_store_of_bounded_size_forgets_what_was_not_used_for_the_longest_time() -> None:
    backend = MemoryBackend()
    log: list[Any] = []
    spec = Stores.key_value("s", Serdes.string, Serdes.string, most_entries=2)

    def store() -> Any:
        context = StoreContext(
            backend, Serdes.string, Serdes.string, log=lambda key, value, timestamp, _: log.append((key, value))
        )
        return made_store(spec, context)

    kept = store()
    kept.put_all([("a", "1"), ("b", "2")])
    assert kept.get("a") == "1"
    kept.flush()
    # Another task goes on, and knows in which order keys were used.
    kept = store()
    kept.put("c", "3")
    assert list(kept.all()) == [("a", "1"), ("c", "3")]
    assert log == [(b"a", b"1"), (b"b", b"2"), (b"b", None), (b"c", b"3")]


class Bag(StateStore):
    """Counts words, and keeps the counts as text."""

    def __init__(self, context: StateStoreContext) -> None:
        self._context = context

    def add(self, word: str) -> int:
        data = self._context.state.get(word.encode()) or b"0"
        count = int(data) + 1
        self._context.state.put(word.encode(), str(count).encode())
        self._context.log_change(word.encode(), str(count).encode())
        return count

    def flush(self) -> None:
        """Each change is written at once."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        if value is None:
            self._context.state.delete(key)
        else:
            self._context.state.put(key, value)


class Adding(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._bag: Bag = context.state_store("bag")

    def process(self, record: Record) -> None:
        self._context.forward(record.with_value(str(self._bag.add(record.value))))


def test_a_store_of_ones_own_class_lies_in_the_state_of_the_task_and_has_a_changelog() -> None:
    topology = Topology()
    topology.add_source("in", "in", **STRINGS)
    topology.add_processor("add", Adding, "in", stores=[Stores.own("bag", Bag)])
    topology.add_sink("out", "out", "add", **STRINGS)
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in", Serdes.string, Serdes.string).pipe_many([("k", "x", 5), ("k", "x", 6)])
        assert driver.create_output_topic("out").read_values() == ["1", "2"]
        changes = driver.create_output_topic("test-bag-changelog", Serdes.string, Serdes.string).read_all()
        assert [(each.key, each.value, each.timestamp) for each in changes] == [("x", "1", 5), ("x", "2", 6)]
        assert driver.get_state_store("bag").add("x") == 3


def test_a_supplier_that_makes_no_store_is_told_by_name() -> None:
    topology = Topology()
    topology.add_source("in", "in", **STRINGS)
    topology.add_processor("add", Adding, "in", stores=[Stores.own("bag", lambda context: {})])  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match=r"the supplier of the store bag gave .* is no StateStore"):
        TopologyTestDriver(topology)


HELD = ValueTimestampHeaders("v", 5, (("h", b"1"), ("empty", None)))


def test_stores_with_headers_have_them_in_their_changelog_and_take_them_back_from_there() -> None:
    log: list[Any] = []

    def store(spec: StoreSpec) -> Any:
        context = StoreContext(MemoryBackend(), Serdes.string, Serdes.string, log=lambda *each: log.append(each))
        context.moment.timestamp, context.moment.headers = 9, (("now", b""),)
        return made_store(spec, context)

    def back(spec: StoreSpec) -> list[Any]:
        restored = store(spec)
        for record in log:
            restored.restore(*record)
        return list(restored.all())

    values = Stores.key_value("s", Serdes.string, Serdes.string, headers=True)
    kept = store(values)
    kept.put_all([("k", HELD), ("gone", HELD)])
    kept.delete("gone")
    assert log[0] == (b"k", b"v", 5, (("h", b"1"), ("empty", None)))
    assert log[-1] == (b"gone", None, 9, (("now", b""),))
    assert back(values) == [("k", HELD)]
    log.clear()
    windows = Stores.window("s", Serdes.string, Serdes.string, window_size_ms=10, retention_ms=100, headers=True)
    store(windows).put("k", HELD, 5)
    assert back(windows) == [(Windowed("k", Window(5, 15)), HELD)]
    log.clear()
    sessions = Stores.session("s", Serdes.string, Serdes.string, retention_ms=100, headers=True)
    aggregation = AggregationWithHeaders("sum", HELD.headers)
    store(sessions).put(Windowed("k", Window(0, 5)), aggregation)
    assert log == [(log[0][0], b"sum", 9, HELD.headers)]
    assert back(sessions) == [(Windowed("k", Window(0, 5)), aggregation)]


def test_sessions_with_headers_keep_them_beside_their_aggregation() -> None:
    store = made(Stores.session("s", Serdes.string, Serdes.string, retention_ms=100_000, headers=True))
    aggregation = AggregationWithHeaders("sum", (("h", b"1"),))
    store.put(Windowed("k", Window(0, 5)), aggregation)
    assert store.fetch_session("k", 0, 5) == aggregation
