"""Versioned stores and tables: which version is valid when, what history forgets, what joins see of it."""

import random
from typing import Any

import pytest

from ottla.streams import Consumed, Joined, Materialized, Serdes, Stores, StreamsBuilder, TopologyError
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.versioned import Versions
from ottla.streams.topology.stores import IS_LATEST, NOT_PUT, VersionedRecord
from tests.rules.streams.driving import driver_of, feed, results

STRINGS = Consumed(Serdes.string, Serdes.string)


def versions(
    history_ms: int = 100,
    segment_ms: int = 10,
    backend: MemoryBackend | None = None,
    dropped: list[str] | None = None,
    log: list[Any] | None = None,
) -> Versions:
    spec = Stores.versioned_key_value(
        "s", Serdes.string, Serdes.string, history_retention_ms=history_ms, segment_interval_ms=segment_ms
    )
    told = [] if dropped is None else dropped
    context = StoreContext(
        MemoryBackend() if backend is None else backend,
        Serdes.string,
        Serdes.string,
        dropped=told.append,
        log=None if log is None else lambda key, value, timestamp, _: log.append((key, value, timestamp)),
    )
    return Versions(spec, context)


def test_a_version_is_valid_from_its_time_until_the_next_one_begins() -> None:
    store = versions()
    assert [store.put("k", "a", 10), store.put("k", "b", 20)] == [IS_LATEST, IS_LATEST]
    assert [store.get("k", time) for time in (9, 10, 19, 20, 1000)] == [
        None,
        VersionedRecord("a", 10, 20),
        VersionedRecord("a", 10, 20),
        VersionedRecord("b", 20),
        VersionedRecord("b", 20),
    ]


def test_a_version_that_comes_late_ends_where_the_next_one_begins() -> None:
    store = versions()
    store.put("k", "a", 10)
    store.put("k", "c", 40)
    assert store.put("k", "b", 25) == 40
    assert store.history("k", 0, 100) == [
        VersionedRecord("a", 10, 25),
        VersionedRecord("b", 25, 40),
        VersionedRecord("c", 40),
    ]


def test_a_deletion_ends_a_version_and_gives_what_was_valid() -> None:
    store = versions()
    store.put("k", "a", 10)
    assert store.delete("k", 30) == VersionedRecord("a", 10)
    assert store.get("k") is None
    assert store.get("k", 29) == VersionedRecord("a", 10, 30)
    assert store.put("k", "b", 20) == 30
    assert store.get("k", 30) is None


def test_what_is_older_than_the_history_is_not_taken_but_logged_as_kafka_does() -> None:
    dropped: list[str] = []
    log: list[Any] = []
    store = versions(history_ms=100, dropped=dropped, log=log)
    store.put("k", "a", 200)
    assert store.put("k", "old", 99) == NOT_PUT
    assert store.put("k", "edge", 100) == 200
    assert dropped == ["expired-window"]
    assert log == [(b"k", b"a", 200), (b"k", b"old", 99), (b"k", b"edge", 100)]


def test_beyond_the_history_only_a_latest_version_is_found() -> None:
    store = versions(history_ms=100)
    store.put("k", "a", 10)
    store.put("k", "b", 20)
    store.put("other", "x", 500)
    assert store.get("k", 15) is None
    assert store.get("k", 25) == VersionedRecord("b", 20)
    assert store.history("k", 0, 15) == []


def test_expired_segments_leave_nothing_behind() -> None:
    backend = MemoryBackend()
    store = versions(history_ms=20, backend=backend)
    for time in range(0, 1000, 5):
        store.put(f"k{time % 50}", "v", time)
        store.put(f"k{time % 50}", None, time + 1)
    store.put("last", "v", 5000)
    store.flush()
    # The last key, and the directory of segments.
    assert len(backend) == 2


def test_a_store_read_back_from_its_backend_or_its_changelog_is_the_same() -> None:
    dice = random.Random(7)
    backend = MemoryBackend()
    log: list[Any] = []
    store = versions(backend=backend, log=log)
    for _ in range(300):
        time = max(0, len(log) * 3 + dice.randint(-60, 10))
        store.put(dice.choice("ab"), dice.choice(["x", "y", None]), time)
        if dice.random() < 0.2:
            store.flush()
            store = versions(backend=backend, log=log)
    restored = versions()
    for key, value, timestamp in log:
        restored.restore(key, value, timestamp)
    for key in "ab":
        assert restored.get(key) == store.get(key)
        assert restored.history(key, 0, 10_000) == store.history(key, 0, 10_000)


def test_a_join_with_a_versioned_table_sees_the_table_as_of_the_records_time() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("table", STRINGS, Materialized("t", history_retention_ms=1000))
        stream = builder.stream("stream", STRINGS)
        stream.join(table, lambda left, right: f"{left}+{right}").to("out")

    with driver_of(build) as driver:
        feed(driver, [("table", "k", "old", 10), ("table", "k", "new", 20), ("stream", "k", "s", 15)])
        assert results(driver) == [("k", "s+old", 15)]


def test_with_a_grace_a_record_waits_for_late_ones_of_the_table() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("table", STRINGS, Materialized("t", history_retention_ms=1000))
        stream = builder.stream("stream", STRINGS)
        stream.join(table, lambda left, right: f"{left}+{right}", joined=Joined(grace_ms=10)).to("out")

    with driver_of(build) as driver:
        feed(driver, [("table", "k", "old", 10), ("stream", "k", "s", 15), ("table", "k", "late", 14)])
        assert results(driver) == []
        feed(driver, [("stream", "k", "moves time", 25)])
        assert results(driver) == [("k", "s+late", 15)]


def test_a_grace_needs_a_versioned_table_whose_history_is_long_enough() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    stream = builder.stream("stream")
    with pytest.raises(TopologyError, match="is not versioned: materialize it with history_retention_ms"):
        stream.join(builder.table("plain"), lambda left, right: left, joined=Joined(grace_ms=1))
    short = builder.table("short", materialized=Materialized("t", history_retention_ms=5))
    with pytest.raises(TopologyError, match="waits 6 ms, but t keeps a history of 5 ms only"):
        stream.join(short, lambda left, right: left, joined=Joined(grace_ms=6))


def test_versions_are_refused_where_kafka_has_none() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    with pytest.raises(TopologyError, match="cannot be versioned"):
        builder.global_table("global", materialized=Materialized("g", history_retention_ms=5))
    with pytest.raises(TopologyError, match="needs a name"):
        Materialized(history_retention_ms=5)


def test_out_of_order_rows_of_a_versioned_table_do_not_reach_its_groups() -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("table", STRINGS, Materialized("t", history_retention_ms=1000))
        table.group_by(lambda key, value: ("all", value)).count(Materialized("n")).to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, [("table", "k", "a", 20), ("table", "k", "late", 10), ("table", "j", "b", 30)])
        assert results(driver) == [("all", 1, 20), ("all", 2, 30)]
