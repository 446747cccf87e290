"""Stores over a map of bytes: what they find, what they forget, what they write to backend and changelog."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.streams.record import Headers, RecordMetadata
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.stores.session import Sessions
from ottla.streams.tasks.stores.waiting import Held, HeldBack, Waiting
from ottla.streams.tasks.stores.window import Windows
from ottla.streams.topology.stores import StoreKind, StoreSpec, ValueAndTimestamp
from ottla.streams.windows import Window, Windowed


class Counted(MemoryBackend):
    """Counts what a store asks of it."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def get(self, key: bytes) -> bytes | None:
        self.calls.append("get")
        return super().get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.calls.append("put")
        super().put(key, value)

    def scan(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        self.calls.append("scan")
        return super().scan(first, last)


def context(backend: MemoryBackend, log: list[Any] | None = None, dropped: list[str] | None = None) -> StoreContext:
    def record(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        if log is not None:
            log.append((key, value, timestamp))

    told = dropped if dropped is not None else []
    made = StoreContext(backend, Serdes.string, Serdes.string, log=record, dropped=told.append)
    made.moment.timestamp = 99
    return made


# ---- key-value


def key_values(timestamped: bool = True, **given: Any) -> KeyValues:
    spec = StoreSpec("s", StoreKind.KEY_VALUE, timestamped=timestamped)
    return KeyValues(spec, context(given.pop("backend", MemoryBackend()), **given))


def test_a_timestamped_value_has_its_time_in_front_in_the_store_and_beside_it_in_the_changelog() -> None:
    backend, log = MemoryBackend(), list[Any]()
    store = key_values(backend=backend, log=log)
    store.put("k", ValueAndTimestamp("v", 5))
    store.put("gone", ValueAndTimestamp("v", 6))
    store.put("gone", None)
    store.flush()
    assert list(backend.scan()) == [(b"k", (5).to_bytes(8, "big") + b"v")]
    assert log == [(b"k", b"v", 5), (b"gone", b"v", 6), (b"gone", None, 99)]


def test_ranges_are_in_the_order_of_bytes_with_both_ends() -> None:
    store = key_values(timestamped=False)
    for name in ("b", "a", "ab", "ü", "c"):
        store.put(name, name.upper())
    assert [key for key, _ in store.all()] == ["a", "ab", "b", "c", "ü"]
    assert [key for key, _ in store.range("ab", "c")] == ["ab", "b", "c"]
    assert [key for key, _ in store.reverse_range(None, "b")] == ["b", "ab", "a"]
    assert [key for key, _ in store.prefix_scan(b"a")] == ["a", "ab"]
    assert list(store.range("c", "a")) == []
    assert store.approximate_num_entries() == 5


def test_delete_gives_what_was_there() -> None:
    store = key_values()
    store.put("k", ValueAndTimestamp("v", 5))
    assert store.delete("k") == ValueAndTimestamp("v", 5)
    assert store.delete("k") is None
    assert store.get("k") is None


def test_none_is_no_key() -> None:
    with pytest.raises(ValueError, match="a key of the store s must not be None"):
        key_values().get(None)


def test_a_key_is_asked_for_once_and_written_once_per_batch() -> None:
    backend = Counted()
    store = key_values(backend=backend)
    for number in range(10):
        store.get("k")
        store.put("k", ValueAndTimestamp(str(number), number))
    store.flush()
    assert backend.calls == ["get", "put"]


# ---- windows


def windows(backend: MemoryBackend, **given: Any) -> Windows:
    spec = StoreSpec(
        "w",
        StoreKind.WINDOW,
        timestamped=False,
        window_size_ms=given.pop("size", 10),
        retention_ms=given.pop("retention", 30),
        retain_duplicates=given.pop("duplicates", False),
    )
    return Windows(spec, context(backend, **given))


def test_a_window_is_there_until_stream_time_has_moved_on_by_the_retention() -> None:
    dropped: list[str] = []
    store = windows(MemoryBackend(), dropped=dropped)
    store.put("k", "a", 10)
    store.put("k", "b", 39)
    assert list(store.fetch_range("k", 0, 100)) == [(10, "a"), (39, "b")]
    store.put("k", "c", 40)
    assert list(store.fetch_range("k", 0, 100)) == [(39, "b"), (40, "c")]
    assert store.fetch("k", 10) is None
    store.put("k", "late", 9)
    assert store.fetch("k", 9) is None
    assert dropped == []


def test_only_what_misses_its_segment_of_a_minute_counts_as_dropped() -> None:
    dropped: list[str] = []
    log: list[Any] = []
    store = windows(MemoryBackend(), dropped=dropped, log=log)
    store.put("k", "a", 60_040)
    store.put("k", "b", 59_999)
    assert dropped == ["expired-window"]
    assert len(log) == 2  # the changelog gets it all the same


def test_the_same_window_again_replaces_and_none_deletes() -> None:
    store = windows(MemoryBackend())
    store.put("k", "a", 10)
    store.put("k", "b", 10)
    assert list(store.fetch_range("k", 10, 10)) == [(10, "b")]
    store.put("k", None, 10)
    assert list(store.all()) == []


def test_with_duplicates_every_value_stays_in_the_order_it_came() -> None:
    log: list[Any] = []
    store = windows(MemoryBackend(), duplicates=True, log=log)
    for value in ("a", "b", None, "c"):
        store.put("k", value, 10)
    assert [value for _, value in store.fetch_range("k", 0, 20)] == ["a", "b", "c"]
    assert [key[-4:] for key, _, _ in log] == [number.to_bytes(4, "big") for number in (1, 2, 3, 4)]


def test_all_is_by_segment_then_by_bytes_of_key_and_start() -> None:
    store = windows(MemoryBackend(), retention=500_000, size=100)
    for key, start in (("b", 1), ("a", 300_000), ("b", 2), ("a", 5), ("aa", 3)):
        store.put(key, "v", start)
    assert [(key.key, key.window.start) for key, _ in store.all()] == [
        ("a", 5),
        ("aa", 3),
        ("b", 1),
        ("b", 2),
        ("a", 300_000),
    ]
    store.in_time_order()
    assert [(key.key, key.window.start) for key, _ in store.fetch_all(2, 10)] == [("b", 2), ("aa", 3), ("a", 5)]


def test_a_fetch_around_a_record_reads_two_cells_at_most() -> None:
    backend = Counted()
    store = windows(backend, size=1000, retention=10_000)
    for start in range(0, 5000, 100):
        store.put("k", "v", start)
    store.flush()
    store.forget()
    backend.calls.clear()
    assert len(list(store.fetch_range("k", 2500, 3500))) == 11
    assert backend.calls == ["get", "get"]


# ---- sessions


def sessions(backend: MemoryBackend, **given: Any) -> Sessions:
    spec = StoreSpec("s", StoreKind.SESSION, timestamped=False, retention_ms=given.pop("retention", 100))
    return Sessions(spec, context(backend, **given))


def session(key: str, start: int, end: int) -> Windowed:
    return Windowed(key, Window(start, end))


def test_sessions_are_found_by_the_time_they_touch_in_the_order_of_their_end() -> None:
    store = sessions(MemoryBackend())
    for start, end in ((50, 60), (1, 5), (20, 70)):
        store.put(session("k", start, end), f"{start}-{end}")
    assert [value for _, value in store.find_sessions("k", 5, 50)] == ["1-5", "50-60", "20-70"]
    assert [value for _, value in store.find_sessions("k", 6, 49)] == ["20-70"]
    store.remove(session("k", 20, 70))
    assert [value for _, value in store.fetch("k")] == ["1-5", "50-60"]


def test_a_session_ends_with_the_retention_after_its_end() -> None:
    store = sessions(MemoryBackend())
    store.put(session("k", 0, 10), "a")
    store.put(session("x", 109, 109), "b")
    assert [value for _, value in store.fetch("k")] == ["a"]
    store.put(session("x", 110, 110), "b")
    assert [value for _, value in store.fetch("k")] == []


def test_closed_sessions_are_found_past_retention_while_their_segment_lives() -> None:
    store = sessions(MemoryBackend())
    store.put(session("k", 0, 10), "a")
    store.put(session("x", 500, 500), "b")
    assert [value for *_, value in store.ended_between(0, 1000)] == ["a", "b"]
    store.put(session("x", 120_200, 120_200), "c")
    assert [value for *_, value in store.ended_between(0, 1000)] == []


def test_sessions_of_a_key_are_one_lookup_however_many_and_old() -> None:
    backend = Counted()
    store = sessions(backend, retention=1_000_000)
    for start in range(0, 900_000, 10_000):
        store.put(session("k", start, start), "v")
    store.flush()
    store.forget()
    backend.calls.clear()
    assert len(list(store.fetch("k"))) == 90
    assert backend.calls == ["get"]


# ---- records and results that wait


def test_waiting_records_are_in_the_order_of_time_side_and_key() -> None:
    backend = MemoryBackend()
    spec = StoreSpec("j", StoreKind.KEY_VALUE, timestamped=False)
    store = Waiting(spec, context(backend), context(backend), 5)
    for key, time, is_left, value in (
        ("b", 7, True, "1"),
        ("a", 7, True, "2"),
        ("c", 7, False, "3"),
        ("a", 3, True, "4"),
    ):
        store.add(key.encode(), time, is_left, value)
    store.add(b"a", 7, True, "5")
    assert list(store.in_order()) == [(3, True, b"a"), (7, False, b"c"), (7, True, b"a"), (7, True, b"b")]
    assert store.values(b"a", 7, True) == ["2", "5"]
    store.remove(b"a", 7, True)
    store.remove(b"a", 3, True)
    store.remove(b"nobody", 3, True)
    store.flush()
    again = Waiting(spec, context(backend), context(backend), 5)
    assert list(again.in_order()) == [(7, False, b"c"), (7, True, b"b")]
    again.remove(b"c", 7, False)
    again.remove(b"b", 7, True)
    again.flush()
    assert [key for key, _ in backend.scan()] == [b"m"]


def test_a_buffer_gives_results_back_as_they_were() -> None:
    backend = MemoryBackend()
    spec = StoreSpec("b", StoreKind.KEY_VALUE, timestamped=False)
    store = HeldBack(spec, context(backend), 10)
    held = Held("new", "old", 5, (("h", b"1"), ("empty", None)), RecordMetadata("topic", 3, 7))
    store.put(20, b"k", held)
    store.put(20, b"k", held._replace(new="newer", old="new"))
    store.put(30, b"later", Held("x", None, 6, (), None))
    assert store.prior(b"k", 20) == (True, "old")
    store.flush()
    again = HeldBack(spec, context(backend), 10)
    assert (again.count, again.earliest()) == (2, 20)
    assert list(again.take_while(lambda when: when <= 25)) == [(b"k", held._replace(new="newer", old="new"))]
    assert (again.count, again.earliest()) == (1, 30)
    assert list(again.take_while(lambda when: when <= 30)) == [(b"later", Held("x", None, 6, (), None))]
    assert (again.count, again.size, again.earliest()) == (0, 0, None)


# ---- all of them


def _random_windows(store: Windows, dice: random.Random) -> Any:
    key, start = dice.choice("abc"), dice.randrange(400)
    store.put(key, None if dice.random() < 0.1 else str(dice.random()), start)
    return list(store.all()), list(store.fetch_range(key, start - 20, start + 20))


def _random_sessions(store: Sessions, dice: random.Random) -> Any:
    key, start = dice.choice("abc"), dice.randrange(200_000)
    found = list(store.find_sessions(key, start - 1000, start + 1000))
    for window, _ in found:
        store.remove(window)
    store.put(session(key, start, start + dice.randrange(2000)), str(dice.random()))
    return list(store.all()), found, store.ended_between(0, start)


@pytest.mark.parametrize(
    ("make", "act"),
    [(windows, _random_windows), (lambda backend: sessions(backend, retention=9000), _random_sessions)],
)
def test_a_store_that_is_written_and_read_anew_all_the_time_is_the_same_store(
    make: Callable[[MemoryBackend], Any], act: Callable[[Any, random.Random], Any]
) -> None:
    for seed in range(5):
        backend = MemoryBackend()
        warm, dice, same_dice = make(MemoryBackend()), random.Random(seed), random.Random(seed)
        cold = make(backend)
        for number in range(150):
            assert act(cold, same_dice) == act(warm, dice)
            cold.flush()
            if number % 2:
                cold.forget()
            else:
                cold = make(backend)
