"""A sorted map in pages behaves like a sorted map."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.streams.run.paged_state import DIRECTORY, MOST_ENTRIES, MOST_READ, PagedState
from tests.support.examples import examples


class Pages:
    """In a dict; counts what Spark would have to be asked for."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}
        self.calls = 0

    def get(self, name: bytes) -> bytes | None:
        self.calls += 1
        return self.held.get(name)

    def put(self, name: bytes, content: bytes) -> None:
        self.calls += 1
        self.held[name] = content

    def remove(self, name: bytes) -> None:
        self.calls += 1
        del self.held[name]

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        self.calls += 1
        return list(self.held.items())


keys = st.integers(0, 900).map(lambda number: b"%d" % number)
puts = st.tuples(st.just("put"), keys, st.binary(max_size=4))
deletes = st.tuples(st.just("delete"), keys, st.just(b""))
floods = st.tuples(st.just("flood"), keys, st.just(b"x"))
ends = st.tuples(st.just("end of batch"), st.just(b""), st.just(b""))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.one_of(puts, deletes, floods, ends), max_size=60), keys, keys, st.sampled_from((2, 5, MOST_READ)))
def test_it_holds_what_was_put_over_any_number_of_batches(
    steps: list[tuple[str, bytes, bytes]], low: bytes, high: bytes, most_read: int
) -> None:
    pages, model = Pages(), dict[bytes, bytes]()
    state = PagedState(pages, most_read)
    for step, key, value in steps:
        if step == "put":
            state.put(key, value)
            model[key] = value
        elif step == "delete":
            state.delete(key)
            model.pop(key, None)
        elif step == "flood":
            for number in range(2 * MOST_ENTRIES):
                state.put(b"%s.%d" % (key, number), value)
                model[b"%s.%d" % (key, number)] = value
        else:
            state.flush()
            state = PagedState(pages, most_read)
        assert state.get(key) == model.get(key)
    assert list(state.scan()) == sorted(model.items())
    assert list(state.scan(low, high)) == sorted((key, value) for key, value in model.items() if low <= key <= high)
    state.flush()
    again = PagedState(pages)
    assert len(again) == len(model)
    assert list(again.scan()) == sorted(model.items())


def test_a_batch_that_touches_one_key_reads_and_writes_one_page() -> None:
    pages = Pages()
    state = PagedState(pages)
    for number in range(10_000):
        state.put(b"%05d" % number, b"value")
    state.flush()
    assert len(pages.held) > 30
    pages.calls = 0
    state = PagedState(pages)
    state.put(b"05000", b"new")
    state.flush()
    assert pages.calls == 4  # the directory and the page, each read and written


def test_a_batch_that_touches_everything_keeps_no_more_pages_than_it_may() -> None:
    pages = Pages()
    state = PagedState(pages)
    for number in range(10_000):
        state.put(b"%05d" % number, b"value")
    state.flush()
    state = PagedState(pages, most_read=8)
    for number in range(10_000):
        state.put(b"%05d" % number, b"new")
        assert state.pages_in_memory <= 8
    state.flush()
    assert {value for _, value in PagedState(pages).scan()} == {b"new"}


def test_a_batch_that_changes_nothing_writes_nothing() -> None:
    pages = Pages()
    state = PagedState(pages)
    state.put(b"key", b"value")
    state.flush()
    before = dict(pages.held)
    state = PagedState(pages)
    assert state.get(b"key") == b"value"
    pages.calls = 0
    state.flush()
    assert (pages.calls, pages.held) == (0, before)


def test_a_store_that_was_emptied_takes_no_pages() -> None:
    pages = Pages()
    state = PagedState(pages)
    for number in range(1_000):
        state.put(b"%d" % number, b"value")
    state.flush()
    for key, _ in list(state.scan()):
        state.delete(key)
    state.flush()
    assert list(pages.held) == [DIRECTORY]
    assert list(PagedState(pages).scan()) == []
