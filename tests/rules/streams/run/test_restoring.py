"""A store that is restored keeps no more in memory than it may, and has all of it in the end."""

from collections.abc import Iterator

from ottla.streams.run.changelogs import Filling
from ottla.streams.run.paged_state import PagedState
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.stores.base import IN_ORDER_FROM, StoreContext, to_write
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.stores import StoreKind, StoreSpec
from tests.rules.streams.run.test_paged_state import Pages

MOST_PAGES = 8


class Watched(KeyValues):
    """Tells how much it has in memory."""

    __slots__ = ()

    @property
    def in_memory(self) -> int:
        return len(self._known) + len(self._changed)


def watched(state: PagedState) -> Watched:
    spec = StoreSpec("kept", StoreKind.KEY_VALUE, Serdes.bytes, Serdes.bytes)
    return Watched(spec, StoreContext(state, Serdes.bytes, Serdes.bytes))


def changelog(number: int) -> Iterator[tuple[bytes, bytes]]:
    """Each key thrice, in no order."""
    return ((b"%06d" % (at * 7919 % number), b"%d" % at) for at in range(3 * number))


def test_a_changelog_larger_than_memory_is_restored_in_bounded_memory() -> None:
    pages = Pages()
    state = PagedState(pages, MOST_PAGES)
    store = watched(state)
    filling = Filling(store, state.flush, most_records=1_000)
    for at, (key, value) in enumerate(changelog(20_000)):
        filling.add(key, value, at, ())
        assert store.in_memory <= 2 * 1_000
        assert state.pages_in_memory <= MOST_PAGES
    filling.write()
    assert (filling.restored, filling.latest) == (60_000, 59_999)
    expected = dict(changelog(20_000))
    assert {key: value[8:] for key, value in PagedState(pages).scan()} == expected


def test_large_records_are_written_away_sooner() -> None:
    state = PagedState(Pages())
    store = watched(state)
    filling = Filling(store, state.flush, most_records=1_000, most_bytes=10_000)
    for number in range(50):
        filling.add(b"%d" % number, bytes(1_000), 0, ())
        assert store.in_memory <= 2 * 10


def test_many_keys_are_written_in_order_and_few_as_they_come() -> None:
    few, many = [b"b", b"a"], [b"%d" % number for number in range(IN_ORDER_FROM)]
    assert (list(to_write(few)), list(to_write(many))) == (few, sorted(many))
